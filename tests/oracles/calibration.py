"""Calibration written literally from its definitions: near events, episodes, isotonic regression and linear maps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Span(NamedTuple):
    """A group, a first and a last instant."""

    group: int
    start: float
    end: float


def near(one: Span, other: Span, within: float) -> bool:
    """Whether two spans of one group overlap or are at most `within` apart."""
    return one.group == other.group and one.start <= other.end + within and other.start <= one.end + within


def episodes(spans: Sequence[Span], gap: float) -> set[frozenset[int]]:
    """The sets of spans that are connected by overlaps or gaps of at most `gap`: merge until nothing changes."""
    sets = [{number} for number in range(len(spans))]
    merged = True
    while merged:
        merged = False
        for one in sets:
            for other in sets:
                if one is not other and any(near(spans[i], spans[j], gap) for i in one for j in other):
                    one |= other
                    sets.remove(other)
                    merged = True
                    break
            if merged:
                break
    return {frozenset(one) for one in sets}


def isotonic(counts: Sequence[int], trues: Sequence[int]) -> list[Fraction]:
    """The isotonic regression of shares: the maximum over starts of the minimum over ends of the mean between them."""
    n = len(counts)

    def share(start: int, end: int) -> Fraction:
        return Fraction(sum(trues[start : end + 1]), sum(counts[start : end + 1]))

    return [max(min(share(start, end) for end in range(i, n)) for start in range(i + 1)) for i in range(n)]


def mapped(knots: Sequence[tuple[float, float]], p: float) -> float:
    """The value of a piecewise linear map that is constant outside its knots."""
    if p <= knots[0][0]:
        return knots[0][1]
    for (x, y), (next_x, next_y) in zip(knots, knots[1:], strict=False):
        if p <= next_x:
            return y + (p - x) / (next_x - x) * (next_y - y)
    return knots[-1][1]
