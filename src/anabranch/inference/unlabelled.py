"""Fits a hidden Markov model to readings without labels: expectation maximisation (Baum-Welch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.errors import DataError
from anabranch.inference import kernel
from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from anabranch.inference.labels import Labelled
from anabranch.inference.states import chain_of, sensors_of

#: Iterations stop when the log likelihood of a step grows by less than this.
TOLERANCE = 1e-6

#: Starts whose log likelihoods per step differ by less are equally good; the first of them is taken.
_EQUAL = 1e-4

#: Probabilities below this are taken as 0.
_LEAST = 1e-12

#: A reader that sees this share of the steps at a location gives the location its name.
_NAMING = 0.05


@dataclass(frozen=True, slots=True)
class Sequences:
    """The readings of keys, each from its first to its last reading: one sequence for each key.

    Sequence k has the steps `starts[k]` and `readings[k]`, as the kernels take them.
    """

    starts: tuple[I64, ...]
    readings: tuple[I32, ...]

    @classmethod
    def of(cls, rows: Labelled, n_readers: int) -> Sequences:
        """The sequences of readings of keys."""
        starts, readings = [], []
        ordered = rows.where(np.lexsort((rows.step, rows.key)))
        ends = np.append(np.flatnonzero(np.diff(ordered.key)) + 1, len(ordered.key))
        for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            step = ordered.step[first:end] - ordered.step[first]
            bounds = np.searchsorted(step, np.arange(step[-1] + 2)).astype(np.int64)
            distinct = kernel.distinct_readings(bounds, ordered.code[first:end].astype(np.int32), n_readers)
            starts.append(distinct[0])
            readings.append(distinct[1])
        return cls(tuple(starts), tuple(readings))

    @property
    def n_steps(self) -> int:
        """The number of steps of all keys."""
        return sum(len(starts) - 1 for starts in self.starts)

    def every(self, chosen: Sequence[int]) -> Sequences:
        """Some of the sequences."""
        return Sequences(tuple(self.starts[k] for k in chosen), tuple(self.readings[k] for k in chosen))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted model, and how the fit went; log likelihoods are per step.

    Attributes
    ----------
    hmm : Hmm
    log_likelihoods : tuple of float
        After each iteration of the best start.
    of_starts : tuple of float
        The last one of every start.
    converged : bool
    held_out : float or None
        Of keys that were held out, under a model that is fitted to the others; None with fewer than three keys.
    """

    hmm: Hmm
    log_likelihoods: tuple[float, ...]
    of_starts: tuple[float, ...]
    converged: bool
    held_out: float | None


def fit_unlabelled(
    rows: Labelled,
    readers: Sequence[str],
    n_locations: int,
    sensing: Sensing = Sensing.DETECTION,
    alpha: float = 0.5,
    starts: int = 3,
    iterations: int = 200,
) -> Fitted:
    """Fit a model with `n_locations` to readings whose locations are unknown.

    The first start has a location for each reader; the others are random, with fixed seeds. The model with the highest
    likelihood is taken. It is a local maximum: the locations are those that explain the readings, and have the name of
    the reader that sees most of their steps.

    Parameters
    ----------
    rows : Labelled
        The reader of each key and step.
    alpha : float
        Added to the expected count of every transition and reading.
    """
    if not len(rows.key):
        raise DataError("there are no readings; check the input of the stream")
    sequences = Sequences.of(rows, len(readers))
    learner = Learner(len(readers), n_locations, sensing, alpha)
    runs = [learner.fit(learner.start(seed, sequences), sequences, iterations) for seed in range(starts)]
    of_starts = tuple(run.log_likelihoods[-1] for run in runs)
    best = next(number for number, end in enumerate(of_starts) if end > max(of_starts) - _EQUAL)
    tables = runs[best].tables
    hmm = tables.hmm(_location_names(tables.sensors, readers), readers, sensing)
    held_out = _held_out(learner, best, sequences, iterations)
    return Fitted(hmm, runs[best].log_likelihoods, of_starts, runs[best].converged, held_out)


def _held_out(learner: Learner, seed: int, sequences: Sequences, iterations: int) -> float | None:
    """The log likelihood per step of every third key, under a model of the others."""
    n = len(sequences.starts)
    if n < 3:
        return None
    test, others = sequences.every(range(0, n, 3)), sequences.every([k for k in range(n) if k % 3])
    tables = learner.fit(learner.start(seed, others), others, iterations).tables
    return learner.expect(tables, test).log_likelihood / test.n_steps


def _location_names(sensors: F64, readers: Sequence[str]) -> list[str]:
    """For each location the reader that sees most of it, or `unseen`; numbered where several have the same."""
    names: list[str] = []
    for seen in sensors.T:
        name = readers[int(seen.argmax())] if seen.max() >= _NAMING else "unseen"
        same = sum(other == name or other.startswith(f"{name} ") for other in names)
        names.append(f"{name} {same + 1}" if same else name)
    return names


@dataclass(frozen=True, slots=True)
class Tables:
    """A model as dense tables; `sensors` is (R, N), `silence` the probability of a step without readings (EMISSION)."""

    initial: F64
    transition: F64
    sensors: F64
    silence: F64 | None

    def hmm(self, locations: Sequence[str], readers: Sequence[str], sensing: Sensing) -> Hmm:
        """The model with names."""
        transition, sensors = Entries.of_dense(self.transition), Entries.of_dense(self.sensors)
        return make_hmm(locations, readers, self.initial, transition, sensing, sensors, self.silence)


