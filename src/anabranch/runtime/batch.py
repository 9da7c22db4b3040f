"""Batch runs: rows are packed, packets shuffled, and the operator of each bucket is stepped once, past its last row.

The result is a lazy DataFrame of answers. The operators' output also has *count rows*, with counts and quarantined
rows. They are observed (`Run.counts`) or selected (`Run.quarantine`), and filtered out of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
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

_COUNT_ROW = pa.schema([*((f"_{name}", pa.int64()) for name in COUNTED), ("_rejected", pa.binary())])


@dataclass(frozen=True, slots=True)
class Feed:
    """The source of one stream, before packing: a frame (of rows or of paths) and the stage that packs it."""

    frame: DataFrame
    stage: Stage

    def packets(self) -> DataFrame:
        """The packed rows."""
        return self.frame.mapInArrow(self.stage, PACKET_SCHEMA)


class InputRows(NamedTuple):
    """What happened to the rows of one input before the shuffle.

    Rows that are `ignored` are valid, but no answer can use them. Those that are `excluded` do not satisfy the WHERE of
    their stream, or have no partner for its JOIN.
    """

    stream: str
    read: int
    ignored: int
    excluded: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Run:
    """A batch run: its answers, and what happened to its rows. `inputs_seen` has the stream of each input.

    `instants` are those of the streams, None if no query needs them.
    """

    answers: DataFrame
    everything: DataFrame
    rows_seen: Observation
    answers_seen: Observation
    inputs_seen: list[tuple[str, Observation]]
    instants: DataFrame | None = None

    def counts(self) -> Counts:
        """The counts of the first action on the answers. In classic mode, it blocks until there was one."""
        try:
            seen, answers = _observed(self.rows_seen), _observed(self.answers_seen)
        except PySparkException as error:
            raise translate(error) from error
        if seen.get("read") is None:
            # The input is empty, or the action failed, or Connect had none yet. A run that failed fails again.
            (row,) = self.everything.agg(*_sums()).collect()
            seen = row.asDict()
            answers = {"answers": 0 if seen["read"] is None else self.answers.count()}
        return Counts(**{name: int(seen[name] or 0) for name in COUNTED}, answers=int(answers.get("answers") or 0))

    def input_rows(self) -> list[InputRows]:
        """The counts of each input. In classic mode, it blocks until there was an action; before, Connect has none."""
        observed = [(stream, _observed(seen)) for stream, seen in self.inputs_seen]
        return [
            InputRows(stream, *(int(counts[name] or 0) for name in InputRows._fields[1:]))
            for stream, counts in observed
            if counts
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

    With `strict`, a row that would be quarantined fails the run. `small` inputs have one partition, and no shuffle: one
    task reads, packs and processes them. The answers of a group of queries are not finished; `finish_frame` gives those
    of one query.
    """
    inputs_seen = [(layout.name, Observation()) for layout in job.layouts]
    sums = [F.expr(f"sum({name}) AS {name}") for name in InputRows._fields[1:]]
    observed_feeds = (feed.packets().observe(seen, *sums) for feed, (_, seen) in zip(feeds, inputs_seen, strict=True))
    packets = reduce(DataFrame.unionAll, observed_feeds)
    schema = pa.schema([*job.answer_schema, *_COUNT_ROW])
    # Expressions as text: one call to the JVM each, instead of one call per node.
    routed = packets.coalesce(1) if small else packets.repartitionById(n_partitions, F.expr(f"bucket % {n_partitions}"))
    everything = routed.mapInArrow(partial(_run_operators, job, schema, strict), from_arrow_schema(schema))
    rows_seen, answers_seen = Observation(), Observation()
    observed = everything.observe(rows_seen, *_sums())
    raw = observed.where("_read IS NULL").selectExpr(*(f"`{name}`" for name in job.answer_schema.names))
    instants = None
    if needs_instants(job):
        # The inputs are read a second time. Operators cannot tell: each has seen only the rows of its bucket.
        read_again = reduce(DataFrame.unionAll, (feed.packets() for feed in feeds))
        instants = instants_of(read_again, job.layouts[0].time_kind)
    finished = finish_frame(job.finishing(), raw, instants) if job.n_queries == 1 else raw
    answers = finished.observe(answers_seen, F.expr("count(1) AS answers"))
    return Run(answers, everything, rows_seen, answers_seen, inputs_seen, instants)


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


def _sums() -> list[Column]:
    """The counts of a run, as aggregates over its count rows."""
    return [F.expr(f"sum(_{name}) AS {name}") for name in COUNTED]


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
        count_row = {f"_{name}": [getattr(counts, name)] for name in COUNTED}
        count_row["_rejected"] = [write_tables({"rejected": rejected}) if rejected.num_rows else None]
        yield from _padded(pa.table(count_row, schema=_COUNT_ROW), schema).to_batches()


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
