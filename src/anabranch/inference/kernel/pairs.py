"""Inference from the readings so far, or up to a lag later, that keeps what successive steps have in common.

A query that reads x_1 ... x_t is in some state q of its automaton. With r the readings up to step t + lag, and all
those up to step t,

    P[x_t = y, q | r]  =  P[x_t = y | r]  *  P[q | x_t = y, readings up to t]:

given x_t, the past does not depend on later readings. The second factor is updated by the *backward* transitions,
which depend on the filter f alone: P[x_(t-1) = x | x_t = y, readings] = f(t - 1, x) A(x, y) / (the sum over x). So one
table per step updates weights that sum to P[x_t = y | r] over q, whatever the lag:

    w(t, x, y)  =  P[x_t = y | r] P[x_(t-1) = x | x_t = y] / P[x_(t-1) = x | readings up to t - 1 + lag].

The rows from x do not sum to 1: they are weights, not probabilities of moves. Without a lag,
w(t, x, y) = A(x, y) b(t, y) / P[readings of t | readings before t].
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.backward import back, mark_steps
from anabranch.inference.kernel.forward import correct, mle_path, predict
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.rows import NOTHING, make_columns, with_capacity
from anabranch.inference.kernel.weights import copy_weights, is_deep, plain, settle, spread, total_weight

#: A possible location has at least this probability, so that what is known about its past is not lost to underflow:
#: later readings may exclude all other locations. It changes no probability of an answer that a double can show.
LEAST = 1e-100


@compiled
def pair_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, started: bool, weights: F64, levels: I32,
    marginal: F64, n_final: int, lag: int, pairs: bool,
) -> tuple[I32, I32, I32, F64, I32]:  # fmt: skip
    """The weights w(t, x, y) of the first `n_final` steps; the other steps are only looked at.

    Parameters
    ----------
    chain, sensors, reading_starts, readings, started, weights, levels : as in `filter_rows`; the state is that after
        the last final step
    marginal : (N,), changed in place: P[x_t | readings up to t + lag] of the last final step
    n_final : the number of steps of which rows are returned. The steps after them end at the last step of the key, or
        are at least `lag`
    lag : how many later steps have readings that count
    pairs : whether to return P[x_(t-1) = x, x_t = y | readings up to t + lag] instead of weights

    Returns
    -------
    step, previous, location, p : the rows; the previous location is -1 in rows of the first step of the key
    impossible : the steps whose readings were impossible, also among those that are not final
    """
    n_steps, n_locations = len(reading_starts) - 1, len(weights)
    _, impossible = mle_path(chain, sensors, reading_starts, readings, started, weights.copy(), levels.copy())
    skip = mark_steps(impossible, n_steps)
    before, before_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    ahead, ahead_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    given, given_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits, probability = np.zeros(n_locations, np.int64), np.empty(n_locations)
    step, previous, location, p = make_columns(4 * n_final + n_locations)
    deep, n = is_deep(weights, levels), 0
    for t in range(n_final):
        predict(chain, started, weights, levels, deep, ahead, ahead_levels)
        copy_weights(weights, levels, before, before_levels)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        _, _, deep = correct(now, sensors, hits, ahead, ahead_levels, weights, levels)
        copy_weights(weights, levels, given, given_levels)
        last = min(t + lag, n_steps - 1)
        if last > t:
            _look_ahead(chain, sensors, reading_starts, readings, skip, t, last, hits, given, given_levels)
        step, previous, location, p = with_capacity(step, previous, location, p, n + max(n_locations, len(chain.p)))
        first = n
        n = _write(
            chain, started, before, before_levels, ahead, ahead_levels, given, given_levels, probability, marginal,
            pairs, n, previous, location, p,
        )  # fmt: skip
        for row in range(first, n):
            step[row] = t
        started = True
    return step[:n], previous[:n], location[:n], p[:n], impossible


@compiled
def _look_ahead(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, skip: Bools, t: int, last: int, hits: I64,
    given: F64, given_levels: I32,
) -> None:  # fmt: skip
    """Multiply the weights of step t by the likelihoods of the readings of the steps after it, up to `last`."""
    n_locations = len(given)
    g, g_levels = np.empty(n_locations), np.zeros(n_locations, np.int32)
    behind, behind_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    deep = False
    for u in range(last, t, -1):
        now = readings[reading_starts[u] : reading_starts[u + 1]]
        _, _, deep = back(
            chain, sensors, now, u == last, skip[u], deep, g, g_levels, behind, behind_levels, hits, g, g_levels
        )
    spread(g, g_levels, deep, chain.back_starts, chain.sources, chain.back_p, behind, behind_levels)
    for x in range(n_locations):
        given[x] *= behind[x]
        given_levels[x] += behind_levels[x]
    settle(given, given_levels)


@compiled_uncounted
def _write(
    chain: Chain, started: bool, before: F64, before_levels: I32, ahead: F64, ahead_levels: I32, given: F64,
    given_levels: I32, now: F64, marginal: F64, pairs: bool, n: int, previous: I32, location: I32, p: F64,
) -> int:  # fmt: skip
    """Write the rows of one step, from row n on, and update `marginal`; returns the new number of rows.

    `now` is overwritten.
    """
    total = total_weight(given, given_levels)
    for y in range(len(given)):
        now[y] = max(plain(given[y], given_levels[y]) / total, LEAST) if given[y] != 0.0 else 0.0
    if not started:
        for y in range(len(given)):
            if now[y] != 0.0:
                previous[n], location[n], p[n] = -1, y, now[y]
                n += 1
    else:
        for x in range(len(before)):
            if before[x] == 0.0 or marginal[x] == 0.0:
                continue
            for j in range(chain.starts[x], chain.starts[x + 1]):
                y = chain.targets[j]
                if now[y] == 0.0:
                    continue
                # Divide first: both may be far below 1.
                came_from_x = plain(before[x] / ahead[y] * chain.p[j], before_levels[x] - ahead_levels[y])
                if came_from_x > NOTHING:
                    pair = now[y] * came_from_x
                    previous[n], location[n], p[n] = x, y, pair if pairs else pair / marginal[x]
                    n += 1
    for y in range(len(given)):
        marginal[y] = now[y]
    return n
