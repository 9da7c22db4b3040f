"""Conditions on locations with an ERROR: what the readings must satisfy so that the true locations may, or must.

The true location of an event is within its error of the reading. So the distance of two true locations is between the
distance of the readings minus both errors, but not below 0, and that distance plus both errors. Every number between
these ends is possible. A condition on the true distance becomes one on the distance of the readings.

In the plane, a location is in an area for some true locations if the reading is not further from the area than the
error, and for all of them if the reading is inside and not nearer to the edge than the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf, pi

from anabranch.binding.time_bounds import comparison
from anabranch.binding.typed import Constant, Operation, Reference, Typed, walk
from anabranch.catalog import Stream
from anabranch.constrain.arguments import SPATIAL, is_point_text
from anabranch.language.types import Type

MAY, MUST, EXPECTED = SEMANTICS = ("MAY", "MUST", "EXPECTED")

#: What readings must satisfy: an answer with a probability may be true.
OF_READINGS = {MAY: MAY, MUST: MUST, EXPECTED: MAY}

#: The semantics of conditions on an absent event: an event that may be there is not absent for sure.
OPPOSITE = {MAY: MUST, MUST: MAY}

#: No two points of the globe are further from each other on its surface, in metres.
_HALF_CIRCUMFERENCE = pi * 6_371_008.8


@dataclass(frozen=True, slots=True)
class TrueDistance:
    """A comparison of the true distance of an event, to another one or to a fixed point, with a number."""

    op: str
    distance: Operation
    bound: float
    condition: Operation

    @property
    def is_upper(self) -> bool:
        """Whether the bound is an upper one."""
        return self.op in ("<", "<=")

    def of_readings(self, semantics: str, streams: Mapping[str, Stream]) -> Typed:
        """The condition on the readings."""
        events = [part for part in self.distance.arguments if isinstance(part, Reference)]
        errors = [error for event in events if (error := _error(event, streams[event.owner or ""])) is not None]
        columns = [error for error in errors if isinstance(error, Reference)]
        bound: Typed = Constant(float(self.bound), Type.DOUBLE)
        if not self._is_decided(any(_has_great_circles(streams[event.owner or ""]) for event in events)):
            # A distance may be below a bound if its least value is, and must be if its greatest value is.
            sign = 1 if self.is_upper == (semantics == MAY) else -1
            constants = sum((error for error in errors if isinstance(error, Decimal)), Decimal(0))
            bound = Constant(float(Decimal(repr(self.bound)) + sign * constants), Type.DOUBLE)
            for column in columns:
                bound = Operation("+" if sign > 0 else "-", (bound, column), Type.DOUBLE)
        compared = Operation(self.op, (self.distance, bound), Type.BOOLEAN, self.condition.span)
        return _if_known(compared, columns)

    def _is_decided(self, is_great_circle: bool) -> bool:
        """Whether the condition has the same value for all distances, so that errors do not change it."""
        greatest = _HALF_CIRCUMFERENCE if is_great_circle else inf
        if self.op in ("<", ">="):
            return self.bound <= 0 or self.bound > greatest
        return self.bound < 0 or self.bound >= greatest


@dataclass(frozen=True, slots=True)
class TrueArea:
    """Whether the true location of an event is in an area of the plane, or on its edge if it `touches` it."""

    touches: bool
    event: Reference
    area: Typed
    condition: Operation

    def of_readings(self, semantics: str, streams: Mapping[str, Stream]) -> Typed:
        """The condition on the readings."""
        error = _error(self.event, streams[self.event.owner or ""])
        if error is None:
            return self.condition
        columns = [error] if isinstance(error, Reference) else []
        radius = error if isinstance(error, Reference) else Constant(float(error), Type.DOUBLE)
        if semantics == MAY:
            distance = self._of_area("edge" if self.touches else "gap")
            return _if_known(Operation("<=", (distance, radius), Type.BOOLEAN, self.condition.span), columns)
        # No location is on an edge for sure, unless it has no error.
        depth = Constant(0.0, Type.DOUBLE) if self.touches else self._of_area("depth")
        surely = Operation(">=", (depth, radius), Type.BOOLEAN)
        return _if_known(Operation("and", (self.condition, surely), Type.BOOLEAN, self.condition.span), columns)

    def _of_area(self, function: str) -> Typed:
        return Operation(function, (self.event, self.area), Type.DOUBLE, self.condition.span)


#: A condition on true locations.
TrueCondition = TrueDistance | TrueArea


def true_condition(condition: Typed) -> TrueCondition | None:
    """The condition as one on true locations that can be decided; None if it is another one."""
    return _true_distance(condition) or _true_area(condition)


def names_uncertain_location(condition: Typed, streams: Mapping[str, Stream | None]) -> bool:
    """Whether a condition has a function of a location with an ERROR."""
    functions = [node for node in walk(condition) if isinstance(node, Operation) and node.op in SPATIAL]
    events = [part for node in functions for part in node.arguments if isinstance(part, Reference) and part.name == "*"]
    known = [streams.get(event.owner or "") for event in events]
    return any(stream is not None and stream.location_error is not None for stream in known)


def _true_distance(condition: Typed) -> TrueDistance | None:
    """The condition as a comparison of a distance with a number; None if it is another one."""
    if isinstance(condition, Operation) and condition.op in ("within", "intersects"):
        if all(map(_is_event, condition.arguments)):  # two points
            distance = Operation("distance", condition.arguments, Type.DOUBLE, condition.span)
            return TrueDistance("<=", distance, 0.0, condition)
        return None
    compared = comparison(condition)
    if compared is None or not isinstance(condition, Operation) or compared[0] not in ("<", "<=", ">", ">="):
        return None
    op, left, right = compared
    if not isinstance(left, Operation) or left.op != "distance" or not isinstance(right, Constant):
        return None
    if not all(_is_event(part) or is_point_text(part) for part in left.arguments):
        return None
    return TrueDistance(op, left, right.value, condition) if isinstance(right.value, int | float) else None


def _true_area(condition: Typed) -> TrueArea | None:
    """The condition as one on an event and an area; None if it is another one."""
    if not isinstance(condition, Operation) or condition.op not in ("within", "intersects", "touches"):
        return None
    event, area = condition.arguments
    if condition.op != "within" and _is_event(area):
        event, area = area, event
    if not isinstance(event, Reference) or not _is_event(event) or _is_event(area):
        return None
    return TrueArea(condition.op == "touches", event, area, condition)


def _if_known(condition: Operation, errors: Sequence[Reference]) -> Operation:
    """The condition, if these errors have a meaning; one that is NULL or below 0 has none: the location is unknown."""
    if not errors:
        return condition
    known = [Operation(">=", (error, Constant(0.0, Type.DOUBLE)), Type.BOOLEAN) for error in errors]
    return Operation("and", (condition, *known), Type.BOOLEAN, condition.span)


def _error(event: Reference, stream: Stream) -> Decimal | Reference | None:
    """The error of the location of an event: a number, or the column that has it; None if there is none."""
    error = stream.location_error
    if error is None or error.source is None:
        return None if error is None else Decimal(repr(error.amount))
    kind = next(column.type for column in stream.values if column.name.lower() == error.source.lower())
    return Reference(event.owner, error.source.lower(), kind, mention=event.mention)


def _is_event(part: Typed) -> bool:
    """Whether an argument is an event that is a point."""
    return isinstance(part, Reference) and part.name == "*"


def _has_great_circles(stream: Stream) -> bool:
    return stream.declaration.geodesic and not stream.has_height
