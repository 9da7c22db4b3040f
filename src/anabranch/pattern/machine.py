"""The general machine of PATTERN: it updates the set of partial results exactly as the language defines it.

A *partial result* is a match of a prefix of the query, with the values of the variables that later goals or conditions
use. It either waits for a match of the next goal, or (a Kleene goal) may be unfolded again. A match of a NOT goal ends
the results that wait for the goal after it. With WITHIN, a partial result also has the number of the instant of its
first event. Of two that differ in this number only, both go on alike, so the later one is enough. The machine runs
every query, whatever variables its goals share and its conditions join. It runs many worlds at once: each partial
result and each event has a *mask* of the worlds in which it exists. A mask is anything with `&`, `|` and `~`: the bits
of machine words when worlds are sampled, a single bit when states are explored for the automaton.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from anabranch.binding.typed import Reference, Typed, walk
from anabranch.columns.conditions import ARROW_TYPES, Relations, holds
from anabranch.errors import TooLarge
from anabranch.pattern.analysis import PatternAnalysis

Mask = Any
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result: `goal` (0-based) was matched last. If `repeating`, it may be unfolded again; else it waits.

    `began` is the number of the instant of its first event; 0 without WITHIN.
    """

    goal: int
    repeating: bool
    values: Values
    began: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """An event that matches a goal: whether the conditions on it alone accept it, and the values of its variables."""

    accepted: bool
    values: Values


#: How an event matches each alternative of each goal (`PatternAnalysis.tests`), None if it does not. The machine uses
#: nothing else of an event.
Signature = tuple[Match | None, ...]


class Transitions(Protocol):
    """What carried chains and automata need of a `Machine`, or of the machines of a combination."""

    @property
    def timed(self) -> bool:
        """Whether there is a WITHIN."""

    def within_of(self, goal: int) -> float | None:
        """The WITHIN that limits the partial results of a goal; None without it."""

    def advance(
        self,
        partials: Mapping[Partial, Mask],
        events: Mapping[Signature, Mask],
        everywhere: Mask,
        now: int,
        oldest: int,
    ) -> tuple[dict[Partial, Mask], Mask]:
        """The partial results after an instant, and the worlds in which the query is true; a tuple for several."""

    def is_last(self, number: int) -> bool:
        """Whether an alternative, by its index in a signature, ends a match."""

    def effective(self, partials: Iterable[Partial], signature: Signature) -> Signature:
        """A signature without the matches that have no effect on these partial results."""


