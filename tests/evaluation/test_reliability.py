"""Calibration of probabilities, with simulated answers and values computed by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anabranch.evaluation import calibration, expected_error


def test_calibrated_probabilities():
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    t = np.arange(len(p))
    answers = pa.table({"x": np.zeros(len(p), np.int64), "t": t, "probability": p})
    happened = t[rng.random(len(p)) < p]
    bins = calibration(answers, pa.table({"x": np.zeros(len(happened), np.int64), "t": happened}), "x")
    assert [(bin.low, bin.answers > 1_500) for bin in bins] == [(n / 10, True) for n in range(10)]
    assert all(abs(bin.predicted - bin.observed) < 0.05 for bin in bins)
    assert expected_error(bins) < 0.02


def test_overconfident_probabilities():
    answers = pa.table({"x": ["ana"] * 4, "t": [1, 2, 3, 4], "probability": [1.0, 1.0, 0.9, 0.1]})
    bins = calibration(answers, pa.table({"x": ["ana"], "t": [1]}), "x")
    assert [(bin.answers, bin.observed) for bin in bins] == [(1, 0.0), (3, pytest.approx(1 / 3))]
    assert expected_error(bins) == pytest.approx((0.1 + 3 * (2.9 / 3 - 1 / 3)) / 4)


def test_no_answers_have_no_bins():
    answers = pa.table(
        {"x": pa.array([], pa.string()), "t": pa.array([], pa.int64()), "probability": pa.array([], pa.float64())}
    )
    assert calibration(answers, pa.table({"x": ["ana"], "t": [1]}), "x") == []
