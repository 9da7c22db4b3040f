"""Sorts rows, and cleans them of duplicates and of groups whose probabilities exceed 1."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I8, I32, I64
from anabranch.compiled import assign, compiled
from anabranch.pattern.kernel.chains import CERTAIN, DUPLICATE, OVERFULL, USED, WEIGHTED

#: A sum of a (key, t) or (key, t, prev) that is above 1 by at most this is treated as a rounding error.
TOLERANCE = 1e-6

#: If the rows of a chain are on average further than this from their sorted position, merge sort is used.
MOVES_PER_ROW = 16


@compiled
def _not_after(a: int, b: int, t: I64, key: I32, prev: I32, value: I32, p: F64) -> bool:
    """Whether row a may be before row b: by instant, key, previous value, value, probability."""
    if t[a] != t[b]:
        return bool(t[a] < t[b])
    if key[a] != key[b]:
        return bool(key[a] < key[b])
    if prev[a] != prev[b]:
        return bool(prev[a] < prev[b])
    if value[a] != value[b]:
        return bool(value[a] < value[b])
    return bool(p[a] <= p[b])


@compiled
def _merge_sort(part: I64, t: I64, key: I32, prev: I32, value: I32, p: F64) -> None:
    """Sort row indexes in place by merge sort, with runs of doubling length.

    NumPy's sorts take Numba seconds to compile.
    """
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
        assign(part, spare)
        width *= 2


@compiled
def order_rows(chain: I32, t: I64, key: I32, prev: I32, value: I32, p: F64, n_chains: int) -> tuple[I64, I64]:
    """The permutation that sorts rows by chain, then instant, key, previous value, value and probability.

    A counting sort by chain, then an insertion sort of each chain. It costs one comparison per row if the rows are
    sorted, and few if only the rows of an instant are mixed. A chain in greater disorder is sorted by merge sort.

    Returns
    -------
    order : the row indexes in sorted order
    starts : the start of each chain in `order`, and the end of the last one
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
            if moves > MOVES_PER_ROW * len(part):
                _merge_sort(part, t, key, prev, value, p)
                break
    return order, starts


@compiled
def clean_rows(order: I64, t: I64, key: I32, model: I32, prev: I32, value: I32, p: F64, status: I8) -> I64:
    """Mark duplicates and groups that sum above 1, in `status`; scale a sum within the tolerance to 1, in `p`.

    A group is a (key, t) of an INDEPENDENT stream, whose `prev` is always 0, or a (key, t, prev) of a MARKOV stream.
    `order` comes from `order_rows`. Returns the part of `order` to use.
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
        if total > 1.0 and model[first] != CERTAIN and model[first] != WEIGHTED:
            for j in range(lo, hi):
                if total > 1.0 + TOLERANCE:
                    status[order[j]] = OVERFULL
                    marked = True
                else:
                    p[order[j]] /= total
        lo = hi
    return order[status[order] == USED] if marked else order
