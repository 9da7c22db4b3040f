"""The arithmetic of hidden Markov models: arrays in, arrays out; knows no files, no Arrow and no Spark.

A kernel takes the consecutive steps of one key and gives rows (step, location, p), rows (step, previous, location, p)
or one location a step. With A the transitions and b(t, x) the likelihood of what was read at step t:

- `filter_rows`, `mle_path`: P[x_t | readings up to t], carried forward by f'(y) = b(t, y) sum over x of f(x) A(x, y).
- `particle_rows`: the same by a sample of fixed size.
- `smooth_rows`, `marginal_rows`: given all readings, the hidden path is again a Markov chain, with tables
  P[y at t + 1 | x at t, all readings] = A(x, y) g(t + 1, y) / (the sum over y), where g is carried backward by
  g(t, x) = b(t, x) sum over y of A(x, y) g(t + 1, y).
- `viterbi_path`: the likeliest path, by the recursion of the filter with max in the place of the sum.

**Numbers.** A weight is a double w in [2^-512, 1) and an integer level, and means w 2^(512 level). A step scales the
weights by a power of two, which is exact, so nothing underflows however long a stream is; and a location that fell to
1e-400 of the others is still there, with all its digits, when a reading rules the others out. Almost always every level
is 0 and the arithmetic is that of plain doubles; weights on several levels are called deep, and are added up with more
care. For this, every positive probability of a model must be at least `SMALLEST`.

**Impossible readings.** Where the readings of a step have likelihood 0 in every location that the model can be in, the
step is taken as if nothing were known of it (likelihood 1 everywhere), and is reported.

**Cost.** A step takes O(N + transitions from locations that are possible). Smoothing and Viterbi keep the weights of
every sqrt(T)-th step and work out the others again, block by block: O(sqrt(T) N) memory besides the result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: The least positive probability that a model may hold: a weight times two of them is still a normal double.
SMALLEST = 1e-60

#: Rows of less probability than this are left out, pruned or not: a double can barely hold them.
NOTHING = 1e-300

BITS = 512
UP, DOWN = 2.0**BITS, 2.0**-BITS

_NO_LEVEL = -(2**31)

# The largest weight of a step may be this far from 1 before all of them are scaled.
_SLACK = 2.0**64


class Chain(NamedTuple):
    """How a tag moves: the initial distribution, and the transitions by source and, again, by target.

    Those of source x are the entries starts[x]:starts[x + 1] of `targets` (ascending), `p` and `cumulative` (the sums
    of p so far, within the source). `back_starts`, `sources` and `back_p` are the same by target.
    """

    initial: F64
    starts: I64
    targets: I32
    p: F64
    cumulative: F64
    back_starts: I64
    sources: I32
    back_p: F64


class Sensors(NamedTuple):
    """The likelihoods of what is read at a step.

    Where nothing is read the likelihood in x is quiet(x). Otherwise it is base(x) times the factors of what was read,
    and 0 where a reader that was read does not list x, or one that surely sees x was not read. Both `quiet` and `base`
    come with levels, as weights do. Reader r lists locations[starts[r]:starts[r + 1]], with its factors; `sure` marks
    those it sees for certain, and `n_sure` counts by location the readers that do.
    """

    starts: I64
    locations: I32
    factors: F64
    sure: Bools
    n_sure: I32
    base: F64
    base_levels: I32
    quiet: F64
    quiet_levels: I32


# ------------------------------------------------------------ weights and their levels


@njit(cache=True)
def _copy(weights: F64, levels: I32, out: F64, out_levels: I32) -> None:
    """Copy weights. A loop: assigning slices takes Numba seconds to compile."""
    for x in range(len(weights)):
        out[x] = weights[x]
        out_levels[x] = levels[x]


@njit(cache=True)
def _fill(weights: F64, levels: I32, weight: float) -> None:
    """Give every location the same weight."""
    for x in range(len(weights)):
        weights[x] = weight
        levels[x] = 0


@njit(cache=True)
def _spread(weights: F64, levels: I32, deep: bool, starts: I64, others: I32, p: F64, out: F64, out_levels: I32) -> None:
    """out(y) = the sum over x of weights(x) p(x, y): one step ahead, or back where the transitions are by target."""
    _fill(out, out_levels, 0.0)
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


@njit(cache=True)
def _weigh(weights: F64, levels: I32, readings: I32, sensors: Sensors, hits: I64, out: F64, out_levels: I32) -> bool:
    """out(x) = weights(x) b(x); whether anything is left. `hits` is 0 throughout, before and after."""
    if len(readings) == 0:
        left = False
        for x in range(len(weights)):
            out[x] = weights[x] * sensors.quiet[x]
            out_levels[x] = levels[x] + sensors.quiet_levels[x]
            left |= out[x] != 0.0
        return left
    _fill(out, out_levels, 0.0)
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


@njit(cache=True)
def _settle(weights: F64, levels: I32) -> tuple[int, bool]:
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


@njit(cache=True)
def _settle_levels(weights: F64, levels: I32) -> tuple[int, bool]:
    """`_settle` where something is to be done."""
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


@njit(cache=True)
def _is_deep(weights: F64, levels: I32) -> bool:
    """Whether settled weights are on several levels."""
    for x in range(len(weights)):
        if levels[x] != 0 and weights[x] != 0.0:
            return True
    return False


@njit(cache=True)
def _plain(weight: float, level: int) -> float:
    """A weight on level 0 or below as a double; 0 where it is out of a double's range."""
    while level < 0 and weight != 0.0:
        weight *= DOWN
        level += 1
    return weight


