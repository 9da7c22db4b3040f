"""The time axis of the tree: the bounds at which something is known, and what can happen in the gaps between them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled
from reproductions.simpmatch.inputs import PairInput


class Side(NamedTuple):
    """The events of one entity, prepared for the tree.

    Per event: `times` (NaN if lost), `lo` and `hi` (clipped to the order; the time itself if recorded), `first` and
    `after` (the run of a lost event: its first event, and the first event after the run).

    Per gap, where gap g ends at bound g: `run` and `run_end` (the first event of the run that can have events in it,
    and the first event after the run; equal if there is none), `density` (of each event of that run), `need` (how many
    events must have happened before the bound), `recorded` (the event recorded at the bound, or -1).
    """

    times: F64
    lo: F64
    hi: F64
    first: I64
    after: I64
    run: I64
    run_end: I64
    density: F64
    need: I64
    recorded: I64


@compiled
def clip_windows(times: F64, lo: F64, hi: F64) -> tuple[F64, F64, I64, I64]:
    """Clip the windows to the order of the events, and find the runs of lost events that share a window."""
    size = len(times)
    low, high = np.where(np.isnan(times), lo, times), np.where(np.isnan(times), hi, times)
    first, after = np.arange(size), np.arange(1, size + 1)
    for i in range(1, size):
        low[i] = max(low[i], low[i - 1])
    for i in range(size - 2, -1, -1):
        high[i] = min(high[i], high[i + 1])
    for i in range(1, size):
        if math.isnan(times[i]) and math.isnan(times[i - 1]):
            if low[i] == low[i - 1] and high[i] == high[i - 1]:
                first[i] = first[i - 1]
            elif high[i - 1] > low[i]:
                raise ValueError("adjacent lost events must have the same window, or windows that do not overlap")
    for i in range(size - 2, -1, -1):
        if first[i + 1] == first[i]:
            after[i] = after[i + 1]
    return low, high, first, after


@compiled
def _entity_bounds(times: F64, lo: F64, hi: F64, first: I64) -> F64:
    """Return the recorded times of an entity and the ends of its runs, in order."""
    bounds = np.empty(2 * len(times))
    count = 0
    for i in range(len(times)):
        if not math.isnan(times[i]):
            bounds[count] = times[i]
            count += 1
        elif first[i] == i:
            bounds[count], bounds[count + 1] = lo[i], hi[i]
            count += 2
    return bounds[:count]


@compiled
def _merge(x: F64, y: F64) -> F64:
    """Merge two sorted arrays; each value is kept once."""
    merged = np.empty(len(x) + len(y))
    i, j, count = 0, 0, 0
    while i < len(x) or j < len(y):
        if j == len(y) or (i < len(x) and x[i] <= y[j]):
            value = x[i]
            i += 1
        else:
            value = y[j]
            j += 1
        if count == 0 or merged[count - 1] < value:
            merged[count] = value
            count += 1
    return merged[:count]


@compiled
def _side(times: F64, low: F64, high: F64, first: I64, after: I64, bounds: F64) -> Side:
    """Return which events of an entity can, and which must, happen in each gap."""
    size, gaps = len(times), len(bounds)
    run, run_end, need = np.zeros(gaps, np.int64), np.zeros(gaps, np.int64), np.zeros(gaps, np.int64)
    recorded, density = np.full(gaps, -1, np.int64), np.zeros(gaps)
    at = 0
    for g in range(gaps):
        # Here `at` is the first event that may still happen after the bound before this gap.
        if at < size and math.isnan(times[at]) and g > 0 and low[at] <= bounds[g - 1]:
            m = after[at] - first[at]
            run[g], run_end[g] = first[at], after[at]
            density[g] = math.exp(math.lgamma(m + 1.0) / m) / (high[at] - low[at])
        while at < size and math.isnan(times[at]) and high[at] <= bounds[g]:
            at += 1
        need[g] = at
        if at < size and times[at] == bounds[g]:
            recorded[g] = at
            at += 1
    return Side(times, low, high, first, after, run, run_end, density, need, recorded)


@compiled
def make_sides(pair: PairInput) -> tuple[Side, Side, F64]:
    """Return both entities, and the bounds between which their lost events lie."""
    low_a, high_a, first_a, after_a = clip_windows(pair.times_a, pair.lo_a, pair.hi_a)
    low_b, high_b, first_b, after_b = clip_windows(pair.times_b, pair.lo_b, pair.hi_b)
    bounds_a = _entity_bounds(pair.times_a, low_a, high_a, first_a)
    bounds_b = _entity_bounds(pair.times_b, low_b, high_b, first_b)
    bounds = _merge(bounds_a, bounds_b)
    a = _side(pair.times_a, low_a, high_a, first_a, after_a, bounds)
    return a, _side(pair.times_b, low_b, high_b, first_b, after_b, bounds), bounds
