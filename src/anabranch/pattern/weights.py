"""What is carried forward from instant to instant: the weight of every (hidden values, automaton state) of every chain.

Three shapes, one for each kernel. Each grows as chains and automaton states appear, steps over a batch of rows,
and saves itself as tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64
from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.automaton import Tables
from anabranch.pattern.intake import Received

#: The most weights a chain may hold when several Markov keys feed it: 8 MiB of doubles.
JOINT_LIMIT = 1 << 20

Answers = tuple[I32, I64, F64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows in order and clean, as the kernels read them: `rows` numbers the rows to use, chain after chain."""

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

    @classmethod
    def of(cls, received: Received, letter: I32, n_values: int) -> Batch:
        """The rows that a step received, with the letters that their events emit."""
        rows = received.rows
        return cls(
            received.used, received.starts, rows.t, received.key, received.model, rows.prev, rows.value, rows.p,
            letter, n_values,
        )  # fmt: skip


class Weights(Protocol):
    """The weights of all chains of a bucket."""

    #: Whether letters of several events at one instant are to be united.
    unites: bool

    def grow(self, n_chains: int, n_states: int) -> None:
        """Make room for new chains, which begin at nothing in state 0, and for new automaton states."""

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Move on over a batch; the chain, instant and probability of every answer above 0."""

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Take over what `save` gave."""


def weights_for(single: bool, markov: bool) -> Weights:
    """The shape that fits a query: one Markov key a chain, several keys of which some remember, or none that does."""
    if not markov:
        return IndependentWeights()
    return SingleWeights() if single else JointWeights()


@dataclass(slots=True)
class IndependentWeights:
    """A weight per (chain, state)."""

    weights: F64 = field(default_factory=lambda: np.zeros((0, 1)))
    unites = True

    def grow(self, n_chains: int, n_states: int) -> None:
        """Make room."""
        before = self.weights.shape[0]
        self.weights = np.pad(self.weights, ((0, n_chains - before), (0, n_states - self.weights.shape[1])))
        self.weights[before:, 0] = 1.0

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Move on over a batch."""
        return kernel.step_independent(
            batch.rows, batch.starts, batch.t, batch.key, batch.model, batch.p, batch.letter,
            automaton.delta, automaton.accept, automaton.union, self.weights,
        )  # fmt: skip

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""
        return {"weights": _matrix_table(self.weights)}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Take over what `save` gave."""
        self.weights = _table_matrix(tables["weights"])


@dataclass(slots=True)
class SingleWeights:
    """A weight per (chain, value of its one Markov key, state); a chain holds the values that have any weight."""

    offsets: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    codes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    weights: F64 = field(default_factory=lambda: np.zeros((0, 1)))
    unites = False

    def grow(self, n_chains: int, n_states: int) -> None:
        """Make room."""
        fresh = n_chains - (len(self.offsets) - 1)
        before = len(self.codes)
        self.offsets = np.concatenate([self.offsets, before + 1 + np.arange(fresh, dtype=np.int64)])
        self.codes = np.concatenate([self.codes, np.zeros(fresh, np.int32)])
        self.weights = np.pad(self.weights, ((0, fresh), (0, n_states - self.weights.shape[1])))
        self.weights[before:, 0] = 1.0

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Move on over a batch."""
        self.offsets, self.codes, self.weights, chains, times, probabilities = kernel.step_single(
            batch.rows, batch.starts, batch.t, batch.prev, batch.value, batch.p, batch.letter,
            automaton.delta, automaton.accept, self.offsets, self.codes, self.weights, batch.n_values,
        )  # fmt: skip
        return chains, times, probabilities

    def save(self) -> dict[str, pa.Table]:
        """The weights as tables."""
        return {
            "offsets": pa.table({"offset": self.offsets}),
            "codes": pa.table({"code": self.codes}),
            "weights": _matrix_table(self.weights),
        }

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Take over what `save` gave."""
        self.offsets = tables["offsets"]["offset"].to_numpy().copy()
        self.codes = tables["codes"]["code"].to_numpy().copy()
        self.weights = _table_matrix(tables["weights"])


@dataclass(slots=True)
class Product:
    """One chain that several keys feed: an axis per Markov key, and a weight per combination of values and state."""

    keys: list[int]
    sizes: I64
    codes: I32
    weights: F64


@dataclass(slots=True)
class JointWeights:
    """A product of the values of all Markov keys, for each chain."""

    chains: list[Product] = field(default_factory=list)
    n_states: int = 1
    unites = True

    def grow(self, n_chains: int, n_states: int) -> None:
        """Make room."""
        if n_states > self.n_states:
            for chain in self.chains:
                cells = chain.weights.reshape(-1, self.n_states)
                chain.weights = np.pad(cells, ((0, 0), (0, n_states - self.n_states))).reshape(-1)
            self.n_states = n_states
        for _ in range(n_chains - len(self.chains)):
            start = np.zeros(self.n_states)
            start[0] = 1.0
            self.chains.append(Product([], np.zeros(0, np.int64), np.zeros(0, np.int32), start))

    def step(self, batch: Batch, automaton: Tables) -> Answers:
        """Move on over a batch, chain by chain."""
        axis_of = np.full(int(batch.key.max(initial=0)) + 1, -1, np.int64)
        found: list[Answers] = []
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
            )  # fmt: skip
            if needed:
                raise TooLarge(
                    f"{len(chain.keys)} Markov keys feed one chain, and their joint state would need {needed:,.0f} "
                    f"weights (limit {JOINT_LIMIT:,}); name the keys, share their variable between the goals, "
                    "or GROUP BY it"
                )
            axis_of[known] = -1
            found.append((np.full(len(times), number, np.int32), times, probabilities))
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0)
        chains, times, probabilities = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return chains, times, probabilities

    @staticmethod
    def _add_axes(chain: Product, batch: Batch, rows: I64) -> None:
        """A Markov key that the chain meets for the first time has been at nothing."""
        remembering = rows[batch.model[rows] == kernel.MARKOV]
        for key in np.unique(batch.key[remembering]).tolist():
            if key not in chain.keys:
                chain.keys.append(key)
                chain.sizes = np.append(chain.sizes, 1)
                chain.codes = np.append(chain.codes, np.int32(0))

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
        """Take over what `save` gave."""
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


def _matrix_table(matrix: F64) -> pa.Table:
    """A column per automaton state, so that columns of zeros compress to nothing."""
    return pa.table({str(state): np.ascontiguousarray(matrix[:, state]) for state in range(matrix.shape[1])})


def _table_matrix(table: pa.Table) -> F64:
    return np.stack([column.to_numpy() for column in table.columns], axis=1).copy()