@njit(cache=True)
def _total(weights: F64, levels: I32) -> float:
    """The sum of settled weights."""
    total = 0.0
    for x in range(len(weights)):
        if weights[x] != 0.0:
            total += _plain(weights[x], levels[x])
    return total


@njit(cache=True)
def _largest(weights: F64, levels: I32) -> int:
    """The location of the largest settled weight, the lower of equals."""
    best, largest = -1, 0.0
    for x in range(len(weights)):
        # The largest of settled weights is on level 0.
        if weights[x] > largest and levels[x] == 0:
            best, largest = x, weights[x]
    return best


# ------------------------------------------------------------ rows


@njit(cache=True)
def _room(step: I32, previous: I32, location: I32, p: F64, needed: int) -> tuple[I32, I32, I32, F64]:
    """The columns, copied into longer ones where they do not have room for so many rows."""
    n = len(p)
    if needed <= n:
        return step, previous, location, p
    longer = max(needed, 2 * n)
    new_step, new_previous = np.empty(longer, np.int32), np.empty(longer, np.int32)
    new_location, new_p = np.empty(longer, np.int32), np.empty(longer)
    for row in range(n):
        new_step[row], new_previous[row] = step[row], previous[row]
        new_location[row], new_p[row] = location[row], p[row]
    return new_step, new_previous, new_location, new_p


@njit(cache=True)
def _columns(n: int) -> tuple[I32, I32, I32, F64]:
    """Room for n rows."""
    return np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)


@njit(cache=True)
def _emit(
    weights: F64, levels: I32, prune: float, at: int, n: int, step: I32, previous: I32, location: I32, p: F64
) -> tuple[int, float]:
    """Write the distribution that settled weights are, from row n on; the number of rows, and what was left out.

    Rows below `prune` are left out, except the largest, and the others sum to 1 again.
    """
    total, best = _total(weights, levels), _largest(weights, levels)
    least = max(prune, NOTHING) * total
    kept, first = 0.0, n
    for x in range(len(weights)):
        w = weights[x]
        if w >= least and levels[x] != 0:
            w = _plain(w, levels[x])
        if w >= least or x == best:
            step[n], previous[n], location[n], p[n] = at, -1, x, w
            kept += w
            n += 1
    for row in range(first, n):
        p[row] /= kept
    return n, max(0.0, 1.0 - kept / total)


