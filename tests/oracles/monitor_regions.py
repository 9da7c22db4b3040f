"""The regions of a pair of predictions and their probabilities in the MONITOR oracle: half-planes and polygons.

A *form* is a sum of values, each times a factor: mostly one value, or the difference of two. Instants are pairs
(ta, tb), one for each of two predictions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

from tests.oracles.monitor_numbers import INFINITY, Interval, Numbers, essential, predicted
from tests.oracles.monitor_predictions import Line, Number, Prediction

Point = tuple[Number, Number]

#: A value column of an operand: (0 or 1, name in lower case).
Value = tuple[int, str]
#: Values with their factors: ((x, 1),), or ((x, 1), (y, -1)) for a difference.
Form = tuple[tuple[Value, Fraction], ...]

#: By how much a probability that is found by search may be too low.
SEARCH_ERROR = 1e-6


# ---------------------------------------------------------------- half-planes and polygons


@dataclass(frozen=True)
class HalfPlane:
    """The instants with `a * ta + b * tb <= c`, or `<` if it is strict."""

    a: Number
    b: Number
    c: Number
    strict: bool = False

    def excess(self, point: Point) -> Number:
        """By how much a point violates it."""
        return self.a * point[0] + self.b * point[1] - self.c

    def contains(self, point: Point) -> bool:
        """Whether the point is in the half-plane."""
        return self.excess(point) < 0 or (not self.strict and self.excess(point) == 0)


def clipped(corners: Sequence[Point], plane: HalfPlane) -> list[Point]:
    """The corners of the intersection of a closed half-plane and a convex polygon (or segment, or point)."""
    result: list[Point] = []
    for corner, after in zip(corners, [*corners[1:], *corners[:1]], strict=True):
        here, there = plane.excess(corner), plane.excess(after)
        if here <= 0:
            result.append(corner)
        if here * there < 0:
            share = here / (here - there)
            result.append((corner[0] + share * (after[0] - corner[0]), corner[1] + share * (after[1] - corner[1])))
    return list(dict.fromkeys(result))


@dataclass(frozen=True)
class Piece:
    """A convex set of instants: its half-planes, and the corners of its closure."""

    planes: tuple[HalfPlane, ...]
    corners: tuple[Point, ...]

    def cut(self, planes: Iterable[HalfPlane]) -> Piece:
        """The intersection with more half-planes."""
        planes = tuple(planes)
        return Piece((*self.planes, *planes), tuple(reduce(clipped, planes, list(self.corners))))

    def contains(self, point: Point) -> bool:
        """Whether the point is in the set; open sides are excluded."""
        return all(plane.contains(point) for plane in self.planes)

    @property
    def closure(self) -> Piece:
        """The set with all its sides."""
        return Piece(tuple(HalfPlane(plane.a, plane.b, plane.c) for plane in self.planes), self.corners)

    @property
    def is_empty(self) -> bool:
        """Whether the set is empty.

        The mean of the corners is on an open side only if the whole closure is.
        """
        count = len(self.corners)
        return not count or not self.contains(tuple(sum(along) / count for along in zip(*self.corners, strict=True)))

    def touches(self, other: Piece) -> bool:
        """Whether the union of the two sets is connected: one intersects the closure of the other."""
        return not (self.closure.cut(other.planes).is_empty and other.closure.cut(self.planes).is_empty)


def comparable(first: Prediction, second: Prediction, within: Fraction) -> Piece:
    """The instants at which both predictions apply and that are within the window."""
    corners = [
        (first.time, second.time), (first.end, second.time), (first.end, second.end), (first.time, second.end)
    ]  # fmt: skip
    one, none = Fraction(1), Fraction(0)
    rectangle = Piece((HalfPlane(one, none, first.end, True), HalfPlane(none, one, second.end, True)), tuple(corners))
    starts = (HalfPlane(-one, none, -first.time), HalfPlane(none, -one, -second.time))
    return rectangle.cut((*starts, HalfPlane(one, -one, within), HalfPlane(-one, one, within)))


def connected(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """The connected parts of the union of the pieces."""
    parts: list[list[Piece]] = []
    for piece in pieces:
        touching = [part for part in parts if any(map(piece.touches, part))]
        parts = [part for part in parts if part not in touching]
        parts.append([*itertools.chain.from_iterable(touching), piece])
    return parts


def without_covered(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces without those whose closure is in that of another piece."""
    kept: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: area(piece.corners), reverse=True):
        if not any(all(map(other.closure.contains, piece.corners)) for other in kept):
            kept.append(piece)
    return tuple(kept)


