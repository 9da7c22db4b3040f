"""The closure of upper bounds: a chain of bounds implies a bound between its ends.

Differences of times are bounded by shortest paths, distances between points by the triangle inequality. Both are sums
along a path, so the same closure computes both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

#: Sums of decimal fractions are not exact: a sum is taken as 0 up to this share of the largest bound.
ROUNDING = 1e-12


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
    value, strict : of each pair (i, j); infinity for a pair that is not bounded
    cycle : a cycle of bounds that contradict each other, with the first again at the end; empty if there is none
    """

    value: Mapping[tuple[int, int], float]
    strict: Mapping[tuple[int, int], bool]
    cycle: tuple[int, ...] = ()

    def bound(self, i: int, j: int) -> Bound:
        """The bound from i to j."""
        return Bound(self.value[i, j], self.strict[i, j])


#: A bound as (value, not strict), so that the tighter one of two compares less.
_Pair = tuple[float, bool]


def close(n: int, stated: Mapping[tuple[int, int], Bound]) -> Closed:
    """The closure of stated bounds between n slots or moments, by the Floyd-Warshall algorithm.

    Without NumPy, because a query has few slots, and checking a workbook must not wait for arrays to load.
    """
    table: list[list[_Pair]] = [[(0.0 if i == j else inf, True) for j in range(n)] for i in range(n)]
    following = [[-1] * n for _ in range(n)]
    for (i, j), bound in stated.items():
        table[i][j], following[i][j] = (bound.value, not bound.strict), j
    cycle: tuple[int, ...] = ()
    for k in range(n):
        _shorten(table, following, k)
        cycle = _contradiction([row[i] for i, row in enumerate(table)], following, stated)
        if cycle:
            break
    pairs = {(i, j): bound for i, row in enumerate(table) for j, bound in enumerate(row)}
    return Closed(
        {p: value for p, (value, _) in pairs.items()}, {p: not loose for p, (_, loose) in pairs.items()}, cycle
    )


def close_apart(n: int, stated: Mapping[tuple[int, int], Bound], apart: Sequence[Collection[int]]) -> Closed:
    """The closure of stated bounds in which the nodes of each set in `apart` imply nothing about the others.

    These are the nodes of a variable with NOT: bounds on an event that does not exist say nothing about the others. Two
    such sets have no bounds between them.
    """
    everything = {node for nodes in apart for node in nodes}
    closed = close(n, _without(stated, everything))
    for nodes in apart:
        own = close(n, _without(stated, everything - set(nodes)))
        chosen = [pair for pair in own.value if pair[0] in nodes or pair[1] in nodes]
        closed = Closed(
            {**closed.value, **{pair: own.value[pair] for pair in chosen}},
            {**closed.strict, **{pair: own.strict[pair] for pair in chosen}},
            closed.cycle or own.cycle,
        )
    return closed


def _without(stated: Mapping[tuple[int, int], Bound], nodes: Collection[int]) -> Mapping[tuple[int, int], Bound]:
    return {pair: bound for pair, bound in stated.items() if not {*pair} & {*nodes}}


def _shorten(table: list[list[_Pair]], following: list[list[int]], k: int) -> None:
    """Tighten every bound by the path through k."""
    from_k = list(table[k])
    for row, next_of in zip(table, following, strict=True):
        (to_k, loose), first = row[k], next_of[k]
        if to_k == inf:
            continue
        for j, (further, also_loose) in enumerate(from_k):
            through = (to_k + further, loose and also_loose)
            if through < row[j] and through[0] < inf:
                row[j], next_of[j] = through, first


def _contradiction(
    around: list[_Pair], following: list[list[int]], stated: Mapping[tuple[int, int], Bound]
) -> tuple[int, ...]:
    """A cycle of bounds with a sum below 0, or with a sum of 0 if one of them is strict; empty if there is none.

    `around` has the bound of the way from each slot back to itself.
    """
    largest = max((abs(bound.value) for bound in stated.values() if bound.value < inf), default=0.0)
    rounding = ROUNDING * largest
    for start, (value, loose) in enumerate(around):
        if value < -rounding or (not loose and value <= rounding):
            path = [start]
            while len(path) < 2 or path[-1] not in path[:-1]:
                path.append(following[path[-1]][start])
            return tuple(path[path.index(path[-1]) :])
    return ()


def tightest(bounds: Mapping[tuple[int, int], Bound], pair: tuple[int, int], bound: Bound) -> Bound:
    """The tighter one of a bound and the known bound of a pair."""
    known = bounds.get(pair, Bound(inf))
    return min(known, bound, key=lambda candidate: (candidate.value, not candidate.strict))
