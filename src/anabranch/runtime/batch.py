"""Batch runs: rows are packed, packets shuffled, and the operator of each bucket is stepped once, past its last row.

Nothing is shuffled where the rows of a task need no others: small inputs are one task, and the tasks of clustered
files have all rows of their keys. Then one function reads, packs and processes rows, and packets never leave it.

The result is a lazy DataFrame of answers. The operators' output also has *count rows*, with counts and quarantined
rows. They are observed (`Run.counts`) or selected (`Run.quarantine`), and filtered out of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from itertools import chain
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.runtime.failures import translate
from anabranch.runtime.finishing import finish_frame
from anabranch.runtime.packets import PACKET_SCHEMA, BucketInput, Stage
from anabranch.runtime.per import instants_of
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.job import Job
from anabranch.transport.operator import COUNTED, Counts
from anabranch.transport.state import read_tables, write_tables
from anabranch.transport.watermark import Clock

#: What is counted of each input before the shuffle.
_COUNTED_OF_INPUTS = ("read", "excluded", "quarantined")


class Feed(Protocol):
    """The source of one stream, before packing."""

    def packets(self) -> DataFrame:
        """The packed rows."""


@dataclass(frozen=True, slots=True)
class FrameFeed:
    """A frame, of rows or of paths, and the stage that packs it."""

    frame: DataFrame
    stage: Stage

    def packets(self) -> DataFrame:
        """The packed rows."""
        return self.frame.mapInArrow(self.stage, PACKET_SCHEMA)


@dataclass(frozen=True, slots=True)
class TaskFeed:
    """What the workers read, one table of rows for each task, and the stage that reads and packs it.

    If the tasks are `clustered`, the rows of each need no others: a task has all rows of its keys.
    """

    spark: SparkSession
    tasks: Sequence[pa.Table]
    stage: Stage
    clustered: bool = False

    def packets(self) -> DataFrame:
        """The packed rows."""
        return self.spark.createDataFrame(pa.concat_tables(self.tasks)).mapInArrow(self.stage, PACKET_SCHEMA)


class InputRows(NamedTuple):
    """What happened to the rows of one input before the shuffle.

    Rows that are `excluded` do not satisfy the WHERE of their stream, or have no partner for its JOIN.
    """

    stream: str
    read: int
    excluded: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Run:
    """A batch run: its answers, and what happened to its rows. `streams` has the stream of each input.

    `count_again` runs the query once more for what `rows_seen` should have. `instants` are those of the streams, None
    if no query needs them.
    """

    answers: DataFrame
    everything: DataFrame
    rows_seen: Observation
    answers_seen: Observation
    count_again: Callable[[], dict[str, Any]]
    streams: list[str]
    instants: DataFrame | None = None

    def counts(self) -> Counts:
        """The counts of the first action on the answers. In classic mode, it blocks until there was one."""
        try:
            seen, answers = _observed(self.rows_seen), _observed(self.answers_seen)
        except PySparkException as error:
            raise translate(error) from error
        if seen.get("read") is None:
            # The input is empty, or the action failed, or Connect had none yet. A run that failed fails again.
            seen = self.count_again()
            answers = {"answers": 0 if seen["read"] is None else self.answers.count()}
        return Counts(**{name: int(seen[name] or 0) for name in COUNTED}, answers=int(answers.get("answers") or 0))

    def input_rows(self) -> list[InputRows]:
        """The counts of each input. In classic mode, it blocks until there was an action."""
        seen = _observed(self.rows_seen)
        if seen.get("read") is None:
            seen = self.count_again()
        return [
            InputRows(stream, *(int(seen[f"{name}_{number}"] or 0) for name in _COUNTED_OF_INPUTS))
            for number, stream in enumerate(self.streams)
        ]

    def quarantine(self) -> DataFrame:
        """The quarantined rows, with the reason; runs the query again."""
        blobs = self.everything.where("_rejected IS NOT NULL").select("_rejected")
        return blobs.mapInArrow(_open_rejected, from_arrow_schema(QUARANTINE))


@dataclass(frozen=True, slots=True)
class GroupRun:
    """The part of one query in the run of a group.

    Attributes
    ----------
    run : of the group
    rows : the counts of its rows
    n_answers : the number of answers of this query; where pairs are formed, after the first action on them
    """

    run: Run
    rows: Counts
    n_answers: Callable[[], int]

    @property
    def counts(self) -> Counts:
        """The counts of the group's rows and of the query's answers."""
        return replace(self.rows, answers=self.n_answers())


def run(job: Job, feeds: Sequence[Feed], n_partitions: int, strict: bool = False, small: bool = False) -> Run:
    """Run a job over its feeds, one per stream, with its buckets distributed evenly over the partitions.

    With `strict`, a row that would be quarantined fails the run. `small` inputs are one task. The answers of a group of
    queries are not finished; `finish_frame` gives those of one query.
    """
    schema = pa.schema([*job.answer_schema, *_count_row(len(job.layouts))])
    operators = partial(_run_operators, job, schema, strict)
    alone = _tasks_alone(feeds, small)
    # Expressions as text: one call to the JVM each, instead of one call per node.
    if alone:
        numbers = alone.spark.range(0, len(alone.tasks), 1, len(alone.tasks))
        everything = numbers.mapInArrow(partial(_run_tasks, alone.tasks, operators), from_arrow_schema(schema))
    else:
        packets = reduce(DataFrame.unionAll, (feed.packets() for feed in feeds))
        buckets = F.expr(f"bucket % {n_partitions}")
        routed = packets.coalesce(1) if small else packets.repartitionById(n_partitions, buckets)
        everything = routed.mapInArrow(operators, from_arrow_schema(schema))
    rows_seen, answers_seen = Observation(), Observation()
    observed = everything.observe(rows_seen, *_sums(len(job.layouts)))
    raw = observed.where("_read IS NULL").selectExpr(*(f"`{name}`" for name in job.answer_schema.names))
    instants = None
    if needs_instants(job):
        # The inputs are read a second time. Operators cannot tell: each has seen only the rows of its bucket.
        read_again = reduce(DataFrame.unionAll, (feed.packets() for feed in feeds))
        instants = instants_of(read_again, job.layouts[0].time_kind)
    finished = finish_frame(job.finishing(), raw, instants) if job.n_queries == 1 else raw
    answers = finished.observe(answers_seen, F.expr("count(1) AS answers"))
    count_again = cache(lambda: everything.agg(*_sums(len(job.layouts))).collect()[0].asDict())
    streams = [layout.name for layout in job.layouts]
    return Run(answers, everything, rows_seen, answers_seen, count_again, streams, instants)


class _TasksAlone(NamedTuple):
    """Tasks whose rows need no others: for each task, what is read and the stage that reads and packs it."""

    spark: SparkSession
    tasks: list[list[tuple[pa.Table, Stage]]]


def _tasks_alone(feeds: Sequence[Feed], small: bool) -> _TasksAlone | None:
    """The tasks that read, pack and process their rows; None if packets have to be shuffled."""
    read = [feed for feed in feeds if isinstance(feed, TaskFeed)]
    if len(read) < len(feeds):
        return None
    if small:
        return _TasksAlone(read[0].spark, [[(task, feed.stage) for feed in read for task in feed.tasks]])
    if len(read) == 1 and read[0].clustered:
        return _TasksAlone(read[0].spark, [[(task, read[0].stage)] for task in read[0].tasks])
    return None


def needs_instants(job: Job) -> bool:
    """Whether a query of a job needs the instants of its streams."""
    rules = (job.finishing(query).per for query in range(job.n_queries))
    return any(rule is not None and rule.needs_instants for rule in rules)


def _observed(seen: Observation) -> dict[str, Any]:
    """What was observed; empty where Spark finds, while it runs, that there are no answers, and removes the node."""
    try:
        return seen.get
    except Py4JJavaError:
        return {}


def counted(frame: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """The frame, and a function that returns the number of its rows after the first action has read them."""
    seen = Observation()
    return frame.observe(seen, F.expr("count(1) AS answers")), lambda: int(_observed(seen).get("answers") or 0)


def _count_row(n_streams: int) -> pa.Schema:
    """The columns of a count row: what operators count, what is counted of each input, and the quarantined rows."""
    of_inputs = (f"_{name}_{stream}" for stream in range(n_streams) for name in _COUNTED_OF_INPUTS)
    names = (*(f"_{name}" for name in COUNTED), *of_inputs)
    return pa.schema([*((name, pa.int64()) for name in names), ("_rejected", pa.binary())])


def _sums(n_streams: int) -> list[Column]:
    """The counts of a run, as aggregates over its count rows."""
    return [F.expr(f"sum({name}) AS {name[1:]}") for name in _count_row(n_streams).names[:-1]]


def _run_tasks(
    tasks: Sequence[Sequence[tuple[pa.Table, Stage]]], operators: Stage, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read, pack and process the rows of the tasks with these numbers, one task after the other."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from operators(chain.from_iterable(stage(iter(part.to_batches())) for part, stage in tasks[number]))


def _run_operators(
    job: Job, schema: pa.Schema, strict: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the operators of the buckets of this partition."""
    inputs: dict[int, BucketInput] = {}
    for batch in batches:
        for row in batch.to_pylist():
            inputs.setdefault(row["bucket"], BucketInput(len(job.layouts))).add(row)
    for received in inputs.values():
        watermark = Clock(job.layouts).advance(received.newest, ended=True)
        outcome = job.operator().step(received.packets, watermark, ended=True)
        counts = received.counts
        counts += outcome.counts
        rejected = received.quarantined(outcome.rejected, strict)
        yield from _padded(outcome.answers, schema).to_batches(max_chunksize=100_000)
        count_row: dict[str, list[Any]] = {f"_{name}": [getattr(counts, name)] for name in COUNTED}
        for stream, of_input in enumerate(received.counts_of_inputs):
            count_row |= {f"_{name}_{stream}": [getattr(of_input, name)] for name in _COUNTED_OF_INPUTS}
        count_row["_rejected"] = [write_tables({"rejected": rejected}) if rejected.num_rows else None]
        count_rows = pa.table(count_row, schema=_count_row(len(job.layouts)))
        yield from _padded(count_rows, schema).to_batches()


def _padded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with NULL in the columns of `schema` that it lacks."""
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _open_rejected(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column(0).to_pylist():
            yield from read_tables(blob)["rejected"].replace_schema_metadata(None).to_batches()
