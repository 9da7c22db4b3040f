"""The arithmetic of PATTERN: arrays in, arrays out; knows no Spark, no Arrow and no text.

Rows of one call are first put in order (`order_rows`: by chain, instant, key) and cleaned (`clean_rows`: rows given twice, groups
whose probabilities exceed 1). Then one of three kernels carries a weight for each automaton state forward over the instants of each chain:

- `step_single`: every chain is one Markov key. Weight for each (value, state); a table row costs one multiply-add per state.
- `step_independent`: no stream remembers. The letter distributions of the chain's keys are combined
  (union convolution), then the states alone are carried.
- `step_joint`: several keys, some of them Markov. The values of the Markov keys form a product, one axis each.

Assumptions: different keys are independent; a key's value depends on the past through its last value only; value
code 0 is *nothing*, which emits no symbol; letter 0 is the empty set.

Complexity: linear in the rows, times the number of states (and the size of the product, for the joint kernel).
"""

from __future__ import annotations

import numpy as np
from numba import njit

# How a row fared in `clean_rows`.
USED, DUPLICATE, OVERFULL = 0, 1, 2

# How a stream is uncertain, as the kernels see it.
CERTAIN, INDEPENDENT, MARKOV = 0, 1, 2

#: A (key, t) or (key, t, prev) may sum to this much above 1 and still be read as rounding.
TOLERANCE = 1e-6

#: Left-over mass below this is rounding of a sum of probabilities, not nothing's.
ROUNDING = 2.0**-50


@njit(cache=True)
def order_rows(chain, t, key, n_chains):
    """The stable permutation that sorts rows by chain, then instant, then key.

    A counting sort by chain; a chain whose rows already come in order, the usual case, is not sorted again.

    Returns
    -------
    order : int64 array, the row numbers in order
    starts : int64 array of n_chains + 1, where each chain's rows begin
    """
    n = len(chain)
    starts = np.zeros(n_chains + 1, np.int64)
    for i in range(n):
        starts[chain[i] + 1] += 1
    for c in range(n_chains):
        starts[c + 1] += starts[c]
    fill = starts[:-1].copy()
    order = np.empty(n, np.int64)
    for i in range(n):
        order[fill[chain[i]]] = i
        fill[chain[i]] += 1
    for c in range(n_chains):
        lo, hi = starts[c], starts[c + 1]
        for j in range(lo + 1, hi):
            a, b = order[j - 1], order[j]
            if t[b] < t[a] or (t[b] == t[a] and key[b] < key[a]):
                part = order[lo:hi].copy()
                part = part[np.argsort(key[part], kind="mergesort")]
                order[lo:hi] = part[np.argsort(t[part], kind="mergesort")]
                break
    return order, starts


@njit(cache=True)
def _sort_group(order, lo, hi, prev, value, p):
    """Sort the rows of one (key, t) by (prev, value, p): equal rows become neighbours."""
    if hi - lo > 32:
        part = order[lo:hi].copy()
        part = part[np.argsort(p[part], kind="mergesort")]
        part = part[np.argsort(value[part], kind="mergesort")]
        order[lo:hi] = part[np.argsort(prev[part], kind="mergesort")]
        return
    for j in range(lo + 1, hi):
        row = order[j]
        k = j
        while k > lo:
            other = order[k - 1]
            if prev[other] < prev[row] or (
                prev[other] == prev[row]
                and (value[other] < value[row] or (value[other] == value[row] and p[other] <= p[row]))
            ):
                break
            order[k] = other
            k -= 1
        order[k] = row


@njit(cache=True)
def clean_rows(order, t, key, model, prev, value, p, status):
    """Mark rows given twice and groups that sum above 1, in `status`; scale a sum within the tolerance to 1, in `p`.

    A group is a (key, t) of an INDEPENDENT stream, a (key, t, prev) of a MARKOV one. `order` is as
    `order_rows` left it, and is sorted within each (key, t). Returns the rows of `order` that are to be used.
    """
    n = len(order)
    lo = 0
    while lo < n:
        first = order[lo]
        hi = lo + 1
        while hi < n and key[order[hi]] == key[first] and t[order[hi]] == t[first]:
            hi += 1
        if hi > lo + 1:
            _sort_group(order, lo, hi, prev, value, p)
            for j in range(lo + 1, hi):
                a, b = order[j - 1], order[j]
                if prev[a] == prev[b] and value[a] == value[b] and p[a] == p[b]:
                    status[b] = DUPLICATE
        if model[first] != CERTAIN:
            _check_sums(order, lo, hi, prev, p, status)
        lo = hi
    return order[status[order] == USED]