@njit(cache=True)
def distinct_readings(reading_starts: I64, readings: I32, n_readers: int) -> tuple[I64, I32]:
    """The readings without those given twice in one step; codes that are no reader's become -1."""
    n_steps = len(reading_starts) - 1
    last_seen = np.full(n_readers + 1, -1, np.int64)
    starts = np.zeros(n_steps + 1, np.int64)
    out = np.empty(reading_starts[n_steps] - reading_starts[0], np.int32)
    n = 0
    for t in range(n_steps):
        for j in range(reading_starts[t], reading_starts[t + 1]):
            r = readings[j] if 0 <= readings[j] < n_readers else -1
            if last_seen[r] != t:
                last_seen[r] = t
                out[n] = r
                n += 1
        starts[t + 1] = n
    return starts, out[:n]


# ------------------------------------------------------------ forward


@njit(cache=True)
def _predict(chain: Chain, started: bool, weights: F64, levels: I32, deep: bool, ahead: F64, ahead_levels: I32) -> None:
    """The weights before a step's readings are looked at, in `ahead`."""
    if started:
        _spread(weights, levels, deep, chain.starts, chain.targets, chain.p, ahead, ahead_levels)
    else:
        for x in range(len(ahead)):
            ahead[x] = chain.initial[x]
            ahead_levels[x] = 0


@njit(cache=True)
def _correct(
    readings: I32, sensors: Sensors, hits: I64, ahead: F64, ahead_levels: I32, weights: F64, levels: I32
) -> tuple[bool, int, bool]:
    """Take a step's readings into account: whether they are possible, the exponent taken out, whether deep."""
    possible = _weigh(ahead, ahead_levels, readings, sensors, hits, weights, levels)
    if not possible:
        _copy(ahead, ahead_levels, weights, levels)
    exponent, deep = _settle(weights, levels)
    return possible, exponent, deep


@njit(cache=True)
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
    step, previous, location, p = _columns(4 * n_steps + n_locations)
    impossible = np.empty(n_steps, np.int32)
    deep = _is_deep(weights, levels)
    n, n_impossible, exponents, dropped = 0, 0, 0, 0.0
    before = _total(weights, levels) if started else 1.0
    for t in range(n_steps):
        _predict(chain, started, weights, levels, deep, ahead, ahead_levels)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        possible, exponent, deep = _correct(now, sensors, hits, ahead, ahead_levels, weights, levels)
        started = True
        exponents += exponent
        if not possible:
            impossible[n_impossible] = t
            n_impossible += 1
        step, previous, location, p = _room(step, previous, location, p, n + n_locations)
        n, left_out = _emit(weights, levels, prune, t, n, step, previous, location, p)
        dropped += left_out
    log_likelihood = 0.0
    if n_steps:
        log_likelihood = math.log(_total(weights, levels) / before) + exponents * math.log(2.0)
    return step[:n], location[:n], p[:n], impossible[:n_impossible], log_likelihood, dropped


@njit(cache=True)
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
    deep = _is_deep(weights, levels)
    n_impossible = 0
    for t in range(n_steps):
        _predict(chain, started, weights, levels, deep, ahead, ahead_levels)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        possible, _, deep = _correct(now, sensors, hits, ahead, ahead_levels, weights, levels)
        started = True
        if not possible:
            impossible[n_impossible] = t
            n_impossible += 1
        path[t] = _largest(weights, levels)
    return path, impossible[:n_impossible]


# ------------------------------------------------------------ particles


@njit(cache=True)
def _uniform(seed: np.uint64, number: int) -> float:
    """The number-th random number of a seed, in [0, 1): splitmix64, which needs no state but the number."""
    z = seed + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _resample(weights: F64, levels: I32, n_particles: int, u: float, counts: F64) -> None:
    """Systematic resampling: the particles stand evenly, from u on, along the weights laid end to end."""
    total = _total(weights, levels)
    for x in range(len(counts)):
        counts[x] = 0.0
    reached, placed, last = 0.0, 0, 0
    for x in range(len(weights)):
        if weights[x] != 0.0:
            reached += _plain(weights[x], levels[x])
            last = x
            while placed < n_particles and (placed + u) * total < reached * n_particles:
                counts[x] += 1.0
                placed += 1
    counts[last] += n_particles - placed  # What rounding left over.


