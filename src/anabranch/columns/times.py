"""Event times as 64-bit integers (*codes*), which kernels compare, and back.

The code of an INTEGER is the integer, that of a TIMESTAMP its microseconds since 1970 (UTC). A DOUBLE is mapped to an
integer with the same order, so that instants are compared exactly for every column type. A DATE is converted to the
TIMESTAMP of its midnight in UTC when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, END, F64, I64, ROUNDING, Bools, Numbers

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)


class TimeKind(Enum):
    """The three types of time columns."""

    INTEGER = "integer"
    DOUBLE = "double"
    TIMESTAMP = "timestamp"

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the time column of an answer."""
        return {
            TimeKind.INTEGER: pa.int64(),
            TimeKind.DOUBLE: pa.float64(),
            TimeKind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
        }[self]

    @property
    def per_unit(self) -> float:
        """How much time codes differ after one unit of time: a second for a TIMESTAMP, else the unit of the column."""
        return 1e6 if self is TimeKind.TIMESTAMP else 1.0


def order_doubles(values: F64) -> I64:
    """Map doubles to integers with the same order.

    >>> order_doubles(np.array([-1.0, -0.0, 0.0, 0.5])).tolist()
    [-4607182418800017408, 0, 0, 4602678819172646912]
    """
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, -(bits & _MAGNITUDE), bits)


def restore_doubles(codes: I64) -> F64:
    """The doubles that `order_doubles` mapped."""
    bits = np.where(codes < 0, (-codes) | ~_MAGNITUDE, codes)
    return bits.astype(np.int64).view(np.float64)


def encode_times(column: pa.ChunkedArray | pa.Array, kind: TimeKind) -> I64:
    """The codes of a time column without NULLs."""
    if kind is TimeKind.DOUBLE:
        return order_doubles(pc.cast(column, pa.float64()).to_numpy())
    if kind is TimeKind.TIMESTAMP:
        zone = column.type.tz
        column = pc.cast(column, pa.timestamp("us", tz=zone), safe=False)
    return pc.cast(column, pa.int64()).to_numpy()


