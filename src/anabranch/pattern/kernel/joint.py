"""Chains of several keys, some of them Markov: the values of the Markov keys form a product with one axis per key."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import assign, compiled
from anabranch.pattern.kernel.chains import MARKOV, ROUNDING, age, answer_space, end_of_instant, end_of_key, mix


@compiled
def step_joint(
    rows: I64, t: I64, key: I32, model: I32, prev: I32, value: I32, p: F64, letter: I32,
    delta: I32, accept: Bools, union: I32, axis_of: I64, sizes: I64, codes: I32, weights: F64,
    n_values: int, limit: int, clock: I32, ticks: I32,
) -> tuple[I64, I32, F64, I64, F64, float]:  # fmt: skip
    """Update the weights of one chain over its instants.

    Each Markov key is an axis of the product. At an instant, the keys with rows move along their axes; then the
    automaton reads the union of their letters and those of the other keys.

    Parameters
    ----------
    rows : the chain's rows, sorted by instant and key; the other columns as in `step_single`
    axis_of : for each key number, its axis; -1 for keys that are not Markov
    sizes, codes : the number of values of each axis, and their codes, axis after axis
    weights : the product, flattened, axes in order and the state last
    limit : the largest allowed number of weights
    clock, ticks : as in `step_single`

    Returns
    -------
    sizes, codes, weights, answer_t, answer_p, needed
        `needed` is 0, or the required number of weights if it exceeds the limit.
    """
    n_letters = delta.shape[1]
    mixed, of_key, spare = np.empty(n_letters), np.empty(n_letters), np.empty(n_letters)
    ends = np.cumsum(sizes)
    axes = [codes[ends[a] - sizes[a] : ends[a]].copy() for a in range(len(sizes))]
    _, answer_t, answer_p = answer_space(len(rows))
    n_answers = 0
    needed = 0.0
    lo, end = 0, len(rows)
    n_states = delta.shape[0]
    aged = np.empty(n_states)
    while lo < end:
        if len(ticks):
            for base in range(0, len(weights), n_states):
                age(ticks[clock[rows[lo]]], weights[base : base + n_states], aged)
        hi = end_of_instant(rows, lo, end, t)
        emitted = [np.zeros(len(axis), np.int32) for axis in axes]
        k = lo
        while k < hi:
            key_end = end_of_key(rows, k, hi, key)
            if model[rows[k]] == MARKOV:
                a = axis_of[key[rows[k]]]
                needed = float(len(weights)) / len(axes[a]) * (key_end - k + 1)
                if needed > limit:
                    return sizes, codes, weights, answer_t[:0], answer_p[:0], needed
                inner = n_states
                for b in range(a + 1, len(axes)):
                    inner *= len(axes[b])
                axes[a], emitted[a], weights = _move_axis(
                    rows, k, key_end, prev, value, p, letter, axes[a], weights, inner, n_values
                )
            k = key_end
        mix(rows, lo, hi, key, model, p, letter, union, mixed, of_key, spare)
        weights, true = _read_letters(weights, axes, emitted, mixed, delta, accept, union)
        if true > 0.0:
            answer_t[n_answers] = t[rows[lo]]
            answer_p[n_answers] = min(true, 1.0)
            n_answers += 1
        lo = hi
    new_sizes = np.array([len(axis) for axis in axes], np.int64)
    new_codes = np.empty(new_sizes.sum(), np.int32)
    base = 0
    for axis in axes:
        assign(new_codes[base:], axis)
        base += len(axis)
    return new_sizes, new_codes, weights, answer_t[:n_answers], answer_p[:n_answers], 0.0


@compiled
def _move_axis(
    rows: I64, lo: int, hi: int, prev: I32, value: I32, p: F64, letter: I32,
    codes: I32, before: F64, inner: int, n_values: int,
) -> tuple[I32, I32, F64]:  # fmt: skip
    """Move one Markov key along its axis of the product.

    `before` is (outer, values, inner) flattened; `codes` has the values of the axis. Returns the new codes, the letter
    of each, and the new array.
    """
    n_old = len(codes)
    outer = len(before) // (n_old * inner)
    old_at, new_at = np.full(n_values, -1, np.int64), np.full(n_values, -1, np.int64)
    left = np.ones(n_old)
    for i in range(n_old):
        old_at[codes[i]] = i
    new_codes = np.empty(hi - lo + 1, np.int32)
    emitted = np.zeros(hi - lo + 1, np.int32)
    n_new = 0
    for k in range(lo, hi):
        row = rows[k]
        i = old_at[prev[row]]
        if i >= 0 and p[row] != 0.0:
            left[i] -= p[row]
            if new_at[value[row]] < 0:
                new_at[value[row]] = n_new
                new_codes[n_new] = value[row]
                emitted[n_new] = letter[row]
                n_new += 1
    if np.any(left > ROUNDING) and new_at[0] < 0:
        new_at[0] = n_new
        new_codes[n_new] = 0
        n_new += 1
    after = np.zeros(outer * n_new * inner)
    for k in range(lo, hi):
        row = rows[k]
        i = old_at[prev[row]]
        if i >= 0 and p[row] != 0.0:
            _add_slice(before, after, outer, n_old, n_new, inner, i, new_at[value[row]], p[row])
    for i in range(n_old):
        if left[i] > ROUNDING:
            _add_slice(before, after, outer, n_old, n_new, inner, i, new_at[0], left[i])
    return new_codes[:n_new].copy(), emitted[:n_new].copy(), after


@compiled
def _add_slice(
    before: F64, after: F64, outer: int, n_old: int, n_new: int, inner: int, i: int, j: int, factor: float
) -> None:
    """Add `factor` times slice i of the axis in `before` to slice j of the axis in `after`."""
    for o in range(outer):
        source, target = (o * n_old + i) * inner, (o * n_new + j) * inner
        for r in range(inner):
            after[target + r] += factor * before[source + r]


@compiled
def _read_letters(
    weights: F64, axes: list[I32], emitted: list[I32], mixed: F64, delta: I32, accept: Bools, union: I32
) -> tuple[F64, float]:
    """Let the automaton read, in every cell of the product, the union of the letters of the cell."""
    n_states, n_letters = delta.shape
    after = np.zeros(len(weights))
    true = 0.0
    for cell in range(len(weights) // n_states):
        united = 0
        rest = cell
        for a in range(len(axes) - 1, -1, -1):
            united = union[united, emitted[a][rest % len(axes[a])]]
            rest //= len(axes[a])
        base = cell * n_states
        for s in range(n_letters):
            if mixed[s] != 0.0:
                read = union[s, united]
                for q in range(n_states):
                    w = mixed[s] * weights[base + q]
                    after[base + delta[q, read]] += w
                    if accept[q, read]:
                        true += w
    return after, true
