"""Answers and true events of three people, for the tests of verdicts and of their table."""

from __future__ import annotations

import pyarrow as pa

from tests.charts.answers import answers, minutes

TRUTH = pa.table({"t": minutes(0, 10, 20, 5), "p": ["ana", "ana", "ana", "ben"]})
ANSWERS = answers(
    [
        (0.25, "ana", 0.6),
        (0.4, "ana", 0.9),
        (10, "ana", 0.3),
        (15, "ana", 0.7),
        (15.25, "ana", 0.8),
        (5, "chloe", 0.5),
        (17, "ana", 0.2),
    ]
)
