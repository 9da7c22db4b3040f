"""`anabranch stream`: the queries of a workbook on live inputs, with Spark Structured Streaming."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.catalog import Query, title_of
from anabranch.cli import options
from anabranch.cli.common import (
    excessive_of,
    failures_of,
    open_workbook,
    run_without_excessive,
    runnable_queries,
    spark_settings,
)
from anabranch.cli.messages import FAILED, LogFormat, RunFailed, say, set_format
from anabranch.cli.metrics import Measured, serve_metrics
from anabranch.cli.progress import print_new, progress
from anabranch.cli.run import check_format
from anabranch.cli.summary import summary_line
from anabranch.cli.supervision import RunningStream, Supervisor, Watched
from anabranch.errors import InputWarning, StateError

if TYPE_CHECKING:
    from anabranch.runtime.file_system import Folder
    from anabranch.runtime.stream_log import Entry
    from anabranch.session import Session

Checkpoint = Annotated[
    str, typer.Option("--checkpoint", metavar="DIR", help="Checkpoint folder; a restarted stream resumes from it.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="DIR", help="Write the answers of queries that declare no target (TO) to DIR/<query>/."
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Process the existing input, end it, and stop.")]
MaxFiles = Annotated[
    int | None, typer.Option("--max-files", min=1, help="Maximum number of new files per micro-batch.")
]


Buckets = Annotated[
    int | None,
    typer.Option(
        "--buckets", metavar="N", min=1, max=4096,
        help="Buckets of a new checkpoint: no more cores than this can be used. Default: 16.",
    ),
]  # fmt: skip
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", metavar="PORT", min=0, max=65535,
        help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics; 0 takes a free port.",
    ),
]  # fmt: skip
Logs = Annotated[
    LogFormat,
    typer.Option("--log-format", help="How messages are printed; json also prints a line for each micro-batch."),
]


class Restart(Enum):
    """When a query that has failed is restarted."""

    NEVER = "never"
    ON_FAILURE = "on-failure"


RestartOption = Annotated[
    Restart, typer.Option("--restart", help="Restart a query that has failed, after a pause. The others go on anyway.")
]


def command(
    workbook: options.Workbook,
    checkpoint: Checkpoint,
    output: Output = None,
    once: Once = False,
    input: options.Inputs = None,
    format: options.Format = "parquet",
    query: options.Queries = None,
    max_files: MaxFiles = None,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    archive: options.Archive = None,
    strict: options.Strict = False,
    restart: RestartOption = Restart.NEVER,
    max_answers: options.MaxAnswers = None,
    buckets: Buckets = None,
    metrics_port: MetricsPort = None,
    log_format: Logs = LogFormat.TEXT,
    verbose: options.Verbose = False,
) -> None:
    """Run the queries of a workbook on live inputs; a restarted stream resumes from its checkpoint."""
    format = check_format(format)
    set_format(log_format)
    session = open_workbook(
        workbook, input, master, verbose, max_answers=max_answers, settings=spark_settings(conf, packages, archive)
    )
    queries = runnable_queries(session, workbook, query)
    without_target = [query.name for query in queries if query.declaration.target is None]
    if output is None and without_target:
        raise typer.BadParameter(f"{without_target[0]} needs --output DIR, or a target (TO) in the workbook")

    groups = [
        _Group(session, group, checkpoint, output, format, max_files, strict, log_format, buckets)
        for group in session.groups(queries, live=True)
    ]
    if once:
        errors = [error for group in groups for error in run_without_excessive(workbook, group.queries, group.once)]
        if errors:
            raise typer.Exit(FAILED)
    else:
        _forever(workbook, groups, restart is Restart.ON_FAILURE, metrics_port, log_format)


@dataclass
class _Group:
    """A group of queries that share one pass over their streams, or a single query.

    `left_out` are queries that had too many answers: the others go on without them.
    """

    session: Session
    queries: list[Query]
    checkpoints: str
    output: str | None
    file_format: str
    max_files: int | None = None
    strict: bool = False
    log_format: LogFormat = LogFormat.TEXT
    buckets: int | None = None
    left_out: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """The name of the group in the summary."""
        return title_of(self.names)

    @property
    def names(self) -> list[str]:
        """The names of the queries."""
        return [query.name for query in self.queries]

    @cached_property
    def checkpoint(self) -> Folder:
        """The checkpoint folder of the group."""
        from anabranch.runtime.checkpoint import folder_of
        from anabranch.runtime.file_system import open_folder

        return folder_of(open_folder(self.checkpoints, lambda: self.session.spark), self.names)

    def start(self, trigger: dict | None):
        """Start the stream; says which queries are added and removed."""
        from anabranch.runtime.checkpoint import Checkpoint

        changes = Checkpoint(self.checkpoint).changes(self.names)
        self._refuse_to_leave_out(changes.removed)
        folders = [
            None if query.declaration.target else os.path.join(str(self.output), query.name) for query in self.queries
        ]
        with warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always", InputWarning)
            stream = self.session.start_together(
                self.names, self.checkpoint.address, folders, self.file_format, trigger, self.max_files, self.strict,
                buckets=self.buckets,
            )  # fmt: skip
        for recorded in messages:
            say(f"{self.name}: {recorded.message}", self.name)
        for name in changes.added:
            say(f"added {name}: it sees the events that are newer than all rows read before", self.name)
        for name in changes.removed:
            say(f"removed {name}: its answers so far stay in its folder", self.name)
        return stream

    def _refuse_to_leave_out(self, removed: Sequence[str]) -> None:
        """A query is removed by removing it from the workbook: --query must not lose its state."""
        for name in removed:
            if name not in self.left_out and self.session.catalog.query(name) is not None:
                raise StateError(
                    f"{name} is in the checkpoint {self.checkpoint} and in the workbook, but not started; start it "
                    "too, or remove it from the workbook to end it"
                )

    def rows(self) -> int:
        """How many rows have been read."""
        return self.session.counts(self.queries[0].name).read if self.has_run else 0

    def last_entry(self) -> Entry | None:
        """The last entry of its log since it was started."""
        from anabranch.runtime.stream_log import last_entry

        return last_entry(self.checkpoint) if self.has_run else None

    @property
    def has_run(self) -> bool:
        """Whether the stream was started."""
        return self.session.has_run(self.queries[0].name)

    def watched(self, workbook: str) -> Watched:
        """The stream, for a supervisor."""

        def start() -> RunningStream:
            with failures_of(workbook, *self.queries):
                return self.start(None)

        def await_end(stream: RunningStream) -> None:
            with failures_of(workbook, *self.queries):
                stream.awaitTermination()

        def leave_out(error: RunFailed) -> bool:
            excessive = excessive_of(error.reason, self.queries)
            if excessive is None or len(self.queries) == 1:
                return False
            self.go_on_with([query for query in self.queries if query is not excessive])
            return True

        return Watched(self.name, start, await_end, leave_out)

    def go_on_with(self, queries: list[Query]) -> None:
        """Go on with these queries only; the checkpoint stays that of the whole group."""
        self.left_out |= {query.name.lower() for query in self.queries if query not in queries}
        self.queries = queries

    def once(self, queries: list[Query]) -> None:
        """Process the existing input of these queries; then end it, so that all instants are answered."""
        self.go_on_with(list(queries))
        began = time.monotonic()
        available = {"availableNow": True}
        with _progress(self.name, [self], self.log_format):
            self.start(available).awaitTermination()
            self.session.end_input(self.checkpoint.address)
            self.start(available).awaitTermination()
        self.print_summary(began)

    def print_summary(self, began: float) -> None:
        """Print the counts of the rows; before, those of the queries whose answers are read."""
        from anabranch.runtime.stream_log import folders_with_log, last_entry

        seconds = time.monotonic() - began
        for entry in map(last_entry, folders_with_log(self.checkpoint)[:-1]):
            if entry is not None:
                say(summary_line(f"{entry.stream} for {self.name}", entry.total, seconds), self.name)
        say(summary_line(self.name, self.session.counts(self.queries[0].name), seconds), self.name)


@contextmanager
def _progress(title: str, groups: Sequence[_Group], log_format: LogFormat) -> Iterator[None]:
    """Show what streams do while they run: as JSON, a line for each micro-batch."""
    if log_format is LogFormat.TEXT:
        with progress(title, lambda: sum(group.rows() for group in groups)):
            yield
        return
    from anabranch.runtime.stream_log import NewEntries

    logs = [NewEntries(group.checkpoint) for group in groups]
    with print_new(lambda: [entry.to_json() for log in logs for entry in log.read()]):
        yield


def _forever(
    workbook: str, groups: list[_Group], restart: bool, metrics_port: int | None, log_format: LogFormat
) -> None:
    """Run until interrupted, or until every stream has failed."""
    began = time.monotonic()
    watched = [group.watched(workbook) for group in groups]
    supervisor = Supervisor(watched, restart)
    measured = [Measured(group.name, group.last_entry, stream) for group, stream in zip(groups, watched, strict=True)]
    try:
        with serve_metrics(metrics_port, measured), _progress("streaming", groups, log_format):
            supervisor.start()
            # Not awaitTermination: Ctrl-C would interrupt the JVM call with a traceback.
            while supervisor.poll():
                time.sleep(0.5)
    except KeyboardInterrupt:
        say("stopping; a restarted stream resumes from the checkpoint")
    finally:
        supervisor.stop()
    for group in groups:
        if group.has_run:
            group.print_summary(began)
    if supervisor.failed:
        raise typer.Exit(FAILED)
