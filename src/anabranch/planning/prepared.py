"""`Prepared`: a query with everything that planning finds out about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from anabranch.binding.answer_streams import answers_read, relay_objection
from anabranch.binding.binder import bind
from anabranch.binding.bound import BoundQuery
from anabranch.binding.derived_streams import projected_space
from anabranch.binding.lineage import is_of_answers
from anabranch.binding.per import described
from anabranch.binding.targets import described_target
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import Finding, WorkbookError
from anabranch.kinds import load_kind_module
from anabranch.language.findings import listed
from anabranch.language.nodes import DerivedSource, PredictedSource, QuerySource, Source
from anabranch.language.unparse import unparse
from anabranch.plan import Plan, Sampling, Step

if TYPE_CHECKING:
    from anabranch.transport.job import Job, JobContext, SingleJob


#: Why a query with ORDER BY ... LIMIT cannot stream.
_NO_LIMIT = "ORDER BY ... LIMIT needs all answers, and a stream never has all; remove it, or use THRESHOLD"

#: Why a PATTERN with bounds cannot stream.
_NO_BOUNDS = "bounds of a PATTERN need all its rows; run it in batch, or declare the answers with MODEL CERTAIN"


class Analysis(Protocol):
    """What the analysis of every kind has; the rest is known to its own kind only."""

    @property
    def query(self) -> BoundQuery:
        """The bound query."""

    @property
    def sampling(self) -> Sampling:
        """Of which rows a sample has a known share of the answers."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query, prepared.

    Attributes
    ----------
    query : the declaration
    bound : the query with its names resolved and its types checked
    analysis : of its kind
    plan : how it is answered, or why it is refused
    job : for the workers, shared by the queries of a group; None until the inputs are opened
    """

    query: Query
    bound: BoundQuery
    analysis: Analysis
    plan: Plan
    job: Job | None = None

    def require_runnable(self) -> None:
        """Raise if the query is refused."""
        if self.plan.refused is not None:
            raise WorkbookError([self.plan.refused])

    def require_live(self) -> None:
        """Raise if the query cannot run on live inputs."""
        self.require_runnable()
        if self.plan.streams != "yes":
            message = f"{self.plan.query} cannot stream: {self.plan.streams}"
            raise WorkbookError([Finding("cannot-stream", message, "", self.plan.span)])


def prepare(query: Query, bound: BoundQuery, catalog: Catalog | None = None) -> Prepared:
    """Analyse and plan a bound query; the plan says how its streams follow from others if they are in `catalog`.

    Raises
    ------
    WorkbookError
        If the analysis finds errors.
    """
    analysis: Analysis = load_kind_module(bound.kind, "analysis").analyse(bound)
    plan: Plan = load_kind_module(bound.kind, "explain").plan(analysis)
    # After the step that reads the streams.
    n_read = sum(step.id == "read" for step in plan.steps)
    plan = replace(plan, steps=(*plan.steps[:n_read], *_reading_steps(bound.streams, catalog), *plan.steps[n_read:]))
    plan = _with_lineage(plan, bound, catalog)
    if bound.per is not None:
        plan = replace(plan, steps=(*plan.steps, Step("per", described(bound.per, bound.streams[0].time.type))))
    path = query.declaration.calibrated
    if path is not None:
        step = Step("calibrate", f"add the column calibrated: the probability, mapped by {path}")
        plan = replace(plan, steps=(*plan.steps, step))
    if bound.limit is not None:
        step = Step("limit", f"keep the {bound.limit} most probable rows, the most probable first")
        streams = plan.streams if plan.streams != "yes" else _NO_LIMIT
        plan = replace(plan, steps=(*plan.steps, step), streams=streams)
    if query.declaration.target is not None:
        plan = replace(plan, steps=(*plan.steps, Step("write", described_target(query.declaration.target))))
    return Prepared(query, bound, analysis, plan)


def _with_lineage(plan: Plan, bound: BoundQuery, catalog: Catalog | None) -> Plan:
    """The plan of a query over answers: whether what it combines is independent, and how or why not it streams."""
    sources = [(stream, _rows_source(stream, catalog)) for stream in bound.streams]
    read = [(stream, source) for stream, source in sources if isinstance(source, QuerySource)]
    if not read:
        return plan
    if bound.bounded is not None:
        combined = f"bounds: {bound.bounded.why}"
    elif any(is_of_answers(stream) for stream, _ in read):
        combined = "exact: no two events that an answer combines depend on the same rows"
    else:
        combined = "exact: every answer that is read counts as an event that happened"
    names = list(dict.fromkeys(source.name for _, source in read))
    runs = f"{listed(names, 'and')} {'runs' if len(names) == 1 else 'run'} in the same application"
    live = f"on a stream, {runs}; answers are passed on when they are final, with the watermark"
    streams = (_why_not_live(bound, catalog) or "yes") if plan.streams == "yes" else plan.streams
    return replace(plan, steps=(*plan.steps, Step("lineage", combined), Step("chain", live)), streams=streams)


def _why_not_live(bound: BoundQuery, catalog: Catalog | None) -> str | None:
    """Why a query over answers cannot stream; None if it can, as far as the catalog has the queries that are read."""
    if bound.kind == "PATTERN" and bound.bounded is not None:
        return _NO_BOUNDS
    if catalog is None:
        return None
    for _, stream, query in answers_read(bound, catalog):
        read = bind(query, catalog)
        reason = relay_objection(stream, query, read)
        if reason is None:
            streams = _streams_of(query, read, catalog)
            reason = None if streams == "yes" else f"{query.name} cannot stream: {streams}"
        if reason is not None:
            return f"{stream.name} has answers of {query.name}, and {reason}"
    return None


def _streams_of(query: Query, bound: BoundQuery, catalog: Catalog) -> str:
    """Whether a query that is read can stream; its own errors are reported for itself."""
    try:
        return prepare(query, bound, catalog).plan.streams
    except WorkbookError:
        return "yes"


def _rows_source(stream: Stream, catalog: Catalog | None) -> Source | None:
    """The source of the rows that are read for a stream; that of a derived stream is the source of its input."""
    source = stream.source
    if isinstance(source, DerivedSource) and catalog is not None:
        made_from = catalog.stream(source.stream)
        return None if made_from is None else made_from.source
    return source


def _reading_steps(streams: Iterable[Stream], catalog: Catalog | None) -> Iterator[Step]:
    """What is done to the rows of sources before they are rows of their streams."""
    for stream in streams:
        node = stream.declaration
        for join in node.joins:
            yield Step("prepare", f"{stream.name}: {unparse(join)}")
        if node.where is not None:
            yield Step("prepare", f"{stream.name}: only rows with {unparse(node.where)}; the others are counted")
        columns = [column for column in (*node.keys, *node.values) if column.source or column.expression]
        columns += [time for time in (node.start, node.time) if time and (time.source or time.expression)]
        columns += node.computed
        if columns:
            yield Step("prepare", f"{stream.name}: {', '.join(map(unparse, columns))}")
        if node.time_format is not None or node.zone is not None:
            written = "ISO 8601" if node.time_format is None else node.time_format
            yield Step("prepare", f"{stream.name}: times as {written}, in {node.zone or 'UTC'}")
        origin = _origin(stream, catalog)
        if origin is not None:
            centre = f"longitude {origin[0]:g}, latitude {origin[1]:g}"
            yield Step("prepare", f"{stream.name}: positions in metres, by a local projection around {centre}")


def _origin(stream: Stream, catalog: Catalog | None) -> tuple[float, float] | None:
    """The centre of the projection of positions that a stream is predicted from; None if they are not projected."""
    if catalog is None or not isinstance(stream.source, PredictedSource):
        return None
    positions = catalog.stream(stream.source.stream)
    projected = None if positions is None else projected_space(stream, positions)
    return None if projected is None else projected[1]


def with_job(group: Sequence[Prepared], context: JobContext) -> tuple[list[Prepared], Job]:
    """The queries of a group with the job that serves all of them, and this job."""
    analyses = [prepared.analysis for prepared in group]
    make_job = load_kind_module(group[0].bound.kind, "job").make_job
    job: Job
    if len(group) == 1 or group[0].bound.shares_pass:
        job = make_job(analyses, context)
    else:
        job = _shared_job(group, context, [make_job([analysis], own) for analysis, own in _contexts(group, context)])
    return [replace(prepared, job=job) for prepared in group], job


def _contexts(group: Sequence[Prepared], context: JobContext) -> Iterator[tuple[Analysis, JobContext]]:
    """For each query of a group, its analysis and the context of a job of its own."""
    for number, (prepared, streams) in enumerate(zip(group, _stream_numbers(group), strict=True)):
        calibration, limit = context.calibrations.get(number), context.limits.get(number)
        own = replace(
            context,
            layouts=tuple(context.layouts[stream] for stream in streams),
            folders=context.folders[number : number + 1],
            queries=context.queries[number : number + 1],
            calibrations={} if calibration is None else {0: calibration},
            limits={} if limit is None else {0: limit},
        )
        yield prepared.analysis, own


def _stream_numbers(group: Sequence[Prepared]) -> list[tuple[int, ...]]:
    """For each query of a group, the number of each of its streams among those of the group."""
    names = [stream.name.lower() for stream in streams_of(group)]
    return [tuple(names.index(stream.name.lower()) for stream in prepared.bound.streams) for prepared in group]


def _shared_job(group: Sequence[Prepared], context: JobContext, jobs: Sequence[SingleJob]) -> Job:
    # Loads arrays, which `check` and `explain` do not need.
    from anabranch.transport.shared import SharedJob

    return SharedJob(tuple(jobs), context.layouts, tuple(_stream_numbers(group)), context.fingerprint)


def streams_of(group: Sequence[Prepared]) -> tuple[Stream, ...]:
    """The streams of a group, in the order of its job.

    Queries that share a pass on a stream may be removed, also the first one, so the order depends on none of them.
    """
    streams, shares_pass = group[0].bound.streams, group[0].bound.shares_pass
    return tuple(sorted(streams, key=lambda stream: stream.name.lower())) if shares_pass else streams


def relations_of(group: Sequence[Prepared]) -> list[Relation]:
    """The relations that the conditions of a group use, each once."""
    used = (relation for prepared in group for relation in prepared.bound.declared_relations)
    return list({relation.name.lower(): relation for relation in used}.values())
