"""The oracle of SEMANTICS EXPECTED: true locations are uniform within the errors of their readings, and independent.

The probability that two true locations are near each other is an integral over all places of both. It is calculated
by adaptive quadrature, ring by ring: the second location is at a distance s from the first reading, the first one at a
distance q from it, and the angles are those of triangles with known sides. Nothing is known about shared areas.

The share of a disc in an area is an integral over vertical lines. Conditions on the same location are tested in worlds
that are drawn as documented: the numbers of a world are SplitMix64 of a counter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from scipy.integrate import quad

from tests.oracles.locations import Near, Row, compare

WORLDS = 16_704
Point = tuple[float, float]


class Space(NamedTuple):
    """How angles and rings are measured: the cosine of an angle of a triangle, a ring with a part of its directions."""

    cosine: Callable[[float, float, float], float]
    ring: Callable[[float, float], float]


def _planar_cosine(opposite: float, one: float, other: float) -> float:
    return (one**2 + other**2 - opposite**2) / (2 * one * other)


def _spherical_cosine(opposite: float, one: float, other: float) -> float:
    return (math.cos(opposite) - math.cos(one) * math.cos(other)) / (math.sin(one) * math.sin(other))


PLANE = Space(_planar_cosine, lambda s, angle: 2 * s * angle)
SPHERE = Space(_spherical_cosine, lambda s, angle: 2 * math.sin(s) * angle)
SOLID = Space(_planar_cosine, lambda s, angle: 2 * math.pi * s**2 * (1 - math.cos(angle)))


def _part_of_ring(space: Space, s: float, gap: float, radius: float) -> float:
    """How much of the ring at the distance s of a centre is within `radius` of a point at the distance `gap`."""
    if s <= 0:
        return 0.0
    if gap <= 0:
        return space.ring(s, math.pi if s <= radius else 0.0)
    if space is SPHERE and s + gap + radius >= 2 * math.pi:
        return space.ring(s, math.pi)
    cosine = space.cosine(radius, s, gap) if math.sin(gap) or space is not SPHERE else 2.0 * (s - radius)
    return space.ring(s, math.acos(min(1.0, max(-1.0, cosine))))


def _integral(f: Callable[[float], float], low: float, high: float, ends: Sequence[float]) -> float:
    """The integral, piece by piece between the points where f is not smooth."""
    points = sorted({low, high, *(end for end in ends if low < end < high)})
    # sqrt-like ends become smooth: x = middle - half cos(angle)
    total = 0.0
    for a, b in itertools.pairwise(points):
        middle, half = (a + b) / 2, (b - a) / 2
        total += quad(
            lambda angle, middle=middle, half=half: f(middle - half * math.cos(angle)) * half * math.sin(angle),
            0.0, math.pi, epsabs=1e-13, epsrel=1e-12, limit=200,
        )[0]  # fmt: skip
    return total


@cache
def chance_of_distance(space: Space, bound: float, one: float, other: float, gap: float) -> float:
    """The probability that two true locations with these errors are at most `bound` apart."""
    if bound <= 0:
        return 0.0
    if one == 0 and other == 0:
        return float(gap <= bound)
    if one == 0:
        one, other = other, one
    size = _integral(lambda q: space.ring(q, math.pi), 0.0, one, [])

    def near(s: float) -> float:
        """The part of the first disc that is within the bound of a point at the distance s of its centre."""
        return _integral(lambda q: _part_of_ring(space, q, s, bound), 0.0, one, [abs(s - bound), s + bound]) / size

    if other == 0:
        return near(gap)
    whole = _integral(lambda s: space.ring(s, math.pi), 0.0, other, [])
    ends = [abs(gap - other), abs(bound - one), bound + one]
    ends += [2 * math.pi - gap - other] if space is SPHERE else []
    most = min(gap + other, math.pi) if space is SPHERE else gap + other
    return _integral(lambda s: near(s) * _part_of_ring(space, s, gap, other) / whole, 0.0, most, ends)


# ---------------------------------------------------------------- areas


def chance_of_area(centre: Point, radius: float, rings: Sequence[Sequence[Point]]) -> float:
    """The share of a disc inside rings: where a line downwards crosses an odd number of edges."""
    edges = [(a, b) for ring in rings for a, b in itertools.pairwise([*ring, ring[0]])]
    ends = [x for ring in rings for x, _ in ring]
    ends += [x for a, b in edges for x in _crossings(centre, radius, a, b)]

    def covered(x: float) -> float:
        half = math.sqrt(max(0.0, radius**2 - (x - centre[0]) ** 2))
        ys = sorted(a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]) for a, b in edges if (a[0] <= x) != (b[0] <= x))
        low, high = centre[1] - half, centre[1] + half
        return sum(max(0.0, min(to, high) - max(at, low)) for at, to in zip(ys[::2], ys[1::2], strict=True))

    return _integral(covered, centre[0] - radius, centre[0] + radius, ends) / (math.pi * radius**2)


def _crossings(centre: Point, radius: float, a: Point, b: Point) -> Iterator[float]:
    """The x at which the line of an edge crosses a circle."""
    dx, dy, x, y = b[0] - a[0], b[1] - a[1], a[0] - centre[0], a[1] - centre[1]
    square, half, rest = dx**2 + dy**2, dx * x + dy * y, x**2 + y**2 - radius**2
    if square and half**2 >= square * rest:
        for sign in (-1, 1):
            yield a[0] + dx * (sign * math.sqrt(half**2 - square * rest) - half) / square


# ---------------------------------------------------------------- worlds


def random_number(event: int, which: int, world: int) -> float:
    """The random number of a world: SplitMix64 of a counter."""
    z = (3 * WORLDS * event + WORLDS * which + world + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


@cache
def unit_points(event: int) -> list[Point]:
    """A point of the unit disc for each world."""
    points = []
    for world in range(WORLDS):
        radius, turn = math.sqrt(random_number(event, 0, world)), 2 * math.pi * random_number(event, 1, world)
        points.append((radius * math.cos(turn), radius * math.sin(turn)))
    return points


def share_of_worlds(readings: Sequence[Point], errors: Sequence[float], near: Sequence[Near]) -> float:
    """In which share of the worlds the events, in this order, satisfy all conditions."""
    hits = 0
    for world in range(WORLDS):
        drawn = [
            (x + error * unit_points(event)[world][0], y + error * unit_points(event)[world][1])
            for event, ((x, y), error) in enumerate(zip(readings, errors, strict=True))
        ]
        hits += all(compare(c.op, math.dist(drawn[c.i], drawn[c.j]), c.bound) for c in near)
    return hits / WORLDS


# ---------------------------------------------------------------- tuples


class Answer(NamedTuple):
    """A tuple of rows with its probability, and whether it is that of sampled worlds."""

    rows: tuple[Row, ...]
    probability: float
    sampled: bool


def expected_tuples(
    rows: Sequence[Row], errors: Sequence[float | None], near: Sequence[Near], span: int, size: int
) -> Iterator[Answer]:
    """Every tuple of different rows within a span of time, with the probability that all conditions are true."""
    pairs = sorted({(c.i, c.j) for c in near})
    named = [event for pair in pairs for event in pair]
    sampled = len(set(named)) < len(named)
    for chosen in itertools.permutations(range(len(rows)), size):
        times = [rows[number]["t"] for number in chosen]
        if max(times) - min(times) > span or not all(_is_known(rows[chosen[n]], errors[chosen[n]]) for n in named):
            continue
        of_events: list[Any] = [((rows[n]["x"], rows[n]["y"]), errors[n]) for n in chosen]
        if sampled:
            readings, known = zip(*of_events, strict=True)
            probability = share_of_worlds(readings, known, near)
        else:
            probability = math.prod(_chance_of_pair(*of_events[i], *of_events[j], _of(near, i, j)) for i, j in pairs)
        if probability > 1e-12:
            yield Answer(tuple(rows[number] for number in chosen), probability, sampled)


def _is_known(row: Row, error: float | None) -> bool:
    return None not in (row["x"], row["y"], error)


def _of(near: Sequence[Near], i: int, j: int) -> list[Near]:
    return [c for c in near if (c.i, c.j) == (i, j)]


def _chance_of_pair(one: Point, one_error: float, other: Point, other_error: float, near: Sequence[Near]) -> float:
    """The probability of all bounds on the distance of two events."""
    gap = math.dist(one, other)
    if not one_error and not other_error:
        return float(all(compare(c.op, gap, c.bound) for c in near))
    most = min((c.bound for c in near if c.op in ("<", "<=")), default=math.inf)
    least = max((c.bound for c in near if c.op in (">", ">=")), default=-math.inf)
    below_most, below_least = (
        1.0 if bound == math.inf else chance_of_distance(PLANE, bound, one_error, other_error, gap)
        for bound in (most, least)
    )
    return max(0.0, below_most - below_least)
