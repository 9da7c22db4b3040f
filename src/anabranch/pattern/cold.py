"""The cold chains of a regular query: chains without new rows are moved from the operator to pages, and back.

A row of a page is one chain: its variables, and a list of its weights, each with the state of the automaton and the
value of the MARKOV key. States and values are written out, so pages do not depend on the numbers of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.columns.dictionary import flat
from anabranch.columns.hashing import hash_tuples
from anabranch.pattern.automaton import Automaton
from anabranch.pattern.intake import Intake
from anabranch.pattern.weights import Cells, CellWeights, SingleWeights
from anabranch.transport.pages import HASH, Pages

#: What the state of a regular query consists of.
State = tuple[int, int]


class ColdChains:
    """Moves the chains of one bucket between its operator and pages."""

    def __init__(
        self,
        pages: Pages,
        intake: Intake,
        weights: CellWeights,
        automaton: Automaton[State],
    ) -> None:
        self.pages = pages
        self._intake = intake
        self._weights = weights
        self._automaton = automaton

    def warm(self, packets: Sequence[tuple[int, bytes]]) -> None:
        """Make the chains hot that packets have rows of."""
        if not len(self.pages):
            return
        columns = self._intake.absent_chains(packets)
        hashes = np.unique(hash_tuples(columns, len(columns[0])))
        parts = self.pages.take(hashes)
        if parts:
            self._add(pa.concat_tables(parts))

    def cool(self, busy: Bools) -> Bools | None:
        """Move all chains but the busy ones to pages, if they are many; returns which chains are still hot."""
        hot = self._intake.needed(busy)
        if not self.pages.wants(int((~hot).sum())):
            return None
        idle = ~hot & ~self._weights.is_new()
        if idle.any():
            self.pages.put(self._rows(idle))
        return hot

    def _rows(self, chains: Bools) -> pa.Table:
        """Some chains as rows of pages."""
        cells = self._weights.cells(chains)
        keys = self._intake.chain_columns(np.flatnonzero(chains))
        offsets = pa.array(np.searchsorted(cells.chain, np.arange(cells.n_chains + 1)), pa.int32())
        states = np.array(self._automaton.states, np.int64)[cells.state]
        lists = {"waiting": states[:, 0], "repeating": states[:, 1], "weight": cells.weight}
        if isinstance(self._weights, SingleWeights):
            lists |= _named("value", self._intake.values_of(cells.value))
        columns = {name: pa.ListArray.from_arrays(offsets, pa.array(column)) for name, column in lists.items()}
        return pa.table({HASH: hash_tuples(keys, cells.n_chains)} | _named("key", keys) | columns)

    def _add(self, rows: pa.Table) -> None:
        """Add the chains of rows of pages to the operator."""
        self._intake.chains.encode(pa.table(_columns(rows, "key")))
        lists = {name: flat(rows[name]) for name in rows.column_names if pa.types.is_list(rows[name].type)}
        chain = np.repeat(np.arange(rows.num_rows), np.diff(lists["weight"].offsets.to_numpy()))
        waiting, repeating, weight = (lists[name].flatten().to_numpy() for name in ("waiting", "repeating", "weight"))
        states = list(zip(waiting.tolist(), repeating.tolist(), strict=True))
        self._automaton.extend((), states)
        value = np.zeros(len(chain), np.int32)
        if isinstance(self._weights, SingleWeights):
            values = {name: column.flatten() for name, column in lists.items() if name.startswith("value ")}
            value = self._intake.encode_values(pa.table(values))
        order = np.lexsort((value, chain))
        state = self._automaton.numbers_of(states)
        self._weights.grow(self._intake.n_chains, len(self._automaton.states))
        self._weights.set_last(Cells(rows.num_rows, chain[order], value[order], state[order], weight[order]))


def _named(name: str, columns: Iterable[pa.Array]) -> dict[str, pa.Array]:
    return {f"{name} {index}": column for index, column in enumerate(columns)}


def _columns(rows: pa.Table, name: str) -> dict[str, pa.ChunkedArray]:
    return {column: rows[column] for column in rows.column_names if column.startswith(f"{name} ")}
