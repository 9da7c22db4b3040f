"""The plan of a MONITOR query, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.binding.words import condition_text
from anabranch.language.nodes import PredictedSource
from anabranch.monitor.analysis import EXPECTED, MUST, MonitorAnalysis, objection
from anabranch.monitor.areas import is_curved, text_of
from anabranch.monitor.contradictions import contradiction
from anabranch.monitor.formulas import FormIn, Formula, RowTest, Some, constraints_of
from anabranch.monitor.numbers import Interval, Numbers
from anabranch.monitor.query import BoundMonitor
from anabranch.plan import ConstraintGraph, Edge, Plan, Step

_SEMANTICS = {
    EXPECTED: "a match is where the predictions satisfy all constraints; the errors determine its probability",
    "MAY": "a match is where the true values, within their errors, satisfy all constraints with a probability above 0",
    MUST: "a match is where the true values, within their errors, satisfy all constraints with probability 1",
}


def plan(analysis: MonitorAnalysis) -> Plan:
    """Describe how a query is run."""
    query = analysis.query
    return Plan(
        query=query.name,
        kind="MONITOR",
        classification=_classification(query),
        why=tuple(_why(analysis)),
        method=_method(analysis),
        routing=_routing(analysis),
        cost=_cost(analysis),
        steps=tuple(_steps(analysis)),
        streams=_streams(query),
        refused=contradiction(analysis) or objection(analysis),
        graph=_graph(analysis),
        span=query.span,
    )


def _classification(query: BoundMonitor) -> str:
    if query.nearest is not None:
        return "nearest neighbours among predictions"
    return "value constraints" if len(query.operands) == 1 else "window join of predictions"


def _method(analysis: MonitorAnalysis) -> str:
    if any(area.is_scaled for area in analysis.areas):
        return "exact, with distances on the globe up to the change of scale along a prediction"
    return "exact"


def _streams(query: BoundMonitor) -> str:
    if query.buffer is not None and len(query.operands) > 2:
        return "BUFFER supports one or two names; remove it, or write a query for each pair"
    if query.buffer is not None and len(query.operands) > 1 and any(stream.accelerations for stream in query.streams):
        return "BUFFER supports linear predictions only; remove it, or the columns of accelerations"
    return "yes"


def _why(analysis: MonitorAnalysis) -> Iterator[str]:
    for part in analysis.conjuncts:
        if isinstance(part, Some):
            yield f"at least one must hold: {_text(analysis, part)}"
        elif isinstance(part, FormIn) and not analysis.is_of_instants(part.form):
            yield f"{analysis.text_of(part.form)} must be {_numbers(part.numbers)}"
    for area in analysis.areas:
        yield f"{text_of(area, analysis)} must {'hold' if area.rings else f'be {_numbers(area.distances)}'}"
    if analysis.query.nearest is not None:
        one, other = (operand.label for operand in analysis.operands)
        nearest = f"the {analysis.query.nearest:,} nearest {other} of each {one}"
        yield f"{nearest} are kept at each instant, and all that are as near"
    yield _SEMANTICS[analysis.query.semantics]
    yield from _windows(analysis)


def _windows(analysis: MonitorAnalysis) -> Iterator[str]:
    """How far apart the instants of the operands may be."""
    windows = {window for _, window in analysis.windows}
    if len(windows) > 1:
        for (one, other), window in analysis.windows:
            names = f"the instants of {analysis.operands[one].label} and {analysis.operands[other].label}"
            yield f"{names} are {f'at most {window:g} apart' if window else 'the same'}"
    elif windows:
        yield (
            f"compared instants are at most {analysis.window:g} apart"
            if analysis.window
            else "all values are compared at the same instant"
        )


def _text(analysis: MonitorAnalysis, formula: Formula) -> str:
    """A formula as text; OR within AND is in brackets."""
    if isinstance(formula, FormIn) and analysis.is_of_instants(formula.form):
        return f"instants at most {formula.numbers[0].high:g} apart"
    if isinstance(formula, FormIn):
        return f"{analysis.text_of(formula.form)} {_numbers(formula.numbers)}"
    if isinstance(formula, RowTest):
        return condition_text(analysis.row_tests[formula.number])
    if isinstance(formula, Some):
        return " or ".join(_text(analysis, part) for part in formula.parts)
    texts = ((isinstance(part, Some), _text(analysis, part)) for part in formula.parts)
    return " and ".join(f"({text})" if has_or else text for has_or, text in texts)


def _numbers(numbers: Numbers) -> str:
    return " or ".join(f"in {_interval(interval)}" for interval in numbers) or "in the empty set"


def _interval(interval: Interval) -> str:
    left, right = "(" if interval.low_open else "[", ")" if interval.high_open else "]"
    return f"{left}{interval.low:g}, {interval.high:g}{right}"


def _routing(analysis: MonitorAnalysis) -> str:
    if analysis.equated is not None:
        pairs = zip(analysis.operands, analysis.equated, strict=True)
        return f"predictions are routed by {' = '.join(f'{operand.label}.{column}' for operand, column in pairs)}"
    if len(analysis.operands) == 1:
        return "predictions are routed by key"
    if analysis.query.nearest is not None:
        return f"each {analysis.operands[0].label} has a bucket, by its key; all predictions go to all buckets"
    combination = {2: "pair", 3: "triple"}.get(len(analysis.operands), "quadruple")
    return f"each {combination} of parts of the keys has a bucket; a prediction goes to all buckets of its part"


def _cost(analysis: MonitorAnalysis) -> str:
    if len(analysis.operands) == 1:
        return "time grows with the predictions"
    if analysis.query.nearest is not None:
        one, other = (operand.label for operand in analysis.operands)
        squares = f"with the square of the candidates of each {one}: the {other} that match it"
        copies = "" if analysis.equated is not None else "; each bucket holds all predictions"
        return f"time grows with the predictions, and {squares}{copies}"
    alternatives = ", and with the alternatives of OR" if analysis.formula is not None else ""
    return f"time grows with the predictions, and with the combinations whose bounding boxes intersect{alternatives}"


def _steps(analysis: MonitorAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    for stream in query.streams:
        if isinstance(stream.source, PredictedSource):
            source = stream.source.stream
            yield Step("report", f"{stream.name}: derive the reports of sensors from {source} by the update threshold")
    yield Step("apply", "each prediction applies from its time until its period ends or its key has a newer one")
    if len(query.operands) > 1:
        yield Step("search", "find candidates with a grid over time and over the values whose difference is bounded")
    yield Step("clip", "compute a polygon of matching instants and a validity interval for each connected region")
    if accelerated := analysis.accelerated:
        what = f"{', '.join(accelerated)} {'is' if len(accelerated) == 1 else 'are'} accelerated"
        yield Step("bend", f"{what}: find the roots of polynomials, and test the constraints between them")
    if any(is_curved(area, analysis) for area in analysis.areas):
        yield Step("bend", "cut the polygons by the curves of distances; boundaries are polygons within 1e-6 of them")
    if query.nearest is not None:
        yield Step("rank", "find when fewer than k others are nearer: distances change their order at known instants")
    if query.semantics != MUST:
        yield Step("weigh", f"find the highest probability over each region{_integration(analysis)}")
    if query.threshold > 0 and query.per is None:
        yield Step("certain", f"find when the probability is at least {query.threshold:g}")
    passed = "the watermark" if query.max_delay is None else f"the watermark minus MAX DELAY {query.max_delay:g}"
    yield Step("note", f"streaming: an answer is tentative until {passed} passes its end; a new prediction may cut it")
    if query.max_delay is None and len(query.streams) > 1:
        yield Step("note", "streaming: a stream without new rows delays the validation of all answers; add MAX DELAY")
    if query.every is not None:
        yield Step("note", f"streaming: the part validated so far is also emitted every {query.every:g}, as partial")
    if query.buffer is not None and len(query.operands) > 1:
        policy = (query.discard or "").lower()
        buffer = f"at most {query.buffer:,} predictions per stream are kept, in one bucket"
        yield Step("note", f"streaming: {buffer}; the prediction with the policy {policy} is discarded first")
        yield Step("note", "batch: BUFFER is ignored")


def _integration(analysis: MonitorAnalysis) -> str:
    """How constraints that OR joins or that share values are combined; nothing if there are none."""
    if analysis.formula is not None:
        return "; the probability at an instant is a sum over cases that exclude each other"
    groups = [columns for columns in analysis.connected_columns if len(analysis.forms_of(columns)) > 1]
    if not groups:
        return ""
    if all(map(analysis.is_tree, groups)):
        return "; constraints that share values are integrated value by value"
    return "; constraints that share values are integrated jointly"


def _graph(analysis: MonitorAnalysis) -> ConstraintGraph:
    """The operands, and the constraints between them."""
    own: dict[int, list[str]] = {number: [] for number in range(len(analysis.operands))}
    edges = []
    constraints = [part for conjunct in analysis.conjuncts for part in constraints_of(conjunct)]
    labels = [(part.form, _text(analysis, part)) for part in constraints if not analysis.is_of_instants(part.form)]
    for area in analysis.areas:
        numbers = "" if area.rings else f" {_numbers(area.distances)}"
        labels.append((area.forms[0], f"{text_of(area, analysis)}{numbers}"))
    for form, label in labels:
        owners = sorted({analysis.values[value][0] for value in form if value >= 0})
        if len(owners) == 1:
            own[owners[0]].append(label)
        else:
            one, other = (analysis.operands[owner].label for owner in owners)
            edges.append(Edge(one, other, label, True))
    nodes = tuple((operand.label, "; ".join(own[number])) for number, operand in enumerate(analysis.operands))
    return ConstraintGraph(nodes, tuple(edges))
