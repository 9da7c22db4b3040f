"""The most likely history in which a PATTERN is true at an instant, and the most likely one in which it is not.

The carried chains of `joint.py` add the probabilities of all histories that lead to a state. Here a state keeps the
most likely of them instead (the algorithm of Viterbi, on the values of the Markov keys and the sets of partial
results). A history has the keys that match some goal; all other keys make no difference.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from anabranch.pattern import kernel
from anabranch.pattern.chain import Carrying
from anabranch.pattern.history import Histories, Outcomes
from anabranch.pattern.intake import Intake
from anabranch.pattern.joint import table_of
from anabranch.pattern.machine import Machine, Partial, SetMachine
from anabranch.pattern.signatures import Signed
from anabranch.pattern.spec import GroupSpec

S = TypeVar("S", bound=Hashable)

#: The most states between two instants; if there are more, the most likely ones are kept.
MOST_STATES = 5_000


@dataclass(frozen=True, slots=True)
class Moment:
    """What one key was at one instant: its value, None for *nothing*; `goals` are those that it can be (from 1)."""

    t: int
    stream: int
    key: tuple[object, ...]
    value: tuple[object, ...] | None
    goals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Likeliest:
    """A history, with the natural logarithm of its probability; `exact` if no other can be more likely."""

    log_p: float
    moments: tuple[Moment, ...]
    exact: bool


class _Step(NamedTuple):
    """The end of a path: the value that a key took, and what led to it."""

    before: _Step | None
    t: int
    outcomes: Outcomes
    value: int
    partials: frozenset[Partial]


class _Best(NamedTuple):
    """The most likely way to a state."""

    log_p: float
    path: _Step | None


#: The values of the Markov keys, the set of partial results, and the letter of the keys read so far at an instant.
_Reading = tuple[tuple[int, ...], frozenset[Partial], int]


class _Chain:
    """The most likely paths of one chain, moved from instant to instant."""

    def __init__(self, carrying: Carrying, sets: SetMachine) -> None:
        self._carrying, self._sets = carrying, sets
        self._axes: dict[int, int] = {}
        self._states: dict[tuple[tuple[int, ...], frozenset[Partial]], _Best] = {((), frozenset()): _Best(0.0, None)}
        self.exact = True

    def advance(self, t: int, keys: Iterable[Outcomes]) -> tuple[_Best | None, _Best | None]:
        """Process one instant; returns the best paths on which the query is true at it, and is not."""
        readings = {(*state, 0): best for state, best in self._recent(t).items()}
        for outcomes in keys:
            readings = self._with_key(readings, outcomes, t)
        best: dict[bool, _Best] = {}
        self._states = {}
        now = t if self._carrying.machine.timed else 0
        for (values, partials, letter), way in readings.items():
            after, true = self._sets.step(partials, letter, now)
            _improve(self._states, (values, after), way)
            _improve(best, bool(true), way)
        return best.get(True), best.get(False)

    def _recent(self, t: int) -> dict[tuple[tuple[int, ...], frozenset[Partial]], _Best]:
        """The states without the partial results that began too long ago (WITHIN)."""
        if not self._carrying.machine.timed:
            return self._states
        is_recent = self._carrying.recent({partial for _, partials in self._states for partial in partials}, t)
        states: dict[tuple[tuple[int, ...], frozenset[Partial]], _Best] = {}
        for (values, partials), way in self._states.items():
            _improve(states, (values, frozenset(filter(is_recent, partials))), way)
        return states

    def _with_key(self, readings: dict[_Reading, _Best], outcomes: Outcomes, t: int) -> dict[_Reading, _Best]:
        """The readings after one more key took its value."""
        axis = None
        if outcomes.model == kernel.MARKOV:
            if outcomes.key not in self._axes:
                self._axes[outcomes.key] = len(self._axes)
                readings = {((*values, 0), *rest): way for (values, *rest), way in readings.items()}
            axis = self._axes[outcomes.key]
        table, certain = _distinct(table_of(outcomes, self._sets)), outcomes.model == kernel.CERTAIN
        after: dict[_Reading, _Best] = {}
        for (values, partials, letter), way in readings.items():
            for value, emitted, p in table.get(0 if axis is None else values[axis], [(0, 0, 1.0)]):
                new_values = values if axis is None else (*values[:axis], value, *values[axis + 1 :])
                path = way.path if certain else _Step(way.path, t, outcomes, value, partials)
                _improve(after, (new_values, partials, letter | emitted), _Best(way.log_p + math.log(p), path))
        if len(after) > MOST_STATES:
            self.exact = False
            after = dict(sorted(after.items(), key=lambda item: -item[1].log_p)[:MOST_STATES])
        return after


def _distinct(table: Mapping[int, Sequence[tuple[int, int, float]]]) -> dict[int, list[tuple[int, int, float]]]:
    """The table with each value once: rows that differ only in p are added, as is what they leave to *nothing*."""
    distinct = {}
    for previous, alternatives in table.items():
        total: dict[tuple[int, int], float] = defaultdict(float)
        for value, letter, p in alternatives:
            total[value, letter] += p
        distinct[previous] = [(value, letter, p) for (value, letter), p in total.items()]
    return distinct


def _improve(states: dict[S, _Best], state: S, way: _Best) -> None:
    """Keep the more likely way to a state."""
    known = states.get(state)
    if known is None or way.log_p > known.log_p:
        states[state] = way


def likeliest(
    spec: GroupSpec, packets: Sequence[tuple[int, bytes]], watermark: int, t: int
) -> tuple[Likeliest | None, Likeliest | None]:
    """The most likely histories up to `t` in which the query is true at `t`, and is not; None if there is none.

    The query has no grouping variables. Without chains, or with several, it is true if it is true for some chain: the
    first history is that of one chain, the second one that of all.
    """
    intake = Intake(spec)
    received = intake.receive(packets, watermark, ended=True)
    signed = Signed.of(intake, spec.analysis, received)
    machine = Machine(spec.analysis, spec.relations)
    carrying = Carrying(spec.analysis.query, machine, spec.time_kind)
    names = _Names(spec, intake, machine)
    ways = [
        _ways(_Chain(carrying, carrying.sets), instants, t) for instants in _instants(intake, signed, spec, t)
    ]
    return _best_true(ways, names), _best_false(ways, names)


#: For one chain: the best path on which it is true, the best on which it is not, and whether they are exact.
_Ways = tuple[_Best | None, _Best | None, bool]


def _instants(
    intake: Intake, signed: Signed, spec: GroupSpec, t: int
) -> Iterator[Sequence[tuple[int, Sequence[Outcomes]]]]:
    """The history of each chain up to `t`, without the keys that match no goal."""
    received, seed = signed.received, spec.analysis.query.seed
    histories = Histories(intake, received, signed.signature, signed.signatures, seed)
    for start, end in zip(received.starts[:-1], received.starts[1:], strict=True):
        rows = received.used[start:end]
        rows = rows[received.rows.t[rows] <= t]
        rows = rows[np.isin(received.key[rows], received.key[rows[signed.mask[rows] != 0]])]
        if len(rows):
            yield histories.of(rows)


def _ways(chain: _Chain, instants: Sequence[tuple[int, Sequence[Outcomes]]], t: int) -> _Ways:
    true, false = None, _Best(0.0, None)
    for instant, keys in instants:
        true, false = chain.advance(instant, keys)
        if instant != t:
            # The query is about t; at an instant without events of the chain it is not true.
            true, false = None, max(filter(None, (true, false)), key=lambda way: way.log_p)
    return true, false, chain.exact


def _best_true(ways: Sequence[_Ways], names: _Names) -> Likeliest | None:
    """The history of the chain which is true in the most likely world of all chains in which one is."""

    def advantage(way: _Ways) -> float:
        true, false, _ = way
        assert true is not None
        return true.log_p - max(true.log_p, false.log_p if false else -math.inf)

    possible = [way for way in ways if way[0] is not None]
    if not possible:
        return None
    true, _, _ = max(possible, key=advantage)
    assert true is not None
    return Likeliest(true.log_p, names.moments([true]), all(exact for _, _, exact in ways))


def _best_false(ways: Sequence[_Ways], names: _Names) -> Likeliest | None:
    false = [way for _, way, _ in ways if way is not None]
    if len(false) < len(ways):
        return None
    log_p = math.fsum(way.log_p for way in false)
    return Likeliest(log_p, names.moments(false), all(exact for _, _, exact in ways))


class _Names:
    """Turns the numbers of keys and values back into what they stand for."""

    def __init__(self, spec: GroupSpec, intake: Intake, machine: Machine) -> None:
        self._tests, self._machine, self._n_streams = spec.analysis.tests, machine, intake.n_streams
        n_values = [len(layout.values) for layout in spec.layouts]
        self._keys = [_rows(intake.key_columns(stream)) for stream in range(intake.n_streams)]
        # A stream without value columns has one unnamed column in its dictionary.
        self._values = [_rows(intake.value_columns(stream)[: n_values[stream]]) for stream in range(intake.n_streams)]
        self._widths = n_values

    def moments(self, ways: Iterable[_Best]) -> tuple[Moment, ...]:
        """What the keys of paths were, by time."""
        found = []
        for way in ways:
            step = way.path
            while step is not None:
                found.append(self._moment(step))
                step = step.before
        return tuple(sorted(found, key=lambda moment: moment.t))

    def _moment(self, step: _Step) -> Moment:
        index, stream = divmod(step.outcomes.key, self._n_streams)
        signature = step.outcomes.signatures.get(step.value)
        goals: set[int] = set()
        if signature is not None:
            effective = self._machine.effective(step.partials, signature)
            goals = {test.goal + 1 for test, match in zip(self._tests, effective, strict=True) if match and match.accepted}
        value = None if step.value == 0 else self._values[stream][step.value] if self._widths[stream] else ()
        return Moment(step.t, stream, self._keys[stream][index], value, tuple(sorted(goals)))


def _rows(columns: Sequence[pa.Array]) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
