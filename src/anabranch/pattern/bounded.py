"""PATTERN over answers that depend on each other: bounds on the probability, whatever the dependence is.

The rows of a stream of answers have known probabilities, but how they depend on each other is not known. So the
probability of an automaton state is an interval. Two events with probabilities in [a, b] and [c, d] happen both with a
probability in [max(0, a + c - 1), min(b, d)] (Fréchet). These are the bounds of each step: the state before, and the
event of the instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.columns.times import decode_times
from anabranch.pattern import kernel
from anabranch.pattern.automaton import Automaton
from anabranch.pattern.groups import Groups
from anabranch.pattern.operator import PatternOperator, regular_machine
from anabranch.pattern.spec import GroupSpec
from anabranch.transport.operator import Outcome
from anabranch.transport.per import BOUNDS

#: An interval that is not wider is a rounding error.
ROUNDING = 1e-12


@dataclass(frozen=True)
class BoundedSpec(GroupSpec):
    """A PATTERN query over an archive whose probabilities can only be bounded: a bucket has complete groups."""


def products_of(result: I32, n: int) -> kernel.Products:
    """The pairs of outcomes of each result, by rows and by columns of the table of results.

    Outcomes with the same row are one outcome: their row is a product of two sets.
    """
    parts = []
    for number in range(n):
        pairs = result == number
        parts += [(*sides, number, 0) for sides in _products(pairs)]
        parts += [(*sides[::-1], number, 1) for sides in _products(pairs.T)]
    first, second, results, ways = zip(*parts, strict=True)
    return kernel.Products(np.stack(first), np.stack(second), np.array(results, np.int32), np.array(ways, np.int32))


def _products(pairs: Bools) -> Iterator[tuple[Bools, Bools]]:
    """A set of pairs as products: for each distinct row, the outcomes that have it, and its members."""
    rows, row = np.unique(pairs, axis=0, return_inverse=True)
    for number, members in enumerate(rows):
        if members.any():
            yield row.reshape(-1) == number, members


class BoundedOperator(PatternOperator):
    """The operator of one bucket over an archive: all rows come in one step."""

    _pages_chains = False

    def _open_automaton(self) -> None:
        # Events of several keys at one instant are united.
        self._automaton = Automaton(regular_machine(self._spec.analysis), union_closed=True)

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: int, ended: bool) -> Outcome:
        """Take all packets and return all answers."""
        received = self._intake.receive(packets, watermark, ended)
        letter = self._letters(received.rows)
        automaton = self._automaton
        n_states, n_letters = automaton.delta.shape
        answers = kernel.step_bounded(
            received.used, received.starts, received.rows.t, received.key, received.rows.p, letter,
            products_of(automaton.delta, n_states), products_of(automaton.accept.astype(np.int32), 2),
            products_of(automaton.union, n_letters), n_states,
        )  # fmt: skip
        return Outcome(self._table(*answers), received.rejected, received.counts)

    def _table(self, chain: I32, t: I64, low: F64, high: F64) -> pa.Table:
        """Answers in the schema of the specification: a group is true if one of its chains is."""
        spec, groups = self._spec, Groups(self._spec, self._intake)
        group = groups.of_chains()[chain]
        order = np.lexsort((t, group))
        group, t = group[order], t[order]
        starts = np.flatnonzero(np.diff(group, prepend=-1).astype(bool) | np.diff(t, prepend=t[:1]).astype(bool))
        group, t = group[starts], t[starts]
        least, most = np.maximum.reduceat(low[order], starts), np.add.reduceat(high[order], starts)
        kept = least >= spec.analysis.query.least_probability
        least, most = least[kept], np.minimum(most[kept], 1.0)
        method = np.where(most - least <= ROUNDING, "exact", BOUNDS)
        columns = [decode_times(t[kept], spec.time_kind), *groups.columns_of(groups.first_chains()[group[kept]])]
        columns += [pa.array(numbers) for numbers in (least, least, most)]
        return pa.table([*columns, pa.array(method.tolist(), pa.string())], schema=spec.answer_schema)
