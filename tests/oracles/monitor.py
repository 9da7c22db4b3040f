"""The truth about a MONITOR question in batch: every pair of predictions, its half-planes one by one, in fractions.

How the definitions are read
----------------------------
- A prediction is what the declared columns of a row say. A row given twice is one prediction; a row whose key or time
  is NULL, or no (finite) number, is none. A prediction applies on [t, min(t + PERIOD, next t)), next t being the
  *strictly* later one of its key, of all rows of the stream: also of those that WHERE does not let through, and of
  those whose values are NULL.
- Two operands are every ordered pair of predictions; where both are of one stream, of two different keys.
- A conjunct of WHERE that names no value column asks the rows (keys, t, rates), and must be TRUE. Any other is a
  constraint: `a.v cmp K`, `ABS(a.u - b.v) cmp K`, or either with its sides changed. K is a constant; where it is NULL,
  or the value or rate of a column that a constraint names is, nothing matches.
- The instants (ta, tb) of a pair are those at which both apply, |ta - tb| <= WITHIN. A single prediction is treated as
  paired with itself at the same instant.
- A *form* is a value, or a difference of two. All constraints on one form leave a set of numbers, a union of
  intervals. Values are uniform within their errors around the prediction, and independent: of different columns, keys
  and instants.
- EXPECTED: the predicted forms lie in their sets. MUST: all constraints hold with probability 1. MAY: all hold
  together with a probability above 0. So what has measure zero does not count where there is an error: `<` is `<=`, a
  contact of MAY at the very end of its errors is none, and `<>` is always true; where the errors of a form are 0, all
  three are EXPECTED. Forms that share a value are taken together.
- The matching instants of a pair are a union of convex sets, with open and closed sides. Its connected parts are the
  regions; two sets are connected where one has a point in common with the closure of the other. A part that is empty
  because only an open end touches is no match.
- valid_from and valid_to are the infimum and supremum of max(ta, tb); the boundary is the closure of a region, its
  corners counter-clockwise from the least (ta, tb), the first one not repeated. It is None where a region is not one
  convex set, which takes MAY, an `ABS(...) >=`, and another constraint that shares one of its values.
- The probability is the supremum over the region, its inside included: exact (a Fraction) where all that is uncertain
  is one form, and else a float by search: never too high, and too low by at most SEARCH_ERROR where the product has one
  hill (`<=`, `<`); where it may have several (`>`, `>=`, `<>`) a lattice finds the two best, and tests look for others.
- A row is an answer where its probability is above 0, and at least THRESHOLD.

Numbers are the fractions that doubles are; times are in the unit of the time column, and TIMESTAMPs in seconds since
1970 UTC, but for the `t` of a prediction, which is as given.

What the language leaves open
-----------------------------
- Whether MUST and MAY ask for a probability (as here, and in the notes on the mathematics) or, as in the paper, for all
  and for some values within the errors, ends included. They differ for MUST with `<>`, for `<` at a contact, and where
  two parts of MAY touch in instants of probability 0.
- Two different predictions of one key and time: here both apply. NULL values: here they end the prediction before.
- Conditions on `t` and rates; constraints of any other shape, which are refused here (OR and NOT over values,
  `ABS(a.v)`, `a.v - b.v < K`, two columns of one operand), and the
  probability of forms that connect more than two values.
- The types of valid_from, valid_to and the boundary for INTEGER and TIMESTAMP times (microseconds cannot hold a third),
  the order of corners, and the boundary of regions that are not convex, or of no area.
- Keys of two different streams that are equal: here they are paired.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any

from anabranch.catalog import Stream
from anabranch.language.bound import BoundOperand
from anabranch.language.typed import Operation, Reference, Typed, walk
from anabranch.monitor.question import BoundMonitor
from tests.oracles.conditions import Relations, evaluate, holds
from tests.untraced import untraced

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Answer = dict[str, Any]
Number = Fraction | float
Point = tuple[Number, Number]

#: By how much a probability that is searched for may be too low.
SEARCH_ERROR = 1e-6

NO_RELATIONS: Relations = MappingProxyType({})

_SECONDS = {None: 1, "SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


# ---------------------------------------------------------------- predictions


@dataclass(frozen=True)
class Line:
    """What a column is predicted to be: `start + rate * s`, s being the instant, give or take `error`."""

    start: Number
    rate: Number
    error: Number


@dataclass(frozen=True)
class Prediction:
    """One prediction.

    Attributes
    ----------
    key : tuple of the values of the key columns
    time, end : Fraction
        It applies from `time`, and ends before `end`.
    lines : dict from value column, in lower case, to its line; None where it is not known
    columns : dict from column, in lower case, to its value as conditions have it
    shown : dict
        The struct of an answer: key and t, as given.
    """

    key: tuple[Any, ...]
    time: Fraction
    end: Fraction
    lines: dict[str, Line | None]
    columns: dict[str, Any]
    shown: dict[str, Any]


def predictions(stream: Stream, rows: Iterable[Mapping[str, Any]]) -> list[Prediction]:
    """The different predictions of a stream, by key and time."""
    given: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        own = {name.lower(): value for name, value in row.items()}
        columns = {column.name.lower(): own.get(column.name.lower()) for column in stream.columns}
        if not any(_is_missing(columns[column.name.lower()]) for column in (*stream.keys, stream.time)):
            # What is no number is not equal to itself, and is the same as NULL here.
            given.setdefault(tuple(None if _is_missing(value) else value for value in columns.values()), columns)
    found = [_prediction(stream, columns, list(given.values())) for columns in given.values()]
    return sorted(found, key=lambda each: (each.key, each.time))


def _prediction(stream: Stream, columns: dict[str, Any], others: Sequence[dict[str, Any]]) -> Prediction:
    keys = [column.name.lower() for column in stream.keys]
    time = stream.time.name.lower()
    key, start = tuple(columns[name] for name in keys), instant(columns[time])
    later = [instant(other[time]) for other in others if tuple(other[name] for name in keys) == key]
    period = stream.declaration.period
    # As the bound query has its durations: in seconds, a double.
    length = Fraction(period.amount * _SECONDS[period.unit])
    end = min([start + length, *(each for each in later if each > start)])
    lines = {value.name.lower(): _line(stream, value.name, columns, start) for value in stream.values}
    typed = {name: _scalar(value) for name, value in columns.items()}
    shown = {column.name: columns[column.name.lower()] for column in (*stream.keys, stream.time)}
    return Prediction(key, start, end, lines, typed, shown)


def _line(stream: Stream, value: str, columns: Mapping[str, Any], start: Fraction) -> Line | None:
    at, rate = columns[value.lower()], columns[f"{value}_rate".lower()]
    if _is_missing(at) or _is_missing(rate):
        return None
    (error,) = [each.amount for each in stream.declaration.error if (each.column or value).lower() == value.lower()]
    return Line(Fraction(at) - Fraction(rate) * start, Fraction(rate), Fraction(error))


def instant(time: float | datetime) -> Fraction:
    """A time as a number: that of its column, or seconds since 1970 (in UTC, where it does not say)."""
    return Fraction(_scalar(time), 1_000_000) if isinstance(time, datetime) else Fraction(time)


def _scalar(value: Any) -> Any:
    """The value as constants have it: microseconds since 1970 for a TIMESTAMP."""
    if not isinstance(value, datetime):
        return value
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


# ---------------------------------------------------------------- sets of numbers


@dataclass(frozen=True)
class Interval:
    """The numbers from `low` to `high`, which may be infinite; an open end is not one of them."""

    low: Number
    high: Number
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is no such number."""
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


