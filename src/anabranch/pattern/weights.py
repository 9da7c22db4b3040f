"""The state of PATTERN chains between instants: the weight of every (hidden values, automaton state) of every chain.

There are three shapes, one per kernel. Each grows when chains and automaton states are added, is updated by a batch of
rows, and is saved as tables.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.automaton import Tables
from anabranch.pattern.intake import Received

#: The most weights of a chain that several Markov keys feed: 8 MiB of doubles.
JOINT_LIMIT = 1 << 20

#: The chain, the instant and the probability of each answer.
Answers = tuple[I32, I64, F64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Cleaned rows as the kernels take them.

    `rows` has the indexes of the rows to use, sorted by chain, instant and key. Chain c is
    rows[starts[c]:starts[c + 1]].
    """

    rows: I64
    starts: I64
    t: I64
    key: I32
    model: I32
    prev: I32
    value: I32
    p: F64
    letter: I32
    n_values: int
    #: With WITHIN, the tick of the automaton before the instant of each row.
    clock: I32 = field(default_factory=lambda: np.zeros(0, np.int32))

    @classmethod
    def of(cls, received: Received, letter: I32, n_values: int) -> Batch:
        """The rows that a step received, with the letters of their events."""
        rows = received.rows
        return cls(
            received.used, received.starts, rows.t, received.key, received.model, rows.prev, rows.value, rows.p,
            letter, n_values,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cells:
    """The weights of chains that are not 0, sorted by chain and value; chains without MARKOV keys have the value 0."""

    n_chains: int
    chain: I64
    value: I32
    state: I64
    weight: F64


class Weights(Protocol):
    """The weights of all chains of a bucket."""

    #: Whether the letters of several events at one instant are united.
    unites: bool

    def grow(self, n_chains: int, n_states: int) -> None:
        """Add new chains, which start in state 0 with the value *nothing*, and new automaton states."""

    def append(self, origins: I64) -> None:
        """Add chains that have the weights of the chains `origins`; a new start for -1."""

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Update the weights by a batch, and return the answers with a probability above 0."""

    def end_results(self, chains: Bools) -> None:
        """Move all weight of some chains to state 0: their partial results are over."""

    def is_new(self) -> Bools:
        """Which chains have the weights of a new chain."""

    def keep(self, chains: Bools) -> None:
        """Remove all chains but these."""

    def keep_states(self, states: Bools) -> None:
        """Remove all states but these; the others have no weight."""

    def used_states(self) -> Bools:
        """Which states have a weight in some chain."""

    def used_keys(self) -> I64:
        """The keys that the weights refer to."""

    def used_values(self) -> I32:
        """The value codes that the weights refer to."""

    def renumber(self, keys: I64, values: I32) -> None:
        """Replace the numbers of keys and values by new ones."""

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""


def weights_for(single: bool, markov: bool) -> Weights:
    """The shape for a query: no Markov keys; one Markov key per chain (`single`); or several keys, some Markov."""
    if not markov:
        return IndependentWeights()
    return SingleWeights() if single else JointWeights()


@dataclass(slots=True)
class _StateColumns:
    """Weights with one column per state, and without numbers of keys: a chain has none, or one."""

    weights: F64 = field(default_factory=lambda: np.zeros((0, 1)))

    def keep_states(self, states: Bools) -> None:
        """Remove all other states."""
        self.weights = np.ascontiguousarray(self.weights[:, states])

    def used_states(self) -> Bools:
        """Which states have a weight."""
        used: Bools = np.any(self.weights, axis=0)
        return used

    def used_keys(self) -> I64:
        """No keys."""
        return np.zeros(0, np.int64)


@dataclass(slots=True)
class IndependentWeights(_StateColumns):
    """One weight per (chain, state)."""

    unites = True

    def grow(self, n_chains: int, n_states: int) -> None:
        """Add chains and states."""
        before = self.weights.shape[0]
        self.weights = np.pad(self.weights, ((0, n_chains - before), (0, n_states - self.weights.shape[1])))
        self.weights[before:, 0] = 1.0

    def append(self, origins: I64) -> None:
        """Add copies of chains."""
        before, n_states = self.weights.shape
        self.grow(before + len(origins), n_states)
        copied = np.flatnonzero(origins >= 0)
        self.weights[before + copied] = self.weights[origins[copied]]

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Update the weights by a batch."""
        return kernel.step_independent(
            batch.rows, batch.starts, batch.t, batch.key, batch.model, batch.p, batch.letter,
            automaton.delta, automaton.accept, automaton.union, self.weights, batch.clock, automaton.ticks,
        )  # fmt: skip

    def end_results(self, chains: Bools) -> None:
        """Move the weight of some chains to state 0."""
        self.weights[chains] = 0.0
        self.weights[chains, 0] = 1.0

    def is_new(self) -> Bools:
        """Which chains are in state 0 for sure."""
        elsewhere: Bools = np.any(self.weights[:, 1:], axis=1)
        return ~elsewhere

    def keep(self, chains: Bools) -> None:
        """Remove all other chains."""
        self.weights = self.weights[chains]

    def used_values(self) -> I32:
        """No values."""
        return np.zeros(0, np.int32)

    def renumber(self, keys: I64, values: I32) -> None:
        """Nothing has numbers of keys and values."""

    def cells(self, chains: Bools) -> Cells:
        """The weights of some chains, numbered among these."""
        chosen = self.weights[chains]
        chain, state = np.nonzero(chosen)
        return Cells(len(chosen), chain, np.zeros(len(chain), np.int32), state, chosen[chain, state])

    def set_last(self, cells: Cells) -> None:
        """Set the weights of the last chains, numbered among these; they were added by `grow`."""
        added = self.weights[len(self.weights) - cells.n_chains :]
        added[:] = 0.0
        added[cells.chain, cells.state] = cells.weight

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""
        return {"weights": _matrix_table(self.weights)}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self.weights = _table_matrix(tables["weights"])


@dataclass(slots=True)
class SingleWeights(_StateColumns):
    """One weight per (chain, value of its Markov key, state); a chain has only the values with a positive weight."""

    offsets: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    codes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    unites = False

    def grow(self, n_chains: int, n_states: int) -> None:
        """Add chains and states."""
        n_new = n_chains - (len(self.offsets) - 1)
        before = len(self.codes)
        self.offsets = np.concatenate([self.offsets, before + 1 + np.arange(n_new, dtype=np.int64)])
        self.codes = np.concatenate([self.codes, np.zeros(n_new, np.int32)])
        self.weights = np.pad(self.weights, ((0, n_new), (0, n_states - self.weights.shape[1])))
        self.weights[before:, 0] = 1.0

    def append(self, origins: I64) -> None:
        """Add copies of chains."""
        start = len(self.codes)
        self.codes = np.append(self.codes, np.int32(0))
        self.weights = np.pad(self.weights, ((0, 1), (0, 0)))
        self.weights[start, 0] = 1.0
        low = np.where(origins < 0, start, self.offsets[origins])
        sizes = np.where(origins < 0, start + 1, self.offsets[origins + 1]) - low
        ends = np.cumsum(sizes)
        copied = np.arange(sizes.sum()) + np.repeat(low - (ends - sizes), sizes)
        self.offsets = np.concatenate([self.offsets, start + ends])
        self.codes = np.concatenate([self.codes[:start], self.codes[copied]])
        self.weights = np.concatenate([self.weights[:start], self.weights[copied]])

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Update the weights by a batch."""
        return self._step(batch, automaton, np.zeros(0))

    def step_by_row(self, batch: Batch, automaton: Tables) -> F64:
        """Update the weights by a batch, and return the part of an answer that comes from each row."""
        row_p = np.zeros(len(batch.t))
        self._step(batch, automaton, row_p)
        return row_p

    def _step(self, batch: Batch, automaton: Tables, row_p: F64) -> Answers:
        self.offsets, self.codes, self.weights, chains, times, probabilities = kernel.step_single(
            batch.rows, batch.starts, batch.t, batch.model, batch.prev, batch.value, batch.p, batch.letter,
            automaton.delta, automaton.accept, self.offsets, self.codes, self.weights, batch.n_values, row_p,
            batch.clock, automaton.ticks,
        )  # fmt: skip
        return chains, times, probabilities

    def end_results(self, chains: Bools) -> None:
        """Move the weights of some chains to state 0, by value."""
        cells = np.repeat(chains, np.diff(self.offsets))
        totals = self.weights[cells].sum(axis=1)
        self.weights[cells] = 0.0
        self.weights[cells, 0] = totals

    def is_new(self) -> Bools:
        """Which chains have the value *nothing* and are in state 0, for sure."""
        first = self.offsets[:-1]
        alone = np.diff(self.offsets) == 1
        return alone & (self.codes[first] == 0) & ~self.weights[first, 1:].any(axis=1)

    def keep(self, chains: Bools) -> None:
        """Remove all other chains."""
        sizes = np.diff(self.offsets)
        cells = np.repeat(chains, sizes)
        self.offsets = np.concatenate([[0], np.cumsum(sizes[chains])])
        self.codes, self.weights = self.codes[cells], self.weights[cells]

    def used_values(self) -> I32:
        """The values with a weight."""
        return self.codes

    def renumber(self, keys: I64, values: I32) -> None:
        """Replace the numbers of values."""
        self.codes = values[self.codes]

    def cells(self, chains: Bools) -> Cells:
        """The weights of some chains, numbered among these."""
        sizes = np.diff(self.offsets)
        chosen = np.repeat(chains, sizes)
        row, state = np.nonzero(self.weights[chosen])
        chain = np.repeat(np.arange(int(chains.sum())), sizes[chains])[row]
        return Cells(int(chains.sum()), chain, self.codes[chosen][row], state, self.weights[chosen][row, state])

    def set_last(self, cells: Cells) -> None:
        """Set the weights of the last chains, numbered among these; they were added by `grow`."""
        first = len(self.offsets) - 1 - cells.n_chains
        known = self.offsets[first]
        begins = np.append(True, (np.diff(cells.chain) != 0) | (np.diff(cells.value) != 0))[: len(cells.chain)]
        row = np.cumsum(begins) - 1
        weights = np.zeros((int(begins.sum()), self.weights.shape[1]))
        weights[row, cells.state] = cells.weight
        sizes = np.bincount(cells.chain[begins], minlength=cells.n_chains)
        self.offsets = np.concatenate([self.offsets[: first + 1], known + np.cumsum(sizes)])
        self.codes = np.concatenate([self.codes[:known], cells.value[begins]])
        self.weights = np.concatenate([self.weights[:known], weights])

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""
        return {
            "offsets": pa.table({"offset": self.offsets}),
            "codes": pa.table({"code": self.codes}),
            "weights": _matrix_table(self.weights),
        }

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self.offsets = tables["offsets"]["offset"].to_numpy().copy()
        self.codes = tables["codes"]["code"].to_numpy().copy()
        self.weights = _table_matrix(tables["weights"])


@dataclass(slots=True)
class Product:
    """One chain that several keys feed: one axis per Markov key, one weight per combination of values and state."""

    keys: list[int]
    sizes: I64
    codes: I32
    weights: F64


@dataclass(slots=True)
class JointWeights:
    """One `Product` per chain."""

    chains: list[Product] = field(default_factory=list)
    n_states: int = 1
    unites = True

    def grow(self, n_chains: int, n_states: int) -> None:
        """Add chains and states."""
        if n_states > self.n_states:
            for chain in self.chains:
                cells = chain.weights.reshape(-1, self.n_states)
                chain.weights = np.pad(cells, ((0, 0), (0, n_states - self.n_states))).reshape(-1)
            self.n_states = n_states
        for _ in range(n_chains - len(self.chains)):
            start = np.zeros(self.n_states)
            start[0] = 1.0
            self.chains.append(Product([], np.zeros(0, np.int64), np.zeros(0, np.int32), start))

    def append(self, origins: I64) -> None:
        """Add copies of chains."""
        before = len(self.chains)
        self.grow(before + len(origins), self.n_states)
        for number, origin in enumerate(origins.tolist(), start=before):
            if origin >= 0:
                self.chains[number] = deepcopy(self.chains[origin])

    def keys(self) -> tuple[I64, I64]:
        """The pairs of a chain and a Markov key that feeds it."""
        pairs = [(number, key) for number, chain in enumerate(self.chains) for key in chain.keys]
        chains, keys = np.array(pairs, np.int64).reshape(-1, 2).T
        return chains, keys

    def add_axis(self, chain: int, key: int, codes: I32, probabilities: F64) -> None:
        """Add a Markov key that had no effect on a chain so far, with the probabilities of its values."""
        product = self.chains[chain]
        product.keys.append(key)
        product.sizes = np.append(product.sizes, len(codes))
        product.codes = np.concatenate([product.codes, codes])
        cells = product.weights.reshape(-1, 1, self.n_states)
        product.weights = (cells * probabilities.reshape(1, -1, 1)).reshape(-1)

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Update the weights by a batch, chain by chain."""
        axis_of = np.full(int(batch.key.max(initial=0)) + 1, -1, np.int64)
        answers: list[Answers] = []
        for number in np.flatnonzero(np.diff(batch.starts)):
            chain = self.chains[number]
            rows = batch.rows[batch.starts[number] : batch.starts[number + 1]]
            self._add_axes(chain, batch, rows)
            known = [key for key in chain.keys if key < len(axis_of)]
            axis_of[known] = [chain.keys.index(key) for key in known]
            chain.sizes, chain.codes, chain.weights, times, probabilities, needed = kernel.step_joint(
                rows, batch.t, batch.key, batch.model, batch.prev, batch.value, batch.p, batch.letter,
                automaton.delta, automaton.accept, automaton.union,
                axis_of, chain.sizes, chain.codes, chain.weights, batch.n_values, JOINT_LIMIT,
                batch.clock, automaton.ticks,
            )  # fmt: skip
            if needed:
                raise TooLarge(
                    f"{len(chain.keys)} Markov keys feed one chain, and their joint state would need {needed:,.0f} "
                    f"weights (limit {JOINT_LIMIT:,}); name the keys, share their variable between the goals, "
                    "GROUP BY it, or write METHOD SAMPLING"
                )
            axis_of[known] = -1
            answers.append((np.full(len(times), number, np.int32), times, probabilities))
        if not answers:
            return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0)
        chains, times, probabilities = (np.concatenate(columns) for columns in zip(*answers, strict=True))
        return chains, times, probabilities

    @staticmethod
    def _add_axes(chain: Product, batch: Batch, rows: I64) -> None:
        """Add an axis for each new Markov key of the chain; its value so far is *nothing*."""
        markov_rows = rows[batch.model[rows] >= kernel.MARKOV]
        for key in np.unique(batch.key[markov_rows]).tolist():
            if key not in chain.keys:
                chain.keys.append(key)
                chain.sizes = np.append(chain.sizes, 1)
                chain.codes = np.append(chain.codes, np.int32(0))

    def end_results(self, chains: Bools) -> None:
        """Move the weights of some chains to state 0, by values."""
        for number in np.flatnonzero(chains):
            cells = self.chains[number].weights.reshape(-1, self.n_states)
            totals = cells.sum(axis=1)
            cells[:] = 0.0
            cells[:, 0] = totals

    def is_new(self) -> Bools:
        """Which chains have no key with a value, and are in state 0 for sure."""
        return np.array(
            [not chain.codes.any() and len(chain.weights) == self.n_states and not chain.weights[1:].any()
             for chain in self.chains], np.bool_,
        )  # fmt: skip

    def keep(self, chains: Bools) -> None:
        """Remove all other chains."""
        self.chains = [self.chains[number] for number in np.flatnonzero(chains)]

    def keep_states(self, states: Bools) -> None:
        """Remove all other states."""
        for chain in self.chains:
            chain.weights = chain.weights.reshape(-1, self.n_states)[:, states].reshape(-1)
        self.n_states = int(states.sum())

    def used_states(self) -> Bools:
        """Which states have a weight."""
        used = np.zeros(self.n_states, np.bool_)
        for chain in self.chains:
            used |= chain.weights.reshape(-1, self.n_states).any(axis=0)
        return used

    def used_keys(self) -> I64:
        """The keys of the axes."""
        return np.array([key for chain in self.chains for key in chain.keys], np.int64)

    def used_values(self) -> I32:
        """The values of the axes."""
        return np.concatenate([np.zeros(0, np.int32), *(chain.codes for chain in self.chains)])

    def renumber(self, keys: I64, values: I32) -> None:
        """Replace the numbers of keys and values."""
        for chain in self.chains:
            chain.keys = keys[chain.keys].tolist()
            chain.codes = values[chain.codes]

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""
        columns = {
            "keys": pa.array([chain.keys for chain in self.chains], pa.list_(pa.int32())),
            "sizes": pa.array([chain.sizes for chain in self.chains], pa.list_(pa.int64())),
            "codes": pa.array([chain.codes for chain in self.chains], pa.list_(pa.int32())),
            "weights": pa.array([chain.weights for chain in self.chains], pa.list_(pa.float64())),
        }
        return {"products": pa.table(columns), "width": pa.table({"n_states": [self.n_states]})}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self.n_states = tables["width"]["n_states"][0].as_py()
        self.chains = [
            Product(
                row["keys"],
                np.array(row["sizes"], np.int64),
                np.array(row["codes"], np.int32),
                np.array(row["weights"], np.float64),
            )
            for row in tables["products"].to_pylist()
        ]


#: Weights of chains that are independent of each other, cell by cell.
CellWeights = IndependentWeights | SingleWeights


def _matrix_table(matrix: F64) -> pa.Table:
    """One column per automaton state, so that columns of zeros compress well."""
    return pa.table({str(state): np.ascontiguousarray(matrix[:, state]) for state in range(matrix.shape[1])})


def _table_matrix(table: pa.Table) -> F64:
    return np.stack([column.to_numpy() for column in table.columns], axis=1).copy()
