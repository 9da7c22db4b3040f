"""Sets of numbers of the MONITOR oracle: unions of intervals with open and closed ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.oracles.monitor_predictions import Number


@dataclass(frozen=True)
class Interval:
    """The numbers from `low` to `high`, which may be infinite; open ends are excluded."""

    low: Number
    high: Number
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the interval has no number."""
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


Numbers = tuple[Interval, ...]
INFINITY = math.inf
ALL: Numbers = (Interval(-INFINITY, INFINITY, True, True),)


def satisfying(op: str, bound: Fraction, absolute: bool) -> Numbers:
    """The numbers x with `x op bound`, or with `ABS(x) op bound` if `absolute`."""
    below, above = _side(op, bound, {"<", "<=", "<>"}, -1), _side(op, bound, {">", ">=", "<>"}, 1)
    intervals = [*below, *above] if op != "=" else [Interval(bound, bound)]
    if not absolute:
        return tuple(intervals)
    positive = common(intervals, [Interval(Fraction(0), INFINITY, False, True)])
    mirrored = [Interval(-interval.high, -interval.low, interval.high_open, interval.low_open) for interval in positive]
    return joined([*mirrored, *positive])


def _side(op: str, bound: Fraction, ops: set[str], sign: int) -> list[Interval]:
    if op not in ops:
        return []
    is_open = op in ("<", ">", "<>")
    return [Interval(-INFINITY, bound, True, is_open) if sign < 0 else Interval(bound, INFINITY, is_open, True)]


def common(first: Iterable[Interval], second: Sequence[Interval]) -> Numbers:
    """The numbers in both sets."""
    intersections = []
    for a, b in itertools.product(first, second):
        low, low_open = max((a.low, a.low_open), (b.low, b.low_open))
        high, high_closed = min((a.high, not a.high_open), (b.high, not b.high_open))
        intersections.append(Interval(low, high, low_open, not high_closed))
    return tuple(interval for interval in intersections if not interval.is_empty)


def joined(intervals: Iterable[Interval]) -> Numbers:
    """The union of intervals, as few intervals as possible in ascending order."""
    merged: list[Interval] = []
    for interval in sorted(intervals, key=lambda interval: (interval.low, interval.low_open)):
        last = merged[-1] if merged else None
        if (
            last is None
            or interval.low > last.high
            or (interval.low == last.high and last.high_open and interval.low_open)
        ):
            merged.append(interval)
            continue
        high, closed = max((last.high, not last.high_open), (interval.high, not interval.high_open))
        merged[-1] = Interval(last.low, high, last.low_open, not closed)
    return tuple(merged)


def essential(numbers: Numbers) -> Numbers:
    """The set up to single numbers, which a continuous distribution gives probability 0; all ends are open."""
    closed = joined(Interval(interval.low, interval.high) for interval in numbers if interval.low < interval.high)
    return tuple(Interval(interval.low, interval.high, True, True) for interval in closed)


def predicted(numbers: Numbers, error: Fraction, semantics: str) -> Numbers:
    """The predicted values of a form that match, if its true value must be one of `numbers`."""
    if semantics == "EXPECTED" or not error:
        return numbers
    if semantics == "MAY":
        return joined(
            Interval(interval.low - error, interval.high + error, True, True) for interval in essential(numbers)
        )
    narrowed = [Interval(interval.low + error, interval.high - error) for interval in essential(numbers)]
    return tuple(interval for interval in narrowed if not interval.is_empty)
