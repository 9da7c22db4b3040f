"""Sets of numbers as the oracle of MONITOR has them: unions of intervals, with open and closed ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.oracles.monitor_predictions import Number


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
