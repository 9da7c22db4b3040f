"""The workload of the inference benchmarks: a building and the readings of one tag.

A building is a ring of locations with four transitions from each. There is one reader for every five locations; it
detects a tag at four of them. No two readers see the same location, so the readings of each step are one symbol or
none, and hmmlearn can solve the same problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from anabranch.inference.infer import Inference, Inferred

PRUNE = 1e-4
PARTICLES = 1_000
LOCATIONS_PER_READER = 5


@dataclass(frozen=True, slots=True)
class Building:
    """A model, as dense arrays and as the package has it, and the readings of one tag."""

    hmm: Hmm
    transition: np.ndarray
    emission: np.ndarray
    reading_starts: np.ndarray
    readings: np.ndarray

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.reading_starts) - 1

    @property
    def symbols(self) -> np.ndarray:
        """The reader of each step; a step without a reading has the number after the last reader."""
        symbols = np.full(self.steps, len(self.hmm.readers))
        symbols[np.flatnonzero(np.diff(self.reading_starts))] = self.readings
        return symbols

    @property
    def likelihoods(self) -> np.ndarray:
        """P[readings of t | x], (T, N)."""
        return self.emission[:, self.symbols].T

    def first(self, steps: int) -> Building:
        """Return the same building with only the first steps."""
        starts = self.reading_starts[: steps + 1]
        return Building(self.hmm, self.transition, self.emission, starts, self.readings[: starts[-1]])

    def method(self, name: str, prune: float = PRUNE) -> Callable[[], Inferred]:
        """Return a function that infers all steps by one method."""
        inference = Inference(self.hmm, name, PARTICLES if name == "PARTICLE" else 0, prune)
        return lambda: inference.advance(inference.start(1), self.reading_starts, self.readings)

    def infer(self, name: str, prune: float = 0.0) -> Inferred:
        """Infer all steps by one method."""
        return self.method(name, prune)()


def make_building(locations: int, steps: int, detection: float, seed: int) -> Building:
    """Draw a building, and the readings of a tag that moves through it."""
    rng = np.random.default_rng(seed)
    x = np.arange(locations)
    transition = np.zeros((locations, locations))
    for ahead in (0, 1, -1, math.isqrt(locations)):
        transition[x, (x + ahead) % locations] += rng.uniform(0.5, 1.5, size=locations)
    transition /= transition.sum(axis=1, keepdims=True)
    visible = x[x % LOCATIONS_PER_READER != 0]
    emission = np.zeros((locations, -(-locations // LOCATIONS_PER_READER) + 1))
    emission[visible, visible // LOCATIONS_PER_READER] = rng.uniform(0.5, 1.5, size=len(visible)) * detection
    emission[:, -1] = 1 - emission.sum(axis=1)
    readers = [f"reader-{r}" for r in range(emission.shape[1] - 1)]
    tables = Entries.of_dense(transition), Sensing.DETECTION, Entries.of_dense(emission[:, :-1].T)
    hmm = make_hmm([f"location-{at}" for at in x], readers, np.full(locations, 1 / locations), *tables)
    symbols = _draw_symbols(transition, emission, steps, rng)
    starts = np.concatenate([[0], np.cumsum(symbols < len(readers))])
    return Building(hmm, transition, emission, starts, symbols[symbols < len(readers)].astype(np.int32))


def _draw_symbols(transition: np.ndarray, emission: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Return the symbols that a tag emits while it moves."""
    moves, kinds = transition.cumsum(axis=1), emission.cumsum(axis=1)
    uniform = rng.random((steps, 2))
    symbols, at = np.empty(steps, np.int64), 0
    for t in range(steps):
        at = min(int(np.searchsorted(moves[at], uniform[t, 0])), len(moves) - 1)
        symbols[t] = min(int(np.searchsorted(kinds[at], uniform[t, 1])), kinds.shape[1] - 1)
    return symbols
