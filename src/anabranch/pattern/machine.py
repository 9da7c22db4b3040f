"""The general machine of PATTERN: the set of partial results, moved on literally as the language defines it.

A *partial result* is a prefix of the query that has been found, with the values of those variables that something later
still asks for. It either waits for a match of the next goal, or (a Kleene goal) may be unfolded again. The machine
serves every query, whatever its goals share and its conditions join. It moves many worlds at once: each partial result
and each event carries a *mask* of the worlds in which it exists. A mask is anything with `&`, `|` and `~`: the bits of
machine words when worlds are sampled, a single bit when states are explored for the automaton.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.binding.typed import Reference, Typed, references, walk
from anabranch.columns.conditions import ARROW_TYPES, Relations, holds
from anabranch.errors import TooLarge
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.query import BoundGoal

Mask = Any
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result: goal number `goal` was matched last; `repeating`: it may be unfolded again, else it waits."""

    goal: int
    repeating: bool
    values: Values


@dataclass(frozen=True, slots=True)
class Match:
    """What an event is to one goal: whether the goal's own conditions accept it, and the variables it binds."""

    accepted: bool
    values: Values


#: What the machine sees of an event: for each goal what it is to it, None where it does not match.
Signature = tuple[Match | None, ...]


class Machine:
    """The moves of one query; see the module.

    Parameters
    ----------
    analysis : PatternAnalysis
    relations : lower-case relation name to its rows
    """

    def __init__(self, analysis: PatternAnalysis, relations: Relations) -> None:
        goals = analysis.query.goals
        given = set(analysis.chain)
        asked = [_asked(goal, test.joins) - given for goal, test in zip(goals, analysis.tests, strict=True)]
        self.n_goals = len(goals)
        #: The variables of each goal that something beyond the goal asks for, in order.
        self.exposed: list[tuple[str, ...]] = []
        self._moves: list[list[_Move]] = []
        bound: set[str] = set()
        held: tuple[str, ...] = ()
        for number, (goal, test) in enumerate(zip(goals, analysis.tests, strict=True)):
            later = set().union(*asked[number + 1 :])
            before = bound | goal.exported
            joined = set().union(*(_names(condition) for condition in test.joins))
            # What tells chains apart is the same in all of a chain's partial results; only conditions may ask for it.
            exposed = tuple(sorted(goal.variables & ((bound | later | set(goal.shared)) - given | joined)))
            waiting = tuple(sorted((before - given) & later))
            own = asked[number] if goal.kleene else set()
            repeating = tuple(sorted((before - given) & (later | own | set(goal.shared))))
            keeps = {False: waiting} if number < len(goals) - 1 else {}
            if goal.kleene:
                keeps[True] = repeating
            self.exposed.append(exposed)
            starts = [_Move(number, held, exposed, keeps, test.joins, relations)]
            if goal.kleene:
                starts.append(_Move(number, repeating, exposed, keeps, test.joins, relations))
            self._moves.append(starts)
            bound, held = before, waiting

    def advance(
        self, partials: Mapping[Partial, Mask], events: Mapping[Signature, Mask], everywhere: Mask
    ) -> tuple[dict[Partial, Mask], Mask]:
        """Move on over one instant.

        Parameters
        ----------
        partials : the partial results there are, each with its worlds
        events : what happens at the instant, each with its worlds
        everywhere : the mask of all worlds

        Returns
        -------
        The partial results after the instant, and the worlds in which the query is true at it.
        """
        after = dict(partials)
        true = everywhere & ~everywhere
        found: list[tuple[Partial, Mask]] = []
        for goal, moves in enumerate(self._moves):
            matches: dict[Match, Mask] = {}
            for signature, mask in events.items():
                match = signature[goal]
                if match is not None:
                    matches[match] = matches[match] | mask if match in matches else mask
            if not matches:
                continue
            for move, sources in zip(moves, self._sources(goal, partials, everywhere), strict=False):
                for source, worlds, consumed, hits in move.take(sources, matches):
                    if source is not None:
                        after[source] = after[source] & ~consumed
                    for results, mask in hits:
                        both = worlds & mask
                        found += [(result, both) for result in results]
                        if goal == self.n_goals - 1:
                            true = true | both
        for result, mask in found:
            after[result] = after[result] | mask if result in after else mask
        return after, true

    @staticmethod
    def _sources(
        goal: int, partials: Mapping[Partial, Mask], everywhere: Mask
    ) -> list[list[tuple[Partial | None, Mask]]]:
        """What a match of a goal can follow: results of the goals before it, and unfoldings of the goal itself."""
        before: list[tuple[Partial | None, Mask]]
        if goal == 0:
            before = [(None, everywhere)]
        else:
            before = [(each, mask) for each, mask in partials.items() if each.goal == goal - 1 and not each.repeating]
        own: list[tuple[Partial | None, Mask]]
        own = [(each, mask) for each, mask in partials.items() if each.goal == goal and each.repeating]
        return [before, own]


