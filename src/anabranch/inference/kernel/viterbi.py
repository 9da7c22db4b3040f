"""The most likely path given all readings: the recursion of the filter, with a maximum instead of the sum."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.forward import correct, predict
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.weights import DOWN, block_length, copy_weights, fill_weights, is_deep, likeliest


@compiled_uncounted
def _spread_max(weights: F64, levels: I32, deep: bool, chain: Chain, out: F64, out_levels: I32, came_from: I32) -> None:
    """out(y) = the maximum of weights(x) A(x, y) over x; came_from(y) = this x, the lowest one if several are equal."""
    fill_weights(out, out_levels, 0.0)
    for x in range(len(weights)):
        if weights[x] == 0.0:
            continue
        level = levels[x]
        for j in range(chain.starts[x], chain.starts[x + 1]):
            y, w = chain.targets[j], weights[x] * chain.p[j]
            better = w > out[y]
            behind = out_levels[y] - level if deep else 0
            if behind < 0:
                better = behind < -1 or w > out[y] * DOWN
            elif behind > 0:
                better = out[y] == 0.0 or (behind == 1 and w * DOWN > out[y])
            if better:
                out[y], came_from[y] = w, x
                if deep:
                    out_levels[y] = level


@compiled_uncounted
def _best_forward(
    chain: Chain, sensors: Sensors, readings: I32, first: bool, deep: bool, weights: F64, levels: I32, ahead: F64,
    ahead_levels: I32, hits: I64, came_from: I32,
) -> tuple[bool, bool]:  # fmt: skip
    """Update the weight of the best path to each location by one step.

    Returns whether the readings are possible, and whether the weights are deep.
    """
    if first:
        predict(chain, False, weights, levels, deep, ahead, ahead_levels)
    else:
        _spread_max(weights, levels, deep, chain, ahead, ahead_levels, came_from)
    possible, _, deep = correct(readings, sensors, hits, ahead, ahead_levels, weights, levels)
    return possible, deep


@compiled
def viterbi_path(chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32) -> tuple[I32, I32]:
    """The most likely path given all readings, and the impossible steps.

    If several paths are equally likely, the lowest code is taken at the last step and then, going back, at each step
    before. The parameters are those of `filter_rows`, for all steps of the key.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    path, impossible = np.empty(n_steps, np.int32), np.empty(n_steps, np.int32)
    block = block_length(n_steps)
    n_blocks = (n_steps + block - 1) // block
    marks, mark_levels = np.empty((n_blocks, n_locations)), np.empty((n_blocks, n_locations), np.int32)
    weights, levels = np.zeros(n_locations), np.zeros(n_locations, np.int32)
    ahead, ahead_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits, came_from = np.zeros(n_locations, np.int64), np.empty((block, n_locations), np.int32)
    n_impossible, deep = 0, False
    for t in range(n_steps):
        if t % block == 0:
            copy_weights(weights, levels, marks[t // block], mark_levels[t // block])
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        possible, deep = _best_forward(
            chain, sensors, now, t == 0, deep, weights, levels, ahead, ahead_levels, hits, came_from[0]
        )
        if not possible:
            impossible[n_impossible] = t
            n_impossible += 1
    here = likeliest(weights, levels)
    for b in range(n_blocks - 1, -1, -1):
        start, end = b * block, min((b + 1) * block, n_steps)
        copy_weights(marks[b], mark_levels[b], weights, levels)
        deep = is_deep(weights, levels)
        for t in range(start, end):
            now = readings[reading_starts[t] : reading_starts[t + 1]]
            _, deep = _best_forward(
                chain, sensors, now, t == 0, deep, weights, levels, ahead, ahead_levels, hits, came_from[t - start]
            )
        for t in range(end - 1, start - 1, -1):
            path[t] = here
            here = came_from[t - start, here]
    return path, impossible[:n_impossible]