def area(corners: Sequence[Point]) -> Number:
    """The area of a polygon."""
    pairs = zip(corners, [*corners[1:], *corners[:1]], strict=True)
    return abs(sum(x * after_y - after_x * y for (x, y), (after_x, after_y) in pairs)) / 2


# ---------------------------------------------------------------- constraints on a pair


@dataclass(frozen=True)
class Group:
    """Forms that share values, for one pair of predictions.

    Attributes
    ----------
    numbers : dict from form to the numbers that its constraints allow
    lines : dict from value to its line
    """

    numbers: dict[Form, Numbers]
    lines: dict[Value, Line]

    def error(self, form: Form) -> Fraction:
        """How far a form can be from its prediction."""
        return sum((abs(factor) * self.lines[value].error for value, factor in form), Fraction(0))

    @cached_property
    def planes(self) -> dict[Form, tuple[Number, Number, Number]]:
        """The predictions of all forms, and of each single value, as (a, b, c): a * ta + b * tb + c."""
        return {form: self._plane(form) for form in (*self.numbers, *map(alone, self.lines))}

    def _plane(self, form: Form) -> tuple[Number, Number, Number]:
        zero = 0 * self.lines[form[0][0]].start  # a fraction, or a double
        total = [zero, zero, zero]
        for value, factor in form:
            total[value[0]] += factor * self.lines[value].rate
            total[2] += factor * self.lines[value].start
        return total[0], total[1], total[2]

    def predicted(self, form: Form, point: Point) -> Number:
        """The prediction of a form at a pair of instants."""
        a, b, c = self.planes[form]
        return a * point[0] + b * point[1] + c

    # ------------------------------------------------------------ instants

    def matching(self, semantics: str) -> list[list[HalfPlane]]:
        """The convex sets of matching instants, as half-planes; every matching pair of instants is in one of them."""
        if semantics == "MAY" and len(self.numbers) > 1:
            cells = itertools.product(*({**self.numbers, **self.uncertain}).values())
            return [self.some_true_value(dict(zip(self.numbers, cell, strict=True))) for cell in cells]
        sets = [
            [self.between(form, interval) for interval in predicted(numbers, self.error(form), semantics)]
            for form, numbers in self.numbers.items()
        ]
        return [list(itertools.chain.from_iterable(planes)) for planes in itertools.product(*sets)]

    def between(self, form: Form, interval: Interval) -> list[HalfPlane]:
        """The half-planes in which the predicted value of a form is in an interval."""
        a, b, c = self.planes[form]
        planes = [HalfPlane(a, b, interval.high - c, interval.high_open)] if interval.high < INFINITY else []
        return [*planes, HalfPlane(-a, -b, c - interval.low, interval.low_open)] if interval.low > -INFINITY else planes

    def some_true_value(self, cell: Mapping[Form, Interval]) -> list[HalfPlane]:
        """The instants at which the cell has a probability above 0: true values strictly within the errors exist.

        The unknown true values are eliminated from the inequalities one after the other.
        """
        unknown = [value for value, line in self.lines.items() if line.error]
        rows: list[tuple[list[Fraction], Number, bool]] = []
        for form, numbers in cell.items():
            row = self._row(form, unknown)
            if numbers.high < INFINITY:
                rows.append((row[:-1], numbers.high - row[-1], numbers.high_open))
            if numbers.low > -INFINITY:
                rows.append(([-coefficient for coefficient in row[:-1]], row[-1] - numbers.low, numbers.low_open))
        for value in unknown:
            a, b, c = self.planes[alone(value)]
            truth = [Fraction(value == other) for other in unknown]
            rows.append(([-a, -b, *truth], c + self.lines[value].error, True))
            rows.append(([a, b, *(-coefficient for coefficient in truth)], self.lines[value].error - c, True))
        for _ in unknown:
            rows = list(_eliminated(rows))
        return [HalfPlane(row[0], row[1], bound, strict) for row, bound, strict in rows]

    def _row(self, form: Form, unknown: Sequence[Value]) -> list[Fraction]:
        """A form as coefficients of ta, tb, the unknown true values, and 1; an exact value is its prediction."""
        row = [Fraction(0)] * (len(unknown) + 3)
        for value, factor in form:
            if value in unknown:
                row[2 + unknown.index(value)] += factor
            else:
                a, b, c = self.planes[alone(value)]
                row[0], row[1], row[-1] = row[0] + factor * a, row[1] + factor * b, row[-1] + factor * c
        return row

    # ------------------------------------------------------------ probability

    @cached_property
    def uncertain(self) -> dict[Form, Numbers]:
        """The forms that have an error; the others are certain at all matching instants."""
        return {form: essential(numbers) for form, numbers in self.numbers.items() if self.error(form)}

    @property
    def rounded(self) -> Group:
        """The same in doubles, for the search."""
        lines = {
            value: Line(float(line.start), float(line.rate), float(line.error)) for value, line in self.lines.items()
        }
        numbers = {
            form: tuple(Interval(float(interval.low), float(interval.high), True, True) for interval in intervals)
            for form, intervals in self.uncertain.items()
        }
        return Group(numbers, lines)

    def probability(self, point: Point) -> Number:
        """The probability that all constraints of the group hold at a pair of instants of a region."""
        uncertain = self.uncertain
        if not uncertain:
            return Fraction(1)
        if len(uncertain) == 1:
            ((form, numbers),) = uncertain.items()
            return self.form_probability(form, numbers, self.predicted(form, point))
        return sum(self.share(planes, point) for planes in self.cells)

    @cached_property
    def cells(self) -> list[list[HalfPlane]]:
        """The true values of two values that satisfy all constraints: convex sets, as half-planes of the values."""
        sides = sorted(self.lines)
        if len(sides) > 2:
            raise NotImplementedError(f"forms that connect more than two values: {sides}")
        result = []
        for cell in itertools.product(*self.uncertain.values()):
            planes: list[HalfPlane] = []
            for form, numbers in zip(self.uncertain, cell, strict=True):
                factors = dict(form)
                a, b = (factors.get(side, 0) for side in sides)
                planes += [HalfPlane(a, b, numbers.high)] if numbers.high < INFINITY else []
                planes += [HalfPlane(-a, -b, -numbers.low)] if numbers.low > -INFINITY else []
            result.append(planes)
        return result

    def form_probability(self, form: Form, numbers: Numbers, center: Number) -> Number:
        """The probability that a form with the predicted value `center` is one of the numbers."""
        errors = [abs(factor) * self.lines[value].error for value, factor in form]
        return sum(
            distribution_function(interval.high - center, errors) - distribution_function(interval.low - center, errors)
            for interval in numbers
        )

    def share(self, planes: Sequence[HalfPlane], point: Point) -> Number:
        """The share of the box of possible true values that is in a cell."""
        (x, dx), (y, dy) = [
            (self.predicted(alone(value), point), self.lines[value].error) for value in sorted(self.lines)
        ]
        corners = [(x - dx, y - dy), (x + dx, y - dy), (x + dx, y + dy), (x - dx, y + dy)]
        left = reduce(clipped, planes, list(dict.fromkeys(corners)))
        if dx and dy:
            return area(left) / (4 * dx * dy)
        along = [corner[0 if dx else 1] for corner in left]
        return (max(along) - min(along)) / (2 * (dx or dy)) if along else Fraction(0)

    def highest_alone(self, corners: Sequence[Point]) -> Number:
        """The exact highest probability over a polygon if only one form is uncertain.

        It is a quadratic function of the predicted value between two knots, and the predicted value takes all values
        between those at the corners.
        """
        ((form, numbers),) = self.uncertain.items()
        if len(numbers) == 1 and len([value for value, _ in form if self.lines[value].error]) > 2:
            return self.highest_of_one_interval(form, numbers[0], corners)
        ends = [end for interval in numbers for end in (interval.low, interval.high) if abs(end) < INFINITY]
        errors = [abs(factor) * self.lines[value].error for value, factor in form]
        moves = [sum(signed) for signed in itertools.product(*((-error, error) for error in errors))]
        centers = [self.predicted(form, corner) for corner in corners]
        low, high = min(centers), max(centers)
        knots = sorted({low, high, *(end + move for end in ends for move in moves if low < end + move < high)})
        candidates = set(knots)
        for left, right in itertools.pairwise(knots):
            middle = (left + right) / 2
            at = [self.form_probability(form, numbers, center) for center in (left, middle, right)]
            bend = at[0] - 2 * at[1] + at[2]
            top = middle - (right - left) / 2 * (at[2] - at[0]) / (2 * bend) if bend else middle
            candidates |= {top} if left < top < right else set()
        return max(self.form_probability(form, numbers, center) for center in candidates)

    def highest_of_one_interval(self, form: Form, interval: Interval, corners: Sequence[Point]) -> Number:
        """The same for one interval: the density of a sum of errors falls on both sides of its middle."""
        centers = [self.predicted(form, corner) for corner in corners]
        if interval.low == -INFINITY or interval.high == INFINITY:
            best = min(centers) if interval.low == -INFINITY else max(centers)
        else:
            best = min(max((interval.low + interval.high) / 2, min(centers)), max(centers))
        return self.form_probability(form, (interval,), best)


