"""Streams that read the answers of others (FROM QUERY): all of them run in one application, and end together.

The checkpoints of the queries that are read lie in that of the stream that is started, in `read`. Each of them writes
its answers for every stream that reads them (`relay.py`), to the folder `answers` of the reader's checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StreamingQuery

from anabranch.arrays import BEGINNING
from anabranch.catalog import Query, Stream
from anabranch.planning.planner import Planner
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.execution import Resolved
from anabranch.runtime.file_system import Folder
from anabranch.runtime.relay import Relay
from anabranch.runtime.sinks.target import AnswerWriter
from anabranch.runtime.sources.answers import relay_rule
from anabranch.runtime.sources.bindings import Bindings
from anabranch.transport.finishing import Finishing, finish_table, with_calibration
from anabranch.transport.job import Job, SingleJob
from anabranch.transport.per import Moment, advance
from anabranch.transport.relay import plain_columns

#: How often the streams of a chain are looked at while one waits for their end, in seconds.
_POLL = 0.2


class Chain:
    """The queries whose answers some queries read, also through others; each after those that it reads itself.

    Parameters
    ----------
    readers : the queries that are started
    checkpoint : of these
    """

    def __init__(self, planner: Planner, readers: Sequence[Query], checkpoint: Checkpoint) -> None:
        self._planner = planner
        self.queries = planner.chain(readers)
        # Before any stream is started.
        for reader in readers if self.queries else ():
            planner.prepare(reader).require_live()
        self._checkpoints = [(reader, checkpoint) for reader in readers]
        for query in self.queries:
            own = Checkpoint(checkpoint.read.folder(query.name))
            self._checkpoints.append((query, own))
            if any(checkpoint.control.names()) and not any(own.control.names()):
                own.end_input()  # the input was ended before the first start

    def checkpoint(self, query: Query) -> Checkpoint:
        """The checkpoint of a query that is read."""
        return next(checkpoint for known, checkpoint in self._checkpoints if known is query)

    def relays(self, resolved: Resolved, bindings: Bindings) -> list[Relay]:
        """What passes the answers of a query on to the streams that read them; their folders exist then."""
        (prepared,) = resolved.prepared
        job = cast(SingleJob, resolved.job)
        schema = from_arrow_schema(plain_columns(_no_rows(job)).schema)
        relays = []
        for stream, folder in self._readers(prepared.query):
            rule = relay_rule(bindings.answers_of(stream, schema), prepared.bound, job.frontier())
            relays.append(Relay(folder, rule, job.fingerprint))
            relays[-1].write_schema(schema)
        return relays

    def _readers(self, query: Query) -> Iterator[tuple[Stream, Folder]]:
        """The streams of the chain that read a query, and the folders of their answers."""
        found: dict[str, tuple[Stream, Folder]] = {}  # queries of a group read the same streams
        for reader, checkpoint in self._checkpoints:
            for name, stream, read in self._planner.answers_read(reader):
                if read.name == query.name:
                    folder = checkpoint.answers(name)
                    found[folder.address] = stream, folder
        yield from found.values()


def _no_rows(job: Job) -> pa.Table:
    """The result of the only query of a job, without rows."""
    rules: Finishing = job.finishing()
    answers = finish_table(rules.of_answers(), job.answer_schema.empty_table())
    if rules.per is not None:
        answers = advance(rules.per, None, answers, Moment(BEGINNING, ended=False)).rows
    return with_calibration(rules, answers)


class AnswersElsewhere:
    """The target of a query whose answers are only read by others: nothing is written, the answers are counted."""

    takes_frames: ClassVar[bool] = False

    def open(self, owner: str) -> AnswerWriter:
        """A writer that counts."""
        return _count

    def write_whole(self, answers: DataFrame) -> None:
        """A batch run has no such target."""


def _count(spark: SparkSession, answers: pa.Table, batch: int) -> int:
    return answers.num_rows


@contextmanager
def running(chain: Chain, start: Callable[[Query], StreamingQuery]) -> Iterator[list[StreamingQuery]]:
    """Start the queries of a chain; they are stopped if the stream that reads them cannot be started."""
    started: list[StreamingQuery] = []
    try:
        for query in chain.queries:
            started.append(start(query))
        yield started
    except BaseException:
        for stream in reversed(started):
            stream.stop()
        raise


def chained(stream: StreamingQuery, read: Sequence[StreamingQuery]) -> StreamingQuery:
    """A stream with those whose answers it reads; itself if it reads none."""
    return cast(StreamingQuery, ChainedStream(stream, read)) if read else stream


class ChainedStream:
    """A stream and those whose answers it reads. It can be used like Spark's StreamingQuery, that of the reader.

    If one of them fails or is stopped, all are stopped: the reader would wait for answers that never come.
    """

    def __init__(self, stream: StreamingQuery, read: Sequence[StreamingQuery]) -> None:
        self._stream, self._all = stream, (*read, stream)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    @property
    def isActive(self) -> bool:  # the name is Spark's
        """Whether all streams run."""
        if all(stream.isActive for stream in self._all):
            return True
        self.stop()
        return False

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # the name is Spark's
        """Wait for the end of the streams; raises the error of the one that has failed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.isActive:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_POLL)
        for stream in self._all:
            stream.awaitTermination()
        return None if timeout is None else True

    def exception(self) -> object:
        """The error of the stream that has failed; None if none has."""
        errors = (stream.exception() for stream in self._all)
        return next((error for error in errors if error is not None), None)

    def processAllAvailable(self) -> None:  # the name is Spark's
        """Wait until all rows that have arrived are processed, from the first query of the chain to the last."""
        for stream in self._all:
            stream.processAllAvailable()

    def stop(self) -> None:
        """Stop all streams."""
        for stream in reversed(self._all):
            stream.stop()
