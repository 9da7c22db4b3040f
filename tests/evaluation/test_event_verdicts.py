"""Verdicts on answers: found, missed and false."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch.evaluation import verdicts
from tests.charts.answers import minutes
from tests.evaluation.coffee import ANSWERS, TRUTH


def test_verdicts_as_data() -> None:
    judged = verdicts(ANSWERS, TRUTH)
    assert judged.schema.field("t").type == pa.timestamp("us", "UTC")
    assert judged.filter(pa.array([group == "ana" for group in judged["group"].to_pylist()])).to_pylist() == [
        {"group": "ana", "t": minutes(0)[0].as_py(), "verdict": "found", "probability": 0.9},
        {"group": "ana", "t": minutes(10)[0].as_py(), "verdict": "missed", "probability": 0.3},
        {"group": "ana", "t": minutes(15.25)[0].as_py(), "verdict": "false", "probability": 0.8},
        {"group": "ana", "t": minutes(20)[0].as_py(), "verdict": "missed", "probability": None},
    ]


def test_an_answer_counts_for_the_nearest_event() -> None:
    table = pa.table({"t": [9.0, 13.0], "probability": [0.6, 0.9]})
    judged = verdicts(table, pa.table({"t": [8.0, 12.0, 15.0]}), within=5)
    assert list(zip(judged["t"].to_pylist(), judged["verdict"].to_pylist(), strict=True)) == [
        (8.0, "found"),
        (12.0, "found"),
        (15.0, "missed"),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1)), max_size=12),
    st.lists(st.integers(0, 100), max_size=6, unique=True),
)
def test_every_event_has_one_verdict_and_every_probable_answer_counts(
    rows: list[tuple[int, float]], events: list[int]
) -> None:
    table = pa.table(
        {"t": pa.array([t for t, _ in rows], pa.int64()), "probability": pa.array([p for _, p in rows], pa.float64())}
    )
    judged = verdicts(table, pa.table({"t": pa.array(events, pa.int64())}), within=10).to_pylist()
    assert sorted(row["t"] for row in judged if row["verdict"] != "false") == sorted(events)
    for row in judged:
        assert (row["probability"] or 0.0) >= 0.5 or row["verdict"] == "missed"
    for t, p in rows:
        if p >= 0.5 and not any(abs(t - event) <= 10 for event in events):
            assert any(row["verdict"] == "false" for row in judged)
