"""The values of MARKOV keys before they have an effect on a chain."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32
from anabranch.pattern import kernel
from anabranch.pattern.automaton import Automaton, RegularMachine
from anabranch.pattern.intake import Received
from anabranch.pattern.weights import Batch, SingleWeights


class MarkovPast:
    """The distribution of the value of every MARKOV key of a bucket, whatever nodes it feeds.

    A key that has had no effect on a node is independent of it. So a node gets the key when it first has an effect,
    with this distribution, and not all keys from the beginning.
    """

    def __init__(self) -> None:
        self._weights = SingleWeights()
        self._tables = Automaton(RegularMachine([False]))

    def of(self, key: int) -> tuple[I32, F64] | None:
        """The values of a key and their probabilities; None if it has had no rows."""
        if key >= len(self._weights.offsets) - 1:
            return None
        values = slice(self._weights.offsets[key], self._weights.offsets[key + 1])
        return self._weights.codes[values], self._weights.weights[values, 0]

    def step(self, received: Received, n_values: int) -> None:
        """Take the rows of a step."""
        used = received.used[received.model[received.used] >= kernel.MARKOV]
        rows = used[np.argsort(received.key[used], kind="stable")]
        keys = received.key[rows]
        n_keys = max(len(self._weights.offsets) - 1, int(keys.max(initial=-1)) + 1)
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=n_keys))]).astype(np.int64)
        letter = np.zeros(len(received.rows), np.int32)
        self._weights.grow(n_keys, 1)
        batch = Batch(
            rows, starts, received.rows.t, received.key, received.model, received.rows.prev, received.rows.value,
            received.rows.p, letter, n_values,
        )  # fmt: skip
        self._weights.step(batch, self._tables)

    def save(self) -> dict[str, pa.Table]:
        """The distributions as tables."""
        return {f"past {name}": table for name, table in self._weights.save().items()}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self._weights.load({name: tables[f"past {name}"] for name in ("offsets", "codes", "weights")})
