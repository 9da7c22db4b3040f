"""The oracle of locations with an ERROR: tries true locations of all events, and compares their distances.

The true location of an event is any point of the disc with the radius of its error around its reading. For two events,
the oracle tries several radii and directions, among them both directions of the line through the two readings: there
are the pairs of points with the least and the greatest distance. A condition MAY be true if it is true for one of the
pairs of points, and MUST be true if it is true for all of them. `tuples` judges conditions one by one.

`can_be_true` judges all conditions on one event together: it tries the points of a fine grid for this event, and for
each of the others, at every such point, whether one of its locations has a suitable distance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]
Point = tuple[float, float]

#: Distances that differ by less are equal: points on the edge of a disc are rounded.
TOLERANCE = 1e-9


class Near(NamedTuple):
    """A condition on the distance of the events number i and j."""

    i: int
    j: int
    op: str
    bound: float


def tuples(
    rows: Sequence[Row], errors: Sequence[float | None], near: Sequence[Near], span: int, semantics: str, size: int
) -> Iterator[tuple[Row, ...]]:
    """Every tuple of different rows within a span of time for which all conditions may, or must, be true.

    `errors` are those of the rows; None is an error that is not known.
    """
    known = dict(zip(range(len(rows)), errors, strict=True))
    for chosen in itertools.permutations(range(len(rows)), size):
        times = [rows[number]["t"] for number in chosen]
        if max(times) - min(times) > span:
            continue
        if all(_is_true(rows, known, chosen[c.i], chosen[c.j], c, semantics) for c in near):
            yield tuple(rows[number] for number in chosen)


def _is_true(
    rows: Sequence[Row], errors: dict[int, float | None], one: int, other: int, condition: Near, semantics: str
) -> bool:
    a, b = ((rows[number]["x"], rows[number]["y"]) for number in (one, other))
    if None in (*a, *b) or errors[one] is None or errors[other] is None:
        return False
    true = (
        compare(condition.op, math.dist(p, q), condition.bound)
        for p in _disc(a, errors[one] or 0.0, b)
        for q in _disc(b, errors[other] or 0.0, a)
    )
    return any(true) if semantics == "MAY" else all(true)


def _disc(centre: Point, radius: float, other: Point) -> list[Point]:
    """Points of a disc: its centre, and points on circles in it, also in the directions to another point and back."""
    angle = math.atan2(other[1] - centre[1], other[0] - centre[0])
    angles = [angle + turn * math.pi / 4 for turn in range(8)]
    gap = math.dist(centre, other)
    radii = {radius * part / 4 for part in range(1, 5)} | {min(radius, gap), min(radius, gap / 2)}
    return [centre, *((centre[0] + r * math.cos(a), centre[1] + r * math.sin(a)) for r in radii for a in angles)]


def compare(op: str, distance: float, bound: float) -> bool:
    """Whether a distance satisfies a bound; equal up to the tolerance."""
    if abs(distance - bound) <= TOLERANCE:
        return op in ("<=", ">=")
    return (distance < bound) == (op in ("<", "<="))


class Reading(NamedTuple):
    """A reading with its error."""

    at: Point
    error: float


def can_be_true(centre: Reading, others: Sequence[tuple[Reading, str, float]], slack: float, steps: int = 60) -> bool:
    """Whether a location of the first event suits all others: each has an operator and a bound on the distance.

    All bounds are relaxed by the slack. A grid has no point on most edges: with a slack of one step it finds every
    possible location, and some that are not.
    """
    step = 2 * (centre.error + slack) / steps
    for i, j in itertools.product(range(steps + 1), repeat=2):
        x, y = centre.at[0] - centre.error - slack + i * step, centre.at[1] - centre.error - slack + j * step
        if math.dist((x, y), centre.at) <= centre.error + slack and all(
            _suits(math.dist((x, y), other.at), other.error, op, bound, slack) for other, op, bound in others
        ):
            return True
    return False


def _suits(gap: float, error: float, op: str, bound: float, slack: float) -> bool:
    """Whether a location within the error of a reading can be at a suitable distance from a point."""
    nearest, farthest = max(0.0, gap - error), gap + error
    return nearest <= bound + slack if op in ("<", "<=") else farthest >= bound - slack
