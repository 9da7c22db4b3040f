"""`anabranch doctor`: checks this machine, and says what would fail or be slow, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import options
from anabranch.cli.messages import FAILED

if TYPE_CHECKING:
    from anabranch.cli.doctor.result import Result

Spark = Annotated[bool, typer.Option("--spark", help="Also start Spark, and let a worker import the package.")]


def command(spark: Spark = False, master: options.Master = None, archive: options.Archive = None) -> None:
    """Check Python, Java, Spark, kernels, cores, memory, disk and caches."""
    from rich.console import Console
    from rich.text import Text

    from anabranch.cli.doctor.result import Status

    styles = {Status.OK: "green", Status.SLOW: "yellow", Status.FAILS: "bold red"}
    console, statuses = Console(soft_wrap=True), set()
    for name, result in _results(spark, master, archive):
        statuses.add(result.status)
        line = Text.assemble((f"{result.status.value:<6}", styles[result.status]), f"{name:<18}{result.text}")
        console.print(line)
        if result.advice:
            console.print(Text(f"{'':<24}{result.advice}"))
    if Status.FAILS in statuses:
        raise typer.Exit(FAILED)


def _results(spark: bool, master: str | None, archive: str | None) -> Iterator[tuple[str, Result]]:
    """The names and results of the checks."""
    from anabranch.cli.doctor import checks
    from anabranch.cli.doctor.kernels import cache_folder, kernels
    from anabranch.cli.doctor.workers import workers

    every: tuple[Callable[[], Result], ...] = (
        checks.python,
        checks.packages,
        checks.java,
        checks.spark,
        kernels,
        checks.cores,
        checks.memory,
        checks.disk,
        checks.temporary_folder,
        cache_folder,
        checks.host_name,
    )
    for check in every:
        yield check.__name__.replace("_", " "), check()
    if spark:
        yield "workers", workers(master, archive)
