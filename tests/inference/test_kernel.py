"""The kernels compared with the enumeration of every path and with hmmlearn, and over long streams."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from anabranch.inference import kernel
from anabranch.inference.hmm import Sensing
from anabranch.inference.states import chain_of, sensors_of
from tests.inference.models import Dense, cases, packed, random_model
from tests.oracles import hmm as oracle

Case = tuple[Dense, list[list[int]]]


class Run:
    """The kernels on one model and the steps of one key."""

    def __init__(self, model: Dense, readings: list[list[int]]) -> None:
        hmm = model.hmm()
        self.n, self.steps = len(hmm.locations), len(readings)
        starts, codes = packed(readings)
        self.tables = chain_of(hmm), sensors_of(hmm)
        self.inputs = *self.tables, *kernel.distinct_readings(starts, codes, len(hmm.readers))

    def state(self) -> tuple[Any, Any]:
        return np.zeros(self.n), np.zeros(self.n, np.int32)

    def filter(self, prune: float = 0.0) -> Any:
        return kernel.filter_rows(*self.inputs, False, *self.state(), prune)

    def smooth(self, prune: float = 0.0) -> Any:
        return kernel.smooth_rows(*self.inputs, prune, True)

    def marginals(self, prune: float = 0.0) -> Any:
        return kernel.marginal_rows(*self.inputs, prune)

    def dense(self, step: Any, location: Any, p: Any) -> Any:
        """Rows (step, location, p) as a (T, N) array."""
        table = np.zeros((self.steps, self.n))
        table[step, location] = p
        return table


def corrected(model: Dense, readings: list[list[int]]) -> tuple[Any, list[int]]:
    """The likelihoods, with 1 at the impossible steps, and these steps."""
    return oracle.without_impossible(model.initial, model.transition, model.likelihoods(readings))


@given(cases())
def test_filter_equals_the_enumeration_of_paths(case: Case) -> None:
    model, readings = case
    likelihoods, impossible = corrected(model, readings)
    run = Run(model, readings)
    step, location, p, found_impossible, log_likelihood, dropped = run.filter()
    expected = oracle.filtered(model.initial, model.transition, likelihoods)
    assert_allclose(run.dense(step, location, p), expected, atol=1e-9)
    assert (p > 0).all()
    assert found_impossible.tolist() == impossible
    evidence = sum(oracle.paths(model.initial, model.transition, likelihoods).values())
    assert log_likelihood == pytest.approx(math.log(evidence), abs=1e-9)
    assert dropped == pytest.approx(0.0, abs=1e-12)


@given(cases())
def test_marginals_equal_the_enumeration_of_paths(case: Case) -> None:
    model, readings = case
    likelihoods, impossible = corrected(model, readings)
    run = Run(model, readings)
    step, location, p, found_impossible, log_likelihood, _ = run.marginals()
    weights = oracle.paths(model.initial, model.transition, likelihoods)
    assert_allclose(run.dense(step, location, p), oracle.marginals(oracle.posterior(weights), run.n), atol=1e-9)
    assert found_impossible.tolist() == impossible
    assert log_likelihood == pytest.approx(math.log(sum(weights.values())), abs=1e-9)


@given(cases())
def test_smooth_is_the_distribution_over_paths(case: Case) -> None:
    model, readings = case
    likelihoods, impossible = corrected(model, readings)
    step, previous, location, p, found_impossible, log_likelihood, _ = Run(model, readings).smooth()
    weights = oracle.paths(model.initial, model.transition, likelihoods)
    distribution = oracle.paths_of_rows(step, previous, location, p)
    expected = oracle.posterior(weights)
    assert distribution.keys() == expected.keys()
    assert_allclose([distribution[path] for path in expected], list(expected.values()), atol=1e-9)
    assert found_impossible.tolist() == impossible
    assert log_likelihood == pytest.approx(math.log(sum(weights.values())), abs=1e-9)


@given(cases())
def test_viterbi_is_a_path_of_the_largest_probability(case: Case) -> None:
    model, readings = case
    likelihoods, impossible = corrected(model, readings)
    path, found_impossible = kernel.viterbi_path(*Run(model, readings).inputs)
    weights = oracle.paths(model.initial, model.transition, likelihoods)
    assert weights[tuple(path.tolist())] == pytest.approx(max(weights.values()), rel=1e-9)
    assert found_impossible.tolist() == impossible


@given(cases())
def test_mle_is_the_most_likely_location_of_the_filter(case: Case) -> None:
    run = Run(*case)
    step, location, p, impossible, *_ = run.filter()
    path, found_impossible = kernel.mle_path(*run.inputs, False, *run.state())
    assert path.tolist() == run.dense(step, location, p).argmax(axis=1).tolist()
    assert found_impossible.tolist() == impossible.tolist()


# ------------------------------------------------------------ ties, readers, impossible readings


def test_ties_go_to_the_lower_code() -> None:
    uniform = Dense(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), Sensing.DETECTION, np.full((1, 3), 0.5))
    run = Run(uniform, [[], [0], []])
    assert kernel.viterbi_path(*run.inputs)[0].tolist() == [0, 0, 0]
    assert kernel.mle_path(*run.inputs, False, *run.state())[0].tolist() == [0, 0, 0]


def test_several_readers_see_a_key_at_once() -> None:
    """Five readers, sets of all sizes, readers with probability 0 and 1: equal to the product over the readers."""
    rng = np.random.default_rng(3)
    detection = rng.random((5, 6))
    detection[0, 0], detection[1, 1], detection[2] = 1.0, 0.0, 0.0
    base = random_model(6, 5, seed=4)
    model = Dense(base.initial, base.transition, Sensing.DETECTION, detection)
    readings = [np.flatnonzero(rng.random(5) < rng.random()).tolist() for _ in range(300)]
    likelihoods, impossible = corrected(model, readings)
    assert 10 < len(impossible) < 200
    expected = oracle.smooth(model.initial, model.transition, likelihoods)
    run = Run(model, readings)
    step, location, p, found_impossible, log_likelihood, _ = run.filter()
    assert_allclose(run.dense(step, location, p), expected.filtered, atol=1e-12)
    assert log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    assert found_impossible.tolist() == impossible
    assert_allclose(run.dense(*run.marginals()[:3]), expected.marginals, atol=1e-12)


def test_a_reading_that_is_impossible_after_the_previous_ones_is_reported_and_ignored() -> None:
    """A row of rooms with a reader in each: a key cannot get from the first to the third in one step."""
    transition = np.array([[0.5, 0.5, 0.0], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]])
    model = Dense(np.array([1.0, 0.0, 0.0]), transition, Sensing.DETECTION, 0.5 * np.eye(3))
    run = Run(model, [[0], [2], [1], [2]])
    assert run.filter()[3].tolist() == run.smooth()[4].tolist() == run.marginals()[3].tolist() == [1]
    path, impossible = kernel.viterbi_path(*run.inputs)
    assert impossible.tolist() == [1]
    assert path.tolist() in ([0, 0, 1, 2], [0, 1, 1, 2])


def test_many_readers_that_rarely_miss_do_not_underflow() -> None:
    """The probability that none of 100 readers sees the key is 1e-400, and 0.8^100 of that at the other location."""
    detection = np.repeat([[0.9999, 0.99992]], 100, axis=0)
    model = Dense(np.array([0.5, 0.5]), np.eye(2), Sensing.DETECTION, detection)
    run = Run(model, [[], list(range(50))])
    step, location, p, impossible, log_likelihood, _ = run.filter()
    ratio = (1 - 0.99992) / (1 - 0.9999)
    assert not impossible.size
    assert run.dense(step, location, p)[0] == pytest.approx([1 / (1 + ratio**100), ratio**100 / (1 + ratio**100)])
    assert log_likelihood == pytest.approx(math.log(0.5) + 150 * math.log(1e-4) + 50 * math.log(0.9999), rel=1e-6)


# ------------------------------------------------------------ hmmlearn, long streams, weights far apart


@pytest.mark.parametrize("seed", range(5))
def test_results_equal_those_of_hmmlearn(seed: int) -> None:
    hmm = pytest.importorskip("hmmlearn.hmm")  # It has no wheel for some platforms.
    model = random_model(6, 4, seed)
    reference = hmm.CategoricalHMM(n_components=6)
    reference.startprob_, reference.transmat_, reference.emissionprob_ = (
        model.initial,
        model.transition,
        model.sensors.T,
    )
    read = np.random.default_rng(seed + 100).integers(0, 4, size=400)[:, np.newaxis]
    log_likelihood, marginals = reference.score_samples(read)
    run = Run(model, read.tolist())
    step, location, p, _, found_log_likelihood, _ = run.marginals()
    assert_allclose(run.dense(step, location, p), marginals, atol=1e-9)
    assert found_log_likelihood == pytest.approx(log_likelihood, rel=1e-12)
    assert run.filter()[4] == pytest.approx(log_likelihood, rel=1e-12)
    # Two paths may be equally likely, for example with the same moves in another order, so compare their weights.
    path = kernel.viterbi_path(*run.inputs)[0]
    assert path_log_weight(model, read.tolist(), path) == pytest.approx(reference.decode(read)[0], rel=1e-12)


def test_a_hundred_thousand_steps_do_not_underflow() -> None:
    model = random_model(4, 50, seed=1)
    readings = np.random.default_rng(2).integers(0, 50, size=(100_000, 1)).tolist()
    run = Run(model, readings)
    step, previous, location, p, _, log_likelihood, _ = run.smooth()
    assert log_likelihood < math.log(np.finfo(float).tiny)
    assert run.filter()[4] == pytest.approx(log_likelihood, rel=1e-12)
    assert_allclose(np.bincount(step * 4 + np.maximum(previous, 0), weights=p)[4:], 1.0, atol=1e-9)
    marginals = run.dense(*run.marginals()[:3])
    assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-9)
    # The middle of a long stream does not depend on its ends: a short piece around it must agree.
    piece = slice(49_800, 50_200)
    smoothed = oracle.smooth(np.full(4, 0.25), model.transition, model.likelihoods(readings[piece]))
    assert_allclose(marginals[50_000], smoothed.marginals[200], atol=1e-9)
    middle = step == 50_000
    table = np.zeros((4, 4))
    table[previous[middle], location[middle]] = p[middle]
    assert_allclose(table, smoothed.tables[199], atol=1e-9)


def unlikely_until_the_end(steps: int) -> Run:
    """Location 1 is 10^-3 as likely as location 0 at each step, until the last reading excludes location 0."""
    emission = np.array([[0.9, 0.0009], [0.0, 0.5], [0.1, 0.4991]])
    return Run(Dense(np.full(2, 0.5), np.eye(2), Sensing.EMISSION, emission), [[0]] * (steps - 1) + [[1]])


@pytest.mark.parametrize("steps", [135, 1_000, 10_000])
def test_a_location_of_tiny_weight_is_not_lost(steps: int) -> None:
    """Its weight is 10^-400, 10^-3000 and 10^-30000 of the other."""
    run = unlikely_until_the_end(steps)
    step, location, p, impossible, log_likelihood, _ = run.filter()
    assert not impossible.size
    assert (location[step == steps - 1].tolist(), p[-1]) == ([1], 1.0)
    assert log_likelihood == pytest.approx(math.log(0.5) + (steps - 1) * math.log(0.0009) + math.log(0.5), rel=1e-12)
    assert run.marginals()[1].tolist() == [1] * steps
    assert run.smooth()[2].tolist() == [1] * steps
    assert kernel.viterbi_path(*run.inputs)[0].tolist() == [1] * steps
    assert kernel.mle_path(*run.inputs, False, *run.state())[0].tolist() == [0] * (steps - 1) + [1]


@pytest.mark.parametrize("seed", range(4))
def test_weights_far_apart_keep_their_proportions(seed: int) -> None:
    """The weights differ by hundreds of orders of magnitude, and the most likely location changes."""
    rng = np.random.default_rng(seed)
    n, steps = 5, 400
    transition = np.eye(n) + rng.choice([0.0, 1e-50, 1e-20], size=(n, n)) * (1 - np.eye(n))
    transition /= transition.sum(axis=1, keepdims=True)
    emission = 10.0 ** rng.uniform(-30, 0, size=(3, n))
    model = Dense(np.full(n, 1 / n), transition, Sensing.EMISSION, emission / emission.sum(axis=0))
    # A long run of the same reading makes some locations very unlikely; later readings make them likely again.
    readings = [[int(r)] for r in np.repeat(rng.integers(0, 3, size=8), steps // 8)]
    expected = oracle.smooth(model.initial, model.transition, model.likelihoods(readings))
    run = Run(model, readings)
    step, location, p, impossible, log_likelihood, _ = run.filter()
    assert not impossible.size
    assert_allclose(run.dense(step, location, p), expected.filtered, rtol=1e-8, atol=1e-299)
    assert log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    assert_allclose(run.dense(*run.marginals()[:3]), expected.marginals, rtol=1e-8, atol=1e-299)
    step, previous, location, p, *_ = run.smooth()
    for at, x, y, q in zip(step[step > 0], previous[step > 0], location[step > 0], p[step > 0], strict=True):
        assert q == pytest.approx(expected.tables[at - 1, x, y], rel=1e-8, abs=1e-299)
    assert path_log_weight(model, readings, kernel.viterbi_path(*run.inputs)[0]) == pytest.approx(
        best_log_weight(model, readings), rel=1e-12
    )


def path_log_weight(model: Dense, readings: list[list[int]], path: Any) -> float:
    logs = np.log(model.likelihoods(readings))[np.arange(len(path)), path].sum()
    return float(np.log(model.initial[path[0]]) + np.log(model.transition[path[:-1], path[1:]]).sum() + logs)


def best_log_weight(model: Dense, readings: list[list[int]]) -> float:
    """The largest weight of a path, by the recursion in logarithms."""
    with np.errstate(divide="ignore"):
        log_a, log_b = np.log(model.transition), np.log(model.likelihoods(readings))
    best = np.log(model.initial) + log_b[0]
    for t in range(1, len(readings)):
        best = (best[:, np.newaxis] + log_a).max(axis=0) + log_b[t]
    return float(best.max())


def test_likelihoods_of_consecutive_calls_add_up() -> None:
    model = random_model(5, 4, seed=1)
    readings = np.random.default_rng(2).integers(0, 4, size=(60, 1)).tolist()
    weights, levels = Run(model, readings).state()
    parts = [
        kernel.filter_rows(*Run(model, readings[start : start + 20]).inputs, start > 0, weights, levels, 0.0)[4]
        for start in (0, 20, 40)
    ]
    assert sum(parts) == pytest.approx(Run(model, readings).filter()[4], rel=1e-12)


# ------------------------------------------------------------ pruning


@given(cases(), st.sampled_from([1e-3, 0.02, 0.1, 0.3]))
def test_dropped_bounds_the_error_of_pruned_rows(case: Case, prune: float) -> None:
    """The probability of no event changes by more than `dropped`, and each dropped row adds at most `prune`."""
    run = Run(*case)
    exact, pruned = run.smooth(), run.smooth(prune)
    true, approximate = (oracle.paths_of_rows(*rows[:4]) for rows in (exact, pruned))
    assert sum(approximate.values()) == pytest.approx(1.0, abs=1e-9)
    assert oracle.distance(true, approximate) <= pruned[-1] + 1e-9
    assert len(pruned[0]) <= len(exact[0])
    assert pruned[-1] <= prune * (len(exact[0]) - len(pruned[0])) + 1e-9
    assert pruned[4].tolist() == exact[4].tolist()


@given(cases(), st.sampled_from([1e-3, 0.05, 0.3, 0.9]))
def test_dropped_bounds_the_error_of_pruned_distributions(case: Case, prune: float) -> None:
    run = Run(*case)
    for method in (run.filter, run.marginals):
        exact, pruned = method(), method(prune)
        true, approximate = run.dense(*exact[:3]), run.dense(*pruned[:3])
        assert_allclose(approximate.sum(axis=1), 1.0, atol=1e-9)
        assert 0.5 * abs(true - approximate).sum() <= pruned[-1] + 1e-9
        largest = true.max(axis=1)
        for t in range(run.steps):
            kept = approximate[t] > 0
            assert (kept == ((true[t] >= prune) | (kept & (true[t] == largest[t])))).all()
            assert kept.any()
        assert pruned[4] == exact[4], "the state is not pruned"


def test_dropped_is_the_joint_probability_of_dropped_moves() -> None:
    """The move of probability 0.4 from a location of probability 0.01 is dropped."""
    model = Dense(np.array([0.99, 0.01]), np.array([[1.0, 0.0], [0.6, 0.4]]), Sensing.DETECTION, np.zeros((1, 2)))
    step, previous, location, *_, dropped = Run(model, [[], []]).smooth(0.005)
    rows = list(zip(step.tolist(), previous.tolist(), location.tolist(), strict=True))
    assert rows == [(0, -1, 0), (0, -1, 1), (1, 0, 0), (1, 1, 0)]
    assert dropped == pytest.approx(0.01 * 0.4)


def test_pruning_keeps_the_most_likely_path() -> None:
    """Every move is below the limit, but the most likely one is kept at each step."""
    model = random_model(4, 3, seed=8)
    run = Run(model, np.random.default_rng(9).integers(0, 3, size=(50, 1)).tolist())
    step, previous, location, p, *_ = run.smooth(0.999)
    assert step.tolist() == list(range(50))
    assert previous.tolist() == [-1, *location[:-1].tolist()]
    assert p.tolist() == [1.0] * 50


# ------------------------------------------------------------ particles


def particle_error(model: Dense, readings: list[list[int]], n_particles: int, seed: int) -> float:
    """The mean over the steps of the total variation distance to the exact filter."""
    run = Run(model, readings)
    counts = np.zeros(run.n)
    step, location, p, *_ = kernel.particle_rows(*run.inputs, 0, counts, np.uint64(seed), n_particles, 0.0)
    assert counts.sum() == n_particles
    estimate = run.dense(step, location, p)
    assert_allclose(estimate.sum(axis=1), 1.0, atol=1e-9)
    return float(0.5 * abs(estimate - run.dense(*run.filter()[:3])).sum(axis=1).mean())


def test_more_particles_are_closer_to_the_filter() -> None:
    model = random_model(8, 5, seed=11)
    readings = np.random.default_rng(12).integers(0, 5, size=(300, 1)).tolist()
    errors = [np.mean([particle_error(model, readings, n, seed) for seed in range(5)]) for n in (100, 1_600, 25_600)]
    # The error decreases with the square root of the size: to a quarter with 16 times as many particles.
    assert errors[0] < 0.1
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


def test_particles_are_redrawn_if_a_reading_excludes_all_of_them() -> None:
    """A reading at the other location redraws the only particle; an impossible reading does not."""
    model = Dense(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.0, 1.0]]), Sensing.DETECTION, np.array([[0.0, 0.9]]))
    run = Run(model, [[], [0], [-1], []])
    for seed in range(20):
        step, location, p, impossible, _ = kernel.particle_rows(*run.inputs, 0, np.zeros(2), np.uint64(seed), 1, 0.0)
        assert location.tolist() == [0, 1, 1, 1]
        assert impossible.tolist() == [2]
