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
from anabranch.monitor.polygons import EXAMPLE, NotAnArea, rings_of
from anabranch.monitor.query import BoundArea

#: The functions of locations.
FUNCTIONS = ("DISTANCE", "WITHIN", "CONTAINS")

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POINT = re.compile(rf"\s*POINT\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*\)\s*", re.IGNORECASE)
_EXAMPLE = "write, for example, DISTANCE(a, b) <= 5"


def is_spatial(condition: Typed) -> bool:
    """Whether a condition is about locations."""
    return any(isinstance(node, Operation) and node.op in ("distance", "within") for node in walk(condition))


class SpatialBinder:
    """Binds the conditions on locations of one query; `streams` is by the names of operands."""

    def __init__(self, streams: Mapping[str, Stream | None], catalog: Catalog, findings: Findings) -> None:
        self.streams, self.catalog, self.findings = streams, catalog, findings

    def areas(self, conditions: Iterable[Typed]) -> tuple[BoundArea, ...]:
        """The conditions without those that are reported as findings."""
        areas = [self.area(condition) for condition in conditions]
        return tuple(area for area in areas if area is not None)

    def area(self, condition: Typed, negated: bool = False) -> BoundArea | None:
        """One condition; NOT is resolved."""
        if isinstance(condition, Operation) and condition.op == "not":
            return self.area(condition.arguments[0], not negated)
        if isinstance(condition, Operation) and condition.op == "within":
            return self.within(condition, negated)
        if isinstance(condition, Operation) and condition.op == "windowed":
            area, window = self.area(condition.arguments[0], negated), _number(condition.arguments[1])
            return area and replace(area, window=window and window[0])
        if not (isinstance(condition, Operation) and condition.op in MIRRORED):
            message = "conditions on locations can only be joined by AND"
            self.findings.add("not-a-constraint", message, condition.span, "write a query for each part")
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
            return BoundArea(first, None, (float(match[1]), float(match[2])), op, bound, span=call.span)
        second = self.location(other)
        if second is None:
            return None
        if first == second:
            message = "this is the DISTANCE of a location from itself, which is 0"
            self.findings.add("not-a-constraint", message, call.span, "name two operands")
            return None
        return BoundArea(first, second, (0.0, 0.0), op, bound, span=call.span)

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
        try:
            rings = rings_of(str(area.value))
        except NotAnArea as reason:
            self.findings.add("not-a-geometry", f"{shown(str(area.value))} {reason}", area.span, EXAMPLE)
            return None
        return BoundArea(location, None, (0.0, 0.0), OUTSIDE if negated else WITHIN, 0.0, rings, call.span)

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
        if self.is_on_globe(stream):
            message = f"{stream.name} is GEODESIC, but MONITOR has DISTANCE and WITHIN only in the plane"
            one, other = stream.declaration.space or ("lon", "lat")
            bounds = f"ABS(a.{one} - b.{one}) <= 5 AND ABS(a.{other} - b.{other}) <= 5"
            hint = f"bound the metres east and north instead: {bounds}"
            self.findings.add("not-supported", message, argument.span, hint)
            return None
        x, y = (values[name.lower()] for name in stream.declaration.space or ())
        owner = argument.owner
        return (
            Reference(owner, x.name.lower(), x.type, span=argument.span),
            Reference(owner, y.name.lower(), y.type, span=argument.span),
        )

    def is_on_globe(self, stream: Stream) -> bool:
        """Whether a stream, or the positions from which it is predicted, are longitudes and latitudes."""
        if stream.declaration.geodesic:
            return True
        positions = self.catalog.get(stream.source.stream) if isinstance(stream.source, PredictedSource) else None
        return isinstance(positions, Stream) and projected_space(stream, positions) is not None


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