class Machine:
    """The transitions of one query; see the module.

    Parameters
    ----------
    analysis : PatternAnalysis
    relations : lower-case relation name to its rows
    """

    def __init__(self, analysis: PatternAnalysis, relations: Relations) -> None:
        goals, kept = analysis.query.goals, analysis.kept
        self.n_goals = len(goals)
        self._within = analysis.query.within
        self._alternatives = [
            [index for index, test in enumerate(analysis.tests) if test.goal == number] for number in range(len(goals))
        ]
        #: For each goal, the goal whose results wait for it, or are ended by it if it is a NOT.
        self._previous = analysis.previous
        self._moves: list[list[_Move]] = []
        for number, (goal, names) in enumerate(zip(goals, kept, strict=True)):
            keeps: dict[bool, tuple[str, ...]] = {}
            if not goal.absent:
                keeps = {False: names.waiting} if number < len(goals) - 1 else {}
            if goal.kleene:
                keeps[True] = names.repeating
            held = kept[self._previous[number]].waiting if number else ()
            joins = analysis.tests[self._alternatives[number][0]].joins
            moves = [_Move(number, held, names.exposed, keeps, joins, relations)]
            if goal.kleene:
                moves.append(_Move(number, names.repeating, names.exposed, keeps, joins, relations))
            self._moves.append(moves)

    @property
    def timed(self) -> bool:
        """Whether the query has WITHIN."""
        return self._within is not None

    def within_of(self, goal: int) -> float | None:
        """The WITHIN of the query, whatever the goal."""
        return self._within

    def advance(
        self,
        partials: Mapping[Partial, Mask],
        events: Mapping[Signature, Mask],
        everywhere: Mask,
        now: int = 0,
        oldest: int = 0,
    ) -> tuple[dict[Partial, Mask], Mask]:
        """Process one instant.

        Parameters
        ----------
        partials : the partial results before the instant, each with its worlds
        events : the events of the instant, each with its worlds
        everywhere : the mask of all worlds
        now, oldest : with WITHIN, the number of the instant, and that of the earliest one which is not too long ago.
            Instants can be numbered in any way that increases with time.

        Returns
        -------
        The partial results after the instant, and the worlds in which the query is true at it.
        """
        if self.timed:
            partials = {partial: mask for partial, mask in partials.items() if partial.began >= oldest}
        after = dict(partials)
        true = everywhere & ~everywhere
        new_partials: list[tuple[Partial, Mask]] = []
        for goal, moves in enumerate(self._moves):
            matches = self._matches(goal, events)
            if not matches:
                continue
            for move, sources in zip(moves, self._sources(goal, partials, everywhere), strict=False):
                for source, worlds, consumed, hits in move.take(sources, matches, now if self.timed else 0):
                    if source is not None:
                        after[source] = after[source] & ~consumed
                    for results, mask in hits:
                        both = worlds & mask
                        new_partials += [(result, both) for result in results]
                        if goal == self.n_goals - 1:
                            true = true | both
        for partial, mask in new_partials:
            after[partial] = after[partial] | mask if partial in after else mask
        return _without_earlier(after) if self.timed else after, true

    def is_last(self, number: int) -> bool:
        """Whether an alternative, by its index in a signature, is one of the last goal."""
        return number in self._alternatives[-1]

    def effective(self, partials: Iterable[Partial], signature: Signature) -> Signature:
        """A signature without the matches that have no effect on these partial results.

        A match has an effect if it extends or ends a partial result, or begins one.
        """
        waiting, repeating = set[int](), set[int]()
        for partial in partials:
            (repeating if partial.repeating else waiting).add(partial.goal)
        kept: list[Match | None] = [None] * len(signature)
        for goal, alternatives in enumerate(self._alternatives):
            is_awaited = goal in repeating or self._previous[goal] in waiting
            for number in alternatives:
                match = signature[number]
                if match is not None and (is_awaited or (goal == 0 and match.accepted)):
                    kept[number] = match
        return tuple(kept)

    def _matches(self, goal: int, events: Mapping[Signature, Mask]) -> dict[Match, Mask]:
        """The matches of a goal among some events, each with its worlds."""
        matches: dict[Match, Mask] = {}
        for signature, mask in events.items():
            for alternative in self._alternatives[goal]:
                match = signature[alternative]
                if match is not None:
                    matches[match] = matches[match] | mask if match in matches else mask
        return matches

    def _sources(
        self, goal: int, partials: Mapping[Partial, Mask], everywhere: Mask
    ) -> list[list[tuple[Partial | None, Mask]]]:
        """The partial results that a match of a goal can extend: those that wait for it, and unfoldings of the goal."""
        waiting: list[tuple[Partial | None, Mask]]
        if goal == 0:
            waiting = [(None, everywhere)]
        else:
            waiting = [
                (partial, mask)
                for partial, mask in partials.items()
                if partial.goal == self._previous[goal] and not partial.repeating
            ]
        repeating: list[tuple[Partial | None, Mask]]
        repeating = [
            (partial, mask) for partial, mask in partials.items() if partial.goal == goal and partial.repeating
        ]
        return [waiting, repeating]


def _without_earlier(partials: Mapping[Partial, Mask]) -> dict[Partial, Mask]:
    """The partial results without those of which the same world has one that differs only in its later beginning."""
    later: dict[tuple[int, bool, Values], Mask] = {}
    kept: dict[Partial, Mask] = {}
    for partial in sorted(partials, key=lambda partial: partial.began, reverse=True):
        mask, same = partials[partial], (partial.goal, partial.repeating, partial.values)
        kept[partial] = mask & ~later[same] if same in later else mask
        later[same] = later[same] | mask if same in later else mask
    return kept


