"""Events come one by one, in order of time: what each completes, and how long each is kept.

A solution is found by the last of its events. A role is useless, and not kept, where a variable that must be earlier
has no event that agrees with it. A role that is kept expires: *loosely*, when no other variable can follow any more;
*tightly*, while some other variable has no event that agrees with it, at the first moment after which that variable can
have none, and is renewed when one comes. Both give the same solutions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from anabranch.constrain.kernel.checks import I64, Events, Graph
from anabranch.constrain.kernel.search import Lists, new_lists, search
from anabranch.constrain.kernel.store import Store, candidates, keep


@njit(cache=True)
def arrive(
    graph: Graph, events: Events, store: Store, expires: Any, met: Any, tight: bool, start: int, enough: int
) -> tuple[int, I64]:
    """Let the events from number `start` on come, until all have or the solutions take `enough` numbers.

    Parameters
    ----------
    expires : until when each role is kept; before all time for those that are yet to come
    met : bits of each role: the variables of its question of which an event has come that agrees with it

    Returns
    -------
    The number of the next event, and the solutions (see `search`).
    """
    lists = new_lists(graph)
    pool, found, size = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    x = start
    while x < len(events.t) and size < enough:
        for role in range(events.role[x], events.role[x + 1]):
            if len(pool) < 2 * role + 2:
                pool = np.empty(4 * role + 4, np.int64)
            top, useful, complete = _meet(graph, events, store, expires, lists, role, pool)
            if not useful:
                continue
            if complete and events.home[role]:
                pool, found, size = search(graph, events, lists, _question(graph, events, role), pool, top, found, size)
            _remember(graph, events, expires, met, tight, lists, role, pool)
        # Only now, for an event is not its own partner in another role.
        for role in range(events.role[x], events.role[x + 1]):
            if expires[role] >= events.t[x]:
                keep(store, events, role)
        x += 1
    return x, found[:size]


@njit(cache=True)
def _question(graph: Graph, events: Events, role: int) -> int:
    return graph.question[events.variable[role]]


@njit(cache=True)
def _meet(
    graph: Graph, events: Events, store: Store, expires: Any, lists: Lists, role: int, pool: I64
) -> tuple[int, bool, bool]:
    """Find the kept roles that agree with a new one, variable by variable, as the lists of depth 0.

    Returns the top of the pool, whether the new role can be in any solution, and whether it may complete one.
    """
    v = events.variable[role]
    first = graph.first[graph.question[v]]
    lists.chosen[0], lists.variable[0] = role, v - first
    top, complete = 0, True
    for u in range(graph.first[graph.question[v] + 1] - first):
        pair = graph.pair[v] + u
        lists.need[u] = graph.count[first + u] - (1 if first + u == v else 0)
        lists.begin[0, u] = top
        if lists.need[u] > 0 and graph.earliest[pair] <= 0:
            top = candidates(store, graph, events, expires, role, first + u, pool, top)
        lists.end[0, u] = top
        if top - lists.begin[0, u] < lists.need[u]:
            complete = False
            if graph.latest[pair] < 0:
                return top, False, False
    return top, True, complete


@njit(cache=True)
def _remember(
    graph: Graph, events: Events, expires: Any, met: Any, tight: bool, lists: Lists, role: int, pool: I64
) -> None:
    """Set when a new role expires, and renew those that it agrees with."""
    v = events.variable[role]
    first = graph.first[graph.question[v]]
    bit = np.uint64(1) << np.uint64(v - first)
    for u in range(graph.first[graph.question[v] + 1] - first):
        if lists.end[0, u] > lists.begin[0, u]:
            met[role] |= np.uint64(1) << np.uint64(u)
        if tight:
            for place in range(lists.begin[0, u], lists.end[0, u]):
                other = pool[place]
                if not met[other] & bit:
                    met[other] |= bit
                    expires[other] = _expiry(graph, events, met, tight, other)
    expires[role] = _expiry(graph, events, met, tight, role)


@njit(cache=True)
def _expiry(graph: Graph, events: Events, met: Any, tight: bool, role: int) -> Any:
    """The last moment at which something may come that makes a role part of a solution."""
    v = events.variable[role]
    first = graph.first[graph.question[v]]
    least = graph.longest[v]
    if tight:
        for u in range(graph.first[graph.question[v] + 1] - first):
            missing = not (met[role] >> np.uint64(u)) & np.uint64(1)
            if missing and (first + u != v or graph.count[v] > 1):
                least = min(least, graph.latest[graph.pair[v] + u])
    return events.t[events.event[role]] + least
