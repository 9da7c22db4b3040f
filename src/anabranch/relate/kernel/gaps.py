"""How many events of a run happen in a gap: rates and what is left, for windows that are the same or differ."""

from __future__ import annotations

from math import exp, inf, lgamma, log

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled


@compiled
def length_between(earlier: int, later: int, doubles: bool) -> float:
    """How long it is from one time code to a later one."""
    if doubles:
        return _restored(later) - _restored(earlier)
    difference = later - earlier
    return np.float64(difference) if difference >= 0 else np.float64(later) - np.float64(earlier)


@compiled
def _restored(code: int) -> float:
    return np.int64(code).view(np.float64) if code >= 0 else -np.int64(-code).view(np.float64)


@compiled
def rates_of_run(n_lost: int, left: float, gap: float, rates: F64, place: int) -> None:
    """The weights of a run of lost events in a gap of a window in which so much time is left.

    `rates[place, i]` moves the count from i to i + 1, and `rates[place + 1, i]` is that no more than i happen: k of
    those that are left are in the gap with probability C(left, k) p^k (1 - p)^(left - k).
    """
    share = 1.0 if gap >= left else gap / left
    power = 1.0
    for i in range(n_lost, -1, -1):
        rates[place, i] = (n_lost - i) * share
        rates[place + 1, i] = power
        power *= 1.0 - share


@compiled
def volumes_of_run(lo: I64, hi: I64, marks: I64, doubles: bool, volumes: F64) -> None:
    """Write what is left for the events of a run whose windows differ: at each mark, the logarithms of volumes.

    Their times are uniform on all that is in the windows and in order. Entry [mark, i] is about the events from i on,
    where all before have happened by that mark. Lengths are shares of the run's: logarithms of large volumes would have
    few digits.
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
    """The volumes at an instant, from those at a later one with no end of a window between."""
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
    place: int,
) -> None:
    """As `rates_of_run`, where the windows of the run's events differ.

    `following` are the volumes at the run's next mark, which is not before the end of the gap; `whole` is its length.
    """
    n_lost = len(lo)
    at_end = following
    if now < mark:
        at_end = _earlier_volumes(following, lo, hi, now, mark, length_between(now, mark, doubles) / whole)
    gap = length_between(before, now, doubles) / whole
    at_start = _earlier_volumes(at_end, lo, hi, before, now, gap)
    for i in range(n_lost + 1):
        may_happen = i < n_lost and lo[i] <= before and now <= hi[i] and at_start[i] > -inf
        rates[place, i] = gap * exp(at_start[i + 1] - at_start[i]) if may_happen else 0.0
        rates[place + 1, i] = exp(at_end[i] - at_start[i]) if at_start[i] > -inf else 0.0


@compiled
def _log_add(first: float, second: float) -> float:
    high, low = max(first, second), min(first, second)
    return high if low == -inf else high + np.log1p(exp(low - high))
