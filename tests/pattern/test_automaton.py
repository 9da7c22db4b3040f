"""The automaton over letters: single steps, and the limits of its size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import TooLarge
from anabranch.pattern.automaton import Automaton, RegularMachine, accept_bit, match_bit


def letter(matched: set[int], accepted: set[int]) -> int:
    return sum(map(match_bit, matched | accepted)) | sum(map(accept_bit, accepted))


@st.composite
def words(draw: st.DrawFn):
    n_goals = draw(st.integers(1, 4))
    goals = st.sets(st.integers(0, n_goals - 1))
    letters = draw(st.lists(st.builds(letter, goals, goals), max_size=6))
    return draw(st.lists(st.booleans(), min_size=n_goals, max_size=n_goals)), letters


def accepts(kleene: list[bool], word: list[int], goal: int, start: int) -> set[int]:
    """The indexes where results of the goals up to `goal` end, by the definition: the immediate successor of each."""

    def successor(after: int, goal: int) -> set[int]:
        for index in range(after + 1, len(word)):
            if word[index] & match_bit(goal):
                return {index} if word[index] & accept_bit(goal) else set()
        return set()

    if goal == 0:
        ends = {index for index in range(len(word)) if word[index] & accept_bit(0)}
    else:
        ends = set().union(*(successor(end, goal) for end in accepts(kleene, word, goal - 1, start)), set())
    while kleene[goal]:
        extended = set().union(*(successor(end, goal) for end in ends), ends)
        if extended == ends:
            break
        ends = extended
    return ends


@given(words())
def test_the_automaton_accepts_where_the_definition_has_a_result(case: tuple[list[bool], list[int]]) -> None:
    kleene, word = case
    automaton = Automaton(RegularMachine(kleene))
    automaton.extend(word)
    state, ends = 0, set()
    for index, letter_index in enumerate(automaton.index_of(word)):
        if automaton.accept[state, letter_index]:
            ends.add(index)
        state = automaton.delta[state, letter_index]
    assert ends == accepts(kleene, word, len(kleene) - 1, 0)


@given(words())
def test_an_instant_without_events_changes_nothing(case: tuple[list[bool], list[int]]) -> None:
    automaton = Automaton(RegularMachine(case[0]))
    automaton.extend(case[1])
    assert automaton.delta[:, 0].tolist() == list(range(len(automaton.states)))
    assert not automaton.accept[:, 0].any()


def test_restored_states_keep_their_numbers() -> None:
    first = Automaton(RegularMachine([False, True, False]))
    first.extend([letter({0}, {0}), letter({1}, {1}), letter({2}, set())])
    restored = Automaton(RegularMachine([False, True, False]))
    restored.extend((), first.states)
    assert restored.states == first.states


def test_unions_of_letters_are_letters() -> None:
    automaton = Automaton(RegularMachine([False, False]), union_closed=True)
    one, other = letter({0}, {0}), letter({1}, set())
    automaton.extend([one, other])
    numbers = automaton.index_of([one, other, one | other])
    assert automaton.union[numbers[0], numbers[1]] == numbers[2]


def test_too_many_states_or_letters_are_refused_with_the_limit() -> None:
    with pytest.raises(TooLarge, match="262,144 transitions"):
        Automaton(RegularMachine([False] * 20)).extend(letter(set(), {goal}) for goal in range(20))
    with pytest.raises(TooLarge, match="1024 ways"):
        chosen = (letter({goal}, set()) for goal in range(12))
        Automaton(RegularMachine([False] * 12), union_closed=True).extend(itertools.chain(chosen))
