"""Three ways to run one workbook over the same files: in this process, by Spark over an archive, by Spark as a stream.

The run in this process calls the very stages that Spark's workers run, on one thread and without a JVM: it is the
bound that Spark's figures are held against.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.columns.times import END
from anabranch.families import job_for
from anabranch.language.parser import parse
from anabranch.runtime.packets import Mail, Packing, pack_files
from anabranch.runtime.sources.schema import layouts_for
from anabranch.runtime.spark import make_session
from anabranch.session import Session
from anabranch.transport.job import Job, JobContext
from anabranch.transport.watermark import Clock

#: How far two ways to the same answer may be apart.
TOLERANCE = 1e-9

_FINGERPRINT = "00" * 32


def make_job(workbook: str, query: str, relations: Mapping[str, pa.Table], live: bool = False) -> Job:
    """The job of a query as the session makes it, without Spark; the workbook must state every type."""
    catalog = Catalog()
    findings = declare(parse(workbook), catalog)
    if findings:
        raise ValueError(findings)
    bound = bind(catalog.query(query), catalog)
    return job_for([bound], JobContext(layouts_for(bound.streams), relations, _FINGERPRINT, live, (".",)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let Arrow use one thread of this process."""
    before = pa.cpu_count(), pa.io_thread_count()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        yield
    finally:
        pa.set_cpu_count(before[0])
        pa.set_io_thread_count(before[1])


# ------------------------------------------------------------ in this process


def read_mail(job: Job, path: Path) -> Mail:
    """The first stage over one Parquet file, and everything it sends, all to one bucket."""
    tasks = pa.RecordBatch.from_pylist([{"path": str(path)}])
    mail = Mail(len(job.layouts))
    for batch in pack_files(Packing(job, stream=0, n_buckets=1))(iter([tasks])):
        for row in batch.to_pylist():
            mail.add(row)
    return mail


def run_in_process(job: Job, path: Path) -> pa.Table:
    """The answers over an archive of one file and one stream."""
    return job.operator().step(read_mail(job, path).packets, END, ended=True).answers


@dataclass(slots=True)
class LocalStream:
    """The answers to micro-batches of one file each; as in Spark, only bytes are kept from one to the next."""

    job: Job
    state: bytes | None = None
    clock: bytes | None = None
    answers: list[pa.Table] = field(default_factory=list)

    def step(self, path: Path) -> None:
        """Take the next file."""
        mail = read_mail(self.job, path)
        clock = Clock(self.job.layouts, self.clock)
        operator = self.job.operator()
        operator.open(self.state)
        self.answers.append(operator.step(mail.packets, clock.advance(mail.newest), ended=False).answers)
        self.state, self.clock = operator.save(), clock.save()


# ------------------------------------------------------------ Spark


@contextmanager
def spark_session(cores: int = 2) -> Iterator[SparkSession]:
    """A session of our own on some cores of this machine."""
    spark = make_session(f"local[{cores}]")
    try:
        yield spark
    finally:
        spark.stop()


def open_session(spark: SparkSession, workbook: str) -> Session:
    """A session that knows the workbook."""
    session = Session(spark)
    session.execute(workbook)
    return session


def consume(answers: DataFrame) -> None:
    """Work out every answer, and throw it away."""
    answers.write.format("noop").mode("overwrite").save()


@dataclass(frozen=True, slots=True)
class Streamed:
    """The seconds of each micro-batch, in order, and the bytes of memory that Spark's state stores took at the end."""

    seconds: list[float]
    state_bytes: int


def run_stream(
    session: Session,
    query: str,
    output: str | None = None,
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
) -> Streamed:
    """Run a query over the files that are there, a file a micro-batch, on a checkpoint of its own."""
    checkpoint = tempfile.mkdtemp(prefix="anabranch-checkpoint-")
    try:
        running = session.start(
            query, checkpoint, output=output, foreach_batch=foreach_batch, trigger={"availableNow": True}, max_files=1
        )
        running.awaitTermination()
        progress = [each for each in running.recentProgress if each["numInputRows"]]
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return Streamed([_seconds(each) for each in progress], _state_bytes(progress[-1]))


def _seconds(progress: Mapping[str, Any]) -> float:
    return progress["durationMs"]["triggerExecution"] / 1000


def _state_bytes(progress: Mapping[str, Any]) -> int:
    return sum(operator["memoryUsedBytes"] for operator in progress["stateOperators"])


# ------------------------------------------------------------ answers


def largest_difference(found: pa.Table, expected: pa.Table) -> float:
    """The largest difference in probability between two tables of answers that must hold the same (t, groups...).

    Raises
    ------
    AssertionError
        If they do not, or if some probability differs by more than TOLERANCE.
    """
    groups = expected.column_names[:-1]
    order = [(name, "ascending") for name in groups]
    found, expected = (table.select(expected.column_names).sort_by(order) for table in (found, expected))
    for name in groups:
        if not found[name].cast(expected[name].type).equals(expected[name]):
            message = f"{found.num_rows} answers were found and {expected.num_rows} expected, which differ in {name}"
            raise AssertionError(message)
    apart = np.abs(found.column(-1).to_numpy() - expected.column(-1).to_numpy()).max(initial=0.0)
    if not apart <= TOLERANCE:
        message = f"some probabilities differ by {apart}"
        raise AssertionError(message)
    return float(apart)
