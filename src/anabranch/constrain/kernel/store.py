"""The events that may still be needed, and those among them that a new event could meet.

Roles are kept in lists, each in order of time. Without an index there is a list for every variable, which has all roles
of this variable and no others. With an index there is a list for every cell of a grid in space, and one of all roles
for pairs of variables that may be further apart than a cell is wide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import njit

from anabranch.constrain.kernel.checks import I64, Events, Graph, agree

#: A list is cleared of roles that have expired where at least so many of them were met.
_MANY = 16


class Store(NamedTuple):
    """Lists of roles.

    Attributes
    ----------
    items : the roles of all lists
    begin, end : where each list begins and ends in `items`; there is room for all that can come
    cell : of each event, the number of its cell
    near, near_first : the cells around each cell, itself among them, and where they begin
    width : of a cell; pairs that may be further apart are looked for in the list of all roles
    everywhere : the number of the list of all roles, or -1 where there is none
    indexed : whether lists are those of cells
    """

    items: Any
    begin: Any
    end: Any
    cell: Any
    near: Any
    near_first: Any
    width: float
    everywhere: int
    indexed: bool


@njit(cache=True)
def keep(store: Store, events: Events, role: int) -> None:
    """Add a role to its lists."""
    own = store.cell[events.event[role]] if store.indexed else events.variable[role]
    store.items[store.end[own]] = role
    store.end[own] += 1
    if store.indexed and store.everywhere >= 0:
        store.items[store.end[store.everywhere]] = role
        store.end[store.everywhere] += 1


@njit(cache=True)
def candidates(
    store: Store, graph: Graph, events: Events, expires: Any, role: int, other: int, pool: I64, top: int
) -> int:
    """Write the kept roles of variable `other` that agree with a new role to the pool; the new top of the pool.

    There must be room for all kept roles.
    """
    if not store.indexed:
        return _from_list(store, graph, events, expires, role, other, other, pool, top)
    v = events.variable[role]
    pair = graph.pair[v] + other - graph.first[graph.question[v]]
    if graph.reach[pair] > store.width:
        return _from_list(store, graph, events, expires, role, other, store.everywhere, pool, top)
    cell = store.cell[events.event[role]]
    for place in range(store.near_first[cell], store.near_first[cell + 1]):
        top = _from_list(store, graph, events, expires, role, other, store.near[place], pool, top)
    return top


@njit(cache=True)
def _from_list(
    store: Store, graph: Graph, events: Events, expires: Any, role: int, other: int, number: int, pool: I64, top: int
) -> int:
    x, v = events.event[role], events.variable[role]
    now = events.t[x]
    pair = graph.pair[v] + other - graph.first[graph.question[v]]
    earlier, later = now + graph.earliest[pair], now + graph.latest[pair]
    expired = 0
    for place in range(store.end[number] - 1, store.begin[number] - 1, -1):
        found = store.items[place]
        y = events.event[found]
        if events.t[y] < earlier:
            break
        if expires[found] < now:
            expired += 1
        elif events.variable[found] == other and y != x and events.t[y] <= later:
            if agree(graph, events, pair, x, y):
                pool[top] = found
                top += 1
    if expired > _MANY and 2 * expired > store.end[number] - store.begin[number]:
        _clear(store, expires, number, now)
    return top


@njit(cache=True)
def _clear(store: Store, expires: Any, number: int, now: Any) -> None:
    """Take the roles that have expired out of a list."""
    kept = store.begin[number]
    for place in range(store.begin[number], store.end[number]):
        role = store.items[place]
        if expires[role] >= now:
            store.items[kept] = role
            kept += 1
    store.end[number] = kept
