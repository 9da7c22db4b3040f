"""The records of the quality of answers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from benchmarks.quality.records import records

from anabranch.evaluation import calibration, qualities

ANSWERS = pa.table(
    {
        "x": ["ana", "ana", "ana", "ben", "ben"],
        "t": [10, 11, 90, 10, 200],
        "probability": [0.6, 0.3, 0.1, 0.2, 0.9],
    }
)
TRUTH = pa.table({"x": ["ana", "ben", "eva"], "t": [15, 195, 10]})


def test_records_are_those_of_the_best_threshold():
    results = qualities(ANSWERS, TRUTH, "x", [0.0, 0.25, 0.6], 5)
    bins = calibration(ANSWERS, TRUTH, "x")
    values = {record.metric: record.value for record in records("quality", "by hand", results, bins)}
    assert values["best F1, at threshold 0.25"] == pytest.approx(0.8)
    assert values["precision, at threshold 0.25"] == 1.0
