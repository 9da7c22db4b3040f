"""The closure of upper bounds: a chain of bounds implies a bound between its ends.

Differences of times are bounded by shortest paths, distances between points by the triangle inequality. Both are sums
along a path, so the same closure computes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from anabranch.arrays import F64, I64, Bools

#: Sums of decimal fractions are not exact: a sum is taken as 0 up to this share of the largest bound.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound: at most `value`, or below it if `strict`."""

    value: float
    strict: bool = False

    def __str__(self) -> str:
        return f"{'<' if self.strict else '<='} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Closed:
    """The tightest implied bounds.

    Attributes
    ----------
    value, strict : (n, n) arrays; infinity for a pair that is not bounded
    cycle : a cycle of bounds that contradict each other, with the first again at the end; empty if there is none
    """

    value: F64
    strict: Bools
    cycle: tuple[int, ...] = ()

    def bound(self, i: int, j: int) -> Bound:
        """The bound from i to j."""
        return Bound(float(self.value[i, j]), bool(self.strict[i, j]))


def close(n: int, stated: Mapping[tuple[int, int], Bound]) -> Closed:
    """The closure of stated bounds between n slots or moments, by the Floyd-Warshall algorithm."""
    value = np.full((n, n), inf)
    strict = np.zeros((n, n), np.bool_)
    following = np.full((n, n), -1)
    np.fill_diagonal(value, 0.0)
    for (i, j), bound in stated.items():
        value[i, j], strict[i, j], following[i, j] = bound.value, bound.strict, j
    for k in range(n):
        through = value[:, k, None] + value[None, k, :]
        both = strict[:, k, None] | strict[None, k, :]
        tighter = (through < value) | ((through == value) & both & ~strict & np.isfinite(through))
        value, strict = np.where(tighter, through, value), np.where(tighter, both, strict)
        following = np.where(tighter, following[:, k, None], following)
        cycle = _contradiction(value, strict, following, stated)
        if cycle:
            return Closed(value, strict, cycle)
    return Closed(value, strict)


def _contradiction(
    value: F64,
    strict: Bools,
    following: I64,
    stated: Mapping[tuple[int, int], Bound],
) -> tuple[int, ...]:
    """A cycle of bounds with a sum below 0, or with a sum of 0 if one of them is strict; empty if there is none."""
    largest = max((abs(bound.value) for bound in stated.values() if bound.value < inf), default=0.0)
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
    """The tighter one of a bound and the known bound of a pair."""
    known = bounds.get(pair, Bound(inf))
    return min(known, bound, key=lambda candidate: (candidate.value, not candidate.strict))
