"""Streaming runs: once per micro-batch the operator of each bucket is opened, stepped, and saved.

Spark keeps the bytes in its state store and replays a micro-batch that was not committed. With a sink that overwrites
the output of a replayed batch, every answer is delivered exactly once. The end of the input is a file in a *control*
folder of the checkpoint: it completes every instant seen so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, count
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from anabranch.arrays import BEGINNING
from anabranch.columns.times import TimeKind, decode_times
from anabranch.runtime.batch import Feed
from anabranch.runtime.file_system import Folder
from anabranch.runtime.finishing import finish_frame, to_frame
from anabranch.runtime.large_answers import LargeAnswers, LeftAnswers
from anabranch.runtime.open_rows import OpenRows
from anabranch.runtime.packets import PACKET_SCHEMA, BucketInput, end_packets
from anabranch.runtime.processor import BucketProcessor, Saved
from anabranch.runtime.relay import Relay
from anabranch.runtime.spark import STREAM_SETTINGS, with_settings
from anabranch.runtime.stream_log import StreamLog, last_entry
from anabranch.transport.ahead import quarantine_ahead
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.finishing import QUERY, finish_table
from anabranch.transport.job import Job
from anabranch.transport.operator import COUNTED, Counts
from anabranch.transport.pages import Paged, PageStore
from anabranch.transport.per import Moment
from anabranch.transport.state import read_tables, write_tables
from anabranch.transport.watermark import Clock

_OUTCOME = "answers binary, file string, rejected binary, watermark long, ended boolean, instants binary, " + ", ".join(
    f"{name} long" for name in (*COUNTED, "state_bytes")
)

#: The answers of a micro-batch: a DataFrame if they are many (`large_answers.py`).
Answers: TypeAlias = "pa.Table | DataFrame"

#: Takes the answers of a micro-batch by number of the query, the quarantined rows and the number of the batch; returns
#: how many answers it has delivered. After a failure it is called again with the same number.
Sink = Callable[[SparkSession, Mapping[int, Answers], pa.Table, int], int]

#: Makes the sink of a stream, given the id of its checkpoint.
Output = Callable[[str], Sink]


@dataclass(frozen=True, slots=True)
class StreamRun:
    """A running stream, and what happened to its rows."""

    query: StreamingQuery
    log: StreamLog

    @property
    def counts(self) -> Counts:
        """The counts up to the last complete micro-batch."""
        entry = last_entry(self.log.folder)
        return entry.total if entry else Counts()


def start(
    spark: SparkSession,
    job: Job,
    feeds: Sequence[Feed],
    sink: Sink,
    log: StreamLog,
    *,
    name: str,
    checkpoint: str,
    control: str,
    rows: Folder,
    large: LargeAnswers,
    n_buckets: int,
    n_partitions: int,
    bounded: frozenset[int],
    relayed: frozenset[int],
    relays: Sequence[Relay],
    polling_delay: int,
    trigger: dict[str, Any],
    strict: bool = False,
) -> StreamRun:
    """Start a job on streaming feeds.

    Parameters
    ----------
    checkpoint, control, rows : folders; the control folder exists, and a file in it ends the input; `rows` has the rows
        of PER that are not complete
    large : where answers are kept that are too many for the driver
    bounded : the numbers of the streams all rows of which are in one file
    relayed : the numbers of the streams that are answers of another stream
    relays : pass the answers on to other streams; the job has one query then
    n_buckets, n_partitions : fixed for the lifetime of a checkpoint; Spark stores the number of partitions there
    polling_delay : the milliseconds until a stream without new rows looks for new ones
    trigger : as for Spark's `DataStreamWriter.trigger`
    strict : whether a row that would be quarantined fails the run
    """
    large.clear()  # of a process that was killed
    ends = spark.readStream.format("text").load(control)
    packets = [feed.packets() for feed in feeds]
    # The end of a relayed stream is in its files, behind its answers.
    ending = [number for number in range(len(job.layouts)) if number not in relayed]
    packets.append(ends.mapInArrow(partial(end_packets, ending, n_buckets), PACKET_SCHEMA))
    clocks = partial(Clock, job.layouts, bounded=bounded, relayed=relayed)
    outcomes = (
        reduce(DataFrame.unionAll, packets)
        .groupBy("bucket")
        .transformWithState(BucketProcessor(partial(_step, job, clocks, strict, large)), _OUTCOME, "Append", "None")
        .observe("anabranch", *_metrics(job))
    )
    writer = (
        outcomes.writeStream.queryName(_free_name(spark, name))
        .foreachBatch(partial(_deliver, job, sink, log, OpenRows(rows, job), large, relays))
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .trigger(**trigger)
    )
    own = {
        "spark.sql.shuffle.partitions": str(min(n_buckets, n_partitions)),
        "spark.sql.streaming.pollingDelay": f"{polling_delay}ms",
    }
    with with_settings(spark, STREAM_SETTINGS | own):
        return StreamRun(writer.start(), log)


def _metrics(job: Job) -> list[Column]:
    """What Spark's own progress of the query shows (`observedMetrics`): all buckets of a micro-batch together."""
    counts = [F.sum(name).alias(name) for name in (*COUNTED, "state_bytes")]
    watermark = F.max(F.when(F.col("watermark") != BEGINNING, F.col("watermark")))
    if job.layouts[0].time_kind is TimeKind.TIMESTAMP:
        return [*counts, F.timestamp_micros(watermark).alias("watermark")]
    # The code of a DOUBLE time is not a number that people know.
    return [*counts, watermark.alias("watermark")] if job.layouts[0].time_kind is TimeKind.INTEGER else counts


