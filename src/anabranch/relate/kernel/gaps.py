"""How many events of a run happen in a gap: the rates of events, and the probabilities that no more happen.

A *run* is a sequence of consecutive lost events. `rates_of_run` is for runs whose events have the same window,
`rates_of_ragged_run` for runs whose windows differ.
"""

from __future__ import annotations

from math import exp, inf, lgamma, log

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled, compiled_inline


@compiled_inline
def length_between(earlier: int, later: int, doubles: bool) -> float:
    """The time between two time codes; `doubles` says whether they are codes of doubles."""
    if doubles:
        return _restored(later) - _restored(earlier)
    difference = later - earlier
    return np.float64(difference) if difference >= 0 else np.float64(later) - np.float64(earlier)


@compiled_inline
def _restored(code: int) -> float:
    return np.int64(code).view(np.float64) if code >= 0 else -np.int64(-code).view(np.float64)


@compiled_inline
def rates_of_run(n_lost: int, left: float, gap: float, rates: F64, row: int) -> None:
    """Write the rates of a run of n lost events in a gap; `left` is the time from its start to the end of the window.

    `rates[row, i]` is the rate at which the count goes from i to i + 1. `rates[row + 1, i]` is the probability that
    none of the last n - i events is in the gap. So of m events that have not happened yet, k are in the gap with
    probability C(m, k) p^k (1 - p)^(m - k), where p = gap / left.
    """
    share = 1.0 if gap >= left else gap / left
    power = 1.0
    for i in range(n_lost, -1, -1):
        rates[row, i] = (n_lost - i) * share
        rates[row + 1, i] = power
        power *= 1.0 - share


@compiled
def volumes_of_run(lo: I64, hi: I64, marks: I64, doubles: bool, volumes: F64) -> None:
    """Write, for a run whose windows differ, the logarithms of the volumes of the remaining events at each mark.

    The times of the events are uniform on all times that are in order and within the windows. Entry [mark, i] is the
    volume for the events from i on, if all earlier ones have happened by that mark. Lengths are relative to the length
    of the run, because logarithms of large volumes would lose digits.
    """
    n_lost, last, whole = len(lo), len(marks) - 1, length_between(marks[0], marks[-1], doubles)
    volumes[last, :n_lost] = -inf
    volumes[last, n_lost] = 0.0
    for mark in range(last - 1, -1, -1):
        share = length_between(marks[mark], marks[mark + 1], doubles) / whole
        later = volumes[mark + 1, : n_lost + 1]
        assign(volumes[mark], _earlier_volumes(later, lo, hi, marks[mark], marks[mark + 1], share))


@compiled
def _earlier_volumes(later: F64, lo: I64, hi: I64, begins: int, ends: int, share: float) -> F64:
    """The volumes at an instant from those at a later one; no window begins or ends between the two."""
    n_lost, log_gap = len(lo), log(share)
    volumes = later.copy()
    for i in range(n_lost):
        count = 0
        while i + count < n_lost and lo[i + count] <= begins and ends <= hi[i + count]:
            count += 1
            volumes[i] = _log_add(volumes[i], count * log_gap - lgamma(count + 1.0) + later[i + count])
    return volumes


@compiled
def rates_of_ragged_run(
    lo: I64,
    hi: I64,
    following: F64,
    mark: int,
    whole: float,
    before: int,
    now: int,
    doubles: bool,
    rates: F64,
    row: int,
) -> None:
    """Write the rates of a run whose windows differ, as `rates_of_run` does.

    Parameters
    ----------
    following : the volumes at the next mark of the run, which is not before the end of the gap
    mark : the time of that mark
    whole : the length of the run
    before, now : the start and the end of the gap
    """
    n_lost = len(lo)
    at_end = following
    if now < mark:
        at_end = _earlier_volumes(following, lo, hi, now, mark, length_between(now, mark, doubles) / whole)
    gap = length_between(before, now, doubles) / whole
    at_start = _earlier_volumes(at_end, lo, hi, before, now, gap)
    for i in range(n_lost + 1):
        may_happen = i < n_lost and lo[i] <= before and now <= hi[i] and at_start[i] > -inf
        rates[row, i] = gap * exp(at_start[i + 1] - at_start[i]) if may_happen else 0.0
        rates[row + 1, i] = exp(at_end[i] - at_start[i]) if at_start[i] > -inf else 0.0


@compiled
def _log_add(first: float, second: float) -> float:
    high, low = max(first, second), min(first, second)
    return high if low == -inf else high + np.log1p(exp(low - high))
