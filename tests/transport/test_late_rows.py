"""The rule for late rows in all five kinds: before the watermark is late, at the watermark is not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.local import LocalRun, local_job

KEY_TIME = "KEY (k STRING) TIME t INTEGER WATERMARK 3"

#: For each kind: the declarations, the query, and a row without its time.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "PATTERN": (f"CREATE STREAM s {KEY_TIME};", "PATTERN s('a') THEN s('b')", {"k": "a"}),
    "SEQUENCE": (
        f"CREATE STREAM s {KEY_TIME};",
        "SEQUENCE (x, y) FROM s WHERE x.k = 'a' AND y.k = 'b' WITHIN 5",
        {"k": "a"},
    ),
    "CONSTRAIN": (
        f"CREATE STREAM s {KEY_TIME};",
        "CONSTRAIN v, w FROM s WHERE v.k = 'a' AND w.k = 'b' AND ABS(v.t - w.t) <= 5",
        {"k": "a"},
    ),
    "RELATE": (
        f"CREATE STREAM s {KEY_TIME} ORDER seq ROLE what MODEL INTERVALS;",
        "RELATE SOME a INTERSECTS SOME b FROM s AS a, s AS b TIMEOUT 50",
        {"seq": 1, "what": "start"},
    ),
    "MONITOR": (
        "CREATE STREAM s KEY (k STRING) VALUE (x DOUBLE) TIME t INTEGER WATERMARK 3 MODEL PREDICTED ERROR 1 PERIOD 9;",
        "MONITOR a FROM s WHERE a.x > 0",
        {"k": "a", "x": 1.0, "x_rate": 0.0},
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_row_before_the_watermark_is_late_and_one_at_it_is_not(kind: str) -> None:
    declarations, query, row = CASES[kind]
    run = LocalRun(local_job(f"{declarations} CREATE QUERY q AS {query};", "q", live=True), 1)

    def at(t: int) -> dict[str, Any]:
        return {**row, "k": "b" if t == 10 else "a", "t": t}

    run.step({"s": [at(10)]})  # the watermark is 7
    run.step({"s": [at(7)]})
    assert run.counts.late == 0
    run.step({"s": [at(6)]})
    assert run.counts.late == 1
    assert [rejected["reason"] for rejected in run.rejected] == ["late"]