Numbers = tuple[Interval, ...]
INFINITY = math.inf
ALL: Numbers = (Interval(-INFINITY, INFINITY, True, True),)


def satisfying(op: str, bound: Fraction, absolute: bool) -> Numbers:
    """The numbers of which the comparison with the bound is true, or of whose absolute values it is."""
    below, above = _side(op, bound, {"<", "<=", "<>"}, -1), _side(op, bound, {">", ">=", "<>"}, 1)
    found = [*below, *above] if op != "=" else [Interval(bound, bound)]
    if not absolute:
        return tuple(found)
    positive = common(found, [Interval(Fraction(0), INFINITY, False, True)])
    mirrored = [Interval(-each.high, -each.low, each.high_open, each.low_open) for each in positive]
    return joined([*mirrored, *positive])


def _side(op: str, bound: Fraction, ops: set[str], sign: int) -> list[Interval]:
    if op not in ops:
        return []
    open_ = op in ("<", ">", "<>")
    return [Interval(-INFINITY, bound, True, open_) if sign < 0 else Interval(bound, INFINITY, open_, True)]


def common(some: Iterable[Interval], others: Sequence[Interval]) -> Numbers:
    """The numbers in both sets."""
    found = []
    for a, b in itertools.product(some, others):
        low, low_open = max((a.low, a.low_open), (b.low, b.low_open))
        high, high_closed = min((a.high, not a.high_open), (b.high, not b.high_open))
        found.append(Interval(low, high, low_open, not high_closed))
    return tuple(each for each in found if not each.is_empty)


