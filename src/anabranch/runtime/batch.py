"""An archive in one go: pack, shuffle the packets, run each bucket's operator once, past its last row.

The result is a lazy DataFrame of answers. Beside the answers travel *report rows* with counts and quarantined
rows, which are observed
(`Run.report`) or selected (`Run.quarantine`), and filtered out of the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.runtime.packets import PACKET_SCHEMA, BucketInput, Stage
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.job import Job
from anabranch.transport.operator import REPORTED, Counts
from anabranch.transport.state import read_tables, write_tables
from anabranch.transport.watermark import Clock

_REPORT = pa.schema([*((f"_{name}", pa.int64()) for name in REPORTED), ("_rejected", pa.binary())])


@dataclass(frozen=True, slots=True)
class Feed:
    """The source of one stream, before packing: a frame (of rows or of paths) and the stage that packs it."""

    frame: DataFrame
    stage: Stage

    def packets(self) -> DataFrame:
        """The packed rows."""
        return self.frame.mapInArrow(self.stage, PACKET_SCHEMA)


@dataclass(frozen=True, slots=True)
class Run:
    """A batch run of one query: its answers, and what became of its rows."""

    answers: DataFrame
    everything: DataFrame
    rows_seen: Observation
    answers_seen: Observation

    def report(self) -> Counts:
        """The counts of the action that was last run on the answers; blocks until there was one."""
        seen = self.rows_seen.get
        return Counts(
            **{name: int(seen[name] or 0) for name in REPORTED}, answers=int(self.answers_seen.get["answers"])
        )

    def quarantine(self) -> DataFrame:
        """The rows that were set aside, with the reason; runs the query once more."""
        blobs = self.everything.where("_rejected IS NOT NULL").select("_rejected")
        return blobs.mapInArrow(_open_rejected, from_arrow_schema(QUARANTINE))


def run(job: Job, feeds: Sequence[Feed], n_partitions: int, strict: bool = False) -> Run:
    """Run a job over its feeds, one a stream, its buckets spread evenly over some partitions.

    With `strict`, a row that must be set aside fails the run.
    """
    packets = reduce(DataFrame.unionAll, (feed.packets() for feed in feeds))
    schema = pa.schema([*job.answer_schema, *_REPORT])
    # Expressions as text: Python speaks to the JVM once for each, and not once for each of its parts.
    everything = packets.repartitionById(n_partitions, F.expr(f"bucket % {n_partitions}")).mapInArrow(
        partial(_run_operators, job, schema, strict), from_arrow_schema(schema)
    )
    rows_seen, answers_seen = Observation(), Observation()
    observed = everything.observe(rows_seen, *(F.expr(f"sum(_{name}) AS {name}") for name in REPORTED))
    raw = observed.where("_read IS NULL").selectExpr(*(f"`{name}`" for name in job.answer_schema.names))
    answers = job.finish(raw).observe(answers_seen, F.expr("count(1) AS answers"))
    return Run(answers, everything, rows_seen, answers_seen)


def _run_operators(
    job: Job, schema: pa.Schema, strict: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the operators of the buckets that this partition holds."""
    mail: dict[int, BucketInput] = {}
    for batch in batches:
        for row in batch.to_pylist():
            mail.setdefault(row["bucket"], BucketInput(len(job.layouts))).add(row)
    for received in mail.values():
        watermark = Clock(job.layouts).advance(received.newest, ended=True)
        outcome = job.operator().step(received.packets, watermark, ended=True)
        counts = received.counts
        counts += outcome.counts
        rejected = received.set_aside(outcome.rejected, strict)
        yield from _padded(outcome.answers, schema).to_batches(max_chunksize=100_000)
        report = {f"_{name}": [getattr(counts, name)] for name in REPORTED}
        report["_rejected"] = [write_tables({"rejected": rejected}) if rejected.num_rows else None]
        yield from _padded(pa.table(report, schema=_REPORT), schema).to_batches()


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
