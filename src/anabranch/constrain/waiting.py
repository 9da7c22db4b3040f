"""Solutions that later events can still change: they wait until the watermark has passed these.

A solution is an answer if no event happened that can be added to it as a variable with NOT. The events that can be
added as a variable with AT LEAST make it grow; until then, it has the first event of a set only. It is decided once,
when all events that could be added are known. Until then, its events are kept, and the state has their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.kernel.tables import Graph

#: The name of the table of waiting solutions in the state.
_TABLE = "waiting"


class Waiting:
    """The waiting solutions of each query, as rows of the numbers of their events."""

    def __init__(self) -> None:
        self._solutions: dict[int, I64] = {}

    def __len__(self) -> int:
        return sum(map(len, self._solutions.values()))

    def count(self, query: int) -> int:
        """How many solutions of a query wait."""
        return len(self._solutions.get(query, ()))

    def add(self, query: int, solutions: I64) -> None:
        """Add solutions of a query that has an awaited variable."""
        known = self._solutions.get(query)
        self._solutions[query] = solutions if known is None else np.concatenate([known, solutions])

    def decided(self, graph: Graph, run: Run, now: Any, ended: bool) -> Iterator[tuple[int, I64]]:
        """Remove and return the solutions that no event at `now` or later can change, by query."""
        for query, solutions in self._solutions.items():
            is_decided = np.ones(len(solutions), np.bool_)
            first, end = graph.first[query : query + 2]
            owners = np.repeat(np.arange(first, end), graph.variables["count"][first:end])
            for variable in () if ended else first + np.flatnonzero(graph.awaited[first:end]):
                is_decided &= run.last_companions(int(variable), owners, solutions) < now
            self._solutions[query] = solutions[~is_decided]
            if is_decided.any():
                yield query, solutions[is_decided]

    def has_event(self, n_events: int) -> Bools:
        """Which events are in a waiting solution."""
        chosen = np.zeros(n_events, np.bool_)
        for solutions in self._solutions.values():
            chosen[solutions] = True
        return chosen

    def renumber(self, is_kept: Bools) -> None:
        """Set the numbers of the events to those among the kept events."""
        number = np.cumsum(is_kept) - 1
        self._solutions = {query: number[solutions] for query, solutions in self._solutions.items()}

    def rename(self, numbers: I64) -> None:
        """Set the number of each query to a new one; the solutions of a query with a negative number are dropped."""
        named = ((int(numbers[query]), solutions) for query, solutions in self._solutions.items())
        self._solutions = {query: solutions for query, solutions in named if query >= 0}

    def save(self) -> dict[str, pa.Table]:
        """The solutions as a table, for `load`; nothing if there are none."""
        if not len(self):
            return {}
        rows = [(query, row) for query, solutions in self._solutions.items() for row in solutions.tolist()]
        queries, events = zip(*rows, strict=True)
        columns = {"query": pa.array(queries, pa.int64()), "events": pa.array(events, pa.list_(pa.int64()))}
        return {_TABLE: pa.table(columns)}

    @staticmethod
    def load(tables: Mapping[str, pa.Table]) -> Waiting:
        """Load the solutions from the tables of `save`."""
        waiting = Waiting()
        if _TABLE in tables:
            table = tables[_TABLE]
            queries = table["query"].to_numpy()
            for query in np.unique(queries):
                rows = table["events"].filter(pa.array(queries == query)).to_pylist()
                waiting.add(int(query), np.array(rows, np.int64))
        return waiting