@njit(cache=True)
def _check_sums(order, lo, hi, prev, p, status):
    """Judge each prev of one (key, t); an INDEPENDENT row has prev 0 throughout."""
    start = lo
    while start < hi:
        end = start
        total = 0.0
        while end < hi and prev[order[end]] == prev[order[start]]:
            if status[order[end]] == USED:
                total += p[order[end]]
            end += 1
        if total > 1.0:
            for j in range(start, end):
                if total > 1.0 + TOLERANCE:
                    status[order[j]] = OVERFULL
                else:
                    p[order[j]] /= total
        start = end


@njit(cache=True)
def step_single(rows, starts, t, prev, value, p, letter, delta, accept, offsets, codes, weights, n_values):
    """Carry each chain, one Markov key, over its instants.

    For each table row (prev u, value v, probability p):  f'[v, delta(q, letter(v))] += p f[u, q];  what the rows of u leave over goes to nothing.

    Parameters
    ----------
    rows : the rows to use, by chain and instant
    starts : where each chain begins in `rows`; chain c is rows[starts[c]:starts[c + 1]]
    t, prev, value, p, letter : columns, by row number
    delta, accept : the automaton's tables, (states, letters)
    offsets, codes, weights : the state; chain c holds values codes[offsets[c]:offsets[c + 1]] and
        their weights (values, states)
    n_values : number of value codes

    Returns
    -------
    offsets, codes, weights : the new state
    answer_chain, answer_t, answer_p : the probability that the query is true, where it is above 0
    """
    n_chains, n_states = len(starts) - 1, delta.shape[0]
    now_at = np.full(n_values, -1, np.int64)
    next_at = np.full(n_values, -1, np.int64)
    now_codes, next_codes = np.empty(n_values, np.int32), np.empty(n_values, np.int32)
    now, after = np.zeros((n_values, n_states)), np.zeros((n_values, n_states))
    left = np.empty(n_values)
    out_offsets = np.zeros(n_chains + 1, np.int64)
    out_codes = np.empty(len(codes) + len(rows) + n_chains, np.int32)
    out_weights = np.empty((len(out_codes), n_states))
    answer_chain = np.empty(len(rows), np.int32)
    answer_t = np.empty(len(rows), np.int64)
    answer_p = np.empty(len(rows))
    n_answers = 0
    for c in range(n_chains):
        n_now = offsets[c + 1] - offsets[c]
        for i in range(n_now):
            now_codes[i] = codes[offsets[c] + i]
            now[i] = weights[offsets[c] + i]
        lo, end = starts[c], starts[c + 1]
        while lo < end:
            instant = t[rows[lo]]
            for i in range(n_now):
                now_at[now_codes[i]] = i
                left[i] = 1.0
            n_next = 0
            true = 0.0
            hi = lo
            while hi < end and t[rows[hi]] == instant:
                row = rows[hi]
                hi += 1
                i = now_at[prev[row]]
                if i < 0 or p[row] == 0.0:
                    continue
                j = next_at[value[row]]
                if j < 0:
                    j = n_next
                    n_next += 1
                    next_at[value[row]] = j
                    next_codes[j] = value[row]
                    after[j] = 0.0
                left[i] -= p[row]
                s = letter[row]
                for q in range(n_states):
                    w = p[row] * now[i, q]
                    after[j, delta[q, s]] += w
                    if accept[q, s]:
                        true += w
            for i in range(n_now):
                now_at[now_codes[i]] = -1
                if left[i] > ROUNDING:
                    j = next_at[0]
                    if j < 0:
                        j = n_next
                        n_next += 1
                        next_at[0] = j
                        next_codes[j] = 0
                        after[j] = 0.0
                    for q in range(n_states):
                        after[j, q] += left[i] * now[i, q]
            for j in range(n_next):
                next_at[next_codes[j]] = -1
            if true > 0.0:
                answer_chain[n_answers] = c
                answer_t[n_answers] = instant
                answer_p[n_answers] = min(true, 1.0)
                n_answers += 1
            now, after = after, now
            now_codes, next_codes = next_codes, now_codes
            n_now = n_next
            lo = hi
        base = out_offsets[c]
        for i in range(n_now):
            out_codes[base + i] = now_codes[i]
            out_weights[base + i] = now[i]
        out_offsets[c + 1] = base + n_now
    used = out_offsets[n_chains]
    return (
        out_offsets, out_codes[:used].copy(), out_weights[:used].copy(),
        answer_chain[:n_answers], answer_t[:n_answers], answer_p[:n_answers],
    )  # fmt: skip