@njit(cache=True)
def _scatter(chain: Chain, seed: np.uint64, number: int, counts: F64, moved: F64) -> None:
    """Let each particle make its own move, into `moved`."""
    for x in range(len(moved)):
        moved[x] = 0.0
    for x in range(len(counts)):
        for _ in range(int(counts[x])):
            u = _uniform(seed, number)
            number += 1
            lo, hi = chain.starts[x], chain.starts[x + 1] - 1
            while lo < hi:
                middle = (lo + hi) // 2
                if u < chain.cumulative[middle]:
                    hi = middle
                else:
                    lo = middle + 1
            moved[chain.targets[lo]] += 1.0


@njit(cache=True)
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
    step, previous, location, p = _columns(4 * n_steps + n_locations)
    impossible = np.empty(n_steps, np.int32)
    n, n_impossible, dropped = 0, 0, 0.0
    for t in range(n_steps):
        number = (steps_before + t) * (n_particles + 2)
        if steps_before + t == 0:
            _resample(chain.initial, flat, n_particles, _uniform(seed, number), moved)
        else:
            _scatter(chain, seed, number, counts, moved)
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        if not _weigh(moved, flat, now, sensors, hits, weights, levels) and not _weigh(
            everywhere, flat, now, sensors, hits, weights, levels
        ):
            _copy(moved, flat, weights, levels)
            impossible[n_impossible] = t
            n_impossible += 1
        _settle(weights, levels)
        step, previous, location, p = _room(step, previous, location, p, n + n_locations)
        n, left_out = _emit(weights, levels, prune, t, n, step, previous, location, p)
        dropped += left_out
        _resample(weights, levels, n_particles, _uniform(seed, number + n_particles + 1), counts)
    return step[:n], location[:n], p[:n], impossible[:n_impossible], dropped


# ------------------------------------------------------------ smoothing


@njit(cache=True)
def _back(
    chain: Chain, sensors: Sensors, readings: I32, last: bool, skip: bool, deep: bool, g: F64, g_levels: I32,
    behind: F64, behind_levels: I32, hits: I64, out: F64, out_levels: I32,
) -> tuple[bool, int, bool]:  # fmt: skip
    """One step of g backward, into `out`: whether anything is left, the exponent taken out, whether deep."""
    if last:
        _fill(behind, behind_levels, 1.0)
    else:
        _spread(g, g_levels, deep, chain.back_starts, chain.sources, chain.back_p, behind, behind_levels)
    if skip:
        _copy(behind, behind_levels, out, out_levels)
    elif not _weigh(behind, behind_levels, readings, sensors, hits, out, out_levels):
        return False, 0, False
    exponent, deep = _settle(out, out_levels)
    return True, exponent, deep