class SetMachine:
    """The general machine as one for the automaton: a state is the set of partial results of one world.

    A letter has a bit for each event that happens, by the number of its signature.

    Parameters
    ----------
    machine : Machine
    most_work : int
        How often a partial result may be held against an event before it gives up: there may be as many states as
        there are sets of partial results.
    """

    start: frozenset[Partial] = frozenset()

    def __init__(self, machine: Machine, most_work: int) -> None:
        self._machine = machine
        self._work_left = most_work
        self._signatures: list[Signature] = []
        self._numbers: dict[Signature, int] = {}

    def letter_of(self, signature: Signature) -> int:
        """The letter of one event; 0 where it matches no goal."""
        if not any(signature):
            return 0
        if signature not in self._numbers:
            self._numbers[signature] = len(self._signatures)
            self._signatures.append(signature)
        return 1 << self._numbers[signature]

    def step(self, state: frozenset[Partial], letter: int) -> tuple[frozenset[Partial], bool]:
        """The partial results after a letter, and whether the query is true at it.

        Raises
        ------
        TooLarge
            If all steps together were too much work.
        """
        events = {signature: 1 for number, signature in enumerate(self._signatures) if letter >> number & 1}
        # A step without either still costs about as much as four pairs of them.
        self._work_left -= 4 + (1 + len(state)) * len(events)
        if self._work_left < 0:
            raise TooLarge("there are too many sets of partial results")
        after, true = self._machine.advance(dict.fromkeys(state, 1), events, 1)
        return frozenset(partial for partial, mask in after.items() if mask), bool(true)


def _asked(goal: BoundGoal, joins: Sequence[Typed]) -> set[str]:
    """The variables that a goal asks of what came before it: in its terms and in its conditions."""
    return goal.variables.union(*(_names(condition) for condition in joins))


def _names(condition: Typed) -> set[str]:
    return {name for _, name in references(condition)}


class _Move:
    """From one kind of source (variables `held`) by a match of one goal (variables `exposed`)."""

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
        # Where each value of a result comes from: (True, place in the match) or (False, place in the source).
        self._keeps = {
            repeating: [(True, exposed.index(n)) if n in exposed else (False, held.index(n)) for n in names]
            for repeating, names in keeps.items()
        }
        self._joins = [_Join(condition, held, exposed, relations) for condition in joins]

    def take(
        self, sources: Iterable[tuple[Partial | None, Mask]], matches: Mapping[Match, Mask]
    ) -> Iterable[tuple[Partial | None, Mask, Mask, list[tuple[list[Partial], Mask]]]]:
        """For each source with matches that agree: its worlds, those in which it is consumed, and what it becomes."""
        agreeing: dict[Values, list[tuple[Match, Mask]]] = defaultdict(list)
        for match, mask in matches.items():
            joined = tuple(match.values[place] for place in self._match_join)
            if None not in joined:  # NULL equals nothing
                agreeing[joined].append((match, mask))
        consumed = {joined: _union(mask for _, mask in found) for joined, found in agreeing.items()}
        for source, worlds in sources:
            values = source.values if source is not None else ()
            joined = tuple(values[place] for place in self._held_join)
            if joined in agreeing:
                accepted = [(match, mask) for match, mask in agreeing[joined] if match.accepted]
                for join in self._joins:
                    answers = join.holds(values, [match.values for match, _ in accepted])
                    accepted = [each for each, answer in zip(accepted, answers, strict=True) if answer]
                hits = [(self._results(values, match.values), mask) for match, mask in accepted]
                yield source, worlds, consumed[joined], hits

    def _results(self, held: Values, found: Values) -> list[Partial]:
        return [
            Partial(self._goal, repeating, tuple(found[place] if new else held[place] for new, place in places))
            for repeating, places in self._keeps.items()
        ]


def _union(masks: Iterable[Mask]) -> Mask:
    first, *others = masks
    for mask in others:
        first = first | mask
    return first


class _Join:
    """A condition over variables of a source and of a match, asked once of each pair of values."""

    def __init__(self, condition: Typed, held: tuple[str, ...], exposed: tuple[str, ...], relations: Relations) -> None:
        self._condition = condition
        self._relations = relations
        kinds = {node.name: node.type for node in walk(condition) if isinstance(node, Reference)}
        self._names = sorted(kinds)
        self._types = [ARROW_TYPES[kinds[name]] for name in self._names]
        self._places = [
            (True, exposed.index(name)) if name in exposed else (False, held.index(name)) for name in self._names
        ]
        self._known: dict[Values, bool] = {}

    def holds(self, held: Values, found: Sequence[Values]) -> list[bool]:
        """Whether the condition holds of a source's values with each match's."""
        asked = [tuple(values[place] if new else held[place] for new, place in self._places) for values in found]
        unknown = list({values for values in asked if values not in self._known})
        if unknown:
            columns = {
                name: pa.array([values[place] for values in unknown], kind)
                for place, (name, kind) in enumerate(zip(self._names, self._types, strict=True))
            }
            answers = holds(self._condition, columns, self._relations, len(unknown))
            self._known.update(zip(unknown, answers.tolist(), strict=True))
        return [self._known[values] for values in asked]
