"""The automaton of several queries at once: its state has the state of each, and one pass gives the truth of all.

The operands of a combination read the same events. Which of them are true at an instant is a *set*, a bit mask with the
bit of each operand. The kernels return the probability of one event, so they run once for each set that can occur, from
the same weights (`true_sets`). Chains are independent. An operand is true for a group if it is true for any chain, so
the sets of the chains of a group are united (`united`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.columns.times import TimeKind, later
from anabranch.pattern.automaton import Automaton, FixedTables, Machine
from anabranch.pattern.machine import Partial, SetMachine, Signature
from anabranch.pattern.weights import Answers, Batch, Weights

#: What the probabilities of all sets leave over is a rounding error if it is less than this.
ROUNDING = 1e-12

#: The state of each operand.
States = tuple[Hashable, ...]


class ProductMachine:
    """The machines of several queries that read the same events.

    A letter has one bit for each bit of an operand's letter that has occurred. So letters can be united.

    Examples
    --------
    >>> from anabranch.pattern.automaton import RegularMachine, accept_bit, match_bit
    >>> machine = ProductMachine([RegularMachine([False]), RegularMachine([False])])
    >>> event = match_bit(0) | accept_bit(0)
    >>> machine.step(machine.start, machine.letter_of([0, event]))[1]
    2
    """

    def __init__(self, machines: Sequence[Machine[Any]]) -> None:
        self._machines = machines
        self.start: States = tuple(machine.start for machine in machines)
        #: The number of each bit: an operand, and a bit of its letters.
        self._bits: dict[tuple[int, int], int] = {}

    def letter_of(self, letters: Sequence[int]) -> int:
        """The letter of an event, given its letter for each operand."""
        letter = 0
        for operand, rest in enumerate(letters):
            while rest:
                bit = rest & -rest
                letter |= 1 << self._bits.setdefault((operand, bit), len(self._bits))
                rest ^= bit
        return letter

    def letters_of(self, letter: int) -> list[int]:
        """The letter of each operand."""
        letters = [0] * len(self._machines)
        for (operand, bit), number in self._bits.items():
            if letter >> number & 1:
                letters[operand] |= bit
        return letters

    def step(self, state: States, letter: int) -> tuple[States, int]:
        """The states after reading a letter, and the set of the operands that are true at that instant."""
        after, true = list(state), 0
        for operand, own in enumerate(self.letters_of(letter)):
            if own:
                after[operand], is_true = self._machines[operand].step(state[operand], own)
                true |= is_true << operand
        return tuple(after), true


class ProductAutomaton(Automaton[States]):
    """The automaton of a `ProductMachine`; `true` has the sets that `accept` only says to be empty or not."""

    def _make_tables(self) -> None:
        super()._make_tables()
        self.true = np.array([[true for _, true in moves] for moves in self._moves], np.int32)


@dataclass(frozen=True, slots=True)
class Age:
    """WITHIN of an operand: whether a partial result may still end at an instant; always, without WITHIN."""

    within: float | None
    kind: TimeKind

    def is_recent(self, partial: Partial, now: int) -> bool:
        """Whether a partial result began recently enough."""
        return self.within is None or int(later(np.array([partial.began]), self.within, self.kind)[0]) >= now


class ProductSets:
    """The sets of partial results of several queries, for the joint state of a chain (`joint.py`).

    A state has the sets of all operands, and which operands are true at the last instant.
    """

    def __init__(self, sets: Sequence[SetMachine], ages: Sequence[Age], n_tests: Sequence[int]) -> None:
        self._sets = sets
        self._ages = ages
        ends = np.cumsum(n_tests).tolist()
        self._parts = [slice(end - size, end) for end, size in zip(ends, n_tests, strict=True)]
        self.machine = ProductMachine(sets)
        self.start = (self.machine.start, 0)

    @property
    def timed(self) -> bool:
        """Whether an operand has WITHIN."""
        return any(age.within is not None for age in self._ages)

    def next_chain(self) -> None:
        """Begin to count the work of another chain."""
        for part in self._sets:
            part.next_chain()

    def without_old(self, states: dict[Any, Any], now: int) -> dict[Any, Any]:
        """The states of a chain at an instant, without partial results that began too long ago."""
        if not self.timed:
            return states
        recent: dict[Any, Any] = {}
        for (values, (parts, true)), weight in states.items():
            kept = tuple(
                frozenset(partial for partial in part if age.is_recent(partial, now))
                for part, age in zip(parts, self._ages, strict=True)
            )
            recent[values, (kept, true)] = recent.get((values, (kept, true)), 0.0) + weight
        return recent

    def letter_of(self, signature: Signature) -> int:
        """The letter of one event, whose signature has the goals of all operands; 0 if it matches none."""
        return self.machine.letter_of(
            [part.letter_of(signature[own]) for part, own in zip(self._sets, self._parts, strict=True)]
        )

    @staticmethod
    def work(state: tuple[tuple[Any, ...], int], letter: int) -> int:
        """The work of a step."""
        return sum(SetMachine.work(part, letter) for part in state[0])

    def step(self, state: tuple[Any, int], letter: int, now: int = 0) -> tuple[tuple[States, int], bool]:
        """The state after a letter at the time `now` (with WITHIN), and whether any operand is true at it."""
        after, true = list(state[0]), 0
        for operand, own in enumerate(self.machine.letters_of(letter)):
            if own:
                after[operand], is_true = self._sets[operand].step(state[0][operand], own, now)
                true |= is_true << operand
        return (tuple(after), true), true != 0


# ---------------------------------------------------------------- sets of true operands


@dataclass(frozen=True, slots=True)
class TrueSets:
    """The probability of each set of true operands, for the chains and instants at which some operand may be true.

    Attributes
    ----------
    chain, t : of each row
    p : (rows, sets): the probability of each set; the rows sum to 1
    """

    chain: I64
    t: I64
    p: F64

    @classmethod
    def of(cls, chain: I64, t: I64, p: F64) -> TrueSets:
        """From the probabilities of the sets that are not empty, where column 0 is not used."""
        p[:, 0] = 1.0 - p[:, 1:].sum(axis=1)
        p[p[:, 0] < ROUNDING, 0] = 0.0
        return cls(chain, t, p)

    @classmethod
    def concat(cls, parts: Sequence[TrueSets]) -> TrueSets:
        """The rows of all parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("chain", "t", "p")))

    def where(self, chosen: Any) -> TrueSets:
        """The rows at which a mask is true."""
        return TrueSets(self.chain[chosen], self.t[chosen], self.p[chosen])


