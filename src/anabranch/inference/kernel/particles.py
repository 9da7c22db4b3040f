"""The filter by a sample of fixed size: the bootstrap particle filter."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.rows import emit, make_columns, with_room
from anabranch.inference.kernel.weights import copy_weights, plain, settle, total_weight, weigh
from anabranch.splitmix import uniform


@compiled
def _resample(weights: F64, levels: I32, n_particles: int, u: float, counts: F64) -> None:
    """Systematic resampling: the particles stand evenly, from u on, along the weights laid end to end."""
    total = total_weight(weights, levels)
    for x in range(len(counts)):
        counts[x] = 0.0
    reached, placed, last = 0.0, 0, 0
    for x in range(len(weights)):
        if weights[x] != 0.0:
            reached += plain(weights[x], levels[x])
            last = x
            while placed < n_particles and (placed + u) * total < reached * n_particles:
                counts[x] += 1.0
                placed += 1
    counts[last] += n_particles - placed  # What rounding left over.


@compiled
def _scatter(chain: Chain, seed: np.uint64, number: int, counts: F64, moved: F64) -> None:
    """Let each particle make its own move, into `moved`."""
    for x in range(len(moved)):
        moved[x] = 0.0
    for x in range(len(counts)):
        for _ in range(int(counts[x])):
            u = uniform(seed, number)
            number += 1
            lo, hi = chain.starts[x], chain.starts[x + 1] - 1
            while lo < hi:
                middle = (lo + hi) // 2
                if u < chain.cumulative[middle]:
                    hi = middle
                else:
                    lo = middle + 1
            moved[chain.targets[lo]] += 1.0


@compiled
def particle_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, steps_before: int, counts: F64, seed: np.uint64,
    n_particles: int, prune: float,
) -> tuple[I32, I32, F64, I32, float]:  # fmt: skip
    """The bootstrap particle filter: an estimate of P[x_t | readings up to t] by a sample of fixed size.

    The particles move by the transitions, are weighed by the likelihood, which gives the rows, and are resampled
    systematically in the order of their locations. Where every particle has likelihood 0, new ones are drawn from all
    locations in proportion to the likelihood alone; where that is 0 everywhere, the reading is impossible.

    Parameters
    ----------
    steps_before : how many steps the key has had before this call
    counts : (N,), the state: the number of particles at each location, changed in place
    seed : of the random numbers. Each is made from the seed and the number of its step and particle, so results do
        not depend on how the steps are split into calls

    The other parameters and the results are those of `filter_rows`.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(counts)
    weights, levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    moved, flat = np.empty(n_locations), np.zeros(n_locations, np.int32)
    hits, everywhere = np.zeros(n_locations, np.int64), np.ones(n_locations)
    step, previous, location, p = make_columns(4 * n_steps + n_locations)
    impossible = np.empty(n_steps, np.int32)
    n, n_impossible, dropped = 0, 0, 0.0
    for t in range(n_steps):
        number = (steps_before + t) * (n_particles + 2)
        if steps_before + t == 0:
            _resample(chain.initial, flat, n_particles, uniform(seed, number), moved)
        else:
            _scatter(chain, seed, number, counts, moved)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        if not weigh(moved, flat, now, sensors, hits, weights, levels) and not weigh(
            everywhere, flat, now, sensors, hits, weights, levels
        ):
            copy_weights(moved, flat, weights, levels)
            impossible[n_impossible] = t
            n_impossible += 1
        settle(weights, levels)
        step, previous, location, p = with_room(step, previous, location, p, n + n_locations)
        n, left_out = emit(weights, levels, prune, t, n, step, previous, location, p)
        dropped += left_out
        _resample(weights, levels, n_particles, uniform(seed, number + n_particles + 1), counts)
    return step[:n], location[:n], p[:n], impossible[:n_impossible], dropped
