"""Makes labelled history for `fit_hmm`: codes of keys, steps, locations and readers, from the rows of two streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I32, I64
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.times import TimeKind, decode_times, encode_times, steps_of
from anabranch.errors import DataError
from anabranch.inference.labels import Labelled, truth_indexes
from anabranch.transport.activations import MOST_STEPS, readings_of


@dataclass(frozen=True, slots=True)
class History:
    """The true locations of keys, and the readings at the same steps; `locations` and `readers` are names by code.

    `quantities` are the names of what the readings measure besides the reader.
    """

    truth: Labelled
    readings: Labelled
    locations: tuple[str, ...]
    readers: tuple[str, ...]
    quantities: tuple[str, ...] = ()

    @property
    def n_keys(self) -> int:
        """The number of keys with a known location."""
        return len(np.unique(self.truth.key))

    @property
    def n_silent(self) -> int:
        """The number of steps without readings."""
        n_read = np.unique(np.stack([self.readings.key, self.readings.step]), axis=1).shape[1]
        return len(self.truth.key) - n_read


def make_history(
    truth: pa.Table, readings: pa.Table, step: float = 1.0, quantities: tuple[str, ...] = (), between: str | None = None
) -> History:
    """Make a history from the rows of two streams.

    Parameters
    ----------
    truth, readings : Table
        The key columns, then the location (or the reader), then the time. Rows without a location or reader (NULL) are
        ignored. Rows with a duration are those of `point_rows`.
    quantities : tuple of str
        The columns of `readings`, after the reader, that hold what was measured.
    between : str, optional
        The location of steps without one between the first and the last location of a key.
    step : float
        The length of a step, in seconds for timestamps, else in the unit of the times. If the truth has several rows
        in one step, the first counts: a step has the location at which it begins.

    Raises
    ------
    DataError
        If no model can be fitted to the rows; the message is one line.

    Examples
    --------
    >>> truth = pa.table({"tag": ["a", "a"], "location": ["hall", "lab"], "t": [0, 1]})
    >>> history = make_history(truth, pa.table({"tag": ["a"], "reader": ["east"], "t": [1]}))
    >>> history.locations, history.readers, history.n_silent
    (('hall', 'lab'), ('east',), 1)
    """
    kind = _time_kind(truth, readings, step)
    truth = truth.filter(truth.column(-2).is_valid())
    readings = readings.filter(readings.column(-2 - len(quantities)).is_valid())
    if not truth.num_rows:
        raise DataError("the truth has no locations; check the input of the stream")
    if not readings.num_rows:
        raise DataError("there are no readings; check the input of the stream")
    measured = _numbers(readings, quantities)
    readings = readings.drop_columns(list(quantities))
    key_of_truth, key_of_readings = _keys(truth, readings)
    locations, location = _names(truth)
    readers, reader = _names(readings)
    t = encode_times(truth.column(-1), kind)
    first = _first_of_steps(truth, key_of_truth, location, t, step, kind)
    known = Labelled(key_of_truth[first], steps_of(t[first], step, kind), location[first])
    if between is not None:
        known, locations = _filled(known, locations, between)
    step_of_reading = steps_of(encode_times(readings.column(-1), kind), step, kind)
    seen = Labelled(key_of_readings, step_of_reading, reader, measured)
    return History(known, _at_known_steps(known, seen), locations, readers, quantities)


def make_readings(readings: pa.Table, step: float = 1.0) -> tuple[Labelled, tuple[str, ...]]:
    """The readings of keys by step, and the names of the readers.

    Parameters
    ----------
    readings, step : as in `make_history`
    """
    kind = _time_kind(readings, readings, step)
    readings = readings.filter(readings.column(-2).is_valid())
    if not readings.num_rows:
        raise DataError("there are no readings; check the input of the stream")
    key, _ = encode_tuples(readings.columns[:-2], readings.num_rows)
    readers, reader = _names(readings)
    step_of_reading = steps_of(encode_times(readings.column(-1), kind), step, kind)
    return Labelled(key.astype(np.int64), step_of_reading, reader), readers


def split_history(
    truth: Sequence[pa.Table], readings: pa.Table, n_keys: int, classes: Sequence[pa.ChunkedArray]
) -> dict[str, tuple[list[pa.Table], pa.Table]]:
    """The rows of each class of keys, sorted by the name of the class; keys without a class are left out.

    Parameters
    ----------
    truth, readings : tables that begin with `n_keys` key columns; there may be no truth
    classes : the class of each row of all tables, one after the other, or of each reading

    Raises
    ------
    DataError
        If a key has two classes, or no key has one.
    """
    tables = [*truth, readings]
    columns = [
        pa.chunked_array([chunk for table in tables for chunk in table.column(number).chunks])
        for number in range(n_keys)
    ]
    key, _ = encode_tuples(columns, sum(table.num_rows for table in tables))
    names_of_rows = pc.cast(pa.chunked_array([chunk for column in classes for chunk in column.chunks]), pa.string())
    classified = key[len(key) - len(names_of_rows) :]
    names = sorted(pc.unique(names_of_rows.drop_null()).to_pylist())
    if not names:
        raise DataError("no reading has a class; check the column of --by")
    number = pc.fill_null(pc.index_in(names_of_rows, pa.array(names, pa.string())), -1).to_numpy()
    of_key = np.full(key.max() + 1, -1)
    of_key[classified[number >= 0]] = number[number >= 0]
    conflicts = np.flatnonzero((number >= 0) & (number != of_key[classified]))
    if conflicts.size:
        row = int(conflicts[0])
        key_text = ", ".join(str(column[len(key) - len(classified) + row].as_py()) for column in columns)
        two = " and ".join(sorted([names[number[row]], names[of_key[classified[row]]]]))
        raise DataError(f"{key_text} has the classes {two}; a key has one class")
    of_tables = np.split(of_key[key], np.cumsum([table.num_rows for table in truth]))
    parts = {}
    for code, name in enumerate(names):
        *known, read = (table.filter(of_rows == code) for table, of_rows in zip(tables, of_tables, strict=True))
        parts[name] = known, read
    return parts


def point_rows(table: pa.Table, start: str, end: str, step: float) -> pa.Table:
    """Rows with a duration as one row for each step, with the time in `end`; those that are too long are left out."""
    points, _ = readings_of(table, start, end, step, time_kind(table.schema.field(end).type))
    return points.drop_columns([start])


def _numbers(readings: pa.Table, quantities: tuple[str, ...]) -> F64 | None:
    """What the readings measured, (rows, Q); NaN where it is NULL."""
    if not quantities:
        return None
    for name in quantities:
        kind = readings.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise DataError(
                f"{name}, which the readings measure, is {kind}, not a number; name the reader first in VALUE"
            )
    columns = [pc.fill_null(pc.cast(readings[name], pa.float64()), np.nan) for name in quantities]
    return np.stack([column.to_numpy() for column in columns], axis=1)


def _filled(truth: Labelled, locations: tuple[str, ...], between: str) -> tuple[Labelled, tuple[str, ...]]:
    """The truth, sorted, with the location `between` at the steps that lie between two known ones of a key."""
    names = locations if between in locations else (*locations, between)
    order = np.lexsort((truth.step, truth.key))
    key, step, code = truth.key[order], truth.step[order], truth.code[order]
    missing = np.where(np.diff(key) == 0, np.diff(step) - 1, 0)
    if missing.sum() > MOST_STEPS:
        raise DataError(
            f"the truth has {missing.sum():,} steps without a location between others; label them, or use a longer step"
        )
    row = np.repeat(np.arange(len(missing)), missing)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(missing) - missing, missing) + 1
    filled = Labelled(
        np.concatenate([key, key[row]]),
        np.concatenate([step, step[row] + offset]),
        np.concatenate([code, np.full(len(row), names.index(between), np.int32)]),
    )
    return filled, names


def _time_kind(truth: pa.Table, readings: pa.Table, step: float) -> TimeKind:
    """The common kind of the times of both tables."""
    kinds = [time_kind(table.schema.types[-1]) for table in (truth, readings)]
    if len(set(kinds)) > 1 and TimeKind.TIMESTAMP in kinds:
        raise DataError(
            f"the times of the truth are {kinds[0].value}s, those of the readings {kinds[1].value}s; use one type"
        )
    kind = TimeKind.DOUBLE if TimeKind.DOUBLE in kinds else kinds[0]
    if kind is TimeKind.INTEGER and step != int(step):
        raise DataError(f"the step is {step:g}, but the times are integers; use an integer step")
    return kind


def time_kind(time: pa.DataType) -> TimeKind:
    """The kind of a time column of this type."""
    if pa.types.is_timestamp(time):
        return TimeKind.TIMESTAMP
    return TimeKind.DOUBLE if pa.types.is_floating(time) else TimeKind.INTEGER


def _keys(truth: pa.Table, readings: pa.Table) -> tuple[I64, I64]:
    """The code of each row's key, in the truth and in the readings."""
    truth_columns, reading_columns = truth.columns[:-2], readings.columns[:-2]
    truth_types, reading_types = (
        ", ".join(str(column.type) for column in columns) for columns in (truth_columns, reading_columns)
    )
    if truth_types != reading_types:
        raise DataError(f"the keys of the truth are {truth_types}, those of the readings {reading_types}; use one type")
    columns = [
        pa.chunked_array([*truth_column.chunks, *reading_column.chunks], truth_column.type)
        for truth_column, reading_column in zip(truth_columns, reading_columns, strict=True)
    ]
    codes, _ = encode_tuples(columns, truth.num_rows + readings.num_rows)
    truth_codes, reading_codes = codes[: truth.num_rows].astype(np.int64), codes[truth.num_rows :].astype(np.int64)
    if not np.isin(truth_codes, reading_codes).any():
        raise DataError("the truth and the readings have no key in common; check the key columns of both streams")
    return truth_codes, reading_codes


