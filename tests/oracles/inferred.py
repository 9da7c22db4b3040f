"""The oracle of JOINT and LAG: every path of every key, weighed by the model and by the readings that count.

The answer at t is given the readings of all keys up to t + lag. So for each t, the paths up to t + lag are enumerated,
with the product of the initial probability, the transitions and the likelihoods. Their share in which the query is true
at t is the answer. With EXPIRE, a key has several *stays*, which are independent of each other.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.pattern.query import BoundPattern
from tests.oracles import hmm
from tests.oracles.pattern import Event, Matcher, answer_of, results
from tests.untraced import untraced


@dataclass(frozen=True)
class Stay:
    """A key from its first step on, with its model.

    `locations` are the names of the model's locations, `initial` and `transition` its tables. `likelihoods` is (steps,
    locations), P[readings of the step | location].
    """

    key: str
    first: int
    likelihoods: Any
    locations: Sequence[str]
    initial: Any
    transition: Any


def stays(readings: Iterable[tuple[str, int]], last: int, expire: float = math.inf) -> list[tuple[str, int, int]]:
    """The key, the first and the last step of each stay: from a reading on, until `expire` steps after the last one."""
    by_key: dict[str, set[int]] = defaultdict(set)
    for key, step in readings:
        by_key[key].add(step)
    found = []
    for key, steps in by_key.items():
        first = None
        for step in range(min(steps), last + 1):
            recent = [read for read in steps if step - expire <= read <= step]
            if recent and first is None:
                first = step
            # A reading begins a new stay where the previous one is too old.
            previous = max((read for read in steps if read < step), default=step)
            if step in steps and first is not None and first < step and step - previous > expire:
                found.append((key, first, step - 1))
                first = step
            if not recent and first is not None:
                found.append((key, first, step - 1))
                first = None
        if first is not None:
            found.append((key, first, last))
    return found


def worlds(units: Sequence[Stay], stream: str, t: int, lag: int) -> Iterator[tuple[tuple[Event, ...], float]]:
    """Every history of all keys up to t, with its probability given the readings up to t + lag."""
    histories = []
    for unit in units:
        n_read = min(t + lag - unit.first + 1, len(unit.likelihoods))
        if unit.first > t:
            continue
        known, _ = hmm.without_impossible(unit.initial, unit.transition, unit.likelihoods)
        prefixes: dict[tuple[int, ...], float] = defaultdict(float)
        for path, p in hmm.posterior(hmm.paths(unit.initial, unit.transition, known[:n_read])).items():
            prefixes[path[: t - unit.first + 1]] += p
        histories.append(
            [
                ([Event(stream, (unit.key, unit.locations[x]), unit.first + n) for n, x in enumerate(path)], p)
                for path, p in prefixes.items()
            ]
        )
    for combination in itertools.product(*histories):
        events = tuple(itertools.chain.from_iterable(path for path, _ in combination))
        yield events, math.prod(p for _, p in combination)


@untraced
def answers(query: BoundPattern, units: Sequence[Stay], lag: int = 0) -> dict[Hashable, float]:
    """The probability of every answer of a query over one inferred stream."""
    (stream,) = query.streams
    matcher = Matcher({})
    found: dict[Hashable, float] = defaultdict(float)
    for t in sorted({unit.first + n for unit in units for n in range(len(unit.likelihoods))}):
        for world, p in worlds(units, stream.name, t, lag):
            true = {result for result in results(query, world, matcher) if result.t == t}
            for answer in {answer_of(query, result) for result in true}:
                found[answer] += p
    return dict(found)


@untraced
def counts(query: BoundPattern, units: Sequence[Stay], length: int, times: int, lag: int = 0) -> dict[Hashable, float]:
    """P[at least `times` answers of a window are true | readings up to its last step, and the lag], by group."""
    (stream,) = query.streams
    matcher = Matcher({})
    found: dict[Hashable, float] = defaultdict(float)
    steps = sorted({unit.first + n for unit in units for n in range(len(unit.likelihoods))})
    for window in sorted({step // length for step in steps}):
        t = max(step for step in steps if step // length == window)
        for world, p in worlds(units, stream.name, t, lag):
            true = {answer_of(query, result) for result in results(query, world, matcher)}
            number: dict[Hashable, int] = defaultdict(int)
            for answer in true:
                instant, *group = answer if isinstance(answer, tuple) else (answer,)
                if instant // length == window:
                    number[window * length, (window + 1) * length, *group] += 1
            for row, n in number.items():
                if n >= times:
                    found[row] += p
    return dict(found)
