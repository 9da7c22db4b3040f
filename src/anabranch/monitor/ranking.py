"""NEAREST: the parts of regions in which the second prediction is one of the k nearest to the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.monitor.kernel import ranks
from anabranch.monitor.predictions import Predictions, exact_times
from anabranch.monitor.regions import Evaluator, Regions


class RankedEvaluator(Evaluator):
    """Finds the regions of pairs in which the second prediction is one of the nearest to the first.

    A *candidate* is a region in which a pair satisfies WHERE. The answers about a first prediction depend on all its
    candidates, so these must be given together.
    """

    def regions(self, held: Predictions, members: I64) -> Regions:
        """The regions of some pairs, which are all candidates of their first predictions."""
        return self.nearest(held, self.candidates(held, members))

    def candidates(self, held: Predictions, members: I64) -> Regions:
        """The regions in which pairs satisfy WHERE; the predictions are taken as true, so all probabilities are 1."""
        return super().regions(_without_errors(held), members)

    def nearest(self, held: Predictions, candidates: Regions) -> Regions:
        """The parts of candidates in which they are nearest, with their probabilities."""
        if not len(candidates):
            return candidates
        order = np.lexsort((held.key[candidates.members[:, 1]], candidates.members[:, 0]))
        owner, intervals = self._parts(held, candidates.members[order], candidates.interval[order])
        pairs = candidates.members[order[owner]]
        # Each part has a copy of its first prediction, which applies only in this part.
        firsts = replace(held.take(pairs[:, 0]), begin=intervals[:, 0].copy(), end=intervals[:, 1].copy())
        members = np.stack([np.arange(len(pairs)), len(pairs) + pairs[:, 1]], axis=1)
        regions = super().regions(Predictions.concat([firsts, held]), members)
        part = regions.members[:, 0]
        # Another region of the pair may touch the end of a part.
        lengths = regions.interval[:, 1] - regions.interval[:, 0]
        is_whole = lengths > 0.5 * (intervals[part, 1] - intervals[part, 0])
        return replace(regions, members=pairs[part]).take(is_whole)

    def _parts(self, held: Predictions, members: I64, intervals: F64) -> tuple[I64, F64]:
        """When candidates in the order of first predictions and second keys are nearest; the candidate of each part."""
        _, key = np.unique(np.stack([members[:, 0], held.key[members[:, 1]]], axis=1), axis=0, return_inverse=True)
        _, groups = np.unique(members[:, 0], return_index=True)
        shifts = self._shifts(exact_times(held.code, self._kind), members)
        candidates = ranks.Candidates(
            np.ascontiguousarray(members), shifts, np.ascontiguousarray(intervals), key.astype(np.int64),
            np.append(groups, len(members)).astype(np.int64),
        )  # fmt: skip
        query, (tables,) = self._analysis.query, self._tables_for((False,) * len(self._analysis.values), ())
        bounded = next(number for number, area in enumerate(self._analysis.areas) if area.is_of_two)
        arrays = self._arrays(_without_errors(held).with_sums(self._sums))
        return ranks.nearest(query.nearest or 0, candidates, bounded, arrays, tables.rules, tables.constraints)


def _without_errors(held: Predictions) -> Predictions:
    return replace(held, errors=np.zeros_like(held.errors))
