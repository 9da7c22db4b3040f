"""Calibration maps: isotonic regression against its definition, and the properties that a map promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.evaluation.learning import SMALLEST_GROUP, held_out, learn_map
from anabranch.evaluation.scores import scores
from tests.drawn import examples
from tests.oracles import calibration as oracle

GROUPS = st.lists(
    st.integers(SMALLEST_GROUP, 25).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=8
)


@examples(60)
@given(GROUPS)
def test_blocks_are_those_of_isotonic_regression(groups: list[tuple[int, int]]) -> None:
    """Each group has one probability; a true answer before all and a false one after all are added."""
    values = np.linspace(0.05, 0.95, len(groups))
    p = np.concatenate([np.full(n, value) for value, (n, _) in zip(values, groups, strict=True)])
    true = np.concatenate([np.arange(n) < k for n, k in groups])
    learned = learn_map(p, true)
    counts, trues = [1, *(n for n, _ in groups), 1], [1, *(k for _, k in groups), 0]
    fitted = oracle.isotonic(counts, trues)[1:-1]
    expected = []
    for share in dict.fromkeys(fitted):
        inside = [number for number, other in enumerate(fitted) if other == share]
        weights = [groups[number][0] for number in inside]
        expected.append((np.average(values[inside], weights=weights), float(share)))
    assert np.array(learned.knots) == pytest.approx(np.array(expected), abs=1e-9)


@examples(60)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=80))
def test_maps_are_monotone_and_never_certain(answers: list[tuple[float, bool]]) -> None:
    p, true = (np.array(column) for column in zip(*answers, strict=True))
    learned = learn_map(p.astype(float), true)
    xs, ys = np.array(learned.knots).T
    assert (np.diff(xs) > 0).all()
    assert (np.diff(ys) >= 0).all()
    assert ((ys > 0) & (ys < 1)).all()


def test_a_map_removes_the_calibration_error_of_answers_that_it_has_not_seen() -> None:
    rng = np.random.default_rng(4)
    p = rng.random(6000)
    true = rng.random(6000) < p**3
    before = scores(p, true)
    after = scores(held_out(p, true, np.arange(6000) // 3), true)
    assert before.calibration_error > 0.2
    assert after.calibration_error < 0.02
    assert after.brier < before.brier
    assert len(learn_map(p, true).knots) <= 100


def test_folds_are_of_answers_if_there_are_few_clusters() -> None:
    p, true = np.tile([0.2, 0.8], 50), np.tile([False, True], 50)
    assert held_out(p, true, np.zeros(100, np.int64))[:2].tolist() == pytest.approx([1 / 41, 40 / 41])
