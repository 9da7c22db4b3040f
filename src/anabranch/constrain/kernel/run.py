"""One run over events in order: the store is laid out, events arrive, and what may be needed later is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.arrays import I64, U64, Bools
from anabranch.compiled import compiled
from anabranch.constrain.kernel.arrivals import arrive
from anabranch.constrain.kernel.store import keep, new_store
from anabranch.constrain.kernel.tables import Events, Graph, Table

#: Solutions are handed over whenever they take so many numbers, so that memory does not grow with their number.
ENOUGH = 4_000_000


class Run:
    """Events of which the first `n_old` were kept by an earlier run, which left `expires` and `met` of their roles.

    Parameters
    ----------
    indexed : keep events in cells of space, not in a list a variable
    tight : let them expire tightly
    """

    def __init__(
        self, graph: Graph, given: Events, indexed: bool, tight: bool, n_old: int = 0,
        expires: Any = None, met: Any = None,
    ) -> None:  # fmt: skip
        self._graph, self._given, self._tight, self._n_old = graph, given, tight, n_old
        old = int(given.events["role"][n_old])
        if old:
            given.roles["expires"][:old], given.roles["met"][:old] = expires, met
        self._store = new_store(graph, given, indexed)
        _keep_all(self._store.items, self._store.end, given.events, given.roles, old)

    @property
    def expires(self) -> npt.NDArray[Any]:
        """Until when each role may be needed."""
        return self._given.roles["expires"]

    @property
    def met(self) -> U64:
        """Of each role, the variables of which an event has come that agrees with it, as bits."""
        return self._given.roles["met"]

    def solutions(self) -> Iterator[tuple[int, I64]]:
        """Let the events come; gives (query, events of its places) in parts, a row a solution."""
        graph, store, (events, columns, roles) = self._graph, self._store, self._given
        counts = np.add.reduceat(graph.variables["count"], graph.first[:-1])
        x = self._n_old
        while x < len(self._given):
            x, found = arrive(
                graph.variables, graph.pairs, graph.checks, events, columns, roles, graph.scale, graph.radius,
                store.items, store.begin, store.end, store.base, store.cells, self._tight, x, ENOUGH,
            )  # fmt: skip
            yield from _by_query(found, 1 + counts)

    def kept(self, now: Any) -> Bools:
        """Which roles may still be needed by events at `now` or later."""
        return self.expires >= now

    def peak(self) -> int:
        """The most events that were ever kept beyond their own instant."""
        owner, expires = self._given.roles["event"], self.expires
        lasting = expires > self._given.events["t"][owner]
        owner, ends = owner[lasting], expires[lasting]
        if not len(owner):
            return 0
        heads = np.flatnonzero(np.diff(owner, prepend=-1))
        begins, ends = self._given.events["t"][owner[heads]], np.maximum.reduceat(ends, heads)
        gone = np.searchsorted(np.sort(ends), begins, side="left")
        return int((np.arange(1, len(begins) + 1) - gone).max())


@compiled
def _keep_all(items: Table, end: I64, events: Table, roles: Table, count: int) -> None:
    """Add the first roles to the store."""
    for role in range(count):
        keep(items, end, events, roles, role)


def _by_query(found: I64, width: I64) -> Iterator[tuple[int, I64]]:
    """Solutions as they were written, apart by their queries."""
    starts = _starts(found, width)
    queries = found[starts]
    for query in np.unique(queries):
        own = starts[queries == query]
        yield int(query), found[own[:, None] + np.arange(1, width[query])]


@compiled
def _starts(found: I64, width: I64) -> I64:
    """Where each solution begins."""
    starts = np.empty(len(found), np.int64)
    count, place = 0, 0
    while place < len(found):
        starts[count] = place
        count += 1
        place += width[found[place]]
    return starts[:count].copy()
