"""The operator of a MONITOR with NEAREST: the answers about a first prediction depend on all its candidates.

A new prediction of any candidate can change when the others are nearest. So the pending pairs of a first prediction
are evaluated together, and are kept until the last of them ends: what was nearest before the watermark depends on pairs
that ended before it. A new answer replaces an earlier one if they differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools
from anabranch.monitor.answers import INVALIDATED, TENTATIVE, VALIDATED
from anabranch.monitor.combinations import Combinations
from anabranch.monitor.operator import MonitorOperator, is_cut
from anabranch.monitor.predictions import Predictions
from anabranch.monitor.ranking import RankedEvaluator
from anabranch.monitor.regions import Regions


class _Pending(NamedTuple):
    """Pairs of first predictions with a pending candidate, and when they are due."""

    members: I64
    due: F64


class NearestOperator(MonitorOperator):
    """The operator of one bucket. `_members` has all pairs of each first prediction with a pending candidate.

    `_due` is when the first pending answer about a first prediction ends, or else its last candidate.
    """

    _evaluator_class = RankedEvaluator
    _evaluator: RankedEvaluator

    def _with_operands(self, combinations: Combinations, held: Predictions, is_new: Bools) -> Predictions:
        """Set the operands that the new predictions can be: the first one only in the bucket of its part."""
        held = super()._with_operands(combinations, held, is_new)
        elsewhere = held.part != (self._arrivals.parts or (0,))[0]
        held.able[elsewhere] &= ~1
        return held

    def _update(
        self, held: Predictions, uncut: Predictions, known: int, chunks: Iterable[I64], watermark_before: int,
        ended: bool,
    ) -> list[pa.Table]:  # fmt: skip
        """Replace the predictions, and evaluate first predictions with new, cut or ended candidates again.

        All new pairs of a first prediction are in one chunk.
        """
        until = self._until(self._watermark.at, self._held.code[self._members[:, 0]])
        is_changed = is_cut(held, uncut, known)[self._members].any(axis=1) | (self._due < until) | ended
        changed = np.unique(self._members[is_changed, 0])
        self._held = held
        answers: list[pa.Table] = []
        pending: list[_Pending] = []
        no_pairs = self._members[:0]
        for members, cut_or_due in chain(((members, no_pairs[:, 0]) for members in chunks), [(no_pairs, changed)]):
            new = self._evaluator.candidates(held, members)
            old = self._withdrawn(np.union1d(new.members[:, 0], cut_or_due))
            earlier = self._evaluator.regions(uncut, old)
            candidates = Regions.concat([self._evaluator.candidates(held, old), new])
            current = self._evaluator.nearest(held, candidates)
            answers += self._replaced(earlier, current, uncut, watermark_before, ended)
            if not ended:
                pending.append(self._pending(candidates, current))
        self._members = np.concatenate([self._members, *(own.members for own in pending)])
        self._due = np.concatenate([self._due, *(own.due for own in pending)])
        return answers

    def _withdrawn(self, firsts: I64) -> I64:
        """Remove and return the pending pairs of some first predictions."""
        chosen = np.isin(self._members[:, 0], firsts)
        members = self._members[chosen]
        self._members, self._due = self._members[~chosen], self._due[~chosen]
        return members

    def _replaced(
        self, earlier: Regions, current: Regions, uncut: Predictions, watermark_before: int, ended: bool
    ) -> list[pa.Table]:
        """The answers that the current regions of some pairs add to, and remove from, the earlier ones."""
        earlier = earlier.take(~self._is_final(earlier, uncut, watermark_before))
        current = current.take(~self._is_final(current, self._held, watermark_before))
        final = self._is_final(current, self._held, self._watermark.at) | ended
        pending = current.take(~final)
        return [
            *self._answers(earlier.take(~earlier.equal_to_any(current)), uncut, INVALIDATED),
            *self._answers(current.take(final), self._held, VALIDATED),
            *self._answers(pending.take(~pending.equal_to_any(earlier)), self._held, TENTATIVE),
        ]

    def _pending(self, candidates: Regions, current: Regions) -> _Pending:
        """All pairs of the first predictions with a pending candidate."""
        firsts, group = np.unique(candidates.members[:, 0], return_inverse=True)
        is_open = np.zeros(len(firsts), np.bool_)
        is_open[group[~self._is_final(candidates, self._held, self._watermark.at)]] = True
        due = np.full(len(firsts), -np.inf)
        np.maximum.at(due, group, candidates.interval[:, 1])
        pending = current.take(~self._is_final(current, self._held, self._watermark.at))
        np.minimum.at(due, np.searchsorted(firsts, pending.members[:, 0]), pending.interval[:, 1])
        members = np.unique(candidates.members[is_open[group]], axis=0)
        return _Pending(members, due[np.searchsorted(firsts, members[:, 0])])
