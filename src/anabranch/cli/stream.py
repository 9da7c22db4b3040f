"""`anabranch stream`: the same workbook on live inputs, as Spark Structured Streaming."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.catalog import Query
from anabranch.cli.common import (
    Inputs,
    Master,
    Queries,
    Strict,
    Verbose,
    Workbook,
    chosen_queries,
    failures_of,
    open_workbook,
    progress,
    refuse_unanswerable,
    say,
    summary,
)
from anabranch.cli.run import Format, check_format

if TYPE_CHECKING:
    from anabranch.session import Session

Checkpoint = Annotated[str, typer.Option("--checkpoint", metavar="DIR", help="Where the stream goes on from.")]
Output = Annotated[str, typer.Option("--output", metavar="DIR", help="Write DIR/<query>/.")]
Once = Annotated[bool, typer.Option("--once", help="Take what is there, end the input, and stop.")]
MaxFiles = Annotated[int | None, typer.Option("--max-files", min=1, help="The most new files a micro-batch takes.")]


def command(
    workbook: Workbook,
    checkpoint: Checkpoint,
    output: Output,
    once: Once = False,
    input: Inputs = None,
    format: Format = "parquet",
    query: Queries = None,
    max_files: MaxFiles = None,
    master: Master = None,
    strict: Strict = False,
    verbose: Verbose = False,
) -> None:
    """Answer the queries of a workbook as rows arrive; a stopped stream goes on from its checkpoint."""
    check_format(format)
    session = open_workbook(workbook, input, master, verbose)
    queries = chosen_queries(session, query)
    refuse_unanswerable(session, workbook, queries)

    def start(chosen: Query, trigger: dict | None):
        return session.start(
            chosen.name, os.path.join(checkpoint, chosen.name), os.path.join(output, chosen.name), format,
            trigger=trigger, max_files=max_files, strict=strict,
        )  # fmt: skip

    if once:
        for chosen in queries:
            with failures_of(workbook, chosen):
                _once(session, chosen, os.path.join(checkpoint, chosen.name), start)
    else:
        _forever(session, workbook, queries, start)


def _once(session: Session, query: Query, checkpoint: str, start) -> None:
    """Take what is there; then end the input, so that every instant is answered."""
    began = time.monotonic()
    available = {"availableNow": True}
    with progress(query.name, lambda: _rows(session, query)):
        start(query, available).awaitTermination()
        session.end_input(checkpoint)
        start(query, available).awaitTermination()
    say(summary(query.name, session.report(query.name), time.monotonic() - began))


def _forever(session: Session, workbook: str, queries: list[Query], start) -> None:
    """Run until stopped; one failed query stops the command."""
    began = time.monotonic()
    running = {}
    try:
        for query in queries:
            with failures_of(workbook, query):
                running[query.name] = start(query, None)
        with progress("streaming", lambda: sum(_rows(session, query) for query in queries)):
            # Not a wait inside the JVM, which Ctrl-C would break with a traceback.
            while all(each.isActive for each in running.values()):
                time.sleep(0.5)
        for query in queries:
            if not running[query.name].isActive:
                with failures_of(workbook, query):
                    running[query.name].awaitTermination()
    except KeyboardInterrupt:
        say("stopping; the checkpoint keeps what is done")
    finally:
        for each in running.values():
            each.stop()
    for query in queries:
        say(summary(query.name, session.report(query.name), time.monotonic() - began))


def _rows(session: Session, query: Query) -> int:
    return session.report(query.name).read if session.has_run(query.name) else 0
