"""How many events of a run happen in a gap: rates and what is left, for windows that are the same or differ."""

from __future__ import annotations

from math import exp, inf, lgamma, log

import numpy as np
import numpy.typing as npt
from numba import njit

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@njit(cache=True)
def length_between(earlier: int, later: int, doubles: bool) -> float:
    """How long it is from one time code to a later one."""
    if doubles:
        return _restored(later) - _restored(earlier)
    difference = later - earlier
    return np.float64(difference) if difference >= 0 else np.float64(later) - np.float64(earlier)


@njit(cache=True)
def _restored(code: int) -> float:
    return np.int64(code).view(np.float64) if code >= 0 else -np.int64(-code).view(np.float64)


@njit(cache=True)
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


@njit(cache=True)
def rates_of_ragged_run(lo: I64, hi: I64, marks: I64, before: int, doubles: bool, rates: F64, place: int) -> None:
    """As `rates_of_run`, where the windows of the run's events differ.

    Their times are uniform on all that is in the windows and in order. What matters of that is the volume left for the
    events from i on; its logarithm is worked out backwards over the marks, of which the first ends the gap. Lengths are
    taken as shares of the time left: logarithms of large volumes would have few digits.
    """
    n_lost = len(lo)
    left = length_between(before, marks[-1], doubles)
    log_now = np.full(n_lost + 1, -inf)
    log_left = np.full(n_lost + 1, -inf)
    log_left[n_lost] = 0.0
    for mark in range(len(marks) - 1, -1, -1):
        if mark == 0:
            log_now[:] = log_left
        begins = before if mark == 0 else marks[mark - 1]
        log_gap = log(length_between(begins, marks[mark], doubles) / left)
        for i in range(n_lost):
            total, count = log_left[i], 0
            while i + count < n_lost and lo[i + count] <= begins and marks[mark] <= hi[i + count]:
                count += 1
                total = _log_add(total, count * log_gap - lgamma(count + 1.0) + log_left[i + count])
            log_left[i] = total
    gap = length_between(before, marks[0], doubles) / left
    for i in range(n_lost + 1):
        may_happen = i < n_lost and lo[i] <= before and marks[0] <= hi[i] and log_left[i] > -inf
        rates[place, i] = gap * exp(log_left[i + 1] - log_left[i]) if may_happen else 0.0
        rates[place + 1, i] = exp(log_now[i] - log_left[i]) if log_left[i] > -inf else 0.0


@njit(cache=True)
def _log_add(first: float, second: float) -> float:
    high, low = max(first, second), min(first, second)
    return high if low == -inf else high + np.log1p(exp(low - high))
