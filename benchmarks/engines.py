"""Three ways to run one workbook over the same files: in this process, Spark over an archive, Spark as a stream.

The run in this process calls the stages that Spark's workers run, on one thread and without a JVM. It is the baseline
for Spark.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.arrays import END
from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.files.parquet import ParquetReader
from anabranch.language.parser import parse
from anabranch.planning.layouts import layouts_for
from anabranch.planning.prepared import prepare, with_job
from anabranch.runtime.packets import BucketInput, Packing, pack_files
from anabranch.runtime.spark import make_session
from anabranch.session import Session
from anabranch.transport.job import Job, JobContext
from anabranch.transport.operator import Outcome
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock, Progress
from benchmarks.harness import interleaved

#: How far the probabilities of two ways to the same answer may differ.
TOLERANCE = 1e-9

IN_PROCESS, SPARK = "in process, one thread", "Spark, 2 cores"

_FINGERPRINT = "00" * 32

_MAX_ANSWERS = 1_000_000_000
"""The one bucket of a run in this process has all answers, so the limit for a bucket does not fit."""


# ------------------------------------------------------------ jobs


def make_job(
    workbook: str, queries: str | Sequence[str], relations: Mapping[str, pa.Table] | None = None, live: bool = False
) -> Job:
    """Return the job of one or several queries as the session makes it, without Spark.

    The workbook must state every type.
    """
    catalog = Catalog()
    findings = declare(parse(workbook), catalog)
    if findings:
        raise ValueError(str(findings))
    names = [queries] if isinstance(queries, str) else queries
    chosen = [catalog.query(name) for name in names]
    bounds = [bind(query, catalog) for query in chosen]
    context = JobContext(
        layouts_for(bounds[0].streams), relations or {}, _FINGERPRINT, live, (".",) * len(bounds),
        max_answers=_MAX_ANSWERS,
    )  # fmt: skip
    return with_job([prepare(query, bound) for query, bound in zip(chosen, bounds, strict=True)], context)[1]


def packets_of(job: Job, table: pa.Table, stream: int = 0) -> list[tuple[int, bytes]]:
    """Return the rows of one stream as packets, all for one bucket."""
    return [(stream, packet) for _, packet in route(table, stream, job, 1).packets]


def step_to_end(job: Job, packets: Sequence[tuple[int, bytes]], watermark: int = END - 1) -> Outcome:
    """Return the outcome of a new operator over all packets of an archive."""
    return job.operator().step(packets, Progress.of_all(watermark, len(job.layouts)), ended=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit Arrow to one thread in this process."""
    before = pa.cpu_count(), pa.io_thread_count()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        yield
    finally:
        pa.set_cpu_count(before[0])
        pa.set_io_thread_count(before[1])


# ------------------------------------------------------------ in this process


def read_packets(job: Job, path: Path) -> BucketInput:
    """Run the first stage over one Parquet file and return its packets, all for one bucket."""
    tasks = pa.RecordBatch.from_pylist([{"path": str(path)}])
    bucket_input = BucketInput(len(job.layouts))
    for batch in pack_files(Packing(job, stream=0, n_buckets=1), ParquetReader({}))(iter([tasks])):
        for row in batch.to_pylist():
            bucket_input.add(row)
    return bucket_input


def run_in_process(job: Job, path: Path) -> pa.Table:
    """Return the answers over an archive of one file and one stream."""
    return step_to_end(job, read_packets(job, path).packets).answers


@dataclass(slots=True)
class LocalStream:
    """The answers to micro-batches of one file each; as in Spark, only bytes are kept between micro-batches."""

    job: Job
    state: bytes | None = None
    clock: bytes | None = None
    answers: list[pa.Table] = field(default_factory=list)

    def step(self, path: Path) -> None:
        """Process the next file."""
        bucket_input = read_packets(self.job, path)
        clock = Clock(self.job.layouts, self.clock)
        operator = self.job.operator()
        operator.open(self.state)
        self.answers.append(
            operator.step(bucket_input.packets, clock.advance(bucket_input.newest), ended=False).answers
        )
        self.state, self.clock = operator.save(), clock.save()


# ------------------------------------------------------------ Spark


@contextmanager
def spark_session(cores: int = 2) -> Iterator[SparkSession]:
    """Start a local Spark session on some cores, and stop it at the end."""
    spark = make_session(f"local[{cores}]")
    try:
        yield spark
    finally:
        spark.stop()


def open_session(spark: SparkSession, workbook: str) -> Session:
    """Return a session with the statements of the workbook."""
    session = Session(spark)
    session.execute(workbook)
    return session


def consume(answers: DataFrame) -> None:
    """Compute every answer and discard it."""
    answers.write.format("noop").mode("overwrite").save()


def rows_read(session: Session, query: str) -> int:
    """Return how many rows the last run of a query read."""
    return int(session.counts(query).read)


def seconds_beside_spark(
    in_process: Callable[[], object], session: Session, query: str, rounds: int
) -> dict[str, float]:
    """Return the median seconds of a query in this process (IN_PROCESS) and by Spark (SPARK), after a warm-up."""
    contestants = {IN_PROCESS: in_process, SPARK: lambda: consume(session.run(query))}
    return interleaved(contestants, rounds, warm_up=True)


@dataclass(frozen=True, slots=True)
class Streamed:
    """The seconds of each micro-batch, in order, and the memory of Spark's state stores at the end, in bytes."""

    seconds: list[float]
    state_bytes: int


def run_stream(
    session: Session,
    query: str,
    output: str | None = None,
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
) -> Streamed:
    """Run a query over the existing files, one file per micro-batch, with a temporary checkpoint."""
    checkpoint = tempfile.mkdtemp(prefix="anabranch-checkpoint-")
    try:
        running = session.start(
            query, checkpoint, output=output, foreach_batch=foreach_batch, trigger={"availableNow": True}, max_files=1
        )
        running.awaitTermination()
        progress = [batch for batch in running.recentProgress if batch["numInputRows"]]
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return Streamed([_seconds(batch) for batch in progress], _state_bytes(progress[-1]))


def _seconds(progress: Mapping[str, Any]) -> float:
    return progress["durationMs"]["triggerExecution"] / 1000


def _state_bytes(progress: Mapping[str, Any]) -> int:
    return sum(operator["memoryUsedBytes"] for operator in progress["stateOperators"])


# ------------------------------------------------------------ answers


def largest_difference(actual: pa.Table, expected: pa.Table) -> float:
    """Return the largest difference in probability between two tables of answers with the same (t, groups...).

    Raises
    ------
    AssertionError
        If the other columns differ, or if some probability differs by more than TOLERANCE.
    """
    groups = expected.column_names[:-1]
    order = [(name, "ascending") for name in groups]
    actual, expected = (table.select(expected.column_names).sort_by(order) for table in (actual, expected))
    for name in groups:
        if not actual[name].cast(expected[name].type).equals(expected[name]):
            message = f"{actual.num_rows} answers instead of the expected {expected.num_rows}; they differ in {name}"
            raise AssertionError(message)
    difference = np.abs(actual.column(-1).to_numpy() - expected.column(-1).to_numpy()).max(initial=0.0)
    if not difference <= TOLERANCE:
        message = f"some probabilities differ by {difference}"
        raise AssertionError(message)
    return float(difference)
