"""The automaton of a PATTERN query, determinised over the symbol sets that really occur.

A goal i has two symbols: an event *matches* it (m_i), or matches and is *accepted* (a_i). What happens
to one chain at one instant is the set of symbols of all its events, a bit mask: a *letter*. The query
`g_1 THEN g_2+ THEN ...` is the expression  a_1, ((not m_2)*, a_2)+, (not m_3)*, a_3, ...  after a leading
anything; no general construction is needed to run it, because a state is just two sets of goals:

- *waiting*: the prefix that ends with goal i has a result, which waits for its successor, goal i + 1;
- *repeating*: the Kleene goal i has been unfolded, and may be unfolded again.

States are numbered as they are met. An instant without events is the letter 0, which changes no state.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from anabranch.errors import TooLarge
from anabranch.language.limits import MAX_GOALS

#: Beyond this, a step costs more than a query can be worth; only adversarial queries come near.
MAX_STATES = 4096
MAX_LETTERS = 1024

State = tuple[int, int]


def match_bit(goal: int) -> int:
    """The bit of a letter which says that an event matches `goal` (0-based)."""
    return 1 << goal


def accept_bit(goal: int) -> int:
    """The bit of a letter which says that an event matching `goal` is accepted."""
    return 1 << (goal + MAX_GOALS)


class Automaton:
    """A lazily determinised automaton: `extend` it by the letters met, then read its tables.

    Parameters
    ----------
    kleene : sequence of bool
        For each goal, whether it carries a `+`.
    union_closed : bool
        Whether several events of a chain can happen at one instant, so that letters are united.

    Examples
    --------
    >>> automaton = Automaton([False, False])
    >>> both = match_bit(0) | accept_bit(0), match_bit(1) | accept_bit(1)
    >>> automaton.extend(both)
    >>> automaton.delta.tolist()  # after the first goal, wait for the second
    [[0, 1, 0], [1, 1, 0]]
    >>> automaton.accept.tolist()
    [[False, False, False], [False, False, True]]
    """

    def __init__(self, kleene: Iterable[bool], union_closed: bool = False) -> None:
        flags = list(kleene)
        self._goals = len(flags)
        self._kleene = sum(1 << i for i, flag in enumerate(flags) if flag)
        self._all = (1 << self._goals) - 1
        self._union_closed = union_closed
        self.letters: list[int] = [0]
        self.states: list[State] = [(0, 0)]
        self._letter_of = {0: 0}
        self._state_of = {(0, 0): 0}
        self._moves: list[list[tuple[int, bool]]] = [[(0, False)]]
        self._make_tables()

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """The state after reading a letter, and whether the query is true at that instant."""
        waiting, repeating = state
        matched = letter & self._all
        accepted = letter >> MAX_GOALS
        entered = accepted & (waiting << 1 | 1 | repeating)
        still_waiting = (waiting & ~(matched >> 1) | entered) & (self._all >> 1)
        still_repeating = repeating & ~matched | entered & self._kleene
        return (still_waiting, still_repeating), bool(entered >> (self._goals - 1) & 1)

    def extend(self, letters: Iterable[int], states: Iterable[State] = ()) -> None:
        """Make the tables cover these letters (and their unions) from every reachable state."""
        known = len(self.letters), len(self.states)
        for letter in letters:
            self._add_letter(int(letter))
        for state in states:
            self._number((int(state[0]), int(state[1])))
        if (len(self.letters), len(self.states)) != known:
            self._explore()
            self._make_tables()

    def index_of(self, letters: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The numbers of known letters."""
        return np.array([self._letter_of[int(letter)] for letter in letters], dtype=np.int32)

    def _add_letter(self, letter: int) -> None:
        if letter in self._letter_of:
            return
        found = [letter]
        if self._union_closed:
            found += sorted({letter | other for other in self.letters} - {letter})
        for new in found:
            if new not in self._letter_of:
                self._letter_of[new] = len(self.letters)
                self.letters.append(new)
        if len(self.letters) > MAX_LETTERS:
            raise TooLarge(
                f"the events of one instant combine in more than {MAX_LETTERS} ways; use fewer goals or more filters"
            )

    def _number(self, state: State) -> int:
        number = self._state_of.get(state)
        if number is None:
            number = self._state_of[state] = len(self.states)
            self.states.append(state)
            self._moves.append([])
            if number >= MAX_STATES:
                raise TooLarge(f"the automaton needs more than {MAX_STATES} states; use fewer goals")
        return number

    def _explore(self) -> None:
        """Follow every letter from every state, also from those found on the way."""
        number = 0
        while number < len(self.states):
            moves = self._moves[number]
            for letter in self.letters[len(moves) :]:
                after, accepted = self.step(self.states[number], letter)
                moves.append((self._number(after), accepted))
            number += 1

    def _make_tables(self) -> None:
        self.delta = np.array([[target for target, _ in moves] for moves in self._moves], dtype=np.int32)
        self.accept = np.array([[accepted for _, accepted in moves] for moves in self._moves], dtype=np.bool_)
        self.union = np.zeros((0, 0), dtype=np.int32)
        if self._union_closed:
            self.union = np.array(
                [[self._letter_of[first | second] for second in self.letters] for first in self.letters],
                dtype=np.int32,
            )
