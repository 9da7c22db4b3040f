"""Inference from all readings: the posterior over paths as tables, and the distribution of each step.

Given all readings, the hidden path is again a Markov chain, with tables P[y at t + 1 | x at t, all readings] =
A(x, y) g(t + 1, y) / (the sum over y), where A are the transitions and g are the weights of `backward.py`.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.backward import fill_block, make_marks, mark_steps
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.rows import NOTHING, emit, make_columns, with_capacity
from anabranch.inference.kernel.weights import block_length, fill_weights, plain, settle, total_weight

_NO_LEVEL = -(2**31)


@compiled
def _begin(chain: Chain, g: F64, g_levels: I32, now: F64) -> None:
    """Compute P[x_0 | all readings], into `now`."""
    weights, levels = np.empty(len(g)), g_levels.copy()
    for x in range(len(g)):
        weights[x] = g[x] * chain.initial[x]
    settle(weights, levels)
    total = total_weight(weights, levels)
    for x in range(len(now)):
        now[x] = plain(weights[x], levels[x]) / total


@compiled_uncounted
def _carry(
    chain: Chain, g: F64, g_levels: I32, now: F64, after: F64, moves: F64, least: float, tables: bool, at: int, n: int,
    step: I32, previous: I32, location: I32, p: F64,
) -> tuple[int, float]:  # fmt: skip
    """Compute the distribution `after` of the next step from `now`, by the posterior tables.

    With `tables`, write the rows of the tables from row n on, without moves whose joint probability is below `least`.
    Returns the new number of rows and the probability of the dropped moves.
    """
    dropped = 0.0
    for x in range(len(after)):
        after[x] = 0.0
    for x in range(len(now)):
        if now[x] == 0.0:
            continue
        first, end = chain.starts[x], chain.starts[x + 1]
        # now(x) > 0, so g allows at least one move; the highest level is that of the most likely one.
        top = _NO_LEVEL
        for j in range(first, end):
            if g[chain.targets[j]] != 0.0:
                top = max(top, g_levels[chain.targets[j]])
        total = 0.0
        for j in range(first, end):
            y = chain.targets[j]
            total += plain(g[y] * chain.p[j], g_levels[y] - top)
        best = 0
        for j in range(end - first):
            y = chain.targets[first + j]
            # Divide first: the total may be far below 1.
            moves[j] = plain(g[y] * chain.p[first + j] / total, g_levels[y] - top)
            if moves[j] > moves[best]:
                best = j
        kept = 0.0
        for j in range(end - first):
            if tables and now[x] * moves[j] < least and j != best:
                dropped += now[x] * moves[j]
                moves[j] = 0.0
            kept += moves[j]
        for j in range(end - first):
            if moves[j] != 0.0:
                y, move = chain.targets[first + j], moves[j] / kept
                after[y] += now[x] * move
                if tables:
                    step[n], previous[n], location[n], p[n] = at, x, y, move
                    n += 1
    return n, dropped


@compiled
def smooth_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, prune: float, tables: bool
) -> tuple[I32, I32, I32, F64, I32, float, float]:
    """The posterior over paths: P[x_0 | all readings], and for each further step P[x' | x, all readings].

    Rows of an impossible x are dropped, and so are moves whose joint probability is below `prune`: the probability of
    being in x, by the rows kept so far, times that of the move from x. The most likely move from a kept x is always
    kept, so no path ends, and the rows of each x are scaled to sum to 1. An x that no kept row leads to has no rows.

    **How far pruning can change an answer.** Let d(t, x) be the dropped part of the table of x at t, w(t, x) the
    probability of x at t by the kept rows, and D the sum of w(t, x) d(t, x) over all t and x, which is `dropped`. Then
    the probability of any event, and thus of any answer, differs between pruned and true paths by at most D. Proof: let
    a true and a pruned path start together in a common state before the first step; the first distribution is a table
    as well. From a common x at t, one of the two distributions of the next value is the other without the part
    d(t, x), scaled up. Their total variation distance is d(t, x), so the two values can be coupled such that they
    differ with probability d(t, x) only. Both paths are in x at t, and have not parted before, with probability at most
    w(t, x). So they ever part with probability at most D, and an event that is true for only one of them requires that
    they part. Each dropped row adds less than `prune`, so D < prune * (number of dropped rows).

    Parameters
    ----------
    chain, sensors, reading_starts, readings : as in `filter_rows`; all steps of the key
    prune : 0 to drop no rows (except those below `NOTHING`)
    tables : whether to return these tables; if not, the marginals (see `marginal_rows`)

    Returns
    -------
    step, previous, location, p : the rows; the previous location is -1 in rows of the first step
    impossible : the steps whose readings were impossible
    log_likelihood : log P[all readings, without the impossible ones]
    dropped : D
    """
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    marks, mark_levels, impossible, log_likelihood = make_marks(chain, sensors, reading_starts, readings)
    skip = mark_steps(impossible, n_steps)
    block = block_length(n_steps)
    g, g_levels = np.empty((block, n_locations)), np.empty((block, n_locations), np.int32)
    now, after, zero_levels = np.empty(n_locations), np.empty(n_locations), np.zeros(n_locations, np.int32)
    moves = np.empty(n_locations)  # No location has more moves.
    step, previous, location, p = make_columns(4 * n_steps + n_locations)
    n, dropped = 0, 0.0
    for t in range(n_steps):
        in_block = t % block
        if in_block == 0:
            fill_block(chain, sensors, reading_starts, readings, skip, t, marks, mark_levels, g, g_levels)
        step, previous, location, p = with_capacity(step, previous, location, p, n + max(n_locations, len(chain.p)))
        left_out = 0.0
        if t == 0:
            _begin(chain, g[0], g_levels[0], now)
        else:
            n, left_out = _carry(
                chain, g[in_block], g_levels[in_block], now, after, moves, max(prune, NOTHING), tables, t, n,
                step, previous, location, p,
            )  # fmt: skip
            now, after = after, now
        if t == 0 or not tables:
            n, left_out = emit(now, zero_levels, prune, t, n, step, previous, location, p)
        if t == 0 and tables:
            fill_weights(now, zero_levels, 0.0)
            for row in range(n):
                now[location[row]] = p[row]
        dropped += left_out
    return step[:n], previous[:n], location[:n], p[:n], impossible, log_likelihood, dropped


@compiled
def marginal_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, prune: float
) -> tuple[I32, I32, F64, I32, float, float]:
    """P[x_t | all readings] for each step: `smooth_rows` without tables. Pruning and results: see `filter_rows`."""
    step, _, location, p, impossible, log_likelihood, dropped = smooth_rows(
        chain, sensors, reading_starts, readings, prune, False
    )
    return step, location, p, impossible, log_likelihood, dropped