#: A step without pairs of a partial result and an event costs about as much as four pairs.
LEAST_WORK = 4
_TOO_MANY = "there are too many sets of partial results"
#: The steps of earlier chains that are remembered.
_MOST_KNOWN_STEPS = 500_000


class SetMachine:
    """The general machine as a machine of the automaton: a state is the set of partial results of one world.

    A letter has one bit per event that happens: the bit of its signature. With WITHIN, the instant of a letter has the
    number 0, so partial results began at instants 0, -1, ...; `tick` makes them older.

    Parameters
    ----------
    machine : Transitions
    most_work : int
        How many pairs of a partial result and an event are tried for one chain before TooLarge is raised: there can be
        as many states as sets of partial results.
    """

    start: frozenset[Partial] = frozenset()

    def __init__(self, machine: Transitions, most_work: int) -> None:
        self._machine = machine
        self._most_work = self._work_left = most_work
        self._signatures: list[Signature] = []
        self._numbers: dict[Signature, int] = {}
        self._known: dict[tuple[frozenset[Partial], int, int], tuple[frozenset[Partial], int]] = {}

    def next_chain(self) -> None:
        """Begin to count the work of another chain; steps of earlier chains stay known."""
        self._work_left = self._most_work
        if len(self._known) > _MOST_KNOWN_STEPS:
            self._known.clear()

    @staticmethod
    def work(state: frozenset[Partial], letter: int) -> int:
        """The work of a step."""
        return LEAST_WORK + (1 + len(state)) * letter.bit_count()

    def letter_of(self, signature: Signature) -> int:
        """The letter of one event; 0 if it matches no goal."""
        if not any(signature):
            return 0
        if signature not in self._numbers:
            self._numbers[signature] = len(self._signatures)
            self._signatures.append(signature)
        return 1 << self._numbers[signature]

    @staticmethod
    def tick(state: frozenset[Partial], reach: int) -> frozenset[Partial]:
        """The partial results at the next instant, from which the `reach` instants before are not too long ago."""
        return frozenset(replace(partial, began=partial.began - 1) for partial in state if partial.began > -reach)

    def step(self, state: frozenset[Partial], letter: int, now: int = 0) -> tuple[frozenset[Partial], int]:
        """The partial results after a letter, and whether the query is true at it; of several, the set of true ones.

        With WITHIN, `now` is the number of the instant; the state has no partial results that began too long ago.

        Raises
        ------
        TooLarge
            If all steps together need more than `most_work`.
        """
        # Known steps count too: whether a chain is too
        # large must not depend on other chains.
        self._work_left -= self.work(state, letter)
        if self._work_left < 0:
            raise TooLarge(_TOO_MANY)
        if (state, letter, now) not in self._known:
            events = {self._signatures[number]: 1 for number in _bits(letter)}
            oldest = min((partial.began for partial in state), default=now)
            after, true = self._machine.advance(dict.fromkeys(state, 1), events, 1, now, oldest)
            partials = frozenset(partial for partial, mask in after.items() if mask)
            self._known[state, letter, now] = partials, _as_set(true)
        return self._known[state, letter, now]


def _as_set(true: Mask) -> int:
    """Whether a query is true in a single world: 1 or 0. Of several, a bit for each."""
    return sum(bool(mask) << number for number, mask in enumerate(true if isinstance(true, tuple) else (true,)))


def _bits(letter: int) -> Iterator[int]:
    """The numbers of the bits of a letter."""
    while letter:
        lowest = letter & -letter
        yield lowest.bit_length() - 1
        letter ^= lowest


