"""Inference from the readings so far: the filter, and the most likely location of each step.

With A the transitions and b(t, x) the likelihood of the readings of step t, P[x_t | readings up to t] is updated by
f'(y) = b(t, y) sum over x of f(x) A(x, y).
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.rows import emit, make_columns, with_capacity
from anabranch.inference.kernel.weights import copy_weights, is_deep, likeliest, settle, spread, total_weight, weigh


@compiled_uncounted
def predict(chain: Chain, started: bool, weights: F64, levels: I32, deep: bool, ahead: F64, ahead_levels: I32) -> None:
    """Compute the weights of a step before its readings, into `ahead`."""
    if started:
        spread(weights, levels, deep, chain.starts, chain.targets, chain.p, ahead, ahead_levels)
    else:
        for x in range(len(ahead)):
            ahead[x] = chain.initial[x]
            ahead_levels[x] = 0


@compiled_uncounted
def correct(
    readings: I32, sensors: Sensors, hits: I64, ahead: F64, ahead_levels: I32, weights: F64, levels: I32
) -> tuple[bool, int, bool]:
    """Apply the readings of a step to `ahead`, into `weights`; if they are impossible, only copy.

    Returns whether the readings are possible, the exponent of the scale, and whether the weights are deep.
    """
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
        1]], from `distinct_readings`
    started : whether the key has had a step before; if not, the first step has the initial distribution
    weights, levels : (N,), the state; changed in place, so that the next call continues from here. Results are the
        same, to the bit, for any split of the steps into calls
    prune : rows of a lower probability are dropped, and the other rows of the step are scaled to sum to 1. The state
        is not pruned

    Returns
    -------
    step, location, p : the rows
    impossible : the steps whose readings were impossible
    log_likelihood : log P[these readings, without the impossible ones | those before]
    dropped : the probability of the dropped rows, summed over the steps: an upper bound of the difference between the
        probability of any answer with and without pruning (see the proof in `smooth_rows`; here the distributions of
        the steps are independent)
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
        step, previous, location, p = with_capacity(step, previous, location, p, n + n_locations)
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
    """The most likely location of each step, given the readings up to it, and the impossible steps.

    If several locations are equally likely, the lowest code is taken. The parameters are those of `filter_rows`.
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
