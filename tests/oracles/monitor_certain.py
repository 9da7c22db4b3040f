"""The certain range in the MONITOR oracle: the latest instants at which the probability of a region reaches a level.

The points of a region with the latest instant s are on two segments: ta is s and tb is at most s, or the other way
round. `highest_at` searches them for the highest probability. The range of s in which it reaches the level is found by
steps and bisection. With one operand, or WITHIN 0, the segments are one point, and nothing is searched on them.

For level 1, the points are those at which all constraints are certain, as MUST defines it: polygons in fractions.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce

from tests.oracles.monitor_numbers import predicted
from tests.oracles.monitor_predictions import Number
from tests.oracles.monitor_regions import HalfPlane, Piece, Point, Region, clipped

#: Steps over the instants of a region, on a segment, and of the bisections.
STEPS, STEPS_ON_SEGMENT, HALVINGS = 24, 8, 40
#: The rounding error of a probability in doubles.
ROUNDING = 1e-12


def certain_range(region: Region, level: float) -> tuple[Number, Number] | None:
    """The infimum and the supremum of max(ta, tb) over the points that reach a level; None if there are none."""
    if level == 1:
        return _where_certain(region)
    begin, end = region.valid
    instants = [begin + (end - begin) * Fraction(step, STEPS) for step in range(STEPS + 1)]
    reached = [highest_at(region, instant) >= level - ROUNDING for instant in instants]
    if not any(reached):
        return None
    first, last = reached.index(True), STEPS - reached[::-1].index(True)
    return (
        _edge(region, level, instants[first], instants[max(first - 1, 0)]),
        _edge(region, level, instants[last], instants[min(last + 1, STEPS)]),
    )


def _edge(region: Region, level: float, inside: Fraction, outside: Fraction) -> Fraction:
    """The instant between two at which the region ceases to reach a level."""
    for _ in range(HALVINGS if inside != outside else 0):
        middle = Fraction(float((inside + outside) / 2))
        if highest_at(region, middle) >= level - ROUNDING:
            inside = middle
        else:
            outside = middle
    return inside


def highest_at(region: Region, latest: Number) -> float:
    """The highest probability among the points of a region with this latest instant; 0 if there are none."""
    latest, one, none = Fraction(latest), Fraction(1), Fraction(0)
    at_first = [HalfPlane(one, none, latest), HalfPlane(-one, none, -latest), HalfPlane(none, one, latest)]
    at_second = [HalfPlane(none, one, latest), HalfPlane(none, -one, -latest), HalfPlane(one, none, latest)]
    best = 0.0
    for piece, planes in itertools.product(region.pieces, (at_first, at_second)):
        corners = reduce(clipped, planes, list(piece.corners))
        if corners:
            start, end = min(corners), max(corners)
            best = max(best, _highest_on(region, (float(start[0]), float(start[1])), (float(end[0]), float(end[1]))))
    return best


def _highest_on(region: Region, start: Point, end: Point) -> float:
    """The highest probability on a segment: at the best of equal steps, then by halving the steps around it."""
    groups = [group.rounded for group in region.groups if group.uncertain]

    def probability(share: float) -> float:
        point = tuple(one + share * (other - one) for one, other in zip(start, end, strict=True))
        return math.prod(group.probability(point) for group in groups)

    if start == end:
        return probability(0.0)
    step = 1 / STEPS_ON_SEGMENT
    top, share = max((probability(number * step), number * step) for number in range(STEPS_ON_SEGMENT + 1))
    while step > 1e-9:
        step /= 2
        top, share = max(
            (top, share),
            *((probability(at), at) for at in (share - step, share + step) if 0 <= at <= 1),
        )
    return top


def _where_certain(region: Region) -> tuple[Number, Number] | None:
    """The range in which all constraints are certain."""
    alternatives = [
        [group.between(form, interval) for interval in predicted(numbers, group.error(form), "MUST")]
        for group in region.groups
        for form, numbers in group.uncertain.items()
    ]
    pieces = [
        piece.cut(itertools.chain.from_iterable(planes))
        for piece, planes in itertools.product(region.pieces, itertools.product(*alternatives))
    ]
    parts = tuple(Piece(piece.planes, piece.corners) for piece in pieces if piece.corners)
    return Region(parts, region.groups).valid if parts else None
