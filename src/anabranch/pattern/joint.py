"""The exact answers of one chain by its joint state: the values of its Markov keys, and the set of partial results.

Only the states that the data can reach are kept, with their probabilities, so a chain of few keys is answered exactly
for any query. There can be as many states as subsets of the partial results, so the number of steps is limited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from anabranch.arrays import F64
from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.budget import Budget
from anabranch.pattern.counting import OUTSIDE
from anabranch.pattern.history import History, Outcomes
from anabranch.pattern.machine import Signature

#: The most transitions of states that are computed: about a second.
MOST_STEPS = 300_000

#: The values of the Markov keys, the partial results, and the letter of the keys read so far at the instant.
_State = tuple[tuple[int, ...], Any, int]
#: For each previous value: the possible values, with their letters and probabilities.
_Table = dict[int, list[tuple[int, int, float]]]


#: The probability of a state; with PER, that of each count.
_Weight = Any


class Sets(Protocol):
    """The sets of partial results of a query, or of several; see `SetMachine`."""

    @property
    def start(self) -> Any:
        """The state before the first event."""

    @property
    def spent(self) -> float:
        """The part of the allowed work that the chain has taken."""

    @property
    def timed(self) -> bool:
        """Whether there is a tick before each instant, for WITHIN."""

    def reaches(self, times: Sequence[int]) -> Sequence[Any]:
        """For each instant of a history, how many earlier ones are not too long ago."""

    def tick(self, state: Any, reach: Any) -> Any:
        """The state at the next instant."""

    def require(self, steps: Iterable[tuple[Any, int]]) -> None:
        """Raise TooLarge if these steps are more work than is left."""

    def letter_of(self, signature: Signature) -> int:
        """The letter of one event; 0 if it matches no goal."""

    def step(self, state: Any, letter: int) -> tuple[Any, bool]:
        """The state after a letter, and whether the query is true at it."""


def joint_answers(sets: Sets, history: History, most_steps: int) -> Iterator[tuple[int, float]]:
    """The times at which the query can be true for a chain, with the probabilities; see `joint_instants`."""
    for t, true, _ in joint_instants(sets, history, most_steps, 1.0, lambda weight: weight):
        if true > 0.0:
            yield t, min(true, 1.0)


def joint_counts(
    sets: Sets, history: History, most_steps: int, span_of: Callable[[int], int], times: int
) -> Iterator[tuple[int, F64, float]]:
    """For each span of instants in which a chain can be true: P(count = j), from 1 to `times`, and the mean count.

    `span_of` gives the number of the span of a time, or `OUTSIDE`; see `joint_instants`.
    """
    none = np.zeros(times + 1)
    none[0] = 1.0
    spans = [span_of(t) for t, _ in history]
    expected = 0.0
    instants = joint_instants(sets, history, most_steps, none, _one_more)
    for (_, true, states), span, following in zip(instants, spans, [*spans[1:], None][: len(spans)], strict=True):
        expected += float(np.sum(true))
        if span != following:
            if span != OUTSIDE and expected > 0.0:
                yield span, np.sum(list(states.values()), axis=0)[1:], expected
            for state, weight in states.items():
                states[state] = none * weight.sum()
            expected = 0.0


def _one_more(counts: F64) -> F64:
    """The distribution of a count that is increased by 1; it stops at the last one."""
    more = np.concatenate([[0.0], counts[:-1]])
    more[-1] += counts[-1]
    return more


def joint_instants(
    sets: Sets, history: History, most_steps: int, start: _Weight, counted: Callable[[_Weight], _Weight]
) -> Iterator[tuple[int, _Weight, dict[_State, _Weight]]]:
    """For each instant: its time, the probability that the query is true at it, and the states after it.

    Parameters
    ----------
    start : the weight of the first state
    counted : from the weight of a state to that after an instant at which the query is true

    Raises
    ------
    TooLarge
        If it takes more than `most_steps`, or more work than the machine allows. It is raised as soon as that is
        foreseeable: sampling has to wait for it.
    """
    too_large = TooLarge(f"the joint state of a chain takes more than {most_steps:,} steps")
    tables = [(t, [(outcomes.key, _table(outcomes, sets)) for outcomes in keys]) for t, keys in history]
    markov_indexes = _markov_indexes(history)
    if _least_steps(tables, markov_indexes) > most_steps:
        raise too_large
    states: dict[_State, _Weight] = {((0,) * len(markov_indexes), sets.start, 0): start}
    known_steps: dict[tuple[Any, int], tuple[Any, bool]] = {}
    steps, budget = 0, Budget(len(tables), too_large)
    for (t, keys), reach in zip(tables, sets.reaches([t for t, _ in tables]), strict=True):
        if sets.timed:
            states = _older(states, sets, reach)
        # If no key must have an event, the sets of events so far are possible ones, and their steps have to be taken.
        all_may_be_idle = all(_may_be_idle(table) for _, table in keys)
        for key, table in keys:
            steps += len(states) * max(map(len, table.values()), default=1)
            if steps > most_steps:
                raise too_large
            states = _with_key(states, table, markov_indexes.get(key))
            new_steps = {(partials, letter) for _, partials, letter in states} - known_steps.keys()
            if all_may_be_idle or key == keys[-1][0]:
                sets.require(new_steps)
        known_steps.update((step, sets.step(*step)) for step in new_steps)
        budget.end_instant(max(steps / max(1, most_steps), sets.spent))
        after: dict[_State, _Weight] = defaultdict(float)
        true: _Weight = 0.0
        for (hidden, partials, letter), weight in states.items():
            partials, accepted = known_steps[partials, letter]
            if accepted:
                true = true + weight
                weight = counted(weight)
            after[hidden, partials, 0] = after[hidden, partials, 0] + weight
        states = after
        yield t, true, states


def _older(states: dict[_State, _Weight], sets: Sets, reach: Any) -> dict[_State, _Weight]:
    """The states at the next instant, which has this reach (WITHIN)."""
    after: dict[_State, _Weight] = defaultdict(float)
    for (hidden, partials, letter), weight in states.items():
        state = hidden, sets.tick(partials, reach), letter
        after[state] = after[state] + weight
    return after


def _may_be_idle(table: _Table) -> bool:
    """Whether a key may have no event that matches a goal, whatever its previous value."""
    return all(any(letter == 0 for _, letter, _ in outcomes) for outcomes in table.values())


def _least_steps(tables: list[tuple[int, list[tuple[int, _Table]]]], markov_indexes: dict[int, int]) -> float:
    """A lower bound of the steps: keys are independent, so every combination of their possible values is a state."""
    possible: dict[int, set[int]] = dict.fromkeys(markov_indexes, {0})
    combinations, steps = 1.0, 0.0
    for _, keys in tables:
        for key, table in keys:
            steps += combinations
            if key in markov_indexes:
                before = possible[key]
                after = {value for previous in before for value, _, _ in table.get(previous, [(0, 0, 1.0)])}
                combinations = combinations / len(before) * len(after)
                possible[key] = after
    return steps


def _markov_indexes(history: History) -> dict[int, int]:
    """The index of each Markov key in the tuple of hidden values."""
    markov_keys = {outcomes.key for _, keys in history for outcomes in keys if outcomes.model == kernel.MARKOV}
    return {key: index for index, key in enumerate(sorted(markov_keys))}


def _with_key(states: dict[_State, _Weight], table: _Table, markov_index: int | None) -> dict[_State, _Weight]:
    """The states after one more key took its value at the instant; `markov_index` is None for other models."""
    after: dict[_State, _Weight] = defaultdict(float)
    for (hidden, partials, letter), weight in states.items():
        for value, emitted, p in table.get(0 if markov_index is None else hidden[markov_index], [(0, 0, 1.0)]):
            new_hidden = hidden
            if markov_index is not None:
                new_hidden = (*hidden[:markov_index], value, *hidden[markov_index + 1 :])
            after[new_hidden, partials, letter | emitted] += weight * p
    return after


def _table(outcomes: Outcomes, sets: Sets) -> _Table:
    """The possible values of a key at an instant; all events of a CERTAIN key happen, so it has one entry."""
    letters = {code: sets.letter_of(signature) for code, signature in outcomes.signatures.items()}
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