def joined(intervals: Iterable[Interval]) -> Numbers:
    """The same numbers in as few intervals as can be, in order."""
    found: list[Interval] = []
    for each in sorted(intervals, key=lambda each: (each.low, each.low_open)):
        last = found[-1] if found else None
        if last is None or each.low > last.high or (each.low == last.high and last.high_open and each.low_open):
            found.append(each)
            continue
        high, closed = max((last.high, not last.high_open), (each.high, not each.high_open))
        found[-1] = Interval(last.low, high, last.low_open, not closed)
    return tuple(found)


def essential(numbers: Numbers) -> Numbers:
    """The set as a continuous law sees it: single numbers do not count, whether in it or missing; all ends open."""
    closed = joined(Interval(each.low, each.high) for each in numbers if each.low < each.high)
    return tuple(Interval(each.low, each.high, True, True) for each in closed)


def predicted(numbers: Numbers, error: Fraction, semantics: str) -> Numbers:
    """The predictions of a form that match, where the truth must be one of `numbers`."""
    if semantics == "EXPECTED" or not error:
        return numbers
    if semantics == "MAY":
        return joined(Interval(each.low - error, each.high + error, True, True) for each in essential(numbers))
    narrowed = [Interval(each.low + error, each.high - error) for each in essential(numbers)]
    return tuple(each for each in narrowed if not each.is_empty)


# ---------------------------------------------------------------- constraints

#: A value column of an operand: (0 or 1, name in lower case).
Value = tuple[int, str]
#: One value, or two of which the second is subtracted from the first.
Form = tuple[Value, ...]


def constraints(query: BoundMonitor) -> tuple[list[Typed], dict[Form, Numbers]]:
    """The conjuncts about rows, and the numbers that the constraints leave for each form."""
    operands = {operand.name: place for place, operand in enumerate(query.operands)}
    about_rows: list[Typed] = []
    left: dict[Form, Numbers] = {}
    for condition in query.conditions:
        if not any(_is_value(node, query.operands) for node in walk(condition)):
            about_rows.append(condition)
            continue
        form, numbers = _constraint(condition, operands)
        left[form] = joined(common(left.get(form, ALL), numbers))
    return about_rows, left


def _is_value(node: Typed, operands: Sequence[BoundOperand]) -> bool:
    """Whether the node is a value column."""
    streams = [each.stream for each in operands if isinstance(node, Reference) and node.owner == each.name]
    return any(value.name.lower() == node.name for stream in streams for value in stream.values)