def alone(value: Value) -> Form:
    """The form that is one value."""
    return ((value, Fraction(1)),)


def _eliminated(rows: Sequence[tuple[list[Fraction], Number, bool]]) -> Iterator[tuple[list[Fraction], Number, bool]]:
    """The inequalities without their last unknown: every lower bound of it is below every upper bound."""
    yield from ((row[:-1], bound, strict) for row, bound, strict in rows if not row[-1])
    lower, upper = ([row for row in rows if row[0][-1] * sign > 0] for sign in (-1, 1))
    for (low, low_bound, low_strict), (high, high_bound, high_strict) in itertools.product(lower, upper):
        row = [h / high[-1] - g / low[-1] for g, h in zip(low, high, strict=True)]
        yield row[:-1], high_bound / high[-1] - low_bound / low[-1], low_strict or high_strict


def distribution_function(distance: Number, errors: Sequence[Fraction]) -> Number:
    """The probability that a form is at most `distance` above its prediction; for any number of errors, not all 0.

    The error of a value has the density 1 / 2e on [-e, e]. Its integral is a ramp, ((z + e)+ - (z - e)+) / 2e, where z+
    is max(z, 0). The convolution with a second such density has squares over 2 instead, and four terms, and so on.
    """
    if abs(distance) == INFINITY:
        return Fraction(distance > 0)
    errors = [error for error in errors if error]
    size, power = math.prod(2 * error for error in errors), len(errors)
    total: Number = 0
    for signs in itertools.product((1, -1), repeat=power):
        reach = distance + sum(sign * error for sign, error in zip(signs, errors, strict=True))
        total += math.prod(signs) * max(reach, 0) ** power
    return total / (size * math.factorial(power))


