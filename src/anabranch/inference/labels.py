"""Labelled history: rows about a key at a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows about a key at a step, in any order; `code` is that of the location, or of the reader.

    `quantities` is what each reading measured besides the reader, (rows, Q); NaN if that is unknown.
    """

    key: I64
    step: I64
    code: I32
    quantities: F64 | None = None

    def where(self, chosen: Bools | I64) -> Labelled:
        """The chosen rows."""
        quantities = None if self.quantities is None else self.quantities[chosen]
        return Labelled(self.key[chosen], self.step[chosen], self.code[chosen], quantities)


def truth_indexes(truth: Labelled, readings: Labelled) -> I64:
    """For each reading, the index of the row of `truth` with the same key and step; -1 if there is none."""
    steps = np.concatenate([np.stack([rows.key, rows.step], axis=1) for rows in (truth, readings)])
    _, step_number = np.unique(steps, axis=0, return_inverse=True)
    step_number = step_number.reshape(-1)
    index_of = np.full(step_number.max() + 1, -1)
    index_of[step_number[: len(truth.key)]] = np.arange(len(truth.key))
    return index_of[step_number[len(truth.key) :]]
