"""Algorithm 3: the weights of events that have discrete timestamps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled
from reproductions.simpmatch.gaps import Side, clip_windows


class Domain(NamedTuple):
    """The timestamps that each lost event of an entity may have.

    `stamps` has them in order, `sizes` their number. Each nondecreasing choice for the events of a run has a weight of
    one over the number of such choices; `share` is the factor of one event.
    """

    stamps: F64
    sizes: I64
    share: F64


@compiled
def even_stamps(side: Side, delta: int) -> tuple[F64, I64]:
    """Return delta timestamps for each lost event, spread evenly over its window."""
    stamps, sizes = np.empty((len(side.times), delta)), np.zeros(len(side.times), np.int64)
    for i in range(len(side.times)):
        if math.isnan(side.times[i]):
            sizes[i] = delta
            for s in range(delta):
                stamps[i, s] = side.lo[i] + (s + 0.5) / delta * (side.hi[i] - side.lo[i])
    return stamps, sizes


@compiled
def stamps_around(side: Side, guess: F64, delta: int, step: float) -> tuple[F64, I64]:
    """Return, for each lost event, a guess and delta timestamps on each side of it that lie within its window."""
    stamps, sizes = np.empty((len(side.times), 2 * delta + 1)), np.zeros(len(side.times), np.int64)
    for i in range(len(side.times)):
        if math.isnan(side.times[i]):
            for s in range(-delta, delta + 1):
                stamp = guess[i] + s * step
                if side.lo[i] <= stamp <= side.hi[i]:
                    stamps[i, sizes[i]] = stamp
                    sizes[i] += 1
    return stamps, sizes


@compiled
def expected_times(times: F64, lo: F64, hi: F64) -> F64:
    """Return guesses for `sase_around`: the mean time of each lost event, by the order statistics of its run."""
    low, high, first, after = clip_windows(times, lo, hi)
    guess = times.copy()
    for i in range(len(times)):
        if math.isnan(times[i]):
            guess[i] = low[i] + (high[i] - low[i]) * (i - first[i] + 1) / (after[i] - first[i] + 1)
    return guess


@compiled
def make_domain(side: Side, stamps: F64, sizes: I64) -> Domain:
    """Return the timestamps with the factor of each event."""
    share = np.zeros(len(sizes))
    path = np.empty(len(sizes), np.int64)
    ways, next_ways = np.empty(stamps.shape[1]), np.empty(stamps.shape[1])
    domain = Domain(stamps, sizes, np.ones(len(sizes)))
    for i in range(len(sizes)):
        if math.isnan(side.times[i]) and side.first[i] == i:
            size = side.after[i] - i
            for k in range(size):
                path[k] = i + k
            count = weight_of_paths(path[:size], domain, domain, side.lo[i], side.hi[i], ways, next_ways)
            share[i : side.after[i]] = count ** (-1.0 / size) if count > 0 else 0.0
    return Domain(stamps, sizes, share)


@compiled
def weight_of_paths(path: I64, of_a: Domain, of_b: Domain, low: float, high: float, ways: F64, next_ways: F64) -> float:
    """Return the weight of all nondecreasing choices of timestamps for the events of a path, each from low to high.

    Event i of a is i in the path, event j of b is -1 - j. Paths are counted by the timestamp they end at. `ways` and
    `next_ways` are scratch arrays.
    """
    for k in range(len(path)):
        domain = of_a if path[k] >= 0 else of_b
        at = path[k] if path[k] >= 0 else -1 - path[k]
        before = path[k - 1] if k > 0 else 0
        domain_before = of_a if before >= 0 else of_b
        before = before if before >= 0 else -1 - before
        total, p = (1.0 if k == 0 else 0.0), 0
        for s in range(domain.sizes[at]):
            stamp = domain.stamps[at, s]
            while k > 0 and p < domain_before.sizes[before] and domain_before.stamps[before, p] <= stamp:
                total += ways[p]
                p += 1
            next_ways[s] = total * domain.share[at] if low <= stamp <= high else 0.0
        ways, next_ways = next_ways, ways
    last = path[-1]
    return float(np.sum(ways[: of_a.sizes[last] if last >= 0 else of_b.sizes[-1 - last]]))
