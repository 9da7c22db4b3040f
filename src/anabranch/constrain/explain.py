"""The plan of a CONSTRAIN query, for `explain`, with the graph of its constraints."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from anabranch.binding.time_bounds import is_begin, time_bound
from anabranch.binding.typed import Constant, Operation, Typed, walk
from anabranch.binding.words import condition_text, count_of, duration_text
from anabranch.constrain.analysis import LOOSE, NOINDEX, TIGHT, ConstrainAnalysis, strategy_of
from anabranch.constrain.arguments import OF_AREA, SPATIAL
from anabranch.constrain.comparisons import Columns, checks_of
from anabranch.constrain.factors import CONFIDENCE, N_WORLDS
from anabranch.constrain.location_errors import EXPECTED, MAY, MUST
from anabranch.constrain.query import BoundConstrain, BoundCounted, mentions
from anabranch.errors import Finding
from anabranch.plan import ConstraintGraph, Edge, Plan, Step

#: The kernel stores sets of variables as the bits of one 64-bit number.
MOST_VARIABLES = 64

_STRATEGIES = {
    LOOSE: "in a spatial grid, until no event of another variable can follow",
    TIGHT: "in a spatial grid, as long as every other variable has, or can still get, a matching event",
    NOINDEX: "in one list per variable, as long as every other variable has, or can still get, a matching event",
}


_SEMANTICS = {
    MAY: "bounds on distances are widened by both errors: ",
    MUST: "bounds on distances are narrowed by both errors: all of them are true for any true locations (MUST)",
    EXPECTED: "bounds on distances are widened by both errors: answers can be true (EXPECTED)",
}


def plan(analysis: ConstrainAnalysis) -> Plan:
    """Describe how a query is run, or why it cannot run."""
    query = analysis.query
    unbounded = analysis.unbounded()
    return Plan(
        query=query.name,
        kind="CONSTRAIN",
        classification=_classification(analysis),
        why=tuple(_why(analysis)),
        method=_method(analysis),
        routing=_routing(analysis),
        cost=_cost(analysis),
        steps=tuple(_steps(analysis)),
        streams="yes" if unbounded is None else _unbounded_text(*unbounded),
        refused=_objection(analysis),
        graph=_graph(analysis),
        span=query.span,
    )


def _is_sampled(analysis: ConstrainAnalysis) -> bool:
    """Whether probabilities are those of sampled worlds."""
    return analysis.query.is_expected and bool(analysis.factors.joint)


def _method(analysis: ConstrainAnalysis) -> str:
    if not _is_sampled(analysis):
        return "exact"
    reason = f"{analysis.factors.shared} is in several conditions on true locations"
    return f"sampling in {N_WORLDS:,} worlds, with confidence {CONFIDENCE:g}: {reason}"


def _objection(analysis: ConstrainAnalysis) -> Finding | None:
    """Why a query cannot run; None if it can."""
    query = analysis.query
    return analysis.contradiction() or _too_many(query) or _two_spaces(query) or _bad_geometry(query)


def _too_many(query: BoundConstrain) -> Finding | None:
    if len(query.variables) <= MOST_VARIABLES:
        return None
    message = f"{query.name} has {len(query.variables)} variables (at most {MOST_VARIABLES} are allowed)"
    return Finding("too-many", message, "use one variable for several events, as in v*5", query.span)


def _two_spaces(query: BoundConstrain) -> Finding | None:
    """Report a query with events both in the plane and on the globe, or both with two and with three coordinates."""
    heights = {stream.has_height: stream for stream in query.streams if len(stream.declaration.space or ()) > 1}
    if len(heights) == 2:
        message = f"stream {heights[True].name} has three coordinates, but stream {heights[False].name} has two"
        return Finding("different-space", message, "give both a SPACE with as many columns", query.span)
    spaces = {stream.declaration.geodesic: stream for stream in query.streams if stream.declaration.space}
    if len(spaces) < 2:
        return None
    message = f"stream {spaces[True].name} is GEODESIC, but stream {spaces[False].name} is planar"
    return Finding("different-space", message, "declare both with GEODESIC, or both without", query.span)


def _bad_geometry(query: BoundConstrain) -> Finding | None:
    """Report a string that is used as a geometry but is not valid."""
    for condition in query.conditions:
        on_globe = any(query.stream_of[owner].declaration.geodesic for owner, _ in mentions(condition))
        for node in walk(condition):
            if not isinstance(node, Operation) or node.op not in (*SPATIAL, *OF_AREA):
                continue
            for part in node.arguments:
                if isinstance(part, Constant):
                    # Shapely is imported only for queries with a geometry.
                    from anabranch.constrain.geometry import fault_of

                    fault = fault_of(str(part.value), on_globe)
                    if fault is not None:
                        message = f"this is not a valid geometry: {fault.reason}"
                        return Finding("not-a-geometry", message, fault.hint, part.span)
    return None


def _unbounded_text(one: str, other: str) -> str:
    """Why a query cannot stream, and how to fix it."""
    one, other = one.rstrip("'"), other.rstrip("'")
    if one == other:
        pair, bound = f"two events of {one}", f"SPAN({one}, {one}) <= 60"
    else:
        pair, bound = f"{one} and {other}", f"{one}.t - {other}.t IN [-60, 60]"
    return f"the time between {pair} is not bounded, so events would be kept forever; add a bound such as {bound}"


def _classification(analysis: ConstrainAnalysis) -> str:
    variables = analysis.query.variables
    number = sum(variable.count for variable in variables)
    events = f"{number} or more events" if analysis.query.growing else count_of(number, "event")
    absent = " and ".join(f"no {variable.label}" for variable in variables if variable.is_negated)
    return f"configuration of {events}{absent and f', and {absent} with them'}"


def _why(analysis: ConstrainAnalysis) -> Iterator[str]:
    for variable, own in zip(analysis.query.variables, analysis.unary, strict=True):
        each = "each event of " if variable.is_set else "NOT " if variable.is_negated else ""
        condition = f"has {condition_text(own)}" if own is not None else "is any event"
        yield f"{each}{variable.label} {condition} (stream {variable.stream.name})"
    for stream in analysis.query.streams if analysis.query.semantics else ():
        if stream.location_error is not None:
            amount = stream.location_error.source or _length(analysis, float(stream.location_error.amount or 0))
            yield f"true locations of {stream.name} are at most {amount} from the readings, which are compared below"
    for edge in _edges(analysis):
        yield f"{edge.one} and {edge.other}: {edge.label}{'' if edge.stated else ' (implied)'}"


def _routing(analysis: ConstrainAnalysis) -> str:
    columns, _ = analysis.equal_columns
    parts = []
    if columns and columns[0]:
        names = [variable.label for variable in analysis.query.variables]
        parts += [
            " = ".join(map(".".join, zip(names, equal_columns, strict=True)))
            for equal_columns in zip(*columns, strict=True)
        ]
    elif analysis.extent < inf:
        parts.append(f"cells of space ({_length(analysis, 8 * analysis.extent)} wide)")
    if 0 < analysis.span < inf:
        parts.append(f"periods of time ({_amount(analysis, 8 * analysis.span)} long)")
    elif analysis.span == 0:
        parts.append("time")
    if not parts:
        return "all events go to one bucket: no equality, distance or time bounds all variables"
    borders = "an event near a border goes to both sides, and each answer is emitted once"
    return f"events are routed by {' and '.join(parts)}; {borders}"


def _cost(analysis: ConstrainAnalysis) -> str:
    if analysis.unbounded() is not None:
        return "time grows with the events that match each variable; memory grows with all of them"
    within = f"within {_amount(analysis, analysis.span)} of each other"
    near = f" and at most {_length(analysis, analysis.extent)} apart" if analysis.extent < inf else ""
    growing = analysis.query.growing
    sets = f"; the number of sets of {growing.label} can grow exponentially with these events" if growing else ""
    worlds = f"; each answer is tested in {N_WORLDS:,} worlds" if _is_sampled(analysis) else ""
    return (
        f"time and memory grow with the events that match a variable {within}{near}, and with the answers{sets}{worlds}"
    )


def _steps(analysis: ConstrainAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    yield Step("select", "find the variables that each event matches; evaluate each distinct condition once")
    strategy = strategy_of([analysis])
    default = "" if query.strategy else " (default)"
    yield Step("keep", f"{strategy}{default}: {_STRATEGIES[strategy]}")
    yield Step("search", "find the kept events that match each new one, then configurations by forward checking")
    _, rest = checks_of(analysis, 0, Columns())
    absent = {variable.name: variable.label for variable in query.variables if variable.is_negated}
    for condition in rest:
        added = [f" with {absent[owner]}" for owner, _ in mentions(condition) if owner in absent]
        yield Step("filter", f"{condition_text(condition)}: tested on complete configurations{''.join(added)}")
    if query.semantics is not None:
        together = _together(analysis) if query.semantics == MAY else ""
        yield Step("error", _SEMANTICS[query.semantics] + together)
    if query.growing is not None:
        sets = "maximal sets" if query.is_certain else "sets, each of which is maximal in some world,"
        yield Step("grow", f"from the first event of {query.growing.label} to all {sets} that begin with it")
    if absent:
        yield Step("exclude", f"configurations to which an event can be added as {' or '.join(absent.values())}")
    if 0 < analysis.delay < inf:
        longest = f"at most {_amount(analysis, analysis.delay)} after its latest event"
        yield Step("wait", f"on a stream, until the watermark has passed every event that can be added, {longest}")
    if not query.is_certain:
        absent_text = ", and that no event happened which can be added" if absent or query.growing else ""
        yield Step("weigh", f"the product over different keys and times{absent_text}; alternatives exclude each other")
    if query.is_expected:
        how = "; conditions on the same location are tested in sampled worlds" if analysis.factors.joint else ""
        yield Step("locate", f"the probability of the conditions on true locations, uniform within their errors{how}")
    if query.is_early:
        yield Step("emit", "on a stream, each configuration when its last event arrives, before the watermark")


def _together(analysis: ConstrainAnalysis) -> str:
    """What an answer of MAY says about all its bounds."""
    awaited = {variable.name for variable in analysis.query.variables if variable.is_awaited}
    is_awaited = any({owner for owner, _ in mentions(condition)} & awaited for condition in analysis.query.located)
    factors = analysis.factors
    if not is_awaited and (not factors.joint or (analysis.tests_together and factors.are_stars)):
        return "all of them can be true together (MAY)"
    if analysis.tests_together:
        return "those of each event can be true together; no answer is missing, but some may not be true (MAY)"
    return "each of them can be true, considered alone; no answer is missing, but some may not be true (MAY)"


# ---------------------------------------------------------------- the graph


def _graph(analysis: ConstrainAnalysis) -> ConstraintGraph:
    nodes = tuple(
        (
            _node_name(variable),
            condition_text(own) if own else "",
        )
        for variable, own in zip(analysis.query.variables, analysis.unary, strict=True)
    )
    node_names = {variable.label: name for variable, (name, _) in zip(analysis.query.variables, nodes, strict=True)}
    edges = [
        Edge(
            node_names.get(edge.one.rstrip("'"), edge.one),
            node_names.get(edge.other.rstrip("'"), edge.other),
            edge.label,
            edge.stated,
        )
        for edge in _edges(analysis)
    ]
    return ConstraintGraph(nodes, tuple(dict.fromkeys(edges)))


def _node_name(variable: BoundCounted) -> str:
    if variable.is_negated:
        return f"NOT {variable.label}"
    if variable.grows:
        return f"AT LEAST {variable.count} {variable.label}"
    return f"{variable.label}*{variable.count}" if variable.count > 1 else variable.label


def _edges(analysis: ConstrainAnalysis) -> Iterator[Edge]:
    """The constraints between two slots: the implied bounds, and the conditions that are no bounds."""
    for i in range(len(analysis.slots)):
        for j in range(i + 1, len(analysis.slots)):
            stated = any(pair in bounds for pair in ((i, j), (j, i)) for bounds in (analysis.later, analysis.apart))
            conditions = list(_other_conditions(analysis, i, j))
            bounds = (_time_between(analysis, i, j), _distance_between(analysis, i, j))
            parts = [part for part in (*bounds, *conditions) if part]
            if parts:
                yield Edge(analysis.name(i), analysis.name(j), ", ".join(parts), stated or bool(conditions))


def _time_between(analysis: ConstrainAnalysis, i: int, j: int) -> str:
    """How much later the event of the second slot is."""
    least, most = 0.0 - analysis.times.value[j, i], analysis.times.value[i, j]
    if least == -inf and most == inf:
        return ""
    if least == most:
        return "at the same time" if least == 0 else f"{_amount(analysis, least)} later"
    if least == -most:
        return f"at most {_amount(analysis, most)} apart in time"
    if most == inf:
        return f"at least {_amount(analysis, least)} later"
    if least == -inf:
        return f"at most {_amount(analysis, most)} later"
    return f"{_amount(analysis, least)} to {_amount(analysis, most)} later"


def _amount(analysis: ConstrainAnalysis, number: float) -> str:
    """A duration: in a suitable unit if times are TIMESTAMPs, else the number."""
    return duration_text(number, analysis.query.streams[0].time.type)


def _length(analysis: ConstrainAnalysis, number: float) -> str:
    """A distance: in metres or kilometres on the globe, else the number."""
    if not any(stream.declaration.geodesic for stream in analysis.query.streams):
        return f"{number:.12g}"
    return f"{number / 1000:g} km" if number >= 1000 else f"{number:g} m"


def _distance_between(analysis: ConstrainAnalysis, i: int, j: int) -> str:
    most = analysis.distances.bound(i, j)
    if most.value == inf:
        return ""
    return f"{'<' if most.strict else '<='} {_length(analysis, most.value)} apart"


def _other_conditions(analysis: ConstrainAnalysis, i: int, j: int) -> Iterator[str]:
    """The conditions between two slots that are no bounds on time or distance."""
    names = {analysis.slots[i].name, analysis.slots[j].name}
    for condition in analysis.joint:
        has_distance = isinstance(condition, Operation) and any(
            isinstance(node, Operation) and node.op in ("distance", "span") for node in walk(condition)
        )
        is_bound = has_distance or _bounds_ends(analysis, condition)
        if {owner for owner, _ in mentions(condition)} == names and not is_bound:
            yield condition_text(condition)


def _bounds_ends(analysis: ConstrainAnalysis, condition: Typed) -> bool:
    """Whether a condition bounds the time between the ends of two events, which is shown as a bound."""
    streams = analysis.query.stream_of
    bound = time_bound(streams, condition)
    return bound is not None and not any(is_begin(streams, time) for time in (bound.one, bound.other))
