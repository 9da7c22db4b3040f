"""The arithmetic of PATTERN: arrays in, arrays out; knows no Spark, no Arrow and no text.

Rows of one call are first put in order (`order_rows`: by chain, instant, key) and cleaned (`clean_rows`: rows
given twice, groups
whose probabilities exceed 1). Then one of three kernels carries a weight for each automaton state forward over
the instants of each chain:

- `step_single`: every chain is one Markov key. Weight for each (value, state); a table row costs one
multiply-add per state.
- `step_independent`: no stream remembers. The letter distributions of the chain's keys are combined
  (union convolution), then the states alone are carried.
- `step_joint`: several keys, some of them Markov. The values of the Markov keys form a product, one axis each.

Assumptions: different keys are independent; a key's value depends on the past through its last value only; value
code 0 is *nothing*, which emits no symbol; letter 0 is the empty set.

Complexity: linear in the rows, times the number of states (and the size of the product, for the joint kernel).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# How a row fared in `clean_rows`.
USED, DUPLICATE, OVERFULL = 0, 1, 2

# How a stream is uncertain, as the kernels see it.
CERTAIN, INDEPENDENT, MARKOV = 0, 1, 2

#: A (key, t) or (key, t, prev) may sum to this much above 1 and still be read as rounding.
TOLERANCE = 1e-6

#: Left-over mass below this is rounding of a sum of probabilities, not nothing's.
ROUNDING = 2.0**-50

#: Rows of a chain may on average be this far from their place before it is sorted by merging.
MOVES_A_ROW = 16


@njit(cache=True)
def _not_after(a: int, b: int, t: I64, key: I32, prev: I32, value: I32, p: F64) -> bool:
    """Whether row a may stand before row b: by instant, key, previous value, value, probability."""
    if t[a] != t[b]:
        return bool(t[a] < t[b])
    if key[a] != key[b]:
        return bool(key[a] < key[b])
    if prev[a] != prev[b]:
        return bool(prev[a] < prev[b])
    if value[a] != value[b]:
        return bool(value[a] < value[b])
    return bool(p[a] <= p[b])


@njit(cache=True)
def _merge_sort(part: I64, t: I64, key: I32, prev: I32, value: I32, p: F64) -> None:
    """Sort row numbers in place, by runs of doubling length. NumPy's own sorts take Numba seconds to compile."""
    n = len(part)
    spare = np.empty(n, np.int64)
    width = 1
    while width < n:
        for lo in range(0, n, 2 * width):
            middle, hi = min(lo + width, n), min(lo + 2 * width, n)
            i, j = lo, middle
            for k in range(lo, hi):
                if i < middle and (j >= hi or _not_after(part[i], part[j], t, key, prev, value, p)):
                    spare[k] = part[i]
                    i += 1
                else:
                    spare[k] = part[j]
                    j += 1
        part[:] = spare
        width *= 2