# ---------------------------------------------------------------- the highest probability


def highest(piece: Piece, groups: Sequence[Group]) -> Number:
    """The highest probability over the closure of a piece."""
    uncertain = [group for group in groups if group.uncertain]
    alone = [group.highest_alone(piece.corners) for group in uncertain if len(group.uncertain) == 1]
    if len(uncertain) == len(alone) <= 1:
        return math.prod(alone, start=Fraction(1))
    corners = [(float(ta), float(tb)) for ta, tb in piece.corners]
    rounded = [group.rounded for group in uncertain]

    def probability(point: Point) -> float:
        return math.prod(group.probability(point) for group in rounded)

    return searched(corners, probability, float(math.prod(alone)))


def searched(corners: Sequence[Point], probability: Callable[[Point], float], most: float = 1.0) -> float:
    """The highest probability over a polygon: by a lattice, then by finer lattices around its best points.

    The search ends at `most`, an upper bound, or when the values of a lattice differ by less than a tenth of
    SEARCH_ERROR: around a maximum, the values of a finer lattice differ less.
    """
    reach = max(max(along) - min(along) for along in zip(*corners, strict=True)) / 8
    probabilities = {point: probability(point) for point in lattice(corners, 12)}
    rise = 1.0
    for _ in range(26):
        best = sorted(probabilities, key=probabilities.__getitem__, reverse=True)
        if probabilities[best[0]] >= most - 1e-12 or rise < SEARCH_ERROR / 10:
            break
        starts = [best[0], *(point for point in best if math.dist(point, best[0]) > reach)][:2]
        probabilities = {point: probabilities[point] for point in starts}
        rise = 0.0
        for x, y in starts:
            box = [HalfPlane(1, 0, x + reach), HalfPlane(-1, 0, reach - x)]
            box += [HalfPlane(0, 1, y + reach), HalfPlane(0, -1, reach - y)]
            part = reduce(clipped, box, list(corners))
            refined = {point: probability(point) for point in lattice(part, 4)} if part else {}
            rise = max(rise, max(refined.values(), default=0.0) - min(refined.values(), default=0.0))
            probabilities |= refined
        reach /= 2
    return min(max(probabilities.values()), 1.0)


