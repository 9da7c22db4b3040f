"""Rows that break their stream's model are quarantined with the reason, and no row is lost."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transport.layouts import CERTAIN, INDEPENDENT, MARKOV, POSITIONS, PREDICTED, table_of

from anabranch.arrays import BEGINNING, END
from anabranch.columns.times import TimeKind
from anabranch.transport.checks import QUARANTINE, check_rows, quarantine
from anabranch.transport.layout import Layout

GOOD = {
    MARKOV: {
        "person": "ann", "place": None, "floor": None, "prev_place": None, "prev_floor": None, "t": 0, "p": 0.5,
    },
    INDEPENDENT: {"tag": 0.0, "antenna": 1, "place": "hall", "t": -0.5, "p": 1.0},
    CERTAIN: {"door": 1, "t": 3},
    PREDICTED: {"car": "a", "x": 1.5, "y": 2, "t": 0.5, "x_rate": -1.0, "y_rate": 0.0, "spread": 0.0},
    POSITIONS: {"car": "a", "x": 1.5, "y": 2, "t": 0.5},
}  # fmt: skip

BAD = [
    (MARKOV, {"person": None}, "person is NULL"),
    (MARKOV, {"t": None}, "t is NULL"),
    (MARKOV, {"t": END}, "t is outside the range of times, -2^62 to 2^62"),
    (MARKOV, {"t": BEGINNING}, "t is outside the range of times, -2^62 to 2^62"),
    (MARKOV, {"t": 2**62}, "t is outside the range of times, -2^62 to 2^62"),
    (MARKOV, {"p": None}, "p is NULL"),
    (MARKOV, {"p": math.nan}, "p is not a number"),
    (MARKOV, {"p": -1e-9}, "p is outside [0, 1]"),
    (MARKOV, {"p": 1.0000001}, "p is outside [0, 1]"),
    (MARKOV, {"p": math.inf}, "p is outside [0, 1]"),
    (MARKOV, {"p": -math.inf}, "p is outside [0, 1]"),
    (INDEPENDENT, {"tag": math.nan}, "tag is not a number"),
    (INDEPENDENT, {"antenna": None}, "antenna is NULL"),
    (INDEPENDENT, {"t": math.nan}, "t is not a finite number"),
    (INDEPENDENT, {"t": math.inf}, "t is not a finite number"),
    (INDEPENDENT, {"t": -math.inf}, "t is not a finite number"),
    (CERTAIN, {"door": None}, "door is NULL"),
    (CERTAIN, {"t": None}, "t is NULL"),
    (PREDICTED, {"x": None}, "x is NULL"),
    (PREDICTED, {"y": None}, "y is NULL"),
    (PREDICTED, {"x": math.nan}, "x is not a finite number"),
    (PREDICTED, {"y_rate": None}, "y_rate is NULL"),
    (PREDICTED, {"x_rate": math.inf}, "x_rate is not a finite number"),
    (PREDICTED, {"x": 1e101}, "x is above 1e+100"),
    (PREDICTED, {"x_rate": -1e308}, "x_rate is above 1e+100"),
    (PREDICTED, {"spread": None}, "spread is NULL"),
    (PREDICTED, {"spread": math.nan}, "spread is not a finite number"),
    (PREDICTED, {"spread": math.inf}, "spread is not a finite number"),
    (PREDICTED, {"spread": -1e-9}, "spread is negative"),
    (POSITIONS, {"x": None}, "x is NULL"),
    (POSITIONS, {"y": None}, "y is NULL"),
    (POSITIONS, {"x": math.nan}, "x is not a finite number"),
    (POSITIONS, {"x": -math.inf}, "x is not a finite number"),
    (POSITIONS, {"t": math.nan}, "t is not a finite number"),
]


@pytest.mark.parametrize(("layout", "change", "reason"), BAD, ids=lambda value: str(value)[:30])
def test_a_bad_row_is_quarantined_with_its_reason(layout: Layout, change: dict, reason: str) -> None:
    good = GOOD[layout]
    kept, rejected = check_rows(table_of(layout, [good, good | change, good]), layout)
    assert kept.to_pylist() == [good, good]
    (row,) = rejected.to_pylist()
    assert (row["stream"], row["reason"]) == (layout.name, reason)
    values = json.loads(row["row"])
    assert values.keys() == good.keys()
    assert all(values[name] == good[name] for name in good.keys() - change.keys())


def test_a_time_far_ahead_of_the_clock_is_quarantined() -> None:
    layout = replace(CERTAIN, time_kind=TimeKind.TIMESTAMP, max_ahead=86_400.0)
    now = datetime.now(UTC)
    times = [now + timedelta(days=days) for days in (-5000, 0, 0.9, 1.1, 400)] + [datetime(2999, 1, 1, tzinfo=UTC)]
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array(times[:-1] if unit == "ns" else times, pa.timestamp("us", tz="UTC")).cast(
            pa.timestamp(unit, tz="UTC"), safe=False
        )
        kept, rejected = check_rows(pa.table({"door": range(len(column)), "t": column}), layout)
        assert kept["door"].to_pylist() == [0, 1, 2]
        assert set(rejected["reason"].to_pylist()) == {"t is too far ahead of the clock (MAX AHEAD)"}


def test_the_bounds_of_valid_ranges_are_valid() -> None:
    rows = [GOOD[MARKOV] | {"p": p, "t": t} for p in (0.0, -0.0, 1.0) for t in (0, -1, 2**62 - 1, 1 - 2**62)]
    kept, rejected = check_rows(table_of(MARKOV, rows), MARKOV)
    assert kept.num_rows == len(rows)
    assert rejected.num_rows == 0


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "tag": st.none() | st.floats(),
                "antenna": st.none() | st.integers(0, 2),
                "place": st.none() | st.text(max_size=3),
                "t": st.none() | st.floats(),
                "p": st.none() | st.floats(),
            }
        ),
        max_size=30,
    )
)
def test_no_row_is_lost_or_there_twice(rows: list[dict]) -> None:
    kept, aside = check_rows(table_of(INDEPENDENT, rows), INDEPENDENT)
    assert kept.num_rows + aside.num_rows == len(rows)
    assert aside.schema == QUARANTINE
    usable = [
        row
        for row in rows
        if row["tag"] is not None and not math.isnan(row["tag"]) and row["antenna"] is not None
        and row["t"] is not None and math.isfinite(row["t"])
        and row["p"] is not None and 0 <= row["p"] <= 1
    ]  # fmt: skip
    assert kept.to_pylist() == usable


def test_narrow_and_decimal_columns_are_checked_as_numbers() -> None:
    table = pa.table(
        {
            "tag": pa.array([1.0, math.nan], pa.float32()),
            "antenna": pa.array([1, 2], pa.int8()),
            "place": pa.array(["hall", "hall"]).dictionary_encode(),
            "t": pa.array([Decimal("1.5"), Decimal("2.5")]),
            "p": pa.array([1, 0], pa.int32()),
        }
    )
    kept, rejected = check_rows(table, INDEPENDENT)
    assert kept.num_rows == 1
    assert rejected["reason"].to_pylist() == ["tag is not a number"]


def test_an_error_of_negative_zero_is_valid() -> None:
    kept, rejected = check_rows(table_of(PREDICTED, [GOOD[PREDICTED] | {"spread": -0.0}]), PREDICTED)
    assert (kept.num_rows, rejected.num_rows) == (1, 0)


def test_an_error_may_be_a_column_that_has_another_role() -> None:
    layout = replace(PREDICTED, prediction=replace(PREDICTED.prediction, errors=("y", "y")))
    assert layout.columns == ["car", "x", "y", "t", "x_rate", "y_rate"]
    kept, rejected = check_rows(table_of(layout, [GOOD[PREDICTED] | {"y": -1}, GOOD[PREDICTED]]), layout)
    assert (kept.num_rows, rejected["reason"].to_pylist()) == (1, ["y is negative"])


def test_quarantined_rows_with_values_of_any_type_are_json() -> None:
    row = {
        "when": datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "day": date(2026, 1, 2), "raw": b"\x00\xff",
        "amount": Decimal("1.50"), "name": "café", "nothing": None, "infinite": math.inf, "missing": math.nan,
    }  # fmt: skip
    text = quarantine("s", "why", [row])["row"][0].as_py()
    values = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert values["when"] == "2026-01-02T03:04:00+00:00"
    assert (values["day"], values["raw"], values["amount"], values["name"]) == ("2026-01-02", "00ff", "1.50", "café")
    assert (values["infinite"], values["missing"]) == ("Infinity", "NaN")
