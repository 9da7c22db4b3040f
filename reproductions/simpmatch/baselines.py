"""The baselines of the paper: lost events are ignored, or some of them are given a fixed time (section 4.2)."""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled
from reproductions.simpmatch.inputs import PairInput
from reproductions.simpmatch.relations import holds


@compiled
def baseline_ignore(pair: PairInput) -> float:
    """BaselineIgnore: evaluate the query over the recorded events, without repeated opening or closing events."""
    a, a_end = ignore_lost(pair.times_a)
    b, b_end = ignore_lost(pair.times_b)
    return holds(a, a_end, b, b_end, pair.outer, pair.inner, pair.relations)


@compiled
def ignore_lost(times: F64) -> tuple[F64, F64]:
    """Return the segments from each first opening event to the next closing one; unmatched events are dropped."""
    begins, ends = np.empty(len(times)), np.empty(len(times))
    count = 0
    is_open = False
    for i in range(len(times)):
        if math.isnan(times[i]):
            continue
        if i % 2 == 0 and not is_open:
            begins[count] = times[i]
            is_open = True
        elif i % 2 == 1 and is_open:
            ends[count] = times[i]
            count += 1
            is_open = False
    return begins[:count], ends[:count]


@compiled
def baseline_static(pair: PairInput) -> float:
    """BaselineStatic: evaluate the query over segments whose lost end is a mean duration away from the other end."""
    a, a_end = reconstruct(pair.times_a, pair.lo_a, pair.hi_a)
    b, b_end = reconstruct(pair.times_b, pair.lo_b, pair.hi_b)
    return holds(a, a_end, b, b_end, pair.outer, pair.inner, pair.relations)


@compiled
def reconstruct(times: F64, lo: F64, hi: F64) -> tuple[F64, F64]:
    """Return the segments with at least one recorded end.

    The distance of the other end is the mean duration of the entity's complete segments, or that of the nearest
    recorded event if it is nearer. If no segment is complete, the end is at that event, or at the end of its window.
    """
    mean, complete = 0.0, 0
    for i in range(0, len(times) - 1, 2):
        if not math.isnan(times[i]) and not math.isnan(times[i + 1]):
            mean += times[i + 1] - times[i]
            complete += 1
    mean = mean / complete if complete else np.inf
    begins, ends = np.empty(len(times) // 2), np.empty(len(times) // 2)
    count = 0
    for i in range(0, len(times) - 1, 2):
        begin, end = times[i], times[i + 1]
        if math.isnan(begin) and math.isnan(end):
            continue
        if math.isnan(end):
            end = min(begin + mean, _next_recorded(times, i + 2, 1))
            end = end if end < np.inf else hi[i + 1]
        elif math.isnan(begin):
            begin = max(end - mean, _next_recorded(times, i - 1, -1))
            begin = begin if begin > -np.inf else lo[i]
        begins[count], ends[count] = begin, end
        count += 1
    return begins[:count], ends[:count]


@compiled
def _next_recorded(times: F64, i: int, step: int) -> float:
    """Return the first recorded time from i on, forwards or backwards; infinite if there is none."""
    while 0 <= i < len(times):
        if not math.isnan(times[i]):
            return float(times[i])
        i += step
    return np.inf if step > 0 else -np.inf
