"""Row checks: rows that violate the model of their stream are quarantined with the reason, never lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, END, I32, I64, Bools
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.globe import beyond
from anabranch.columns.json_rows import finite
from anabranch.columns.times import TimeKind
from anabranch.transport.interval_columns import ROLES, role_numbers, whole_numbers
from anabranch.transport.kernel import in_unit_interval
from anabranch.transport.layout import DistributionColumns, IntervalColumns, Layout, PredictionColumns, SpaceColumns

#: A quarantined row: the stream, the reason, and the row as JSON.
QUARANTINE = pa.schema([("stream", pa.string()), ("reason", pa.string()), ("row", pa.string())])

#: Why a row is quarantined after the shuffle, when it meets the other rows of its key.
LATE = "late"
AHEAD = "its time is too far ahead of the other rows (MAX AHEAD)"
OVERFULL = "the probabilities of its group sum above 1"

#: Why a row is quarantined that Spark could not parse.
UNREADABLE = "a cell does not fit its column's type"

#: Probabilities of a (key, t) or (key, t, prev) may sum to this much above 1: it is taken as rounding.
TOLERANCE = 1e-6


def check_rows(table: pa.Table, layout: Layout) -> tuple[pa.Table, pa.Table]:
    """Split rows into valid ones and, as a QUARANTINE table, invalid ones."""
    bad = np.zeros(table.num_rows, np.bool_)
    reasons: list[tuple[str, Bools]] = []
    for reason, found in _faults(table, layout):
        fresh = found & ~bad
        if fresh.any():
            reasons.append((reason, fresh))
            bad |= fresh
    if not reasons:
        return table, QUARANTINE.empty_table()
    parts = [
        quarantine(layout.name, reason, plain_rows(table.filter(pa.array(fresh)).select(layout.columns)))
        for reason, fresh in reasons
    ]
    return table.filter(pa.array(~bad)), pa.concat_tables(parts)


def _faults(table: pa.Table, layout: Layout) -> Iterable[tuple[str, Bools]]:
    for name in (*layout.keys, *layout.values):
        if not _is_text(table[name]):
            yield f"{name} is not valid UTF-8", _invalid_text(table[name])
    for name in layout.keys:
        yield f"{name} is NULL", _is_null(table[name])
        if pa.types.is_floating(table[name].type):
            yield f"{name} is not a number", _true(pc.is_nan(table[name]))
    times = [layout.time] if layout.start is None else [layout.time, layout.start]
    # An event of an entity may have lost its time, but not its position.
    if layout.interval is None or not layout.interval.order:
        why = "" if layout.interval is None else ", and the segments have no ORDER"
        for name in times:
            yield f"{name} is NULL{why}", _is_null(table[name])
    if layout.interval is not None:
        yield from _interval_faults(table, layout.time, layout.interval, layout.time_kind)
    yield from _time_faults(table, layout.time, layout.time_kind)
    if layout.max_ahead is not None and layout.time_kind is TimeKind.TIMESTAMP:
        yield from _ahead_faults(table, layout.time, layout.max_ahead)
    if layout.start:
        yield from _time_faults(table, layout.start, layout.time_kind)
        yield f"{layout.start} is after {layout.time}", _true(pc.greater(table[layout.start], table[layout.time]))
    if layout.space is not None and layout.space.shape_type is None:
        yield from _space_faults(table, layout.space)
    if layout.prediction is not None:
        yield from _prediction_faults(table, layout.values, layout.prediction)
    if layout.distribution is not None:
        yield from _probability_faults(table, layout.distribution.probability)


def _time_faults(table: pa.Table, name: str, kind: TimeKind) -> Iterable[tuple[str, Bools]]:
    if kind is TimeKind.DOUBLE:
        yield f"{name} is not a finite number", _not_finite(table[name])
        return
    range_of = _timestamp_range if kind is TimeKind.TIMESTAMP else _integer_range
    column, lowest, highest, meaning = range_of(table[name])
    ends = pc.min_max(column).as_py()
    if ends["min"] is not None and (ends["min"] < lowest or ends["max"] > highest):
        outside = pc.or_(pc.less(column, lowest), pc.greater(column, highest))
        yield f"{name} is outside {meaning}", _true(outside)


def _ahead_faults(table: pa.Table, name: str, seconds: float) -> Iterable[tuple[str, Bools]]:
    """Times that lie too far ahead of this moment. One of them would let the watermark pass all rows to come."""
    column, _, highest, _ = _timestamp_range(table[name])
    limit = min(highest, int((time.time() + seconds) * _PER_SECOND[table[name].type.unit]))
    newest = pc.max(column).as_py()
    if newest is not None and newest > limit:
        yield f"{name} is too far ahead of the clock (MAX AHEAD)", _true(pc.greater(column, limit))


def _timestamp_range(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int, int, str]:
    """A TIMESTAMP column as integers in its unit, and the range of Python's and SQL's timestamps."""
    per_second = _PER_SECOND[column.type.unit]
    lowest = max(_FIRST_SECOND * per_second, BEGINNING + 1)
    highest = min(_LAST_SECOND * per_second + per_second - 1, END - 1)
    return pc.cast(column, pa.int64()), lowest, highest, "the years 1 to 9999"


def _integer_range(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int, int, str]:
    """An INTEGER column, and the range in which the difference of two times is a 64-bit integer."""
    most = 2**62 - 1
    return pc.cast(column, pa.int64()), -most, most, "the range of times, -2^62 to 2^62"


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: The first second of year 1 and the last second of year 9999, since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


def _probability_faults(table: pa.Table, name: str) -> Iterable[tuple[str, Bools]]:
    if _all_probabilities(table[name]):
        return
    p = pc.cast(table[name], pa.float64())
    yield f"{name} is NULL", _is_null(p)
    yield f"{name} is not a number", _true(pc.is_nan(p))
    yield f"{name} is outside [0, 1]", _true(pc.or_(pc.less(p, 0.0), pc.greater(p, 1.0)))


#: Larger predicted values, rates and errors would overflow where they are multiplied.
_MOST = 1e100


def _prediction_faults(
    table: pa.Table, values: tuple[str, ...], prediction: PredictionColumns
) -> Iterable[tuple[str, Bools]]:
    """Values, rates and errors must all be known; an acceleration that is NULL is 0."""
    required = (*values, *prediction.rates, *prediction.error_columns)
    for name in dict.fromkeys((*required, *prediction.acceleration_columns)):
        if name in required:
            yield f"{name} is NULL", _is_null(table[name])
        yield f"{name} is not a finite number", _not_finite(table[name])
        yield f"{name} is above {_MOST:g}", _true(pc.greater(pc.abs(pc.cast(table[name], pa.float64())), _MOST))
    for name in prediction.error_columns:
        yield f"{name} is negative", _true(pc.less(pc.cast(table[name], pa.float64()), 0.0))


def _space_faults(table: pa.Table, space: SpaceColumns) -> Iterable[tuple[str, Bools]]:
    """A coordinate may be NULL: then the location of the event is unknown."""
    for name, most in zip(space.columns, (180, 90, None), strict=False):
        yield f"{name} is not a finite number", _not_finite(table[name])
        if space.geodesic and most is not None:
            outside = pc.greater(pc.abs(pc.cast(table[name], pa.float64())), float(most))
            yield f"{name} is outside [-{most}, {most}] degrees", _true(outside)
    if space.origin is not None:
        longitude, latitude = (pc.cast(table[name], pa.float64()).to_numpy() for name in space.columns)
        yield "it is more than 90 degrees from the ORIGIN", beyond(longitude, latitude, space.origin)


def _interval_faults(
    table: pa.Table, time: str, interval: IntervalColumns, kind: TimeKind
) -> Iterable[tuple[str, Bools]]:
    if interval.order:
        yield (
            f"{interval.order} is not a position: it must be 1 or more",
            ~_true(pc.greater_equal(table[interval.order], 1)),
        )
    if interval.length:
        yield f"{interval.length} is not a number of events", _true(pc.less(table[interval.length], 1))
    if interval.role:
        role, seq = role_numbers(table[interval.role]), whole_numbers(table[interval.order])
        yield f"{interval.role} is not one of {', '.join(ROLES)}", role == -2
        yield f"{interval.role} does not fit the position", (role >= 0) & (role != _role_at(seq, role))
    if interval.window:
        for name in interval.window:
            yield from _time_faults(table, name, kind)
        low, high = (table[name] for name in interval.window)
        yield f"{interval.window[0]} is after {interval.window[1]}", _true(pc.greater(low, high))
        outside = _true(pc.less(table[time], low)) | _true(pc.greater(table[time], high))
        yield f"{time} is outside its window", outside
    horizon = [name for name in interval.horizon_columns if name is not None]
    for name in horizon:
        yield from _time_faults(table, name, kind)
    if len(horizon) == 2:
        late = _true(pc.greater_equal(table[horizon[0]], table[horizon[1]]))
        yield f"{horizon[0]} is not before {horizon[1]}", late
    for name in dict.fromkeys(column for law, column in interval.laws_by_row.values() if not law.classes):
        mean = pc.cast(table[name], pa.float64())
        valid = pc.and_(pc.greater(mean, 0.0), pc.is_finite(mean))
        yield f"{name} is not a mean: it must be above 0", _true(pc.invert(valid))


def _role_at(seq: I64, role: I64) -> I64:
    """The role at a position: the first event starts, even ones suspend (or end, if they say so), others resume."""
    start, suspend, resume, end = range(len(ROLES))
    even = np.where(role == end, end, suspend)
    return np.where(seq == 1, start, np.where(seq % 2 == 0, even, resume))


def _all_probabilities(column: pa.ChunkedArray) -> bool:
    """Whether all probabilities of a column are valid: the usual case, in one pass."""
    doubles = pa.types.is_float64(column.type) and not column.null_count
    return doubles and all(in_unit_interval(chunk.to_numpy()) for chunk in column.chunks)


def _not_finite(column: pa.ChunkedArray) -> Bools:
    return _true(pc.invert(pc.is_finite(pc.cast(column, pa.float64()))))


def _is_text(column: pa.ChunkedArray) -> bool:
    """Whether every text of a column is valid UTF-8; true for columns without texts. Parquet does not guarantee it."""
    texts = [chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk for chunk in column.chunks]
    try:
        for text in texts:
            if pa.types.is_string(text.type) or pa.types.is_large_string(text.type):
                text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _invalid_text(column: pa.ChunkedArray) -> Bools:
    return np.array([_is_undecodable(cell) for cell in column], np.bool_)


def _is_undecodable(cell: pa.Scalar) -> bool:
    try:
        cell.as_py()
    except UnicodeDecodeError:
        return True
    return False


def _is_null(column: pa.ChunkedArray) -> Bools:
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return column.is_null().to_numpy()


def _true(column: pa.ChunkedArray) -> Bools:
    return pc.fill_null(column, False).to_numpy()


def overfull_rows(table: pa.Table, layout: Layout, distribution: DistributionColumns) -> Bools:
    """Rows of a (key, t) or (key, t, prev) whose probabilities sum above 1; duplicates count once."""
    group = row_codes(table, (*layout.keys, layout.time, *distribution.previous))
    _, firsts = np.unique(row_codes(table, layout.columns), return_index=True)
    p = pc.cast(table[distribution.probability], pa.float64()).to_numpy()
    sums = np.bincount(group[firsts], weights=p[firsts], minlength=group.max() + 1)
    return sums[group] > 1.0 + TOLERANCE


def row_codes(table: pa.Table, names: Sequence[str]) -> I32:
    """A number for each row; rows with equal columns have equal numbers."""
    return encode_tuples([table[name] for name in names], table.num_rows)[0]


def quarantine(stream: str, reason: str, rows: Iterable[dict[str, object]]) -> pa.Table:
    """Rows that are quarantined for one reason."""
    texts = [json.dumps(finite(row), default=_plain, ensure_ascii=False) for row in rows]
    return pa.table({"stream": [stream] * len(texts), "reason": [reason] * len(texts), "row": texts}, schema=QUARANTINE)


def plain_rows(table: pa.Table) -> list[dict[str, object]]:
    """The rows as Python values; a text or time that Python cannot represent is written as well as possible."""
    try:
        return table.to_pylist()
    except (OverflowError, ValueError):
        columns = [[_plain_cell(cell) for cell in column] for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_cell(cell: pa.Scalar) -> object:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        text = cell.value if isinstance(cell, pa.DictionaryScalar) else cell
        return text.as_buffer().to_pybytes().decode(errors="replace")
    except (OverflowError, ValueError):
        return f"{cell.value} {cell.type.unit} since 1970"


def _plain(value: object) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
