"""The exact state of one chain: every possible one, with its probability.

A state is the value of each Markov key that has had an effect on the chain, and the set of partial results. Only states
that the data can reach are kept, so a chain of few keys is answered exactly for any query. There can be as many states
as subsets of the partial results, so the work is limited. All limits are counts that follow from the rows of the chain
up to the instant: the same data give the same method on any machine, in any bucket and for any split of a stream.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from anabranch.arrays import F64
from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.history import Outcomes, Past
from anabranch.pattern.machine import Partial, Signature

#: The most work of a chain: transitions of states, and pairs of a partial result and an event. About a second.
MOST_WORK = 300_000
#: What an instant adds to it, so that a small state is carried for any length of time: a few milliseconds.
WORK_PER_INSTANT = 2_000
#: The most states between two instants: what a stream saves.
MOST_STATES = 20_000

#: The values of the Markov keys, and the set of partial results.
State = tuple[tuple[int, ...], frozenset[Partial]]
#: The probability of a state; with PER, that of each count.
Weight = Any
#: A state, and the letter of the keys read so far at the instant.
_Reading = tuple[tuple[int, ...], frozenset[Partial], int]
#: For each previous value: the possible values, with their letters and probabilities.
_Table = dict[int, list[tuple[int, int, float]]]


class Sets(Protocol):
    """The sets of partial results of a query, or of several; see `SetMachine`."""

    def letter_of(self, signature: Signature) -> int:
        """The letter of one event; 0 if it matches no goal."""

    def work(self, state: frozenset[Partial], letter: int) -> int:
        """The work of a step."""

    def step(self, state: frozenset[Partial], letter: int, now: int) -> tuple[frozenset[Partial], int]:
        """The state after a letter, and whether the query is true at it: 1 or 0, or the set of those that are."""


@dataclass(slots=True)
class JointState:
    """The possible states of a chain between two instants.

    Attributes
    ----------
    axes : the index of each Markov key in the tuple of values
    states : the weight of each state
    accepted : with PER, the part of the last instant at which the query is true, until `settle`. For several queries,
        that at which any is
    work, instants : what the chain has taken so far
    """

    states: dict[State, Weight]
    axes: dict[int, int] = field(default_factory=dict)
    accepted: dict[State, Weight] = field(default_factory=dict)
    work: int = 0
    instants: int = 0

    @classmethod
    def start(cls, times: int) -> JointState:
        """No partial result, for sure; `times` is where the count of PER stops, 0 without PER."""
        return cls({((), frozenset()): no_count(times) if times else 1.0})

    def copy(self) -> JointState:
        """A state that is moved on separately."""
        return replace(self)

    @property
    def keys(self) -> Iterable[int]:
        """The Markov keys that have had an effect on the chain."""
        return self.axes.keys()

    def partials(self) -> set[Partial]:
        """Every partial result that the chain may have."""
        return {partial for partials in {partials for _, partials in self.states} for partial in partials}

    def forget(self, is_recent: Callable[[Partial], bool]) -> None:
        """Drop the partial results that began too long ago (WITHIN)."""
        states: dict[State, Weight] = {}
        for (values, partials), weight in self.states.items():
            state = values, frozenset(filter(is_recent, partials))
            states[state] = states[state] + weight if state in states else weight
        self.states = states

    def advance(self, sets: Sets, keys: Sequence[Outcomes], past: Past, factor: int, now: int = 0) -> dict[int, float]:
        """Process one instant and return the probability that the query is true at it (1).

        For several queries, it is that of each set of true ones (a bit mask) that is possible and not empty.

        Raises
        ------
        TooLarge
            If that is too much work; the state is not changed. The limits are `factor` times as high as usual.
            `now` is the time of the instant, with WITHIN.
        """
        _require(self._least_states(keys, past), factor * MOST_STATES)
        allowed = factor * (MOST_WORK + WORK_PER_INSTANT * (self.instants + 1))
        axes, work = dict(self.axes), self.work
        readings: dict[_Reading, Weight] = {(*state, 0): weight for state, weight in self.states.items()}
        for outcomes in keys:
            if outcomes.model == kernel.MARKOV and outcomes.key not in axes:
                axes[outcomes.key] = len(axes)
                before = past.of(outcomes.key)
                work += _require(len(readings) * len(before), allowed - work)
                readings = {
                    ((*values, value), partials, letter): weight * p
                    for (values, partials, letter), weight in readings.items()
                    for value, p in before.items()
                }
            table = table_of(outcomes, sets)
            work += _require(len(readings) * max(map(len, table.values()), default=1), allowed - work)
            readings = _with_key(readings, table, axes.get(outcomes.key))
        steps = {(partials, letter) for _, partials, letter in readings}
        work += _require(sum(sets.work(*step) for step in steps), allowed - work)
        after = _after(readings, {step: sets.step(*step, now) for step in steps})
        _require(sum(map(len, after.values())), factor * MOST_STATES)
        self.axes, self.work, self.instants = axes, work, self.instants + 1
        return self._accept(after)

    def _least_states(self, keys: Sequence[Outcomes], past: Past) -> int:
        """A lower bound of the states after an instant: keys are independent, so every combination of values is one."""
        sizes = {key: len({values[axis] for values, _ in self.states}) for key, axis in self.axes.items()}
        for outcomes in keys:
            if outcomes.model == kernel.MARKOV:
                axis = self.axes.get(outcomes.key)
                before = past.of(outcomes.key) if axis is None else {values[axis] for values, _ in self.states}
                alternatives = outcomes.alternatives()
                after = {value for previous in before for value, _ in alternatives.get(previous, [(0, 1.0)])}
                sizes[outcomes.key] = len(after)
        return math.prod(sizes.values())

    def _accept(self, after: dict[int, dict[State, Weight]]) -> dict[int, float]:
        """Take the weights after an instant, by what is true at it; returns the probability of each."""
        self.states, self.accepted = after.pop(0, {}), {}
        for states in after.values():
            for state, weight in states.items():
                self.accepted[state] = self.accepted[state] + weight if state in self.accepted else weight
        if not any(isinstance(weight, np.ndarray) for weight in self.accepted.values()):
            self.settle()
        return {true: float(np.sum(list(states.values()))) for true, states in after.items()}

    def settle(self, fresh: bool = False) -> None:
        """Count the last instant; if it is the first of a span (`fresh`), the counts so far are dropped."""
        states = _restarted(self.states) if fresh else self.states.copy()
        for state, weight in (_restarted(self.accepted) if fresh else self.accepted).items():
            counted = _one_more(weight) if isinstance(weight, np.ndarray) else weight
            states[state] = states.get(state, 0.0) + counted
        self.states, self.accepted = states, {}

    def counts(self) -> F64:
        """With PER: the probability of each count."""
        return np.asarray(np.sum(list(self.states.values()), axis=0))


def no_count(times: int) -> F64:
    """The distribution of a count that is 0."""
    return np.append(1.0, np.zeros(times))


def _one_more(counts: F64) -> F64:
    """The distribution of a count that is increased by 1; it stops at the last one."""
    more = np.append(0.0, counts[:-1])
    more[-1] += counts[-1]
    return more


def _restarted(states: dict[State, Weight]) -> dict[State, Weight]:
    """The same states, all with the count 0."""
    return {state: no_count(len(weight) - 1) * weight.sum() for state, weight in states.items()}


def _require(needed: int, left: int) -> int:
    """The work that is needed, if as much is left."""
    if needed > left:
        raise TooLarge("the joint state of a chain is too large")
    return needed


def _after(
    readings: dict[_Reading, Weight], steps: dict[tuple[frozenset[Partial], int], tuple[frozenset[Partial], int]]
) -> dict[int, dict[State, Weight]]:
    """The states after an instant, by what is true at it."""
    after: dict[int, dict[State, Weight]] = defaultdict(lambda: defaultdict(float))
    for (values, partials, letter), weight in readings.items():
        following, true = steps[partials, letter]
        after[true][values, following] = after[true][values, following] + weight
    return {true: dict(states) for true, states in after.items()}


def _with_key(readings: dict[_Reading, Weight], table: _Table, axis: int | None) -> dict[_Reading, Weight]:
    """The readings after one more key took its value at the instant; `axis` is None for other models than MARKOV."""
    after: dict[_Reading, Weight] = defaultdict(float)
    for (values, partials, letter), weight in readings.items():
        for value, emitted, p in table.get(0 if axis is None else values[axis], [(0, 0, 1.0)]):
            new_values = values if axis is None else (*values[:axis], value, *values[axis + 1 :])
            reading = new_values, partials, letter | emitted
            after[reading] = after[reading] + weight * p
    return after


def table_of(outcomes: Outcomes, sets: Sets) -> _Table:
    """The possible values of a key at an instant; all events of a CERTAIN key happen, so it has one entry."""
    letters = {code: sets.letter_of(signature) for code, signature in outcomes.signatures.items()}
    if outcomes.model == kernel.CERTAIN:
        union = 0
        for value in outcomes.value.tolist():
            union |= letters.get(value, 0)
        return {0: [(0, union, 1.0)]}
    return {
        previous: [(value, letters.get(value, 0), p) for value, p in alternatives]
        for previous, alternatives in outcomes.alternatives().items()
    }