@njit(cache=True)
def _unite(rows, lo, hi, model, p, letter, union, mixed, own, spare):
    """Unite the letters of one key at one instant into the distribution `mixed`, in place.

    The alternatives of an INDEPENDENT key exclude each other; the rows of a CERTAIN key all happen.
    """
    n_letters = len(mixed)
    own[:] = 0.0
    if model[rows[lo]] == CERTAIN:
        together = 0
        for j in range(lo, hi):
            together = union[together, letter[rows[j]]]
        own[together] = 1.0
    else:
        left = 1.0
        for j in range(lo, hi):
            own[letter[rows[j]]] += p[rows[j]]
            left -= p[rows[j]]
        if left > ROUNDING:
            own[0] += left
    spare[:] = 0.0
    for a in range(n_letters):
        if mixed[a] != 0.0:
            for b in range(n_letters):
                if own[b] != 0.0:
                    spare[union[a, b]] += mixed[a] * own[b]
    mixed[:] = spare


@njit(cache=True)
def _key_end(rows, lo, end, key, t):
    """Where the rows of the (key, t) that begins at `lo` end."""
    first = rows[lo]
    hi = lo + 1
    while hi < end and key[rows[hi]] == key[first] and t[rows[hi]] == t[first]:
        hi += 1
    return hi


@njit(cache=True)
def step_independent(rows, starts, t, key, model, p, letter, delta, accept, union, weights):
    """Carry each chain over its instants where no stream remembers: f'[delta(q, s)] += P(letter = s) f[q].

    Parameters are those of `step_single`; `weights` is (chains, states) and is changed in place.
    """
    n_chains, n_states, n_letters = len(starts) - 1, delta.shape[0], delta.shape[1]
    mixed, own, spare = np.empty(n_letters), np.empty(n_letters), np.empty(n_letters)
    after = np.empty(n_states)
    answer_chain = np.empty(len(rows), np.int32)
    answer_t = np.empty(len(rows), np.int64)
    answer_p = np.empty(len(rows))
    n_answers = 0
    for c in range(n_chains):
        lo, end = starts[c], starts[c + 1]
        while lo < end:
            instant = t[rows[lo]]
            mixed[:] = 0.0
            mixed[0] = 1.0
            while lo < end and t[rows[lo]] == instant:
                hi = _key_end(rows, lo, end, key, t)
                _unite(rows, lo, hi, model, p, letter, union, mixed, own, spare)
                lo = hi
            after[:] = 0.0
            true = 0.0
            for s in range(n_letters):
                if mixed[s] != 0.0:
                    for q in range(n_states):
                        w = mixed[s] * weights[c, q]
                        after[delta[q, s]] += w
                        if accept[q, s]:
                            true += w
            weights[c] = after
            if true > 0.0:
                answer_chain[n_answers] = c
                answer_t[n_answers] = instant
                answer_p[n_answers] = min(true, 1.0)
                n_answers += 1
    return answer_chain[:n_answers], answer_t[:n_answers], answer_p[:n_answers]


@njit(cache=True)
def _move_axis(rows, lo, hi, prev, value, p, letter, codes, before, inner, n_values):
    """Move one Markov key along its axis of the product.

    `before` is (outer, values, inner) flattened, with `codes` the values of the axis. Returns the new codes, the letter that each
    emits, and the new array.
    """
    n_old = len(codes)
    outer = len(before) // (n_old * inner)
    old_at = np.full(n_values, -1, np.int64)
    new_at = np.full(n_values, -1, np.int64)
    left = np.ones(n_old)
    for i in range(n_old):
        old_at[codes[i]] = i
    new_codes = np.empty(hi - lo + 1, np.int32)
    emitted = np.zeros(hi - lo + 1, np.int32)
    n_new = 0
    for j in range(lo, hi):
        row = rows[j]
        i = old_at[prev[row]]
        if i < 0 or p[row] == 0.0:
            continue
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
    for j in range(lo, hi):
        row = rows[j]
        i, k = old_at[prev[row]], new_at[value[row]]
        if i >= 0 and p[row] != 0.0:
            _add_slice(before, after, outer, n_old, n_new, inner, i, k, p[row])
    for i in range(n_old):
        if left[i] > ROUNDING:
            _add_slice(before, after, outer, n_old, n_new, inner, i, new_at[0], left[i])
    return new_codes[:n_new].copy(), emitted[:n_new].copy(), after


