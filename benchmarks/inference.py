"""Inference: steps a second of each method, held against dense NumPy and hmmlearn, and growth with steps and locations.

A building is a ring of locations with four ways on from each, and a reader for every five of them, which sees a tag at
four. As no two readers see the same location, each step's readings are one symbol or none, and hmmlearn can be asked
the same. A figure is only given once the answers behind it agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from anabranch.inference.infer import Inference, Inferred
from anabranch.inference.model import Entries, Hmm, Sensing, make_hmm
from benchmarks.engines import one_thread
from benchmarks.harness import Options, Record, interleaved

PRUNE = 1e-4
PARTICLES = 1_000
LOCATIONS_A_READER = 5

#: The chance that a reader sees a tag, by what the workload is called.
CHANCES = {"read often": 0.5, "read rarely": 0.02}


@dataclass(frozen=True, slots=True)
class Building:
    """A model, dense and as the package has it, and what was read of one tag."""

    hmm: Hmm
    transition: np.ndarray
    emission: np.ndarray
    reading_starts: np.ndarray
    readings: np.ndarray

    @property
    def symbols(self) -> np.ndarray:
        """The reader of each step; after the last reader's, the symbol of a step without one."""
        symbols = np.full(len(self.reading_starts) - 1, len(self.hmm.readers))
        symbols[np.flatnonzero(np.diff(self.reading_starts))] = self.readings
        return symbols

    @property
    def likelihoods(self) -> np.ndarray:
        """P[what was read | x], (T, N)."""
        return self.emission[:, self.symbols].T

    def first(self, steps: int) -> Building:
        """The same with the first steps alone."""
        starts = self.reading_starts[: steps + 1]
        return Building(self.hmm, self.transition, self.emission, starts, self.readings[: starts[-1]])

    def method(self, name: str, prune: float = PRUNE) -> Callable[[], Inferred]:
        """What infers all steps by one method."""
        inference = Inference(self.hmm, name, PARTICLES if name == "PARTICLE" else 0, prune)
        return lambda: inference.advance(inference.start(1), self.reading_starts, self.readings)

    def infer(self, name: str, prune: float = 0.0) -> Inferred:
        """All steps by one method."""
        return self.method(name, prune)()


