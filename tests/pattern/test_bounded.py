"""Bounds on the states of an automaton: the kernel and the same bounds with matrices."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.bounded import bounds_of_instants

from anabranch.pattern import kernel
from anabranch.pattern.automaton import Automaton, RegularMachine, accept_bit, letter_of, match_bit
from anabranch.pattern.bounded import products_of

#: A key has these probabilities of events; the rest is that nothing happens.
WEIGHTS = st.lists(st.integers(0, 5), min_size=1, max_size=3)


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """The automaton of a query with some goals, over letters of which any two are united."""
    flags = draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=3))
    absent = [negated and 0 < number < len(flags) - 1 for number, (_, negated) in enumerate(flags)]
    kleene = [plus and not negated for (plus, _), negated in zip(flags, absent, strict=True)]
    automaton = Automaton(RegularMachine(kleene, absent=absent), union_closed=True)
    goals = range(len(flags))
    symbols = [match_bit(goal) | accept_bit(goal) for goal in goals] + [match_bit(goal) for goal in goals]
    automaton.extend(letter_of(draw(st.sampled_from(symbols)), 0) for _ in range(3))
    return automaton


@given(automata(), st.lists(st.lists(st.lists(WEIGHTS, min_size=1, max_size=3), max_size=4), max_size=3), st.data())
def test_the_kernel_and_the_matrices_give_the_same_bounds(
    automaton: Automaton, chains: list[list[list[list[int]]]], data: st.DataObject
) -> None:
    n_letters = len(automaton.letters)
    rows: list[tuple[int, int, int, float]] = []
    starts, expected = [0], []
    for number, instants in enumerate(chains):
        of_letters = []
        for t, keys in enumerate(instants):
            of_keys = []
            for key, weights in enumerate(keys):
                letters = [data.draw(st.integers(0, n_letters - 1)) for _ in weights]
                p = [weight / (sum(weights) + data.draw(st.integers(1, 3))) for weight in weights]
                rows += [(t, key, letter, share) for letter, share in zip(letters, p, strict=True)]
                of_key = np.bincount(letters, p, n_letters)
                of_key[0] = max(0.0, 1.0 - of_key[1:].sum())
                of_keys.append(of_key)
            of_letters.append(of_keys)
        starts.append(len(rows))
        truths = bounds_of_instants(automaton.delta, automaton.accept, automaton.union, of_letters)
        expected += [(number, t, true.low[1], true.high[1]) for t, true in enumerate(truths) if true.high[1] > 1e-12]
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    t, key, letter, p = (np.array(column, kind) for column, kind in zip(columns, ("i8", "i4", "i4", "f8"), strict=True))
    got = kernel.step_bounded(
        np.arange(len(rows)), np.array(starts), t, key, p, letter,
        products_of(automaton.delta, len(automaton.states)), products_of(automaton.accept.astype(np.int32), 2),
        products_of(automaton.union, n_letters), len(automaton.states),
    )  # fmt: skip
    found = [answer for answer in zip(*(column.tolist() for column in got), strict=True) if answer[3] > 1e-12]
    assert [answer[:2] for answer in found] == [answer[:2] for answer in expected]
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=0, atol=1e-9)
