"""One run over events in order: the store is laid out, events arrive, and what may be needed later is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from anabranch.constrain.kernel.arrivals import arrive
from anabranch.constrain.kernel.checks import I64, Events, Graph
from anabranch.constrain.kernel.grid import cells_of
from anabranch.constrain.kernel.store import Store, keep

#: Solutions are handed over whenever they take so many numbers, so that memory does not grow with their number.
ENOUGH = 4_000_000


class Run:
    """Events of which the first `n_old` were kept by an earlier run.

    Parameters
    ----------
    indexed : keep events in cells of space, not in a list a variable
    tight : let them expire tightly
    expires, met : of each role of the kept events, as the earlier run left them
    width : of the cells of the index; 0 where nothing bounds distances
    """

    def __init__(
        self, graph: Graph, events: Events, indexed: bool, tight: bool, width: float, n_old: int = 0,
        expires: Any = None, met: Any = None,
    ) -> None:  # fmt: skip
        # Arrow's memory is read-only, and the kernel would be compiled once more for every mixture of such arrays.
        events = Events(*(np.require(each, requirements=("C", "W")) for each in events))
        self._graph, self._events, self._n_old = graph, events, n_old
        self._indexed, self._tight = indexed, tight
        n_roles, old = len(events.event), int(events.role[n_old])
        lowest = -np.inf if events.t.dtype == np.float64 else np.iinfo(np.int64).min
        self.expires = np.full(n_roles, lowest, events.t.dtype)
        self.met = np.zeros(n_roles, np.uint64)
        if old:
            self.expires[:old], self.met[:old] = expires, met
        self._store = _new_store(graph, events, indexed, width)
        _keep_all(self._store, events, old)

    def solutions(self) -> Iterator[tuple[int, I64]]:
        """Let the events come; gives (question, events of its places) in parts, a row a solution."""
        width = np.array(
            [
                1 + int(self._graph.count[start:end].sum())
                for start, end in zip(self._graph.first[:-1], self._graph.first[1:], strict=True)
            ]
        )
        x = self._n_old
        while x < len(self._events.t):
            x, found = arrive(self._graph, self._events, self._store, self.expires, self.met, self._tight, x, ENOUGH)
            yield from _by_question(found, width)

    def kept(self, now: Any) -> npt.NDArray[np.bool_]:
        """Which roles may still be needed by events at `now` or later."""
        return self.expires >= now

    def peak(self) -> int:
        """The most that was ever kept beyond its own instant: events, or roles where every variable keeps its own."""
        t, expires = self._events.t[self._events.event], self.expires
        lasting = expires > t
        begins, ends = t[lasting], expires[lasting]
        if self._indexed and len(begins):
            owner = self._events.event[lasting]
            heads = np.flatnonzero(np.diff(owner, prepend=-1))
            begins, ends = begins[heads], np.maximum.reduceat(ends, heads)
        gone = np.searchsorted(np.sort(ends), begins, side="left")
        return int((np.arange(1, len(begins) + 1) - gone).max(initial=0))


def _new_store(graph: Graph, events: Events, indexed: bool, width: float) -> Store:
    """An empty store with room for every role."""
    n_roles = len(events.event)
    nothing = np.zeros(0, np.int64)
    if not indexed:
        sizes = np.bincount(events.variable, minlength=len(graph.count))
        return _store_of(sizes, nothing, nothing, nothing, width, -1, False)
    if width > 0.0:
        cell, near, near_first = cells_of(events.at, width)
    else:
        cell, near, near_first = np.zeros(len(events.t), np.int64), np.zeros(1, np.int64), np.array([0, 1])
    sizes = np.bincount(cell[events.event], minlength=len(near_first) - 1)
    if not (graph.reach > width).any():
        return _store_of(sizes, cell, near, near_first, width, -1, True)
    return _store_of(np.append(sizes, n_roles), cell, near, near_first, width, len(sizes), True)


def _store_of(sizes: I64, cell: I64, near: I64, near_first: I64, width: float, everywhere: int, indexed: bool) -> Store:
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    items = np.zeros(begin[-1], np.int64)
    return Store(items, begin[:-1], begin[:-1].copy(), cell, near, near_first, float(width), everywhere, indexed)


def _by_question(found: I64, width: I64) -> Iterator[tuple[int, I64]]:
    """Solutions as they were written, apart by their questions."""
    starts = _starts(found, width)
    questions = found[starts]
    for question in np.unique(questions):
        own = starts[questions == question]
        yield int(question), found[own[:, None] + np.arange(1, width[question])]


@njit(cache=True)
def _starts(found: I64, width: I64) -> I64:
    """Where each solution begins."""
    starts = np.empty(len(found), np.int64)
    count, place = 0, 0
    while place < len(found):
        starts[count] = place
        count += 1
        place += width[found[place]]
    return starts[:count].copy()


@njit(cache=True)
def _keep_all(store: Store, events: Events, count: int) -> None:
    """Add the first roles to the store."""
    for role in range(count):
        keep(store, events, role)
