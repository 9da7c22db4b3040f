"""Events come one by one, in order of time: what each completes, and how long each is kept.

A solution is found by the last of its events. A role is useless, and not kept, where a variable that must be earlier
has no event that agrees with it. A role that is kept expires: *loosely*, when no other variable can follow any more;
*tightly*, while some other variable has no event that agrees with it, at the first moment after which that variable can
have none, and is renewed when one comes. Both give the same solutions.

The tables are handed over one by one: a function that takes them in a tuple counts their references at every call,
which would cost more than the comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.constrain.kernel.search import OWN, ROLE, search
from anabranch.constrain.kernel.store import candidates, keep
from anabranch.constrain.kernel.tables import Table


@compiled
def arrive(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, items: Table, begin: I64, end: I64, base: I64, cells: I64, tight: bool, start: int, enough: int,
) -> tuple[int, I64]:  # fmt: skip
    """Let the events from number `start` on come, until all have or the solutions take `enough` numbers.

    Returns
    -------
    The number of the next event, and the solutions (see `search`).
    """
    size, places = _largest(variables)
    spans, need = np.zeros((places + 1, size, 2), np.int64), np.zeros(size, np.int64)
    chosen = np.zeros((places + 1, 3), np.int64)
    pool, found, length = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    x = start
    while x < len(events) - 1 and length < enough:
        for role in range(events[x].role, events[x + 1].role):
            if len(pool) < 2 * role + 2:
                pool = np.empty(4 * role + 4, np.int64)
            top, useful, complete = _meet(
                variables, pairs, checks, events, columns, roles, scale, radius, items, begin, end, base, cells,
                spans, need, role, pool,
            )  # fmt: skip
            if not useful:
                continue
            if complete and roles[role].home:
                v = roles[role].variable
                chosen[0, ROLE], chosen[0, OWN] = role, v - variables[v].first
                pool, found, length = search(
                    variables, pairs, checks, events, columns, roles, scale, radius, spans, need, chosen, pool, top,
                    found, length,
                )  # fmt: skip
            _remember(variables, pairs, events, roles, tight, spans, role, pool)
        # Only now, for an event is not its own partner in another role.
        for role in range(events[x].role, events[x + 1].role):
            if roles[role].expires >= events[x].t:
                keep(items, end, events, roles, role)
        x += 1
    return x, found[:length]


@compiled_inline
def _largest(variables: Table) -> tuple[int, int]:
    """The most variables, and the most events, of any query."""
    size, places = 0, 0
    for v in range(len(variables)):
        size = max(size, variables[v].size)
        own = 0
        for u in range(variables[v].first, variables[v].first + variables[v].size):
            own += variables[u].count
        places = max(places, own)
    return size, places


@compiled_inline
def _meet(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, items: Table, begin: I64, end: I64, base: I64, cells: I64, spans: I64, need: I64, role: int,
    pool: I64,
) -> tuple[int, bool, bool]:  # fmt: skip
    """Find the kept roles that agree with a new one, variable by variable, as the lists of depth 0.

    Returns the top of the pool, whether the new role can be in any solution, and whether it may complete one.
    """
    v = roles[role].variable
    first, top, complete = variables[v].first, 0, True
    for number in range(variables[v].size):
        u = pairs[variables[v].pair + number].turn
        pair = variables[v].pair + u
        need[u] = variables[first + u].count - (1 if first + u == v else 0)
        spans[0, u, 0] = top
        if need[u] > 0 and pairs[pair].earliest <= 0:
            top = candidates(
                items, begin, end, base, cells, variables, pairs, checks, events, columns, roles, role, first + u,
                scale, radius, pool, top,
            )  # fmt: skip
        spans[0, u, 1] = top
        if top - spans[0, u, 0] < need[u]:
            # Those that must be earlier come first, so that a useless role costs little.
            if pairs[pair].latest < 0:
                return top, False, False
            complete = False
    return top, True, complete


@compiled_inline
def _remember(
    variables: Table, pairs: Table, events: Table, roles: Table, tight: bool, spans: I64, role: int, pool: I64
) -> None:
    """Set when a new role expires, and renew those that it agrees with."""
    v = roles[role].variable
    bit = np.uint64(1) << np.uint64(v - variables[v].first)
    for u in range(variables[v].size):
        if spans[0, u, 1] > spans[0, u, 0]:
            roles[role].met |= np.uint64(1) << np.uint64(u)
        if tight:
            for place in range(spans[0, u, 0], spans[0, u, 1]):
                other = pool[place]
                if not roles[other].met & bit:
                    roles[other].met |= bit
                    roles[other].expires = _expiry(variables, pairs, events, roles, tight, other)
    roles[role].expires = _expiry(variables, pairs, events, roles, tight, role)


@compiled_inline
def _expiry(variables: Table, pairs: Table, events: Table, roles: Table, tight: bool, role: int) -> Any:
    """The last moment at which something may come that makes a role part of a solution."""
    v = roles[role].variable
    least = variables[v].longest
    if tight:
        for u in range(variables[v].size):
            missing = not (roles[role].met >> np.uint64(u)) & np.uint64(1)
            if missing and (variables[v].first + u != v or variables[v].count > 1):
                least = min(least, pairs[variables[v].pair + u].latest)
    return events[roles[role].event].t + least
