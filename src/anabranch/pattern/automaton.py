"""The automaton of a PATTERN query, determinised over the symbol sets that occur in the data.

The events of one chain at one instant are a set of symbols, a bit mask: a *letter*. A machine defines what a state is
and how a letter changes it. The automaton numbers states and letters in the order in which they occur, and makes tables
for the kernels. An instant without events is the letter 0, which changes no state.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from anabranch.arrays import I32, I64, Bools
from anabranch.errors import TooLarge
from anabranch.language.limits import MAX_GOALS

#: The most entries of a table. Beyond this a step is too expensive; only adversarial queries come near.
MAX_MOVES = 1 << 18
MAX_LETTERS = 1024


S = TypeVar("S", bound=Hashable)


class Machine(Protocol[S]):
    """The states and transitions of an automaton."""

    @property
    def start(self) -> S:
        """The state before the first event."""

    def step(self, state: S, letter: int) -> tuple[S, int]:
        """The state after reading a letter, and whether the query is true at that instant (not 0)."""


class TimedMachine(Machine[S], Protocol):
    """A machine whose states have ages, for WITHIN."""

    def tick(self, state: S, reach: int) -> S:
        """The state at the next instant, from which the `reach` instants before are not too long ago."""


#: The ticks of an automaton without WITHIN.
NO_TICKS = np.zeros((0, 0), np.int32)


class Tables(Protocol):
    """The tables of an automaton, for the kernels."""

    @property
    def delta(self) -> I32:
        """(states, letters): the state after a letter."""

    @property
    def accept(self) -> Bools:
        """(states, letters): whether the query is true when a letter is read in a state."""

    @property
    def union(self) -> I32:
        """(letters, letters): the union of two letters; empty if letters are never united."""

    @property
    def ticks(self) -> I32:
        """(ticks, states): the state after a tick; the first one changes nothing. Empty for queries without WITHIN."""


@dataclass(frozen=True, slots=True)
class FixedTables:
    """Tables that do not grow."""

    delta: I32
    accept: Bools
    union: I32
    ticks: I32 = field(default_factory=lambda: NO_TICKS)


def match_bit(goal: int) -> int:
    """The symbol for an event that matches `goal` (0-based)."""
    return 1 << goal


def accept_bit(goal: int) -> int:
    """The symbol for an event that matches `goal` and is accepted by it."""
    return 1 << (goal + MAX_GOALS)


def letter_of(symbols: int, again: int) -> int:
    """The letter of an event; `again` has the match bits of the goals that it matches when their + is repeated."""
    return symbols | again << 2 * MAX_GOALS


class RegularMachine:
    """The machine of a query whose goals share no variables.

    A goal i has two symbols: an event *matches* it (m_i), or matches and is *accepted* (a_i). The query
    `g_1 THEN g_2+ THEN ...` is the regular expression  .*, a_1, ((not m_2)*, a_2)+, (not m_3)*, a_3, ...  It needs no
    general construction, because a state is two sets of goals:

    - *waiting*: the prefix that ends with goal i has a result, which waits for its successor, goal i + 1;
    - *repeating*: the Kleene goal i has been unfolded, and may be unfolded again.

    A NOT is a goal, too. A result that waits for a goal after NOTs has the number of the last of these.

    Parameters
    ----------
    kleene : sequence of bool
        For each goal, whether it has a `+`.
    rebound : sequence of bool
        For each goal, whether the first event of its `+` binds a value that the further ones must have. Letters then
        say which goals are matched again (`letter_of`).
    absent : sequence of bool
        For each goal, whether it is that of a NOT: a match ends the results that wait for the next goal without NOT.
    """

    start = (0, 0)

    def __init__(self, kleene: Iterable[bool], rebound: Iterable[bool] = (), absent: Iterable[bool] = ()) -> None:
        flags = list(kleene)
        self._goals = len(flags)
        self._kleene = _bits(flags)
        self._rebound = _bits(rebound)
        self._all = (1 << self._goals) - 1
        numbers = list(absent)
        #: For each goal of a NOT, its bit and the bit of the results that it ends: the last NOT of a sequence of NOTs.
        self._guards: list[tuple[int, int]] = []
        for goal in reversed(range(len(numbers))):
            if numbers[goal]:
                last = self._guards[-1][1] if numbers[goal + 1] else 1 << goal
                self._guards.append((1 << goal, last))
        self._absent = _bits(numbers)

    def step(self, state: tuple[int, int], letter: int) -> tuple[tuple[int, int], bool]:
        """The state after reading a letter, and whether the query is true at that instant."""
        waiting, repeating = state
        matched = letter & self._all
        accepted = letter >> MAX_GOALS & self._all
        entered = accepted & (waiting << 1 | 1 | repeating) & ~self._absent
        waits, ended = entered, matched >> 1
        for guard, result in self._guards:
            if entered & guard >> 1:
                waits = waits & ~(guard >> 1) | result
            if matched & guard:
                ended |= result
        still_waiting = (waiting & ~ended | waits) & (self._all >> 1)
        again = matched & ~self._rebound | letter >> 2 * MAX_GOALS & self._rebound
        still_repeating = repeating & ~again | entered & self._kleene
        return (still_waiting, still_repeating), bool(entered >> (self._goals - 1) & 1)


def _bits(flags: Iterable[bool]) -> int:
    """The set of the numbers of true flags."""
    return sum(1 << number for number, flag in enumerate(flags) if flag)


class Automaton(Generic[S]):
    """A lazily determinised automaton: `extend` it by the letters that occur, then read its tables.

    Parameters
    ----------
    machine : Machine
    union_closed : bool
        Whether several events of a chain can happen at one instant, so that letters are united.
    most_moves : int
        The most entries that its tables can have.
    timed : TimedMachine or None
        The machine, if the query has WITHIN: its ticks are tables, too.

    Examples
    --------
    >>> automaton = Automaton(RegularMachine([False, False]))
    >>> both = match_bit(0) | accept_bit(0), match_bit(1) | accept_bit(1)
    >>> automaton.extend(both)
    >>> automaton.delta.tolist()  # after the first goal, wait for the second
    [[0, 1, 0], [1, 1, 0]]
    >>> automaton.accept.tolist()
    [[False, False, False], [False, False, True]]
    """

    def __init__(
        self,
        machine: Machine[S],
        union_closed: bool = False,
        most_moves: int = MAX_MOVES,
        timed: TimedMachine[S] | None = None,
    ) -> None:
        self._machine = machine
        self._timed = timed
        self._union_closed = union_closed
        self._most_moves = most_moves
        self.letters: list[int] = [0]
        self.states: list[S] = [machine.start]
        self._letter_of = {0: 0}
        self._state_of = {machine.start: 0}
        self._moves: list[list[tuple[int, int]]] = [[(0, False)]]
        self._reaches: dict[int, int] = {}
        self._aged: list[list[int]] = [[]]
        self._make_tables()

    def extend(self, letters: Iterable[int], states: Iterable[S] = (), reaches: Iterable[int] = ()) -> None:
        """Make the tables cover these letters (and their unions) from every reachable state; also ticks."""
        known = len(self.letters), len(self.states), len(self._reaches)
        for letter in letters:
            self._add_letter(letter)
        for state in states:
            self._number(state)
        for reach in reaches:
            # The first tick changes nothing.
            self._reaches.setdefault(reach, len(self._reaches) + 1)
        if (len(self.letters), len(self.states), len(self._reaches)) != known:
            self._explore()
            self._make_tables()

    def index_of(self, letters: Iterable[int]) -> I32:
        """The indexes of letters that were added before."""
        return np.array([self._letter_of[letter] for letter in letters], dtype=np.int32)

    def numbers_of(self, states: Iterable[S]) -> I64:
        """The numbers of states that were added before."""
        return np.array([self._state_of[state] for state in states], np.int64)

    def tick_of(self, reaches: Iterable[int]) -> I32:
        """The indexes of ticks that were added before."""
        return np.array([self._reaches[reach] for reach in reaches], dtype=np.int32)

    def _add_letter(self, letter: int) -> None:
        if letter in self._letter_of:
            return
        candidates = [letter]
        if self._union_closed:
            candidates += sorted({letter | other for other in self.letters} - {letter})
        for candidate in candidates:
            if candidate not in self._letter_of:
                self._letter_of[candidate] = len(self.letters)
                self.letters.append(candidate)
        if len(self.letters) > MAX_LETTERS:
            raise TooLarge(
                f"the events of one instant combine in more than {MAX_LETTERS} ways; use fewer goals or more filters"
            )

    def _number(self, state: S) -> int:
        number = self._state_of.get(state)
        if number is None:
            number = self._state_of[state] = len(self.states)
            self.states.append(state)
            self._moves.append([])
            self._aged.append([])
            if len(self.states) * (len(self.letters) + len(self._reaches)) > self._most_moves:
                fix = "use fewer goals" if self._timed is None else "use fewer goals or a shorter WITHIN"
                raise TooLarge(f"the automaton needs more than {self._most_moves:,} transitions; {fix}")
        return number

    def _explore(self) -> None:
        """Follow every letter from every state, including the states that this adds."""
        number = 0
        while number < len(self.states):
            moves = self._moves[number]
            for letter in self.letters[len(moves) :]:
                after, accepted = self._machine.step(self.states[number], letter)
                moves.append((self._number(after), accepted))
            if self._timed is not None:
                aged = self._aged[number]
                for reach in list(self._reaches)[len(aged) :]:
                    aged.append(self._number(self._timed.tick(self.states[number], reach)))
            number += 1

    def _make_tables(self) -> None:
        self.delta = np.array([[target for target, _ in moves] for moves in self._moves], dtype=np.int32)
        self.accept = np.array([[accepted for _, accepted in moves] for moves in self._moves], dtype=np.bool_)
        self.ticks = NO_TICKS
        if self._timed is not None:
            unchanged = range(len(self.states))
            self.ticks = np.array([[number, *self._aged[number]] for number in unchanged], np.int32).T.copy()
        self.union = np.zeros((0, 0), dtype=np.int32)
        if self._union_closed:
            self.union = np.array(
                [[self._letter_of[first | second] for second in self.letters] for first in self.letters],
                dtype=np.int32,
            )