def midnights(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The table with the DATE columns among `names` as TIMESTAMP, at midnight in UTC."""
    for name in names:
        index = table.schema.get_field_index(name)
        if pa.types.is_date(table.schema.field(index).type):
            table = table.set_column(index, name, table.column(index).cast(TimeKind.TIMESTAMP.arrow_type))
    return table


def instant_code(instant: int | float, kind: TimeKind) -> int:
    """The code of one instant: microseconds for a TIMESTAMP, else in the unit of the column."""
    return int(order_doubles(np.array([instant]))[0]) if kind is TimeKind.DOUBLE else int(instant)


def encode_known_times(column: pa.ChunkedArray, kind: TimeKind, unknown: int = BEGINNING) -> I64:
    """The codes of a time column; `unknown` for NULL."""
    if not column.null_count:
        return encode_times(column, kind)
    codes = np.full(len(column), unknown, np.int64)
    codes[column.is_valid().to_numpy()] = encode_times(column.drop_null(), kind)
    return codes


def decode_times(codes: I64, kind: TimeKind) -> pa.Array:
    """The times that `encode_times` mapped, in the type of an answer."""
    if kind is TimeKind.DOUBLE:
        return pa.array(restore_doubles(codes))
    return pa.array(codes, pa.int64()).cast(kind.arrow_type)


def decode_time(code: int, kind: TimeKind) -> object:
    """One time as a Python value."""
    return decode_times(np.array([code]), kind)[0].as_py()


def steps_of(codes: I64, step: float, kind: TimeKind) -> I64:
    """The number of the step that each time lies in: step n is [n * step, (n + 1) * step).

    `step` is in seconds for a TIMESTAMP, else in the unit of the column; for INTEGER times it is an integer.
    """
    if kind is TimeKind.DOUBLE:
        # 0.7 / 0.1 is slightly less than 7.
        steps = restore_doubles(codes) / step
        return np.floor(steps + ROUNDING * np.abs(steps)).astype(np.int64)
    return codes // _scaled(step, kind)


def step_times(steps: I64, step: float, kind: TimeKind) -> I64:
    """The code of the start of each step."""
    return order_doubles(steps.astype(np.float64) * step) if kind is TimeKind.DOUBLE else steps * _scaled(step, kind)


def steps_before(code: int, step: float, kind: TimeKind) -> int:
    """The number of the first step that starts at or after a time."""
    (number,) = steps_of(np.array([code]), step, kind)
    (begins,) = step_times(np.array([number]), step, kind)
    return int(number) if begins >= code else int(number) + 1


def _scaled(step: float, kind: TimeKind) -> int:
    return max(1, round(step * 1_000_000 if kind is TimeKind.TIMESTAMP else step))


def later(codes: I64, delay: float, kind: TimeKind) -> I64:
    """The codes of times plus `delay`, in seconds for a TIMESTAMP, else in the unit of the column."""
    # 0.7 + 0.1 is slightly less than 0.8, and 8.2 seconds are slightly less than 8,200,000 microseconds.
    if kind is TimeKind.DOUBLE:
        times = restore_doubles(codes)
        return order_doubles(times + delay + ROUNDING * np.maximum(np.abs(times), delay))
    scaled = (delay * 1_000_000 if kind is TimeKind.TIMESTAMP else delay) * (1 + ROUNDING)
    whole = min(int(scaled), END - 1)
    return np.where(codes > END - 1 - whole, END - 1, codes + whole)


def earlier(code: int, delay: float, kind: TimeKind) -> int:
    """The code of a time minus `delay`, in seconds for a TIMESTAMP, else in the unit of the column."""
    if code == BEGINNING:
        return code
    if kind is TimeKind.DOUBLE:
        newest = restore_doubles(np.array([code]))
        # 0.8 - 0.1 is slightly more than 0.7: a row that is exactly as late as allowed is not late.
        return int(order_doubles(newest - delay - ROUNDING * np.maximum(np.abs(newest), delay))[0])
    scaled = delay * 1_000_000 if kind is TimeKind.TIMESTAMP else delay
    # Rounded up: the watermark may be too early, never too late. 1.1 seconds are slightly more than 1,100,000
    # microseconds.
    return max(code - int(np.ceil(scaled * (1 - ROUNDING))), BEGINNING + 1)


_COMPARED: dict[str, Callable[[F64, F64], Bools]] = {
    "<": lambda apart, slack: apart < -slack,
    "<=": lambda apart, slack: apart <= slack,
    ">": lambda apart, slack: apart > slack,
    ">=": lambda apart, slack: apart >= -slack,
    "=": lambda apart, slack: np.abs(apart) <= slack,
    "<>": lambda apart, slack: np.abs(apart) > slack,
}


def compare_difference(op: str, one: pa.Array, other: pa.Array, value: float, is_absolute: bool) -> pa.Array:
    """Compare `one` - `other`, or its absolute value, with a number; NULL where a time is NULL.

    Times are numbers, or TIMESTAMPs, whose difference is in seconds. DOUBLE times are compared as the decimals that
    they were written as.
    """
    null = pc.or_(one.is_null(), other.is_null())
    times = [_exact_numbers(column) for column in (one, other)]
    scale = 1e6 if pa.types.is_timestamp(one.type) else 1.0
    apart = (times[0] - times[1]).astype(np.float64) / scale
    rounded = value != 0 and any(pa.types.is_floating(column.type) for column in (one, other))
    slack = ROUNDING * np.maximum(*np.abs(times)) if rounded else np.zeros(len(apart))
    holds = _COMPARED[op]((np.abs(apart) if is_absolute else apart) - value, slack)
    return pa.array(holds, mask=null.to_numpy(zero_copy_only=False))


def _exact_numbers(column: pa.Array) -> Numbers:
    """Times as integers, microseconds for TIMESTAMPs, or as doubles; 0 for NULL."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, TimeKind.TIMESTAMP.arrow_type, safe=False).cast(pa.int64())
    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
