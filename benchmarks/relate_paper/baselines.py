"""What the paper compares itself with: lost events passed over, or some of them put at a fixed place (section 4.2)."""

from __future__ import annotations

import math

import numpy as np

from anabranch.compiled import compiled
from benchmarks.relate_paper.asked import F64, Asked
from benchmarks.relate_paper.relations import holds


@compiled
def baseline_ignore(asked: Asked) -> float:
    """BaselineIgnore: the query over what was recorded, without events that repeat the kind of the one before."""
    a, a_end = ignored(asked.times_a)
    b, b_end = ignored(asked.times_b)
    return holds(a, a_end, b, b_end, asked.outer, asked.inner, asked.relations)


@compiled
def ignored(times: F64) -> tuple[F64, F64]:
    """The segments from each first opening event to the next closing one; what has no counterpart is dropped."""
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
def baseline_static(asked: Asked) -> float:
    """BaselineStatic: the query over segments whose lost end lies a mean duration from the other one."""
    a, a_end = reconstructed(asked.times_a, asked.lo_a, asked.hi_a)
    b, b_end = reconstructed(asked.times_b, asked.lo_b, asked.hi_b)
    return holds(a, a_end, b, b_end, asked.outer, asked.inner, asked.relations)


@compiled
def reconstructed(times: F64, lo: F64, hi: F64) -> tuple[F64, F64]:
    """The segments with at least one recorded end.

    The other end is the mean duration of the entity's whole segments away, or at the nearest recorded event if that is
    nearer; where no segment is whole, it is at that event, or at the end of its window.
    """
    mean, whole = 0.0, 0
    for i in range(0, len(times) - 1, 2):
        if not math.isnan(times[i]) and not math.isnan(times[i + 1]):
            mean += times[i + 1] - times[i]
            whole += 1
    mean = mean / whole if whole else np.inf
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
    """The first recorded time from i on, forwards or backwards; infinite where there is none."""
    while 0 <= i < len(times):
        if not math.isnan(times[i]):
            return float(times[i])
        i += step
    return np.inf if step > 0 else -np.inf
