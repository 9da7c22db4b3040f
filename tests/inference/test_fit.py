"""Fitting: it recovers the parameters of simulated history, and tables are as sparse as the history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from anabranch.errors import DataError
from anabranch.inference.fit import Smoothing, fit_hmm
from anabranch.inference.hmm import Hmm, Sensing
from anabranch.inference.infer import Inference
from anabranch.inference.labels import Labelled
from tests.inference.models import Dense, distributions, packed

#: Five seconds: not in `make quick`.
pytestmark = pytest.mark.slow

PLAIN = Smoothing(alpha=0.0, reverse=False)


def labelled(rows: list[tuple[int, int, int]]) -> Labelled:
    key, step, code = np.array(rows).reshape(-1, 3).T
    return Labelled(key, step, code.astype(np.int32))


def named(letter: str, n: int) -> list[str]:
    return [f"{letter}{code}" for code in range(n)]


def dense(hmm: Hmm) -> tuple[Any, Any]:
    """Transitions (N, N) and readers (R, N)."""
    n, transition = len(hmm.locations), np.zeros((len(hmm.locations),) * 2)
    transition[np.repeat(np.arange(n), np.diff(hmm.starts)), hmm.targets] = hmm.p
    readers = np.zeros((len(hmm.readers), n))
    readers[np.repeat(np.arange(len(hmm.readers)), np.diff(hmm.reader_starts)), hmm.reader_locations] = hmm.reader_p
    return transition, readers


def simulated(model: Dense, keys: int, steps: int, seed: int) -> tuple[Labelled, Labelled]:
    """Random locations of keys and the readings of them, shuffled."""
    rng = np.random.default_rng(seed)
    n, readers = len(model.initial), len(model.sensors)
    truth, seen = [], []
    for key in range(keys):
        x = rng.choice(n, p=model.initial)
        for step in range(100, 100 + steps):
            truth.append((key, step, x))
            if model.sensing is Sensing.DETECTION:
                seen += [(key, step, r) for r in np.flatnonzero(rng.random(readers) < model.sensors[:, x])]
            else:
                kinds = (
                    model.sensors[:, x] if model.silence is None else np.append(model.sensors[:, x], model.silence[x])
                )
                r = rng.choice(len(kinds), p=kinds)
                seen += [(key, step, r)] if r < readers else []
            x = rng.choice(n, p=model.transition[x])
    return labelled(rng.permutation(truth).tolist()), labelled(rng.permutation(seen).tolist())


def corridor(sensing: Sensing) -> Dense:
    """A row of rooms: a sparse model, as buildings have."""
    transition = distributions(np.diag([4.0] * 5) + np.diag([1.0] * 4, 1) + np.diag([2.0] * 4, -1))
    initial = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    if sensing is Sensing.DETECTION:
        detection = np.array([[0.8, 0.2, 0.0, 0.0, 0.0], [0.0, 0.3, 0.6, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.9]])
        return Dense(initial, transition, sensing, detection)
    emission = np.array([[0.7, 0.2, 0.0, 0.0, 0.1], [0.1, 0.3, 0.5, 0.0, 0.0], [0.2, 0.5, 0.5, 1.0, 0.9]])
    return Dense(initial, transition, sensing, emission[:2], emission[2])


@pytest.mark.parametrize("sensing", list(Sensing))
@pytest.mark.parametrize("smoothing", [PLAIN, Smoothing()])
def test_the_true_parameters_are_recovered(sensing: Sensing, smoothing: Smoothing) -> None:
    model = corridor(sensing)
    truth, seen = simulated(model, keys=300, steps=100, seed=5)
    silence = sensing is Sensing.EMISSION
    hmm = fit_hmm(truth, seen, named("x", 5), named("r", len(model.sensors)), sensing, smoothing, silence=silence)
    transition, readers = dense(hmm)
    # There are at least about 2000 steps at each location: five standard deviations are below 0.06.
    assert_allclose(transition, model.transition, atol=0.06)
    assert_allclose(readers, model.sensors, atol=0.06)
    assert_allclose(hmm.initial, model.initial, atol=0.15)
    assert ((transition > 0) == (model.transition > 0)).all()
    assert ((readers > 0) == (model.sensors > 0)).all()
    if silence:
        assert_allclose(hmm.silence, model.silence, atol=0.06)


def test_no_reading_of_the_history_is_impossible_in_the_fitted_model() -> None:
    model = corridor(Sensing.DETECTION)
    truth, seen = simulated(model, keys=1, steps=500, seed=6)
    hmm = fit_hmm(truth, seen, named("x", 5), named("r", 3))
    readings: list[list[int]] = [[] for _ in range(500)]
    for step, reader in zip(seen.step - 100, seen.code, strict=True):
        readings[step].append(reader)
    inference = Inference(hmm, "FILTER")
    assert inference.advance(inference.start(), *packed(readings)).impossible.size == 0


def test_counts_by_hand() -> None:
    truth = labelled([(0, 3, 1), (0, 1, 0), (0, 2, 0), (1, 7, 1), (1, 8, 1), (1, 10, 0)])
    seen = labelled([(0, 1, 0), (0, 1, 0), (0, 3, 1), (1, 10, 0), (1, 10, 1), (5, 1, 1)])
    hmm = fit_hmm(truth, seen, named("x", 2), named("r", 2), smoothing=PLAIN)
    transition, readers = dense(hmm)
    # The gap between steps 8 and 10 is no move; duplicates and readings of unknown keys do not count.
    assert_allclose(transition, [[0.5, 0.5], [0.0, 1.0]])
    assert_allclose(readers, [[2 / 3, 0.0], [1 / 3, 1 / 3]])
    assert hmm.initial.tolist() == [0.5, 0.5]
    smoothed = fit_hmm(truth, seen, named("x", 2), named("r", 2), smoothing=Smoothing(alpha=1.0))
    transition, readers = dense(smoothed)
    assert_allclose(transition, [[2 / 4, 2 / 4], [1 / 3, 2 / 3]])
    assert_allclose(readers, [[3 / 5, 0.0], [2 / 5, 2 / 5]])
    everywhere = fit_hmm(truth, seen, named("x", 2), named("r", 2), smoothing=Smoothing(1.0, alpha_unseen=0.1))
    assert_allclose(dense(everywhere)[1], [[3 / 5, 0.1 / 4.1], [2 / 5, 2 / 5]])
    assert fit_hmm(truth, seen, named("x", 2), named("r", 2), smoothing=PLAIN, initial="all").initial.tolist() == [
        0.5,
        0.5,
    ]


def test_emission_by_hand() -> None:
    truth = labelled([(0, step, 0) for step in range(4)] + [(0, 4, 1)])
    seen = labelled([(0, 0, 0), (0, 1, 0), (0, 2, 1)])
    without = fit_hmm(truth, seen, named("x", 3), named("r", 2), Sensing.EMISSION, PLAIN)
    # At locations without readings, all readings are equally likely.
    assert_allclose(dense(without)[1], [[2 / 3, 0.5, 0.5], [1 / 3, 0.5, 0.5]])
    assert without.silence is None
    with_silence = fit_hmm(truth, seen, named("x", 3), named("r", 2), Sensing.EMISSION, PLAIN, silence=True)
    assert_allclose(dense(with_silence)[1], [[0.5, 0.0, 1 / 3], [0.25, 0.0, 1 / 3]])
    assert_allclose(with_silence.silence, [0.25, 1.0, 1 / 3])


def test_possible_transitions_can_be_listed() -> None:
    truth, seen = labelled([(0, 0, 0), (0, 1, 1)]), labelled([])
    possible = np.array([0, 1]), np.array([2, 2])
    hmm = fit_hmm(truth, seen, named("x", 3), [], smoothing=Smoothing(alpha=0.5), possible=possible)
    assert_allclose(dense(hmm)[0], [[0.0, 0.75, 0.25], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert len(hmm.reader_p) == 0


def test_invalid_arguments_are_errors() -> None:
    no_rows = labelled([])
    with pytest.raises(DataError, match="the truth has no locations"):
        fit_hmm(no_rows, no_rows, named("x", 2), [])
    with pytest.raises(DataError, match="key 4 has two locations at step 2; keep one of them"):
        fit_hmm(labelled([(4, 2, 0), (4, 1, 0), (4, 2, 1)]), no_rows, named("x", 2), [])
    with pytest.raises(ValueError, match="'first' or 'all'"):
        fit_hmm(labelled([(0, 0, 0)]), no_rows, named("x", 2), [], initial="last")
