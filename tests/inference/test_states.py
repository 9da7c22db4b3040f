"""Stages, tempered likelihoods and measured quantities, against explicit durations, powers and densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from anabranch.binding.derived_streams import METHOD_MODELS, WHOLE_ARCHIVE
from anabranch.inference.hmm import Gaussians, Hmm, Sensing
from anabranch.inference.infer import Inference, Inferred, KeyState
from anabranch.inference.states import States, chain_of, sensors_of
from tests.drawn import examples
from tests.inference.models import Dense, cases, packed
from tests.oracles import hmm as oracle

ONE_READER = np.array([[0.9, 0.1]])


@dataclass(frozen=True)
class Case:
    """A model with stages, an exponent and one or no quantity; its readings, and the posterior over paths."""

    hmm: Hmm
    readings: list[list[int]]
    measured: Any
    model: Dense
    likelihoods: Any

    def infer(self, method: str, prune: float = 0.0) -> Inferred:
        inference = Inference(self.hmm, method, 20_000 if method == "PARTICLE" else 0, prune)
        return inference.advance(inference.start(3), *packed(self.readings), self.measured)

    def weights(self, steps: int | None = None) -> dict[oracle.Path, float]:
        stages = [1] * len(self.model.initial) if self.hmm.stages is None else self.hmm.stages.tolist()
        return oracle.stay_paths(self.model.initial, self.model.transition, stages, self.likelihoods[:steps])


@st.composite
def staged(draw: st.DrawFn) -> Case:
    model, readings = draw(cases(steps=4))
    n = len(model.initial)
    stages = np.array(draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), np.int32)
    exponent = draw(st.sampled_from([1.0, 0.5, 0.125]))
    hmm = replace(model.hmm(), stages=stages, exponent=exponent)
    measured, likelihoods = None, model.likelihoods(readings)
    if draw(st.booleans()):
        hmm = replace(hmm, gaussians=draw(gaussians(hmm)))
        numbers = st.one_of(st.just(float("nan")), st.floats(-3, 3))
        measured = np.array([[draw(numbers)] for seen in readings for _ in seen]).reshape(-1, 1)
        likelihoods = likelihoods * densities(hmm, readings, measured)
    corrected, _ = oracle.without_impossible(model.initial, model.transition, likelihoods**exponent)
    return Case(hmm, readings, measured, model, corrected)


@st.composite
def gaussians(draw: st.DrawFn, hmm: Hmm) -> Gaussians:
    entries = len(hmm.reader_p)
    means = draw(st.lists(st.floats(-3, 3), min_size=entries, max_size=entries))
    deviations = draw(st.lists(st.floats(0.5, 2), min_size=entries, max_size=entries))
    return Gaussians(("rssi",), np.array([means]).reshape(1, -1), np.array([deviations]).reshape(1, -1))


def densities(hmm: Hmm, readings: list[list[int]], measured: Any) -> Any:
    """For each step and location, the product of the densities of its readers' means."""
    assert hmm.gaussians is not None
    product = np.ones((len(readings), len(hmm.locations)))
    numbers = iter(measured[:, 0])
    for t, seen in enumerate(readings):
        by_reader: dict[int, list[float]] = {}
        for r in seen:
            by_reader.setdefault(r, []).append(next(numbers))
        for r, values in by_reader.items():
            known = [value for value in values if value == value]
            if known and 0 <= r < len(hmm.readers):
                for j in range(hmm.reader_starts[r], hmm.reader_starts[r + 1]):
                    law = hmm.gaussians.mean[0, j], hmm.gaussians.deviation[0, j]
                    product[t, hmm.reader_locations[j]] *= oracle.normal_density(float(np.mean(known)), *law)
    return product


def table(inferred: Inferred, steps: int, n: int) -> Any:
    p = np.zeros((steps, n))
    p[inferred.step, inferred.location] = inferred.p
    return p


@given(staged())
def test_marginals_are_those_of_explicit_durations(case: Case) -> None:
    n, steps = len(case.model.initial), len(case.readings)
    expected = oracle.marginals(oracle.posterior(case.weights()), n)
    assert_allclose(table(case.infer("MARGINALS"), steps, n), expected, atol=1e-9)


@given(staged())
def test_the_filter_and_the_likeliest_location_are_those_of_explicit_durations(case: Case) -> None:
    n, steps = len(case.model.initial), len(case.readings)
    expected = np.array([oracle.marginals(oracle.posterior(case.weights(t + 1)), n)[-1] for t in range(steps)])
    assert_allclose(table(case.infer("FILTER"), steps, n), expected, atol=1e-9)
    likeliest = case.infer("MLE")
    assert likeliest.step.tolist() == list(range(steps))
    assert_allclose(expected[likeliest.step, likeliest.location], expected.max(axis=1), atol=1e-9)


@given(staged())
def test_smoothed_paths_of_states_are_those_of_explicit_durations(case: Case) -> None:
    inferred, location = case.infer("SMOOTH"), States.of(case.hmm).location
    paths: dict[oracle.Path, float] = {}
    for path, p in oracle.paths_of_rows(inferred.step, inferred.prev, inferred.location, inferred.p).items():
        places = tuple(int(location[state]) for state in path)
        paths[places] = paths.get(places, 0.0) + p
    assert oracle.distance(paths, oracle.posterior(case.weights())) < 1e-9


