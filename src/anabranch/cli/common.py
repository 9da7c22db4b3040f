"""Shared by the commands: opening a workbook, choosing queries and error locations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import typer

from anabranch.catalog import Catalog, Query, Stream
from anabranch.cli.messages import RunFailed, say
from anabranch.editing.workbooks import declare_text
from anabranch.errors import AnabranchError, TooManyAnswers, WorkbookError
from anabranch.language.reading import read_workbook
from anabranch.planning.planner import Planner

if TYPE_CHECKING:
    import pyarrow as pa

    from anabranch.session import Session


#: Spark's setting of the packages to download.
_PACKAGES = "spark.jars.packages"


def declare_workbook(workbook: str) -> tuple[Planner, int]:
    """The declarations of a workbook and the number of its statements; this loads neither Spark nor arrays."""
    return declare_text(read_workbook(workbook), workbook)


def open_workbook(
    workbook: str | None,
    inputs: list[str] | None,
    master: str | None = None,
    verbose: bool = False,
    once: bool = False,
    max_answers: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> Session:
    """A session with the statements of a workbook, if any, and its inputs. Spark is started on first use.

    `once` says that the command ends when the inputs have been read: small inputs then make a short run. `settings` are
    those of Spark.
    """
    from anabranch.runtime.spark import make_session
    from anabranch.session import Session

    session = Session(
        start=lambda: make_session(master, verbose, once and session.has_small_inputs(), settings, say),
        max_answers=max_answers,
    )
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


def spark_settings(conf: list[str] | None, packages: list[str] | None, archive: str | None = None) -> dict[str, str]:
    """The settings of Spark that --conf, --packages and --archive state."""
    settings = {}
    for argument in conf or ():
        name, equals, value = argument.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"--conf takes KEY=VALUE, not {name}")
        settings[name.strip()] = value
    if packages:
        settings[_PACKAGES] = ",".join([*filter(None, [settings.get(_PACKAGES)]), *packages])
    if archive is not None:
        from anabranch.runtime.packed import use_archive

        settings.update(use_archive(archive))
    return settings


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
def failures_of(workbook: str, *entries: Query | Stream) -> Iterator[None]:
    """Add a location in the workbook to the error of a failed run of queries, or of a stream.

    It is that of the query with too many answers, if this is the reason, and otherwise that of the first.
    """
    from anabranch.runtime.failures import translate

    try:
        yield
    except (WorkbookError, BrokenPipeError):
        raise
    except Exception as error:
        reason = translate(error)
        excessive = excessive_of(reason, entries)
        entry = excessive or entries[0]
        text = str(reason) if excessive else f"{entry.name} failed: {reason}"
        span = entry.declaration.span
        raise RunFailed(f"{workbook}:{span.line}:{span.column}: {text}", reason) from error


E = TypeVar("E", Query, Query | Stream)


def excessive_of(reason: AnabranchError, entries: Sequence[E]) -> E | None:
    """The query that has too many answers, if this is why queries that were run together have failed."""
    if not isinstance(reason, TooManyAnswers):
        return None
    named = [entry for entry in entries if str(reason).startswith(f"{entry.name}: ")]
    return max(named, key=lambda entry: len(entry.name), default=None)


def run_without_excessive(
    workbook: str, queries: Sequence[Query], run: Callable[[list[Query]], None]
) -> list[RunFailed]:
    """Run queries together; one that has too many answers is reported, and the others are run again without it.

    Returns the errors of those that have too many.
    """
    remaining, errors = list(queries), list[RunFailed]()
    while remaining:
        try:
            with failures_of(workbook, *remaining):
                run(remaining)
            break
        except RunFailed as error:
            excessive = excessive_of(error.reason, remaining)
            if excessive is None:
                raise
            say(str(error))
            errors.append(error)
            remaining.remove(excessive)
    return errors


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
