"""COMPUTEPROB: the weight of a gap by the events in it, and that of everything that can follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.compiled import assign, compiled
from benchmarks.relate_paper.asked import F64, I64
from benchmarks.relate_paper.gaps import Side


class Cache(NamedTuple):
    """The weights of gaps by the numbers of events in them; NaN where not asked for yet.

    That of gap g with x events of a and y of b is at starts[g] + x * widths[g] + y.
    """

    starts: I64
    widths: I64
    weights: F64


@compiled
def make_cache(a: Side, b: Side) -> Cache:
    """Room for every number of events that each gap can have."""
    widths = b.run_end - b.run + 1
    starts = np.zeros(len(widths) + 1, np.int64)
    assign(starts[1:], np.cumsum((a.run_end - a.run + 1) * widths))
    return Cache(starts, widths, np.full(starts[-1], np.nan))


@compiled
def _power(x: float, n: int) -> float:
    """x^n / n!, without its overflowing parts."""
    product = 1.0
    for k in range(1, n + 1):
        product *= x / k
    return product


@compiled
def weight_of_gap(d: float, density_a: float, in_a: int, density_b: float, in_b: int) -> float:
    """The weight of a gap d long with so many events in one order: d^n / n! times the density of each."""
    product = _power(d * density_a, in_a)
    for k in range(1, in_b + 1):
        product *= d * density_b / (in_a + k)
    return product


@compiled
def weights_to_come(side: Side, bounds: F64) -> F64:
    """The total weight of all ways to go on from the bound before gap g, by g and the number of events before it."""
    tails = np.ones((len(bounds) + 1, len(side.times) + 1))
    for g in range(1, len(bounds) + 1):
        if g < len(bounds):
            for i in range(side.run[g], side.run_end[g]):
                tails[g, i] = _power((side.hi[i] - bounds[g - 1]) * side.density[g], side.run_end[g] - i)
            # An event recorded at the bound itself may not be counted: the run then is all to come.
            tails[g, : side.run[g]] = tails[g, side.run[g]]
        tails[g, : side.need[g - 1]] = 0.0
    return tails


@compiled
def weight_of_rest(
    d: float, density_a: float, density_b: float, in_a: int, in_b: int, tails_a: F64, tails_b: F64
) -> float:
    """The total weight of all ways to go on within a gap and after it; in_a and in_b events are in it already.

    `tails_a` has the weight of what comes after the gap by how many more events of a are in it, `tails_b` that of b.
    """
    total = 0.0
    first = weight_of_gap(d, density_a, in_a, density_b, in_b)
    for x in range(len(tails_a)):
        if x > 0:
            first *= d * density_a / (in_a + in_b + x)
        # The weight for one order, times the number of orders of x and y more events.
        weight = first
        for y in range(len(tails_b)):
            if y > 0:
                weight *= d * density_b / (in_a + in_b + x + y) * (x + y) / y
            total += weight * tails_a[x] * tails_b[y]
    return total
