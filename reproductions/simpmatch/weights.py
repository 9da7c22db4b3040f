"""COMPUTEPROB: the weight of a gap by the events in it, and the weight of everything that can follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled
from reproductions.simpmatch.gaps import Side


class Cache(NamedTuple):
    """The weights of gaps by the numbers of events in them; NaN if not computed yet.

    The weight of gap g with x events of a and y of b is at starts[g] + x * widths[g] + y.
    """

    starts: I64
    widths: I64
    weights: F64


@compiled
def make_cache(a: Side, b: Side) -> Cache:
    """Return an empty cache with an entry for every number of events that each gap can have."""
    widths = b.run_end - b.run + 1
    starts = np.zeros(len(widths) + 1, np.int64)
    assign(starts[1:], np.cumsum((a.run_end - a.run + 1) * widths))
    return Cache(starts, widths, np.full(starts[-1], np.nan))


@compiled
def _power(x: float, n: int) -> float:
    """Return x^n / n! without intermediate overflow."""
    product = 1.0
    for k in range(1, n + 1):
        product *= x / k
    return product


@compiled
def weight_of_gap(d: float, density_a: float, in_a: int, density_b: float, in_b: int) -> float:
    """Return the weight of a gap of length d with n = in_a + in_b events in one order: d^n / n! times the densities."""
    product = _power(d * density_a, in_a)
    for k in range(1, in_b + 1):
        product *= d * density_b / (in_a + k)
    return product


@compiled
def remaining_weights(side: Side, bounds: F64) -> F64:
    """Return the total weight of all continuations from the bound before gap g, by g and the events before it."""
    tails = np.ones((len(bounds) + 1, len(side.times) + 1))
    for g in range(1, len(bounds) + 1):
        if g < len(bounds):
            for i in range(side.run[g], side.run_end[g]):
                tails[g, i] = _power((side.hi[i] - bounds[g - 1]) * side.density[g], side.run_end[g] - i)
            # An event recorded at the bound itself may not be counted yet: then the whole run is still to come.
            tails[g, : side.run[g]] = tails[g, side.run[g]]
        tails[g, : side.need[g - 1]] = 0.0
    return tails


@compiled
def weight_of_completions(
    d: float, density_a: float, density_b: float, in_a: int, in_b: int, tails_a: F64, tails_b: F64
) -> float:
    """Return the total weight of all continuations within a gap and after it; in_a and in_b events are already in it.

    `tails_a` has the weight after the gap by the number of further events of a in the gap, `tails_b` that of b.
    """
    total = 0.0
    first = weight_of_gap(d, density_a, in_a, density_b, in_b)
    for x in range(len(tails_a)):
        if x > 0:
            first *= d * density_a / (in_a + in_b + x)
        # The weight for one order, times the number of orders of x and y further events.
        weight = first
        for y in range(len(tails_b)):
            if y > 0:
                weight *= d * density_b / (in_a + in_b + x + y) * (x + y) / y
            total += weight * tails_a[x] * tails_b[y]
    return total
