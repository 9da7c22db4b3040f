"""Times as they are written: text in a FORMAT, and local times of a ZONE, become instants in UTC.

A local time that occurs twice, because clocks were set back, is the earlier of the two instants. A local time that does
not occur, because clocks were set forward, is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.language.time_patterns import ISO, MONTHS, time_pattern

_INSTANT = pa.timestamp("us", tz="UTC")
_LOCAL = pa.timestamp("us")

#: Two-digit years are those of this century, as in Spark.
_CENTURY = 2000

Faults = list[tuple[str, Bools]]


@dataclass(frozen=True, slots=True)
class WrittenTimes:
    """How the times of a source are written; `zone` is UTC without a ZONE clause."""

    pattern: str | None = None
    zone: str | None = None

    def instants(self, name: str, column: pa.Array) -> tuple[pa.Array, Faults]:
        """The instants of a column, NULL where there is none, and the faults of its rows."""
        kind = column.type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return pc.cast(column, _INSTANT, safe=False), []
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            local = pc.cast(column, _LOCAL, safe=False)
            return self._in_zone(name, local, np.zeros(len(column), np.bool_))
        return self._parsed(name, pc.cast(column, pa.string()))

    def _parsed(self, name: str, text: pa.Array) -> tuple[pa.Array, Faults]:
        parts = pc.extract_regex(text, pattern=time_pattern(self.pattern or ISO).expression)
        matched = parts.is_valid().to_numpy(zero_copy_only=False)
        micros, valid = _microseconds(parts)
        known = matched & valid
        offset, has_offset = _offsets(parts, known)
        local = pa.array(micros - offset, pa.int64(), mask=~known).cast(_LOCAL)
        instants, faults = self._in_zone(name, local, has_offset)
        written = "an ISO 8601 time" if self.pattern is None else f"a time of the FORMAT '{self.pattern}'"
        wrong = text.is_valid().to_numpy(zero_copy_only=False) & ~known
        return instants, [(f"{name} is not {written}", wrong), *faults]

    def _in_zone(self, name: str, local: pa.Array, is_instant: Bools) -> tuple[pa.Array, Faults]:
        """Local times as instants; `is_instant` says which of them are already in UTC."""
        utc = local.cast(_INSTANT)
        if self.zone is None:
            return utc, []
        placed = pc.assume_timezone(local, self.zone, ambiguous="earliest", nonexistent="earliest")
        skipped = pc.fill_null(pc.not_equal(pc.local_timestamp(placed), local), False)
        skipped = skipped.to_numpy(zero_copy_only=False) & ~is_instant
        instants = pc.if_else(pa.array(is_instant), utc, placed.cast(_INSTANT))
        instants = pc.if_else(pa.array(skipped), pa.scalar(None, _INSTANT), instants)
        return instants, [(f"{name} does not exist in {self.zone}: the clocks were set forward over it", skipped)]


def local_codes(codes: I64, zone: str | None) -> I64:
    """The local times of instants, both in microseconds since 1970; without a zone, the instants."""
    if zone is None:
        return codes
    instants = pa.array(codes, pa.int64()).cast(pa.timestamp("us", tz=zone))
    return pc.local_timestamp(instants).cast(pa.int64()).to_numpy()


def instant_codes(codes: I64, zone: str | None, twice: str = "earliest") -> I64:
    """The instants of local times, both in microseconds since 1970; `twice` says which one, if a time occurs twice.

    A time that does not occur is the instant at which the clocks were set forward.
    """
    if zone is None:
        return codes
    local = pa.array(codes, pa.int64()).cast(_LOCAL)
    return pc.assume_timezone(local, zone, ambiguous=twice, nonexistent="latest").cast(pa.int64()).to_numpy()


def _microseconds(parts: pa.StructArray) -> tuple[I64, Bools]:
    """Microseconds since 1970 of the parts of a time, and whether there is such a time; where not, 0."""
    year, month, day = _years(parts), _months(parts), _number(parts, "day", 1)
    first = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    date = first.astype("datetime64[D]") + (day - 1)
    hour, valid_hour = _hours(parts)
    minute, second = _number(parts, "minute", 0), _number(parts, "second", 0)
    valid = (date.astype("datetime64[M]") == first) & (month >= 1) & (month <= 12) & (day >= 1)
    valid &= valid_hour & (minute < 60) & (second < 60)
    seconds = date.astype(np.int64) * 86_400 + hour * 3600 + minute * 60 + second
    return np.where(valid, seconds * 1_000_000 + _fractions(parts), 0), valid


def _years(parts: pa.StructArray) -> I64:
    return _number(parts, "year", 1970) if _has(parts, "year") else _CENTURY + _number(parts, "year2", 0)


def _months(parts: pa.StructArray) -> I64:
    if not _has(parts, "month_name"):
        return _number(parts, "month", 1)
    names = pc.utf8_slice_codeunits(pc.utf8_lower(parts.field("month_name")), 0, 3)
    return 1 + pc.fill_null(pc.index_in(names, value_set=pa.array(MONTHS)), 0).to_numpy(zero_copy_only=False)


def _hours(parts: pa.StructArray) -> tuple[I64, Bools]:
    if not _has(parts, "hour12"):
        hour = _number(parts, "hour", 0)
        return hour, hour < 24
    hour = _number(parts, "hour12", 12)
    afternoon = pc.fill_null(pc.equal(pc.utf8_lower(parts.field("half")), "pm"), False)
    return hour % 12 + 12 * afternoon.to_numpy(zero_copy_only=False), (hour >= 1) & (hour <= 12)


def _fractions(parts: pa.StructArray) -> I64:
    """Microseconds of a fraction of a second; further digits are cut off."""
    if not _has(parts, "fraction"):
        return np.zeros(len(parts), np.int64)
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(parts.field("fraction"), ""), 6, "0"), 0, 6)
    return pc.cast(digits, pa.int64()).to_numpy(zero_copy_only=False)


def _offsets(parts: pa.StructArray, known: Bools) -> tuple[I64, Bools]:
    """The offset from UTC in microseconds, and whether there is one; 0 where there is none."""
    if not _has(parts, "offset"):
        return np.zeros(len(parts), np.int64), np.zeros(len(parts), np.bool_)
    text = pc.replace_substring(pc.fill_null(parts.field("offset"), ""), ":", "")
    present = pc.not_equal(text, "").to_numpy(zero_copy_only=False) & known
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.utf8_ltrim(text, "+-Zz"), 4, "0"), 0, 4)
    number = pc.cast(digits, pa.int64()).to_numpy(zero_copy_only=False)
    sign = np.where(pc.starts_with(text, "-").to_numpy(zero_copy_only=False), -1, 1)
    return sign * (number // 100 * 3600 + number % 100 * 60) * 1_000_000, present


def _has(parts: pa.StructArray, name: str) -> bool:
    return parts.type.get_field_index(name) >= 0


def _number(parts: pa.StructArray, name: str, default: int) -> I64:
    """A field as integers; the default where it is absent."""
    if not _has(parts, name):
        return np.full(len(parts), default, np.int64)
    text = pc.fill_null(parts.field(name), "")
    digits = pc.if_else(pc.equal(text, ""), str(default), text)
    return pc.cast(digits, pa.int64()).to_numpy(zero_copy_only=False)
