"""The HMM against the enumeration of every path, against hmmlearn, and over long streams."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from anabranch.inference.hmm import detection_likelihoods, smooth


def enumerated(initial: Any, transition: Any, likelihoods: Any) -> tuple[Any, Any, float]:
    """Marginals, posterior tables and evidence by the weight of every single path."""
    steps, states = likelihoods.shape
    marginals = np.zeros((steps, states))
    pairs = np.zeros((steps - 1, states, states))
    for path in itertools.product(range(states), repeat=steps):
        weight = initial[path[0]] * likelihoods[0, path[0]]
        for t in range(1, steps):
            weight *= transition[path[t - 1], path[t]] * likelihoods[t, path[t]]
        for t in range(steps):
            marginals[t, path[t]] += weight
        for t in range(steps - 1):
            pairs[t, path[t], path[t + 1]] += weight
    evidence = marginals[0].sum()
    totals = pairs.sum(axis=2, keepdims=True)
    tables = np.divide(pairs, totals, out=np.zeros_like(pairs), where=totals > 0)
    return marginals / evidence if evidence else marginals, tables, evidence


# Zeros are frequent on purpose: impossible states and moves are where the care is needed.
weights = st.one_of(st.just(0.0), st.floats(0.01, 1.0))


@st.composite
def models(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Small models: initial, transition and the likelihoods of up to 5 steps."""
    states, steps = draw(st.integers(1, 3)), draw(st.integers(1, 5))

    def rows(count: int) -> Any:
        one = st.lists(weights, min_size=states, max_size=states)
        return np.array(draw(st.lists(one, min_size=count, max_size=count)))

    distributions = rows(states + 1)
    distributions[distributions.sum(axis=1) == 0, 0] = 1.0
    distributions /= distributions.sum(axis=1, keepdims=True)
    return distributions[0], distributions[1:], rows(steps)


@given(models())
@settings(max_examples=300, deadline=None)
def test_smooth_equals_the_enumeration_of_paths(model: tuple[Any, Any, Any]) -> None:
    marginals, tables, evidence = enumerated(*model)
    if evidence == 0:
        with pytest.raises(ValueError, match="impossible"):
            smooth(*model)
        return
    smoothed = smooth(*model)
    assert_allclose(smoothed.marginals, marginals, atol=1e-9)
    assert_allclose(smoothed.tables, tables, atol=1e-9)
    assert smoothed.log_likelihood == pytest.approx(math.log(evidence), abs=1e-9)


@given(models())
@settings(max_examples=100, deadline=None)
def test_tables_carry_one_marginal_into_the_next(model: tuple[Any, Any, Any]) -> None:
    try:
        smoothed = smooth(*model)
    except ValueError:
        return
    onward = np.einsum("tx,txy->ty", smoothed.marginals[:-1], smoothed.tables)
    assert_allclose(onward, smoothed.marginals[1:], atol=1e-9)
    possible = smoothed.marginals[:-1] > 0
    assert_allclose(smoothed.tables.sum(axis=2), possible.astype(float), atol=1e-9)


def random_model(states: int, symbols: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return (
        rng.dirichlet(np.ones(states)),
        rng.dirichlet(np.ones(states), size=states),
        rng.dirichlet(np.ones(symbols), size=states),
    )


@pytest.mark.parametrize("seed", range(5))
def test_marginals_and_evidence_equal_those_of_hmmlearn(seed: int) -> None:
    hmm = pytest.importorskip("hmmlearn.hmm")  # It has no wheel for some platforms.
    initial, transition, emission = random_model(states=6, symbols=4, seed=seed)
    reference = hmm.CategoricalHMM(n_components=6)
    reference.startprob_, reference.transmat_, reference.emissionprob_ = initial, transition, emission
    read = np.random.default_rng(seed + 100).integers(0, 4, size=400)
    log_likelihood, marginals = reference.score_samples(read[:, np.newaxis])
    smoothed = smooth(initial, transition, emission[:, read].T)
    assert_allclose(smoothed.marginals, marginals, atol=1e-9)
    assert smoothed.log_likelihood == pytest.approx(log_likelihood, rel=1e-12)


def test_a_hundred_thousand_steps_do_not_underflow() -> None:
    initial, transition, emission = random_model(states=4, symbols=50, seed=1)
    read = np.random.default_rng(2).integers(0, 50, size=100_000)
    smoothed = smooth(initial, transition, emission[:, read].T)
    assert smoothed.log_likelihood < math.log(np.finfo(float).tiny)
    assert_allclose(smoothed.marginals.sum(axis=1), 1.0, atol=1e-9)
    assert_allclose(smoothed.tables.sum(axis=2), 1.0, atol=1e-9)
    # The middle of a long stream forgets its ends: a short piece around it must agree.
    piece = slice(49_800, 50_200)
    around = smooth(np.full(4, 0.25), transition, emission[:, read[piece]].T)
    assert_allclose(smoothed.marginals[50_000], around.marginals[200], atol=1e-9)


def test_a_state_that_fell_behind_is_not_lost() -> None:
    """State 1 is 10^-3000 as likely as state 0 by the time a reading rules state 0 out."""
    likelihoods = np.tile([0.9, 0.0009], (1000, 1))
    likelihoods[-1] = [0.0, 1.0]
    smoothed = smooth([0.5, 0.5], np.eye(2), likelihoods)
    assert_allclose(smoothed.marginals, np.tile([0.0, 1.0], (1000, 1)))


def test_detection_equals_the_product_over_readers() -> None:
    rng = np.random.default_rng(3)
    detection = rng.random((4, 3))
    detection[0, 0], detection[1, 1] = 1.0, 0.0
    seen = rng.random((50, 4)) < 0.4
    likelihoods = detection_likelihoods(detection, seen)
    for t in range(50):
        for x in range(3):
            factors = [detection[r, x] if seen[t, r] else 1 - detection[r, x] for r in range(4)]
            assert likelihoods[t, x] == pytest.approx(math.prod(factors), abs=1e-15)


@pytest.mark.parametrize(
    ("initial", "transition", "likelihoods", "complaint"),
    [
        ([1.0], [[1.0, 0.0]], [[1.0]], "shapes"),
        ([1.0], [[1.0]], np.empty((0, 1)), "no step"),
        ([0.5, 0.4], np.eye(2), [[1.0, 1.0]], "sum to 1"),
        ([0.5, 0.5], [[0.5, 0.5], [0.5, 0.6]], [[1.0, 1.0]], "sum to 1"),
        ([0.5, 0.5], np.eye(2), [[np.nan, 1.0]], "likelihoods"),
        ([0.5, 0.5], np.eye(2), [[-1.0, 1.0]], "likelihoods"),
        ([1.0, 0.0], np.eye(2), [[1.0, 1.0], [0.0, 1.0]], "from step 1 on"),
    ],
)
def test_what_is_no_model_is_refused(initial: Any, transition: Any, likelihoods: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        smooth(initial, transition, likelihoods)


@pytest.mark.parametrize(
    ("detection", "seen", "complaint"),
    [([[0.5]], [[True, False]], "readers"), ([[1.5]], [[True]], r"outside \[0, 1\]")],
)
def test_what_is_no_detection_is_refused(detection: Any, seen: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        detection_likelihoods(detection, seen)
