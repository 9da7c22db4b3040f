"""From prepared queries to running jobs: inputs are opened, types resolved, and the job is run or started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch.binding.bound import BoundQuery
from anabranch.catalog import Catalog, Query, Relation, Stream, title_of
from anabranch.columns.calibration import CalibrationMap, read_map
from anabranch.errors import AnabranchError
from anabranch.language import nodes
from anabranch.planning.derived import layouts_of, reported, rows_job, with_types_of
from anabranch.planning.identity import Document, fingerprint_of, identity_of, query_fingerprints
from anabranch.planning.layouts import layouts_for
from anabranch.planning.planner import Planner
from anabranch.planning.prepared import Prepared, relations_of, streams_of, with_job
from anabranch.runtime import batch, large_answers, streaming
from anabranch.runtime.checkpoint import Checkpoint
from anabranch.runtime.diagnosis import explain_rejected, value_text
from anabranch.runtime.inputs import Input, are_small, partition_count
from anabranch.runtime.kernels import ensure_kernels
from anabranch.runtime.large_answers import LargeAnswers
from anabranch.runtime.packets import Packing
from anabranch.runtime.readiness import make_ready
from anabranch.runtime.relay import Relay
from anabranch.runtime.sources.bindings import Bindings
from anabranch.runtime.spark_mode import parallelism, setting_of_context
from anabranch.runtime.stream_log import StreamLog
from anabranch.transport.job import Job, JobContext
from anabranch.transport.layout import Layout
from anabranch.transport.limits import MAX_ANSWERS, MAX_ANSWERS_OF_ARCHIVE
from anabranch.transport.operator import Counts
from anabranch.transport.preparing import check_partners

#: Buckets of a stream on a cluster, if its start does not say how many. They are fixed for the lifetime of a
#: checkpoint, so there are enough for a larger cluster.
STREAM_BUCKETS = 16

#: Buckets of a stream on a local master: each takes some time in every micro-batch, so there are two for each core, and
#: at least this many.
_LEAST_BUCKETS = 4

#: How many values of a column are listed if none of them is the wanted one.
MOST_SEEN = 6

#: Buckets per partition of a batch run with an inferred stream. Inferred streams are much larger than their readings,
#: so a partition processes its keys in this many parts, one after the other.
INFERRED_BUCKETS_PER_PARTITION = 32


@dataclass(frozen=True, slots=True)
class Resolved:
    """A group of queries, ready to run: prepared for the types of their inputs, with a job.

    Attributes
    ----------
    prepared : the queries; all have the same job
    context : of the job
    identity : of the group
    inputs : of the streams and relations, by lower-case name
    """

    prepared: list[Prepared]
    job: Job
    context: JobContext
    identity: Document
    inputs: dict[str, Input]

    @property
    def sources(self) -> list[Input]:
        """The inputs of the streams, in the order of the job."""
        return [self.inputs[stream.name.lower()] for stream in streams_of(self.prepared)]


def resolve(
    planner: Planner, bindings: Bindings, queries: Sequence[Query], checkpoint: Checkpoint | None = None,
    max_answers: int | None = None, ends: bool = False,
) -> Resolved:  # fmt: skip
    """Open the inputs of a group of queries and make its job; with a checkpoint, for live inputs.

    `ends` is for answers that are read by a stream of them: the operands of a RELATE have their ends.
    """
    declared = [planner.prepare(query) for query in queries]
    inputs: dict[str, Input] = {}
    read: dict[str, Input] = {}
    entries: dict[str, Stream | Relation] = {}
    for prepared in declared:
        used: list[Stream | Relation] = [*prepared.bound.streams, *prepared.bound.declared_relations]
        for entry in used:
            name = entry.name.lower()
            if name not in inputs:
                inputs[name] = bindings.open(entry, checkpoint)
                entries[name] = with_types_of(entry, inputs[name].typed_entry())
                read |= inputs[name].relations
    group = planner.with_types(declared, entries)
    live = checkpoint is not None
    for prepared in group:
        if live:
            prepared.require_live()
        else:
            prepared.require_runnable()
    layouts = _layouts(group, inputs, bindings)
    identity = identity_of(group, layouts)
    read |= {relation.name.lower(): inputs[relation.name.lower()] for relation in relations_of(group)}
    relations = {name: bindings.relation_rows(relation) for name, relation in read.items()}
    for layout in layouts:
        if layout.preparation is not None:
            check_partners(layout.preparation, relations)
    context = JobContext(
        layouts=layouts,
        relations=relations,
        fingerprint=fingerprint_of(identity, group[0].bound.shares_pass),
        live=live,
        folders=tuple(bindings.folders[query.name.lower()] for query in queries),
        calibrations=_calibrations(queries, bindings),
        limits={
            number: prepared.bound.limit for number, prepared in enumerate(group) if prepared.bound.limit is not None
        },
        queries=query_fingerprints(identity),
        max_answers=max_answers or (MAX_ANSWERS if live else MAX_ANSWERS_OF_ARCHIVE),
        ends=ends,
    )
    group, job = with_job(group, context)
    return Resolved(group, job, context, identity, inputs)


def _calibrations(queries: Sequence[Query], bindings: Bindings) -> dict[int, CalibrationMap]:
    """The calibration maps of the queries that have one, by the number of the query in its group."""
    return {
        number: read_map(Path(bindings.folders[query.name.lower()], query.declaration.calibrated))
        for number, query in enumerate(queries)
        if query.declaration.calibrated is not None
    }


def _layouts(group: Sequence[Prepared], inputs: dict[str, Input], bindings: Bindings) -> tuple[Layout, ...]:
    """The layouts of what is read: the streams of the queries, or the streams that they are derived from."""
    streams = streams_of(group)
    entries = [inputs[stream.name.lower()].typed_entry() for stream in streams]
    read = [entry for entry in entries if isinstance(entry, Stream)]
    layouts = layouts_of(streams, read, [bindings.folders[stream.name.lower()] for stream in streams])
    return tuple(
        replace(layout, preparation=inputs[stream.name.lower()].preparation())
        for stream, layout in zip(streams, layouts, strict=True)
    )


def run_batch(
    spark: SparkSession, job: Job, sources: Sequence[Input], n_partitions: int | None, strict: bool, counter: Any
) -> batch.Run:
    """Run a job over the rows that its inputs, one per stream, have now."""
    make_ready(spark)
    ensure_kernels([job])
    small = n_partitions is None and are_small(sources)
    n_partitions = n_partitions or (1 if small else partition_count(sources, parallelism(spark)))
    inferred = any(layout.derivation is not None for layout in job.layouts)
    n_buckets = n_partitions * (INFERRED_BUCKETS_PER_PARTITION if inferred else 1)
    # Inference goes on to the newest reading of any key, so every bucket must know the newest time.
    instants = batch.needs_instants(job)
    if len(sources) == 1 and not (small or inferred or instants):
        one_bucket = Packing(job, 0, 1, counter=counter)
        clustered = sources[0].clustered_feed(spark, one_bucket, n_partitions)
        if clustered is not None:
            return batch.run(job, [clustered], n_partitions, strict)
    packings = [Packing(job, number, n_buckets, inferred, counter, instants) for number in range(len(sources))]
    feeds = [source.feed(spark, packing) for source, packing in zip(sources, packings, strict=True)]
    return batch.run(job, feeds, n_partitions, strict, small)


def derive_rows(
    spark: SparkSession, bindings: Bindings, stream: Stream, n_partitions: int | None, strict: bool, counter: Any
) -> batch.Run | None:
    """Make the rows of a derived stream from the rows that its input has now; None if nothing is derived."""
    source = bindings.open(stream)
    read = source.typed_entry()
    typed = with_types_of(stream, read)
    if not isinstance(read, Stream) or not isinstance(typed, Stream) or read.name == stream.name:
        return None
    if isinstance(stream.source, nodes.SegmentedSource):
        raise AnabranchError(f"the segments of {stream.name} are made while a query runs; it has no rows of its own")
    (layout,) = layouts_of([typed], [read], [bindings.folders[stream.name.lower()]])
    layout = replace(layout, preparation=source.preparation())
    job = rows_job(typed, JobContext((layout,), source.relation_rows(), ""))
    return run_batch(spark, job, [source], n_partitions, strict, counter)


def polling_delay(n_files: int) -> int:
    """The milliseconds that a stream without new rows waits until it looks for new files.

    Spark lists all files of a stream each time, which takes about a tenth of a millisecond per file: with this delay a
    twentieth of a core, or what a thousand files take.

    >>> polling_delay(1), polling_delay(200), polling_delay(100_000)
    (100, 400, 2000)
    """
    return min(max(100, 2 * n_files), 2000)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream runs.

    Attributes
    ----------
    trigger : as for Spark's `trigger`
    max_files : the maximum number of new files per micro-batch
    strict : whether a row that would be quarantined fails the run
    buckets : of a new checkpoint; a checkpoint that exists keeps its number
    """

    trigger: dict[str, Any] | None = None
    max_files: int | None = None
    strict: bool = False
    buckets: int | None = None

    @property
    def ends(self) -> bool:
        """Whether the stream ends when it has processed the existing input."""
        return not {"availableNow", "once"}.isdisjoint(self.trigger or {})


