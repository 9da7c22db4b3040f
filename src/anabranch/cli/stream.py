"""`anabranch stream`: the same workbook on live inputs, as Spark Structured Streaming."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
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
    told_together,
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

    groups = [
        _Group(session, group, checkpoint, output, format, max_files, strict) for group in session.groups(queries)
    ]
    if once:
        for group in groups:
            with failures_of(workbook, group.queries[0]):
                _once(group)
    else:
        _forever(workbook, groups)


@dataclass(frozen=True, slots=True)
class _Group:
    """Queries that share a stream: one alone, or several over the same inputs."""

    session: Session
    queries: list[Query]
    checkpoints: str
    output: str
    file_format: str
    max_files: int | None
    strict: bool

    @property
    def name(self) -> str:
        """The group, as the summary names it."""
        return told_together([query.name for query in self.queries])

    @property
    def checkpoint(self) -> str:
        """The folder that the group goes on from."""
        names = [query.name for query in self.queries]
        return os.path.join(self.checkpoints, "+".join(names if len(names) <= 3 else [names[0], str(len(names) - 1)]))

    def start(self, trigger: dict | None):
        """Start the stream."""
        names = [query.name for query in self.queries]
        folders = [os.path.join(self.output, name) for name in names]
        return self.session.start_together(
            names, self.checkpoint, folders, self.file_format, trigger, self.max_files, self.strict
        )

    def rows(self) -> int:
        """How many rows were read."""
        name = self.queries[0].name
        return self.session.counts(name).read if self.session.has_run(name) else 0

    def tell(self, began: float) -> None:
        """Say what became of the rows."""
        say(summary(self.name, self.session.counts(self.queries[0].name), time.monotonic() - began))


def _once(group: _Group) -> None:
    """Take what is there; then end the input, so that every instant is answered."""
    began = time.monotonic()
    available = {"availableNow": True}
    with progress(group.name, group.rows):
        group.start(available).awaitTermination()
        group.session.end_input(group.checkpoint)
        group.start(available).awaitTermination()
    group.tell(began)


def _forever(workbook: str, groups: list[_Group]) -> None:
    """Run until stopped; one failed query stops the command."""
    began = time.monotonic()
    running = []
    try:
        for group in groups:
            with failures_of(workbook, group.queries[0]):
                running.append((group, group.start(None)))
        with progress("streaming", lambda: sum(group.rows() for group in groups)):
            # Not a wait inside the JVM, which Ctrl-C would break with a traceback.
            while all(each.isActive for _, each in running):
                time.sleep(0.5)
        for group, each in running:
            if not each.isActive:
                with failures_of(workbook, group.queries[0]):
                    each.awaitTermination()
    except KeyboardInterrupt:
        say("stopping; the checkpoint keeps what is done")
    finally:
        for _, each in running:
            each.stop()
    for group in groups:
        group.tell(began)
