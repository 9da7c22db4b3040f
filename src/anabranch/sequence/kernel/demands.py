"""What a search asks of the events that it has found: conditions on several of them, and events that must not be."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from anabranch.arrays import I64
from anabranch.compiled import compiled_inline
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.programs import FAILS, truth
from anabranch.sequence.kernel.query import Demands
from anabranch.sequence.kernel.queues import first_after, first_within


@compiled_inline
def agree(
    demands: Demands, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: float, low: int, high: int,
) -> bool:  # fmt: skip
    """Whether nothing stands against what is bound, now that the numbers from `low` to before `high` are decided."""
    trigger = bound[demands.positives[len(demands.positives) - 1]]
    for k in range(demands.asked_first[low + 1], demands.asked_first[high + 1]):
        if _says(demands, demands.asked[k], bound, trigger) == FAILS:
            return False
    for k in range(demands.watch_first[low + 1], demands.watch_first[high + 1]):
        if _is_found(demands, lists, times, group, bound, t, window, demands.watch[k]):
            return False
    return True


@compiled_inline
def is_open(
    demands: Demands, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: float, number: int,
) -> bool:  # fmt: skip
    """Whether no negative that stands directly before a number has happened since the beginning of the window."""
    for k in range(demands.watch_first[number], demands.watch_first[number + 1]):
        negative = demands.guards[demands.watch[k], 2] == 0
        if negative and _is_found(demands, lists, times, group, bound, t, window, demands.watch[k]):
            return False
    return True


@compiled_inline
def _says(demands: Demands, number: int, bound: I64, trigger: int) -> int:
    start, stop = demands.program[number], demands.program[number + 1]
    return truth(demands.programs, start, stop, bound, trigger, demands.matrix, demands.members, demands.stack)


@compiled_inline
def _is_found(
    demands: Demands, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: float, guard: int,
) -> bool:  # fmt: skip
    """Whether there is an event that must not be, strictly between the events around it.

    Before the first event it must not be from the beginning of the window on.
    """
    component, after, as_missing = demands.guards[guard, 0], demands.guards[guard, 1], demands.guards[guard, 2]
    if as_missing and bound[component] >= 0:
        return False
    positives = demands.positives
    last = len(positives) - 1
    trigger = bound[positives[last]]
    low, high = after - 1, after
    while low >= 0 and bound[positives[low]] < 0:
        low -= 1
    while high < last and bound[positives[high]] < 0:
        high += 1
    until, end = t[bound[positives[high]]], lists.stop[component, group]
    if low < 0:
        place = first_within(times, lists.start[component, group], end, t[trigger], window)
    else:
        place = first_after(times, lists.start[component, group], end, t[bound[positives[low]]])
    found = False
    while place < end and times[place] < until and not found:
        bound[component] = lists.events[place]
        found = True
        for k in range(demands.guard_first[guard], demands.guard_first[guard + 1]):
            if _says(demands, demands.guard_asked[k], bound, trigger) == FAILS:
                found = False
                break
        place += 1
    bound[component] = -1
    return found