def _constraint(condition: Typed, operands: Mapping[str, int]) -> tuple[Form, Numbers]:
    """One constraint: what it is about, and of which numbers it is true."""
    if not (isinstance(condition, Operation) and condition.op in _MIRRORED):
        raise NotImplementedError(condition)
    (left, right), op = condition.arguments, condition.op
    if not any(isinstance(node, Reference) for node in walk(left)):
        left, right, op = right, left, _MIRRORED[op]
    if any(isinstance(node, Reference) for node in walk(right)):
        raise NotImplementedError(condition)
    bound = evaluate(right, {}, {})
    absolute = isinstance(left, Operation) and left.op == "abs"
    form = _form(left, operands)
    return form, () if bound is None else satisfying(op, Fraction(bound), absolute)


def _form(tree: Typed, operands: Mapping[str, int]) -> Form:
    if isinstance(tree, Reference):
        return ((operands[tree.owner or ""], tree.name),)
    if isinstance(tree, Operation) and tree.op == "abs":
        (difference,) = tree.arguments
        if isinstance(difference, Operation) and difference.op == "-":
            columns = [each for each in difference.arguments if isinstance(each, Reference)]
            sides = sorted((operands[each.owner or ""], each.name) for each in columns)
            if [owner for owner, _ in sides] == [0, 1]:
                return tuple(sides)
    raise NotImplementedError(tree)


def together(forms: Iterable[Form]) -> list[list[Form]]:
    """The forms in groups: those that share a value, if only through others, are in one."""
    groups: list[list[Form]] = []
    for form in forms:
        own = [group for group in groups if any(set(form) & set(other) for other in group)]
        groups = [group for group in groups if group not in own]
        groups.append([*itertools.chain.from_iterable(own), form])
    return groups


# ---------------------------------------------------------------- half-planes and polygons


@dataclass(frozen=True)
class HalfPlane:
    """The instants with `a * ta + b * tb <= c`, or `<` where it is strict."""

    a: Number
    b: Number
    c: Number
    strict: bool = False

    def excess(self, point: Point) -> Number:
        """By how much the left side is above the right one."""
        return self.a * point[0] + self.b * point[1] - self.c

    def has(self, point: Point) -> bool:
        """Whether the point is in it."""
        return self.excess(point) < 0 or (not self.strict and self.excess(point) == 0)


def clipped(corners: Sequence[Point], plane: HalfPlane) -> list[Point]:
    """The corners of what a closed half-plane leaves of a convex polygon, which may be a segment or a point."""
    found: list[Point] = []
    for corner, after in zip(corners, [*corners[1:], *corners[:1]], strict=True):
        here, there = plane.excess(corner), plane.excess(after)
        if here <= 0:
            found.append(corner)
        if here * there < 0:
            share = here / (here - there)
            found.append((corner[0] + share * (after[0] - corner[0]), corner[1] + share * (after[1] - corner[1])))
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Piece:
    """A convex set of instants: its half-planes, and the corners of its closure."""

    planes: tuple[HalfPlane, ...]
    corners: tuple[Point, ...]

    def cut(self, planes: Iterable[HalfPlane]) -> Piece:
        """What more half-planes leave."""
        planes = tuple(planes)
        return Piece((*self.planes, *planes), tuple(reduce(clipped, planes, list(self.corners))))

    def has(self, point: Point) -> bool:
        """Whether the point is in it, and not just on an open side."""
        return all(plane.has(point) for plane in self.planes)

    @property
    def closure(self) -> Piece:
        """The set with all its sides."""
        return Piece(tuple(HalfPlane(plane.a, plane.b, plane.c) for plane in self.planes), self.corners)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it.

        The mean of the corners is on an open side only where all of the closure is.
        """
        count = len(self.corners)
        return not count or not self.has(tuple(sum(along) / count for along in zip(*self.corners, strict=True)))

    def touches(self, other: Piece) -> bool:
        """Whether the two sets are one connected set together: one meets the closure of the other."""
        return not (self.closure.cut(other.planes).is_empty and other.closure.cut(self.planes).is_empty)


def comparable(first: Prediction, second: Prediction, within: Fraction) -> Piece:
    """The instants at which both predictions apply, no further apart than the window."""
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
        own = [part for part in parts if any(map(piece.touches, part))]
        parts = [part for part in parts if part not in own]
        parts.append([*itertools.chain.from_iterable(own), piece])
    return parts


def needed(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces without those that lie in another one, but for their sides."""
    found: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: area(piece.corners), reverse=True):
        if not any(all(map(other.closure.has, piece.corners)) for other in found):
            found.append(piece)
    return tuple(found)