@examples(10)
@given(staged())
def test_particles_are_near_the_filter(case: Case) -> None:
    n, steps = len(case.model.initial), len(case.readings)
    if len(case.infer("FILTER").impossible) or (case.likelihoods == 0).any():
        return  # Particles are drawn anew where the reading is possible.
    exact, sampled = (table(case.infer(method), steps, n) for method in ("FILTER", "PARTICLE"))
    assert abs(exact - sampled).max() < 0.05


@given(staged())
def test_the_best_path_is_the_best_of_states_and_stages(case: Case) -> None:
    if case.measured is not None:
        return  # The dense likelihoods below have no densities.
    chain, states = chain_of(case.hmm), States.of(case.hmm)
    dense = np.zeros((len(states.location), len(states.location)))
    for x in range(len(dense)):
        entries = slice(chain.starts[x], chain.starts[x + 1])
        dense[x, chain.targets[entries]] = chain.p[entries]
    likelihoods = case.likelihoods[:, states.location]
    weights = oracle.paths(chain.initial, dense, likelihoods)
    best: dict[oracle.Path, float] = {}
    for path, weight in weights.items():
        places = tuple(int(states.location[state]) for state in path)
        best[places] = max(best.get(places, 0.0), weight)
    path = tuple(case.infer("VITERBI").location.tolist())
    assert best[path] == pytest.approx(max(weights.values()), rel=1e-9)


@given(staged(), st.sampled_from(sorted(METHOD_MODELS.keys() - {*WHOLE_ARCHIVE, "LAG"})), st.sampled_from([0.0, 0.2]))
def test_splitting_the_steps_changes_nothing(case: Case, method: str, prune: float) -> None:
    inference = Inference(case.hmm, method, 30 if method == "PARTICLE" else 0, prune)
    starts, readings = packed(case.readings)
    once = inference.advance(inference.start(7), starts, readings, case.measured)
    state, parts = inference.start(7), []
    for t in range(len(case.readings)):
        parts.append(inference.advance(state, starts[t : t + 2], readings, case.measured))
        state = KeyState.from_arrays(*state.to_arrays(), n_states=len(inference.states.location))
    assert np.concatenate([part.location for part in parts]).tolist() == once.location.tolist()
    assert np.concatenate([part.p for part in parts]).tolist() == once.p.tolist()
    assert sum(part.dropped for part in parts) == pytest.approx(once.dropped, abs=1e-12)


@given(staged())
def test_pruned_locations_are_dropped_and_the_others_scaled(case: Case) -> None:
    n, steps = len(case.model.initial), len(case.readings)
    exact, pruned = table(case.infer("FILTER"), steps, n), case.infer("FILTER", 0.3)
    kept = table(pruned, steps, n)
    assert_allclose(kept.sum(axis=1), 1.0)
    near = abs(exact - 0.3) < 1e-9
    assert ((kept > 0) | (exact < 0.3) | near).all()
    assert pruned.dropped == pytest.approx(exact[kept == 0].sum(), abs=1e-9)


@given(cases())
def test_one_stage_and_exponent_1_are_the_plain_model(case: tuple[Dense, list[list[int]]]) -> None:
    hmm = case[0].hmm()
    ones = replace(hmm, stages=np.ones(len(hmm.locations), np.int32), exponent=1.0)
    for one, other in zip((*chain_of(hmm), *sensors_of(hmm)), (*chain_of(ones), *sensors_of(ones)), strict=True):
        assert one.tolist() == other.tolist()


def test_methods_that_use_the_readings_so_far_have_their_own_exponent() -> None:
    model = Dense(np.array([0.5, 0.5]), np.eye(2), Sensing.DETECTION, ONE_READER)
    hmm = replace(model.hmm(), exponent=0.25, exponent_so_far=0.5)
    for method, exponent in (("MARGINALS", 0.25), ("FILTER", 0.5)):
        inference = Inference(hmm, method)
        odds = 9.0**exponent
        assert inference.advance(inference.start(), *packed([[0]])).p.tolist() == pytest.approx(
            [odds / (1 + odds), 1 / (1 + odds)]
        )


def test_a_long_stay_with_many_stages_can_be_represented() -> None:
    """The chance to pass 50 stages in one step is below what kernels can represent, and is dropped."""
    model = Dense(np.array([0.5, 0.5]), np.array([[1 - 1e-6, 1e-6], [0.5, 0.5]]), Sensing.DETECTION, ONE_READER)
    hmm = replace(model.hmm(), stages=np.array([50, 1], np.int32))
    chain = chain_of(hmm)
    assert (chain.p >= 1e-60).all()
    sums = np.add.reduceat(chain.p, chain.starts[:-1])
    assert_allclose(sums, 1.0, rtol=1e-12)
    inferred = Inference(hmm, "MARGINALS").advance(Inference(hmm, "MARGINALS").start(), *packed([[0]] * 50))
    assert inferred.p.sum() == pytest.approx(50)


def test_a_measurement_that_no_location_explains_is_no_impossible_reading() -> None:
    hmm = Dense(np.array([0.5, 0.5]), np.eye(2), Sensing.DETECTION, ONE_READER).hmm()
    hmm = replace(hmm, gaussians=Gaussians(("rssi",), np.array([[0.0, 1.0]]), np.ones((1, 2))))
    inference = Inference(hmm, "FILTER")
    inferred = inference.advance(inference.start(), *packed([[0]]), np.array([[1e300]]))
    assert not inferred.impossible.size
    assert inferred.location.tolist() == [0, 1]
