"""The plan of a CONSTRAIN query, in words and as a graph."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from anabranch.binding.typed import Constant, Operation, Typed, walk
from anabranch.binding.words import condition_text, count_of
from anabranch.constrain.analysis import (
    LOOSE,
    NOINDEX,
    TIGHT,
    ConstrainAnalysis,
    is_begin,
    mentions,
    strategy_of,
    time_bound,
)
from anabranch.constrain.comparisons import Columns, checks_of
from anabranch.constrain.query import BoundConstrain
from anabranch.errors import Finding
from anabranch.language.types import Type
from anabranch.plan import ConstraintGraph, Edge, Plan, Step

#: The kernel notes the variables that a role has met in the bits of one number.
MOST_VARIABLES = 64

_STRATEGIES = {
    LOOSE: "in cells of space, until no other variable can follow",
    TIGHT: "in cells of space, and no longer than each other variable has an event that fits, or can get one",
    NOINDEX: "in a list a variable, and no longer than each other variable has an event that fits, or can get one",
}


def plan(analysis: ConstrainAnalysis) -> Plan:
    """Say how a query will be run, or why it cannot be."""
    query = analysis.query
    unbounded = analysis.unbounded()
    return Plan(
        query=query.name,
        kind="CONSTRAIN",
        classification=_classification(analysis),
        why=tuple(_why(analysis)),
        method="exact",
        routing=_routing(analysis),
        cost=_cost(analysis),
        steps=tuple(_steps(analysis)),
        streams="yes" if unbounded is None else _endless(*unbounded),
        refused=_objection(analysis),
        graph=_graph(analysis),
        span=query.span,
    )


def _objection(analysis: ConstrainAnalysis) -> Finding | None:
    """What stands against a query as it is written."""
    query = analysis.query
    return analysis.contradiction() or _too_many(query) or _two_spaces(query) or _bad_geometry(query)


def _too_many(query: BoundConstrain) -> Finding | None:
    if len(query.variables) <= MOST_VARIABLES:
        return None
    message = f"{query.name} has {len(query.variables)} variables, and at most {MOST_VARIABLES} are allowed"
    return Finding("too-many", message, "let one variable stand for several events, as in v*5", query.span)


def _two_spaces(query: BoundConstrain) -> Finding | None:
    """Events in the plane and on the globe cannot be in one query."""
    spaces = {stream.declaration.geodesic: stream for stream in query.streams if stream.declaration.space}
    if len(spaces) < 2:
        return None
    message = f"{spaces[True].name} is on the globe (GEODESIC) and {spaces[False].name} in the plane"
    return Finding("different-space", message, "declare the SPACE of both in the same way", query.span)


def _bad_geometry(query: BoundConstrain) -> Finding | None:
    """A text that stands for a geometry and is none."""
    for condition in query.conditions:
        for node in walk(condition):
            if not isinstance(node, Operation) or node.op not in ("within", "intersects", "distance"):
                continue
            for part in node.arguments:
                if isinstance(part, Constant):
                    # Imported when it is needed: most queries have no geometry.
                    from anabranch.constrain.geometry import fault_of

                    fault = fault_of(str(part.value))
                    if fault:
                        hint = "write well-known text, such as 'POLYGON((0 0, 1 0, 1 1, 0 0))'"
                        return Finding("not-a-geometry", f"this is no geometry: {fault}", hint, part.span)
    return None


def _endless(one: str, other: str) -> str:
    """Why a query cannot stream, and what would mend it."""
    one, other = one.rstrip("'"), other.rstrip("'")
    if one == other:
        pair, bound = f"two events of {one}", f"SPAN({one}, {one}) <= 60"
    else:
        pair, bound = f"{one} and {other}", f"{one}.t - {other}.t IN [-60, 60]"
    return f"nothing bounds the time between {pair}, so events would be kept for good; add a bound such as {bound}"


def _classification(analysis: ConstrainAnalysis) -> str:
    variables = analysis.query.variables
    events = sum(variable.count for variable in variables)
    return f"configuration of {count_of(events, 'event')}"


def _why(analysis: ConstrainAnalysis) -> Iterator[str]:
    for variable, demand in zip(analysis.query.variables, analysis.unary, strict=True):
        many = "each event of " if variable.count > 1 else ""
        asked = f"has {condition_text(demand)}" if demand is not None else "is any event"
        yield f"{many}{variable.label} {asked} (of {variable.stream.name})"
    for edge in _edges(analysis):
        yield f"{edge.one} and {edge.other}: {edge.label}{'' if edge.given else ' (follows)'}"


def _routing(analysis: ConstrainAnalysis) -> str:
    columns, _ = analysis.equal_columns
    ways = []
    if columns and columns[0]:
        names = [variable.label for variable in analysis.query.variables]
        ways.append(
            "by "
            + " and ".join(
                " = ".join(map(".".join, zip(names, each, strict=True))) for each in zip(*columns, strict=True)
            )
        )
    elif analysis.extent < inf:
        ways.append(f"by cells of space, {_length(analysis, 8 * analysis.extent)} wide")
    if 0 < analysis.span < inf:
        ways.append(f"by stretches of time, {_amount(analysis, 8 * analysis.span)} long")
    elif analysis.span == 0:
        ways.append("by instants")
    if not ways:
        return "all events in one place: no equality, distance or time bounds all variables"
    return f"events meet {' and '.join(ways)}; one near an edge goes to both sides, and each answer comes from one"


def _cost(analysis: ConstrainAnalysis) -> str:
    if analysis.unbounded() is not None:
        return "time grows with the events that fit each variable, memory with all of them"
    within = f"within {_amount(analysis, analysis.span)} of each other"
    near = f" and {_length(analysis, analysis.extent)} apart at most" if analysis.extent < inf else ""
    return f"time and memory grow with the events that fit a variable {within}{near}, and with the answers"


def _steps(analysis: ConstrainAnalysis) -> Iterator[Step]:
    query = analysis.query
    yield Step("read", ", ".join(stream.name for stream in query.streams))
    yield Step("select", "the variables that each event can be, each different demand asked once")
    strategy = strategy_of([analysis])
    chosen = "" if query.strategy else " (chosen)"
    yield Step("keep", f"{strategy}{chosen}: {_STRATEGIES[strategy]}")
    yield Step("search", "for each new event the kept ones that fit it, then whole configurations by forward checking")
    _, rest = checks_of(analysis, 0, Columns())
    for condition in rest:
        yield Step("filter", f"{condition_text(condition)}: asked of whole configurations")


# ---------------------------------------------------------------- the graph


def _graph(analysis: ConstrainAnalysis) -> ConstraintGraph:
    nodes = tuple(
        (
            f"{variable.label}*{variable.count}" if variable.count > 1 else variable.label,
            condition_text(demand) if demand else "",
        )
        for variable, demand in zip(analysis.query.variables, analysis.unary, strict=True)
    )
    starred = {variable.label: name for variable, (name, _) in zip(analysis.query.variables, nodes, strict=True)}
    edges = [
        Edge(
            starred.get(edge.one.rstrip("'"), edge.one),
            starred.get(edge.other.rstrip("'"), edge.other),
            edge.label,
            edge.given,
        )
        for edge in _edges(analysis)
    ]
    return ConstraintGraph(nodes, tuple(dict.fromkeys(edges)))


def _edges(analysis: ConstrainAnalysis) -> Iterator[Edge]:
    """What holds between two places: the closed bounds, and the conditions that are no bounds."""
    for i in range(len(analysis.places)):
        for j in range(i + 1, len(analysis.places)):
            given = any(pair in bounds for pair in ((i, j), (j, i)) for bounds in (analysis.later, analysis.apart))
            asked = list(_asked(analysis, i, j))
            parts = [part for part in (_time_between(analysis, i, j), _way_between(analysis, i, j), *asked) if part]
            if parts:
                yield Edge(analysis.name(i), analysis.name(j), ", ".join(parts), given or bool(asked))


def _time_between(analysis: ConstrainAnalysis, i: int, j: int) -> str:
    """How much later the second of two places is."""
    least, most = -float(analysis.times.value[j, i]), float(analysis.times.value[i, j])
    if least == -inf and most == inf:
        return ""
    if least == most:
        return "at the same time" if least == 0 else f"{_amount(analysis, least)} later"
    if least == -most:
        return f"at most {_amount(analysis, most)} from each other in time"
    if most == inf:
        return f"at least {_amount(analysis, least)} later"
    if least == -inf:
        return f"at most {_amount(analysis, most)} later"
    return f"{_amount(analysis, least)} to {_amount(analysis, most)} later"


def _amount(analysis: ConstrainAnalysis, number: float) -> str:
    """A time in a unit that suits it, where times are TIMESTAMPs; else the number."""
    if analysis.query.streams[0].time.type is not Type.TIMESTAMP:
        return f"{number:.12g}"
    for seconds, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if abs(number) >= seconds and number % (seconds / 4) == 0:
            return count_of(number / seconds, unit)
    return count_of(number, "second")


def _length(analysis: ConstrainAnalysis, number: float) -> str:
    """A distance: in metres or kilometres on the globe, else the number."""
    if not any(stream.declaration.geodesic for stream in analysis.query.streams):
        return f"{number:.12g}"
    return f"{number / 1000:g} km" if number >= 1000 else f"{number:g} m"


def _way_between(analysis: ConstrainAnalysis, i: int, j: int) -> str:
    most = analysis.distances.bound(i, j)
    if most.value == inf:
        return ""
    return f"{'<' if most.strict else '<='} {_length(analysis, most.value)} apart"


def _asked(analysis: ConstrainAnalysis, i: int, j: int) -> Iterator[str]:
    """The conditions between two places that are no bounds on time or distance."""
    names = {analysis.places[i].name, analysis.places[j].name}
    for condition in analysis.joint:
        bound = isinstance(condition, Operation) and any(
            isinstance(node, Operation) and node.op in ("distance", "span") for node in walk(condition)
        )
        if {owner for owner, _ in mentions(condition)} == names and not bound and not _is_of_ends(analysis, condition):
            yield condition_text(condition)


def _is_of_ends(analysis: ConstrainAnalysis, condition: Typed) -> bool:
    """Whether a condition bounds the time between the ends of two events, which is shown as such."""
    found = time_bound(analysis.query, condition)
    return found is not None and not any(is_begin(analysis.query, each) for each in found[1:3])
