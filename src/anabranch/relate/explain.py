"""The plan of a RELATE query, in words."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.plan import Plan, Step
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.query import BoundQuantified, BoundRelate


def plan(analysis: RelateAnalysis) -> Plan:
    """Say how a query will be run."""
    query = analysis.query
    return Plan(
        query=query.name,
        kind="RELATE",
        classification="quantified relation of segments",
        why=_why(query),
        method="exact",
        routing=_routing(analysis),
        cost=(
            "time grows with the pairs that may meet in time, times their events; for events lost in one run, times "
            "those of the other entity that may fall between them; and with the number that AT LEAST asks of the first"
        ),
        steps=tuple(_steps(analysis)),
        streams="yes",
        span=query.span,
    )


def _why(query: BoundRelate) -> tuple[str, ...]:
    return (
        f"{_quantified(query.first)} must lie {_relations(query)} {_quantified(query.second)}",
        "lost events lie anywhere in their windows, which end at the recorded ones around them, in their order",
    )


def _quantified(operand: BoundQuantified) -> str:
    many = {None: "every segment", 1: "some segment"}.get(operand.at_least, f"at least {operand.at_least} segments")
    return f"{many} of {operand.label}"


def _relations(query: BoundRelate) -> str:
    if len(query.relations) > 6:
        return f"in one of {len(query.relations)} relations to"
    return f"in the relation {' or '.join(query.relations)} to"


def _routing(analysis: RelateAnalysis) -> str:
    pairs = ", ".join(
        f"{first.owner}.{first.name} = {second.owner}.{second.name}" for first, second in analysis.equalities
    )
    if pairs:
        return f"entities meet by {pairs}; each travels once"
    return "WHERE equates no columns: entities meet in a square of blocks; each travels once a row and once a column"


def _steps(analysis: RelateAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    yield Step("assemble", "check each entity, and give every lost event its window")
    where = "every pair of entities" if query.where is None else "a join of entities by WHERE"
    yield Step("pair", f"{where}{', never a key with itself' if analysis.same_stream else ''}")
    apart = [name for name in ("PRECEDES", "PRECEDED BY") if not analysis.asks(name)]
    if apart:
        yield Step("skip", f"pairs wholly apart in time ({' and '.join(apart)} not asked for)")
    yield Step("sweep", "the kernel over the recorded instants of a pair, in one pass")
    for operand in query.operands:
        if operand.at_least is not None and operand.at_least > 1:
            yield Step(
                "note", f"an entity of fewer than {operand.at_least} segments as {operand.label} has probability 0"
            )
    yield from _stream_notes(analysis)


def _stream_notes(analysis: RelateAnalysis) -> Iterator[Step]:
    """What a live stream keeps, and for how long."""
    query = analysis.query
    reaching = [
        stream.name for stream in query.streams if stream.declaration.horizon or stream.declaration.window is not None
    ]
    for stream in query.streams:
        clauses = stream.declaration
        if query.timeout is None and clauses.length is None and clauses.role is None:
            yield Step("note", f"live, entities of {stream.name} end with the input only: give TIMEOUT, LENGTH or ROLE")
        elif query.timeout is None:
            yield Step("note", f"live, an entity of {stream.name} whose last event is lost ends with the input only")
        if analysis.lasts(stream.name):
            yield Step("note", f"live, entities of {stream.name} are kept for good: one may precede what comes later")
        elif reaching:
            why = f"the HORIZON or WINDOW of {' and '.join(reaching)} lets lost events reach back"
            yield Step("note", f"live, entities of {stream.name} are kept for good: {why}")
