"""The areas of a query: sets in the plane in which locations, or differences of locations, must be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf
from typing import TYPE_CHECKING

from anabranch.errors import Finding
from anabranch.monitor.alternatives import Form
from anabranch.monitor.numbers import Interval, Numbers, common, satisfying
from anabranch.monitor.overlay import union
from anabranch.monitor.polygons import Ring, is_convex
from anabranch.monitor.query import BoundArea

if TYPE_CHECKING:
    from anabranch.monitor.analysis import MonitorAnalysis

#: The operators of polygons.
WITHIN, OUTSIDE = "WITHIN", "OUTSIDE"

#: No distance is below 0.
_DISTANCES: Numbers = (Interval((0.0, 0), (inf, 0)),)
#: A MUST bound that is computed from decimal errors may be too small by a rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Area:
    """The distance of a location from `center` must be in `distances`, which is one interval, or empty.

    `forms` are the x and the y: values of one operand, or differences of those of two. If there are `rings`, the
    location must be within this polygon instead, or, if `is_outside`, outside of it. On the globe, `origin` is that of
    the projection, and `center` is in degrees (`globe.py`).
    """

    forms: tuple[Form, Form]
    center: tuple[float, float]
    distances: Numbers
    rings: tuple[Ring, ...] = ()
    is_outside: bool = False
    origin: tuple[float, float] | None = None

    @property
    def high(self) -> float:
        """The largest distance."""
        return self.distances[0].high if self.distances else -inf

    @property
    def is_convex(self) -> bool:
        """Whether all points between two points of the area are in it."""
        if self.rings:
            return not self.is_outside and is_convex(self.rings)
        return not self.distances or self.distances[0].begin <= (0.0, 0)

    @property
    def is_of_two(self) -> bool:
        """Whether this is the distance of two locations."""
        return self.forms[0][1] >= 0

    @property
    def is_scaled(self) -> bool:
        """Whether this is the distance of two locations on the globe, which depends on the scale of the projection."""
        return self.origin is not None and self.is_of_two


def merged_areas(areas: Iterable[tuple[tuple[Form, Form], BoundArea]]) -> tuple[Area, ...]:
    """The areas of conditions with their forms; one for all conditions on the same distance in the plane.

    On the globe, circles around one point have different centers in the plane. What is outside of several polygons is
    outside of their union.
    """
    merged: dict[tuple[tuple[Form, Form], tuple[float, float]], Area] = {}
    others: dict[Area, None] = {}
    outside: dict[tuple[Form, Form], list[tuple[Ring, ...]]] = {}
    for forms, area in areas:
        if area.op == OUTSIDE:
            outside.setdefault(forms, []).append(area.rings)
            continue
        if area.rings:
            others[Area(forms, area.point, _DISTANCES, area.rings)] = None
            continue
        numbers = common(_DISTANCES, satisfying(area.op, area.bound, absolute=False))
        own = Area(forms, area.point, numbers, origin=area.origin)
        if own.origin is not None and not own.is_scaled:
            others[own] = None
        else:
            known = merged.get((forms, area.point), own)
            merged[forms, area.point] = replace(own, distances=common(known.distances, numbers))
    for forms, polygons in outside.items():
        rings = union(polygons) if len(polygons) > 1 else polygons[0]
        others[Area(forms, (0.0, 0.0), _DISTANCES, rings, is_outside=True)] = None
    return (*merged.values(), *others)


def is_curved(area: Area, analysis: MonitorAnalysis) -> bool:
    """Whether the matching instants of an area have a curved boundary: a distance of locations at two instants."""
    return analysis.dims > 1 and area.is_of_two


def text_of(area: Area, analysis: MonitorAnalysis) -> str:
    """The distance, or the condition on a polygon, as a query states it."""
    one, *others = [analysis.values[value][0] for value in area.forms[0] if value >= 0]
    first = analysis.operands[one].label
    if area.rings:
        rings = ", ".join(f"({', '.join(f'{x:g} {y:g}' for x, y in (*ring, ring[0]))})" for ring in area.rings)
        return f"{'NOT ' if area.is_outside else ''}WITHIN({first}, 'POLYGON({rings})')"
    x, y = area.center
    second = analysis.operands[others[0]].label if others else f"'POINT({x:g} {y:g})'"
    return f"DISTANCE({first}, {second})"


def contradiction_of_areas(analysis: MonitorAnalysis) -> Finding | None:
    """Why no locations satisfy the conditions of a query; None if some may."""
    query = analysis.query
    if any(area.bound is None for area in query.areas):
        return None
    for area in analysis.areas:
        text, span = text_of(area, analysis), query.areas[-1].span
        if not area.distances:
            message = f"{query.name}: no locations satisfy the conditions on {text}"
            return Finding("contradiction", message, "relax or remove one of them", span)
        error = hypot(*(analysis.error_of(form) for form in area.forms))
        is_in_plane = not area.rings and area.origin is None
        if query.semantics == "MUST" and is_in_plane and area.high * (1 + _ROUNDING) < error < inf:
            message = (
                f"{query.name}: {text} below {area.high:g} is never certain (SEMANTICS MUST): the true locations may "
                f"be {error:g} off"
            )
            return Finding("contradiction", message, "allow a longer distance, or use SEMANTICS MAY", span)
    return None


def objection_to_areas(analysis: MonitorAnalysis) -> Finding | None:
    """Why the regions or the probabilities of the areas cannot be computed; None if they can."""
    query = analysis.query
    for area in analysis.areas:
        if not is_curved(area, analysis):
            continue
        text = text_of(area, analysis)
        if analysis.dims > 2:
            names = f"over {len(analysis.operands)} names with WITHIN above 0"
            hint = "use WITHIN 0, or write a query for each pair"
            return Finding("not-supported", f"{query.name}: {text} is not supported {names}", hint, query.span)
        if not (area.is_convex and area.high < inf):
            message = f"{query.name}: {text} > ... with WITHIN above 0 leaves regions with holes, and is not supported"
            return Finding("not-supported", message, "use <= or <, or WITHIN 0", query.span)
        if analysis.alternatives:
            others = "constraints that allow two intervals, such as ABS(...) > 5"
            message = f"{query.name}: {text} with WITHIN above 0 cannot be combined with {others}"
            return Finding("not-supported", message, "use WITHIN 0, or write a query for each", query.span)
    return None if query.semantics == "MUST" else _shared_value(analysis)


def _shared_value(analysis: MonitorAnalysis) -> Finding | None:
    """A value with an error that is in an area and in another constraint."""
    query = analysis.query
    groups = [(text_of(area, analysis), area.forms) for area in analysis.areas]
    groups += [(analysis.text_of(form), (form, form)) for form, _ in analysis.forms]
    columns = [_uncertain(forms, analysis) for _, forms in groups]
    for number in range(len(analysis.areas)):
        for other in range(number + 1, len(groups)):
            for operand, name in sorted(columns[number] & columns[other]):
                label = f"{analysis.operands[operand].label}.{name}"
                both = f"{groups[number][0]} and {groups[other][0]}"
                message = f"{query.name}: {label} has an error and is in two constraints, {both}"
                return Finding("not-supported", message, "write a query for each, or use SEMANTICS MUST", query.span)
    return None


def _uncertain(forms: Sequence[Form], analysis: MonitorAnalysis) -> set[tuple[int, str]]:
    """The columns of forms that have an error, each with the number of its operand."""
    return set().union(*(analysis.uncertain_columns(value) for form in forms for value in form if value >= 0))
