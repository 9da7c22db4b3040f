"""Chains whose events may depend on each other in any way: bounds on the probability of each state.

Two variables have outcomes of which exactly one happens, with probabilities between `low` and `high`. A table says
which result each pair of outcomes has. The pairs of a result are a union of products of sets (`Products`), and the
bounds of a product are those of Fréchet: two events with probabilities in [a, b] and [c, d] happen both with a
probability in [max(0, a + c - 1), min(b, d)].

Complexity: linear in the instants, times the products and the outcomes of the automaton.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import assign, compiled, compiled_uncounted
from anabranch.pattern.kernel.chains import answer_space, end_of_instant, end_of_key


class Products(NamedTuple):
    """The pairs of outcomes of each result as disjoint products of sets, in two ways.

    Attributes
    ----------
    first, second : (products, outcomes)
        The two sets, for each outcome whether it is a member.
    result : (products,)
    way : (products,)
        0: each outcome of the first variable is in one product of a result at most; 1: each of the second.
    """

    first: Bools
    second: Bools
    result: I32
    way: I32


@compiled_uncounted
def _bounds_of_set(members: Bools, low: F64, high: F64) -> tuple[float, float]:
    """Bounds on the probability that a member happens: by the members, and by the others."""
    least, most, others_least, others_most = 0.0, 0.0, 0.0, 0.0
    for outcome in range(len(low)):
        if members[outcome]:
            least += low[outcome]
            most += high[outcome]
        else:
            others_least += low[outcome]
            others_most += high[outcome]
    return min(max(least, 1.0 - others_most, 0.0), 1.0), max(min(most, 1.0 - others_least, 1.0), 0.0)


@compiled_uncounted
def _combine(
    products: Products, low: F64, high: F64, other_low: F64, other_high: F64, into_low: F64, into_high: F64, sums: F64
) -> None:
    """Write the bounds on the results of two variables; `sums` is (2, 2, results) of scratch space."""
    n = len(into_low)
    for way in range(2):
        for bound in range(2):
            for number in range(n):
                sums[way, bound, number] = 0.0
    for product in range(len(products.result)):
        least, most = _bounds_of_set(products.first[product], low, high)
        other_least, other_most = _bounds_of_set(products.second[product], other_low, other_high)
        way, number = products.way[product], products.result[product]
        sums[way, 0, number] += max(0.0, least + other_least - 1.0)
        sums[way, 1, number] += min(most, other_most)
    all_least, all_most = 0.0, 0.0
    for number in range(n):
        sums[0, 0, number] = max(sums[0, 0, number], sums[1, 0, number])
        sums[0, 1, number] = min(sums[0, 1, number], sums[1, 1, number], 1.0)
        all_least += sums[0, 0, number]
        all_most += sums[0, 1, number]
    # The results are disjoint, and one of them happens.
    for number in range(n):
        least, most = sums[0, 0, number], sums[0, 1, number]
        into_low[number] = max(least, 1.0 - (all_most - most))
        into_high[number] = min(most, 1.0 - (all_least - least))


@compiled_uncounted
def _letters_of_instant(
    rows: I64, lo: int, hi: int, key: I32, p: F64, letter: I32, union: Products, mixed: F64, of_key: F64, spare: F64,
    sums: F64,
) -> None:  # fmt: skip
    """Write bounds on the union of the letters of all keys, rows[lo:hi], to `mixed`: (2, letters)."""
    begin = lo
    while lo < hi:
        next_key = end_of_key(rows, lo, hi, key)
        for number in range(len(of_key)):
            of_key[number] = 0.0
        happened = 0.0
        for k in range(lo, next_key):
            if letter[rows[k]] > 0:
                of_key[letter[rows[k]]] += p[rows[k]]
                happened += p[rows[k]]
        of_key[0] = max(0.0, 1.0 - happened)  # The rows leave over that nothing happened.
        if lo == begin:
            assign(mixed[0], of_key)
            assign(mixed[1], of_key)
        else:
            _combine(union, mixed[0], mixed[1], of_key, of_key, spare[0], spare[1], sums)
            assign(mixed, spare)
        lo = next_key


@compiled_uncounted
def _bound_chains(
    rows: I64, starts: I64, t: I64, key: I32, p: F64, letter: I32,
    delta: Products, accept: Products, union: Products, states: F64, after: F64, true: F64,
    scratch: tuple[F64, F64, F64, F64, F64], answers: tuple[I32, I64, F64, F64],
) -> int:  # fmt: skip
    """Write the answers of all chains; returns how many there are. Uncounted, as it calls others for each instant."""
    of_key, mixed, spare, sums, sums_of_letters = scratch
    answer_chain, answer_t, answer_low, answer_high = answers
    n_answers = 0
    for c in range(len(starts) - 1):
        for state in range(states.shape[1]):
            states[0, state] = states[1, state] = 1.0 if state == 0 else 0.0
        lo, end = starts[c], starts[c + 1]
        while lo < end:
            hi = end_of_instant(rows, lo, end, t)
            _letters_of_instant(rows, lo, hi, key, p, letter, union, mixed, of_key, spare, sums_of_letters)
            _combine(accept, states[0], states[1], mixed[0], mixed[1], true[0], true[1], sums)
            if true[1, 1] > 0.0:
                answer_chain[n_answers] = c
                answer_t[n_answers] = t[rows[lo]]
                answer_low[n_answers] = true[0, 1]
                answer_high[n_answers] = true[1, 1]
                n_answers += 1
            _combine(delta, states[0], states[1], mixed[0], mixed[1], after[0], after[1], sums)
            assign(states, after)
            lo = hi
    return n_answers


@compiled
def step_bounded(
    rows: I64, starts: I64, t: I64, key: I32, p: F64, letter: I32,
    delta: Products, accept: Products, union: Products, n_states: int,
) -> tuple[I32, I64, F64, F64]:  # fmt: skip
    """Bound the probability that the query is true, at each instant of each chain.

    Parameters
    ----------
    rows, starts, t, key, p, letter : as for `step_single`
    delta : the results are states, from the state before and the letter of the instant
    accept : the results are false and true, from the same
    union : the results are letters, from two letters
    n_states : int

    Returns
    -------
    chain, t, low, high : of the instants at which the query may be true
    """
    n_letters = union.first.shape[1]
    states, after, true = np.zeros((2, n_states)), np.zeros((2, n_states)), np.zeros((2, 2))
    of_key, mixed, spare = np.empty(n_letters), np.empty((2, n_letters)), np.empty((2, n_letters))
    sums, sums_of_letters = np.empty((2, 2, max(n_states, 2))), np.empty((2, 2, n_letters))
    answer_chain, answer_t, answer_low = answer_space(len(rows))
    answer_high = np.empty(len(rows))
    answers, scratch = (answer_chain, answer_t, answer_low, answer_high), (of_key, mixed, spare, sums, sums_of_letters)
    n_answers = _bound_chains(
        rows, starts, t, key, p, letter, delta, accept, union, states, after, true, scratch, answers
    )
    return answer_chain[:n_answers], answer_t[:n_answers], answer_low[:n_answers], answer_high[:n_answers]