@njit(cache=True)
def order_rows(chain: I32, t: I64, key: I32, prev: I32, value: I32, p: F64, n_chains: int) -> tuple[I64, I64]:
    """The permutation that sorts rows by chain, then instant, key, previous value, value and probability.

    A counting sort by chain; then each row is moved back to its place, which costs one comparison where rows come in
    order, and few where only those of an instant are mixed. A chain in greater disorder is sorted by merging.

    Returns
    -------
    order : the row numbers in order
    starts : where each chain's rows begin in `order`; one more than there are chains
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
        part = order[starts[c] : starts[c + 1]]
        moves = 0
        for j in range(1, len(part)):
            row = part[j]
            k = j
            while k > 0 and not _not_after(part[k - 1], row, t, key, prev, value, p):
                part[k] = part[k - 1]
                k -= 1
            part[k] = row
            moves += j - k
            if moves > MOVES_A_ROW * len(part):
                _merge_sort(part, t, key, prev, value, p)
                break
    return order, starts


@njit(cache=True)
def clean_rows(order: I64, t: I64, key: I32, model: I32, prev: I32, value: I32, p: F64, status: I8) -> I64:
    """Mark rows given twice and groups that sum above 1, in `status`; scale a sum within the tolerance to 1, in `p`.

    A group is a (key, t) of an INDEPENDENT stream, whose `prev` is 0 throughout, or a (key, t, prev) of a MARKOV
    one. `order` is as `order_rows` gave it. Returns the part of `order` that is to be used.
    """
    n = len(order)
    marked = False
    lo = 0
    while lo < n:
        first = order[lo]
        total = p[first]
        hi = lo + 1
        while hi < n:
            row, before = order[hi], order[hi - 1]
            if t[row] != t[first] or key[row] != key[first] or prev[row] != prev[first]:
                break
            if value[row] == value[before] and p[row] == p[before]:
                status[row] = DUPLICATE
                marked = True
            else:
                total += p[row]
            hi += 1
        if total > 1.0 and model[first] != CERTAIN:
            for j in range(lo, hi):
                if total > 1.0 + TOLERANCE:
                    status[order[j]] = OVERFULL
                    marked = True
                else:
                    p[order[j]] /= total
        lo = hi
    return order[status[order] == USED] if marked else order


@njit(cache=True)
def step_single(
    rows: I64, starts: I64, t: I64, prev: I32, value: I32, p: F64, letter: I32, delta: I32, accept: Bools,
    offsets: I64, codes: I32, weights: F64, n_values: int,
) -> tuple[I64, I32, F64, I32, I64, F64]:  # fmt: skip
    """Carry each chain, one Markov key, over its instants.

    For each table row (prev u, value v, probability p):  f'[v, delta(q, letter(v))] += p f[u, q].
    What the rows of u leave over goes to nothing.

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
    at = np.full((2, n_values), -1, np.int64)
    live_codes = np.empty((2, n_values), np.int32)
    live = np.zeros((2, n_values, n_states))
    left = np.empty(n_values)
    out_offsets = np.zeros(n_chains + 1, np.int64)
    out_codes = np.empty(len(codes) + len(rows) + n_chains, np.int32)
    out_weights = np.empty((len(out_codes), n_states))
    answer_chain, answer_t, answer_p = _answer_space(len(rows))
    n_answers = 0
    for c in range(n_chains):
        n_live = offsets[c + 1] - offsets[c]
        live_codes[0, :n_live] = codes[offsets[c] : offsets[c + 1]]
        live[0, :n_live] = weights[offsets[c] : offsets[c + 1]]
        n_live, now, found = _carry_chain(
            rows[starts[c] : starts[c + 1]], t, prev, value, p, letter, delta, accept,
            n_live, live_codes, live, at, left, answer_t[n_answers:], answer_p[n_answers:],
        )  # fmt: skip
        answer_chain[n_answers : n_answers + found] = c
        n_answers += found
        base = out_offsets[c]
        out_codes[base : base + n_live] = live_codes[now, :n_live]
        out_weights[base : base + n_live] = live[now, :n_live]
        out_offsets[c + 1] = base + n_live
    used = out_offsets[n_chains]
    return (
        out_offsets, out_codes[:used].copy(), out_weights[:used].copy(),
        answer_chain[:n_answers], answer_t[:n_answers], answer_p[:n_answers],
    )  # fmt: skip


@njit(cache=True)
def _idle_letters(delta: I32, accept: Bools) -> Bools:
    """The letters that change no state and make nothing true: those of most values of most queries."""
    n_states, n_letters = delta.shape
    idle = np.ones(n_letters, np.bool_)
    for q in range(n_states):
        for s in range(n_letters):
            idle[s] &= delta[q, s] == q and not accept[q, s]
    return idle


@njit(cache=True)
def _carry_chain(
    rows: I64, t: I64, prev: I32, value: I32, p: F64, letter: I32, delta: I32, accept: Bools,
    n_live: int, live_codes: I32, live: F64, at: I64, left: F64, answer_t: I64, answer_p: F64,
) -> tuple[int, int, int]:  # fmt: skip
    """Carry one chain over its instants, between the two halves of `live`; `at` (value to place) is -1 throughout.

    One function, not one per instant: a call costs Numba more than the arithmetic of a few rows. Returns the
    number of live values, the half that holds them, and the number of answers.
    """
    n_states = delta.shape[0]
    idle = _idle_letters(delta, accept)
    now, then, n_answers, k = 0, 1, 0, 0
    while k < len(rows):
        instant = t[rows[k]]
        for i in range(n_live):
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
            for q in range(n_states):
                w = p[row] * live[now, i, q]
                live[then, j, delta[q, s]] += w
                if accept[q, s]:
                    true += w
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


