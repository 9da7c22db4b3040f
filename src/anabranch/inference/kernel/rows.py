"""Output rows (step, previous, location, p) as columns, and how weights are written to them."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.weights import likeliest, plain, total_weight

#: Rows of a lower probability are dropped, pruned or not: a double can barely represent them.
NOTHING = 1e-300


@compiled
def make_columns(n: int) -> tuple[I32, I32, I32, F64]:
    """Empty columns for n rows."""
    return np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)


@compiled
def with_capacity(step: I32, previous: I32, location: I32, p: F64, needed: int) -> tuple[I32, I32, I32, F64]:
    """The columns, copied to longer ones if they have less than the needed number of rows."""
    n = len(p)
    if needed <= n:
        return step, previous, location, p
    longer = max(needed, 2 * n)
    new_step, new_previous = np.empty(longer, np.int32), np.empty(longer, np.int32)
    new_location, new_p = np.empty(longer, np.int32), np.empty(longer)
    for row in range(n):
        new_step[row], new_previous[row] = step[row], previous[row]
        new_location[row], new_p[row] = location[row], p[row]
    return new_step, new_previous, new_location, new_p


@compiled_uncounted
def emit(
    weights: F64, levels: I32, prune: float, at: int, n: int, step: I32, previous: I32, location: I32, p: F64
) -> tuple[int, float]:
    """Write settled weights as a distribution, from row n on.

    Rows below `prune` are dropped, except the largest, and the others are scaled to sum to 1. Returns the new number of
    rows and the dropped probability.
    """
    total, best = total_weight(weights, levels), likeliest(weights, levels)
    least = max(prune, NOTHING) * total
    kept, first = 0.0, n
    for x in range(len(weights)):
        w = weights[x]
        if w >= least and levels[x] != 0:
            w = plain(w, levels[x])
        if w >= least or x == best:
            step[n], previous[n], location[n], p[n] = at, -1, x, w
            kept += w
            n += 1
    for row in range(first, n):
        p[row] /= kept
    return n, max(0.0, 1.0 - kept / total)
