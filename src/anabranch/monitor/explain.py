"""The plan of a MONITOR query, in words."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.language.nodes import PredictedSource
from anabranch.monitor.analysis import EXPECTED, MUST, MonitorAnalysis, objection
from anabranch.monitor.numbers import Interval, Numbers
from anabranch.monitor.query import BoundMonitor
from anabranch.plan import ConstraintGraph, Edge, Plan, Step

_SEMANTICS = {
    EXPECTED: "predictions are taken as true; the probability says how sure that is",
    "MAY": "a match is where the truth, within its error, satisfies all constraints with a probability above 0",
    MUST: "a match is where the truth, within its error, satisfies all constraints with probability 1",
}


def plan(analysis: MonitorAnalysis) -> Plan:
    """Say how a query will be run."""
    query = analysis.query
    return Plan(
        query=query.name,
        kind="MONITOR",
        classification="value constraints" if len(query.operands) == 1 else "window join of predictions",
        why=tuple(_why(analysis)),
        method="exact",
        routing=_routing(analysis),
        cost=_cost(analysis),
        steps=tuple(_steps(analysis)),
        streams=_streams(query),
        refused=objection(analysis),
        graph=_graph(analysis),
        span=query.span,
    )


def _streams(query: BoundMonitor) -> str:
    if query.buffer is not None and len(query.operands) > 2:
        return "a BUFFER serves one or two names; leave it out, or ask about pairs"
    return "yes"


def _why(analysis: MonitorAnalysis) -> Iterator[str]:
    for form, numbers in analysis.forms:
        yield f"{_form(analysis, form)} must be {_numbers(numbers)}"
    yield _SEMANTICS[analysis.query.semantics]
    if len(analysis.operands) > 1:
        within = analysis.query.within
        yield f"two instants may be {within:g} apart" if within else "all values are compared at the same instant"


def _form(analysis: MonitorAnalysis, form: tuple[int, int]) -> str:
    names = [f"{analysis.operands[operand].label}.{column}" for operand, column in analysis.values]
    return names[form[0]] if form[1] < 0 else f"{names[form[0]]} - {names[form[1]]}"


def _numbers(numbers: Numbers) -> str:
    return " or ".join(f"in {_interval(each)}" for each in numbers) or "a number that there is not"


def _interval(each: Interval) -> str:
    return f"{'(' if each.low_open else '['}{each.low:g}, {each.high:g}{')' if each.high_open else ']'}"


def _routing(analysis: MonitorAnalysis) -> str:
    if analysis.equated is not None:
        pairs = zip(analysis.operands, analysis.equated, strict=True)
        return f"predictions meet by {' = '.join(f'{operand.label}.{column}' for operand, column in pairs)}"
    if len(analysis.operands) == 1:
        return "by key"
    size = {2: "pair", 3: "triple"}.get(len(analysis.operands), "four")
    return f"every {size} of parts of all keys has a bucket; a prediction goes to all buckets of its part"


def _cost(analysis: MonitorAnalysis) -> str:
    if len(analysis.operands) == 1:
        return "time grows with the predictions"
    return "time grows with the predictions, and with those choices of them whose swept boxes meet"


def _steps(analysis: MonitorAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    for stream in query.streams:
        if isinstance(stream.source, PredictedSource):
            yield Step(
                "report", f"{stream.name}: sensors report what {stream.source.stream} says, by the threshold policy"
            )
    yield Step("apply", "each prediction from its time until its period has passed, or its key's next one")
    if len(query.operands) > 1:
        yield Step("search", "candidates by the cells of a grid, of time and of the values whose difference is bounded")
    yield Step("clip", "the instants that match, as a polygon for each connected region, and its validity interval")
    if query.semantics != MUST:
        yield Step("weigh", "the highest probability over each region")
    passed = "the watermark" if query.max_delay is None else f"the watermark, MAX DELAY {query.max_delay:g} behind,"
    yield Step("note", f"live, an answer is tentative until {passed} has passed its end: a prediction may still cut it")
    if query.every is not None:
        yield Step("note", f"live, every {query.every:g} the part that is validated so far is shown too, as partial")
    if query.buffer is not None and len(query.operands) > 1:
        policy = (query.discard or "").lower()
        yield Step(
            "note",
            f"live, at most {query.buffer:,} predictions of a stream are held, in one place: {policy} goes first",
        )
        yield Step("note", "over an archive BUFFER is not needed, and passed over")


def _graph(analysis: MonitorAnalysis) -> ConstraintGraph:
    """The operands, and what holds between them."""
    alone: dict[int, list[str]] = {number: [] for number in range(len(analysis.operands))}
    edges = []
    for form, numbers in analysis.forms:
        owners = sorted({analysis.values[value][0] for value in form if value >= 0})
        label = f"{_form(analysis, form)} {_numbers(numbers)}"
        if len(owners) == 1:
            alone[owners[0]].append(label)
        else:
            one, other = (analysis.operands[owner].label for owner in owners)
            edges.append(Edge(one, other, label, True))
    nodes = tuple((operand.label, "; ".join(alone[number])) for number, operand in enumerate(analysis.operands))
    return ConstraintGraph(nodes, tuple(edges))