def _step(
    job: Job, clocks: Callable[..., Clock], strict: bool, large: LargeAnswers, saved: Saved | None, pages: PageStore,
    rows: Iterable[Row],
) -> tuple[Saved, Row]:  # fmt: skip
    """One micro-batch of one bucket: its operator is opened, stepped and saved."""
    received = BucketInput(len(job.layouts))
    for row in rows:
        received.add(row)
    clock = clocks(saved=saved[0] if saved else None)
    operator = job.operator()
    if saved:
        operator.open(saved[1])
    if isinstance(operator, Paged):
        operator.use_pages(pages)
    ahead = received.take_ahead(clock.limits(received.runs))
    ended = clock.have_ended(received.ended)
    watermark = clock.advance(received.newest, ended)
    outcome = operator.step(received.packets, watermark, ended)
    rows_ahead = quarantine_ahead(job, ahead.packets, ahead.newest)
    counts = received.counts
    counts += outcome.counts
    counts.quarantined += rows_ahead.num_rows
    rejected = received.quarantined(pa.concat_tables([outcome.rejected, rows_ahead]), strict)
    after = clock.save(), operator.save()
    blob, file = large.kept(outcome.answers)
    outcome_row = Row(
        answers=blob,
        file=file,
        rejected=write_tables({"rejected": rejected}) if rejected.num_rows else None,
        watermark=watermark,
        ended=ended,
        instants=received.instants or None,
        **{name: getattr(counts, name) for name in COUNTED},
        state_bytes=sum(map(len, after)),
    )
    return after, outcome_row


