"""The values of cells that are not plain, exactly as Spark reads them: numbers of Java, and many notations of times.

A function returns None for a text that is not a value of its type. Times are microseconds, and dates days, since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

_INTEGER = re.compile(r"[+-]?\d+")
_MOST = 2**63 - 1

_DECIMAL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?", re.ASCII)
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:NaN|Infinity)")

_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_CLOCK = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?"
_TIME = re.compile(rf"([+-]?)(\d{{4,6}})(?:-(\d{{1,2}})(?:-(\d{{1,2}})(?:[ T]{_CLOCK})?)?)?", re.ASCII | re.DOTALL)
_TIME_OF_DAY = re.compile(rf"T?{_CLOCK}", re.ASCII | re.DOTALL)

_OFFSET = re.compile(r"([+-])(\d{1,2})(?::(\d\d)(?::(\d\d))?|(\d\d)(\d\d)?)?", re.ASCII)
_LARGEST_OFFSET = timedelta(hours=18)

#: The abbreviations of zones that Java knows.
_ABBREVIATIONS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip

#: Spark trims these from dates and times: white space and control characters.
_TRIMMED = "".join(map(chr, (*range(33), 127)))

_MICROSECONDS = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times are compared with it
#: The first and the last second of the years 1 to 9999, in microseconds.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_000_000
#: The calendar repeats after 400 years, which Python's years 1 to 9999 do not cover.
_DAYS_PER_400_YEARS = 146_097


def integer_of(text: str) -> int | None:
    """A 64-bit integer.

    >>> integer_of("+07"), integer_of("9223372036854775808"), integer_of("1.0")
    (7, None, None)
    """
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -_MOST - 1 <= value <= _MOST else None


def double_of(text: str) -> float | None:
    """A number in the notation of Java: spaces around it, and the suffixes of literals, are allowed.

    >>> double_of(" 1e3d "), double_of("0x1p3"), double_of("Inf"), double_of("1_000")
    (1000.0, 8.0, inf, None)
    """
    if text in ("Inf", "-Inf"):
        return float(text)
    text = text.strip(_TRIMMED[:33])
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return float(decimal[1])
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    if not hexadecimal:
        return None
    try:
        return float.fromhex(hexadecimal[1])
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def boolean_of(text: str) -> bool | None:
    """True or false, in lower or upper case."""
    return {"true": True, "false": False}.get(text.casefold()) if len(text) in (4, 5) else None


def date_of(text: str) -> int | None:
    """The days since 1970 of a date; what follows it after a space or a T is ignored.

    >>> date_of("1970-2"), date_of("1970-01-02T99"), date_of("1970-02-30")
    (31, 1, None)
    """
    return _first_known(_date_of, text)


def timestamp_of(text: str) -> int | None:
    """The microseconds since 1970 of a time, in UTC if it has no zone.

    >>> timestamp_of("1970-1-1 0:0:1.5"), timestamp_of("1970-01-01T01:00:00 Europe/Zurich"), timestamp_of("noon")
    (1500000, 0, None)
    """
    return _first_known(_timestamp_of, text)


def _first_known(parse: Callable[[str], int | None], text: str) -> int | None:
    """The value of a text, or else of the text without GMT, which Spark ignores in times of its first versions."""
    value = parse(text)
    return parse(text.replace("GMT", "")) if value is None and "GMT" in text else value


def _date_of(text: str) -> int | None:
    match = _DATE.fullmatch(text.strip(_TRIMMED))
    return match and _days(match[1], match[2], match[3], match[4])


def _days(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    signed = -int(year) if sign == "-" else int(year)
    cycles, plain_year = divmod(signed - 2000, 400)
    try:
        start = datetime(2000 + plain_year, int(month or 1), int(day or 1))  # noqa: DTZ001
    except ValueError:
        return None
    return (start - _EPOCH).days + cycles * _DAYS_PER_400_YEARS


def _timestamp_of(text: str) -> int | None:
    plain = text.strip(_TRIMMED)
    match = _TIME.fullmatch(plain)
    days: int | None
    if match:
        days, clock = _days(*match.groups()[:4]), match.groups()[4:]
    else:
        match = _TIME_OF_DAY.fullmatch(plain)
        if match is None or (plain.startswith("T") and not text.startswith("T")) or not (plain[0] == "T" or match[2]):
            return None
        clock = match.groups()
        days = None
    hour, minute, second, fraction, zone_name = clock
    zone = UTC if zone_name is None else _zone(zone_name.strip(_TRIMMED[:33]))
    of_day = _microseconds_of_day(hour, minute, second, fraction)
    if zone is None or of_day is None or (match.re is _TIME and days is None):
        return None
    if days is None:  # a time without a date is one of today
        days = (datetime.now(zone).replace(tzinfo=None) - _EPOCH).days
    micros = _in_utc(days * 86_400_000_000 + of_day, zone)
    return micros if -_MOST - 1 <= micros <= _MOST else None


def _microseconds_of_day(hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))


def _in_utc(local: int, zone: tzinfo) -> int:
    """The instant of a local time; of the earlier of two. A time that is skipped is moved by what was skipped."""
    cycle = _DAYS_PER_400_YEARS * 86_400_000_000
    cycles = 0 if _FIRST <= local <= _LAST else local // cycle
    offset = (_EPOCH + (local - cycles * cycle) * _MICROSECONDS).replace(tzinfo=zone).utcoffset()
    return local - (offset or timedelta()) // _MICROSECONDS


def _zone(name: str) -> tzinfo | None:
    name = _ABBREVIATIONS.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    for prefix in ("UTC", "GMT", "UT"):
        if name.startswith((prefix + "+", prefix + "-")):
            return _offset(name.removeprefix(prefix))
    if name.startswith(("+", "-")):
        return _offset(name)
    return ZoneInfo(name) if name in available_timezones() else None


def _offset(text: str) -> tzinfo | None:
    # Spark adds zeros: +1:00 is +01:00, and +01:5 is +01:05.
    text = re.sub(r"([+-])(\d):", r"\g<1>0\2:", text, count=1)
    text = re.sub(r"([+-]\d\d):(\d)$", r"\1:0\2", text, count=1)
    match = _OFFSET.fullmatch(text)
    if match is None or (len(match[2]) == 1 and len(text) > 2):
        return None
    minutes, seconds = int(match[3] or match[5] or 0), int(match[4] or match[6] or 0)
    size = timedelta(hours=int(match[2]), minutes=minutes, seconds=seconds)
    if size > _LARGEST_OFFSET or minutes > 59 or seconds > 59:
        return None
    return timezone(-size if match[1] == "-" else size)
