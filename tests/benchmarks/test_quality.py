"""What a benchmark records of the quality of answers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from benchmarks.quality import calibration, qualities, records

ANSWERS = pa.table(
    {
        "x": ["ana", "ana", "ana", "ben", "ben"],
        "t": [10, 11, 90, 10, 200],
        "probability": [0.6, 0.3, 0.1, 0.2, 0.9],
    }
)
TRUTH = pa.table({"x": ["ana", "ben", "eva"], "t": [15, 195, 10]})


def test_records_tell_of_the_best_threshold():
    found = qualities(ANSWERS, TRUTH, "x", [0.0, 0.25, 0.6], 5)
    told = {
        record.metric: record.value for record in records("quality", "by hand", found, calibration(ANSWERS, TRUTH, "x"))
    }
    assert told["best F1, at threshold 0.25"] == pytest.approx(0.8)
    assert told["precision, at threshold 0.25"] == 1.0
