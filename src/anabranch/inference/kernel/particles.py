"""The bootstrap particle filter: the filter by a sample of fixed size."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.inference.kernel.inputs import Chain, Sensors
from anabranch.inference.kernel.rows import emit, make_columns, with_capacity
from anabranch.inference.kernel.weights import copy_weights, plain, settle, total_weight, weigh
from anabranch.splitmix import uniform


@compiled_uncounted
def _resample(weights: F64, levels: I32, n_particles: int, u: float, counts: F64) -> None:
    """Systematic resampling: the particles are placed at equal distances, from u on, along the cumulative weights."""
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
    counts[last] += n_particles - placed  # The rest, due to rounding.


@compiled_uncounted
def _move(chain: Chain, seed: np.uint64, number: int, counts: F64, moved: F64) -> None:
    """Move each particle by a random transition; count the particles at each location in `moved`."""
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

    The particles move by the transitions and are weighted by the likelihood, which gives the rows. Then they are
    resampled systematically in the order of their locations. If every particle has likelihood 0, new ones are drawn
    from all locations, in proportion to the likelihood only; if that is 0 everywhere, the reading is impossible.

    Parameters
    ----------
    steps_before : the number of steps of the key before this call
    counts : (N,), the state: the number of particles at each location, changed in place
    seed : the seed of the random numbers. Each is computed from the seed and the numbers of its step and particle, so
        results do not depend on the split of the steps into calls

    The other parameters and the results are those of `filter_rows`.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(counts)
    weights, levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    moved, zero_levels = np.empty(n_locations), np.zeros(n_locations, np.int32)
    hits, everywhere = np.zeros(n_locations, np.int64), np.ones(n_locations)
    step, previous, location, p = make_columns(4 * n_steps + n_locations)
    impossible = np.empty(n_steps, np.int32)
    n, n_impossible, dropped = 0, 0, 0.0
    for t in range(n_steps):
        number = (steps_before + t) * (n_particles + 2)
        if steps_before + t == 0:
            _resample(chain.initial, zero_levels, n_particles, uniform(seed, number), moved)
        else:
            _move(chain, seed, number, counts, moved)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        if not weigh(moved, zero_levels, now, sensors, hits, weights, levels) and not weigh(
            everywhere, zero_levels, now, sensors, hits, weights, levels
        ):
            copy_weights(moved, zero_levels, weights, levels)
            impossible[n_impossible] = t
            n_impossible += 1
        settle(weights, levels)
        step, previous, location, p = with_capacity(step, previous, location, p, n + n_locations)
        n, left_out = emit(weights, levels, prune, t, n, step, previous, location, p)
        dropped += left_out
        _resample(weights, levels, n_particles, uniform(seed, number + n_particles + 1), counts)
    return step[:n], location[:n], p[:n], impossible[:n_impossible], dropped
