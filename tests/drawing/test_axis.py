"""Ticks of an axis."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from anabranch.drawing.axis import day, ticks

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)


@given(st.floats(-1e12, 1e12), st.floats(1e-3, 1e12), st.integers(2, 12), st.booleans())
def test_ticks_are_on_the_axis_and_not_too_many(start: float, length: float, at_most: int, clock: bool) -> None:
    assume(length > abs(start) * 1e-10)  # The precision of doubles.
    end = start + length
    found = ticks(start, end, at_most=at_most, clock=clock)
    assert len(found) <= at_most
    assert all(start - length * 1e-3 <= value <= end + length * 1e-3 for value, _ in found)


def test_ticks_of_days_and_of_an_empty_axis() -> None:
    week = NINE.timestamp(), (NINE + timedelta(days=7)).timestamp()
    assert [text for _, text in ticks(*week, at_most=4, clock=True)][0] == "2026-03-05"
    assert ticks(5.0, 5.0, at_most=4, clock=False) == [(5.0, "5")]
    assert day(1e30) == "UTC"
