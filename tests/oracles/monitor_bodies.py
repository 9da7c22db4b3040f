"""Regions of any number of operands, by their definition and in fractions: all intersections of planes are tried."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Point = tuple[Fraction, ...]


@dataclass(frozen=True)
class HalfSpace:
    """The points with `a . x <= c`, or `<` if it is strict."""

    a: tuple[Fraction, ...]
    c: Fraction
    strict: bool = False

    def excess(self, point: Point) -> Fraction:
        """By how much a point violates it."""
        return sum((a * x for a, x in zip(self.a, point, strict=True)), -self.c)

    def contains(self, point: Point) -> bool:
        """Whether the point is in it."""
        return self.excess(point) < 0 or (not self.strict and self.excess(point) == 0)


def corners(sides: Sequence[HalfSpace]) -> set[Point]:
    """The corners of the closure of a bounded intersection."""
    points = set()
    for chosen in itertools.combinations(sides, len(sides[0].a)):
        point = _intersection(chosen)
        if point is not None and all(side.excess(point) <= 0 for side in sides):
            points.add(point)
    return points


def is_empty(sides: Sequence[HalfSpace], points: set[Point]) -> bool:
    """Whether the intersection has no point; the mean of the corners is on an open side only if all points are."""
    if not points:
        return True
    mean = tuple(sum(along) / len(points) for along in zip(*points, strict=True))
    return not all(side.contains(mean) for side in sides)


def earliest(sides: Sequence[HalfSpace]) -> Fraction:
    """The smallest latest instant: each instant in turn is the latest, and then a linear function."""
    dims = len(sides[0].a)
    latest: list[Fraction] = []
    for k in range(dims):
        before = [
            HalfSpace(tuple(Fraction((i == j) - (i == k)) for i in range(dims)), Fraction(0))
            for j in range(dims)
            if j != k
        ]
        latest += [point[k] for point in corners([*sides, *before])]
    return min(latest)


def _intersection(sides: Sequence[HalfSpace]) -> Point | None:
    """The point at which all planes intersect; None if there is none, or more than one."""
    rows = [[*side.a, side.c] for side in sides]
    for k in range(len(rows)):
        pivot = next((row for row in rows[k:] if row[k]), None)
        if pivot is None:
            return None
        rows.remove(pivot)
        rows.insert(k, [number / pivot[k] for number in pivot])
        rows = [
            row if i == k else [a - row[k] * b for a, b in zip(row, rows[k], strict=True)] for i, row in enumerate(rows)
        ]
    return tuple(row[-1] for row in rows)
