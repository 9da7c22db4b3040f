"""Inference on a worker: the same results for any split of the steps into calls, and states that can be saved."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from anabranch.binding.derived_streams import METHOD_MODELS, WHOLE_ARCHIVE
from anabranch.catalog import Model
from anabranch.inference.infer import Inference, Inferred, KeyState, advance_keys
from tests.inference.models import Dense, cases, packed, random_model

Case = tuple[Dense, list[list[int]]]

#: Calls of LAG look ahead; see `test_joint.py`.
STREAMING = sorted(METHOD_MODELS.keys() - set(WHOLE_ARCHIVE) - {"LAG"})


def make(model: Dense, method: str, prune: float = 0.0) -> Inference:
    particles, lag = 20 if method == "PARTICLE" else 0, 2 if method == "LAG" else 0
    return Inference(model.hmm(), method, particles, prune, lag)


def assert_same(one: Inferred, other: Inferred) -> None:
    for name in ("step", "prev", "location", "p", "impossible"):
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.dropped == pytest.approx(other.dropped, abs=1e-12)


def joined(parts: list[tuple[int, Inferred]]) -> Inferred:
    """The results of consecutive calls, each with the number of steps before it, as one result."""
    columns: dict[str, Any] = {
        name: np.concatenate(
            [getattr(part, name) + (before if name in ("step", "impossible") else 0) for before, part in parts]
        )
        for name in ("step", "prev", "location", "p", "impossible")
    }
    return Inferred(**columns, dropped=sum(part.dropped for _, part in parts))


@given(
    cases(steps=12),
    st.sets(st.integers(0, 12)),
    st.sampled_from(STREAMING),
    st.sampled_from([0.0, 0.1]),
)
def test_splitting_the_steps_changes_nothing(case: Case, cuts: set[int], method: str, prune: float) -> None:
    """The results are equal to the bit, also if the state is saved in between."""
    model, readings = case
    inference = make(model, method, prune)
    one_call = inference.advance(inference.start(7), *packed(readings))
    state, parts = inference.start(7), []
    edges = [0, *sorted(cut for cut in cuts if cut < len(readings)), len(readings)]
    for start, end in zip(edges, edges[1:], strict=False):
        parts.append((start, inference.advance(state, *packed(readings[start:end]))))
        state = KeyState.from_arrays(*state.to_arrays(), n_states=len(model.initial))
    assert_same(joined(parts), one_call)


@pytest.mark.parametrize("method", STREAMING)
def test_saving_keeps_weights_that_are_far_apart(method: str) -> None:
    """The state keeps a location whose weight is 1e-3000 of the other."""
    emission = np.array([[0.9, 0.0009], [0.0, 0.5], [0.1, 0.4991]])
    base = random_model(2, 3, seed=0)
    inference = make(Dense(np.full(2, 0.5), np.eye(2), base.sensing, emission), method)
    state = inference.start()
    inference.advance(state, *packed([[0]] * 1_000))
    state = KeyState.from_arrays(*state.to_arrays(), n_states=2)
    last = inference.advance(state, *packed([[1]]))
    assert last.location.tolist() == [1]
    assert last.impossible.size == 0


@pytest.mark.parametrize("cut", [1, 20])
def test_particles_of_a_later_call_are_those_of_one_call(cut: int) -> None:
    readings = np.random.default_rng(3).integers(0, 4, size=(40, 1)).tolist()
    inference = make(random_model(6, 4, seed=2), "PARTICLE")
    one_call = inference.advance(inference.start(7), *packed(readings))
    state = inference.start(7)
    parts = [(start, inference.advance(state, *packed(readings[start:end]))) for start, end in ((0, cut), (cut, 40))]
    assert_same(joined(parts), one_call)


@given(cases(steps=6), st.sampled_from(sorted(METHOD_MODELS)))
def test_many_keys_in_one_call_equal_one_call_per_key(case: Case, method: str) -> None:
    model, readings = case
    inference = make(model, method)
    lengths = [2, 0, 1, len(readings) - 3] if len(readings) > 3 else [0, len(readings)]
    step_starts = np.concatenate([[0], np.cumsum(lengths)])
    one_call = advance_keys(
        repeat(inference), [inference.start(key) for key in range(len(lengths))], step_starts, *packed(readings)
    )
    parts = []
    for key, (start, end) in enumerate(zip(step_starts, step_starts[1:], strict=False)):
        parts.append((int(start), inference.advance(inference.start(key), *packed(readings[start:end]))))
    assert_same(one_call, joined(parts))


def test_no_keys_give_no_rows() -> None:
    inference = make(random_model(3, 2, seed=1), "SMOOTH")
    assert len(advance_keys([inference], [], np.array([0]), np.array([0]), np.array([], np.int32)).p) == 0


@pytest.mark.parametrize("method", sorted(METHOD_MODELS))
def test_rows_are_those_of_the_model(method: str) -> None:
    model = random_model(5, 3, seed=2)
    inference = make(model, method)
    inferred = inference.advance(inference.start(), *packed([[0], [], [1, 1], [2], [0]]))
    assert inference.model is METHOD_MODELS[method]
    assert inference.streams == (method in ("FILTER", "PARTICLE", "MLE", "JOINT", "LAG"))
    assert (
        inferred.step.dtype == inferred.prev.dtype == inferred.location.dtype == inferred.impossible.dtype == np.int32
    )
    assert inferred.p.dtype == np.float64
    assert (np.diff(inferred.step) >= 0).all()
    assert set(inferred.step.tolist()) == set(range(5))
    if inference.model is Model.MARKOV:
        assert ((inferred.prev == -1) == (inferred.step == 0)).all()
    else:
        assert (inferred.prev == -1).all()
    if inference.model is Model.CERTAIN:
        assert inferred.p.tolist() == [1.0] * 5


@pytest.mark.parametrize("method", sorted(METHOD_MODELS))
def test_a_key_without_steps_has_no_rows(method: str) -> None:
    inference = make(random_model(3, 2, seed=1), method)
    state = inference.start()
    inferred = inference.advance(state, *packed([]))
    assert len(inferred.p) == len(inferred.impossible) == state.steps == 0


def test_duplicate_readings_count_once_and_unknown_readers_are_impossible() -> None:
    inference = make(random_model(4, 3, seed=3), "FILTER")
    once = inference.advance(inference.start(), *packed([[1], [0, 2]]))
    assert_same(inference.advance(inference.start(), *packed([[1, 1], [0, 2, 0, 2]])), once)
    unknown = inference.advance(inference.start(), *packed([[1], [-1], [3], [2**31 - 1, 1]]))
    assert unknown.impossible.tolist() == [1, 2, 3]


def test_another_seed_draws_other_particles() -> None:
    inference = make(random_model(5, 3, seed=4), "PARTICLE")
    readings = packed([[0], [], [1], [2]] * 5)
    first, same_seed, other = (inference.advance(inference.start(seed), *readings) for seed in (2**64 - 1, -1, 5))
    assert_same(first, same_seed)
    assert first.p.tolist() != other.p.tolist()


@pytest.mark.parametrize("method", WHOLE_ARCHIVE)
def test_methods_of_an_archive_need_all_steps_in_one_call(method: str) -> None:
    inference = make(random_model(3, 2, seed=1), method)
    state = inference.start()
    inference.advance(state, *packed([[0], [1]]))
    with pytest.raises(ValueError, match="all steps"):
        inference.advance(state, *packed([[0]]))


@pytest.mark.parametrize(
    ("method", "particles", "prune", "message"),
    [
        ("GUESS", 0, 0.0, "no method GUESS"),
        ("PARTICLE", 0, 0.0, "0 particles"),
        ("FILTER", 5, 0.0, "5 particles"),
        ("FILTER", 0, 1.0, "prune is 1.0"),
        ("FILTER", 0, float("nan"), "prune is nan"),
    ],
)
def test_invalid_arguments_are_errors(method: str, particles: int, prune: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Inference(random_model(3, 2, seed=1).hmm(), method, particles, prune)
