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

from anabranch.arrays import F64, I64, Bools
from anabranch.pattern.automaton import Automaton, FixedTables, Machine
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


class CascadeMachine:
    """The machines of several queries, and that of a query whose events are their answers.

    Parameters
    ----------
    inner : the machines of the queries that are read
    outer : the machine of the query over their answers
    letters : for each query that is read, the letter of the outer one for its answer
    """

    def __init__(self, inner: ProductMachine, outer: Machine[Any], letters: Sequence[int]) -> None:
        self._inner, self._outer, self._letters = inner, outer, letters
        self.start: States = (*inner.start, outer.start)

    def letter_of(self, letters: Sequence[int]) -> int:
        """The letter of an event, given its letter for each query that is read."""
        return self._inner.letter_of(letters)

    def step(self, state: States, letter: int) -> tuple[States, int]:
        """The states after reading a letter, and whether the outer query is true at that instant."""
        *before, outer = state
        after, true = self._inner.step(tuple(before), letter)
        read = 0
        for operand, own in enumerate(self._letters):
            read |= own if true >> operand & 1 else 0
        is_true = 0
        if read:
            outer, is_true = self._outer.step(outer, read)
        return (*after, outer), is_true


class ProductAutomaton(Automaton[Any]):
    """The automaton of a `ProductMachine`, or of another machine that returns sets of operands.

    `true` has the sets. `accept` says whether they are not empty, or with `truths`, whether these are true for them.
    """

    def __init__(self, *arguments: Any, truths: Bools | None = None, **options: Any) -> None:
        self._truths = truths
        super().__init__(*arguments, **options)

    def _make_tables(self) -> None:
        super()._make_tables()
        self.true = np.array([[true for _, true in moves] for moves in self._moves], np.int32)
        if self._truths is not None:
            self.accept = self._truths[self.true]


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