def start_stream(
    spark: SparkSession,
    resolved: Resolved,
    checkpoint: Checkpoint,
    output: streaming.Output,
    n_partitions: int | None,
    options: StreamOptions,
    earlier: Counts,
    relays: Sequence[Relay] = (),
) -> streaming.StreamRun:
    """Start a group of queries on live inputs; their counts are added to those of an earlier start.

    `relays` pass the answers of a single query on to other streams.
    """
    make_ready(spark)
    job, sources = resolved.job, resolved.sources
    ensure_kernels([job])
    schemas = {source.entry.name.lower(): source.schema for source in resolved.inputs.values()}
    n_buckets = options.buckets or checkpoint.n_buckets or default_buckets(spark)
    checkpoint.claim(resolved.identity, n_buckets, schemas, resolved.prepared[0].bound.shares_pass)
    sink = output(checkpoint.id)
    names = [prepared.query.name for prepared in resolved.prepared]
    instants = batch.needs_instants(job)
    packings = [Packing(job, number, n_buckets, every=True, instants=instants) for number in range(len(sources))]
    feeds = [source.live_feed(packing, options.max_files) for source, packing in zip(sources, packings, strict=True)]
    large = LargeAnswers(checkpoint.large_answers, large_answers.MOST_ROWS)
    return streaming.start(
        spark, job, feeds, sink, StreamLog(checkpoint.folder, title_of(names), earlier), name=names[0],
        checkpoint=checkpoint.spark.address, control=checkpoint.control.address, rows=checkpoint.rows, large=large,
        polling_delay=polling_delay(sum(source.n_files for source in sources)),
        n_buckets=n_buckets, n_partitions=n_partitions or parallelism(spark),
        bounded=frozenset(number for number, source in enumerate(sources) if source.is_bounded),
        relayed=frozenset(number for number, source in enumerate(sources) if source.relayed is not None),
        relays=relays,
        trigger=options.trigger or {"processingTime": "0 seconds"}, strict=options.strict,
    )  # fmt: skip


