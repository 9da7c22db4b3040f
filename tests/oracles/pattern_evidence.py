"""The oracle of explanations of PATTERN: it enumerates the worlds, and hides events or compares whole histories.

- A piece of evidence is what a key was at an instant. Without it, the query does not see the events of this key at this
  instant, in no world; all else is as before.
- A history says what some keys were at all their instants up to that of the answer. Its probability is that of the
  worlds that agree with it. It is one in which the answer is true if the answer is true in all of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from anabranch.pattern.query import BoundPattern
from tests.oracles.conditions import Relations
from tests.oracles.pattern import Event, Matcher, Row, answer_of, results, worlds

#: What is hidden or assigned: the name of a stream in lower case, the key, and the time.
Slot = tuple[str, tuple[Any, ...], Any]


def slot_of(event: Event, query: BoundPattern) -> Slot:
    """The key and instant of an event."""
    stream = next(stream for stream in query.streams if stream.name == event.stream)
    return stream.name.lower(), event.values[: len(stream.keys)], event.t


def value_of(event: Event, query: BoundPattern) -> tuple[Any, ...]:
    """The value of an event."""
    stream = next(stream for stream in query.streams if stream.name == event.stream)
    return event.values[len(stream.keys) :]


def probability_without(
    query: BoundPattern, rows: Mapping[str, Iterable[Row]], relations: Relations, answer: Hashable, hidden: set[Slot]
) -> float:
    """The probability of an answer if the query does not see some keys at some instants."""

    def visible(world: Iterable[Event]) -> tuple[Event, ...]:
        return tuple(event for event in world if slot_of(event, query) not in hidden)

    matcher = Matcher(relations)
    return math.fsum(p for world, p in worlds(query.streams, rows) if _is_true(query, visible(world), matcher, answer))


def _is_true(query: BoundPattern, world: tuple[Event, ...], matcher: Matcher, answer: Hashable) -> bool:
    return answer in {answer_of(query, result) for result in results(query, world, matcher)}


def histories_of(
    query: BoundPattern, rows: Mapping[str, Iterable[Row]], relations: Relations, answer: Hashable, slots: set[Slot]
) -> dict[frozenset[tuple[Slot, tuple[Any, ...]]], tuple[float, set[bool]]]:
    """Every history of some keys: its probability, and whether the answer is true or not in the worlds of it."""
    matcher = Matcher(relations)
    weights: dict[Any, list[float]] = defaultdict(list)
    truths: dict[Any, set[bool]] = defaultdict(set)
    for world, p in worlds(query.streams, rows):
        assigned = ((slot_of(event, query), value_of(event, query)) for event in world)
        history = frozenset(pair for pair in assigned if pair[0] in slots)
        weights[history].append(p)
        if p > 0:
            truths[history].add(_is_true(query, world, matcher, answer))
    return {history: (math.fsum(parts), truths[history]) for history, parts in weights.items()}


