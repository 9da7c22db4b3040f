"""Row conditions: they select from the predictions that match without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.local import local_job
from tests.monitor.local import MonitorRun

STREAM = (
    "CREATE STREAM e KEY (k INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE"
    " MODEL PREDICTED ERROR (x = spread, y = 1) PERIOD 5;"
)
ROWS = [
    {"k": k, "t": float(t + k), "x": 0.5 * k, "x_rate": 0.25 * k - 0.25, "y": 0.0, "y_rate": 0.1 * t, "spread": 1.0 + k}
    for k in range(4)
    for t in (0, 4, 8)
]

Row = dict[str, Any]


def pairs(condition: str = "TRUE") -> set[tuple[tuple[int, float], tuple[int, float]]]:
    """The predictions that match, by key and time."""
    query = "MONITOR a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 3 AND a.k < b.k"
    run = MonitorRun(local_job(f"{STREAM} CREATE QUERY q AS {query} AND {condition} SEMANTICS MAY;", "q"), 3)
    run.run([{"e": ROWS}])
    return {tuple((row[label]["k"], row[label]["t"]) for label in ("a", "b")) for row in run.rows()}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a.t < b.t", lambda a, b: a["t"] < b["t"]),
        ("a.t + 1 >= b.t", lambda a, b: a["t"] + 1 >= b["t"]),
        ("a.x_rate * 2 < b.x_rate", lambda a, b: a["x_rate"] * 2 < b["x_rate"]),
        ("a.y_rate = b.y_rate", lambda a, b: a["y_rate"] == b["y_rate"]),
        ("a.spread + 1 = b.spread", lambda a, b: a["spread"] + 1 == b["spread"]),
        ("b.spread > 2", lambda a, b: b["spread"] > 2),
        ("(a.k = 1 OR b.x_rate = 0.25)", lambda a, b: a["k"] == 1 or b["x_rate"] == 0.25),
    ],
)
def test_a_row_condition_selects_matching_predictions(condition: str, holds: Callable[[Row, Row], bool]) -> None:
    rows_by_prediction = {(row["k"], row["t"]): row for row in ROWS}
    all_pairs = pairs()
    chosen = {(a, b) for a, b in all_pairs if holds(rows_by_prediction[a], rows_by_prediction[b])}
    assert 0 < len(chosen) < len(all_pairs)
    assert pairs(condition) == chosen