@njit(cache=True)
def _back_to_marks(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, skip: Bools, block: int, marks: F64,
    mark_levels: I32,
) -> tuple[bool, float]:  # fmt: skip
    """Carry g over all steps, keeping that of the first step of each block; False where the readings are impossible.

    Also the log likelihood of the readings that are not skipped.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    g, g_levels = np.empty(n_locations), np.zeros(n_locations, np.int32)
    behind, behind_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits = np.zeros(n_locations, np.int64)
    deep, exponents = False, 0
    for t in range(n_steps - 1, -1, -1):
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        left, exponent, deep = _back(
            chain, sensors, now, t == n_steps - 1, skip[t], deep, g, g_levels, behind, behind_levels, hits, g, g_levels
        )
        if not left:
            return False, -np.inf
        exponents += exponent
        if t % block == 0:
            _copy(g, g_levels, marks[t // block], mark_levels[t // block])
    left = False
    for x in range(n_locations):
        g[x] *= chain.initial[x]
        left |= g[x] != 0.0
    if not left:
        return False, -np.inf
    exponent, _ = _settle(g, g_levels)
    return True, math.log(_total(g, g_levels)) + (exponents + exponent) * math.log(2.0)


@njit(cache=True)
def _block_length(n_steps: int) -> int:
    """How many steps are worked out again together."""
    return math.ceil(math.sqrt(max(n_steps, 1)))


@njit(cache=True)
def _marked(steps: I32, n_steps: int) -> Bools:
    """True at these steps."""
    marked = np.zeros(n_steps, np.bool_)
    for t in steps:
        marked[t] = True
    return marked


@njit(cache=True)
def _marks(chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32) -> tuple[F64, I32, I32, float]:
    """What g and its levels are at the first step of each block; the impossible steps; the others' log likelihood."""
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    block = _block_length(n_steps)
    n_blocks = (n_steps + block - 1) // block
    marks, levels = np.empty((n_blocks, n_locations)), np.empty((n_blocks, n_locations), np.int32)
    skip = np.zeros(n_steps, np.bool_)
    possible, log_likelihood = _back_to_marks(chain, sensors, reading_starts, readings, skip, block, marks, levels)
    if possible:
        return marks, levels, np.empty(0, np.int32), log_likelihood
    # Which steps are to blame only shows going forward.
    weights, flat = np.empty(n_locations), np.zeros(n_locations, np.int32)
    _, impossible = mle_path(chain, sensors, reading_starts, readings, False, weights, flat)
    skip = _marked(impossible, n_steps)
    _, log_likelihood = _back_to_marks(chain, sensors, reading_starts, readings, skip, block, marks, levels)
    return marks, levels, impossible, log_likelihood


@njit(cache=True)
def _begin(chain: Chain, g: F64, g_levels: I32, now: F64) -> None:
    """P[x_0 | all readings], in `now`."""
    weights, levels = np.empty(len(g)), g_levels.copy()
    for x in range(len(g)):
        weights[x] = g[x] * chain.initial[x]
    _settle(weights, levels)
    total = _total(weights, levels)
    for x in range(len(now)):
        now[x] = _plain(weights[x], levels[x]) / total


@njit(cache=True)
def _carry(
    chain: Chain, g: F64, g_levels: I32, now: F64, then: F64, moves: F64, least: float, tables: bool, at: int, n: int,
    step: I32, previous: I32, location: I32, p: F64,
) -> tuple[int, float]:  # fmt: skip
    """Carry the distribution `now` by the posterior tables to `then`, the next step.

    With `tables`, write the tables' rows from row n on, without moves whose joint probability is below `least`. The
    number of rows, and the probability of the moves left out.
    """
    dropped = 0.0
    for x in range(len(then)):
        then[x] = 0.0
    for x in range(len(now)):
        if now[x] == 0.0:
            continue
        first, end = chain.starts[x], chain.starts[x + 1]
        # As now(x) > 0, there is a move that g makes possible; the highest level is that of the likeliest.
        top = _NO_LEVEL
        for j in range(first, end):
            if g[chain.targets[j]] != 0.0:
                top = max(top, g_levels[chain.targets[j]])
        total = 0.0
        for j in range(first, end):
            y = chain.targets[j]
            total += _plain(g[y] * chain.p[j], g_levels[y] - top)
        best = 0
        for j in range(end - first):
            y = chain.targets[first + j]
            # Divided first: the total may be far below 1.
            moves[j] = _plain(g[y] * chain.p[first + j] / total, g_levels[y] - top)
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
                then[y] += now[x] * move
                if tables:
                    step[n], previous[n], location[n], p[n] = at, x, y, move
                    n += 1
    return n, dropped


