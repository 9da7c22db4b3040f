"""Probabilities of solutions over INDEPENDENT streams.

Events with the same key and time are alternatives, of which at most one happened. All others are independent.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.events.batch import Batch


class Chances:
    """The probabilities of the events of a batch: `p`."""

    def __init__(self, batch: Batch) -> None:
        self.p = batch.gathered([table.probability for table in batch.tables], np.float64)
        # Events of CERTAIN streams do not exclude each other, so each has a code of its own.
        codes = [
            np.arange(len(table)) if table.layout.distribution is None else table.instances for table in batch.tables
        ]
        firsts = np.cumsum([0, *(len(table) for table in batch.tables)])
        parts = [first + part for first, part in zip(firsts, codes, strict=False)]
        self._instance = batch.gathered(parts, np.int64)

    def of_all(self, solutions: I64) -> F64:
        """The probability that all events of each solution happened."""
        instances = np.sort(self._instance[solutions], axis=1)
        excluded = (instances[:, 1:] == instances[:, :-1]).any(axis=1)
        return np.where(excluded, 0.0, self.p[solutions].prod(axis=1))

    def of_none(self, solutions: I64, added: I64) -> F64:
        """The probability that none of the added events happened, if all events of the solution did.

        Parameters
        ----------
        added : (m, 2) the index of a solution, and an event
        """
        row, event = np.unique(added, axis=0).T
        # Alternatives of an event of the solution did not happen.
        possible = (self._instance[solutions[row]] != self._instance[event][:, None]).all(axis=1)
        row, event = row[possible], event[possible]
        groups, index = np.unique(np.stack([row, self._instance[event]]), axis=1, return_inverse=True)
        happened = np.bincount(index.ravel(), self.p[event], minlength=groups.shape[1])
        none = np.ones(len(solutions))
        np.multiply.at(none, groups[0], 1.0 - np.minimum(happened, 1.0))
        return none
