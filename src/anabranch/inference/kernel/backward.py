"""The backward weights g: the likelihood of the readings from a step on, kept for every sqrt(T)-th step.

With A the transitions and b(t, x) the likelihood of the readings of step t, g(t, x) = b(t, x) sum over y of
A(x, y) g(t + 1, y). The kept weights are called *marks*. The steps in between are recomputed, block by block, when
smoothing needs them.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.forward import mle_path
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.weights import (
    block_length,
    copy_weights,
    fill_weights,
    is_deep,
    settle,
    spread,
    total_weight,
    weigh,
)


@compiled_uncounted
def back(
    chain: Chain, sensors: Sensors, readings: I32, last: bool, skip: bool, deep: bool, g: F64, g_levels: I32,
    behind: F64, behind_levels: I32, hits: I64, out: F64, out_levels: I32,
) -> tuple[bool, int, bool]:  # fmt: skip
    """One step of g backward, into `out`.

    Returns whether any weight is positive, the exponent of the scale, and whether the weights are deep.
    """
    if last:
        fill_weights(behind, behind_levels, 1.0)
    else:
        spread(g, g_levels, deep, chain.back_starts, chain.sources, chain.back_p, behind, behind_levels)
    if skip:
        copy_weights(behind, behind_levels, out, out_levels)
    elif not weigh(behind, behind_levels, readings, sensors, hits, out, out_levels):
        return False, 0, False
    exponent, deep = settle(out, out_levels)
    return True, exponent, deep


@compiled
def _back_to_marks(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, skip: Bools, block: int, marks: F64,
    mark_levels: I32,
) -> tuple[bool, float]:  # fmt: skip
    """Compute g for all steps, and keep that of the first step of each block in `marks`.

    Returns False if the readings are impossible; and the log likelihood of the readings that are not skipped.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    g, g_levels = np.empty(n_locations), np.zeros(n_locations, np.int32)
    behind, behind_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits = np.zeros(n_locations, np.int64)
    deep, exponents = False, 0
    for t in range(n_steps - 1, -1, -1):
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        left, exponent, deep = back(
            chain, sensors, now, t == n_steps - 1, skip[t], deep, g, g_levels, behind, behind_levels, hits, g, g_levels
        )
        if not left:
            return False, -np.inf
        exponents += exponent
        if t % block == 0:
            copy_weights(g, g_levels, marks[t // block], mark_levels[t // block])
    left = False
    for x in range(n_locations):
        g[x] *= chain.initial[x]
        left |= g[x] != 0.0
    if not left:
        return False, -np.inf
    exponent, _ = settle(g, g_levels)
    return True, math.log(total_weight(g, g_levels)) + (exponents + exponent) * math.log(2.0)


@compiled
def mark_steps(steps: I32, n_steps: int) -> Bools:
    """A mask of the steps that is True at these steps."""
    marked = np.zeros(n_steps, np.bool_)
    for t in steps:
        marked[t] = True
    return marked


@compiled
def make_marks(chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32) -> tuple[F64, I32, I32, float]:
    """The weights and levels of g at the first step of each block; the impossible steps; the others' log likelihood."""
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    block = block_length(n_steps)
    n_blocks = (n_steps + block - 1) // block
    marks, levels = np.empty((n_blocks, n_locations)), np.empty((n_blocks, n_locations), np.int32)
    skip = np.zeros(n_steps, np.bool_)
    possible, log_likelihood = _back_to_marks(chain, sensors, reading_starts, readings, skip, block, marks, levels)
    if possible:
        return marks, levels, np.empty(0, np.int32), log_likelihood
    # Only a forward pass shows which steps are impossible.
    weights, zero_levels = np.empty(n_locations), np.zeros(n_locations, np.int32)
    _, impossible = mle_path(chain, sensors, reading_starts, readings, False, weights, zero_levels)
    skip = mark_steps(impossible, n_steps)
    _, log_likelihood = _back_to_marks(chain, sensors, reading_starts, readings, skip, block, marks, levels)
    return marks, levels, impossible, log_likelihood


@compiled
def fill_block(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, skip: Bools, start: int, marks: F64,
    mark_levels: I32, g: F64, g_levels: I32,
) -> None:  # fmt: skip
    """Recompute g for the steps of one block, from g at the first step after the block."""
    n_steps, n_locations, block = len(reading_starts) - 1, len(chain.initial), len(g)
    end = min(start + block, n_steps)
    behind, behind_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits = np.zeros(n_locations, np.int64)
    after, after_levels = g[0], g_levels[0]
    if end < n_steps:
        after, after_levels = marks[end // block], mark_levels[end // block]
    deep = end < n_steps and is_deep(after, after_levels)
    for t in range(end - 1, start - 1, -1):
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        _, _, deep = back(
            chain, sensors, now, t == n_steps - 1, skip[t], deep, after, after_levels, behind, behind_levels, hits,
            g[t - start], g_levels[t - start],
        )  # fmt: skip
        after, after_levels = g[t - start], g_levels[t - start]
