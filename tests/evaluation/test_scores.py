"""Scores of probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.evaluation.scores import scores

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@given(ANSWERS, st.integers(1, 12))
def test_scores_equal_their_definitions(answers: list[tuple[float, bool]], bins: int) -> None:
    result = scores(np.array([p for p, _ in answers]), np.array([true for _, true in answers]), bins)
    count, share = len(answers), sum(true for _, true in answers) / len(answers)
    error = resolution = variance = 0.0
    for n in range(bins):
        inside = [(p, true) for p, true in answers if min(int(p * bins), bins - 1) == n]
        if inside:
            observed = sum(true for _, true in inside) / len(inside)
            error += len(inside) / count * abs(sum(p for p, _ in inside) / len(inside) - observed)
            resolution += len(inside) / count * (observed - share) ** 2
            variance += (len(inside) / count) ** 2 * sum(p * (1 - p) for p, _ in inside) / len(inside) ** 2
    assert result.count == count
    assert result.share == pytest.approx(share, abs=1e-12)
    assert result.brier == pytest.approx(sum((p - true) ** 2 for p, true in answers) / count, abs=1e-12)
    assert result.constant == pytest.approx(sum((share - true) ** 2 for _, true in answers) / count, abs=1e-12)
    assert result.calibration_error == pytest.approx(error, abs=1e-12)
    assert result.resolution == pytest.approx(resolution, abs=1e-12)
    assert result.standard_error == pytest.approx(math.sqrt(variance), abs=1e-9)


def test_no_answers_have_no_score() -> None:
    result = scores(np.empty(0), np.empty(0, dtype=np.bool_))
    assert result.count == 0
    assert math.isnan(result.brier)
