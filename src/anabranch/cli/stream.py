"""`anabranch stream`: the queries of a workbook on live inputs, with Spark Structured Streaming."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.catalog import Query
from anabranch.cli import options
from anabranch.cli.common import failures_of, group_title, open_workbook, runnable_queries
from anabranch.cli.messages import say
from anabranch.cli.progress import progress
from anabranch.cli.run import check_format
from anabranch.cli.summary import summary_line
from anabranch.errors import StateError

if TYPE_CHECKING:
    from anabranch.session import Session

Checkpoint = Annotated[
    str, typer.Option("--checkpoint", metavar="DIR", help="Checkpoint folder; a restarted stream resumes from it.")
]
Output = Annotated[str, typer.Option("--output", metavar="DIR", help="Write the answers to DIR/<query>/.")]
Once = Annotated[bool, typer.Option("--once", help="Process the existing input, end it, and stop.")]
MaxFiles = Annotated[
    int | None, typer.Option("--max-files", min=1, help="Maximum number of new files per micro-batch.")
]


def command(
    workbook: options.Workbook,
    checkpoint: Checkpoint,
    output: Output,
    once: Once = False,
    input: options.Inputs = None,
    format: options.Format = "parquet",
    query: options.Queries = None,
    max_files: MaxFiles = None,
    master: options.Master = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
) -> None:
    """Run the queries of a workbook on live inputs; a restarted stream resumes from its checkpoint."""
    format = check_format(format)
    session = open_workbook(workbook, input, master, verbose)
    queries = runnable_queries(session, workbook, query)

    groups = [
        _Group(session, group, checkpoint, output, format, max_files, strict)
        for group in session.groups(queries, live=True)
    ]
    if once:
        for group in groups:
            with failures_of(workbook, group.queries[0]):
                _once(group)
    else:
        _forever(workbook, groups)


@dataclass(frozen=True)
class _Group:
    """A group of queries that share one pass over their streams, or a single query."""

    session: Session
    queries: list[Query]
    checkpoints: str
    output: str
    file_format: str
    max_files: int | None
    strict: bool

    @property
    def name(self) -> str:
        """The name of the group in the summary."""
        return group_title(self.names)

    @property
    def names(self) -> list[str]:
        """The names of the queries."""
        return [query.name for query in self.queries]

    @cached_property
    def checkpoint(self) -> str:
        """The checkpoint folder of the group."""
        from anabranch.runtime.checkpoint import folder_of
        from anabranch.runtime.sources.files import local_folder

        return folder_of(local_folder(self.checkpoints), self.names)

    def start(self, trigger: dict | None):
        """Start the stream; says which queries are added and removed."""
        from anabranch.runtime.checkpoint import Checkpoint

        changes = Checkpoint(self.checkpoint).changes(self.names)
        self._refuse_to_leave_out(changes.removed)
        folders = [os.path.join(self.output, name) for name in self.names]
        stream = self.session.start_together(
            self.names, self.checkpoint, folders, self.file_format, trigger, self.max_files, self.strict
        )
        for name in changes.added:
            say(f"added {name}: it sees the events that are newer than all rows read before")
        for name in changes.removed:
            say(f"removed {name}: its answers so far stay in its folder")
        return stream

    def _refuse_to_leave_out(self, removed: Sequence[str]) -> None:
        """A query is removed by removing it from the workbook: --query must not lose its state."""
        for name in removed:
            if self.session.catalog.query(name) is not None:
                raise StateError(
                    f"{name} is in the checkpoint {self.checkpoint} and in the workbook, but not started; start it "
                    "too, or remove it from the workbook to end it"
                )

    def rows(self) -> int:
        """How many rows have been read."""
        name = self.queries[0].name
        return self.session.counts(name).read if self.session.has_run(name) else 0

    def print_summary(self, began: float) -> None:
        """Print the counts of the rows."""
        say(summary_line(self.name, self.session.counts(self.queries[0].name), time.monotonic() - began))


def _once(group: _Group) -> None:
    """Process the existing input; then end it, so that all instants are answered."""
    began = time.monotonic()
    available = {"availableNow": True}
    with progress(group.name, group.rows):
        group.start(available).awaitTermination()
        group.session.end_input(group.checkpoint)
        group.start(available).awaitTermination()
    group.print_summary(began)


def _forever(workbook: str, groups: list[_Group]) -> None:
    """Run until interrupted; one failed stream stops the command."""
    began = time.monotonic()
    running = []
    try:
        for group in groups:
            with failures_of(workbook, group.queries[0]):
                running.append((group, group.start(None)))
        with progress("streaming", lambda: sum(group.rows() for group in groups)):
            # Not awaitTermination: Ctrl-C would interrupt the JVM call with a traceback.
            while all(stream.isActive for _, stream in running):
                time.sleep(0.5)
        for group, stream in running:
            if not stream.isActive:
                with failures_of(workbook, group.queries[0]):
                    stream.awaitTermination()
    except KeyboardInterrupt:
        say("stopping; a restarted stream resumes from the checkpoint")
    finally:
        for _, stream in running:
            stream.stop()
    for group in groups:
        group.print_summary(began)