@njit(cache=True)
def _add_slice(before, after, outer, n_old, n_new, inner, i, k, factor):
    for o in range(outer):
        source, target = (o * n_old + i) * inner, (o * n_new + k) * inner
        for r in range(inner):
            after[target + r] += factor * before[source + r]


@njit(cache=True)
def step_joint(
    rows, t, key, model, prev, value, p, letter, delta, accept, union,
    member, sizes, codes, weights, n_values, limit,
):  # fmt: skip
    """Carry one chain that several keys feed, some of them Markov, over its instants.

    Each Markov key is an axis of the product; at an instant, the keys that have rows move along their axes, then the automaton reads the
    union of what they and the independent keys emit.

    Parameters
    ----------
    rows : the chain's rows, by instant and key; the other columns as in `step_single`
    member : for each key number, its axis; -1 for keys that do not remember
    sizes, codes : the number of values of each axis, and their codes, axis after axis
    weights : the product, flattened, axes in order and the state last
    limit : the largest number of weights to hold

    Returns
    -------
    sizes, codes, weights, answer_t, answer_p, needed
        `needed` is 0, or the number of weights that would have been needed, beyond the limit.
    """
    n_states, n_letters = delta.shape
    mixed, own, spare = np.empty(n_letters), np.empty(n_letters), np.empty(n_letters)
    axes = [np.empty(0, np.int32) for _ in range(len(sizes))]
    emitted = [np.empty(0, np.int32) for _ in range(len(sizes))]
    base = 0
    for a in range(len(sizes)):
        axes[a] = codes[base : base + sizes[a]].copy()
        base += sizes[a]
    answer_t, answer_p = np.empty(len(rows), np.int64), np.empty(len(rows))
    n_answers = 0
    needed = 0.0
    lo, end = 0, len(rows)
    while lo < end and needed == 0.0:
        instant = t[rows[lo]]
        mixed[:] = 0.0
        mixed[0] = 1.0
        for a in range(len(axes)):
            emitted[a] = np.zeros(len(axes[a]), np.int32)
        while lo < end and t[rows[lo]] == instant:
            hi = _key_end(rows, lo, end, key, t)
            if model[rows[lo]] != MARKOV:
                _unite(rows, lo, hi, model, p, letter, union, mixed, own, spare)
            else:
                a = member[key[rows[lo]]]
                inner = n_states
                for b in range(a + 1, len(axes)):
                    inner *= len(axes[b])
                worst = float(len(weights)) / len(axes[a]) * (hi - lo + 1)
                if worst > limit:
                    needed = worst
                    break
                axes[a], emitted[a], weights = _move_axis(
                    rows, lo, hi, prev, value, p, letter, axes[a], weights, inner, n_values
                )
            lo = hi
        if needed > 0.0:
            break
        weights, true = _read_letters(weights, axes, emitted, mixed, delta, accept, union)
        if true > 0.0:
            answer_t[n_answers] = instant
            answer_p[n_answers] = min(true, 1.0)
            n_answers += 1
    total = 0
    for a in range(len(axes)):
        sizes[a] = len(axes[a])
        total += len(axes[a])
    out_codes = np.empty(total, np.int32)
    base = 0
    for a in range(len(axes)):
        out_codes[base : base + sizes[a]] = axes[a]
        base += sizes[a]
    return sizes, out_codes, weights, answer_t[:n_answers], answer_p[:n_answers], needed


@njit(cache=True)
def _read_letters(weights, axes, emitted, mixed, delta, accept, union):
    """Let the automaton read, in every cell of the product, the union of the letters emitted there."""
    n_states, n_letters = delta.shape
    after = np.zeros(len(weights))
    true = 0.0
    for cell in range(len(weights) // n_states):
        together = 0
        rest = cell
        for a in range(len(axes) - 1, -1, -1):
            together = union[together, emitted[a][rest % len(axes[a])]]
            rest //= len(axes[a])
        base = cell * n_states
        for s in range(n_letters):
            if mixed[s] != 0.0:
                read = union[s, together]
                for q in range(n_states):
                    w = mixed[s] * weights[base + q]
                    after[base + delta[q, read]] += w
                    if accept[q, read]:
                        true += w
    return after, true
