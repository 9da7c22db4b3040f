"""The oracle of MONITOR with DISTANCE: what the definition says, by bisection and numerical integration.

Interpretation of the definitions
---------------------------------
- The location of a prediction at an instant is (x, y), its two values that SPACE names. The true x is anywhere within
  its error, uniformly, and so is the true y, independently; so are the locations of two predictions.
- EXPECTED: the distance of the predicted locations satisfies the comparison. MAY: some true locations within the errors
  satisfy it strictly. MUST: all do, up to contacts. If no location has an error, all three are EXPECTED.
- `<=` and `<` leave a convex set of instants, one region. `>` and `>=` are only asked at the same instant (WITHIN 0);
  they leave the instants before and after those that do not satisfy.
- The probability of a region is the highest of any of its instants.
- Two bounds of one distance, `<= R` and `>= r`, are about the same true distance, so they are not independent.
- `a.z <= K` on another value restricts the region as for other queries, and its probability is multiplied.

Whether a region is empty or a single instant depends on a contact, which cannot be decided in floats: `Contact` is
raised, and the tests have such cases by hand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.binding.typed import Constant, Operation, Reference, Typed
from anabranch.monitor.query import BoundMonitor
from tests.oracles.conditions import holds
from tests.oracles.events import NO_RELATIONS, Rows
from tests.oracles.monitor import Answer, pairs
from tests.oracles.monitor_predictions import Line, Prediction

#: A bound that is reached up to this is a contact.
NEAR = 1e-7
_STEPS = 60
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

Instants = tuple[float, float]
Function = Callable[[float], float]
Floats = npt.NDArray[np.float64]


class Contact(Exception):
    """A region that is a contact, or nearly one."""


# ---------------------------------------------------------------- one condition


@dataclass(frozen=True)
class Condition:
    """The distance of two locations (or of one and a point), or one value, compared with a number.

    `coordinates` are the x and the y, each a list of (number of the operand, line, sign), and `point` is subtracted.
    A single value has one coordinate, and is compared itself.
    """

    coordinates: tuple[tuple[tuple[int, Line, int], ...], ...]
    point: tuple[float, ...]
    op: str
    bound: float

    @property
    def is_below(self) -> bool:
        return self.op in ("<", "<=")

    @cached_property
    def lines(self) -> list[list[tuple[int, float, float, int]]]:
        """The coordinates in floats: fractions are converted once, not at each of thousands of instants."""
        return [
            [(operand, float(line.start), float(line.rate), sign) for operand, line, sign in terms]
            for terms in self.coordinates
        ]

    def predicted(self, at: Instants) -> list[float]:
        """The predicted coordinates."""
        return [
            sum(sign * (start + rate * at[operand]) for operand, start, rate, sign in terms) - center
            for terms, center in zip(self.lines, self.point, strict=True)
        ]

    @cached_property
    def errors(self) -> list[list[float]]:
        """The errors of which the error of each coordinate is the sum."""
        return [[float(line.error) for _, line, _ in terms if line.error > 0] for terms in self.coordinates]

    def extreme(self, at: Instants, farthest: bool) -> float:
        """The largest or the smallest distance (or value) of the true locations."""
        reach = [sum(own) for own in self.errors]
        if len(reach) == 1:
            return self.predicted(at)[0] + (reach[0] if farthest else -reach[0])
        places = []
        for middle, error in zip(self.predicted(at), reach, strict=True):
            ends = (middle - error, middle + error)
            places.append(max(ends, key=abs) if farthest else min(max(0.0, ends[0]), ends[1]))
        return math.hypot(*places)

    def excess(self, at: Instants, semantics: str) -> float:
        """By how much the compared number is above the bound: the one that decides, by the semantics."""
        if semantics == "EXPECTED" or not any(self.errors):
            predicted = self.predicted(at)
            return (math.hypot(*predicted) if len(predicted) > 1 else predicted[0]) - self.bound
        return self.extreme(at, farthest=(semantics == "MUST") == self.is_below) - self.bound

    def probability(self, at: Instants) -> float:
        """The probability that the true locations satisfy the comparison."""
        predicted, errors = self.predicted(at), self.errors
        if not any(errors):
            return 1.0
        if len(predicted) > 1:
            below = disk_probability(predicted[0], predicted[1], errors[0], errors[1], self.bound)
        else:
            below = float(at_most(np.array(self.bound - predicted[0]), errors[0]))
        return below if self.is_below else 1.0 - below


# ---------------------------------------------------------------- probabilities


def at_most(z: Floats, errors: list[float]) -> Floats:
    """The probability that the sum of at most two uniform errors is at most z."""
    if not errors:
        return (z >= 0).astype(float)
    if len(errors) == 1:
        return np.clip(0.5 + 0.5 * z / errors[0], 0.0, 1.0)
    one, two = errors
    # The share of the rectangle of errors below a line: a sum of triangles at its four corners.
    corners = [(1, one + two), (-1, one - two), (-1, two - one), (1, -one - two)]
    areas = sum(sign * np.maximum(0.0, z + shift) ** 2 for sign, shift in corners)
    return np.clip(areas / (8 * one * two), 0.0, 1.0)


def density(z: Floats, errors: list[float]) -> Floats:
    """The density of the sum of one or two uniform errors."""
    if len(errors) == 1:
        return np.where(np.abs(z) <= errors[0], 0.5 / errors[0], 0.0)
    one, two = errors
    overlap = np.minimum(one, z + two) - np.maximum(-one, z - two)
    return np.maximum(0.0, overlap) / (4 * one * two)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(30)


def disk_probability(x: float, y: float, x_errors: list[float], y_errors: list[float], radius: float) -> float:
    """The probability that a point with these errors is in a disk around 0: an integral of strips, from bend to bend.

    A strip may have an infinite derivative at the ends of the disk; as a function of an angle it is smooth:
    at = low + (high - low) sin^2(angle).
    """
    if not x_errors:
        half = math.sqrt(max(0.0, radius * radius - x * x))
        ends = at_most(np.array([half - y, -half - y]), y_errors)
        return float(ends[0] - ends[1]) if abs(x) <= radius else 0.0
    heights = [abs(y + end) for end in _ends(y_errors)]
    bends = [x + end for end in _ends(x_errors)]
    bends += [
        sign * math.sqrt(radius * radius - height * height) for height in heights if height < radius for sign in (-1, 1)
    ]
    low, high = max(-radius, x - sum(x_errors)), min(radius, x + sum(x_errors))
    if low >= high:
        return 0.0
    cuts = np.unique([low, high, *(bend for bend in bends if low < bend < high)])
    angles = (_NODES + 1) * math.pi / 4
    length = np.diff(cuts)[:, None]
    at = cuts[:-1, None] + length * np.sin(angles) ** 2
    half = np.sqrt(np.maximum(0.0, radius * radius - at * at))
    strips = density(at - x, x_errors) * (at_most(half - y, y_errors) - at_most(-half - y, y_errors))
    return float((strips * length * np.sin(2 * angles) * _WEIGHTS * math.pi / 4).sum())


def _ends(errors: list[float]) -> list[float]:
    """Where the density of a sum of errors bends."""
    return [sum(signed) for signed in itertools.product(*((-error, error) for error in errors))]


# ---------------------------------------------------------------- sets of instants


def golden(function: Function, low: float, high: float) -> float:
    """Where a function with one minimum is smallest."""
    one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_one, at_two = function(one), function(two)
    for _ in range(_STEPS):
        if at_one <= at_two:
            high, two, at_two = two, one, at_one
            one = high - _GOLDEN * (high - low)
            at_one = function(one)
        else:
            low, one, at_one = one, two, at_two
            two = low + _GOLDEN * (high - low)
            at_two = function(two)
    return min((low, high, one, two), key=function)


def interval_below(function: Function, low: float, high: float) -> tuple[float, float] | None:
    """Where a convex function is at most 0, between two numbers; None if nowhere."""
    if low > high:
        return None
    least = min((low, high, golden(function, low, high)), key=function)
    if abs(function(least)) <= NEAR:
        raise Contact
    if function(least) > 0:
        return None
    return _crossing(function, least, low), _crossing(function, least, high)


def _crossing(function: Function, inside: float, outside: float) -> float:
    """The last number with a function of at most 0, from one such number on."""
    if function(outside) <= 0:
        return outside
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if function(middle) <= 0 else (inside, middle)
    return inside


@dataclass(frozen=True)
class Region:
    """A connected set of instants: its range of the latest instant, and the conditions that it satisfies."""

    valid: tuple[float, float]
    probability: float


@dataclass(frozen=True)
class Pair:
    """Two predictions that are compared, or one with itself."""

    limits: tuple[tuple[float, float], tuple[float, float]]
    within: float
    conditions: tuple[Condition, ...]
    semantics: str

    def regions(self) -> list[Region]:
        if self.within == 0:
            return self.on_diagonal()
        region = self.in_plane()
        return [] if region is None else [region]

    @cached_property
    def compared(self) -> list[list[Condition]]:
        """The conditions by what they compare."""
        by_terms: dict[Any, list[Condition]] = {}
        for condition in self.conditions:
            by_terms.setdefault((condition.coordinates, condition.point), []).append(condition)
        return list(by_terms.values())

    def probability(self, at: Instants) -> float:
        """A distance that is too long is not too short, so the probabilities of both are subtracted from 1."""
        return math.prod(1 - sum(1 - condition.probability(at) for condition in own) for own in self.compared)

    # ------------------------------------------------------------ the same instant

    def on_diagonal(self) -> list[Region]:
        low, high = max(begin for begin, _ in self.limits), min(end for _, end in self.limits)
        pieces = [(low, high)] if low < high else []
        for condition in self.conditions:
            cut = [self.pieces(condition, *piece) for piece in pieces]
            pieces = list(itertools.chain.from_iterable(cut))
        if any(end - begin <= NEAR for begin, end in pieces):
            raise Contact
        return [Region(piece, self.highest_on_diagonal(*piece)) for piece in pieces]

    def pieces(self, condition: Condition, low: float, high: float) -> list[tuple[float, float]]:
        """The parts of an interval at which a condition holds."""

        def excess(at: float) -> float:
            return condition.excess((at, at), self.semantics)

        inside = interval_below(excess, low, high)
        if condition.is_below:
            return [] if inside is None else [inside]
        if inside is None:
            return [(low, high)]
        return [piece for piece in ((low, inside[0]), (inside[1], high)) if piece[0] < piece[1]]

    def highest_on_diagonal(self, low: float, high: float) -> float:
        """The best of many instants, and of those around it."""

        def negative(at: float) -> float:
            return -self.probability((at, at))

        steps = np.linspace(low, high, 65)
        best = min(range(len(steps)), key=lambda step: negative(steps[step]))
        around = steps[max(best - 1, 0)], steps[min(best + 1, 64)]
        return -min(negative(steps[best]), negative(golden(negative, *around)))

    # ------------------------------------------------------------ different instants

    def excess(self, at: Instants) -> float:
        """By how much the worst condition is violated; all are convex."""
        return max(
            condition.excess(at, self.semantics) * (1 if condition.is_below else -1) for condition in self.conditions
        )

    def others(self, at: float, axis: int, latest: bool) -> tuple[float, float]:
        """The instants of the other axis that can be compared; if `latest`, those that are not later."""
        low, high = self.limits[1 - axis]
        return max(low, at - self.within), min(high, at if latest else at + self.within)

    def range_of(self, axis: int, latest: bool) -> tuple[float, float] | None:
        """The instants of an axis that match with some of the other axis."""
        (low, high), (other_low, other_high) = self.limits[axis], self.limits[1 - axis]
        low = max(low, other_low if latest else other_low - self.within)
        high = min(high, other_high + self.within)
        return interval_below(lambda at: self.least(at, axis, latest), low, high)

    def least(self, at: float, axis: int, latest: bool) -> float:
        """The smallest excess at an instant of one axis, over those of the other."""

        def along(other: float) -> float:
            return self.excess((at, other) if axis == 0 else (other, at))

        low, high = self.others(at, axis, latest)
        return min(along(low), along(high), along(golden(along, low, high)))

    def in_plane(self) -> Region | None:
        ranges = [self.range_of(axis, latest=False) for axis in range(2)]
        if ranges[0] is None or ranges[1] is None:
            return None
        begins = [own[0] for own in (self.range_of(axis, latest=True) for axis in range(2)) if own is not None]
        return Region((min(begins), max(ranges[0][1], ranges[1][1])), self.highest_in_plane(*ranges[0]))

    def highest_in_plane(self, low: float, high: float) -> float:
        """The logarithm of the probability is concave, and so is its maximum over the instants of one axis."""

        def best_at(at: float) -> float:
            def inside(other: float) -> float:
                return self.excess((at, other)) - NEAR

            def negative(other: float) -> float:
                return -self.probability((at, other))

            own = interval_below(inside, *self.others(at, 0, latest=False))
            return 0.0 if own is None else negative(golden(negative, *own))

        if Pair(self.limits, self.within, self.conditions, "MUST").is_possible():
            return 1.0
        return -best_at(golden(best_at, low, high))

    def is_possible(self) -> bool:
        """Whether any instants match."""
        return self.range_of(0, latest=False) is not None


# ---------------------------------------------------------------- answers


def answers(query: BoundMonitor, rows: Rows) -> list[Answer]:
    """The answers of a query whose constraints are distances and comparisons of single values."""
    return [answer for answer, _ in answers_with_pairs(query, rows)]


def answers_with_pairs(query: BoundMonitor, rows: Rows) -> Iterator[tuple[Answer, Pair]]:
    """The answers, each with the pair that it is about."""
    for members, pair in compared_pairs(query, rows):
        for region in pair.regions():
            if region.probability > 0 and region.probability >= query.threshold:
                yield answer_of(query, members, region), pair


def answer_of(query: BoundMonitor, members: tuple[Prediction, ...], region: Region) -> Answer:
    """The answer about a region."""
    structs = {operand.label: dict(own.answer_struct) for operand, own in zip(query.operands, members, strict=False)}
    valid = {"valid_from": region.valid[0], "valid_to": region.valid[1]}
    return {**structs, **valid, "probability": region.probability}


def compared_pairs(query: BoundMonitor, rows: Rows) -> Iterator[tuple[tuple[Prediction, Prediction], Pair]]:
    """The predictions that satisfy the conditions on rows, and what is compared of them."""
    operands = {operand.name: number for number, operand in enumerate(query.operands)}
    for members in pairs(query, rows):
        bindings = {(operand.name, 1): own.columns for operand, own in zip(query.operands, members, strict=False)}
        conditions = [condition_of(condition, operands, members, query) for condition in query.conditions]
        row_conditions = [condition for condition, own in zip(query.conditions, conditions, strict=True) if own is None]
        if not all(holds(condition, bindings, NO_RELATIONS) for condition in row_conditions):
            continue
        limits = tuple((float(own.time), float(own.end)) for own in members)
        within = query.within if len(query.operands) == 2 else 0.0
        yield members, Pair((limits[0], limits[1]), within, tuple(own for own in conditions if own), query.semantics)


def condition_of(
    tree: Typed, operands: Mapping[str, int], members: tuple[Prediction, ...], query: BoundMonitor
) -> Condition | None:
    """A condition on locations or on a value; None for a condition on rows."""
    assert isinstance(tree, Operation)
    op, (left, right) = tree.op, tree.arguments
    if isinstance(left, Constant):
        op, left, right = _MIRRORED[op], right, left
    if isinstance(left, Operation) and left.op == "distance":
        assert isinstance(right, Constant)
        return _distance(left, op, float(right.value or 0), operands, members, query)
    if isinstance(left, Reference) and left.name in members[operands[left.owner or ""]].lines:
        assert isinstance(right, Constant)
        number = operands[left.owner or ""]
        line = members[number].lines[left.name]
        assert line is not None
        return Condition((((number, line, 1),),), (0.0,), op, float(right.value or 0))
    return None


def _distance(
    call: Operation, op: str, bound: float, operands: Mapping[str, int], members: tuple[Prediction, ...],
    query: BoundMonitor,
) -> Condition:  # fmt: skip
    coordinates: list[list[tuple[int, Line, int]]] = [[], []]
    point = (0.0, 0.0)
    for sign, argument in zip((1, -1), call.arguments, strict=True):
        if isinstance(argument, Constant):
            x, y = str(argument.value).removeprefix("POINT(").removesuffix(")").split()
            point = (float(x), float(y))
            continue
        assert isinstance(argument, Reference)
        number = operands[argument.owner or ""]
        for axis, name in enumerate(query.operands[number].stream.declaration.space or ()):
            line = members[number].lines[name.lower()]
            assert line is not None
            coordinates[axis].append((number, line, sign))
    return Condition(tuple(map(tuple, coordinates)), point, op, bound)
