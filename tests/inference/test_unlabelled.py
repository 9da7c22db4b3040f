"""Models from readings without labels: one iteration by enumeration of all paths, and what the iterations find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import DataError
from anabranch.inference.hmm import Sensing
from anabranch.inference.labels import Labelled
from anabranch.inference.unlabelled import Learner, Sequences, Tables, fit_unlabelled
from tests.inference.models import Dense, packed
from tests.oracles import hmm as oracle

Readings = list[list[int]]


def enumerated(tables: Tables, sensing: Sensing, sequences: list[Readings]) -> tuple[Any, Any, Any, Any, float]:
    """Expected steps, moves, readings and silences by enumeration of all paths, and the log likelihood."""
    n, n_readers = len(tables.initial), len(tables.sensors)
    steps, quiet = np.zeros(n), np.zeros(n)
    moves, seen = np.zeros((n, n)), np.zeros((n_readers, n))
    log_likelihood = 0.0
    model = Dense(tables.initial, tables.transition, sensing, tables.sensors, tables.silence)
    for readings in sequences:
        weights = oracle.paths(tables.initial, tables.transition, model.likelihoods(readings))
        log_likelihood += float(np.log(sum(weights.values())))
        for path, p in oracle.posterior(weights).items():
            for t, x in enumerate(path):
                steps[x] += p
                quiet[x] += p * (not readings[t])
                for reader in set(readings[t]):
                    seen[reader, x] += p
                if t:
                    moves[path[t - 1], x] += p
    return steps, moves, seen, quiet, log_likelihood


@given(
    st.lists(st.lists(st.lists(st.integers(0, 1), max_size=2), min_size=1, max_size=4), min_size=1, max_size=2),
    st.sampled_from(Sensing),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_expected_counts_are_those_of_all_paths(sequences: list[Readings], sensing: Sensing, n: int, seed: int) -> None:
    arrays = [packed([sorted(set(seen)) for seen in readings]) for readings in sequences]
    given_readings = Sequences(*(tuple(parts) for parts in zip(*arrays, strict=True)))
    learner = Learner(2, n, sensing, 0.5)
    tables = learner.start(seed, given_readings)
    for _ in range(2):
        counts = learner.expect(tables, given_readings)
        expected = enumerated(tables, sensing, sequences)
        found = (counts.steps, counts.moves, counts.seen, counts.quiet, counts.log_likelihood)
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other, abs=1e-9)
        tables = learner.maximise(counts, tables.silence is not None)


def drawn(people: int, steps: int, seed: int) -> tuple[Dense, Labelled]:
    """Readings of people in two rooms, each with an antenna that sees half of the steps."""
    moves, sensors = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.5, 0.02], [0.02, 0.5]])
    model = Dense(np.array([0.5, 0.5]), moves, Sensing.DETECTION, sensors)
    draw = np.random.default_rng(seed)
    rows = []
    for key in range(people):
        x = int(draw.integers(2))
        for t in range(steps):
            rows += [(key, t, reader) for reader in range(2) if draw.random() < model.sensors[reader, x]]
            x = int(draw.random() < model.transition[x, 1])
    key, step, code = np.array(rows, np.int64).T
    return model, Labelled(key, step, code.astype(np.int32))


def test_the_model_that_generated_the_readings_is_found() -> None:
    model, rows = drawn(12, 200, seed=1)
    fitted = fit_unlabelled(rows, ["a", "b"], 2)
    assert fitted.hmm.locations == ("a", "b")
    dense = np.zeros((2, 2))
    dense[np.repeat(np.arange(2), np.diff(fitted.hmm.starts)), fitted.hmm.targets] = fitted.hmm.p
    assert dense == pytest.approx(model.transition, abs=0.08)
    assert fitted.hmm.reader_p.reshape(2, 2) == pytest.approx(model.sensors, abs=0.08)
    sequences = Sequences.of(rows, 2)
    truth = Learner(2, 2, Sensing.DETECTION, 0.5).expect(
        Tables(model.initial, model.transition, model.sensors, None), sequences
    )
    assert fitted.log_likelihoods[-1] >= truth.log_likelihood / sequences.n_steps
    assert fitted.held_out == pytest.approx(fitted.log_likelihoods[-1], abs=0.05)
    assert fitted.converged


def test_the_likelihood_never_falls() -> None:
    _, rows = drawn(4, 60, seed=2)
    found = np.array(fit_unlabelled(rows, ["a", "b"], 3, alpha=0.0, iterations=30).log_likelihoods)
    assert (np.diff(found) > -1e-9).all()


def test_two_keys_are_too_few_to_hold_one_out() -> None:
    _, rows = drawn(2, 40, seed=3)
    fitted = fit_unlabelled(rows, ["a", "b"], 3, Sensing.EMISSION, iterations=5)
    assert fitted.held_out is None
    assert not fitted.converged
    assert len(set(fitted.hmm.locations)) == 3


def test_no_readings_are_an_error() -> None:
    empty = np.zeros(0, np.int64)
    with pytest.raises(DataError, match="there are no readings"):
        fit_unlabelled(Labelled(empty, empty, empty.astype(np.int32)), ["a"], 1)
