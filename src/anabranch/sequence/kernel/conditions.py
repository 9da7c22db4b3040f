"""Conditions on the events that a search has chosen: programs on several events, and events that must not exist."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from anabranch.arrays import I64
from anabranch.compiled import compiled_inline
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.programs import FAILS, truth
from anabranch.sequence.kernel.query import Conditions, Window
from anabranch.sequence.kernel.queues import first_after, first_within


@compiled_inline
def is_consistent(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, low: int, high: int,
) -> bool:  # fmt: skip
    """Whether the bound events satisfy all conditions that are due when the numbers `low` to `high` - 1 are decided."""
    trigger = bound[conditions.positives[len(conditions.positives) - 1]]
    for k in range(conditions.due_program_starts[low + 1], conditions.due_program_starts[high + 1]):
        if _result(conditions, conditions.due_programs[k], bound, trigger) == FAILS:
            return False
    for k in range(conditions.due_guard_starts[low + 1], conditions.due_guard_starts[high + 1]):
        if _is_violated(conditions, lists, times, group, bound, t, window, conditions.due_guards[k]):
            return False
    return True


@compiled_inline
def is_open(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, number: int,
) -> bool:  # fmt: skip
    """Whether no negative directly before a number has happened since the beginning of the window."""
    for k in range(conditions.due_guard_starts[number], conditions.due_guard_starts[number + 1]):
        negative = conditions.guards[conditions.due_guards[k], 2] == 0
        if negative and _is_violated(conditions, lists, times, group, bound, t, window, conditions.due_guards[k]):
            return False
    return True


@compiled_inline
def _result(conditions: Conditions, program: int, bound: I64, trigger: int) -> int:
    """The result of one program for the bound events."""
    start, stop = conditions.program_starts[program], conditions.program_starts[program + 1]
    return truth(
        conditions.programs, start, stop, bound, trigger, conditions.matrix, conditions.members, conditions.stack
    )


@compiled_inline
def _is_violated(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, guard: int,
) -> bool:  # fmt: skip
    """Whether there is an event of a guard strictly between the bound events around it.

    Before the first bound event, the interval starts with the window.
    """
    component, after = conditions.guards[guard, 0], conditions.guards[guard, 1]
    as_missing = conditions.guards[guard, 2]
    if as_missing and bound[component] >= 0:
        return False
    positives = conditions.positives
    last = len(positives) - 1
    trigger = bound[positives[last]]
    low, high = after - 1, after
    while low >= 0 and bound[positives[low]] < 0:
        low -= 1
    while high < last and bound[positives[high]] < 0:
        high += 1
    until, end = t[bound[positives[high]]], lists.stop[component, group]
    if low < 0:
        item = first_within(times, lists.start[component, group], end, t[trigger], window)
    else:
        item = first_after(times, lists.start[component, group], end, t[bound[positives[low]]])
    violated = False
    while item < end and times[item] < until and not violated:
        bound[component] = lists.events[item]
        violated = True
        for k in range(conditions.guard_program_starts[guard], conditions.guard_program_starts[guard + 1]):
            if _result(conditions, conditions.guard_programs[k], bound, trigger) == FAILS:
                violated = False
                break
        item += 1
    bound[component] = -1
    return violated
