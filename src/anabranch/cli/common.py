"""Shared by the commands: opening a workbook, choosing queries and error locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from anabranch.catalog import Catalog, Query, Stream
from anabranch.cli.messages import RunFailed, say
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.planning.planner import Planner

if TYPE_CHECKING:
    import pyarrow as pa

    from anabranch.session import Session


def declare_workbook(workbook: str) -> tuple[Planner, int]:
    """The declarations of a workbook and the number of its statements; this loads neither Spark nor arrays."""
    text = read_workbook(workbook)
    planner, parsed = Planner(), parse(text, workbook)
    findings = planner.declare(parsed)
    if findings:
        raise WorkbookError(findings, text, workbook)
    return planner, len(parsed.statements)


def open_workbook(
    workbook: str | None,
    inputs: list[str] | None,
    master: str | None = None,
    verbose: bool = False,
    once: bool = False,
) -> Session:
    """A session with the statements of a workbook, if any, and its inputs. Spark is started on first use.

    `once` says that the command ends when the inputs have been read: small inputs then make a short run.
    """
    from anabranch.runtime.spark import make_session
    from anabranch.session import Session

    session = Session(start=lambda: make_session(master, verbose, short=once and session.has_small_inputs()))
    if workbook is not None:
        session.execute_file(workbook)
    for argument in inputs or ():
        name, equals, path = argument.partition("=")
        if not equals or not name or not path:
            raise typer.BadParameter(f"--input takes NAME=PATH, not {argument}")
        try:
            session.bind(name, path)
        except AnabranchError as error:
            raise typer.BadParameter(str(error)) from None
    return session


def chosen_queries(catalog: Catalog, names: list[str] | None) -> list[Query]:
    """The named queries, or all queries of the workbook."""
    queries = catalog.queries()
    known = {query.name.lower(): query for query in queries}
    for name in names or ():
        if name.lower() not in known:
            names_known = ", ".join(query.name for query in queries)
            raise typer.BadParameter(f"there is no query {name}; the workbook has: {names_known}")
    return [known[name.lower()] for name in names] if names else queries


def runnable_queries(session: Session, workbook: str, names: list[str] | None) -> list[Query]:
    """The queries to run; every reason why one of them cannot run is reported before any of them is run."""
    queries = chosen_queries(session.catalog, names)
    findings = session.objections(queries)
    if findings:
        raise WorkbookError(findings, read_workbook(workbook), workbook)
    return queries


@contextmanager
def failures_of(workbook: str, query: Query | Stream) -> Iterator[None]:
    """Add the location of the query, or of the stream, in the workbook to the error of a failed run."""
    from anabranch.runtime.failures import translate

    try:
        yield
    except (WorkbookError, BrokenPipeError):
        raise
    except Exception as error:
        span, reason = query.declaration.span, translate(error)
        raise RunFailed(f"{workbook}:{span.line}:{span.column}: {query.name} failed: {reason}", reason) from error


def valid_rows(session: Session, stream: Stream) -> pa.Table:
    """The valid rows of a stream; the number of invalid ones is printed."""
    valid, rejected = session.checked_rows(stream.name)
    if rejected.num_rows:
        say(f"{stream.name}: {rejected.num_rows:,} invalid rows were left out")
    return valid


def known_stream(session: Session, name: str) -> Stream:
    """The stream called `name`; refused if there is none."""
    stream = session.catalog.stream(name)
    if stream is None:
        known = ", ".join(session.catalog.names((Stream,))) or "none"
        raise typer.BadParameter(f"there is no stream {name}; the workbook has: {known}")
    return stream


def group_title(names: Sequence[str]) -> str:
    """The names of the queries of a group, shortened if there are many."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"
