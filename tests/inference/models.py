"""Models for the tests: dense arrays with the likelihoods of the oracles, and the same as an `Hmm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from tests.oracles import hmm as oracle


@dataclass(frozen=True)
class Dense:
    """A model as dense arrays; `sensors` is (R, N)."""

    initial: Any
    transition: Any
    sensing: Sensing
    sensors: Any
    silence: Any = None

    def hmm(self) -> Hmm:
        """The model as an `Hmm`."""
        locations = [f"x{code}" for code in range(len(self.initial))]
        readers = [f"r{code}" for code in range(len(self.sensors))]
        tables = Entries.of_dense(self.transition), self.sensing, Entries.of_dense(self.sensors), self.silence
        return make_hmm(locations, readers, self.initial, *tables)

    def likelihoods(self, readings: Sequence[Sequence[int]]) -> Any:
        """P[readings | x] by the oracles, (T, N)."""
        sets = [set(seen) for seen in readings]
        if self.sensing is Sensing.DETECTION:
            return oracle.detection_likelihoods(self.sensors, sets)
        return oracle.emission_likelihoods(self.sensors, self.silence, sets)


def packed(readings: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """The readings of each step as the kernels take them: the start of each step, and the codes."""
    starts = np.concatenate([[0], np.cumsum([len(seen) for seen in readings])]).astype(np.int64)
    return starts, np.array([reader for seen in readings for reader in seen], np.int32)


# Zeros and ones are frequent on purpose: impossible and certain events are the difficult cases.
weights = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
chances = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 0.99))


@st.composite
def arrays(draw: st.DrawFn, rows: int, columns: int, entries: st.SearchStrategy[float]) -> Any:
    row = st.lists(entries, min_size=columns, max_size=columns)
    return np.array(draw(st.lists(row, min_size=rows, max_size=rows))).reshape(rows, columns)


def distributions(weights: Any) -> Any:
    """The rows scaled to sum to 1; a row of zeros gets 1 in the first column."""
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


@st.composite
def models(draw: st.DrawFn) -> Dense:
    """Small models of both kinds of sensing, with and without silence."""
    n, readers = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    chain = distributions(draw(arrays(n + 1, n, weights)))
    if draw(st.booleans()):
        return Dense(chain[0], chain[1:], Sensing.DETECTION, draw(arrays(readers, n, chances)))
    silent = draw(st.booleans())
    emission = distributions(draw(arrays(n, readers + silent, weights))).T
    return Dense(chain[0], chain[1:], Sensing.EMISSION, emission[:readers], emission[readers] if silent else None)


@st.composite
def cases(draw: st.DrawFn, steps: int = 5) -> tuple[Dense, list[list[int]]]:
    """A model, and readings at up to `steps` steps: none, several, duplicates and unknown readers."""
    model = draw(models())
    codes = st.one_of(st.integers(0, len(model.sensors) - 1), st.integers(-1, len(model.sensors)))
    return model, draw(st.lists(st.lists(codes, max_size=3), min_size=1, max_size=steps))


def random_model(n: int, readers: int, seed: int, sensing: Sensing = Sensing.EMISSION) -> Dense:
    """A model in which everything is possible."""
    rng = np.random.default_rng(seed)
    sensors = rng.dirichlet(np.ones(readers), size=n).T
    return Dense(rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), size=n), sensing, sensors)