# ---------------------------------------------------------------- what is asked of a pair


@dataclass(frozen=True)
class Group:
    """Forms that share values, for one pair of predictions.

    Attributes
    ----------
    numbers : dict from form to the numbers that its constraints leave
    lines : dict from value to its line
    """

    numbers: dict[Form, Numbers]
    lines: dict[Value, Line]

    def error(self, form: Form) -> Fraction:
        """How far a form can be from its prediction."""
        return sum((self.lines[value].error for value in form), Fraction(0))

    def plane(self, form: Form) -> tuple[Fraction, Fraction, Fraction]:
        """The prediction of a form as (a, b, c): a * ta + b * tb + c."""
        total = [Fraction(0), Fraction(0), Fraction(0)]
        for value, sign in zip(form, (1, -1), strict=False):
            total[value[0]] += sign * self.lines[value].rate
            total[2] += sign * self.lines[value].start
        return total[0], total[1], total[2]

    def predicted(self, form: Form, point: Point) -> Number:
        """The prediction of a form at a pair of instants."""
        a, b, c = self.plane(form)
        return a * point[0] + b * point[1] + c

    # ------------------------------------------------------------ instants

    def matching(self, semantics: str) -> list[list[HalfPlane]]:
        """The convex sets of instants that match, as half-planes; a pair that matches is in one of them."""
        if semantics == "MAY" and len(self.numbers) > 1:
            cells = itertools.product(*({**self.numbers, **self.uncertain}).values())
            return [self.some_truth(dict(zip(self.numbers, cell, strict=True))) for cell in cells]
        sets = [
            [self.between(form, each) for each in predicted(numbers, self.error(form), semantics)]
            for form, numbers in self.numbers.items()
        ]
        return [list(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*sets)]

    def between(self, form: Form, numbers: Interval) -> list[HalfPlane]:
        """The half-planes in which a form is predicted to lie in an interval."""
        a, b, c = self.plane(form)
        planes = [HalfPlane(a, b, numbers.high - c, numbers.high_open)] if numbers.high < INFINITY else []
        return [*planes, HalfPlane(-a, -b, c - numbers.low, numbers.low_open)] if numbers.low > -INFINITY else planes

    def some_truth(self, cell: Mapping[Form, Interval]) -> list[HalfPlane]:
        """The instants at which a probability above 0 lies in the cell: there is truth strictly within the errors.

        The unknown truths of the values are eliminated from the inequalities, one after the other.
        """
        unknown = [value for value, line in self.lines.items() if line.error]
        rows: list[tuple[list[Fraction], Number, bool]] = []
        for form, numbers in cell.items():
            row = self._row(form, unknown)
            if numbers.high < INFINITY:
                rows.append((row[:-1], numbers.high - row[-1], numbers.high_open))
            if numbers.low > -INFINITY:
                rows.append(([-each for each in row[:-1]], row[-1] - numbers.low, numbers.low_open))
        for value in unknown:
            a, b, c = self.plane((value,))
            truth = [Fraction(value == each) for each in unknown]
            rows.append(([-a, -b, *truth], c + self.lines[value].error, True))
            rows.append(([a, b, *(-each for each in truth)], self.lines[value].error - c, True))
        for _ in unknown:
            rows = list(_eliminated(rows))
        return [HalfPlane(row[0], row[1], bound, strict) for row, bound, strict in rows]

    def _row(self, form: Form, unknown: Sequence[Value]) -> list[Fraction]:
        """A form as coefficients of ta, tb, the unknown truths, and 1; a value without error is its prediction."""
        row = [Fraction(0)] * (len(unknown) + 3)
        for value, sign in zip(form, (1, -1), strict=False):
            if value in unknown:
                row[2 + unknown.index(value)] += sign
            else:
                a, b, c = self.plane((value,))
                row[0], row[1], row[-1] = row[0] + sign * a, row[1] + sign * b, row[-1] + sign * c
        return row

    # ------------------------------------------------------------ probability

    @cached_property
    def uncertain(self) -> dict[Form, Numbers]:
        """The forms that have an error; the others are certain wherever they match."""
        return {form: essential(numbers) for form, numbers in self.numbers.items() if self.error(form)}

    @property
    def rounded(self) -> Group:
        """The same in doubles, to be searched."""
        lines = {
            value: Line(float(each.start), float(each.rate), float(each.error)) for value, each in self.lines.items()
        }
        numbers = {
            form: tuple(Interval(float(each.low), float(each.high), True, True) for each in own)
            for form, own in self.uncertain.items()
        }
        return Group(numbers, lines)

    def probability(self, point: Point) -> Number:
        """The probability that all constraints of the group hold at a pair of instants of a region."""
        uncertain = self.uncertain
        if not uncertain:
            return Fraction(1)
        if len(uncertain) == 1:
            ((form, numbers),) = uncertain.items()
            return self.chance(form, numbers, self.predicted(form, point))
        cells = itertools.product(*uncertain.values())
        return sum(self.share(dict(zip(uncertain, cell, strict=True)), point) for cell in cells)

    def chance(self, form: Form, numbers: Numbers, center: Number) -> Number:
        """The probability that a form predicted as `center` is one of the numbers."""
        errors = [self.lines[value].error for value in form]
        return sum(below(each.high - center, errors) - below(each.low - center, errors) for each in numbers)

    def share(self, cell: Mapping[Form, Interval], point: Point) -> Number:
        """The share of the box of possible truths that lies in a cell."""
        sides = sorted(self.lines)
        if len(sides) > 2:
            raise NotImplementedError(sides)
        planes = []
        for form, numbers in cell.items():
            a, b = (sum(sign * (value == side) for value, sign in zip(form, (1, -1), strict=False)) for side in sides)
            planes += [HalfPlane(a, b, numbers.high)] if numbers.high < INFINITY else []
            planes += [HalfPlane(-a, -b, -numbers.low)] if numbers.low > -INFINITY else []
        (x, dx), (y, dy) = [(self.predicted((value,), point), self.lines[value].error) for value in sides]
        corners = [(x - dx, y - dy), (x + dx, y - dy), (x + dx, y + dy), (x - dx, y + dy)]
        left = reduce(clipped, planes, list(dict.fromkeys(corners)))
        if dx and dy:
            return area(left) / (4 * dx * dy)
        along = [corner[0 if dx else 1] for corner in left]
        return (max(along) - min(along)) / (2 * (dx or dy)) if along else Fraction(0)

    def highest_alone(self, corners: Sequence[Point]) -> Number:
        """The highest probability over a polygon, exactly, where one form is uncertain.

        It is a quadratic function of the prediction between any two of the knots, and the prediction takes all values
        between those at the corners.
        """
        ((form, numbers),) = self.uncertain.items()
        ends = [end for each in numbers for end in (each.low, each.high) if abs(end) < INFINITY]
        errors = [self.lines[value].error for value in form]
        moves = [sum(signed) for signed in itertools.product(*((-error, error) for error in errors))]
        centers = [self.predicted(form, corner) for corner in corners]
        low, high = min(centers), max(centers)
        knots = sorted({low, high, *(end + move for end in ends for move in moves if low < end + move < high)})
        tried = set(knots)
        for left, right in itertools.pairwise(knots):
            middle = (left + right) / 2
            at = [self.chance(form, numbers, center) for center in (left, middle, right)]
            bend = at[0] - 2 * at[1] + at[2]
            top = middle - (right - left) / 2 * (at[2] - at[0]) / (2 * bend) if bend else middle
            tried |= {top} if left < top < right else set()
        return max(self.chance(form, numbers, center) for center in tried)


