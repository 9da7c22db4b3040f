"""Processes events one by one, in order of time: finds the solutions that each completes, and how long it is kept.

A solution is found by its last event. A role is useless, and not kept, if a variable that must be earlier has no event
that agrees with it. A kept role expires: *loosely*, when no event of another variable can follow any more; *tightly*,
when some variable without an agreeing event can no longer get one. A tight expiry is renewed when an agreeing event
arrives. Both give the same solutions.

Events of variables with NOT are in no solution. They are kept loosely, for `companions.py`.

The tables are passed as separate arguments: a function that takes them in a tuple counts their references at every
call, which would cost more than the comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.constrain.kernel.search import ROLE, VARIABLE, search
from anabranch.constrain.kernel.store import candidates, keep
from anabranch.constrain.kernel.tables import Table


@compiled
def arrive(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, items: Table, begin: I64, end: I64, base: I64, cells: I64, low: F64, density: F64, tight: bool,
    start: int, enough: int, most: int,
) -> tuple[int, I64, int]:  # fmt: skip
    """Process the events from number `start` on, until the last one or until the solutions take `enough` numbers.

    One event may complete `most` solutions of a query.

    Returns
    -------
    The number of the next event, the solutions (see `search`), and -1; or, if there are too many solutions, the number
    of the event that completes them, no solutions, and the query.
    """
    size, n_events = _largest(variables)
    # Of each query, the last event that has completed solutions, and how many more it may complete.
    last, rest = np.full(len(variables), -1, np.int64), np.empty(len(variables), np.int64)
    spans, need = np.zeros((n_events + 1, size, 2), np.int64), np.zeros(size, np.int64)
    chosen = np.zeros((n_events + 1, 3), np.int64)
    pool, solutions, length = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    x = start
    while x < len(events) - 1 and length < enough:
        for role in range(events[x].role, events[x + 1].role):
            if variables[roles[role].variable].count == 0:
                roles[role].expires = events[x].t + variables[roles[role].variable].longest + 4 * events[x].slack
                continue
            if len(pool) < 2 * role + 2:
                pool = np.empty(4 * role + 4, np.int64)
            top, useful, complete = _agreeing(
                variables, pairs, checks, events, columns, roles, scale, radius, items, begin, end, base, cells, low,
                density, spans, need, role, pool,
            )  # fmt: skip
            if not useful:
                continue
            if complete and roles[role].is_primary:
                v = roles[role].variable
                query = variables[v].query
                if last[query] != x:
                    last[query], rest[query] = x, most
                chosen[0, ROLE], chosen[0, VARIABLE] = role, v - variables[v].first
                pool, solutions, length, rest[query] = search(
                    variables, pairs, checks, events, columns, roles, scale, radius, spans, need, chosen, pool, top,
                    solutions, length, rest[query],
                )  # fmt: skip
                if rest[query] < 0:
                    return x, solutions[:0], query
            _update_expiry(variables, pairs, events, roles, tight, spans, role, pool)
        # Kept only after all roles of the event, so that a solution does not contain the same event in two roles.
        for role in range(events[x].role, events[x + 1].role):
            if roles[role].expires >= events[x].t and variables[roles[role].variable].count > 0:
                keep(items, end, events, roles, role)
        x += 1
    return x, solutions[:length], -1


@compiled_inline
def _largest(variables: Table) -> tuple[int, int]:
    """The largest number of variables, and of events in a solution, of any query."""
    size, n_events = 0, 0
    for v in range(len(variables)):
        size = max(size, variables[v].size)
        count = 0
        for u in range(variables[v].first, variables[v].first + variables[v].size):
            count += variables[u].count
        n_events = max(n_events, count)
    return size, n_events


@compiled_inline
def _agreeing(
    variables: Table, pairs: Table, checks: Table, events: Table, columns: F64, roles: Table, scale: float,
    radius: float, items: Table, begin: I64, end: I64, base: I64, cells: I64, low: F64, density: F64, spans: I64,
    need: I64, role: int, pool: I64,
) -> tuple[int, bool, bool]:  # fmt: skip
    """Find the kept roles that agree with a new one, by variable: the lists of depth 0.

    Returns the top of the pool, whether the new role can be in any solution, and whether it may complete one.
    """
    v = roles[role].variable
    first, top, complete = variables[v].first, 0, True
    for number in range(variables[v].size):
        u = pairs[variables[v].pair + number].search_order
        pair = variables[v].pair + u
        need[u] = variables[first + u].count - (1 if first + u == v else 0)
        spans[0, u, 0] = top
        if need[u] > 0 and pairs[pair].earliest <= 0:
            top = candidates(
                items, begin, end, base, cells, low, density, variables, pairs, checks, events, columns, roles, role,
                first + u, scale, radius, pool, top,
            )  # fmt: skip
        spans[0, u, 1] = top
        if top - spans[0, u, 0] < need[u]:
            # Variables that must be earlier are searched first, so that a useless role costs little.
            if pairs[pair].latest < 0:
                return top, False, False
            complete = False
    return top, True, complete


@compiled_inline
def _update_expiry(
    variables: Table, pairs: Table, events: Table, roles: Table, tight: bool, spans: I64, role: int, pool: I64
) -> None:
    """Set the expiry of a new role, and renew that of the roles that agree with it."""
    v = roles[role].variable
    bit = np.uint64(1) << np.uint64(v - variables[v].first)
    for u in range(variables[v].size):
        if spans[0, u, 1] > spans[0, u, 0]:
            roles[role].met |= np.uint64(1) << np.uint64(u)
        if tight:
            for index in range(spans[0, u, 0], spans[0, u, 1]):
                other = pool[index]
                if not roles[other].met & bit:
                    roles[other].met |= bit
                    roles[other].expires = _expiry(variables, pairs, events, roles, tight, other)
    roles[role].expires = _expiry(variables, pairs, events, roles, tight, role)


@compiled_inline
def _expiry(variables: Table, pairs: Table, events: Table, roles: Table, tight: bool, role: int) -> Any:
    """The last time at which an event may arrive that makes a role part of a solution."""
    v = roles[role].variable
    least = variables[v].longest
    if tight:
        for u in range(variables[v].size):
            missing = not (roles[role].met >> np.uint64(u)) & np.uint64(1)
            count = variables[variables[v].first + u].count
            if missing and count > (1 if variables[v].first + u == v else 0):
                least = min(least, pairs[variables[v].pair + u].latest)
    # The slack of a bound to another event, and of the bounds from there on: that event may wait for others.
    return events[roles[role].event].t + least + 4 * events[roles[role].event].slack
