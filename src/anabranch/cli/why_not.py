"""`anabranch why-not`: explains why a query has no answers."""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import failures_of, open_workbook, runnable_queries, spark_settings

Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="NAME=VALUE",
        help="The key that has no answers: a KEY column or a grouping variable (may be repeated).",
    ),
]
Quarantine = Annotated[
    str | None,
    typer.Option(
        "--quarantine",
        metavar="DIR",
        help="The quarantined rows of a run or stream, which include late rows. Default: the inputs are checked again.",
    ),
]


def command(
    workbook: options.Workbook,
    query: options.Queries = None,
    key: Keys = None,
    quarantine: Quarantine = None,
    input: options.Inputs = None,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    verbose: options.Verbose = False,
) -> None:
    """Explain why a query has no answers, or none of a key: where it fails, and the rows that are missing."""
    keys = dict(_pair(argument) for argument in key or ())
    session = open_workbook(workbook, input, master, verbose, once=True, settings=spark_settings(conf, packages))
    for number, chosen in enumerate(runnable_queries(session, workbook, query)):
        with failures_of(workbook, chosen):
            reasons = session.why_not(chosen.name, keys, quarantine)
        typer.echo(f"\n{reasons}" if number else str(reasons))


def _pair(argument: str) -> tuple[str, str]:
    name, equals, value = argument.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--key takes NAME=VALUE, not {argument}")
    return name, value
