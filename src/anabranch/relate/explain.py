"""The plan of a RELATE query, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.binding.words import condition_text
from anabranch.catalog import Stream
from anabranch.language.nodes import SegmentedSource
from anabranch.language.unparse import unparse
from anabranch.plan import Plan, Step
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.query import BoundQuantified, BoundRelate


def plan(analysis: RelateAnalysis) -> Plan:
    """Describe how a query is run."""
    query = analysis.query
    return Plan(
        query=query.name,
        kind="RELATE",
        classification="quantified relation of segments",
        why=_why(analysis),
        method="exact",
        routing=_routing(analysis),
        cost=_cost(analysis),
        steps=tuple(_steps(analysis)),
        streams="yes",
        span=query.span,
    )


def _why(analysis: RelateAnalysis) -> tuple[str, ...]:
    query = analysis.query
    laws = [
        f"{what} of {stream.name} last {unparse(law)}"
        for stream in query.streams
        for clause, law in stream.segment_laws
        for what in ("segments" if clause == "DURATION" else "gaps",)
    ]
    windows = "their windows, between the recorded events around them"
    return (
        f"{_quantified(query.first)} must be {_relations(query)} {_quantified(query.second)}",
        *_conditions(analysis),
        *laws,
        f"lost events keep their order, and lie in {windows}, where these distributions expect them"
        if laws
        else f"lost events keep their order, and may be anywhere in {windows}",
    )


def _conditions(analysis: RelateAnalysis) -> Iterator[str]:
    """What WHERE says about segments."""
    for operand, condition in zip(analysis.query.operands, analysis.counted, strict=True):
        if condition is not None:
            yield f"only segments of {operand.label} count that satisfy {condition_text(condition)}"
    if analysis.compared is not None:
        yield f"two segments are related only if {condition_text(analysis.compared)}"


def _cost(analysis: RelateAnalysis) -> str:
    query, first = analysis.query, analysis.query.first
    overlap = "pairs" if analysis.holds_unrelated else "pairs that overlap in time"
    counted = (
        "the number of segments of the first operand" if query.count else f"the {_keyword(first)} of the first operand"
    )
    cost = (
        f"time grows with the {overlap}, times their events; for consecutive lost events, times "
        f"the events of the other entity that may lie between them; and with {counted}"
    )
    if analysis.has_segment_conditions:
        cost += "; conditions on segments cost one look-up for every two segments of a pair"
    if any(stream.segment_laws for stream in query.streams):
        cost += "; with DURATION or GAP, times the k of ERLANG of both entities"
    return cost


def _keyword(operand: BoundQuantified) -> str:
    """The quantifier whose number the kernel counts up to; ALL and SOME count as AT LEAST."""
    if operand.at_most is None:
        return "AT LEAST"
    return "EXACTLY" if operand.at_least else "AT MOST"


def _quantified(operand: BoundQuantified) -> str:
    if operand.at_most is not None:
        number = f"{_keyword(operand).lower()} {operand.at_most}"
        return f"{number} segment{'' if operand.at_most == 1 else 's'} of {operand.label}"
    segments = {None: "every segment", 1: "some segment"}.get(operand.at_least, f"at least {operand.at_least} segments")
    return f"{segments} of {operand.label}"


def _relations(query: BoundRelate) -> str:
    if len(query.relations) > 6:
        return f"in one of {len(query.relations)} relations to"
    return f"in the relation {' or '.join(query.relations)} to"


def _routing(analysis: RelateAnalysis) -> str:
    pairs = ", ".join(
        f"{first.owner}.{first.name} = {second.owner}.{second.name}" for first, second in analysis.equalities
    )
    if pairs:
        return f"entities are routed by {pairs}; each is sent once"
    return "WHERE equates no columns: entities go to several blocks (on a stream, buckets), so that any two share one"


def _steps(analysis: RelateAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    for stream in query.streams:
        if isinstance(stream.source, SegmentedSource):
            yield Step("segment", _runs(stream, stream.source))
    yield Step("assemble", "check each entity, and determine the window of each lost event")
    has_join = analysis.equated or analysis.joined
    pairs = "the pairs of entities that WHERE joins" if has_join else "every pair of entities"
    yield Step("pair", f"{pairs}{', never a key with itself' if analysis.same_stream else ''}")
    disjoint = [name for name in ("PRECEDES", "PRECEDED BY") if not analysis.holds_apart(name)]
    if disjoint:
        yield Step("skip", f"pairs that do not overlap in time ({' and '.join(disjoint)} not in the query)")
    yield Step("sweep", "run the kernel over the recorded instants of each pair, in one pass")
    for operand in query.operands:
        if operand.at_most is None and operand.at_least is not None and operand.at_least > 1:
            segments = f"fewer than {operand.at_least} segments"
            yield Step("note", f"for {operand.label}, an entity with {segments} has probability 0")
    if analysis.holds_unrelated:
        yield Step("note", "pairs without any related segments have answers too: a quantifier admits no segment")
    yield from _stream_notes(analysis)


def _runs(stream: Stream, source: SegmentedSource) -> str:
    lasting = "" if source.at_least is None else f", of at least {unparse(source.at_least)}"
    silent = "" if source.silence is None else f"; an end is lost after a silence of {unparse(source.silence)}"
    still_open = "lost" if stream.declaration.horizon else "left out: there is no HORIZON"
    runs = f"runs of rows of {source.stream} with {unparse(source.condition)}{lasting}{silent}"
    return f"{stream.name}: {runs}; segments that are open at the end of the input are {still_open}"


def _stream_notes(analysis: RelateAnalysis) -> Iterator[Step]:
    """Notes on what a stream keeps, and for how long."""
    query = analysis.query
    unbounded = [
        stream.name for stream in query.streams if stream.declaration.horizon or stream.declaration.window is not None
    ]
    late_starts = [stream.name for stream in query.streams if stream.start is not None]
    for stream in query.streams:
        clauses = stream.declaration
        if query.timeout is None and clauses.length is None and clauses.role is None:
            ending = "only end with the input; add TIMEOUT, LENGTH or ROLE"
            yield Step("note", f"streaming: entities of {stream.name} {ending}")
        elif query.timeout is None:
            ending = "whose last event is lost only ends with the input; add TIMEOUT"
            yield Step("note", f"streaming: an entity of {stream.name} {ending}")
        if analysis.pairs_with_later(stream.name):
            reason = "no segment need be related" if analysis.holds_unrelated else "they may precede later ones"
            yield Step("note", f"streaming: entities of {stream.name} are kept forever: {reason}")
        elif unbounded:
            reason = f"the HORIZON or WINDOW of {' and '.join(unbounded)} lets lost events lie in the past"
            yield Step("note", f"streaming: entities of {stream.name} are kept forever: {reason}")
        elif late_starts:
            reason = f"a row of {' and '.join(late_starts)} comes when its segment has ended"
            yield Step("note", f"streaming: entities of {stream.name} are kept forever: {reason}")