def default_buckets(spark: SparkSession) -> int:
    """The buckets of a new checkpoint."""
    if not (setting_of_context(spark, "spark.master") or "").startswith("local"):
        return STREAM_BUCKETS
    return min(STREAM_BUCKETS, max(_LEAST_BUCKETS, 2 * parallelism(spark)))


def doubts(run: batch.Run, bindings: Bindings, catalog: Catalog) -> list[tuple[Stream, str]]:
    """The inputs of a run of which most rows were quarantined, or that have no rows, with the likely reason."""
    found = []
    inputs = run.input_rows()
    if len(inputs) == 1:
        # With the rows that were quarantined after the shuffle, where they met the other rows of their key.
        inputs = [inputs[0]._replace(quarantined=run.counts().quarantined)]
    for rows in inputs:
        stream = catalog.require_stream(rows.stream)
        if rows.read and rows.excluded == rows.read:
            found.append((stream, f"WHERE or JOIN of {stream.name} exclude all {rows.read:,} rows"))
        if rows.read and 2 * rows.quarantined <= rows.read:
            continue
        source = bindings.open(stream)
        # Spark may have filtered out the rows of other keys, so that they were not counted as read.
        n_rows = source.n_rows()
        if not n_rows:
            found.append((stream, f"{stream.name} has no rows; check its path"))
        elif 2 * rows.quarantined > n_rows:
            (sample,) = run.quarantine().where(F.col("stream") == rows.stream).limit(1).collect()
            why = explain_rejected(sample["reason"], sample["row"], source.text_format())
            number = "all" if rows.quarantined == n_rows else f"{rows.quarantined:,} of"
            found.append((stream, f"{number} {n_rows:,} rows of {stream.name} were quarantined: {why}"))
    return found


def absent_values(bindings: Bindings, bound: BoundQuery) -> list[str]:
    """The constants of a query that no row has, with the values that rows have instead."""
    found = []
    for stream, column, value in dict.fromkeys(bound.wanted_values):
        if isinstance(stream.source, nodes.DerivedSource):
            continue
        seen = bindings.open(stream).frequent_values(column, value, MOST_SEEN)
        if value not in seen:
            others = ", ".join(value_text(other) for other in seen)
            found.append(f"no row of {stream.name} has {column} = {value_text(value)}; seen: {others or 'nothing'}")
    return found


def open_stream(bindings: Bindings, stream: Stream) -> tuple[Input, Layout]:
    """The input of a stream without a query, and the layout of what is read: of a derived stream, its source."""
    source = bindings.open(stream)
    entry = source.typed_entry()
    read = entry if isinstance(entry, Stream) else stream
    (layout,) = layouts_for([read], [bindings.folders[stream.name.lower()]])
    if isinstance(stream.source, nodes.PredictedSource) and read.name != stream.name:
        layout = reported(stream, read, layout)
    return source, replace(layout, preparation=source.preparation())
