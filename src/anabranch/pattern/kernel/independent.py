"""Chains without Markov keys: the letters of the keys are combined, and there is one weight per state."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import compiled
from anabranch.pattern.kernel.chains import INDEPENDENT, ROUNDING, age, answer_space, mix


@compiled
def step_independent(
    rows: I64, starts: I64, t: I64, key: I32, model: I32, p: F64, letter: I32,
    delta: I32, accept: Bools, union: I32, weights: F64, clock: I32, ticks: I32,
) -> tuple[I32, I64, F64]:  # fmt: skip
    """Update the weights of each chain over its instants: f'[delta(q, s)] += P(letter = s) f[q].

    The parameters are those of `step_single`; `weights` is (chains, states) and is changed in place.
    """
    n_chains, n_states, n_letters = len(starts) - 1, delta.shape[0], delta.shape[1]
    mixed, of_key, spare = np.empty(n_letters), np.empty(n_letters), np.empty(n_letters)
    after = np.empty(n_states)
    answer_chain, answer_t, answer_p = answer_space(len(rows))
    n_answers = 0
    for c in range(n_chains):
        lo, end = starts[c], starts[c + 1]
        while lo < end:
            first = rows[lo]
            if len(ticks):
                age(ticks[clock[first]], weights[c], after)
            hi = lo + 1
            while hi < end and t[rows[hi]] == t[first]:
                hi += 1
            if hi == lo + 1 or (key[rows[hi - 1]] == key[first] and model[first] == INDEPENDENT):
                # The most frequent case, without a call: alternatives of one key. A single certain row has p = 1.
                for s in range(n_letters):
                    mixed[s] = 0.0
                left = 1.0
                for k in range(lo, hi):
                    mixed[letter[rows[k]]] += p[rows[k]]
                    left -= p[rows[k]]
                if left > ROUNDING:
                    mixed[0] += left
            else:
                mix(rows, lo, hi, key, model, p, letter, union, mixed, of_key, spare)
            true = 0.0
            for q in range(n_states):
                after[q] = 0.0
            for s in range(n_letters):
                if mixed[s] != 0.0:
                    for q in range(n_states):
                        w = mixed[s] * weights[c, q]
                        after[delta[q, s]] += w
                        if accept[q, s]:
                            true += w
            for q in range(n_states):
                weights[c, q] = after[q]
            if true > 0.0:
                answer_chain[n_answers] = c
                answer_t[n_answers] = t[first]
                answer_p[n_answers] = min(true, 1.0)
                n_answers += 1
            lo = hi
    return answer_chain[:n_answers], answer_t[:n_answers], answer_p[:n_answers]
