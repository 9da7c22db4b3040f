"""The same job on a live stream: once a micro-batch each bucket's operator is opened, stepped, and saved again.

Spark keeps the bytes in its state store and replays a micro-batch that was not committed; with a sink that writes a
batch over itself, every answer is there exactly once. The end of the input is a row of its own, from a *control* folder
beside the checkpoint: it closes every instant seen so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain, count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StreamingQuery

from anabranch.runtime.batch import Feed
from anabranch.runtime.packets import PACKET_SCHEMA, BucketInput, end_packets
from anabranch.runtime.processor import BucketProcessor, Saved
from anabranch.runtime.spark import STREAM_SETTINGS, with_settings
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.job import Job
from anabranch.transport.operator import REPORTED, ROW_COUNTS, Counts
from anabranch.transport.state import read_tables, write_tables
from anabranch.transport.watermark import Clock

_OUTCOME = "answers binary, rejected binary, " + ", ".join(f"{name} long" for name in REPORTED)

#: Takes the answers and the quarantined rows of one micro-batch, and says how many answers it has delivered; called
#: again with the same number after a failure.
Sink = Callable[[SparkSession, pa.Table, pa.Table, int], int]

#: Makes the sink of a stream: given the name of its checkpoint, its job, and how many queries it answers.
Output = Callable[[str, Any, int], Sink]


@dataclass(slots=True)
class StreamRun:
    """A running query, and what became of its rows since it was started."""

    query: StreamingQuery
    counts: Counts = field(default_factory=Counts)


def start(
    spark: SparkSession,
    job: Job,
    feeds: Sequence[Feed],
    sink: Sink,
    *,
    name: str,
    checkpoint: str,
    control: str,
    n_buckets: int,
    n_partitions: int,
    trigger: dict[str, Any],
    strict: bool = False,
) -> StreamRun:
    """Start a job on streaming feeds.

    Parameters
    ----------
    checkpoint, control : folders; the control folder exists, and a file in it ends the input
    n_buckets, n_partitions : fixed for the life of a checkpoint; Spark keeps the number of partitions there
    trigger : as for Spark's `DataStreamWriter.trigger`
    strict : whether a row that must be set aside fails the run
    """
    ends = spark.readStream.format("text").load(control)
    packets = [feed.packets() for feed in feeds]
    packets.append(ends.mapInArrow(partial(end_packets, len(job.layouts), n_buckets), PACKET_SCHEMA))
    outcomes = (
        reduce(DataFrame.unionAll, packets)
        .groupBy("bucket")
        .transformWithState(BucketProcessor(partial(_step, job, strict)), _OUTCOME, "Append", "None")
    )
    run = StreamRun(query=None)  # type: ignore[arg-type]  # it is started with a callback that needs the run
    writer = (
        outcomes.writeStream.queryName(_free_name(spark, name))
        .foreachBatch(partial(_deliver, job, sink, run))
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .trigger(**trigger)
    )
    partitions = {"spark.sql.shuffle.partitions": str(min(n_buckets, n_partitions))}
    with with_settings(spark, STREAM_SETTINGS | partitions):
        run.query = writer.start()
    return run


def _step(job: Job, strict: bool, saved: Saved | None, rows: Iterable[Row]) -> tuple[Saved, Row]:
    """One micro-batch of one bucket: its operator is opened, stepped and saved again."""
    mail = BucketInput(len(job.layouts))
    for row in rows:
        mail.add(row)
    clock = Clock(job.layouts, saved[0] if saved else None)
    operator = job.operator()
    if saved:
        operator.open(saved[1])
    outcome = operator.step(mail.packets, clock.advance(mail.newest, mail.ended), mail.ended)
    counts = mail.counts
    counts += outcome.counts
    rejected = mail.set_aside(outcome.rejected, strict)
    told = Row(
        answers=write_tables({"answers": outcome.answers}) if outcome.answers.num_rows else None,
        rejected=write_tables({"rejected": rejected}) if rejected.num_rows else None,
        **{name: getattr(counts, name) for name in REPORTED},
    )
    return (clock.save(), operator.save()), told


def _free_name(spark: SparkSession, name: str) -> str:
    """The name, with a number where a stream of another workbook has it already: Spark's names are unique."""
    taken = {query.name for query in spark.streams.active}
    choices = chain([name], (f"{name} {number}" for number in count(2)))
    return next(each for each in choices if each not in taken)


def _deliver(job: Job, sink: Sink, run: StreamRun, outcomes: DataFrame, batch: int) -> None:
    """Gather the blobs of one micro-batch, finish the answers as a batch run does, and hand them to the sink.

    Only blobs are collected, some tens a batch, so the stateful plan is evaluated exactly once.
    """
    gathered = outcomes.toArrow()
    for name in (*ROW_COUNTS, "reported"):
        setattr(run.counts, name, getattr(run.counts, name) + sum(gathered[name].to_pylist()))
    run.counts.kept = max(run.counts.kept, sum(gathered["kept"].to_pylist()))
    spark = outcomes.sparkSession
    answers = _open(gathered["answers"], "answers", job.answer_schema)
    rejected = _open(gathered["rejected"], "rejected", QUARANTINE)
    if answers.num_rows or rejected.num_rows:
        finished = job.finish_table(answers)
        if finished is None:
            finished = job.finish(to_frame(spark, answers)).toArrow()
        run.counts.answers += sink(spark, finished, rejected, batch)


def _open(blobs: pa.ChunkedArray, name: str, schema: pa.Schema) -> pa.Table:
    tables = [read_tables(blob)[name].replace_schema_metadata(None) for blob in blobs.to_pylist() if blob is not None]
    return pa.concat_tables([schema.empty_table(), *tables])


def to_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table as a frame.

    In one chunk, because Spark stops at an empty one, and loses what is behind it; but not in none.
    """
    whole = table.combine_chunks() if table.num_rows else table.schema.empty_table()
    return spark.createDataFrame(whole, schema=from_arrow_schema(table.schema))