def true_sets(
    weights: Weights, batch: Batch, automaton: ProductAutomaton, n_sets: int, like: Callable[[int], Hashable]
) -> TrueSets:
    """Update the weights by a batch, and return the probabilities of the sets of true operands.

    Sets with equal values of `like` get one probability together. It is that of the first of them, or of the empty set.
    """
    alike: dict[Hashable, list[int]] = {like(0): [0]}
    for true in np.unique(automaton.true).tolist():
        alike.setdefault(like(true), []).append(true)
    # The empty set gets what the others leave over; without others the weights are updated only.
    passes = list(alike.values())[1:] or [[]]
    answers: list[Answers] = []
    for number, sets in enumerate(passes):
        updated = weights if number == len(passes) - 1 else deepcopy(weights)
        tables = FixedTables(automaton.delta, np.isin(automaton.true, sets), automaton.union)
        answers.append(updated.step(batch, tables))
    chain, t, p = (np.concatenate(part) for part in zip(*answers, strict=True))
    column = np.repeat([sets[0] if sets else 0 for sets in passes], [len(own) for own, _, _ in answers])
    times, instant = np.unique(t, return_inverse=True)
    keys, row = np.unique(chain.astype(np.int64) * len(times) + instant, return_inverse=True)
    dense = np.zeros((len(keys), n_sets))
    dense[row, column] = p
    return TrueSets.of(keys // max(1, len(times)), times[keys % max(1, len(times))], dense)


def united(group: I64, p: F64) -> F64:
    """The distribution of the union of the sets of all rows of each group; rows are sorted by group, from 0 on.

    Rows are combined in pairs, so that the number of rounds is the logarithm of the largest group. There is no
    subtraction: small probabilities keep their digits.
    """
    while len(group) and (np.diff(group) == 0).any():
        first = np.searchsorted(group, group)
        is_left = (np.arange(len(group)) - first) % 2 == 0
        left = np.flatnonzero(is_left)
        has_right = np.append(group[1:] == group[:-1], False)[left]
        after = p[left]
        after[has_right] = _union(p[left[has_right]], p[left[has_right] + 1])
        group, p = group[left], after
    return p


def _union(first: F64, second: F64) -> F64:
    """The distribution of the union of two independent sets, row by row."""
    united = np.zeros_like(first)
    for one in np.flatnonzero(first.any(axis=0)).tolist():
        for other in np.flatnonzero(second.any(axis=0)).tolist():
            united[:, one | other] += first[:, one] * second[:, other]
    return united
