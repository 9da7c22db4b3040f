"""Finds the events of one variable that agree with all events of a solution, whether they are earlier or later."""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.constrain.kernel.checks import agree
from anabranch.constrain.kernel.search import larger
from anabranch.constrain.kernel.tables import Table


@compiled
def companions(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, base: I64, cells: I64, by_list: I64, starts: I64, other: int, owners: I64, solutions: I64,
) -> I64:  # fmt: skip
    """Find the roles of variable `other` that agree with all events of each solution.

    Parameters
    ----------
    by_list, starts : the roles in order of their lists, then of time; and the index of the first role of each list
    owners : the variable of each column of `solutions`
    solutions : (n, k) the events of each solution

    Returns
    -------
    (m, 2): the index of the solution, and the event
    """
    found, length = np.empty(1024, np.int64), 0
    q, k = variables[other].query, len(owners)
    for row in range(len(solutions)):
        anchor = _role_of(events, roles, solutions[row, 0], owners[0])
        first, last = _window(variables, pairs, events, other, owners, solutions[row])
        x, y, z = roles[anchor].x, roles[anchor].y, roles[anchor].z
        for i in range(max(x - 1, 0), min(x + 2, cells[q, 0])):
            for j in range(max(y - 1, 0), min(y + 2, cells[q, 1])):
                for c in range(max(z - 1, 0), min(z + 2, cells[q, 2])):
                    number = base[other] + (i * cells[q, 1] + j) * cells[q, 2] + c
                    index = _first_from(events, roles, by_list, starts[number], starts[number + 1], first)
                    while index < starts[number + 1] and events[roles[by_list[index]].event].t <= last:
                        event = roles[by_list[index]].event
                        if _agrees(
                            variables, pairs, checks, events, columns, scale, radius, other, owners, solutions[row],
                            event, k,
                        ):  # fmt: skip
                            if length + 2 > len(found):
                                found = larger(found, length + 2)
                            found[length], found[length + 1] = row, event
                            length += 2
                        index += 1
    return found[:length].copy().reshape(-1, 2)


@compiled_inline
def _role_of(events: Table, roles: Table, event: int, variable: int) -> int:
    """The role of an event as a variable."""
    role = events[event].role
    while roles[role].variable != variable:
        role += 1
    return role


@compiled_inline
def _window(variables: Table, pairs: Table, events: Table, other: int, owners: I64, solution: I64) -> tuple[Any, Any]:
    """The first and the last time at which an event of a variable can agree with a solution."""
    first, last = _ends(variables, pairs, events, other, owners[0], solution[0])
    for column in range(1, len(owners)):
        low, high = _ends(variables, pairs, events, other, owners[column], solution[column])
        first, last = max(first, low), min(last, high)
    return first, last


@compiled_inline
def _ends(variables: Table, pairs: Table, events: Table, other: int, owner: int, event: int) -> tuple[Any, Any]:
    pair = variables[owner].pair + other - variables[owner].first
    t, slack = events[event].t, events[event].slack
    return t + pairs[pair].earliest - slack, t + pairs[pair].latest + slack


@compiled_inline
def _first_from(events: Table, roles: Table, by_list: I64, low: int, high: int, t: Any) -> int:
    """The first index from `low` on, below `high`, of a role whose event is at t or later."""
    while low < high:
        middle = (low + high) // 2
        if events[roles[by_list[middle]].event].t < t:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_inline
def _agrees(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, scale: float, radius: float, other: int,
    owners: I64, solution: I64, event: int, k: int,
) -> bool:  # fmt: skip
    """Whether an event, which must be none of the solution's, agrees with all events of the solution."""
    for column in range(k):
        if solution[column] == event:
            return False
    for column in range(k):
        owner = owners[column]
        pair = variables[owner].pair + other - variables[owner].first
        if not agree(pairs, checks, events, columns, pair, solution[column], event, scale, radius):
            return False
    return True


@compiled
def deadlines(
    variables: Table, pairs: Table, events: Table, other: int, owners: I64, solutions: I64, last: Any
) -> None:
    """Set `last` to the last time at which an event of a variable can agree with each solution."""
    for row in range(len(solutions)):
        last[row] = _window(variables, pairs, events, other, owners, solutions[row])[1]
