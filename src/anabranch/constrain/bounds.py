"""Upper bounds between things, closed: what follows from a chain of them holds for its ends.

Differences of times are bounded by shortest paths, distances between points by the triangle inequality; both are sums
along a path, so one closure serves for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from anabranch.arrays import F64, I64, Bools

#: Sums of decimal fractions are not exact: a cycle that misses zero by this much, of its largest bound, is a zero one.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Bound:
    """At most `value`, or below it where it is `strict`."""

    value: float
    strict: bool = False

    def __str__(self) -> str:
        return f"{'<' if self.strict else '<='} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Closed:
    """The tightest bounds that follow, and the way each follows.

    Attributes
    ----------
    value, strict : (n, n) arrays; infinity where nothing bounds a pair
    cycle : places along which the bounds contradict each other, the first again at the end; empty where they do not
    """

    value: F64
    strict: Bools
    cycle: tuple[int, ...] = ()

    def bound(self, i: int, j: int) -> Bound:
        """The bound from i to j."""
        return Bound(float(self.value[i, j]), bool(self.strict[i, j]))


def close(n: int, given: Mapping[tuple[int, int], Bound]) -> Closed:
    """Close bounds between n things (Floyd and Warshall); where several are given for a pair, give the tightest."""
    value = np.full((n, n), inf)
    strict = np.zeros((n, n), np.bool_)
    following = np.full((n, n), -1)
    np.fill_diagonal(value, 0.0)
    for (i, j), bound in given.items():
        value[i, j], strict[i, j], following[i, j] = bound.value, bound.strict, j
    for k in range(n):
        through = value[:, k, None] + value[None, k, :]
        both = strict[:, k, None] | strict[None, k, :]
        tighter = (through < value) | ((through == value) & both & ~strict & np.isfinite(through))
        value, strict = np.where(tighter, through, value), np.where(tighter, both, strict)
        following = np.where(tighter, following[:, k, None], following)
        cycle = _contradiction(value, strict, following, given)
        if cycle:
            return Closed(value, strict, cycle)
    return Closed(value, strict)


def _contradiction(
    value: F64,
    strict: Bools,
    following: I64,
    given: Mapping[tuple[int, int], Bound],
) -> tuple[int, ...]:
    """A cycle whose bounds sum below 0, or to 0 with a strict one among them."""
    largest = max((abs(bound.value) for bound in given.values() if bound.value < inf), default=0.0)
    around, is_strict = np.diag(value), np.diag(strict)
    rounding = _ROUNDING * largest
    (bad,) = np.nonzero((around < -rounding) | (is_strict & (around <= rounding)))
    if not len(bad):
        return ()
    path = [int(bad[0])]
    while len(path) < 2 or path[-1] not in path[:-1]:
        path.append(int(following[path[-1], bad[0]]))
    return tuple(path[path.index(path[-1]) :])


def tightest(bounds: Mapping[tuple[int, int], Bound], pair: tuple[int, int], bound: Bound) -> Bound:
    """The tighter of a bound and the one that is there already for a pair."""
    known = bounds.get(pair, Bound(inf))
    return min(known, bound, key=lambda each: (each.value, not each.strict))