@dataclass(frozen=True, slots=True)
class Counts:
    """Expected counts: steps and moves by location, readings (R, N), and steps without readings."""

    steps: F64
    moves: F64
    seen: F64
    quiet: F64
    log_likelihood: float


@dataclass(frozen=True, slots=True)
class Run:
    """One start: the last tables, and the log likelihood per step after each iteration."""

    tables: Tables
    log_likelihoods: tuple[float, ...]
    converged: bool


class Learner:
    """The shape of a model: how it starts, and the two steps of an iteration."""

    def __init__(self, n_readers: int, n_locations: int, sensing: Sensing, alpha: float) -> None:
        self._n_readers, self._n, self._sensing, self._alpha = n_readers, n_locations, sensing, alpha

    def start(self, seed: int, sequences: Sequences) -> Tables:
        """The first start has a location for each reader, where it sees most; the others are random."""
        draw = np.random.default_rng(seed)
        near = np.arange(self._n_readers)[:, np.newaxis] == np.arange(self._n)
        sensors = np.where(near, 0.5, 0.05) if seed == 0 else draw.uniform(0.02, 0.6, near.shape)
        # Locations that are equal at the start stay equal.
        sensors = sensors * draw.uniform(0.9, 1.0, sensors.shape)
        transition = np.full((self._n, self._n), 0.1 / self._n) + 0.9 * np.eye(self._n)
        silence = None
        if self._sensing is Sensing.EMISSION:
            silent = any((np.diff(starts) == 0).any() for starts in sequences.starts)
            quiet = np.full(self._n, 0.3 if silent else 0.0)
            sensors = sensors / sensors.sum(axis=0) * (1 - quiet)
            silence = quiet if silent else None
        return Tables(np.full(self._n, 1 / self._n), transition, sensors, silence)

    def fit(self, tables: Tables, sequences: Sequences, iterations: int) -> Run:
        """Iterate until the likelihood does not grow any more."""
        found: list[float] = []
        for _ in range(iterations):
            counts = self.expect(tables, sequences)
            found.append(counts.log_likelihood / sequences.n_steps)
            tables = self.maximise(counts, tables.silence is not None)
            if len(found) > 1 and found[-1] - found[-2] < TOLERANCE:
                return Run(tables, tuple(found), converged=True)
        return Run(tables, tuple(found), converged=False)

    def expect(self, tables: Tables, sequences: Sequences) -> Counts:
        """The expected counts given all readings, and the log likelihood of the readings."""
        names = [str(code) for code in range(max(self._n, self._n_readers))]
        hmm = tables.hmm(names[: self._n], names[: self._n_readers], self._sensing)
        chain, sensors = chain_of(hmm), sensors_of(hmm)
        steps, moves, quiet = np.zeros(self._n), np.zeros(self._n * self._n), np.zeros(self._n)
        seen = np.zeros((self._n_readers, self._n))
        total = 0.0
        for starts, readings in zip(sequences.starts, sequences.readings, strict=True):
            step, before, location, p, _, log_likelihood, _ = kernel.smooth_rows(
                chain, sensors, starts, readings, 0.0, True
            )
            at, place, probability, *_ = kernel.marginal_rows(chain, sensors, starts, readings, 0.0)
            marginal = np.zeros((len(starts) - 1, self._n))
            marginal[at, place] = probability
            later = step > 0
            weight = marginal[step[later] - 1, before[later]] * p[later]
            moves += np.bincount(before[later] * self._n + location[later], weight, minlength=len(moves))
            steps += marginal.sum(axis=0)
            np.add.at(seen, readings, marginal[np.repeat(np.arange(len(starts) - 1), np.diff(starts))])
            quiet += marginal[np.diff(starts) == 0].sum(axis=0)
            total += log_likelihood
        return Counts(steps, moves.reshape(self._n, self._n), seen, quiet, total)

    def maximise(self, counts: Counts, silence: bool) -> Tables:
        """The tables under which the expected counts, with alpha added, are most likely."""
        alpha = self._alpha
        # A key may appear anywhere, as in `fit_hmm` for inferred streams.
        initial = _distribution(counts.steps + alpha)
        transition = _distribution(counts.moves + alpha)
        if self._sensing is Sensing.DETECTION:
            p = (counts.seen + alpha) / (counts.steps + 2 * alpha)
            return Tables(initial, transition, np.where(p < _LEAST, 0.0, np.minimum(p, 1.0)), None)
        kinds = np.vstack([counts.seen, counts.quiet[np.newaxis]]) if silence else counts.seen
        emission = _distribution((kinds + alpha).T).T
        return Tables(initial, transition, emission[: self._n_readers], emission[-1] if silence else None)


def _distribution(counts: F64) -> F64:
    """Counts as probabilities that sum to 1 in the last dimension; equal ones where all counts are 0."""
    totals = counts.sum(axis=-1, keepdims=True)
    p = np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), 1 / counts.shape[-1])
    p = np.where(p < _LEAST, 0.0, p)
    return p / p.sum(axis=-1, keepdims=True)
