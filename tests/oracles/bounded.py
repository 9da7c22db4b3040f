"""The oracle of bounds on the states of an automaton: Fréchet's bounds, with matrices, one instant after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools


def bounds_of_instants(delta: I32, accept: Bools, union: I32, instants: Sequence[Sequence[F64]]) -> list[Bounds]:
    """Bounds on false and true at each instant; an instant has the probabilities of the letters of each key."""
    states = Bounds.exact(np.eye(1, len(delta))[0])
    truths = []
    for keys in instants:
        events = Bounds.exact(keys[0])
        for letters in keys[1:]:
            events = events.combined(Bounds.exact(letters), union, len(union))
        truths.append(states.combined(events, accept.astype(np.int32), 2))
        states = states.combined(events, delta, len(delta))
    return truths


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
