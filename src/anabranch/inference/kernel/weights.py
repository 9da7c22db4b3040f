"""Weights of locations with levels: the state that all kernels update from step to step.

A weight is a double w in [2^-512, 1) and an integer level; its value is w 2^(512 level). A step scales the weights by a
power of two, which is exact, so nothing underflows in streams of any length. A location whose weight fell to 1e-400 of
the others still has all its digits when a reading excludes the others. Almost always every level is 0, and the
arithmetic is that of plain doubles. Weights on several levels are called *deep*; they are added more carefully. This
requires that every positive probability of a model is at least `SMALLEST`.

Weights are *settled* if they are in range and the largest is on level 0.
"""

from __future__ import annotations

import math

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled, compiled_inline, compiled_uncounted
from anabranch.inference.kernel.inputs import Sensors

BITS = 512
UP, DOWN = 2.0**BITS, 2.0**-BITS

# Weights are scaled only if the largest weight of a step is off 1 by more than this factor.
_SLACK = 2.0**64


@compiled_uncounted
def copy_weights(weights: F64, levels: I32, out: F64, out_levels: I32) -> None:
    """Copy weights, in a loop: slice assignment takes Numba seconds to compile."""
    for x in range(len(weights)):
        out[x] = weights[x]
        out_levels[x] = levels[x]


@compiled_uncounted
def fill_weights(weights: F64, levels: I32, weight: float) -> None:
    """Give every location the same weight."""
    for x in range(len(weights)):
        weights[x] = weight
        levels[x] = 0


@compiled_uncounted
def spread(weights: F64, levels: I32, deep: bool, starts: I64, others: I32, p: F64, out: F64, out_levels: I32) -> None:
    """out(y) = the sum over x of weights(x) p(x, y): one step forward, or backward if the transitions are by target."""
    fill_weights(out, out_levels, 0.0)
    if not deep:
        for x in range(len(weights)):
            w = weights[x]
            if w != 0.0:
                for j in range(starts[x], starts[x + 1]):
                    out[others[j]] += w * p[j]
        return
    for x in range(len(weights)):
        level = levels[x]
        if weights[x] != 0.0:
            for j in range(starts[x], starts[x + 1]):
                y, w = others[j], weights[x] * p[j]
                behind = out_levels[y] - level
                if behind == 0:
                    out[y] += w
                elif out[y] == 0.0 or behind < -1:
                    out[y] = w
                    out_levels[y] = level
                elif behind == -1:
                    out[y] = w + out[y] * DOWN
                    out_levels[y] = level
                elif behind == 1:
                    out[y] += w * DOWN


@compiled_uncounted
def weigh(weights: F64, levels: I32, readings: I32, sensors: Sensors, hits: I64, out: F64, out_levels: I32) -> bool:
    """out(x) = weights(x) b(x), where b is the likelihood of the readings; returns whether any weight is positive.

    `hits` is 0 everywhere before and after the call.
    """
    if len(readings) == 0:
        left = False
        for x in range(len(weights)):
            out[x] = weights[x] * sensors.quiet[x]
            out_levels[x] = levels[x] + sensors.quiet_levels[x]
            left |= out[x] != 0.0
        return left
    fill_weights(out, out_levels, 0.0)
    first = readings[0]
    for r in readings:
        if r < 0:
            return False
    for j in range(sensors.starts[first], sensors.starts[first + 1]):
        x = sensors.locations[j]
        out[x] = weights[x] * sensors.base[x]
        out_levels[x] = levels[x] + sensors.base_levels[x]
    # The low half of hits(x) counts the readers that list x, the high half those that are certain to see it.
    for r in readings:
        for j in range(sensors.starts[r], sensors.starts[r + 1]):
            x = sensors.locations[j]
            hits[x] += 1 + (sensors.sure[j] << 32)
            if out[x] != 0.0:
                # Bring the weight into range first: many small factors in sequence would underflow.
                if out[x] < DOWN:
                    out[x] *= UP
                    out_levels[x] -= 1
                elif out[x] > _SLACK:
                    out[x] *= DOWN
                    out_levels[x] += 1
                out[x] *= sensors.factors[j]
    left = False
    for j in range(sensors.starts[first], sensors.starts[first + 1]):
        x = sensors.locations[j]
        if hits[x] != len(readings) + (sensors.n_sure[x] << 32):
            out[x] = 0.0
        left |= out[x] != 0.0
    for r in readings:
        for j in range(sensors.starts[r], sensors.starts[r + 1]):
            hits[sensors.locations[j]] = 0
    return left


@compiled_uncounted
def settle(weights: F64, levels: I32) -> tuple[int, bool]:
    """Scale weights, not all 0, by a power of two and bring them into range, in place.

    Returns the exponent of the scale, and whether the weights are deep.
    """
    # Counting without a branch lets the compiler use vector instructions.
    n_large, n_odd = 0, 0
    for x in range(len(weights)):
        n_large += weights[x] >= 1.0 / _SLACK
        n_odd += (weights[x] != 0.0) & ((levels[x] != 0) | (weights[x] < DOWN) | (weights[x] > _SLACK))
    if n_large > 0 and n_odd == 0:
        return 0, False
    return _settle_levels(weights, levels)


@compiled_uncounted
def _settle_levels(weights: F64, levels: I32) -> tuple[int, bool]:
    """`settle` if scaling is needed."""
    top, largest = 0, 0.0
    for x in range(len(weights)):
        if weights[x] == 0.0:
            continue
        while weights[x] < DOWN:
            weights[x] *= UP
            levels[x] -= 1
        while weights[x] >= 1.0:
            weights[x] *= DOWN
            levels[x] += 1
        if largest == 0.0 or levels[x] > top or (levels[x] == top and weights[x] > largest):
            top, largest = levels[x], weights[x]
    exponent = math.frexp(largest)[1]
    scale = math.ldexp(1.0, -exponent)
    deep = False
    for x in range(len(weights)):
        if weights[x] == 0.0:
            levels[x] = 0
            continue
        weights[x] *= scale
        levels[x] -= top
        if weights[x] >= 1.0:
            weights[x] *= DOWN
            levels[x] += 1
        deep |= levels[x] != 0
    return exponent + BITS * top, deep


@compiled_uncounted
def is_deep(weights: F64, levels: I32) -> bool:
    """Whether settled weights are on several levels."""
    for x in range(len(weights)):
        if levels[x] != 0 and weights[x] != 0.0:
            return True
    return False


@compiled_inline
def plain(weight: float, level: int) -> float:
    """A weight on level 0 or below as a double; 0 if it is below the range of doubles."""
    while level < 0 and weight != 0.0:
        weight *= DOWN
        level += 1
    return weight


@compiled_uncounted
def total_weight(weights: F64, levels: I32) -> float:
    """The sum of settled weights."""
    total = 0.0
    for x in range(len(weights)):
        if weights[x] != 0.0:
            total += plain(weights[x], levels[x])
    return total


@compiled_uncounted
def likeliest(weights: F64, levels: I32) -> int:
    """The location of the largest settled weight; the lowest one if several are equal."""
    best, largest = -1, 0.0
    for x in range(len(weights)):
        # The largest of settled weights is on level 0.
        if weights[x] > largest and levels[x] == 0:
            best, largest = x, weights[x]
    return best


@compiled
def block_length(n_steps: int) -> int:
    """The number of steps that are recomputed together."""
    return math.ceil(math.sqrt(max(n_steps, 1)))
