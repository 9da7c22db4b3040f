"""The exact answers of one chain by its joint state: the values of its Markov keys with the set of partial results.

Only what the data can reach is held, with its probability, so a few keys are answered exactly whatever the query joins.
Beyond a number of steps it gives up: the states may be as many as the subsets of all partial results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from anabranch.errors import TooLarge
from anabranch.pattern import kernel
from anabranch.pattern.history import History, Outcomes
from anabranch.pattern.machine import Partial, SetMachine

#: The most hidden states that are moved; a second or so.
MOST_STEPS = 300_000

#: The values of the Markov keys, what the chain has found, and what happens at the instant as far as it was looked at.
_State = tuple[tuple[int, ...], frozenset[Partial], int]
#: From a previous value: the values that can follow, with their letters and probabilities.
_Table = dict[int, list[tuple[int, int, float]]]


def joint_answers(sets: SetMachine, history: History) -> Iterator[tuple[int, float]]:
    """The times at which the query can be true of a chain, with the probabilities.

    Raises
    ------
    TooLarge
        If it takes more than `MOST_STEPS` steps, or the machine gives up.
    """
    places = _markov_places(history)
    states: dict[_State, float] = {((0,) * len(places), sets.start, 0): 1.0}
    known: dict[tuple[frozenset[Partial], int], tuple[frozenset[Partial], bool]] = {}
    steps = 0
    for t, keys in history:
        for each in keys:
            table = _table(each, sets)
            steps += len(states) * max(map(len, table.values()), default=1)
            if steps > MOST_STEPS:
                raise TooLarge(f"the joint state takes more than {MOST_STEPS:,} steps")
            states = _happens(states, table, places.get(each.key))
        after: dict[_State, float] = defaultdict(float)
        true = 0.0
        for (hidden, found, letter), weight in states.items():
            if (found, letter) not in known:
                known[found, letter] = sets.step(found, letter)
            found, accepted = known[found, letter]
            after[hidden, found, 0] += weight
            true += weight if accepted else 0.0
        states = after
        if true > 0.0:
            yield t, min(true, 1.0)


def _markov_places(history: History) -> dict[int, int]:
    """The place of each Markov key among the hidden values."""
    keys = {each.key for _, keys in history for each in keys if each.model == kernel.MARKOV}
    return {key: place for place, key in enumerate(sorted(keys))}


def _happens(states: dict[_State, float], table: _Table, place: int | None) -> dict[_State, float]:
    """One key takes a value: the hidden values and letters that follow."""
    after: dict[_State, float] = defaultdict(float)
    for (hidden, found, letter), weight in states.items():
        for value, emitted, p in table.get(0 if place is None else hidden[place], [(0, 0, 1.0)]):
            moved = hidden if place is None else (*hidden[:place], value, *hidden[place + 1 :])
            after[moved, found, letter | emitted] += weight * p
    return after


def _table(outcomes: Outcomes, sets: SetMachine) -> _Table:
    """What a key can do at an instant; several certain events of one key happen together."""
    letters = {code: sets.letter_of(signature) for code, signature in outcomes.signatures.items()}
    values = outcomes.value.tolist()
    if outcomes.model == kernel.CERTAIN:
        together = 0
        for value in values:
            together |= letters.get(value, 0)
        return {0: [(0, together, 1.0)]}
    table: _Table = defaultdict(list)
    left: dict[int, float] = defaultdict(lambda: 1.0)
    for prev, value, p in zip(outcomes.prev.tolist(), values, outcomes.p.tolist(), strict=True):
        if p > 0.0:
            table[prev].append((value, letters.get(value, 0), p))
            left[prev] -= p
    for prev, rest in left.items():
        if rest > kernel.ROUNDING:
            table[prev].append((0, 0, rest))
    return dict(table)
