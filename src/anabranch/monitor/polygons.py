"""Polygons in well-known text: their rings, and whether these are the boundary of an area."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

Point = tuple[float, float]
#: A closed line: the first point is not repeated.
Ring = tuple[Point, ...]
Edge = tuple[float, float, float, float]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POINT = rf"\s*{_NUMBER}\s+{_NUMBER}\s*"
_RING = rf"\s*\({_POINT}(?:,{_POINT})*\)\s*"
_POLYGON = rf"\s*\({_RING}(?:,{_RING})*\)\s*"
_TEXT = re.compile(rf"\s*(?:POLYGON\s*{_POLYGON}|MULTIPOLYGON\s*\({_POLYGON}(?:,{_POLYGON})*\)\s*)", re.IGNORECASE)
EXAMPLE = "write one such as 'POLYGON((0 0, 4 0, 4 4, 0 0))'"


class NotAnArea(Exception):
    """Why a text is not the well-known text of an area."""


def rings_of(text: str) -> tuple[Ring, ...]:
    """The rings of a POLYGON or MULTIPOLYGON, with the area to their left; raises `NotAnArea`."""
    if _TEXT.fullmatch(text) is None:
        raise NotAnArea("is not the well-known text of a polygon")
    rings = [_ring(ring) for ring in re.findall(_RING, text)]
    edges = [edge for ring in rings for edge in _edges(ring)]
    if any(_cross(one, other) for one, other in combinations(edges, 2)):
        raise NotAnArea("has a boundary that crosses itself")
    if any(_overlap(one, other) for one, other in combinations(edges, 2)):
        raise NotAnArea("has two edges that overlap")
    return tuple(_oriented(ring, [other for other in rings if other is not ring]) for ring in rings)


def edges_of(rings: tuple[Ring, ...]) -> list[Edge]:
    """The edges of all rings."""
    return [edge for ring in rings for edge in _edges(ring)]


def is_convex(rings: tuple[Ring, ...]) -> bool:
    """Whether the area within the rings is convex."""
    (ring, *others) = rings
    turns = zip(ring, ring[1:] + ring[:1], ring[2:] + ring[:2], strict=True)
    return not others and all(_turn(*points) >= 0 for points in turns)


def _ring(text: str) -> Ring:
    numbers = [float(number) for number in re.findall(_NUMBER, text)]
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    if points[0] != points[-1]:
        raise NotAnArea("has a ring that does not end where it begins")
    ring = tuple(point for point, after in pairwise(points) if point != after)
    if len(ring) < 3 or _doubled_area(ring) == 0:
        raise NotAnArea("has a ring without an area")
    return ring


def _edges(ring: Ring) -> list[Edge]:
    return [(*point, *after) for point, after in zip(ring, ring[1:] + ring[:1], strict=True)]


def _oriented(ring: Ring, others: list[Ring]) -> Ring:
    """A ring with the area to its left: counter-clockwise, or clockwise if it is in an odd number of others."""
    is_hole = sum(_contains(other, ring[0]) for other in others) % 2 == 1
    return ring if (_doubled_area(ring) > 0) != is_hole else ring[::-1]


def _doubled_area(ring: Ring) -> float:
    return sum(x0 * y1 - x1 * y0 for x0, y0, x1, y1 in _edges(ring))


def _contains(ring: Ring, point: Point) -> bool:
    x, y = point
    crossings = (x < x0 + (y - y0) / (y1 - y0) * (x1 - x0) for x0, y0, x1, y1 in _edges(ring) if (y0 > y) != (y1 > y))
    return sum(crossings) % 2 == 1


def _cross(one: Edge, other: Edge) -> bool:
    """Whether two edges cross at an inner point of both."""
    a, b, c, d = one[:2], one[2:], other[:2], other[2:]
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0


def _overlap(one: Edge, other: Edge) -> bool:
    """Whether two edges are on one line, and have more than a point in common."""
    a, b, c, d = one[:2], one[2:], other[:2], other[2:]
    is_one_line = _turn(a, b, c) == _turn(a, b, d) == 0
    return is_one_line and max(min(a, b), min(c, d)) < min(max(a, b), max(c, d))


def _turn(one: Point, two: Point, three: Point) -> float:
    """Above 0 if the way from the first to the third point turns left at the second."""
    return (two[0] - one[0]) * (three[1] - two[1]) - (two[1] - one[1]) * (three[0] - two[0])
