"""The events that may still be needed, and those among them that a new event could meet.

Items are kept in lists in order of time: one for each variable, or, with an index, one for each variable and cell of a
grid in space. Each query has a grid of its own, with cells no narrower than its events may be apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.constrain.kernel.checks import agree
from anabranch.constrain.kernel.tables import Events, Graph, Table, item_type

#: A list is cleared of items that have expired where so many of them were met, and most of those met were such.
_MANY = 16

#: A grid has at most so many cells along an axis.
_MOST_CELLS = 16

#: An axis is cut where so many roles of a query or more come to a cell, on average.
_ROLES_A_CELL = 8.0


class Store(NamedTuple):
    """Items in lists.

    Attributes
    ----------
    items : of all lists
    begin, end : where each list begins and ends; there is room for all that can come
    base : of each variable, its first list
    cells : (queries, 3) how many cells each grid has along an axis
    """

    items: Table
    begin: I64
    end: I64
    base: I64
    cells: I64


def new_store(graph: Graph, given: Events, indexed: bool) -> Store:
    """An empty store with room for every role, each of which is told its list."""
    events, roles = given.events[:-1], given.roles
    at = np.stack([events["x"], events["y"], events["z"]], axis=1)
    known = at[~np.isnan(at).any(axis=1)]
    low = known.min(axis=0) if len(known) else np.zeros(3)
    extent = (known.max(axis=0) - low if len(known) else np.zeros(3)) * (1 + 1e-9)
    cells = _cells(graph, roles, extent) if indexed else np.ones((len(graph.reach), 3), np.int64)
    narrow = cells / np.where(extent > 0, extent, 1.0)
    own = np.prod(cells, axis=1)[graph.variables["query"]]
    base = np.concatenate([[0], np.cumsum(own)]).astype(np.int64)
    sizes = np.zeros(base[-1], np.int64)
    _assign(graph.variables, given.events, roles, base, low, cells, narrow, sizes)
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    items = np.zeros(begin[-1], item_type(events["t"].dtype))
    return Store(items, begin[:-1].copy(), begin[:-1].copy(), base, cells)


def _cells(graph: Graph, roles: Table, extent: F64) -> I64:
    """How many cells along each axis: none narrower than the reach, nor more than there are roles for."""
    asked = np.bincount(graph.variables["query"][roles["variable"]], minlength=len(graph.reach))
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.where(extent > 0, np.floor(extent / graph.reach[:, None]), 1.0)
    most = np.sqrt(asked / _ROLES_A_CELL)[:, None]
    return np.clip(np.nan_to_num(np.minimum(fitting, most), nan=1.0), 1, _MOST_CELLS).astype(np.int64)


@compiled_inline
def _cell(place: float, low: float, narrow: float, cells: int) -> int:
    """The number of the cell along an axis; the first for a place that is not known."""
    if np.isnan(place):
        return 0
    number = int((place - low) * narrow)
    return min(max(number, 0), cells - 1)


@compiled
def _assign(
    variables: Table, events: Table, roles: Table, base: I64, low: F64, cells: I64, narrow: F64, sizes: I64
) -> None:
    """Tell every role its list, and count the roles of each."""
    for role in range(len(roles)):
        v, event = roles[role].variable, events[roles[role].event]
        q = variables[v].query
        x = roles[role].x = _cell(event.x, low[0], narrow[q, 0], cells[q, 0])
        y = roles[role].y = _cell(event.y, low[1], narrow[q, 1], cells[q, 1])
        z = roles[role].z = _cell(event.z, low[2], narrow[q, 2], cells[q, 2])
        roles[role].list = base[v] + (x * cells[q, 1] + y) * cells[q, 2] + z
        sizes[roles[role].list] += 1


@compiled_inline
def keep(items: Table, end: I64, events: Table, roles: Table, role: int) -> None:
    """Add a role to its list."""
    event, own = events[roles[role].event], roles[role].list
    item = items[end[own]]
    item.t, item.x, item.y, item.z, item.role = event.t, event.x, event.y, event.z, role
    end[own] += 1


@compiled_inline
def candidates(
    items: Table, begin: I64, end: I64, base: I64, cells: I64, variables: Table, pairs: Table, checks: Table,
    events: Table, columns: F64, roles: Table, role: int, other: int, scale: float, radius: float, pool: I64, top: int,
) -> int:  # fmt: skip
    """Write the kept roles of variable `other` that agree with a new role to the pool; the new top of the pool.

    There must be room for all kept roles. Lists of the cells around the new role's own are looked through.
    """
    v = roles[role].variable
    q, pair = variables[v].query, variables[v].pair + other - variables[v].first
    x, y, z = roles[role].x, roles[role].y, roles[role].z
    for i in range(max(x - 1, 0), min(x + 2, cells[q, 0])):
        for j in range(max(y - 1, 0), min(y + 2, cells[q, 1])):
            for k in range(max(z - 1, 0), min(z + 2, cells[q, 2])):
                number = base[other] + (i * cells[q, 1] + j) * cells[q, 2] + k
                if end[number] > begin[number]:
                    top = _from_list(
                        items, begin, end, number, pairs, checks, events, columns, roles, roles[role].event, pair,
                        scale, radius, pool, top,
                    )  # fmt: skip
    return top


@compiled_inline
def _from_list(
    items: Table, begin: I64, end: I64, number: int, pairs: Table, checks: Table, events: Table, columns: F64,
    roles: Table, x: int, pair: int, scale: float, radius: float, pool: I64, top: int,
) -> int:  # fmt: skip
    """The roles of one list that agree with event x, from the newest to the first that is not too early."""
    now, here_x, here_y, here_z = events[x].t, events[x].x, events[x].y, events[x].z
    earlier, later = now + pairs[pair].earliest, now + pairs[pair].latest
    near, sure = pairs[pair].near, pairs[pair].sure
    expired, place = 0, end[number]
    while place > begin[number] and items[place - 1].t >= earlier:
        place -= 1
        item = items[place]
        a, b, c = item.x - here_x, item.y - here_y, item.z - here_z
        square = a * a + b * b + c * c
        if square > near or item.t > later:
            continue
        found = item.role
        if roles[found].expires < now:
            expired += 1
            continue
        if square <= sure or agree(pairs, checks, events, columns, pair, x, roles[found].event, scale, radius):
            pool[top] = found
            top += 1
    if expired > _MANY and 2 * expired > end[number] - place:
        _clear(items, place, end, number, roles, now)
    return top


@compiled_inline
def _clear(items: Table, start: int, end: I64, number: int, roles: Table, now: float) -> None:
    """Take the items that have expired out of a list, from a place on."""
    kept = start
    for place in range(start, end[number]):
        if roles[items[place].role].expires >= now:
            items[kept] = items[place]
            kept += 1
    end[number] = kept
