"""Labelled history for `fit_hmm`: from the rows of two streams to codes of keys, steps, locations and readers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, I64
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.times import TimeKind, decode_times, encode_times, steps_of
from anabranch.errors import DataError
from anabranch.inference.fit import Labelled


@dataclass(frozen=True, slots=True)
class History:
    """Where keys were, and what was read of them at those steps; `locations` and `readers` are names by code."""

    truth: Labelled
    readings: Labelled
    locations: tuple[str, ...]
    readers: tuple[str, ...]

    @property
    def n_keys(self) -> int:
        """How many keys the truth is about."""
        return len(np.unique(self.truth.key))

    @property
    def n_silent(self) -> int:
        """At how many steps nothing was read."""
        read = np.unique(np.stack([self.readings.key, self.readings.step]), axis=1).shape[1]
        return len(self.truth.key) - read


def make_history(truth: pa.Table, readings: pa.Table, step: float = 1.0) -> History:
    """Put the rows of two streams together.

    Parameters
    ----------
    truth, readings : Table
        The key columns, then the location (or the reader), then the time. A row whose location or reader is NULL says
        nothing.
    step : float
        The length of a step, in seconds for timestamps, else in the unit of the times. Where the truth has several
        rows in one step, the first counts: a step stands for the time at which it begins.

    Raises
    ------
    DataError
        One line, where there is nothing to learn from.

    Examples
    --------
    >>> truth = pa.table({"tag": ["a", "a"], "location": ["hall", "lab"], "t": [0, 1]})
    >>> history = make_history(truth, pa.table({"tag": ["a"], "reader": ["east"], "t": [1]}))
    >>> history.locations, history.readers, history.n_silent
    (('hall', 'lab'), ('east',), 1)
    """
    kind = _time_kind(truth, readings, step)
    truth, readings = (_told(table) for table in (truth, readings))
    if not truth.num_rows or not readings.num_rows:
        raise DataError(f"there are no {'locations' if not truth.num_rows else 'readings'} to learn from")
    key_of_truth, key_of_readings = _keys(truth, readings)
    locations, location = _names(truth)
    readers, reader = _names(readings)
    t = encode_times(truth.column(-1), kind)
    first = _first_of_steps(truth, key_of_truth, location, t, step, kind)
    known = Labelled(key_of_truth[first], steps_of(t[first], step, kind), location[first])
    seen = Labelled(key_of_readings, steps_of(encode_times(readings.column(-1), kind), step, kind), reader)
    return History(known, _at_known_steps(known, seen), locations, readers)


def _time_kind(truth: pa.Table, readings: pa.Table, step: float) -> TimeKind:
    """The kind of time that both have."""
    kinds = [_kind(table.schema.types[-1]) for table in (truth, readings)]
    if len(set(kinds)) > 1 and TimeKind.TIMESTAMP in kinds:
        raise DataError(f"the times of the truth are {kinds[0].value}s, those of the readings {kinds[1].value}s")
    kind = TimeKind.DOUBLE if TimeKind.DOUBLE in kinds else kinds[0]
    if kind is TimeKind.INTEGER and step != int(step):
        raise DataError(f"a step of {step:g} does not suit times that are integers")
    return kind


def _kind(time: pa.DataType) -> TimeKind:
    if pa.types.is_timestamp(time):
        return TimeKind.TIMESTAMP
    return TimeKind.DOUBLE if pa.types.is_floating(time) else TimeKind.INTEGER


def _told(table: pa.Table) -> pa.Table:
    """The rows that say something."""
    return table.filter(table.column(-2).is_valid())


def _keys(truth: pa.Table, readings: pa.Table) -> tuple[I64, I64]:
    """The number of each row's key, in the truth and in the readings."""
    of_truth, of_readings = truth.columns[:-2], readings.columns[:-2]
    types = [[str(column.type) for column in columns] for columns in (of_truth, of_readings)]
    if types[0] != types[1]:
        told = " and ".join(", ".join(each) for each in types)
        raise DataError(f"the keys of the truth and of the readings differ in their types: {told}")
    columns = [
        pa.chunked_array([*one.chunks, *other.chunks], one.type)
        for one, other in zip(of_truth, of_readings, strict=True)
    ]
    codes, _ = encode_tuples(columns, truth.num_rows + readings.num_rows)
    split = codes[: truth.num_rows].astype(np.int64), codes[truth.num_rows :].astype(np.int64)
    if not np.isin(*split).any():
        raise DataError("the truth and the readings have no key in common")
    return split


def _names(table: pa.Table) -> tuple[tuple[str, ...], I32]:
    """The distinct locations or readers in the order of their names, and the code of each row's."""
    column = pc.cast(table.column(-2), pa.string())
    names = sorted(pc.unique(column).to_pylist())
    if "" in names:
        raise DataError(f"a {table.column_names[-2]} is empty; leave out such rows, or write NULL")
    return tuple(names), pc.index_in(column, pa.array(names)).to_numpy().astype(np.int32)


def _first_of_steps(
    truth: pa.Table, key: I64, location: I32, t: I64, step: float, kind: TimeKind
) -> npt.NDArray[np.intp]:
    """The first row of each key and step."""
    order = np.lexsort((location, t, key))
    same_key = np.diff(key[order]) == 0
    twice = np.flatnonzero(same_key & (np.diff(t[order]) == 0) & (np.diff(location[order]) != 0))
    if twice.size:
        row = int(order[twice[0]])
        who = ", ".join(str(column[row].as_py()) for column in truth.columns[:-2])
        when = decode_times(t[row : row + 1], kind)[0].as_py()
        raise DataError(f"{who} is in two places at {when}")
    again = same_key & (np.diff(steps_of(t[order], step, kind)) == 0)
    return order[np.concatenate([[True], ~again])]


def _at_known_steps(truth: Labelled, readings: Labelled) -> Labelled:
    """The readings at steps of which the location is known."""
    steps = np.concatenate([np.stack([each.key, each.step], axis=1) for each in (truth, readings)])
    _, number = np.unique(steps, axis=0, return_inverse=True)
    number = number.reshape(-1)
    known = np.isin(number[len(truth.key) :], number[: len(truth.key)])
    if not known.any():
        raise DataError("no reading is at a step of which the truth knows the location")
    return Labelled(readings.key[known], readings.step[known], readings.code[known])