def _eliminated(rows: Sequence[tuple[list[Fraction], Number, bool]]) -> Iterator[tuple[list[Fraction], Number, bool]]:
    """The inequalities without their last unknown: every lower bound of it is below every upper one."""
    yield from ((row[:-1], bound, strict) for row, bound, strict in rows if not row[-1])
    lower, upper = ([each for each in rows if each[0][-1] * sign > 0] for sign in (-1, 1))
    for (low, low_bound, low_strict), (high, high_bound, high_strict) in itertools.product(lower, upper):
        row = [h / high[-1] - g / low[-1] for g, h in zip(low, high, strict=True)]
        yield row[:-1], high_bound / high[-1] - low_bound / low[-1], low_strict or high_strict


def below(distance: Number, errors: Sequence[Fraction]) -> Number:
    """The probability that a form is at most so far above its prediction; one or two errors, not all 0.

    The error of a value has the density 1 / 2e on [-e, e]. Integrated once, that is a ramp, ((z + e)+ - (z - e)+) / 2e,
    where z+ is max(z, 0). Integrated against a second such density it is the same with squares over 2, twice.
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


def area(corners: Sequence[Point]) -> Number:
    """The area of a polygon."""
    pairs = zip(corners, [*corners[1:], *corners[:1]], strict=True)
    return abs(sum(x * after_y - after_x * y for (x, y), (after_x, after_y) in pairs)) / 2


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
    """The highest probability over a polygon by a lattice on it, and finer ones around the best of its points.

    `most` is a bound that cannot be exceeded: there the search ends.
    """
    reach = max(max(along) - min(along) for along in zip(*corners, strict=True)) / 8
    tried = {point: probability(point) for point in lattice(corners, 12)}
    for _ in range(26):
        best = sorted(tried, key=tried.__getitem__, reverse=True)
        if tried[best[0]] >= most - 1e-12:
            break
        starts = [best[0], *(point for point in best if math.dist(point, best[0]) > reach)][:2]
        tried = {point: tried[point] for point in starts}
        for x, y in starts:
            box = [HalfPlane(1, 0, x + reach), HalfPlane(-1, 0, reach - x)]
            box += [HalfPlane(0, 1, y + reach), HalfPlane(0, -1, reach - y)]
            near = reduce(clipped, box, list(corners))
            tried |= {point: probability(point) for point in lattice(near, 4)} if near else {}
        reach /= 2
    return min(max(tried.values()), 1.0)


def lattice(corners: Sequence[Point], count: int) -> Iterator[Point]:
    """Points of a convex polygon: those that divide the sides of each triangle at its first corner by `count`."""
    (x, y), *others = corners
    if not others:
        yield x, y
    for (x1, y1), (x2, y2) in itertools.pairwise(others if len(others) > 1 else [*others, *others]):
        for i in range(count + 1):
            for j in range(count + 1 - i):
                yield x + ((x1 - x) * i + (x2 - x) * j) / count, y + ((y1 - y) * i + (y2 - y) * j) / count


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class Region:
    """A connected set of instants of one pair of predictions, and what is asked of it."""

    pieces: tuple[Piece, ...]
    groups: tuple[Group, ...]

    @property
    def boundary(self) -> tuple[Point, ...] | None:
        """The corners, counter-clockwise from the least one; None where they do not say it all."""
        if len(self.pieces) > 1:
            return None
        (piece,) = self.pieces
        first = piece.corners.index(min(piece.corners))
        return piece.corners[first:] + piece.corners[:first]

    @property
    def valid(self) -> tuple[Fraction, Fraction]:
        """The range of the later instant; on either side of the diagonal, that is one of the coordinates."""
        sides = [
            clipped(piece.corners, side) for piece in self.pieces for side in (HalfPlane(1, -1, 0), HalfPlane(-1, 1, 0))
        ]
        later = [max(corner) for corners in sides for corner in corners]
        return min(later), max(later)

    @property
    def probability(self) -> Number:
        """The highest one."""
        return max(highest(piece, self.groups) for piece in self.pieces)


@untraced
def answers(query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Answer]:
    """The answers, by the predictions of the first operand, then the second, then time.

    Parameters
    ----------
    query : BoundMonitor
    rows : mapping from the name of a stream to its rows
        Times are numbers or datetimes.
    relations : mapping from the name of a relation, as declared, to its rows
    """
    found = []
    for pair, regions in matches(query, rows, relations):
        structs = {operand.label: dict(each.shown) for operand, each in zip(query.operands, pair, strict=False)}
        for region in sorted(regions, key=lambda region: (region.valid, region.boundary or ())):
            probability = region.probability
            if probability > 0 and probability >= query.threshold:
                (start, end), boundary = region.valid, {} if len(structs) == 1 else {"boundary": region.boundary}
                found.append({**structs, "valid_from": start, "valid_to": end, **boundary, "probability": probability})
    return found


def matches(
    query: BoundMonitor, rows: Rows, relations: Relations = NO_RELATIONS
) -> Iterator[tuple[tuple[Prediction, Prediction], list[Region]]]:
    """Every pair of predictions that WHERE lets through, with its regions; a single one is there twice."""
    about_rows, numbers = constraints(query)
    for pair in pairs(query, rows):
        bindings = {(each.name, 1): own.columns for each, own in zip(query.operands, pair, strict=False)}
        if all(holds(condition, bindings, relations) for condition in about_rows):
            yield pair, regions(query, pair, numbers)


def pairs(query: BoundMonitor, rows: Rows) -> Iterator[tuple[Prediction, Prediction]]:
    """Every pair of predictions, of two keys where they are of one stream; of one operand, each with itself."""
    given = {name.lower(): own for name, own in rows.items()}
    first, second = (each.stream for each in (query.operands[0], query.operands[-1]))
    some, others = (predictions(stream, given.get(stream.name.lower(), ())) for stream in (first, second))
    if len(query.operands) == 1:
        yield from zip(some, others, strict=True)
        return
    for a, b in itertools.product(some, others):
        if first.name.lower() != second.name.lower() or a.key != b.key:
            yield a, b


def groups_of(pair: tuple[Prediction, Prediction], numbers: Mapping[Form, Numbers]) -> tuple[Group, ...] | None:
    """What is asked of a pair, by forms that share values; None where one of the values is not known."""
    lines = {value: pair[value[0]].lines[value[1]] for form in numbers for value in form}
    if None in lines.values():
        return None
    return tuple(
        Group({form: numbers[form] for form in forms}, {value: lines[value] for form in forms for value in form})
        for forms in together(numbers)
    )


def regions(query: BoundMonitor, pair: tuple[Prediction, Prediction], numbers: Mapping[Form, Numbers]) -> list[Region]:
    """The connected sets of instants at which a pair matches."""
    groups = groups_of(pair, numbers)
    if groups is None:
        return []
    # A single prediction is compared with itself, at the same instant.
    within = Fraction(query.within) if len(query.operands) == 2 else Fraction(0)
    whole = comparable(*pair, within)
    choices = itertools.product(*(group.matching(query.semantics) for group in groups))
    pieces = [whole.cut(itertools.chain.from_iterable(chosen)) for chosen in choices]
    parts = connected([piece for piece in pieces if not piece.is_empty])
    return [Region(needed(part), groups) for part in parts]