class _Move:
    """Extends one kind of partial result (variables `held`) by a match of one goal (variables `exposed`).

    `keeps` has the variables of the new partial results, by whether they are repeating.
    """

    def __init__(
        self,
        goal: int,
        held: tuple[str, ...],
        exposed: tuple[str, ...],
        keeps: dict[bool, tuple[str, ...]],
        joins: tuple[Typed, ...],
        relations: Relations,
    ) -> None:
        self._goal = goal
        common = [name for name in exposed if name in held]
        self._held_join = [held.index(name) for name in common]
        self._match_join = [exposed.index(name) for name in common]
        self._keeps = {repeating: _origins(names, held, exposed) for repeating, names in keeps.items()}
        self._joins = [_Join(condition, held, exposed, relations) for condition in joins]

    def take(
        self, sources: Iterable[tuple[Partial | None, Mask]], matches: Mapping[Match, Mask], now: int
    ) -> Iterable[tuple[Partial | None, Mask, Mask, list[tuple[list[Partial], Mask]]]]:
        """Extend the sources whose values agree with a match.

        For each of them: the source, its worlds, the worlds in which it is consumed, and the new partial results with
        the worlds of the match. Results without a source begin `now`.
        """
        agreeing: dict[Values, list[tuple[Match, Mask]]] = defaultdict(list)
        for match, mask in matches.items():
            joined = tuple(match.values[index] for index in self._match_join)
            if None not in joined:  # NULL equals nothing
                agreeing[joined].append((match, mask))
        consumed = {joined: _union(mask for _, mask in candidates) for joined, candidates in agreeing.items()}
        for source, worlds in sources:
            values, began = (source.values, source.began) if source is not None else ((), now)
            joined = tuple(values[index] for index in self._held_join)
            if joined in agreeing:
                accepted = [(match, mask) for match, mask in agreeing[joined] if match.accepted]
                for join in self._joins:
                    holds_for = join.holds(values, [match.values for match, _ in accepted])
                    accepted = [candidate for candidate, true in zip(accepted, holds_for, strict=True) if true]
                hits = [(self._results(values, match.values, began), mask) for match, mask in accepted]
                yield source, worlds, consumed[joined], hits

    def _results(self, held: Values, match: Values, began: int) -> list[Partial]:
        return [
            Partial(self._goal, repeating, _chosen(origins, held, match), began)
            for repeating, origins in self._keeps.items()
        ]


#: The origin of a value: (True, index in the match) or (False, index in the source).
_Origin = tuple[bool, int]


def _origins(names: Iterable[str], held: tuple[str, ...], exposed: tuple[str, ...]) -> list[_Origin]:
    """Where the value of each variable comes from: the match if it has the variable, else the source."""
    return [(True, exposed.index(name)) if name in exposed else (False, held.index(name)) for name in names]


def _chosen(origins: Iterable[_Origin], held: Values, match: Values) -> Values:
    """The values at the origins, from the values of a source and of a match."""
    return tuple(match[index] if in_match else held[index] for in_match, index in origins)


def _union(masks: Iterable[Mask]) -> Mask:
    union, *others = masks
    for mask in others:
        union = union | mask
    return union


class _Join:
    """A condition on variables of a source and of a match, evaluated once per combination of values."""

    def __init__(self, condition: Typed, held: tuple[str, ...], exposed: tuple[str, ...], relations: Relations) -> None:
        self._condition = condition
        self._relations = relations
        kinds = {node.name: node.type for node in walk(condition) if isinstance(node, Reference)}
        self._names = sorted(kinds)
        self._types = [ARROW_TYPES[kinds[name]] for name in self._names]
        self._origins = _origins(self._names, held, exposed)
        self._known: dict[Values, bool] = {}

    def holds(self, held: Values, matches: Sequence[Values]) -> list[bool]:
        """Whether the condition holds for the values of a source and those of each match."""
        combinations = [_chosen(self._origins, held, match) for match in matches]
        unknown = list({values for values in combinations if values not in self._known})
        if unknown:
            columns = {
                name: pa.array([values[index] for values in unknown], kind)
                for index, (name, kind) in enumerate(zip(self._names, self._types, strict=True))
            }
            answers = holds(self._condition, columns, self._relations, len(unknown))
            self._known.update(zip(unknown, answers.tolist(), strict=True))
        return [self._known[values] for values in combinations]
