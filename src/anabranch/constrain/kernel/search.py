"""Completes solutions by forward checking over the roles that agree with a new one.

Each variable that still needs events has a list of roles that agree with all chosen ones. The variable with the
shortest list is next. Each choice shortens the lists of the others, and is dropped as soon as one is too short.

Interchangeable events of one variable are chosen from the end of its list to the beginning, so that each set of events
is found once.

The state of a search is in three arrays. `spans[depth, u]` is the start and the end, in the pool, of the list of
variable u of the query. `need[u]` is the number of events that it still needs. `chosen[depth]` is the chosen role, its
variable within the query, and the index in the pool from which the next depth chooses (-1 before the first choice).
Every role in the list of the last event that is needed completes a solution.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.constrain.kernel.checks import agree
from anabranch.constrain.kernel.tables import Table

#: The columns of `chosen`.
ROLE, VARIABLE, POINTER = range(3)


@compiled
def search(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, spans: I64, need: I64, chosen: I64, pool: I64, top: int, solutions: I64, length: int, rest: int,
) -> tuple[I64, I64, int, int]:  # fmt: skip
    """Append all solutions that contain the role chosen at depth 0, if there are not more than `rest`.

    Returns the pool, the solutions and their length, and how many more solutions there may be, which is negative if
    there are too many.

    The lists of depth 0 contain the roles that agree with it. A solution is written as its query, then the events of
    its variables; the events of a counted variable ascend.
    """
    variable = variables[roles[chosen[0, ROLE]].variable]
    missing = 0
    for u in range(variable.size):
        missing += need[u]
    depth = 0
    chosen[0, POINTER] = -1
    while depth >= 0:
        if chosen[depth, POINTER] < 0:
            u = _fewest(spans, need, depth, variable.size)
            if missing <= 1:
                first, end = (spans[depth, u, 0], spans[depth, u, 1]) if missing else (0, 1)
                rest -= end - first
                if rest < 0:
                    break
                if length + (end - first) * (depth + 3) > len(solutions):
                    solutions = larger(solutions, length + (end - first) * (depth + 3))
                for index in range(end - 1, first - 1, -1):
                    chosen[depth + 1, ROLE], chosen[depth + 1, VARIABLE] = pool[index], u
                    length = _write(
                        variable.query, variable.size, roles, chosen, depth + missing, solutions, length
                    )  # fmt: skip
                depth -= 1
                missing += 1
                continue
            chosen[depth + 1, VARIABLE] = u
            chosen[depth, POINTER] = spans[depth, u, 1]
            need[u] -= 1
        u = chosen[depth + 1, VARIABLE]
        chosen[depth, POINTER] -= 1
        if chosen[depth, POINTER] < spans[depth, u, 0]:
            need[u] += 1
            missing += 1
            depth -= 1
            continue
        chosen[depth + 1, ROLE] = pool[chosen[depth, POINTER]]
        used = _used(spans, depth, variable.size, top)
        if 2 * used > len(pool):
            pool = larger(pool, 2 * used)
        if _shorten(
            variables, pairs, checks, events, columns, roles, scale, radius, spans, need, chosen, depth, pool, used
        ):
            depth += 1
            missing -= 1
            chosen[depth, POINTER] = -1
    return pool, solutions, length, rest


@compiled_inline
def _fewest(spans: I64, need: I64, depth: int, size: int) -> int:
    """The variable with the shortest list among those that need events; -1 if none does."""
    best, fewest = -1, 0
    for u in range(size):
        length = spans[depth, u, 1] - spans[depth, u, 0]
        if need[u] > 0 and (best < 0 or length < fewest):
            best, fewest = u, length
    return best


@compiled_inline
def _used(spans: I64, depth: int, size: int, top: int) -> int:
    """The length of the pool that the lists up to a depth use."""
    used = top
    for u in range(size):
        used = max(used, spans[depth, u, 1])
    return used


@compiled_inline
def _shorten(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, spans: I64, need: I64, chosen: I64, depth: int, pool: I64, end: int,
) -> bool:  # fmt: skip
    """Write the lists of the next depth at the end of the pool: the roles that agree with the last chosen one.

    Returns False if one of the lists is too short. The pool must have space for all lists of this depth.
    """
    role, chosen_variable = chosen[depth + 1, ROLE], chosen[depth + 1, VARIABLE]
    y, v = roles[role].event, roles[role].variable
    for u in range(variables[v].size):
        spans[depth + 1, u, 0] = spans[depth + 1, u, 1] = end
        if need[u] == 0:
            continue
        pair = variables[v].pair + u
        first, last = spans[depth, u, 0], chosen[depth, POINTER] if u == chosen_variable else spans[depth, u, 1]
        for index in range(first, last):
            z = roles[pool[index]].event
            if z != y and _may_follow(pairs, pair, events, y, z):
                if agree(pairs, checks, events, columns, pair, y, z, scale, radius):
                    pool[end] = pool[index]
                    end += 1
        spans[depth + 1, u, 1] = end
        if end - spans[depth + 1, u, 0] < need[u]:
            return False
    return True


@compiled_inline
def _may_follow(pairs: Table, pair: int, events: Table, y: int, z: int) -> bool:
    """Whether the implied bounds of a pair allow the times of two events."""
    t, slack, other = events[y].t, events[y].slack, events[z].t
    return t + pairs[pair].earliest - slack <= other <= t + pairs[pair].latest + slack


@compiled_inline
def _write(query: int, size: int, roles: Table, chosen: I64, depth: int, solutions: I64, length: int) -> int:
    """Append the roles chosen at depths 0 to `depth` as a solution; the events of each variable are sorted.

    Returns the new length of the solutions, which must have space.
    """
    solutions[length] = query
    end = length + 1
    for u in range(size):
        start = end
        for level in range(depth + 1):
            if chosen[level, VARIABLE] == u:
                event, index = roles[chosen[level, ROLE]].event, end
                while index > start and solutions[index - 1] > event:
                    solutions[index] = solutions[index - 1]
                    index -= 1
                solutions[index] = event
                end += 1
    return end


@compiled
def larger(array: I64, size: int) -> I64:
    """A copy of an array that is at least twice as long, and at least `size`."""
    copy = np.empty(max(size, 2 * len(array)), np.int64)
    assign(copy, array)
    return copy
