"""The values of dates and timestamps."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64, U8
from anabranch.compiled import compiled, compiled_inline
from anabranch.files.kernel.bytes import COLON, KNOWN, MINUS, NINE, PLUS, POINT, SPACE, UNDECIDED, ZERO

_MICROS_PER_DAY = 86_400_000_000


@compiled_inline
def _two_digits(data: U8, at: int) -> int:
    """The number of two digits; a large negative number if they are not digits."""
    tens, ones = data[at] - ZERO, data[at + 1] - ZERO
    number: int = tens * 10 + ones
    return number if 0 <= tens <= 9 and 0 <= ones <= 9 else -1_000_000


@compiled_inline
def _parse_day(data: U8, at: int) -> tuple[int, bool]:
    """The days since 1970 of the 10 bytes of a date such as 2026-01-31, and whether they are one."""
    year = 100 * _two_digits(data, at) + _two_digits(data, at + 2)
    month, day = _two_digits(data, at + 5), _two_digits(data, at + 8)
    good = year >= 0 and data[at + 4] == MINUS and data[at + 7] == MINUS and 1 <= month <= 12 and day >= 1
    if not good:
        return 0, False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = 31 - (month == 4 or month == 6 or month == 9 or month == 11)
    if month == 2:
        length = 29 if leap else 28
    # Years that start in March, so that the leap day is the last one.
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days, day <= length


@compiled_inline
def _parse_clock(data: U8, at: int, stop: int) -> tuple[int, bool]:
    """The microseconds of a time of day such as 13:05:59.25+01:00, in UTC, and whether it is one."""
    if stop - at < 5 or data[at + 2] != COLON:
        return 0, False
    hour, minute, second = _two_digits(data, at), _two_digits(data, at + 3), 0
    at += 5
    micros, offset = 0, 0
    if at < stop:
        if stop - at < 3 or data[at] != COLON:
            return 0, False
        second = _two_digits(data, at + 1)
        at += 3
        if at < stop and data[at] == POINT:
            at += 1
            first, unit = at, 100_000
            while at < stop and ZERO <= data[at] <= NINE:
                micros += unit * (data[at] - ZERO)
                unit //= 10
                at += 1
            if at == first:
                return 0, False
        if at + 1 == stop and data[at] == 90:
            at += 1
        elif at + 6 == stop and (data[at] == PLUS or data[at] == MINUS) and data[at + 3] == COLON:
            hours, minutes = _two_digits(data, at + 1), _two_digits(data, at + 4)
            if not (0 <= hours <= 17 and 0 <= minutes <= 59):
                return 0, False
            offset = (hours * 60 + minutes) * (-60 if data[at] == MINUS else 60)
            at += 6
    good = at == stop and 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59
    return ((hour * 60 + minute) * 60 + second - offset) * 1_000_000 + micros, good


@compiled
def parse_days(data: U8, starts: I64, ends: I64, states: U8) -> I32:
    """The same as `parse_integers` for dates such as 2026-01-31, as days since 1970."""
    values = np.zeros(len(states), np.int32)
    for i in range(len(states)):
        if states[i] == KNOWN:
            states[i] = UNDECIDED
            if ends[i] - starts[i] == 10:
                days, good = _parse_day(data, starts[i])
                values[i] = days
                states[i] = KNOWN if good else UNDECIDED
    return values


@compiled_inline
def _parse_timestamp(data: U8, start: int, stop: int) -> tuple[int, int]:
    """The microseconds since 1970 in UTC, and the state, of a time such as 2026-01-31T13:05:59.25+01:00."""
    if stop - start < 10:
        return 0, UNDECIDED
    days, good = _parse_day(data, start)
    micros = 0
    if good and stop - start > 10:
        micros, good = _parse_clock(data, start + 11, stop)
        good = good and (data[start + 10] == SPACE or data[start + 10] == 84)
    return days * _MICROS_PER_DAY + micros, (KNOWN if good else UNDECIDED)


@compiled
def parse_timestamps(data: U8, starts: I64, ends: I64, states: U8) -> I64:
    """The same as `parse_integers` for times, as microseconds since 1970 in UTC."""
    values = np.zeros(len(states), np.int64)
    for i in range(len(states)):
        if states[i] == KNOWN:
            values[i], states[i] = _parse_timestamp(data, starts[i], ends[i])
    return values