def make_building(locations: int, steps: int, chance: float, seed: int) -> Building:
    """Draw a building, and a tag's way through it."""
    rng = np.random.default_rng(seed)
    x = np.arange(locations)
    transition = np.zeros((locations, locations))
    for ahead in (0, 1, -1, math.isqrt(locations)):
        transition[x, (x + ahead) % locations] += rng.uniform(0.5, 1.5, size=locations)
    transition /= transition.sum(axis=1, keepdims=True)
    seen = x[x % LOCATIONS_A_READER != 0]
    emission = np.zeros((locations, -(-locations // LOCATIONS_A_READER) + 1))
    emission[seen, seen // LOCATIONS_A_READER] = rng.uniform(0.5, 1.5, size=len(seen)) * chance
    emission[:, -1] = 1 - emission.sum(axis=1)
    readers = [f"reader-{r}" for r in range(emission.shape[1] - 1)]
    tables = _entries(transition), Sensing.DETECTION, _entries(emission[:, :-1].T)
    hmm = make_hmm([f"location-{at}" for at in x], readers, np.full(locations, 1 / locations), *tables)
    symbols = _drawn(transition, emission, steps, rng)
    starts = np.concatenate([[0], np.cumsum(symbols < len(readers))])
    return Building(hmm, transition, emission, starts, symbols[symbols < len(readers)].astype(np.int32))


def _entries(table: np.ndarray) -> Entries:
    rows, columns = np.nonzero(table)
    return Entries(rows.astype(np.int32), columns.astype(np.int32), table[rows, columns])


def _drawn(transition: np.ndarray, emission: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
    """The symbols that a tag emits on its way."""
    moves, kinds = transition.cumsum(axis=1), emission.cumsum(axis=1)
    chosen = rng.random((steps, 2))
    symbols, at = np.empty(steps, np.int64), 0
    for t in range(steps):
        at = min(int(np.searchsorted(moves[at], chosen[t, 0])), len(moves) - 1)
        symbols[t] = min(int(np.searchsorted(kinds[at], chosen[t, 1])), kinds.shape[1] - 1)
    return symbols


# ------------------------------------------------------------ dense NumPy, scaled


def dense_filter(building: Building) -> np.ndarray:
    """P[x_t | readings up to t], (T, N)."""
    filtered = building.likelihoods.copy()
    ahead = building.hmm.initial
    for t in range(len(filtered)):
        filtered[t] *= ahead
        filtered[t] /= filtered[t].sum()
        ahead = filtered[t] @ building.transition
    return filtered


def dense_marginals(building: Building) -> np.ndarray:
    """P[x_t | all readings], (T, N); the tables would be T N^2 numbers, and are not even written."""
    marginals, likelihoods = dense_filter(building), building.likelihoods
    back = np.ones(len(building.transition))
    for t in range(len(marginals) - 2, -1, -1):
        back = building.transition @ (likelihoods[t + 1] * back)
        back /= back.max()
        marginals[t] *= back
        marginals[t] /= marginals[t].sum()
    return marginals


def dense_viterbi(building: Building) -> np.ndarray:
    """The likeliest path."""
    with np.errstate(divide="ignore"):
        log_transition, log_likelihoods = np.log(building.transition), np.log(building.likelihoods)
    best = np.log(building.hmm.initial) + log_likelihoods[0]
    came_from = np.empty(log_likelihoods.shape, np.int64)
    every = np.arange(len(best))
    for t in range(1, len(log_likelihoods)):
        weights = best[:, np.newaxis] + log_transition
        came_from[t] = weights.argmax(axis=0)
        best = weights[came_from[t], every] + log_likelihoods[t]
    path = np.empty(len(log_likelihoods), np.int64)
    path[-1] = best.argmax()
    for t in range(len(path) - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path


def hmmlearn_of(building: Building):
    """The same model for hmmlearn."""
    # Not at the top: there are platforms without it, and other families to measure there.
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(n_components=len(building.transition))
    model.startprob_, model.transmat_, model.emissionprob_ = (
        building.hmm.initial,
        building.transition,
        building.emission,
    )
    return model


# ------------------------------------------------------------ the same answers


def distributions(building: Building, inferred: Inferred) -> np.ndarray:
    """Rows (step, location, p) as (T, N)."""
    found = np.zeros((len(building.reading_starts) - 1, len(building.transition)))
    found[inferred.step, inferred.location] = inferred.p
    return found


def log_weight(building: Building, path: np.ndarray) -> float:
    """The logarithm of P[path, all readings]."""
    moves = np.log(building.transition[path[:-1], path[1:]]).sum()
    read = np.log(building.likelihoods[np.arange(len(path)), path]).sum()
    return float(np.log(building.hmm.initial[path[0]]) + moves + read)


def check_answers(building: Building) -> None:
    """Every method agrees with the dense one; both paths, where they differ, are as likely."""
    _check(distributions(building, building.infer("FILTER")), dense_filter(building), 1e-9)
    _check(distributions(building, building.infer("MARGINALS")), dense_marginals(building), 1e-9)
    paths = building.infer("VITERBI").location, dense_viterbi(building)
    _check(*(np.array([log_weight(building, path)]) for path in paths), 1e-6)


def _check(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    apart = float(abs(found - expected).max())
    if not apart <= tolerance:
        raise AssertionError(f"answers differ by {apart}")


def particle_error(building: Building) -> float:
    """The mean total variation distance of the particles' distribution to that of the filter."""
    estimate = distributions(building, building.infer("PARTICLE"))
    return float(0.5 * abs(estimate - distributions(building, building.infer("FILTER"))).sum(axis=1).mean())


# ------------------------------------------------------------ the parts


def kernel(options: Options) -> Iterator[Record]:
    """Steps a second on one core, and how many times those of the others."""
    for locations in (50, 350) if options.quick else (50, 350, 1500):
        for name, chance in CHANCES.items():
            steps = 500 if options.quick else 20_000
            building = make_building(locations, steps, chance, options.seed)
            # The dense ones take N^2 a step; some hundred steps are enough to time and compare them.
            short = building.first(min(steps, 5_000_000 // locations**2 + 100))
            check_answers(short)
            speeds = _speeds(building, short, options.rounds)
            record = partial(Record, "inference.kernel", f"{locations} locations, {name}", seed=options.seed)
            for method, rivals in METHODS.items():
                speed = speeds[method]
                prune = "" if method in ("VITERBI", "MLE") else f", prune {PRUNE}"
                yield record(f"{method}{prune}", speed, "steps/s")
                for rival in rivals:
                    name = f"{method} by {rival}"
                    yield record(name, speeds[name], "steps/s", method, speeds[name] / speed)
            for method in ("FILTER", "SMOOTH"):
                rows = len(building.infer(method, PRUNE).p) / steps
                yield record(f"{method}, prune {PRUNE}: what is written", rows, "rows/step")
            yield record(f"PARTICLE, {PARTICLES:,}: mean distance to the filter", particle_error(short), "probability")


#: The methods, and who else can be asked the same.
METHODS: dict[str, tuple[str, ...]] = {
    "FILTER": ("dense NumPy",),
    "MLE": (),
    "PARTICLE": (),
    "SMOOTH": ("dense NumPy", "hmmlearn"),
    "MARGINALS": (),
    "VITERBI": ("dense NumPy", "hmmlearn"),
}


def _speeds(building: Building, short: Building, rounds: int) -> dict[str, float]:
    """Steps a second of each method, and of each method by its rivals."""
    model, symbols = hmmlearn_of(short), short.symbols[:, np.newaxis]
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        method: (building.method(method), len(building.reading_starts) - 1) for method in METHODS
    }
    n_short = len(short.reading_starts) - 1
    contestants["FILTER by dense NumPy"] = partial(dense_filter, short), n_short
    contestants["SMOOTH by dense NumPy"] = partial(dense_marginals, short), n_short
    contestants["VITERBI by dense NumPy"] = partial(dense_viterbi, short), n_short
    contestants["SMOOTH by hmmlearn"] = partial(model.predict_proba, symbols), n_short
    contestants["VITERBI by hmmlearn"] = partial(model.decode, symbols), n_short
    with one_thread():
        seconds = interleaved({name: run for name, (run, _) in contestants.items()}, rounds)
    return {name: steps / seconds[name] for name, (_, steps) in contestants.items()}


def growth(options: Options) -> Iterator[Record]:
    """The time of each method when the steps or the locations double."""
    locations, steps = (50, 500) if options.quick else (350, 20_000)
    chance = CHANCES["read rarely"]
    variants = {
        "": make_building(locations, steps, chance, options.seed),
        "steps": make_building(locations, 2 * steps, chance, options.seed),
        "locations": make_building(2 * locations, steps, chance, options.seed),
    }
    with one_thread():
        for method in METHODS:
            runs = {name: building.method(method) for name, building in variants.items()}
            interleaved(runs, 1)
            seconds = interleaved(runs, options.rounds)
            record = partial(Record, "inference.growth", f"{locations} locations, {steps:,} steps", seed=options.seed)
            yield record(method, seconds[""], "s")
            for name in ("steps", "locations"):
                ratio = seconds[name] / seconds[""]
                yield record(f"{method}, twice the {name}", seconds[name], "s", "the line above", ratio)


PARTS = {"kernel": kernel, "growth": growth}
