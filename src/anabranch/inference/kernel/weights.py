"""Weights of locations, and their levels: what all kernels carry from step to step.

A weight is a double w in [2^-512, 1) and an integer level, and means w 2^(512 level). A step scales the weights by a
power of two, which is exact, so nothing underflows however long a stream is; and a location that fell to 1e-400 of the
others is still there, with all its digits, when a reading rules the others out. Almost always every level is 0 and the
arithmetic is that of plain doubles; weights on several levels are called deep, and are added up with more care. For
this, every positive probability of a model must be at least `SMALLEST`.

Weights are *settled* once they are in range, with the largest on level 0.
"""

from __future__ import annotations

import math

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled
from anabranch.inference.kernel.inputs import Sensors

BITS = 512
UP, DOWN = 2.0**BITS, 2.0**-BITS

# The largest weight of a step may be this far from 1 before all of them are scaled.
_SLACK = 2.0**64


@compiled
def copy_weights(weights: F64, levels: I32, out: F64, out_levels: I32) -> None:
    """Copy weights. A loop: assigning slices takes Numba seconds to compile."""
    for x in range(len(weights)):
        out[x] = weights[x]
        out_levels[x] = levels[x]


@compiled
def fill_weights(weights: F64, levels: I32, weight: float) -> None:
    """Give every location the same weight."""
    for x in range(len(weights)):
        weights[x] = weight
        levels[x] = 0


@compiled
def spread(weights: F64, levels: I32, deep: bool, starts: I64, others: I32, p: F64, out: F64, out_levels: I32) -> None:
    """out(y) = the sum over x of weights(x) p(x, y): one step ahead, or back where the transitions are by target."""
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


@compiled
def weigh(weights: F64, levels: I32, readings: I32, sensors: Sensors, hits: I64, out: F64, out_levels: I32) -> bool:
    """out(x) = weights(x) b(x); whether anything is left. `hits` is 0 throughout, before and after."""
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
    # hits(x) counts the readers that list x, and in its high half those that surely see it.
    for r in readings:
        for j in range(sensors.starts[r], sensors.starts[r + 1]):
            x = sensors.locations[j]
            hits[x] += 1 + (sensors.sure[j] << 32)
            if out[x] != 0.0:
                # Brought back into range first: many small factors in a row would underflow.
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


@compiled
def settle(weights: F64, levels: I32) -> tuple[int, bool]:
    """Scale weights, not all 0, by a power of two and bring them into range, in place.

    Returns the exponent that was taken out, and whether the weights are deep.
    """
    # Counted without a branch, which the compiler turns into vector instructions.
    n_large, n_odd = 0, 0
    for x in range(len(weights)):
        n_large += weights[x] >= 1.0 / _SLACK
        n_odd += (weights[x] != 0.0) & ((levels[x] != 0) | (weights[x] < DOWN) | (weights[x] > _SLACK))
    if n_large > 0 and n_odd == 0:
        return 0, False
    return _settle_levels(weights, levels)


@compiled
def _settle_levels(weights: F64, levels: I32) -> tuple[int, bool]:
    """`settle` where something is to be done."""
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


@compiled
def is_deep(weights: F64, levels: I32) -> bool:
    """Whether settled weights are on several levels."""
    for x in range(len(weights)):
        if levels[x] != 0 and weights[x] != 0.0:
            return True
    return False


@compiled
def plain(weight: float, level: int) -> float:
    """A weight on level 0 or below as a double; 0 where it is out of a double's range."""
    while level < 0 and weight != 0.0:
        weight *= DOWN
        level += 1
    return weight


@compiled
def total_weight(weights: F64, levels: I32) -> float:
    """The sum of settled weights."""
    total = 0.0
    for x in range(len(weights)):
        if weights[x] != 0.0:
            total += plain(weights[x], levels[x])
    return total


@compiled
def likeliest(weights: F64, levels: I32) -> int:
    """The location of the largest settled weight, the lower of equals."""
    best, largest = -1, 0.0
    for x in range(len(weights)):
        # The largest of settled weights is on level 0.
        if weights[x] > largest and levels[x] == 0:
            best, largest = x, weights[x]
    return best


@compiled
def block_length(n_steps: int) -> int:
    """How many steps are worked out again together."""
    return math.ceil(math.sqrt(max(n_steps, 1)))
