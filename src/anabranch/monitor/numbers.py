"""Sets of numbers: the numbers that constraints allow for a value or for the difference of two.

A set is a union of intervals, and an interval lies between two *cuts*. A cut is (number, 0) immediately before a
number, or (number, 1) immediately after it. So open ends are no special case, and cuts compare like tuples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

Cut = tuple[float, int]


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The numbers between two cuts, the first before the second."""

    begin: Cut
    end: Cut

    @property
    def low(self) -> float:
        """The lower end."""
        return self.begin[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self.end[0]

    @property
    def low_open(self) -> bool:
        """Whether the interval excludes its lower end."""
        return self.begin[1] == 1

    @property
    def high_open(self) -> bool:
        """Whether the interval excludes its upper end."""
        return self.end[1] == 0

    @property
    def mirrored(self) -> Interval:
        """The negated numbers."""
        return Interval((-self.high, 1 - self.end[1]), (-self.low, 1 - self.begin[1]))


#: A union of intervals that do not touch, in ascending order.
Numbers = tuple[Interval, ...]

_BELOW_ALL, _ABOVE_ALL = (-inf, 1), (inf, 0)
ALL: Numbers = (Interval(_BELOW_ALL, _ABOVE_ALL),)


def satisfying(op: str, bound: float | None, absolute: bool) -> Numbers:
    """The numbers x with `x op bound`, or with `ABS(x) op bound` if `absolute`."""
    if bound is None:
        return ()
    before, after = (bound, 0), (bound, 1)
    intervals = {
        "<": (Interval(_BELOW_ALL, before),),
        "<=": (Interval(_BELOW_ALL, after),),
        ">": (Interval(after, _ABOVE_ALL),),
        ">=": (Interval(before, _ABOVE_ALL),),
        "=": (Interval(before, after),),
        "<>": (Interval(_BELOW_ALL, before), Interval(after, _ABOVE_ALL)),
    }[op]
    if not absolute:
        return intervals
    positive = common(intervals, (Interval((0.0, 0), _ABOVE_ALL),))
    return joined((*mirrored(positive), *positive))


def mirrored(numbers: Numbers) -> Numbers:
    """The negated numbers."""
    return tuple(interval.mirrored for interval in reversed(numbers))


def common(first: Numbers, second: Numbers) -> Numbers:
    """The numbers in both sets."""
    pairs = ((max(one.begin, other.begin), min(one.end, other.end)) for one in first for other in second)
    return joined(Interval(begin, end) for begin, end in pairs if begin < end)


def joined(intervals: Iterable[Interval]) -> Numbers:
    """The union of intervals, as few intervals as possible in ascending order."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        if merged and interval.begin <= merged[-1].end:
            interval = Interval(merged[-1].begin, max(merged.pop().end, interval.end))
        merged.append(interval)
    return tuple(merged)


def essential(numbers: Numbers) -> Numbers:
    """The set up to single numbers, which a continuous distribution gives probability 0; all ends are open."""
    closed = joined(
        Interval((interval.low, 0), (interval.high, 1)) for interval in numbers if interval.low < interval.high
    )
    return tuple(Interval((interval.low, 1), (interval.high, 0)) for interval in closed)


def complement(numbers: Numbers) -> Numbers:
    """All other numbers."""
    cuts = [_BELOW_ALL, *(cut for interval in numbers for cut in (interval.begin, interval.end)), _ABOVE_ALL]
    pairs = zip(cuts[::2], cuts[1::2], strict=True)
    return tuple(Interval(begin, end) for begin, end in pairs if begin < end)