@njit(cache=True)
def smooth_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, prune: float, tables: bool
) -> tuple[I32, I32, I32, F64, I32, float, float]:
    """The posterior over whole paths: P[x_0 | all readings], and for each further step P[x' | x, all readings].

    Rows of an impossible x are left out, as are moves that the path makes with probability below `prune`: not the
    chance of the move from x, but that of being in x, by the rows kept so far, and making it. The likeliest move from
    an x that is kept stays, so no path ends, and the rows of each x sum to 1 again. An x that no kept row leads to has
    no rows.

    **How far pruning can move an answer.** Let d(t, x) be the part of the table of x at t that is left out, w(t, x) the
    probability of x at t by the rows kept, and D the sum of w(t, x) d(t, x) over all t and x: what `dropped` is. Then
    the probability of any event, of any answer therefore, differs between pruned and true paths by at most D. Proof:
    let a true and a pruned path begin together, nowhere: the first distribution is a table as well. From a common x at
    t the two next values have distributions of which one is the other without the part d(t, x), scaled up; their total
    variation distance is d(t, x), so they can be drawn such that they differ with probability d(t, x) only. Both paths
    are in x at t, still together, with probability at most w(t, x). So they ever part with probability at most D, and
    an event that holds for one of them alone needs them to part. As each row left out adds less than `prune`,
    D < prune * (number of rows left out).

    Parameters
    ----------
    chain, sensors, reading_starts, readings : as in `filter_rows`; all steps of the key
    prune : 0 to leave nothing out (but what is below `NOTHING`)
    tables : True for this; False for the marginals instead, as `marginal_rows` says

    Returns
    -------
    step, previous, location, p : the rows; the previous location of the first step's is -1
    impossible : the steps whose readings were impossible
    log_likelihood : log P[all readings, without the impossible ones]
    dropped : D
    """
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    marks, mark_levels, impossible, log_likelihood = _marks(chain, sensors, reading_starts, readings)
    skip = _marked(impossible, n_steps)
    block = _block_length(n_steps)
    g, g_levels = np.empty((block, n_locations)), np.empty((block, n_locations), np.int32)
    now, then, flat = np.empty(n_locations), np.empty(n_locations), np.zeros(n_locations, np.int32)
    moves = np.empty(n_locations)  # No location has more.
    step, previous, location, p = _columns(4 * n_steps + n_locations)
    n, dropped = 0, 0.0
    for t in range(n_steps):
        place = t % block
        if place == 0:
            _fill_block(chain, sensors, reading_starts, readings, skip, t, marks, mark_levels, g, g_levels)
        step, previous, location, p = _room(step, previous, location, p, n + max(n_locations, len(chain.p)))
        left_out = 0.0
        if t == 0:
            _begin(chain, g[0], g_levels[0], now)
        else:
            n, left_out = _carry(
                chain, g[place], g_levels[place], now, then, moves, max(prune, NOTHING), tables, t, n,
                step, previous, location, p,
            )  # fmt: skip
            now, then = then, now
        if t == 0 or not tables:
            n, left_out = _emit(now, flat, prune, t, n, step, previous, location, p)
        if t == 0 and tables:
            _fill(now, flat, 0.0)
            for row in range(n):
                now[location[row]] = p[row]
        dropped += left_out
    return step[:n], previous[:n], location[:n], p[:n], impossible, log_likelihood, dropped


@njit(cache=True)
def marginal_rows(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, prune: float
) -> tuple[I32, I32, F64, I32, float, float]:
    """P[x_t | all readings] for each step: `smooth_rows` without tables. Pruned and returned as by `filter_rows`."""
    step, _, location, p, impossible, log_likelihood, dropped = smooth_rows(
        chain, sensors, reading_starts, readings, prune, False
    )
    return step, location, p, impossible, log_likelihood, dropped


