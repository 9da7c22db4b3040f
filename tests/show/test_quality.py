"""Answers against true events: precision, recall, F1 and calibration, checked by hand and by the definitions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from anabranch.show.quality import Quality, calibration, expected_error, qualities

ANSWERS = pa.table(
    {
        "x": ["ana", "ana", "ana", "ben", "ben"],
        "t": [10, 11, 90, 10, 200],
        "probability": [0.6, 0.3, 0.1, 0.2, 0.9],
    }
)
TRUTH = pa.table({"x": ["ana", "ben", "eva"], "t": [15, 195, 10]})


def judged(threshold: float, within: float = 5) -> Quality:
    (only,) = qualities(ANSWERS, TRUTH, "x", [threshold], within)
    return only


def test_by_hand():
    """Ana's first two answers are about one event, and both count; Ben's first is not excused by hers."""
    assert judged(0.0) == Quality(0.0, answers=5, right=3, events=3, found=2)
    assert judged(0.25) == Quality(0.25, answers=3, right=3, events=3, found=2)
    assert judged(0.6) == Quality(0.6, answers=1, right=1, events=3, found=1), "at the threshold is not above it"
    assert judged(0.0).precision == pytest.approx(0.6)
    assert judged(0.0).recall == pytest.approx(2 / 3)
    assert judged(0.0).f1 == pytest.approx(2 * 0.6 * (2 / 3) / (0.6 + 2 / 3))


def test_the_tolerance_is_inclusive():
    assert judged(0.5, within=5).right == 2
    assert judged(0.5, within=4.9).right == 0


def test_nothing_is_no_error():
    none = judged(0.95)
    assert (none.answers, none.found, none.f1) == (0, 0, 0.0)
    assert math.isnan(none.precision)
    (no_events,) = qualities(ANSWERS, TRUTH.slice(0, 0), "x", [0.0])
    assert (no_events.right, no_events.f1) == (0, 0.0)
    assert math.isnan(no_events.recall)
    assert calibration(ANSWERS.slice(0, 0), TRUTH, "x") == []


def test_against_the_definitions():
    rng = np.random.default_rng(0)
    many = pa.table({"x": rng.integers(0, 5, 300), "t": rng.integers(0, 500, 300), "probability": rng.random(300)})
    events = pa.table({"x": rng.integers(0, 6, 40), "t": rng.integers(0, 500, 40)})
    for found in qualities(many, events, "x", [0.0, 0.3, 0.9], within=7):
        above = [row for row in many.to_pylist() if row["probability"] > found.threshold]
        true = events.to_pylist()
        right = [any(a["x"] == e["x"] and abs(a["t"] - e["t"]) <= 7 for e in true) for a in above]
        told = [any(a["x"] == e["x"] and abs(a["t"] - e["t"]) <= 7 for a in above) for e in true]
        assert found == Quality(found.threshold, len(above), sum(right), len(true), sum(told))


def test_timestamps_are_told_apart_in_seconds():
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    answers = pa.table({"x": ["ana"], "t": [start], "probability": [0.5]})
    for seconds, right in ((30, 1), (31, 0)):
        truth = pa.table({"x": ["ana"], "t": [start + timedelta(seconds=seconds)]})
        assert qualities(answers, truth, "x", [0.0])[0].right == right


def test_calibration_of_probabilities_that_are_what_they_say():
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    t = np.arange(len(p))
    answers = pa.table({"x": np.zeros(len(p), np.int64), "t": t, "probability": p})
    happened = t[rng.random(len(p)) < p]
    bins = calibration(answers, pa.table({"x": np.zeros(len(happened), np.int64), "t": happened}), "x")
    assert [(each.low, each.answers > 1_500) for each in bins] == [(n / 10, True) for n in range(10)]
    assert all(abs(each.said - each.true) < 0.05 for each in bins)
    assert expected_error(bins) < 0.02


def test_calibration_of_probabilities_that_are_too_bold():
    answers = pa.table({"x": ["ana"] * 4, "t": [1, 2, 3, 4], "probability": [1.0, 1.0, 0.9, 0.1]})
    bins = calibration(answers, pa.table({"x": ["ana"], "t": [1]}), "x")
    assert [(each.answers, each.true) for each in bins] == [(1, 0.0), (3, pytest.approx(1 / 3))]
    assert expected_error(bins) == pytest.approx((0.1 + 3 * (2.9 / 3 - 1 / 3)) / 4)
