"""Times as integers: they sort like the times, and decode to them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columns.times import (
    BEGINNING,
    END,
    TimeKind,
    decode_times,
    earlier,
    encode_times,
    later,
    order_doubles,
    restore_doubles,
)

doubles = st.floats(allow_nan=False)
AWKWARD = [-math.inf, -1.7976931348623157e308, -1.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.7976931348623157e308, math.inf]


def test_awkward_doubles_keep_their_order() -> None:
    codes = order_doubles(np.array(AWKWARD))
    assert (np.diff(codes) > 0).all()
    assert restore_doubles(codes).tolist() == AWKWARD


def test_infinities_are_between_the_beginning_and_the_end_of_time() -> None:
    codes = order_doubles(np.array([-math.inf, math.inf]))
    assert BEGINNING < codes[0] < codes[1] < END


def test_both_zeros_are_one_instant() -> None:
    assert order_doubles(np.array([-0.0, 0.0])).tolist() == [0, 0]


@given(st.lists(doubles, min_size=1))
def test_doubles_come_back_as_they_were(values: list[float]) -> None:
    assert restore_doubles(order_doubles(np.array(values))).tolist() == values


@given(doubles, doubles)
def test_codes_of_doubles_compare_as_the_doubles_do(left: float, right: float) -> None:
    first, second = order_doubles(np.array([left, right])).tolist()
    assert (first < second) == (left < right)
    assert (first == second) == (left == right)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_a_timestamp_is_its_microseconds_in_utc(unit: str, zone: str | None) -> None:
    seconds = [-1, 0, 1_700_000_000]
    scale = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    column = pa.array([second * scale for second in seconds], pa.timestamp(unit, tz=zone))
    assert encode_times(column, TimeKind.TIMESTAMP).tolist() == [second * 1_000_000 for second in seconds]


def test_times_are_decoded_in_the_type_of_an_answer() -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 250_000, tzinfo=UTC)
    for kind, times in (
        (TimeKind.INTEGER, [-5, 0, 2**62]),
        (TimeKind.DOUBLE, [-0.5, 0.0, 1e300]),
        (TimeKind.TIMESTAMP, [moment, moment + timedelta(days=40_000)]),
    ):
        decoded = decode_times(encode_times(pa.array(times, kind.arrow_type), kind), kind)
        assert decoded.type == kind.arrow_type
        assert decoded.to_pylist() == times


def test_a_time_with_another_zone_is_the_same_instant() -> None:
    eastern = datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=-5)))
    zoned = pa.array([eastern], pa.timestamp("us", tz="-05:00"))
    assert decode_times(encode_times(zoned, TimeKind.TIMESTAMP), TimeKind.TIMESTAMP)[0].as_py() == eastern


def test_earlier_keeps_the_beginning_of_time() -> None:
    for kind in TimeKind:
        assert earlier(BEGINNING, 5, kind) == BEGINNING


def test_earlier_counts_in_the_unit_of_the_column() -> None:
    assert earlier(10, 4, TimeKind.INTEGER) == 6
    assert earlier(10, 0.5, TimeKind.INTEGER) == 9
    assert earlier(10_000_000, 1.5, TimeKind.TIMESTAMP) == 8_500_000
    assert restore_doubles(np.array([earlier(int(order_doubles(np.array([2.0]))[0]), 3, TimeKind.DOUBLE)]))[0] <= -1.0


def test_earlier_never_passes_the_beginning() -> None:
    assert earlier(BEGINNING + 2, 1e12, TimeKind.INTEGER) == BEGINNING + 1
    assert earlier(BEGINNING + 2, 1e300, TimeKind.TIMESTAMP) == BEGINNING + 1


def test_later_counts_in_the_unit_of_the_column() -> None:
    assert later(np.array([10, -10]), 4, TimeKind.INTEGER).tolist() == [14, -6]
    assert later(np.array([10]), 0.5, TimeKind.INTEGER).tolist() == [10]
    assert later(np.array([10]), 8.2, TimeKind.TIMESTAMP).tolist() == [8_200_010]


def test_later_never_passes_the_end() -> None:
    for delay in (2, 1e12, 1e18, 1e300):
        assert later(np.array([END - 2]), delay, TimeKind.INTEGER).tolist() == [END - 1]
        assert BEGINNING < later(np.array([BEGINNING + 1]), delay, TimeKind.TIMESTAMP)[0] < END


@given(st.integers(-1000, 1000), st.integers(0, 1000))
def test_the_time_exactly_one_delay_later_is_within_the_limit_despite_rounding(tenths: int, delay: int) -> None:
    limit = later(order_doubles(np.array([tenths / 10])), delay / 10, TimeKind.DOUBLE)
    assert order_doubles(np.array([(tenths + delay) / 10])) <= limit
    assert restore_doubles(limit)[0] < (tenths + delay) / 10 + 1e-9


@given(st.integers(-1000, 1000), st.integers(0, 1000))
def test_a_row_exactly_as_late_as_the_watermark_allows_is_in_time_though_doubles_round(tenths: int, delay: int) -> None:
    newest, allowed = (tenths + delay) / 10, delay / 10
    watermark = earlier(int(order_doubles(np.array([newest]))[0]), allowed, TimeKind.DOUBLE)
    row = int(order_doubles(np.array([tenths / 10]))[0])
    assert watermark <= row
    assert restore_doubles(np.array([watermark]))[0] > tenths / 10 - 1e-9
