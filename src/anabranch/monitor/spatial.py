"""Binds conditions on locations: `DISTANCE(a, b) <= 400`, `DISTANCE(a, 'POINT(1 2)') <= 5`, `WITHIN(a, 'POLYGON...')`.

The location of a prediction are the two columns of SPACE, which are also values of its stream.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from anabranch.binding.derived_streams import projected_space
from anabranch.binding.typed import MIRRORED, Constant, Operation, Reference, Typed, walk
from anabranch.catalog import Catalog, Stream
from anabranch.language.findings import Findings, shown
from anabranch.language.nodes import PredictedSource
from anabranch.monitor.areas import OUTSIDE, WITHIN
from anabranch.monitor.overlay import union
from anabranch.monitor.polygons import EXAMPLE, NotAnArea, rings_of
from anabranch.monitor.query import BoundArea

#: The functions of locations.
FUNCTIONS = ("DISTANCE", "WITHIN", "CONTAINS")

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POINT = re.compile(rf"\s*POINT\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*\)\s*", re.IGNORECASE)
_EXAMPLE = "write, for example, DISTANCE(a, b) <= 5"
#: The longest distance on the globe, in metres: not a quarter of a great circle. So the disk around a point that is not
#: beyond the horizon does not reach the point opposite the origin.
_FARTHEST = 1e7


def is_spatial(condition: Typed) -> bool:
    """Whether a condition is about locations."""
    return any(isinstance(node, Operation) and node.op in ("distance", "within") for node in walk(condition))


class SpatialBinder:
    """Binds the conditions on locations of one query; `streams` is by the names of operands."""

    def __init__(self, streams: Mapping[str, Stream | None], catalog: Catalog, findings: Findings) -> None:
        self.streams, self.catalog, self.findings = streams, catalog, findings

    def areas(self, conditions: Iterable[Typed], negated: bool = False) -> tuple[BoundArea, ...]:
        """The conditions, or their negations, without those that are reported as findings."""
        areas = [self.area(condition, negated) for condition in conditions]
        return tuple(area for area in areas if area is not None)

    def area(self, condition: Typed, negated: bool = False) -> BoundArea | None:
        """One condition; NOT is resolved."""
        if isinstance(condition, Operation) and condition.op == "not":
            return self.area(condition.arguments[0], not negated)
        if isinstance(condition, Operation) and condition.op == "within":
            return self.within(condition, negated)
        if isinstance(condition, Operation) and condition.op == "windowed":
            area, (window,) = self.area(condition.arguments[0], negated), _number(condition.arguments[1]) or (None,)
            return area and replace(area, window=window)
        if isinstance(condition, Operation) and condition.op in ("and", "or"):
            return self.union(condition, negated)
        if not (isinstance(condition, Operation) and condition.op in MIRRORED):
            self.report_junction(condition)
            return None
        op, (left, right) = condition.op, condition.arguments
        if not (isinstance(left, Operation) and left.op == "distance"):
            op, left, right = MIRRORED[op], right, left
        if not (isinstance(left, Operation) and left.op == "distance") or (bound := _number(right)) is None:
            message = "DISTANCE can only be compared with a number"
            self.findings.add("not-a-constraint", message, condition.span, _EXAMPLE)
            return None
        if op not in _NEGATED:
            message = f"DISTANCE cannot be compared by {op}, only by <, <=, > and >="
            self.findings.add("not-a-constraint", message, condition.span, _EXAMPLE)
            return None
        return self.distance(_NEGATED[op] if negated else op, left, bound[0])

    def distance(self, op: str, call: Operation, bound: float | None) -> BoundArea | None:
        """A DISTANCE of two operands, or of one and a point."""
        one, other = call.arguments
        if isinstance(one, Constant):
            one, other = other, one
        first = self.location(one)
        if first is None:
            return None
        if isinstance(other, Constant):
            match = _POINT.fullmatch(str(other.value))
            if match is None:
                message = f"{shown(str(other.value))} is not the well-known text of a point"
                self.findings.add("not-a-geometry", message, other.span, "write a point, such as 'POINT(1 2)'")
                return None
            point = (float(match[1]), float(match[2]))
            area = BoundArea(first, None, point, op, bound, span=call.span, origin=self.origin_of(one))
            return area if self.is_on_map(area, other) else None
        second = self.location(other)
        if second is None:
            return None
        if first == second:
            message = "this is the DISTANCE of a location from itself, which is 0"
            self.findings.add("not-a-constraint", message, call.span, "name two operands")
            return None
        if self.origin_of(one) != self.origin_of(other):
            message = "these locations are not projected from the globe with the same ORIGIN"
            hint = "give both streams the same SPACE (lon, lat) GEODESIC ORIGIN (...)"
            self.findings.add("not-supported", message, call.span, hint)
            return None
        area = BoundArea(first, second, (0.0, 0.0), op, bound, span=call.span, origin=self.origin_of(one))
        return area if self.is_on_map(area, other) else None

    def is_on_map(self, area: BoundArea, argument: Typed) -> bool:
        """Whether an area can be projected from the globe; reports a distance or a point beyond the horizon."""
        if area.origin is None:
            return True
        if abs(area.bound or 0.0) > _FARTHEST:
            message = f"a DISTANCE on the globe cannot be compared with more than {_FARTHEST:,.0f} metres"
            self.findings.add("out-of-range", message, area.span, "compare it with a shorter distance")
            return False
        if area.other is None and not _is_near(area.point, area.origin):
            message = "this point is no longitude and latitude within 90 degrees of the ORIGIN"
            self.findings.add("out-of-range", message, argument.span, "write 'POINT(lon lat)', or move the ORIGIN")
            return False
        return True

    def within(self, call: Operation, negated: bool) -> BoundArea | None:
        """A polygon that an operand must be in, or outside of."""
        argument, area = call.arguments
        if not isinstance(area, Constant):
            message = "WITHIN takes an operand and a polygon"
            self.findings.add("not-a-constraint", message, call.span, "write WITHIN(a, 'POLYGON(...)')")
            return None
        location = self.location(argument)
        if location is None:
            return None
        if self.origin_of(argument) is not None:
            message = "MONITOR has WITHIN only in the plane, not on the globe"
            self.findings.add("not-supported", message, call.span, "write DISTANCE(a, 'POINT(lon lat)') <= metres")
            return None
        try:
            rings = rings_of(str(area.value))
        except NotAnArea as reason:
            self.findings.add("not-a-geometry", f"{shown(str(area.value))} {reason}", area.span, EXAMPLE)
            return None
        return BoundArea(location, None, (0.0, 0.0), OUTSIDE if negated else WITHIN, 0.0, rings, call.span)

    def union(self, condition: Operation, negated: bool) -> BoundArea | None:
        """Polygons of one operand: in at least one of which it must be, or in none."""
        if not all(is_spatial(part) for part in condition.arguments):
            self.report_junction(condition)
            return None
        areas = self.areas(condition.arguments, negated)
        if len(areas) < len(condition.arguments):
            return None
        op = WITHIN if (condition.op == "or") != negated else OUTSIDE
        if any((area.one, area.op) != (areas[0].one, op) for area in areas):
            self.report_junction(condition)
            return None
        return replace(areas[0], rings=union([area.rings for area in areas]), span=condition.span)

    def report_junction(self, condition: Typed) -> None:
        """Report conditions that are joined and are not one polygon."""
        message = "conditions on locations can only be joined by AND, or by OR if all are WITHIN of one name"
        self.findings.add("not-a-constraint", message, condition.span, "write a query for each part")

    def location(self, argument: Typed) -> tuple[Reference, Reference] | None:
        """The x and the y of an operand; reports one whose location is not predicted."""
        stream = self.streams.get(argument.owner or "") if isinstance(argument, Reference) else None
        if not isinstance(argument, Reference) or argument.name != "*" or stream is None:
            message = "the location of a prediction must be two values"
            hint = "name an operand whose stream has SPACE (x, y), with x and y in VALUE"
            self.findings.add("not-a-location", message, argument.span, hint)
            return None
        values = {value.name.lower(): value for value in stream.values}
        missing = [name for name in stream.declaration.space or () if name.lower() not in values]
        if missing:
            message = f"{stream.name} does not predict {shown(missing[0])}, which is a coordinate of its SPACE"
            self.findings.add("not-a-location", message, argument.span, f"add {missing[0]} to VALUE")
            return None
        if stream.declaration.geodesic and not isinstance(stream.source, PredictedSource):
            message = f"{stream.name} is GEODESIC, but it predicts degrees, and its locations are not known in metres"
            hint = "predict it from positions: PREDICTED FROM a stream with SPACE (lon, lat) GEODESIC ORIGIN (...)"
            self.findings.add("not-supported", message, argument.span, hint)
            return None
        x, y = (values[name.lower()] for name in stream.declaration.space or ())
        owner = argument.owner
        return (
            Reference(owner, x.name.lower(), x.type, span=argument.span),
            Reference(owner, y.name.lower(), y.type, span=argument.span),
        )

    def origin_of(self, argument: Typed) -> tuple[float, float] | None:
        """The ORIGIN from which an operand is projected; None if its location is in the plane."""
        stream = self.streams.get(argument.owner or "") if isinstance(argument, Reference) else None
        if stream is None or not isinstance(stream.source, PredictedSource):
            return None
        positions = self.catalog.get(stream.source.stream)
        projected = projected_space(stream, positions) if isinstance(positions, Stream) else None
        return None if projected is None else projected[1]


def _is_near(point: tuple[float, float], origin: tuple[float, float]) -> bool:
    """Whether a point is a longitude and a latitude, and at most 90 degrees from an origin."""
    if not (abs(point[0]) <= 180 and abs(point[1]) <= 90):
        return False
    angle = math.radians(point[0] - origin[0])
    at, of = math.radians(point[1]), math.radians(origin[1])
    return math.sin(of) * math.sin(at) + math.cos(of) * math.cos(at) * math.cos(angle) >= 0


def _number(tree: Typed) -> tuple[float | None] | None:
    """A constant number, which may be NULL, in a tuple; None for anything else."""
    sign = 1.0
    while isinstance(tree, Operation) and tree.op == "negate":
        sign, tree = -sign, tree.arguments[0]
    if not isinstance(tree, Constant) or isinstance(tree.value, str | bool):
        return None
    if tree.value is None:
        return (None,)
    return (sign * tree.value,) if math.isfinite(tree.value) else None
