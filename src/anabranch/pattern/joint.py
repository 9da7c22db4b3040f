"""The exact answers of one chain by its joint state: the values of its Markov keys, and the set of partial results.

Only the states that the data can reach are kept, with their probabilities, so a chain of few keys is answered exactly
for any query. There can be as many states as subsets of the partial results, so the number of steps is limited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.automaton import Machine
from anabranch.pattern.counting import OUTSIDE
from anabranch.pattern.history import History, Outcomes
from anabranch.pattern.machine import Partial, SetMachine, Signature

#: The most transitions of states that are computed: about a second.
MOST_STEPS = 300_000

S = TypeVar("S", bound=Hashable)

#: The values of the Markov keys, the state of the machine, and the letter of the keys read so far at the instant.
_State = tuple[tuple[int, ...], S, int]
#: For each previous value: the possible values, with their letters and probabilities.
_Table = dict[int, list[tuple[int, int, float]]]


class EventMachine(Machine[S], Protocol):
    """A machine of the automaton that gives the letters of events."""

    def letter_of(self, signature: Signature) -> int:
        """The letter of one event; 0 if it matches no goal."""


class CountingMachine:
    """The sets of partial results, with the number of instants at which the query was true; it stops at `times`."""

    def __init__(self, sets: SetMachine, times: int) -> None:
        self._sets = sets
        self.times = times
        self.start: tuple[frozenset[Partial], int] = (sets.start, 0)
        self.letter_of = sets.letter_of
        self._known: dict[tuple[frozenset[Partial], int], tuple[frozenset[Partial], bool]] = {}

    def step(self, state: tuple[frozenset[Partial], int], letter: int) -> tuple[tuple[frozenset[Partial], int], bool]:
        """The state after a letter, and whether the query is true at it."""
        partials, count = state
        if (partials, letter) not in self._known:
            self._known[partials, letter] = self._sets.step(partials, letter)
        partials, true = self._known[partials, letter]
        return (partials, min(count + true, self.times)), true


class JointState(Generic[S]):
    """The probability of each joint state of one chain that the data can reach."""

    def __init__(self, machine: EventMachine[S], history: History) -> None:
        self._machine = machine
        self._markov_indexes = _markov_indexes(history)
        self._steps = 0
        self._known: dict[tuple[S, int], tuple[S, bool]] = {}
        self.states: dict[_State[S], float] = {((0,) * len(self._markov_indexes), machine.start, 0): 1.0}

    def advance(self, keys: Sequence[Outcomes]) -> float:
        """Process one instant; returns the probability that the query is true at it.

        Raises
        ------
        TooLarge
            If all instants together take more than `MOST_STEPS` steps, or more work than the machine allows.
        """
        states = self.states
        for outcomes in keys:
            table = _table(outcomes, self._machine.letter_of)
            self._steps += len(states) * max(map(len, table.values()), default=1)
            if self._steps > MOST_STEPS:
                raise TooLarge(f"the joint state takes more than {MOST_STEPS:,} steps")
            states = _with_key(states, table, self._markov_indexes.get(outcomes.key))
        after: dict[_State[S], float] = defaultdict(float)
        true = 0.0
        for (hidden, state, letter), weight in states.items():
            if (state, letter) not in self._known:
                self._known[state, letter] = self._machine.step(state, letter)
            state, accepted = self._known[state, letter]
            after[hidden, state, 0] += weight
            true += weight if accepted else 0.0
        self.states = after
        return min(true, 1.0)


def joint_answers(sets: SetMachine, history: History) -> Iterator[tuple[int, float]]:
    """The times at which the query can be true for a chain, with the probabilities; see `JointState.advance`."""
    chain = JointState(sets, history)
    for t, keys in history:
        true = chain.advance(keys)
        if true > 0.0:
            yield t, true


def joint_counts(
    sets: SetMachine, history: History, span_of: Callable[[int], int], times: int
) -> Iterator[tuple[int, list[float], float]]:
    """For each span of instants in which a chain can be true: P(count = j), from 1 to `times`, and the mean count.

    `span_of` gives the number of the span of a time, or `OUTSIDE`; see `JointState.advance`.
    """
    chain = JointState(CountingMachine(sets, times), history)
    spans = [span_of(t) for t, _ in history]
    expected = 0.0
    for (_, keys), span, following in zip(history, spans, [*spans[1:], None], strict=True):
        expected += chain.advance(keys)
        if span != following:
            if span != OUTSIDE and expected > 0.0:
                yield span, _read_counts(chain, times), expected
            _reset_counts(chain)
            expected = 0.0


def _read_counts(chain: JointState[tuple[frozenset[Partial], int]], times: int) -> list[float]:
    p = [0.0] * (times + 1)
    for (_, (_, count), _), weight in chain.states.items():
        p[count] += weight
    return p[1:]


def _reset_counts(chain: JointState[tuple[frozenset[Partial], int]]) -> None:
    reset: dict[_State[tuple[frozenset[Partial], int]], float] = defaultdict(float)
    for (hidden, (partials, _), letter), weight in chain.states.items():
        reset[hidden, (partials, 0), letter] += weight
    chain.states = reset


def _markov_indexes(history: History) -> dict[int, int]:
    """The index of each Markov key in the tuple of hidden values."""
    markov_keys = {outcomes.key for _, keys in history for outcomes in keys if outcomes.model == kernel.MARKOV}
    return {key: index for index, key in enumerate(sorted(markov_keys))}


def _with_key(states: dict[_State[S], float], table: _Table, markov_index: int | None) -> dict[_State[S], float]:
    """The states after one more key took its value at the instant; `markov_index` is None for other models."""
    after: dict[_State[S], float] = defaultdict(float)
    for (hidden, partials, letter), weight in states.items():
        for value, emitted, p in table.get(0 if markov_index is None else hidden[markov_index], [(0, 0, 1.0)]):
            new_hidden = hidden
            if markov_index is not None:
                new_hidden = (*hidden[:markov_index], value, *hidden[markov_index + 1 :])
            after[new_hidden, partials, letter | emitted] += weight * p
    return after


def _table(outcomes: Outcomes, letter_of: Callable[[Signature], int]) -> _Table:
    """The possible values of a key at an instant; all events of a CERTAIN key happen, so it has one entry."""
    letters = {code: letter_of(signature) for code, signature in outcomes.signatures.items()}
    values = outcomes.value.tolist()
    if outcomes.model == kernel.CERTAIN:
        union = 0
        for value in values:
            union |= letters.get(value, 0)
        return {0: [(0, union, 1.0)]}
    table: _Table = defaultdict(list)
    rest_of: dict[int, float] = defaultdict(lambda: 1.0)
    for prev, value, p in zip(outcomes.prev.tolist(), values, outcomes.p.tolist(), strict=True):
        if p > 0.0:
            table[prev].append((value, letters.get(value, 0), p))
            rest_of[prev] -= p
    for prev, rest in rest_of.items():
        if rest > kernel.ROUNDING:
            table[prev].append((0, 0, rest))
    return dict(table)
