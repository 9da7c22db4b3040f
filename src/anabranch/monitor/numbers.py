"""Sets of numbers: what constraints leave of a value, or of the difference of two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers from `low` to `high`, which may be infinite; an open end is not one of them."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is no such number."""
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


#: A union of intervals that do not touch, in order.
Numbers = tuple[Interval, ...]
ALL: Numbers = (Interval(-inf, inf, True, True),)


def satisfying(op: str, bound: float | None, absolute: bool) -> Numbers:
    """The numbers of which a comparison with the bound is true, or of whose absolute values it is."""
    if bound is None:
        return ()
    found = _compared(op, bound)
    if not absolute:
        return found
    positive = common(found, (Interval(0.0, inf, False, True),))
    return joined((*(Interval(-each.high, -each.low, each.high_open, each.low_open) for each in positive), *positive))


def _compared(op: str, bound: float) -> Numbers:
    below, above = Interval(-inf, bound, True, op != "<="), Interval(bound, inf, op != ">=", True)
    if op == "=":
        return (Interval(bound, bound),)
    return {"<": (below,), "<=": (below,), ">": (above,), ">=": (above,), "<>": (below, above)}[op]


def common(some: Iterable[Interval], others: Sequence[Interval]) -> Numbers:
    """The numbers in both sets."""
    found = []
    for one in some:
        for other in others:
            low, low_open = max((one.low, one.low_open), (other.low, other.low_open))
            high, closed = min((one.high, not one.high_open), (other.high, not other.high_open))
            found.append(Interval(low, high, low_open, not closed))
    return joined(each for each in found if not each.is_empty)


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