def _free_name(spark: SparkSession, name: str) -> str:
    """The name, with a number appended if a stream of another workbook has it: Spark's names are unique."""
    taken = {query.name for query in spark.streams.active}
    candidates = chain([name], (f"{name} {number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _deliver(
    job: Job, sink: Sink, log: StreamLog, open_rows: OpenRows, large: LargeAnswers, relays: Sequence[Relay],
    outcomes: DataFrame, batch: int,
) -> None:  # fmt: skip
    """Collect the blobs of one micro-batch, pass the answers to the sink, and log what happened.

    Only blobs are collected, one per bucket, so the stateful plan is evaluated exactly once.
    """
    began = time.monotonic()
    try:
        collected, left = large.collect(outcomes)
        if left is not None and not open_rows.is_used and not relays:
            delivered = _delivered_by_executors(job, sink, collected, left, outcomes.sparkSession, batch)
        else:
            delivered = _delivered(job, sink, open_rows, relays, collected, left, outcomes.sparkSession, batch)
    finally:
        large.clear(outcomes)
    log.add(batch, collected, delivered, time.monotonic() - began, _shown_watermark(collected["watermark"], job))


def _delivered(
    job: Job, sink: Sink, open_rows: OpenRows, relays: Sequence[Relay], collected: pa.Table, left: LeftAnswers | None,
    spark: SparkSession, batch: int,
) -> int:  # fmt: skip
    """Finish the answers as a batch run does, and pass them to the sink and on; returns how many there are.

    Rows of PER, and answers that are passed on, are few and made in the driver, also if buckets have left answers.
    """
    answers = _open(collected["answers"], "answers", job.answer_schema)
    if left is not None:
        answers = pa.concat_tables([answers, *left.tables()])
    rejected = _open(collected["rejected"], "rejected", QUARANTINE)
    # A group may have hundreds of queries, most of them without answers in this micro-batch.
    queries = {0} if job.n_queries == 1 else set(pc.unique(answers[QUERY]).to_pylist())
    alone = queries - open_rows.rules.keys()
    finished: dict[int, Answers] = {query: finish_table(job.finishing(query), answers) for query in alone}
    now = _moment(collected) if collected.num_rows else None
    if open_rows.is_used and now is not None:
        of_answers = {query: rules.of_answers() for query, rules in open_rows.rules.items()}
        selected = {query: finish_table(rules, answers) for query, rules in of_answers.items()}
        finished |= open_rows.advance(selected, now, batch)
    if now is not None:
        for relay in relays:
            relay.advance(finished[0], now, batch)
    if answers.num_rows or rejected.num_rows or any(rows.num_rows for rows in finished.values()):
        return sink(spark, finished, rejected, batch)
    return 0


def _delivered_by_executors(
    job: Job, sink: Sink, collected: pa.Table, left: LeftAnswers, spark: SparkSession, batch: int
) -> int:
    """The same for answers that buckets have left, which are never in the driver."""
    in_driver = _open(collected["answers"], "answers", job.answer_schema)
    answers = to_frame(spark, in_driver).unionAll(left.frame(job.answer_schema))
    queries = [0] if job.n_queries == 1 else [row[QUERY] for row in answers.select(QUERY).distinct().collect()]
    finished = {query: finish_frame(job.finishing(query), answers) for query in queries}
    return sink(spark, finished, _open(collected["rejected"], "rejected", QUARANTINE), batch)


def _shown_watermark(watermarks: pa.ChunkedArray, job: Job) -> str | float | None:
    """The watermark of a micro-batch, for people and for JSON; None if no row has set it."""
    watermark = pc.max(watermarks).as_py()  # all buckets have the same
    if watermark in (None, BEGINNING):
        return None
    kind = job.layouts[0].time_kind
    times = decode_times(np.array([watermark]), kind)
    # As text by Arrow: the watermark may be past the last year of Python.
    return (times.cast(pa.string()) if kind is TimeKind.TIMESTAMP else times)[0].as_py()


def _moment(collected: pa.Table) -> Moment:
    """How far the stream is after a micro-batch. All buckets have the same watermark, and all know the end."""
    blobs = (blob for blob in collected["instants"].to_pylist() if blob is not None)
    instants = np.frombuffer(b"".join(blobs), "<i8")
    return Moment(pc.max(collected["watermark"]).as_py(), pc.any(collected["ended"]).as_py(), instants)


def _open(blobs: pa.ChunkedArray, name: str, schema: pa.Schema) -> pa.Table:
    tables = [read_tables(blob)[name].replace_schema_metadata(None) for blob in blobs.to_pylist() if blob is not None]
    return pa.concat_tables([schema.empty_table(), *tables])
