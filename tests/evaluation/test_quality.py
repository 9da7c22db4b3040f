"""Precision, recall and F1, compared with values computed by hand and with the definitions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from anabranch.evaluation import Quality, qualities

ANSWERS = pa.table(
    {
        "x": ["ana", "ana", "ana", "ben", "ben"],
        "t": [10, 11, 90, 10, 200],
        "probability": [0.6, 0.3, 0.1, 0.2, 0.9],
    }
)
TRUTH = pa.table({"x": ["ana", "ben", "eva"], "t": [15, 195, 10]})


def quality_at(threshold: float, within: float = 5) -> Quality:
    (quality,) = qualities(ANSWERS, TRUTH, "x", [threshold], within)
    return quality


def test_values_by_hand():
    """Ana's first two answers are about one event, and both count; her event does not make Ben's first answer right."""
    assert quality_at(0.0) == Quality(0.0, answers=5, right=3, events=3, found=2)
    assert quality_at(0.25) == Quality(0.25, answers=3, right=3, events=3, found=2)
    assert quality_at(0.6) == Quality(0.6, answers=1, right=1, events=3, found=1), "at the threshold is not above it"
    assert quality_at(0.0).precision == pytest.approx(0.6)
    assert quality_at(0.0).recall == pytest.approx(2 / 3)
    assert quality_at(0.0).f1 == pytest.approx(2 * 0.6 * (2 / 3) / (0.6 + 2 / 3))


def test_the_tolerance_is_inclusive():
    assert quality_at(0.5, within=5).right == 2
    assert quality_at(0.5, within=4.9).right == 0


def test_no_answers_and_no_events_are_no_error():
    none = quality_at(0.95)
    assert (none.answers, none.found, none.f1) == (0, 0, 0.0)
    assert math.isnan(none.precision)
    (no_events,) = qualities(ANSWERS, TRUTH.slice(0, 0), "x", [0.0])
    assert (no_events.right, no_events.f1) == (0, 0.0)
    assert math.isnan(no_events.recall)


def test_random_answers_against_the_definitions():
    rng = np.random.default_rng(0)
    many = pa.table({"x": rng.integers(0, 5, 300), "t": rng.integers(0, 500, 300), "probability": rng.random(300)})
    events = pa.table({"x": rng.integers(0, 6, 40), "t": rng.integers(0, 500, 40)})
    for quality in qualities(many, events, "x", [0.0, 0.3, 0.9], within=7):
        above = [row for row in many.to_pylist() if row["probability"] > quality.threshold]
        true = events.to_pylist()
        right = [any(a["x"] == e["x"] and abs(a["t"] - e["t"]) <= 7 for e in true) for a in above]
        found = [any(a["x"] == e["x"] and abs(a["t"] - e["t"]) <= 7 for a in above) for e in true]
        assert quality == Quality(quality.threshold, len(above), sum(right), len(true), sum(found))


def test_tolerance_of_timestamps_is_in_seconds():
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    answers = pa.table({"x": ["ana"], "t": [start], "probability": [0.5]})
    for seconds, right in ((30, 1), (31, 0)):
        truth = pa.table({"x": ["ana"], "t": [start + timedelta(seconds=seconds)]})
        assert qualities(answers, truth, "x", [0.0])[0].right == right