@njit(cache=True)
def _fill_block(
    chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32, skip: Bools, start: int, marks: F64,
    mark_levels: I32, g: F64, g_levels: I32,
) -> None:  # fmt: skip
    """Work out g again for the steps of one block, from that of the first step after it."""
    n_steps, n_locations, block = len(reading_starts) - 1, len(chain.initial), len(g)
    end = min(start + block, n_steps)
    behind, behind_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits = np.zeros(n_locations, np.int64)
    after, after_levels = g[0], g_levels[0]
    if end < n_steps:
        after, after_levels = marks[end // block], mark_levels[end // block]
    deep = end < n_steps and _is_deep(after, after_levels)
    for t in range(end - 1, start - 1, -1):
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        _, _, deep = _back(
            chain, sensors, now, t == n_steps - 1, skip[t], deep, after, after_levels, behind, behind_levels, hits,
            g[t - start], g_levels[t - start],
        )  # fmt: skip
        after, after_levels = g[t - start], g_levels[t - start]


# ------------------------------------------------------------ the likeliest path


@njit(cache=True)
def _spread_max(weights: F64, levels: I32, deep: bool, chain: Chain, out: F64, out_levels: I32, came_from: I32) -> None:
    """out(y) = the largest weights(x) A(x, y) over x, and the x, the lower of equals."""
    _fill(out, out_levels, 0.0)
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


@njit(cache=True)
def _best_forward(
    chain: Chain, sensors: Sensors, readings: I32, first: bool, deep: bool, weights: F64, levels: I32, ahead: F64,
    ahead_levels: I32, hits: I64, came_from: I32,
) -> tuple[bool, bool]:  # fmt: skip
    """Carry the weight of the best path to each location over one step: whether its readings are possible, if deep."""
    if first:
        _predict(chain, False, weights, levels, deep, ahead, ahead_levels)
    else:
        _spread_max(weights, levels, deep, chain, ahead, ahead_levels, came_from)
    possible, _, deep = _correct(readings, sensors, hits, ahead, ahead_levels, weights, levels)
    return possible, deep


@njit(cache=True)
def viterbi_path(chain: Chain, sensors: Sensors, reading_starts: I64, readings: I32) -> tuple[I32, I32]:
    """The likeliest path given all readings, and the impossible steps.

    Among equals the lower code is taken at the last step and then, going back, at each step before. Parameters are
    those of `filter_rows`; all steps of the key.
    """
    n_steps, n_locations = len(reading_starts) - 1, len(chain.initial)
    path, impossible = np.empty(n_steps, np.int32), np.empty(n_steps, np.int32)
    block = _block_length(n_steps)
    n_blocks = (n_steps + block - 1) // block
    marks, mark_levels = np.empty((n_blocks, n_locations)), np.empty((n_blocks, n_locations), np.int32)
    weights, levels = np.zeros(n_locations), np.zeros(n_locations, np.int32)
    ahead, ahead_levels = np.empty(n_locations), np.empty(n_locations, np.int32)
    hits, came_from = np.zeros(n_locations, np.int64), np.empty((block, n_locations), np.int32)
    n_impossible, deep = 0, False
    for t in range(n_steps):
        if t % block == 0:
            _copy(weights, levels, marks[t // block], mark_levels[t // block])
        now = readings[reading_starts[t] : reading_starts[t + 1]]
        possible, deep = _best_forward(
            chain, sensors, now, t == 0, deep, weights, levels, ahead, ahead_levels, hits, came_from[0]
        )
        if not possible:
            impossible[n_impossible] = t
            n_impossible += 1
    here = _largest(weights, levels)
    for b in range(n_blocks - 1, -1, -1):
        start, end = b * block, min((b + 1) * block, n_steps)
        _copy(marks[b], mark_levels[b], weights, levels)
        deep = _is_deep(weights, levels)
        for t in range(start, end):
            now = readings[reading_starts[t] : reading_starts[t + 1]]
            _, deep = _best_forward(
                chain, sensors, now, t == 0, deep, weights, levels, ahead, ahead_levels, hits, came_from[t - start]
            )
        for t in range(end - 1, start - 1, -1):
            path[t] = here
            here = came_from[t - start, here]
    return path, impossible[:n_impossible]
