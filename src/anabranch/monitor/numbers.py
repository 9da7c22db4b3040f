"""Sets of numbers: what constraints leave of a value, or of the difference of two.

A set is a union of intervals, and an interval is what lies between two *cuts*. A cut is (number, 0) just before a
number, or (number, 1) just after it: so an open end is no special case, and cuts compare as pairs do.
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
        """Whether the lower end is none of the numbers."""
        return self.begin[1] == 1

    @property
    def high_open(self) -> bool:
        """Whether the upper end is none of the numbers."""
        return self.end[1] == 0

    @property
    def mirrored(self) -> Interval:
        """The same numbers with the other sign."""
        return Interval((-self.high, 1 - self.end[1]), (-self.low, 1 - self.begin[1]))


#: A union of intervals that do not touch, in order.
Numbers = tuple[Interval, ...]

_LEAST, _MOST = (-inf, 1), (inf, 0)
ALL: Numbers = (Interval(_LEAST, _MOST),)


def satisfying(op: str, bound: float | None, absolute: bool) -> Numbers:
    """The numbers of which a comparison with the bound is true, or of whose absolute values it is."""
    if bound is None:
        return ()
    before, after = (bound, 0), (bound, 1)
    found = {
        "<": (Interval(_LEAST, before),),
        "<=": (Interval(_LEAST, after),),
        ">": (Interval(after, _MOST),),
        ">=": (Interval(before, _MOST),),
        "=": (Interval(before, after),),
        "<>": (Interval(_LEAST, before), Interval(after, _MOST)),
    }[op]
    if not absolute:
        return found
    positive = common(found, (Interval((0.0, 0), _MOST),))
    return joined((*mirrored(positive), *positive))


def mirrored(numbers: Numbers) -> Numbers:
    """The same numbers with the other sign."""
    return tuple(each.mirrored for each in reversed(numbers))


def common(some: Numbers, others: Numbers) -> Numbers:
    """The numbers in both sets."""
    pairs = ((max(one.begin, other.begin), min(one.end, other.end)) for one in some for other in others)
    return joined(Interval(begin, end) for begin, end in pairs if begin < end)


def joined(intervals: Iterable[Interval]) -> Numbers:
    """The same numbers in as few intervals as can be, in order."""
    found: list[Interval] = []
    for each in sorted(intervals):
        if found and each.begin <= found[-1].end:
            each = Interval(found[-1].begin, max(found.pop().end, each.end))
        found.append(each)
    return tuple(found)


def essential(numbers: Numbers) -> Numbers:
    """The set as a continuous law sees it: single numbers do not count, whether in it or missing; all ends open."""
    closed = joined(Interval((each.low, 0), (each.high, 1)) for each in numbers if each.low < each.high)
    return tuple(Interval((each.low, 1), (each.high, 0)) for each in closed)
