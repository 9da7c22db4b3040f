"""Given the readings so far: the filter, and the likeliest location of each step.

With A the transitions and b(t, x) the likelihood of what was read at step t, P[x_t | readings up to t] is carried
forward by f'(y) = b(t, y) sum over x of f(x) A(x, y).
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.rows import emit, make_columns, with_room
from anabranch.inference.kernel.weights import copy_weights, is_deep, likeliest, settle, spread, total_weight, weigh


@compiled
def predict(chain: Chain, started: bool, weights: F64, levels: I32, deep: bool, ahead: F64, ahead_levels: I32) -> None:
    """The weights before a step's readings are looked at, in `ahead`."""
    if started:
        spread(weights, levels, deep, chain.starts, chain.targets, chain.p, ahead, ahead_levels)
    else:
        for x in range(len(ahead)):
            ahead[x] = chain.initial[x]
            ahead_levels[x] = 0


@compiled
def correct(
    readings: I32, sensors: Sensors, hits: I64, ahead: F64, ahead_levels: I32, weights: F64, levels: I32
) -> tuple[bool, int, bool]:
    """Take a step's readings into account: whether they are possible, the exponent taken out, whether deep."""
    possible = weigh(ahead, ahead_levels, readings, sensors, hits, weights, levels)
    if not possible:
        copy_weights(ahead, ahead_levels, weights, levels)
    exponent, deep = settle(weights, levels)
    return possible, exponent, deep


@compiled
def filter_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, started: bool, weights: F64, levels: I32,
    prune: float,
) -> tuple[I32, I32, F64, I32, float, float]:  # fmt: skip
    """P[x_t | readings up to t] for each step.

    Parameters
    ----------
    chain, sensors : the model
    reading_starts, readings : the readers that saw the key at step t are readings[reading_starts[t]:reading_starts[t +
        1]], as `distinct_readings` gave them
    started : whether the key has had a step before; if not, the first step is at the initial distribution
    weights, levels : (N,), the state; changed in place, so that the next call goes on where this one ended. Results
        are the same, to the bit, however the steps are split into calls
    prune : rows of less probability are left out and the others of the step sum to 1 again. The state is not pruned

    Returns
    -------
    step, location, p : the rows
    impossible : the steps whose readings were impossible
    log_likelihood : log P[these readings, without the impossible ones | those before]
    dropped : the probability of the rows left out, summed over the steps: a bound on how far any answer can be from
        that of the rows not pruned (`smooth_rows` has the proof; here the distributions of the steps are independent)
    """
    n_steps, n_locations = len(reading_starts) - 1, len(weights)
    ahead, ahead_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits = np.zeros(n_locations, np.int64)
    step, previous, location, p = make_columns(4 * n_steps + n_locations)
    impossible = np.empty(n_steps, np.int32)
    deep = is_deep(weights, levels)
    n, n_impossible, exponents, dropped = 0, 0, 0, 0.0
    before = total_weight(weights, levels) if started else 1.0
    for t in range(n_steps):
        predict(chain, started, weights, levels, deep, ahead, ahead_levels)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        possible, exponent, deep = correct(now, sensors, hits, ahead, ahead_levels, weights, levels)
        started = True
        exponents += exponent
        if not possible:
            impossible[n_impossible] = t
            n_impossible += 1
        step, previous, location, p = with_room(step, previous, location, p, n + n_locations)
        n, left_out = emit(weights, levels, prune, t, n, step, previous, location, p)
        dropped += left_out
    log_likelihood = 0.0
    if n_steps:
        log_likelihood = math.log(total_weight(weights, levels) / before) + exponents * math.log(2.0)
    return step[:n], location[:n], p[:n], impossible[:n_impossible], log_likelihood, dropped


@compiled
def mle_path(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, started: bool, weights: F64, levels: I32
) -> tuple[I32, I32]:
    """The likeliest location of each step given the readings up to it, the lower code of equals; impossible steps.

    Parameters are those of `filter_rows`.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(weights)
    ahead, ahead_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits = np.zeros(n_locations, np.int64)
    path, impossible = np.empty(n_steps, np.int32), np.empty(n_steps, np.int32)
    deep = is_deep(weights, levels)
    n_impossible = 0
    for t in range(n_steps):
        predict(chain, started, weights, levels, deep, ahead, ahead_levels)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        possible, _, deep = correct(now, sensors, hits, ahead, ahead_levels, weights, levels)
        started = True
        if not possible:
            impossible[n_impossible] = t
            n_impossible += 1
        path[t] = likeliest(weights, levels)
    return path, impossible[:n_impossible]