def _names(table: pa.Table) -> tuple[tuple[str, ...], I32]:
    """The distinct locations or readers, sorted by name, and the code of each row's."""
    column = pc.cast(table.column(-2), pa.string())
    names = sorted(pc.unique(column).to_pylist())
    if "" in names:
        raise DataError(f"a {table.column_names[-2]} is an empty text; remove such rows, or write NULL")
    return tuple(names), pc.index_in(column, pa.array(names)).to_numpy().astype(np.int32)


def _first_of_steps(
    truth: pa.Table, key: I64, location: I32, t: I64, step: float, kind: TimeKind
) -> npt.NDArray[np.intp]:
    """The index of the first row of each key and step."""
    order = np.lexsort((location, t, key))
    same_key = np.diff(key[order]) == 0
    conflicts = np.flatnonzero(same_key & (np.diff(t[order]) == 0) & (np.diff(location[order]) != 0))
    if conflicts.size:
        row = int(order[conflicts[0]])
        key_text = ", ".join(str(column[row].as_py()) for column in truth.columns[:-2])
        time = decode_times(t[row : row + 1], kind)[0].as_py()
        raise DataError(f"{key_text} has two locations at {time}; keep one of them")
    same_step = same_key & (np.diff(steps_of(t[order], step, kind)) == 0)
    return order[np.concatenate([[True], ~same_step])]


def _at_known_steps(truth: Labelled, readings: Labelled) -> Labelled:
    """The readings at steps with a known location."""
    known = truth_indexes(truth, readings) >= 0
    if not known.any():
        raise DataError("no reading is at a step with a known location; check the times and the step")
    return readings.where(known)