def lattice(corners: Sequence[Point], count: int) -> Iterator[Point]:
    """Points of a convex polygon: it is divided into triangles, and the sides of each into `count` steps."""
    (x, y), *others = corners
    if not others:
        yield x, y
    for (x1, y1), (x2, y2) in itertools.pairwise(others if len(others) > 1 else [*others, *others]):
        for i in range(count + 1):
            for j in range(count + 1 - i):
                yield x + ((x1 - x) * i + (x2 - x) * j) / count, y + ((y1 - y) * i + (y2 - y) * j) / count


# ---------------------------------------------------------------- regions


@dataclass(frozen=True)
class Region:
    """A connected set of instants of one pair of predictions, and its constraints."""

    pieces: tuple[Piece, ...]
    groups: tuple[Group, ...]

    @property
    def boundary(self) -> tuple[Point, ...] | None:
        """The corners, counter-clockwise from the smallest one; None if the region is not one convex set."""
        if len(self.pieces) > 1:
            return None
        (piece,) = self.pieces
        first = piece.corners.index(min(piece.corners))
        return piece.corners[first:] + piece.corners[:first]

    @property
    def valid(self) -> tuple[Fraction, Fraction]:
        """The range of the later instant; on each side of the diagonal, it is one of the coordinates."""
        sides = [
            clipped(piece.corners, side) for piece in self.pieces for side in (HalfPlane(1, -1, 0), HalfPlane(-1, 1, 0))
        ]
        later = [max(corner) for corners in sides for corner in corners]
        return min(later), max(later)

    @property
    def probability(self) -> Number:
        """The highest probability in the region."""
        return max(highest(piece, self.groups) for piece in self.pieces)
