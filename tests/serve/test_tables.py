"""Answers as cells of a table on the page."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from anabranch.cli.serve.tables import cells, shown_columns


def test_the_probability_is_first_and_bounds_are_shown_if_they_differ() -> None:
    exact = pa.table({"t": [1, 2], "probability": [0.5, 0.25], "lower": [0.5, 0.25], "upper": [0.5, 0.25]})
    assert shown_columns(exact) == ["probability", "t"]
    sampled = exact.set_column(3, "upper", pa.array([0.5, 0.3]))
    assert shown_columns(sampled) == ["probability", "t", "lower", "upper"]
    assert shown_columns(exact.select(["t"]).append_column("boundary", [[[1], [2]]])) == ["t"]
    assert cells(exact.select(["t"]), ["t"])["probabilities"] == [1.0, 1.0]
    match = exact.select(["t", "probability"]).append_column("x", pa.array([{"tag": 1}, None]))
    assert shown_columns(match) == ["probability", "x", "t"], "events before their times"


def test_structs_and_lists_of_structs_are_names_and_values() -> None:
    times = pa.array([datetime(2026, 3, 2, 9, 0, 0, 123456, UTC)], pa.timestamp("us", "UTC"))
    event = pa.struct([("tag", pa.string()), ("n", pa.int64())])
    table = pa.table(
        {
            "t": times,
            "x": pa.array([{"tag": "<b>", "n": 1}], event),
            "y": pa.array([None], event),
            "v": pa.array([[{"tag": str(n), "n": n} for n in range(8)]], pa.list_(event)),
        }
    )
    (row,) = cells(table, table.column_names)["rows"]
    assert row[:3] == ["2026-03-02 09:00:00.123", [[["tag", "<b>"], ["n", "1"]]], "NULL"]
    assert row[3][0] == [["tag", "0"], ["n", "0"]]
    assert row[3][6:] == [[["", "and 2 more"]]]
