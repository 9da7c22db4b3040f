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

from anabranch.arrays import F64, I32, I64
from anabranch.columns.times import decode_times
from anabranch.pattern.automaton import Automaton
from anabranch.pattern.groups import Groups
from anabranch.pattern.intake import Received
from anabranch.pattern.operator import PatternOperator, regular_machine
from anabranch.pattern.spec import GroupSpec
from anabranch.transport.operator import Outcome
from anabranch.transport.per import BOUNDS

#: An interval that is not wider is a rounding error.
ROUNDING = 1e-12


@dataclass(frozen=True)
class BoundedSpec(GroupSpec):
    """A PATTERN query over an archive whose probabilities can only be bounded: a bucket has complete groups."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on the probabilities of outcomes, of which exactly one happens."""

    low: F64
    high: F64

    @classmethod
    def exact(cls, p: F64) -> Bounds:
        """Outcomes with known probabilities."""
        return cls(p, p)

    def of_sets(self, members: F64) -> Bounds:
        """Bounds on the probabilities of sets of outcomes; `members` is (sets, outcomes), 1 for a member."""
        others = 1.0 - members
        low = np.maximum(members @ self.low, 1.0 - others @ self.high)
        high = np.minimum(members @ self.high, 1.0 - others @ self.low)
        return Bounds(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))

    def combined(self, other: Bounds, result: I32 | I64, n: int) -> Bounds:
        """Bounds on the results of two outcomes, whatever their dependence is.

        Parameters
        ----------
        result : (outcomes, outcomes of the other): the number of the result
        n : how many results there are
        """
        parts = [_both(self, other, result == number) for number in range(n)]
        low, high = (np.array(ends) for ends in zip(*parts, strict=True))
        # The results are disjoint, and one of them happens.
        return Bounds(np.maximum(low, 1.0 - (high.sum() - high)), np.minimum(high, 1.0 - (low.sum() - low)))


def _both(one: Bounds, other: Bounds, pairs: np.ndarray) -> tuple[float, float]:
    """Bounds on the probability of a set of pairs of outcomes: those by rows and those by columns both hold."""
    sides = [_by_rows(one, other, pairs), _by_rows(other, one, pairs.T)]
    return max(low for low, _ in sides), min(1.0, *(high for _, high in sides))


def _by_rows(one: Bounds, other: Bounds, pairs: np.ndarray) -> tuple[float, float]:
    """The sum over the distinct rows of the set: outcomes with the same row are one outcome."""
    columns, row = np.unique(pairs, axis=0, return_inverse=True)
    members = (row.reshape(-1) == np.arange(len(columns))[:, None]).astype(np.float64)
    first, second = one.of_sets(members), other.of_sets(columns.astype(np.float64))
    low = np.maximum(0.0, first.low + second.low - 1.0)
    high = np.minimum(first.high, second.high)
    return float(low.sum()), float(high.sum())


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
        answers = [
            (chain, t, low, high)
            for chain in range(self._intake.n_chains)
            for t, low, high in self._chain(received, letter, chain)
            if high > 0.0
        ]
        return Outcome(self._table(answers), received.rejected, received.counts)

    def _chain(self, received: Received, letter: I32, chain: int) -> Iterator[tuple[int, float, float]]:
        """The bounds of a chain at each of its instants."""
        rows = received.used[received.starts[chain] : received.starts[chain + 1]]
        states = Bounds.exact(np.eye(1, len(self._automaton.states))[0])
        for at in _runs(received.rows.t[rows]):
            events = self._events(received, letter, rows[at])
            true = states.combined(events, self._automaton.accept.astype(np.int32), 2)
            yield int(received.rows.t[rows[at.start]]), float(true.low[1]), float(true.high[1])
            states = states.combined(events, self._automaton.delta, len(self._automaton.states))

    def _events(self, received: Received, letter: I32, rows: I64) -> Bounds:
        """Bounds on the letters of an instant: the union of the letters of all keys."""
        n_letters = len(self._automaton.letters)
        events: Bounds | None = None
        for key in _runs(received.key[rows]):
            p = np.bincount(letter[rows[key]], received.rows.p[rows[key]], n_letters).astype(np.float64)
            p[0] = max(0.0, 1.0 - p[1:].sum())  # The rows leave over that nothing happened.
            own = Bounds.exact(p)
            events = own if events is None else events.combined(own, self._automaton.union, n_letters)
        return Bounds.exact(np.eye(1, n_letters)[0]) if events is None else events

    def _table(self, answers: Sequence[tuple[int, int, float, float]]) -> pa.Table:
        """Answers in the schema of the specification: a group is true if one of its chains is."""
        spec, groups = self._spec, Groups(self._spec, self._intake)
        chain, t = (np.array([answer[part] for answer in answers], np.int64) for part in (0, 1))
        low, high = (np.array([answer[part] for answer in answers], np.float64) for part in (2, 3))
        keys = np.stack([groups.of_chains()[chain], t])
        (group, t), number = np.unique(keys, axis=1, return_inverse=True)
        least, most = np.zeros(len(group)), np.zeros(len(group))
        np.maximum.at(least, number.reshape(-1), low)
        np.add.at(most, number.reshape(-1), high)
        kept = least >= spec.analysis.query.least_probability
        least, most = least[kept], np.minimum(most[kept], 1.0)
        method = np.where(most - least <= ROUNDING, "exact", BOUNDS)
        columns = [decode_times(t[kept], spec.time_kind), *groups.columns_of(groups.first_chains()[group[kept]])]
        columns += [pa.array(numbers) for numbers in (least, least, most)]
        return pa.table([*columns, pa.array(method.tolist(), pa.string())], schema=spec.answer_schema)


def _runs(values: I64 | I32) -> Iterator[slice]:
    """The parts of a sorted array with equal values."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=True):
        yield slice(start, end)
