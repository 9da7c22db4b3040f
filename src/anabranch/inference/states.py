"""A model as the arrays of the kernels: its states, their transitions, and the likelihoods of readings.

**Stages.** A location with k stages is k states of the hidden Markov model, so that the duration of a stay has its own
distribution. After each step the key advances by a number of stages: by j with probability (1 - a) a^j. It leaves the
location when it advances past the last stage. So a stay has 1 + F steps, where F is the number of failures before the
k-th success of trials that succeed with probability a. Its mean is 1 + k (1 - a) / a, which is set to the mean of the
model's transitions, 1 / (1 - the probability of staying). With k = 1 this is the geometric distribution of a plain
hidden Markov model; with more stages, short and long stays are rarer. Every duration stays possible.

A stay begins in the first stage. At the first step of a key a stay is under way: its stage has the distribution of a
random moment, in proportion to the expected number of steps in each stage.

**Tempered likelihoods.** The likelihood of the readings of a step is raised to the power of the model's exponent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.inference.hmm import Entries, Gaussians, Hmm, Sensing, by_row
from anabranch.inference.kernel import BITS, SMALLEST, Chain, Sensors


@dataclass(frozen=True, slots=True)
class States:
    """The states of a model: the location and the stage of each, by location; and the first state of each location."""

    location: I32
    stage: I32
    first: I64

    @classmethod
    def of(cls, hmm: Hmm) -> States:
        """The states of a model: one per location, or one per stage."""
        counts = np.ones(len(hmm.locations), np.int64) if hmm.stages is None else hmm.stages.astype(np.int64)
        first = np.concatenate([[0], np.cumsum(counts)])
        location = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        stage = np.arange(first[-1]) - np.repeat(first[:-1], counts)
        return cls(location, stage.astype(np.int32), first)

    @property
    def plain(self) -> bool:
        """Whether every location is one state."""
        return len(self.location) == len(self.first) - 1

    def repeated(self, starts: I64, locations: I32) -> tuple[I64, I32, I64]:
        """A table by location as one by state: the start of each row, the states, and the entry that each repeats."""
        counts = np.diff(self.first)[locations]
        entry = np.repeat(np.arange(len(locations)), counts)
        offset = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.concatenate([[0], np.cumsum(counts)])[starts]
        return starts.astype(np.int64), (self.first[locations[entry]] + offset).astype(np.int32), entry


# ------------------------------------------------------------ transitions


def chain_of(hmm: Hmm) -> Chain:
    """The initial distribution and the transitions, for the kernels."""
    states = States.of(hmm)
    n = len(states.location)
    if states.plain:
        initial, starts, targets, p = hmm.initial, hmm.starts, hmm.targets, hmm.p
        rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(starts))
    else:
        initial, transition = _staged(hmm, states)
        starts, targets, p = by_row(transition, n)
        rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(starts))
        p /= np.bincount(rows, weights=p)[rows]
    back = by_row(Entries(targets, rows, p), n)
    # Sums within each row: a sum over many rows would lose the last digits of the later ones.
    cumulative = np.concatenate([np.cumsum(row) for row in np.split(p, starts[1:-1])])
    return Chain(initial, starts, targets, p, cumulative, *back)


def _staged(hmm: Hmm, states: States) -> tuple[F64, Entries]:
    """The initial distribution and the transitions of a model with stages."""
    initial = np.zeros(len(states.location))
    rows, columns, p = [], [], []
    for x in range(len(hmm.locations)):
        start, k = int(states.first[x]), int(states.first[x + 1] - states.first[x])
        targets, moves = (array[hmm.starts[x] : hmm.starts[x + 1]] for array in (hmm.targets, hmm.p))
        leaves = targets != x
        stay, leave = float(moves[~leaves].sum()), float(moves[leaves].sum())
        success = k * leave / (k * leave + stay)
        share = np.full(k, 1 - success)
        share[0] = 1.0
        initial[start : start + k] = hmm.initial[x] * share / share.sum()
        powers = success ** np.arange(k + 1)
        for stage in range(k):
            onward = powers[: k - stage] * (1 - success)
            away = powers[k - stage] * moves[leaves] / (leave or 1.0)
            columns += [start + stage + np.arange(k - stage), states.first[targets[leaves]]]
            rows.append(np.full(k - stage + len(away), start + stage))
            p += [onward, away]
    chances = np.concatenate(p)
    # A chance below the smallest that kernels can represent is that of many stages in one step: it is dropped.
    chances[chances < SMALLEST] = 0.0
    return initial, Entries(np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32), chances)


# ------------------------------------------------------------ readings


def sensors_of(hmm: Hmm) -> Sensors:
    """The likelihoods of readings, for the kernels.

    With DETECTION the likelihood of the set S in x is the product of d(r, x) over r in S and of 1 - d(r, x) over the
    other readers. It is computed as one number per x, the product of 1 - d over all readers, times d / (1 - d) for each
    reader in S. Readers with d(r, x) = 1, which cannot miss, are not in this product; they are counted instead.
    """
    states = States.of(hmm)
    starts, seen, entry = states.repeated(hmm.reader_starts, hmm.reader_locations)
    sensors = _tempered(hmm)
    at = states.location
    return Sensors(
        starts, seen, sensors.factors[entry], sensors.sure[entry], sensors.n_sure[at], sensors.base[at],
        sensors.base_levels[at], sensors.quiet[at], sensors.quiet_levels[at],
    )  # fmt: skip


def _tempered(hmm: Hmm) -> Sensors:
    """The likelihoods by location, to the power of the exponent."""
    n, power = len(hmm.locations), hmm.exponent
    zeros = np.zeros(n, np.int32)
    tables = hmm.reader_starts, hmm.reader_locations
    if hmm.sensing is Sensing.EMISSION:
        quiet = np.ones(n) if hmm.silence is None else hmm.silence**power
        sure = np.zeros(len(hmm.reader_p), np.bool_)
        return Sensors(*tables, hmm.reader_p**power, sure, zeros, np.ones(n), zeros, quiet, zeros)
    sure = hmm.reader_p == 1
    missed = np.where(sure, 1.0, 1.0 - hmm.reader_p)
    log2_base = np.bincount(hmm.reader_locations, weights=power * np.log2(missed), minlength=n)
    # The sum of logarithms determines only the level: the product itself keeps more digits.
    levels = np.round(log2_base / BITS).astype(np.int32)
    base = _products(hmm.reader_locations, missed**power, levels)
    n_sure = np.bincount(hmm.reader_locations[sure], minlength=n).astype(np.int32)
    factors = np.where(sure, 1.0, (hmm.reader_p / missed) ** power)
    quiet = np.where(n_sure == 0, base, 0.0)
    return Sensors(*tables, factors, sure, n_sure, base, levels, quiet, levels)


def _products(location: I32, factors: F64, levels: I32) -> F64:
    """The product of the factors of each location, divided by 2^(BITS * level)."""
    mantissas, exponents = np.frexp(factors)
    products, powers = np.ones(len(levels)), -BITS * levels.astype(np.int64)
    for x, mantissa, exponent in zip(location, mantissas, exponents, strict=True):
        product, power = math.frexp(products[x] * mantissa)
        products[x] = product
        powers[x] += power + exponent
    return np.ldexp(products, powers)


# ------------------------------------------------------------ measured quantities


@dataclass(frozen=True, slots=True)
class Measured:
    """Readings with the densities of what they measured: each reading is a reader of its own in `sensors`."""

    reading_starts: I64
    readings: I32
    sensors: Sensors


def measured_readings(
    hmm: Hmm, gaussians: Gaussians, sensors: Sensors, reading_starts: I64, readings: I32, quantities: F64
) -> Measured:
    """The readings of some steps as readers of their own, whose factors include the densities.

    Parameters
    ----------
    sensors : Sensors
        The likelihoods of the readers, from `sensors_of`.
    reading_starts, readings : arrays
        As for `Inference.advance`.
    quantities : (readings, Q) array
        What each reading measured; NaN if that is unknown, which has likelihood 1.

    Notes
    -----
    Several readings of one reader in one step count once, with the mean of what they measured. A density is divided by
    the highest one of its reading, which does not change the posterior, and is at least `SMALLEST`.
    """
    step = np.repeat(np.arange(len(reading_starts) - 1), np.diff(reading_starts))
    used = readings[reading_starts[0] : reading_starts[-1]]
    known = np.where((used >= 0) & (used < len(hmm.readers)), used, -1)
    pairs, index = np.unique(step * (len(hmm.readers) + 1) + known + 1, return_inverse=True)
    reader = (pairs % (len(hmm.readers) + 1) - 1).astype(np.int32)
    means = mean_quantities(quantities[reading_starts[0] : reading_starts[-1]], index.reshape(-1), len(pairs))
    counts = np.where(reader >= 0, np.diff(sensors.starts)[reader] if len(hmm.readers) else 0, 0)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    reading = np.repeat(np.arange(len(pairs)), counts)
    entry = np.repeat(sensors.starts[reader] - starts[:-1], counts) + np.arange(starts[-1])
    states = States.of(hmm)
    _, _, by_location = states.repeated(hmm.reader_starts, hmm.reader_locations)
    density = _relative_densities(gaussians, by_location[entry], means[reading], starts, hmm.exponent)
    own = sensors._replace(
        starts=starts,
        locations=sensors.locations[entry],
        factors=sensors.factors[entry] * density,
        sure=sensors.sure[entry],
    )
    edges = np.searchsorted(pairs // (len(hmm.readers) + 1), np.arange(len(reading_starts)))
    codes = np.where(reader >= 0, np.arange(len(pairs)), -1)
    return Measured(edges.astype(np.int64), codes.astype(np.int32), own)


def mean_quantities(quantities: F64, index: I64, n: int) -> F64:
    """The mean of the known quantities of the readings with each index; NaN if none is known."""
    means = np.full((n, quantities.shape[1]), np.nan)
    for column, values in enumerate(quantities.T):
        known = np.isfinite(values)
        counts = np.bincount(index[known], minlength=n)
        sums = np.bincount(index[known], weights=values[known], minlength=n)
        np.divide(sums, counts, out=means[:, column], where=counts > 0)
    return means


#: More deviations than this do not make a measurement less likely; their square would overflow.
_FAR = 1e100


def _relative_densities(gaussians: Gaussians, entry: I64, measured: F64, starts: I64, exponent: float) -> F64:
    """The tempered density of each reading at each location, as a part of its highest."""
    logs = np.zeros(len(entry))
    for column in range(measured.shape[1]):
        mean, deviation = gaussians.mean[column, entry], gaussians.deviation[column, entry]
        known = np.isfinite(measured[:, column])
        off = np.clip(np.where(known, measured[:, column] - mean, 0.0) / deviation, -_FAR, _FAR)
        logs += np.where(known, -0.5 * off**2 - np.log(deviation), 0.0)
    used = np.flatnonzero(np.diff(starts))
    if not len(used):
        return np.ones(0)
    highest = np.maximum.reduceat(logs, starts[used])
    relative = exponent * (logs - np.repeat(highest, np.diff(starts)[used]))
    return np.exp(np.maximum(relative, math.log(SMALLEST)))
