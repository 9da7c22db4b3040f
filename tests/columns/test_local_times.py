"""Written times against the oracle, which tries every offset of a zone, and formats against Python's."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.reading import instant_of

from anabranch.columns.local_times import WrittenTimes
from anabranch.language.time_patterns import time_pattern

ZONES = ("Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "UTC")
#: Near the days on which clocks are changed.
CHANGES = [datetime.fromisoformat(f"2024-{day} 02:00") for day in ("03-31", "10-27", "03-10", "10-06")]
local_times = st.datetimes(datetime.fromisoformat("1950-01-01"), datetime.fromisoformat("2035-01-01")) | st.builds(
    lambda change, minutes: change + timedelta(minutes=minutes), st.sampled_from(CHANGES), st.integers(-200, 200)
)
#: Formats of Spark, and the same for Python.
FORMATS = {
    "yyyy/MM/dd HH:mm:ss.SSSSSS": "%Y/%m/%d %H:%M:%S.%f",
    "dd.MM.yyyy'T'HH:mm:ss.SSSSSS": "%d.%m.%YT%H:%M:%S.%f",
    "EEE dd MMM yyyy hh:mm:ss.SSSSSS a": "%a %d %b %Y %I:%M:%S.%f %p",
    "MMMM d, y H:m:s[.SSSSSS]": "%B %d, %Y %H:%M:%S.%f",
}


@given(st.lists(local_times, min_size=1, max_size=8), st.sampled_from(ZONES), st.sampled_from(sorted(FORMATS)))
def test_local_times_are_the_first_instants_that_show_them(times: list[datetime], zone: str, pattern: str) -> None:
    expected = [instant_of(time, zone) for time in times]
    text = pa.array([time.strftime(FORMATS[pattern]) for time in times])
    for written, column in ((pattern, text), (None, pa.array(times, pa.timestamp("us")))):
        instants, faults = WrittenTimes(written, zone).instants("t", column)
        assert instants.to_pylist() == expected
        skipped = next(found for reason, found in faults if "does not exist in" in reason)
        assert skipped.tolist() == [instant is None for instant in expected]


def test_clocks_that_are_set_back_and_forward() -> None:
    times = ["2024-10-27 01:59", "2024-10-27 02:30", "2024-10-27 03:00", "2024-03-31 02:00", "2024-03-31 03:00"]
    instants, faults = WrittenTimes("yyyy-MM-dd HH:mm", "Europe/Zurich").instants("t", pa.array(times))
    hours = [None if time is None else (time.day, time.hour, time.minute) for time in instants.to_pylist()]
    assert hours == [(26, 23, 59), (27, 0, 30), (27, 2, 0), None, (31, 1, 0)]
    assert [(reason, found.tolist()) for reason, found in faults if found.any()] == [
        ("t does not exist in Europe/Zurich: the clocks were set forward over it", [False] * 3 + [True, False])
    ]


def test_iso_times_may_have_their_own_offset() -> None:
    times = [
        "2024-07-01T12:00:00Z",
        "2024-07-01 12:00:00.25+05:30",
        "2024-07-01",
        "2024-07-01T12:00",
        "01.07.2024",
        None,
    ]
    instants, faults = WrittenTimes(None, "Europe/Zurich").instants("t", pa.array(times))
    assert instants.to_pylist()[:4] == [
        datetime(2024, 7, 1, 12, tzinfo=UTC), datetime(2024, 7, 1, 6, 30, 0, 250000, tzinfo=UTC),
        datetime(2024, 6, 30, 22, tzinfo=UTC), datetime(2024, 7, 1, 10, tzinfo=UTC),
    ]  # fmt: skip
    assert [(reason, found.tolist()) for reason, found in faults if found.any()] == [
        ("t is not an ISO 8601 time", [False] * 4 + [True, False])
    ]


def test_instants_and_dates_of_typed_columns() -> None:
    zoned = WrittenTimes(None, "Europe/Zurich")
    instant = pa.array([datetime(2024, 7, 1, tzinfo=UTC)], pa.timestamp("ms", tz="UTC"))
    assert zoned.instants("t", instant)[0].to_pylist() == [datetime(2024, 7, 1, tzinfo=UTC)]
    days = pa.array([date(2024, 7, 1)])
    assert zoned.instants("t", days)[0].to_pylist() == [datetime(2024, 6, 30, 22, tzinfo=UTC)]


@pytest.mark.parametrize("time", ["2024-02-30 00:00", "2024-13-01 00:00", "2024-01-01 24:00", "2024-01-00 00:60", "x"])
def test_times_that_do_not_exist(time: str) -> None:
    instants, [(_, wrong)] = WrittenTimes("yyyy-MM-dd HH:mm").instants("t", pa.array([time]))
    assert instants.to_pylist() == [None]
    assert wrong.tolist() == [True]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("HH:mm", "has no year"), ("yyyy-dd", "has no month"), ("yyyy-MM-dd hh", "has one of h and a"),
        ("yyyy-MM-dd QQ", "has 'QQ', which is not known"), ("yyyy-MM-dd dd", "has the day twice"),
        ("yyyyy-MM-dd", "has 'yyyyy', which is not known"), ("yyyy-MM-dd]", "do not match"),
        ("[yyyy-MM-dd", "do not match"),
    ],
)  # fmt: skip
def test_formats_that_cannot_be_used(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        time_pattern(pattern)
