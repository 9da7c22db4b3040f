"""Chains of one Markov key: one weight per (value, state)."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import assign, compiled
from anabranch.pattern.kernel.chains import ROUNDING, age, answer_space


@compiled
def step_single(
    rows: I64, starts: I64, t: I64, prev: I32, value: I32, p: F64, letter: I32, delta: I32, accept: Bools,
    offsets: I64, codes: I32, weights: F64, n_values: int, row_p: F64, clock: I32, ticks: I32,
) -> tuple[I64, I32, F64, I32, I64, F64]:  # fmt: skip
    """Update the weights of each chain, one Markov key, over its instants.

    For each table row (prev u, value v, probability p):  f'[v, delta(q, letter(v))] += p f[u, q].
    The probability that the rows of u leave over goes to *nothing*.

    Parameters
    ----------
    rows : the indexes of the rows to use, sorted by chain and instant
    starts : chain c is rows[starts[c]:starts[c + 1]]
    t, prev, value, p, letter : columns, by row index
    delta, accept : the automaton's tables, (states, letters)
    offsets, codes, weights : the state; chain c has the values codes[offsets[c]:offsets[c + 1]] and
        their weights (values, states)
    n_values : number of value codes
    row_p : empty, or set to the part of an answer that comes from each row
    clock, ticks : by row index, the tick before its instant; and the state after each tick, (ticks, states). Both are
        empty for queries without WITHIN.

    Returns
    -------
    offsets, codes, weights : the new state
    answer_chain, answer_t, answer_p : the probability that the query is true, where it is above 0
    """
    n_chains, n_states = len(starts) - 1, delta.shape[0]
    at = np.full((2, n_values), -1, np.int64)
    live_codes = np.empty((2, n_values), np.int32)
    live = np.zeros((2, n_values, n_states))
    left = np.empty(n_values)
    out_offsets = np.zeros(n_chains + 1, np.int64)
    out_codes = np.empty(len(codes) + len(rows) + n_chains, np.int32)
    out_weights = np.empty((len(out_codes), n_states))
    answer_chain, answer_t, answer_p = answer_space(len(rows))
    n_answers = 0
    for c in range(n_chains):
        n_live = offsets[c + 1] - offsets[c]
        assign(live_codes[0], codes[offsets[c] : offsets[c + 1]])
        assign(live[0], weights[offsets[c] : offsets[c + 1]])
        n_live, now, n_new = _step_chain(
            rows[starts[c] : starts[c + 1]], t, prev, value, p, letter, delta, accept,
            n_live, live_codes, live, at, left, row_p, answer_t[n_answers:], answer_p[n_answers:], clock, ticks,
        )  # fmt: skip
        answer_chain[n_answers : n_answers + n_new] = c
        n_answers += n_new
        base = out_offsets[c]
        assign(out_codes[base:], live_codes[now, :n_live])
        assign(out_weights[base:], live[now, :n_live])
        out_offsets[c + 1] = base + n_live
    used = out_offsets[n_chains]
    return (
        out_offsets, out_codes[:used].copy(), out_weights[:used].copy(),
        answer_chain[:n_answers], answer_t[:n_answers], answer_p[:n_answers],
    )  # fmt: skip


@compiled
def _idle_letters(delta: I32, accept: Bools) -> Bools:
    """The letters that change no state and never accept: those of most values of most queries."""
    n_states, n_letters = delta.shape
    idle = np.ones(n_letters, np.bool_)
    for q in range(n_states):
        for s in range(n_letters):
            idle[s] &= delta[q, s] == q and not accept[q, s]
    return idle


@compiled
def _step_chain(
    rows: I64, t: I64, prev: I32, value: I32, p: F64, letter: I32, delta: I32, accept: Bools,
    n_live: int, live_codes: I32, live: F64, at: I64, left: F64, row_p: F64, answer_t: I64, answer_p: F64,
    clock: I32, ticks: I32,
) -> tuple[int, int, int]:  # fmt: skip
    """Update the weights of one chain over its instants, from one half of `live` to the other.

    `at` maps a value code to its index in each half; it is -1 everywhere before and after. This is one function, not
    one per instant, because a call costs Numba more than the arithmetic of a few rows. Returns the number of live
    values, the half that has them, and the number of answers.
    """
    n_states = delta.shape[0]
    idle = _idle_letters(delta, accept)
    now, then, n_answers, k = 0, 1, 0, 0
    aged = np.empty(ticks.shape[1])
    while k < len(rows):
        instant = t[rows[k]]
        for i in range(n_live):
            if len(ticks):
                age(ticks[clock[rows[k]]], live[now, i], aged)
            at[now, live_codes[now, i]] = i
            left[i] = 1.0
        n_next = 0
        true = 0.0
        while k < len(rows) and t[rows[k]] == instant:
            row = rows[k]
            k += 1
            i = at[now, prev[row]]
            if i < 0 or p[row] == 0.0:
                continue
            j = at[then, value[row]]
            if j < 0:
                j = n_next
                n_next += 1
                at[then, value[row]] = j
                live_codes[then, j] = value[row]
                live[then, j] = 0.0
            left[i] -= p[row]
            s = letter[row]
            if idle[s]:
                for q in range(n_states):
                    live[then, j, q] += p[row] * live[now, i, q]
                continue
            true_here = 0.0
            for q in range(n_states):
                w = p[row] * live[now, i, q]
                live[then, j, delta[q, s]] += w
                if accept[q, s]:
                    true += w
                    true_here += w
            if len(row_p):
                row_p[row] = true_here
        for i in range(n_live):
            at[now, live_codes[now, i]] = -1
            if left[i] > ROUNDING:
                j = at[then, 0]
                if j < 0:
                    j = n_next
                    n_next += 1
                    at[then, 0] = j
                    live_codes[then, j] = 0
                    live[then, j] = 0.0
                for q in range(n_states):
                    live[then, j, q] += left[i] * live[now, i, q]
        for j in range(n_next):
            at[then, live_codes[then, j]] = -1
        if true > 0.0:
            answer_t[n_answers] = instant
            answer_p[n_answers] = min(true, 1.0)
            n_answers += 1
        now, then, n_live = then, now, n_next
    return n_live, now, n_answers
