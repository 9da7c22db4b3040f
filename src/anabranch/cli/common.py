"""What the commands share: arguments, the session of a workbook, failures with their place, progress and summaries."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from anabranch.catalog import Query
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.language.reading import read_workbook

if TYPE_CHECKING:
    from anabranch.session import Session
    from anabranch.transport.operator import Counts

FAILED, WRONG = 1, 2

Workbook = Annotated[str, typer.Argument(metavar="WORKBOOK", help="A file of statements (*.abq).")]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", metavar="NAME=PATH", help="The input of a stream or relation.")
]
Queries = Annotated[
    list[str] | None, typer.Option("--query", metavar="NAME", help="Only this query (may be repeated).")
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="A Spark cluster; the default is this machine.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's own log.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail where a row must be set aside, instead of keeping it apart.")
]


class RunFailed(AnabranchError):
    """A run that failed, as one line with the place of its query."""


def say(text: str) -> None:
    """A line on standard error, as it is: no markup, no wrapping."""
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()


def open_workbook(workbook: str, inputs: list[str] | None, master: str | None = None, verbose: bool = False) -> Session:
    """A session with a workbook declared and its inputs bound; Spark starts when it is needed."""
    from anabranch.runtime.spark import make_session
    from anabranch.session import Session

    session = Session(start=lambda: make_session(master, verbose))
    session.execute_file(workbook)
    for given in inputs or ():
        name, equals, path = given.partition("=")
        if not equals or not name or not path:
            raise typer.BadParameter(f"--input takes NAME=PATH, not {given}")
        try:
            session.bind(name, path)
        except AnabranchError as error:
            raise typer.BadParameter(str(error)) from None
    return session


def chosen_queries(session: Session, names: list[str] | None) -> list[Query]:
    """The queries to run: those named, or all of the workbook."""
    queries = session.catalog.queries()
    known = {query.name.lower(): query for query in queries}
    for name in names or ():
        if name.lower() not in known:
            raise typer.BadParameter(
                f"there is no query {name}; the workbook has: {', '.join(q.name for q in queries)}"
            )
    return [known[name.lower()] for name in names] if names else queries


def refuse_unanswerable(session: Session, workbook: str, queries: list[Query]) -> None:
    """Say everything that stands against the chosen queries before any of them is run."""
    findings = session.objections(queries)
    if findings:
        raise WorkbookError(findings, read_workbook(workbook), workbook)


@contextmanager
def failures_of(workbook: str, query: Query) -> Iterator[None]:
    """A failure of a run names the place of its query in the workbook."""
    from anabranch.runtime.failures import translate

    try:
        yield
    except WorkbookError:
        raise
    except Exception as error:
        span = query.declaration.span
        raise RunFailed(f"{workbook}:{span.line}:{span.column}: {query.name} failed: {translate(error)}") from error


def told_together(names: Sequence[str]) -> str:
    """The names of queries that are run together, cut short where they are many."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def summary(name: str, counts: Counts, seconds: float) -> str:
    """What a run did, in one line."""
    answers = "1 answer" if counts.answers == 1 else f"{counts.answers:,} answers"
    told = (
        f"{name}: {answers}; {counts.read:,} rows read, {counts.used:,} used, "
        f"{counts.late:,} late, {counts.quarantined:,} quarantined"
    )
    if counts.duplicate:
        told += f", {counts.duplicate:,} given twice"
    if counts.kept:
        told += f", at most {counts.kept:,} kept at a time"
    if counts.reported:
        saved = 1 - counts.reported / max(counts.used, 1)
        told += f"; sensors would have to report {counts.reported:,} of them ({saved:.1%} saved)"
    return f"{told}; {seconds:.1f} s ({counts.read / max(seconds, 1e-9):,.0f} rows/s)"


@contextmanager
def progress(title: str, rows: Callable[[], int]) -> Iterator[None]:
    """A progress line on standard error with rows a second, where standard error is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(pulse_style="cyan"), TimeElapsedColumn())
    stop = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        watcher = threading.Thread(target=_watch, args=(bar, task, title, rows, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def _watch(bar: Progress, task, title: str, rows: Callable[[], int], stop: threading.Event) -> None:
    began = time.monotonic()
    while not stop.wait(0.25):
        seen = rows()
        rate = seen / max(time.monotonic() - began, 1e-9)
        told = f"  {seen:,} rows, {rate:,.0f} rows/s" if seen else ""
        bar.update(task, description=title + told)
