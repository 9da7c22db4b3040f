"""Queues of arrivals: events that can be a positive component, each with an upper bound of the scores of paths to it.

The bound of an arrival is a maximum over the queues before it: the highest bound in the queue times the highest score
of a gap from the queue to the arrival. The highest bound in a queue is that of its first *peak*; a peak is an entry
with a higher bound than all entries after it. If the score of a gap rises or falls with its length, the highest score
is that of the oldest or the newest entry; otherwise it is the highest value of the table. So an arrival costs O(m),
amortised. If the bound is below the threshold, the event is in no match that reaches the threshold, and it is not
queued.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.query import ALWAYS, NEVER, TABLE_ERROR, Scores, Window
from anabranch.sequence.kernel.tables import score


class Queues(NamedTuple):
    """One queue per positive component; an entry has the index of an item of that component.

    Attributes
    ----------
    event, time, bound : of each entry
    peak : the entries with a higher bound than all after them
    coming : of each number, its next item
    low, end : of each number, its first entry that is not too old, and the index after its last entry
    peak_low, peak_end : likewise of its peaks
    """

    event: I64
    time: npt.NDArray[Any]
    bound: F64
    peak: I64
    coming: I64
    low: I64
    end: I64
    peak_low: I64
    peak_end: I64


@compiled
def new_queues(times: npt.NDArray[Any], m: int) -> Queues:
    """Empty queues with the capacity for every item."""
    n = len(times)
    return Queues(
        np.empty(n, np.int64), np.empty_like(times), np.empty(n), np.empty(n, np.int64),
        np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64),
        np.empty(m, np.int64),
    )  # fmt: skip


@compiled_inline
def open_group(queues: Queues, lists: Lists, positives: I64, group: int) -> None:
    """Empty the queues, and start with the events of another group."""
    for i in range(len(positives)):
        begin = lists.start[positives[i], group]
        queues.coming[i] = queues.low[i] = queues.end[i] = queues.peak_low[i] = queues.peak_end[i] = begin


@compiled_inline
def next_arrival(queues: Queues, lists: Lists, times: npt.NDArray[Any], positives: I64, group: int) -> int:
    """The number of the earliest item that has not arrived; -1 if there is none."""
    earliest = -1
    for i in range(len(positives)):
        item = queues.coming[i]
        if item < lists.stop[positives[i], group]:
            if earliest < 0 or times[item] < times[queues.coming[earliest]]:
                earliest = i
    return earliest


@compiled_inline
def bound_of(queues: Queues, scores: Scores, s: int, now: float) -> float:
    """An upper bound of the scores of all paths to an event of number s at time `now`."""
    head = scores.head[s]
    best = 0.0 if head == NEVER else 1.0 if head == ALWAYS else scores.highest[head]
    for i in range(s):
        best = _bound_through(queues, scores, best, i, s, now)
    return best


@compiled_inline
def _bound_through(queues: Queues, scores: Scores, best: float, i: int, s: int, now: float) -> float:
    """The higher of `best` and an upper bound of the paths through the entries of number i to an event of number s."""
    table = scores.gap[i, s]
    if table == NEVER:
        return best
    while queues.low[i] < queues.end[i] and is_past(scores.window, queues.time[queues.low[i]], now):
        queues.low[i] += 1
    while queues.peak_low[i] < queues.peak_end[i] and queues.peak[queues.peak_low[i]] < queues.low[i]:
        queues.peak_low[i] += 1
    if queues.low[i] == queues.end[i]:
        return best
    most = queues.bound[queues.peak[queues.peak_low[i]]]
    if table == ALWAYS:
        return max(best, most)
    if most * scores.highest[table] <= best:
        return best
    if scores.rising[table]:
        most *= score(scores.tables, table, gap_between(scores, queues.time[queues.low[i]], now)) + TABLE_ERROR
    elif scores.falling[table]:
        most *= score(scores.tables, table, gap_between(scores, queues.time[queues.end[i] - 1], now)) + TABLE_ERROR
    else:
        most *= scores.highest[table]
    return max(best, most)


@compiled_inline
def enqueue(queues: Queues, i: int, event: int, now: float, bound: float) -> None:
    """Add an entry to the queue of number i."""
    entry = queues.end[i]
    queues.event[entry], queues.time[entry], queues.bound[entry] = event, now, bound
    queues.end[i] += 1
    end = queues.peak_end[i]
    while end > queues.peak_low[i] and queues.bound[queues.peak[end - 1]] <= bound:
        end -= 1
    queues.peak[end] = entry
    queues.peak_end[i] = end + 1


@compiled_inline
def is_past(window: Window, t: float, now: float) -> bool:
    """Whether a window that begins at `t` has closed before `now`."""
    return now - t > window.length + window.rounding * max(abs(t), abs(now))


@compiled_inline
def gap_between(scores: Scores, t: float, now: float) -> float:
    """The length of the gap from `t` to `now`, in the unit of the tables.

    It is rounded up: a gap of 0.3 from 1.1 to 1.4 is not below a delay of 0.3.
    """
    return (now - t) * scores.unit + scores.window.rounding * max(abs(t), abs(now))


@compiled_inline
def rest_of_window(scores: Scores, t: float, now: float) -> float:
    """What the time from `t` to `now` leaves of the window, in the unit of the tables; rounded up."""
    rest = scores.window.length * scores.unit - gap_between(scores, t, now)
    return max(0.0, rest + 2 * scores.window.rounding * max(abs(t), abs(now)))


@compiled_inline
def first_within(times: npt.NDArray[Any], low: int, high: int, now: float, window: Window) -> int:
    """The index of the first of ascending times that is within the window before `now`."""
    while low < high:
        middle = (low + high) >> 1
        if is_past(window, times[middle], now):
            low = middle + 1
        else:
            high = middle
    return low


@compiled_inline
def first_past(times: npt.NDArray[Any], low: int, high: int, t: float, window: Window) -> int:
    """The index of the first of ascending times for which a window that begins at `t` has closed."""
    while low < high:
        middle = (low + high) >> 1
        if is_past(window, t, times[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@compiled_inline
def first_at(times: npt.NDArray[Any], low: int, high: int, now: float) -> int:
    """The index of the first of ascending times that is at `now` or later."""
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < now:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_inline
def first_after(times: npt.NDArray[Any], low: int, high: int, now: float) -> int:
    """The index of the first of ascending times that is later than `now`."""
    while low < high:
        middle = (low + high) >> 1
        if times[middle] <= now:
            low = middle + 1
        else:
            high = middle
    return low
