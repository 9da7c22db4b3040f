"""Whole solutions: forward checking over the roles that agree with a new one.

Each variable that still needs events has a list of roles that agree with all chosen so far. The variable with the
fewest goes first; each choice shortens the lists of the others, and is given up as soon as one is too short.

Interchangeable events of one variable are chosen from the end of its list towards the beginning, so that each set of
them is found once.

Three arrays are the state of a search. `spans[depth, u]` is where the list of variable u of the query begins and
ends in the pool; `need[u]` is how many events it needs still; `chosen[depth]` is the role that was chosen, its variable
within the query, and the place in the list from which the next depth chooses (-1 before it began).
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.constrain.kernel.checks import agree
from anabranch.constrain.kernel.tables import Table

#: The columns of `chosen`.
ROLE, OWN, POINTER = range(3)


@compiled
def search(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, spans: I64, need: I64, chosen: I64, pool: I64, top: int, found: I64, size: int,
) -> tuple[I64, I64, int]:  # fmt: skip
    """Write all solutions that contain the role chosen at depth 0; gives the pool, the solutions, and their size.

    The lists of depth 0 are those of the roles that agree with it. A solution is written as its query, then the
    events of its variables, those of a counted one in rising order.
    """
    variable = variables[roles[chosen[0, ROLE]].variable]
    depth = 0
    chosen[0, POINTER] = -1
    while depth >= 0:
        if chosen[depth, POINTER] < 0:
            own = _fewest(spans, need, depth, variable.size)
            if own < 0:
                found, size = _write(variable.query, variable.size, roles, chosen, depth, found, size)
                depth -= 1
                continue
            chosen[depth + 1, OWN] = own
            chosen[depth, POINTER] = spans[depth, own, 1]
            need[own] -= 1
        own = chosen[depth + 1, OWN]
        chosen[depth, POINTER] -= 1
        if chosen[depth, POINTER] < spans[depth, own, 0]:
            need[own] += 1
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
            chosen[depth, POINTER] = -1
    return pool, found, size


@compiled_inline
def _fewest(spans: I64, need: I64, depth: int, size: int) -> int:
    """The variable that needs events and has the fewest to choose from; -1 where none needs any."""
    best, fewest = -1, 0
    for u in range(size):
        length = spans[depth, u, 1] - spans[depth, u, 0]
        if need[u] > 0 and (best < 0 or length < fewest):
            best, fewest = u, length
    return best


@compiled_inline
def _used(spans: I64, depth: int, size: int, top: int) -> int:
    """How much of the pool the lists up to a depth take."""
    used = top
    for u in range(size):
        used = max(used, spans[depth, u, 1])
    return used


@compiled_inline
def _shorten(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, spans: I64, need: I64, chosen: I64, depth: int, pool: I64, place: int,
) -> bool:  # fmt: skip
    """The lists of the next depth, from a place in the pool on: what agrees with the role just chosen.

    False where one of them is too short. There must be room for all that this depth has.
    """
    role, own = chosen[depth + 1, ROLE], chosen[depth + 1, OWN]
    y, v = roles[role].event, roles[role].variable
    for u in range(variables[v].size):
        spans[depth + 1, u, 0] = spans[depth + 1, u, 1] = place
        if need[u] == 0:
            continue
        pair = variables[v].pair + u
        first, last = spans[depth, u, 0], chosen[depth, POINTER] if u == own else spans[depth, u, 1]
        for each in range(first, last):
            z = roles[pool[each]].event
            if z != y and _may_follow(pairs, pair, events[y].t, events[z].t):
                if agree(pairs, checks, events, columns, pair, y, z, scale, radius):
                    pool[place] = pool[each]
                    place += 1
        spans[depth + 1, u, 1] = place
        if place - spans[depth + 1, u, 0] < need[u]:
            return False
    return True


@compiled_inline
def _may_follow(pairs: Table, pair: int, t: float, other: float) -> bool:
    """Whether the bounds of a pair allow two times."""
    return t + pairs[pair].earliest <= other <= t + pairs[pair].latest


@compiled
def _write(query: int, size: int, roles: Table, chosen: I64, depth: int, found: I64, length: int) -> tuple[I64, int]:
    """Write down the roles chosen at depths 0 to `depth`: the events of each variable in its places."""
    if length + depth + 2 > len(found):
        found = larger(found, length + depth + 2)
    found[length] = query
    place = length + 1
    for u in range(size):
        start = place
        for each in range(depth + 1):
            if chosen[each, OWN] == u:
                event, at = roles[chosen[each, ROLE]].event, place
                while at > start and found[at - 1] > event:
                    found[at] = found[at - 1]
                    at -= 1
                found[at] = event
                place += 1
    return found, place


@compiled
def larger(array: I64, size: int) -> I64:
    """A copy of an array with room for more than twice as much, and for `size` at least."""
    copy = np.empty(max(size, 2 * len(array)), np.int64)
    assign(copy, array)
    return copy