@njit(cache=True)
def _answer_space(n: int) -> tuple[I32, I64, F64]:
    """Room for the chain, instant and probability of n answers."""
    return np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)


@njit(cache=True)
def _instant_end(rows: I64, lo: int, end: int, t: I64) -> int:
    """Where the rows of the instant that begins at `lo` end."""
    hi = lo + 1
    while hi < end and t[rows[hi]] == t[rows[lo]]:
        hi += 1
    return hi


@njit(cache=True)
def _key_end(rows: I64, lo: int, end: int, key: I32) -> int:
    """Where, within one instant, the rows of the key that begins at `lo` end."""
    hi = lo + 1
    while hi < end and key[rows[hi]] == key[rows[lo]]:
        hi += 1
    return hi


@njit(cache=True)
def _emit(rows: I64, lo: int, hi: int, model: I32, p: F64, letter: I32, union: I32, own: F64) -> None:
    """The distribution of the letter that one key, rows[lo:hi], emits at one instant, added to `own`.

    The alternatives of an INDEPENDENT key exclude each other; the rows of a CERTAIN key all happen.
    """
    if model[rows[lo]] == CERTAIN:
        together = 0
        for j in range(lo, hi):
            together = union[together, letter[rows[j]]]
        own[together] += 1.0
    else:
        left = 1.0
        for j in range(lo, hi):
            own[letter[rows[j]]] += p[rows[j]]
            left -= p[rows[j]]
        if left > ROUNDING:
            own[0] += left


@njit(cache=True)
def _mix(
    rows: I64, lo: int, hi: int, key: I32, model: I32, p: F64, letter: I32, union: I32,
    mixed: F64, own: F64, spare: F64,
) -> None:  # fmt: skip
    """The distribution of the letter that the keys of one instant, rows[lo:hi], emit together, in `mixed`.

    Keys are independent, so letters unite by convolution; the first key needs none. Markov keys are passed over.
    """
    n_letters = len(mixed)
    for a in range(n_letters):
        mixed[a] = 0.0
    n_keys = 0
    start = lo
    while start < hi:
        end = _key_end(rows, start, hi, key)
        if model[rows[start]] != MARKOV:
            n_keys += 1
            if n_keys == 1:
                _emit(rows, start, end, model, p, letter, union, mixed)
            else:
                for a in range(n_letters):
                    own[a] = 0.0
                    spare[a] = 0.0
                _emit(rows, start, end, model, p, letter, union, own)
                for a in range(n_letters):
                    if mixed[a] != 0.0:
                        for b in range(n_letters):
                            if own[b] != 0.0:
                                spare[union[a, b]] += mixed[a] * own[b]
                for a in range(n_letters):
                    mixed[a] = spare[a]
        start = end
    if n_keys == 0:
        mixed[0] = 1.0


@njit(cache=True)
def step_independent(
    rows: I64, starts: I64, t: I64, key: I32, model: I32, p: F64, letter: I32,
    delta: I32, accept: Bools, union: I32, weights: F64,
) -> tuple[I32, I64, F64]:  # fmt: skip
    """Carry each chain over its instants where no stream remembers: f'[delta(q, s)] += P(letter = s) f[q].

    Parameters are those of `step_single`; `weights` is (chains, states) and is changed in place.
    """
    n_chains, n_states, n_letters = len(starts) - 1, delta.shape[0], delta.shape[1]
    mixed, own, spare = np.empty(n_letters), np.empty(n_letters), np.empty(n_letters)
    after = np.empty(n_states)
    answer_chain, answer_t, answer_p = _answer_space(len(rows))
    n_answers = 0
    for c in range(n_chains):
        lo, end = starts[c], starts[c + 1]
        while lo < end:
            first = rows[lo]
            hi = lo + 1
            while hi < end and t[rows[hi]] == t[first]:
                hi += 1
            if hi == lo + 1 or (key[rows[hi - 1]] == key[first] and model[first] == INDEPENDENT):
                # The usual case, without a call: alternatives of one key. A lone certain row has p = 1.
                for s in range(n_letters):
                    mixed[s] = 0.0
                left = 1.0
                for k in range(lo, hi):
                    mixed[letter[rows[k]]] += p[rows[k]]
                    left -= p[rows[k]]
                if left > ROUNDING:
                    mixed[0] += left
            else:
                _mix(rows, lo, hi, key, model, p, letter, union, mixed, own, spare)
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


