"""One run over events in order of time: creates the store, processes the events, and returns what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.arrays import I64, U64, Bools
from anabranch.compiled import compiled
from anabranch.constrain.kernel.arrivals import arrive
from anabranch.constrain.kernel.companions import companions, deadlines
from anabranch.constrain.kernel.sets import agreements
from anabranch.constrain.kernel.store import keep, new_store
from anabranch.constrain.kernel.tables import Events, Graph, Table

#: Solutions are returned whenever they take this many numbers, so that memory does not grow with their number.
ENOUGH = 4_000_000


class Run:
    """A run over events.

    Parameters
    ----------
    indexed : whether events are kept in lists per variable and cell, not in one list per variable
    tight : whether roles expire tightly
    n_old : the number of events, at the beginning, that an earlier run has kept
    expires, met : of the roles of these events, from the earlier run

    Attributes
    ----------
    stopped : the query and the event at which the run has ended, because the event completes too many solutions
    """

    def __init__(
        self, graph: Graph, arrays: Events, indexed: bool, tight: bool, n_old: int = 0,
        expires: Any = None, met: Any = None,
    ) -> None:  # fmt: skip
        self._graph, self._arrays, self._tight, self._n_old = graph, arrays, tight, n_old
        self.stopped: tuple[int, int] | None = None
        old = int(arrays.events["role"][n_old])
        if old:
            arrays.roles["expires"][:old], arrays.roles["met"][:old] = expires, met
        self._store = new_store(graph, arrays, indexed)
        _keep_all(self._store.items, self._store.end, arrays.events, arrays.roles, old)

    @property
    def expires(self) -> npt.NDArray[Any]:
        """The last time at which each role may be needed."""
        return self._arrays.roles["expires"]

    @property
    def met(self) -> U64:
        """For each role, the variables of its query that have an event which agrees with it, as bits."""
        return self._arrays.roles["met"]

    def solutions(self, most: int) -> Iterator[tuple[int, I64]]:
        """Process the events; yields pairs of a query and an array of events with one row per solution.

        If an event completes more than `most` solutions of a query, both are `stopped`, and the run ends.
        """
        graph, store, (events, columns, roles) = self._graph, self._store, self._arrays
        counts = np.add.reduceat(graph.variables["count"], graph.first[:-1])
        x = self._n_old
        while x < len(self._arrays):
            x, written, query = arrive(
                graph.variables, graph.pairs, graph.checks, events, columns, roles, graph.scale, graph.radius,
                store.items, store.begin, store.end, store.base, store.cells, store.low, store.density, self._tight,
                x, ENOUGH, most,
            )  # fmt: skip
            if query >= 0:
                self.stopped = query, x
                return
            yield from _by_query(written, 1 + counts)

    def companions(self, variable: int, owners: I64, solutions: I64) -> I64:
        """(m, 2): the solution, and the event, for each event of a variable that agrees with a whole solution."""
        graph, store, (events, columns, roles) = self._graph, self._store, self._arrays
        by_list, starts = self._roles_by_list
        return companions(
            graph.variables, graph.pairs, graph.checks, events, columns, roles, graph.scale, graph.radius,
            store.base, store.cells, by_list, starts, variable, owners, solutions,
        )  # fmt: skip

    def agreements(self, variable: int, members: I64, starts: I64) -> Bools:
        """Whether every two events of a group agree as events of a variable: see `kernel/sets.py`."""
        graph, (events, columns, _) = self._graph, self._arrays
        number = int(graph.variables["pair"][variable] + variable - graph.variables["first"][variable])
        return agreements(
            graph.pairs, graph.checks, events, columns, number, graph.scale, graph.radius, members, starts
        )

    def last_companions(self, variable: int, owners: I64, solutions: I64) -> npt.NDArray[Any]:
        """The last time at which an event of a variable can agree with each solution."""
        graph, events = self._graph, self._arrays.events
        last = np.empty(len(solutions), events["t"].dtype)
        deadlines(graph.variables, graph.pairs, events, variable, owners, solutions, last)
        return last

    @cached_property
    def _roles_by_list(self) -> tuple[I64, I64]:
        """The roles in order of their lists, then of time, and the index of the first role of each list."""
        lists = self._arrays.roles["list"]
        sizes = np.bincount(lists, minlength=int(self._store.base[-1]))
        return np.argsort(lists, kind="stable"), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def kept(self, now: Any) -> Bools:
        """Which roles may still be needed by events at `now` or later."""
        return self.expires >= now

    def peak(self, counted: Bools) -> int:
        """The largest number of events that were kept at the same time, beyond their own instant.

        Of the copies of an event in several buckets, one is `counted`.
        """
        event, expires = self._arrays.roles["event"], self.expires
        is_kept = (expires > self._arrays.events["t"][event]) & counted[event]
        event, ends = event[is_kept], expires[is_kept]
        if not len(event):
            return 0
        first_roles = np.flatnonzero(np.diff(event, prepend=-1))
        begins, ends = self._arrays.events["t"][event[first_roles]], np.maximum.reduceat(ends, first_roles)
        gone = np.searchsorted(np.sort(ends), begins, side="left")
        return int((np.arange(1, len(begins) + 1) - gone).max())


@compiled
def _keep_all(items: Table, end: I64, events: Table, roles: Table, count: int) -> None:
    """Add the first roles to the store."""
    for role in range(count):
        keep(items, end, events, roles, role)


def _by_query(written: I64, width: I64) -> Iterator[tuple[int, I64]]:
    """Group written solutions by their query; `width` is the length of a written solution of each query."""
    counts, grouped = _grouped(written, width)
    ends = np.cumsum(counts * (width - 1))
    for query in np.flatnonzero(counts).tolist():
        size = int(counts[query] * (width[query] - 1))
        yield query, grouped[ends[query] - size : ends[query]].reshape(counts[query], -1)


@compiled
def _grouped(written: I64, width: I64) -> tuple[I64, I64]:
    """The number of solutions of each query, and the events of all solutions, query by query."""
    counts, n_solutions, index = np.zeros(len(width), np.int64), 0, 0
    while index < len(written):
        counts[written[index]] += 1
        n_solutions += 1
        index += width[written[index]]
    ends = np.zeros(len(width), np.int64)
    for query in range(1, len(width)):
        ends[query] = ends[query - 1] + counts[query - 1] * (width[query - 1] - 1)
    grouped, index = np.empty(len(written) - n_solutions, np.int64), 0
    while index < len(written):
        query = written[index]
        for event in range(index + 1, index + width[query]):
            grouped[ends[query]] = written[event]
            ends[query] += 1
        index += width[query]
    return counts, grouped
