"""Conditions on the events that a search has chosen: programs on several events, and events that must not exist."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from anabranch.arrays import I64
from anabranch.compiled import compiled_inline
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.programs import FAILS, truth
from anabranch.sequence.kernel.query import Chances, Conditions, Window
from anabranch.sequence.kernel.queues import first_after, first_at, first_past, first_within

#: A probability below this is the rounding error of a sum of probabilities.
_ROUNDING = 1e-12


@compiled_inline
def is_consistent(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, chances: Chances, low: int, high: int,
) -> bool:  # fmt: skip
    """Whether the bound events satisfy all conditions that are due when the numbers `low` to `high` - 1 are decided.

    Events of guards that are not certain are left to `absence`.
    """
    trigger = bound[conditions.positives[len(conditions.positives) - 1]]
    for k in range(conditions.due_program_starts[low + 1], conditions.due_program_starts[high + 1]):
        if _result(conditions, conditions.due_programs[k], bound, trigger) == FAILS:
            return False
    for k in range(conditions.due_guard_starts[low + 1], conditions.due_guard_starts[high + 1]):
        if _is_violated(conditions, lists, times, group, bound, t, window, chances, conditions.due_guards[k]):
            return False
    return True


@compiled_inline
def is_open(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, chances: Chances, number: int,
) -> bool:  # fmt: skip
    """Whether no negative directly before a number has happened since the beginning of the window."""
    for k in range(conditions.due_guard_starts[number], conditions.due_guard_starts[number + 1]):
        negative = conditions.guards[conditions.due_guards[k], 2] == 0
        if negative and _is_violated(
            conditions, lists, times, group, bound, t, window, chances, conditions.due_guards[k]
        ):
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
    window: Window, chances: Chances, guard: int,
) -> bool:  # fmt: skip
    """Whether there is an event of a guard that is certain, strictly between the bound events around it."""
    component = conditions.guards[guard, 0]
    if conditions.guards[guard, 2] and bound[component] >= 0:
        return False
    begin, end = _stretch(conditions, lists, times, group, bound, t, window, guard)
    for item in range(begin, end):
        event = lists.events[item]
        if chance_of(chances, event) == 1.0 and fits(conditions, bound, guard, event):
            return True
    return False


@compiled_inline
def absence(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, chances: Chances,
) -> float:  # fmt: skip
    """The probability that no event of any guard happened; all components are decided.

    An event that several guards exclude counts once. The events of one instance exclude each other, so that none of
    them happened with 1 minus the sum of their probabilities.
    """
    count = 0
    for guard in range(len(conditions.guards)):
        component = conditions.guards[guard, 0]
        if conditions.guards[guard, 2] and bound[component] >= 0:
            continue
        begin, end = _stretch(conditions, lists, times, group, bound, t, window, guard)
        count = list_fitting(conditions, lists, bound, chances, guard, begin, end, count)
    return none_happened(chances, count)


@compiled_inline
def list_fitting(
    conditions: Conditions, lists: Lists, bound: I64, chances: Chances, guard: int, begin: int, end: int, count: int
) -> int:
    """Add the events of a guard among some items to those that are listed; returns how many are listed."""
    for item in range(begin, end):
        event = lists.events[item]
        if not chances.is_listed[event] and fits(conditions, bound, guard, event):
            chances.is_listed[event] = True
            chances.mass[chances.instance[event]] += chances.p[event]
            chances.listed[count] = event
            count += 1
    return count


@compiled_inline
def none_happened(chances: Chances, count: int) -> float:
    """The probability that none of the listed events happened; the list is empty then."""
    none = 1.0
    for k in range(count):
        event = chances.listed[k]
        rest = 1.0 - chances.mass[chances.instance[event]]
        none *= rest if rest > _ROUNDING else 0.0
        chances.mass[chances.instance[event]] = 0.0
        chances.is_listed[event] = False
    return none


@compiled_inline
def chance_of(chances: Chances, event: int) -> float:
    """The probability of an event."""
    return chances.p[event] if len(chances.p) else 1.0


@compiled_inline
def _stretch(
    conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int, bound: I64, t: npt.NDArray[Any],
    window: Window, guard: int,
) -> tuple[int, int]:  # fmt: skip
    """The range of the items of a guard strictly between the bound events around it.

    Before the first bound event and after the trigger, the range reaches to the end of the window.
    """
    component, after = conditions.guards[guard, 0], conditions.guards[guard, 1]
    positives = conditions.positives
    last = len(positives) - 1
    low, high = after - 1, after
    while low >= 0 and bound[positives[low]] < 0:
        low -= 1
    item, end = lists.start[component, group], lists.stop[component, group]
    if low < 0:
        item = first_within(times, item, end, t[bound[positives[last]]], window)
    else:
        item = first_after(times, item, end, t[bound[positives[low]]])
    if after > last:
        first = 0
        while bound[positives[first]] < 0:
            first += 1
        return item, first_past(times, item, end, t[bound[positives[first]]], window)
    while high < last and bound[positives[high]] < 0:
        high += 1
    until = t[bound[positives[high]]]
    if item < end and times[item] < until:
        return item, first_at(times, item, end, until)
    return item, item


@compiled_inline
def fits(conditions: Conditions, bound: I64, guard: int, event: int) -> bool:
    """Whether an event satisfies the conditions on a guard and the bound events."""
    component = conditions.guards[guard, 0]
    bound[component] = event
    is_fitting = True
    for k in range(conditions.guard_program_starts[guard], conditions.guard_program_starts[guard + 1]):
        program = conditions.guard_programs[k]
        if _result(conditions, program, bound, bound[conditions.positives[len(conditions.positives) - 1]]) == FAILS:
            is_fitting = False
            break
    bound[component] = -1
    return is_fitting