@njit(cache=True)
def _move_axis(
    rows: I64, lo: int, hi: int, prev: I32, value: I32, p: F64, letter: I32,
    codes: I32, before: F64, inner: int, n_values: int,
) -> tuple[I32, I32, F64]:  # fmt: skip
    """Move one Markov key along its axis of the product.

    `before` is (outer, values, inner) flattened, with `codes` the values of the axis. Returns the new codes, the
    letter that each emits, and the new array.
    """
    n_old = len(codes)
    outer = len(before) // (n_old * inner)
    old_at, new_at = np.full(n_values, -1, np.int64), np.full(n_values, -1, np.int64)
    left = np.ones(n_old)
    old_at[codes] = np.arange(n_old)
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


@njit(cache=True)
def _add_slice(
    before: F64, after: F64, outer: int, n_old: int, n_new: int, inner: int, i: int, j: int, factor: float
) -> None:
    """Add `factor` times the slice i of an axis to the slice j of the moved one."""
    for o in range(outer):
        source, target = (o * n_old + i) * inner, (o * n_new + j) * inner
        for r in range(inner):
            after[target + r] += factor * before[source + r]


@njit(cache=True)
def step_joint(
    rows: I64, t: I64, key: I32, model: I32, prev: I32, value: I32, p: F64, letter: I32,
    delta: I32, accept: Bools, union: I32, axis_of: I64, sizes: I64, codes: I32, weights: F64,
    n_values: int, limit: int,
) -> tuple[I64, I32, F64, I64, F64, float]:  # fmt: skip
    """Carry one chain that several keys feed, some of them Markov, over its instants.

    Each Markov key is an axis of the product; at an instant, the keys that have rows move along their axes, then the
    automaton reads the union of what they and the independent keys emit.

    Parameters
    ----------
    rows : the chain's rows, by instant and key; the other columns as in `step_single`
    axis_of : for each key number, its axis; -1 for keys that do not remember
    sizes, codes : the number of values of each axis, and their codes, axis after axis
    weights : the product, flattened, axes in order and the state last
    limit : the largest number of weights to hold

    Returns
    -------
    sizes, codes, weights, answer_t, answer_p, needed
        `needed` is 0, or the number of weights that would have been needed, beyond the limit.
    """
    n_letters = delta.shape[1]
    mixed, own, spare = np.empty(n_letters), np.empty(n_letters), np.empty(n_letters)
    ends = np.cumsum(sizes)
    axes = [codes[ends[a] - sizes[a] : ends[a]].copy() for a in range(len(sizes))]
    _, answer_t, answer_p = _answer_space(len(rows))
    n_answers = 0
    needed = 0.0
    lo, end = 0, len(rows)
    while lo < end:
        hi = _instant_end(rows, lo, end, t)
        emitted = [np.zeros(len(axis), np.int32) for axis in axes]
        k = lo
        while k < hi:
            key_end = _key_end(rows, k, hi, key)
            if model[rows[k]] == MARKOV:
                a = axis_of[key[rows[k]]]
                needed = float(len(weights)) / len(axes[a]) * (key_end - k + 1)
                if needed > limit:
                    return sizes, codes, weights, answer_t[:0], answer_p[:0], needed
                inner = delta.shape[0]
                for b in range(a + 1, len(axes)):
                    inner *= len(axes[b])
                axes[a], emitted[a], weights = _move_axis(
                    rows, k, key_end, prev, value, p, letter, axes[a], weights, inner, n_values
                )
            k = key_end
        _mix(rows, lo, hi, key, model, p, letter, union, mixed, own, spare)
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
        new_codes[base : base + len(axis)] = axis
        base += len(axis)
    return new_sizes, new_codes, weights, answer_t[:n_answers], answer_p[:n_answers], 0.0


@njit(cache=True)
def _read_letters(
    weights: F64, axes: list[I32], emitted: list[I32], mixed: F64, delta: I32, accept: Bools, union: I32
) -> tuple[F64, float]:
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
