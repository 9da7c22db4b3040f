"""Keeps the events that may still be needed, and finds those that agree with a new event.

Items are kept in lists in order of time: one list per variable, or, with an index, one per variable and cell of a grid
in space. Each query has its own grid. Its cells are at least as wide as the greatest distance between two events of a
solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.constrain.kernel.checks import agree
from anabranch.constrain.kernel.tables import Events, Graph, Table, item_type

#: Expired items are removed from a list if a search visits more than this many, and they are most of the visited items.
_MANY = 16

#: The most cells of a grid along an axis.
_MOST_CELLS = 16

#: The cost of visiting a list, in items.
_LIST_COST = 2.0

#: The share by which distances are widened, because locations are rounded.
_MARGIN = 1e-9


class Store(NamedTuple):
    """Items in lists.

    Attributes
    ----------
    items : of all lists
    begin, end : the start and the end of each list; there is space for all roles of the list
    base : the first list of each variable
    cells : (queries, 3) the number of cells of each grid along each axis
    low : (3,) where the grids begin
    density : (queries, 3) the number of cells per unit of length along each axis
    """

    items: Table
    begin: I64
    end: I64
    base: I64
    cells: I64
    low: F64
    density: F64


def new_store(graph: Graph, arrays: Events, indexed: bool) -> Store:
    """An empty store with space for every role; assigns each role to its list."""
    events, roles = arrays.events[:-1], arrays.roles
    locations = np.stack([events["x"], events["y"], events["z"]], axis=1)
    known = locations[~np.isnan(locations).any(axis=1)]
    low = known.min(axis=0) if len(known) else np.zeros(3)
    extent = (known.max(axis=0) - low if len(known) else np.zeros(3)) * (1 + 1e-9)
    cells = _cells(graph, events["t"], roles, extent) if indexed else np.ones((len(graph.reach), 3), np.int64)
    density = cells / np.where(extent > 0, extent, 1.0)
    n_lists = np.prod(cells, axis=1)[graph.variables["query"]]
    base = np.concatenate([[0], np.cumsum(n_lists)]).astype(np.int64)
    sizes = np.zeros(base[-1], np.int64)
    _assign(graph.variables, arrays.events, roles, base, low, cells, density, sizes)
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    items = np.zeros(begin[-1], item_type(events["t"].dtype))
    return Store(items, begin[:-1].copy(), begin[:-1].copy(), base, cells, low, density)


def _cells(graph: Graph, t: npt.NDArray[Any], roles: Table, extent: F64) -> I64:
    """The number of cells along each axis, where none is narrower than the reach.

    A search visits up to three cells along an axis that is divided. The longest axis is divided first, and an axis only
    if the items that are not visited cost more than the lists that are visited instead.
    """
    n_roles = np.bincount(graph.variables["query"][roles["variable"]], minlength=len(graph.reach))
    duration = float(t[-1]) - float(t[0]) if len(t) else 0.0
    longest = np.maximum.reduceat(graph.variables["longest"].astype(np.float64), graph.first[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        # A search ends at the first role that is too old.
        share = np.nan_to_num(np.clip(longest / duration, 0.0, 1.0), nan=1.0)
        fitting = np.nan_to_num(np.floor(extent / graph.reach[:, None]), nan=1.0)
    fitting = np.clip(fitting, 1, _MOST_CELLS).astype(np.int64)
    n_items, n_lists = n_roles / np.diff(graph.first) * share, np.ones(len(graph.reach))
    cells = np.ones_like(fitting)
    for axis in np.argsort(-extent, kind="stable"):
        visited = np.minimum(3 / fitting[:, axis], 1.0)
        divided = n_items * (1 - visited) > 2 * n_lists * _LIST_COST
        cells[divided, axis] = fitting[divided, axis]
        n_items[divided] *= visited[divided]
        n_lists[divided] *= 3
    return cells


@compiled_inline
def _cell(coordinate: float, low: float, density: float, cells: int) -> int:
    """The number of the cell along an axis; the first one if the coordinate is unknown.

    `density` is the number of cells per unit of length.
    """
    if np.isnan(coordinate):
        return 0
    number = int((coordinate - low) * density)
    return min(max(number, 0), cells - 1)


@compiled
def _assign(
    variables: Table, events: Table, roles: Table, base: I64, low: F64, cells: I64, density: F64, sizes: I64
) -> None:
    """Assign every role to its list, and count the roles of each list."""
    for role in range(len(roles)):
        v, event = roles[role].variable, events[roles[role].event]
        q = variables[v].query
        x = roles[role].x = _cell(event.x, low[0], density[q, 0], cells[q, 0])
        y = roles[role].y = _cell(event.y, low[1], density[q, 1], cells[q, 1])
        z = roles[role].z = _cell(event.z, low[2], density[q, 2], cells[q, 2])
        roles[role].list = base[v] + (x * cells[q, 1] + y) * cells[q, 2] + z
        sizes[roles[role].list] += 1


@compiled_inline
def keep(items: Table, end: I64, events: Table, roles: Table, role: int) -> None:
    """Add a role to its list."""
    event, number = events[roles[role].event], roles[role].list
    item = items[end[number]]
    item.t, item.x, item.y, item.z, item.role = event.t, event.x, event.y, event.z, role
    end[number] += 1


@compiled_inline
def _near_cells(coordinate: float, distance: float, low: float, density: float, cells: int) -> tuple[int, int]:
    """The first cell along an axis within a distance of a coordinate, and the one after the last."""
    if cells == 1:
        return 0, 1
    return _cell(coordinate - distance, low, density, cells), _cell(coordinate + distance, low, density, cells) + 1


@compiled_inline
def candidates(
    items: Table, begin: I64, end: I64, base: I64, cells: I64, low: F64, density: F64, variables: Table, pairs: Table,
    checks: Table, events: Table, columns: F64, roles: Table, role: int, other: int, scale: float, radius: float,
    pool: I64, top: int,
) -> int:  # fmt: skip
    """Append the kept roles of variable `other` that agree with a new role to the pool; returns its new top.

    The pool must have space for all kept roles. The lists of all cells that are near enough are searched.
    """
    v, event = roles[role].variable, roles[role].event
    q, pair = variables[v].query, variables[v].pair + other - variables[v].first
    distance = np.sqrt(pairs[pair].near) * (1.0 + _MARGIN)
    first_x, end_x = _near_cells(events[event].x, distance, low[0], density[q, 0], cells[q, 0])
    first_y, end_y = _near_cells(events[event].y, distance, low[1], density[q, 1], cells[q, 1])
    first_z, end_z = _near_cells(events[event].z, distance, low[2], density[q, 2], cells[q, 2])
    for i in range(first_x, end_x):
        for j in range(first_y, end_y):
            for k in range(first_z, end_z):
                number = base[other] + (i * cells[q, 1] + j) * cells[q, 2] + k
                if end[number] > begin[number]:
                    top = _from_list(
                        items, begin, end, number, pairs, checks, events, columns, roles, event, pair, scale, radius,
                        pool, top,
                    )  # fmt: skip
    return top


@compiled_inline
def _from_list(
    items: Table, begin: I64, end: I64, number: int, pairs: Table, checks: Table, events: Table, columns: F64,
    roles: Table, x: int, pair: int, scale: float, radius: float, pool: I64, top: int,
) -> int:  # fmt: skip
    """Append the roles of one list that agree with event x, from the newest to the first that is not too early."""
    now, here_x, here_y, here_z = events[x].t, events[x].x, events[x].y, events[x].z
    earlier, later = now + pairs[pair].earliest - events[x].slack, now + pairs[pair].latest + events[x].slack
    near, sure = pairs[pair].near, pairs[pair].sure
    # A store to the pool could change `begin` and `end`, for all that the compiler knows.
    start, stop, expired = begin[number], end[number], 0
    index = stop
    while index > start and items[index - 1].t >= earlier:
        index -= 1
        item = items[index]
        a, b, c = item.x - here_x, item.y - here_y, item.z - here_z
        square = a * a + b * b + c * c
        if square > near or item.t > later:
            continue
        role = item.role
        if roles[role].expires < now:
            expired += 1
            continue
        if square <= sure or agree(pairs, checks, events, columns, pair, x, roles[role].event, scale, radius):
            pool[top] = role
            top += 1
    if expired > _MANY and 2 * expired > stop - index:
        _clear(items, index, end, number, roles, now)
    return top


@compiled_inline
def _clear(items: Table, start: int, end: I64, number: int, roles: Table, now: float) -> None:
    """Remove the expired items of a list from index `start` on."""
    kept = start
    for index in range(start, end[number]):
        if roles[items[index].role].expires >= now:
            items[kept] = items[index]
            kept += 1
    end[number] = kept
