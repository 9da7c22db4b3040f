"""The predictions of the MONITOR oracle: lines (or parabolas) in time, in fractions, and when each applies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from anabranch.catalog import Stream
from tests.oracles.events import is_missing, scalar

Number = Fraction | float

_SECONDS = {None: 1, "SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}


@dataclass(frozen=True)
class Line:
    """The prediction of a column: `start + rate * s + bend * s ** 2` at instant s, with `error`.

    Only `monitor_accelerated.py` has a bend other than 0.
    """

    start: Number
    rate: Number
    error: Number
    bend: Number = Fraction(0)

    def at(self, instant: Fraction) -> Number:
        """The predicted value at an instant."""
        return self.start + self.rate * instant + self.bend * instant**2


@dataclass(frozen=True)
class Prediction:
    """One prediction.

    Attributes
    ----------
    key : tuple of the values of the key columns
    time, end : Fraction
        It applies from `time` on; `end` is excluded.
    lines : dict from value column, in lower case, to its line; None if it is unknown
    columns : dict from column, in lower case, to its value as in conditions
    answer_struct : dict
        The struct of an answer: key and t, as in the row.
    """

    key: tuple[Any, ...]
    time: Fraction
    end: Fraction
    lines: dict[str, Line | None]
    columns: dict[str, Any]
    answer_struct: dict[str, Any]


def predictions(stream: Stream, rows: Iterable[Mapping[str, Any]]) -> list[Prediction]:
    """The distinct predictions of a stream, by key and time."""
    distinct: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        lower_case = {name.lower(): value for name, value in row.items()}
        columns = {column.name.lower(): lower_case.get(column.name.lower()) for column in stream.columns}
        if not any(is_missing(columns[column.name.lower()]) for column in (*stream.keys, stream.time)):
            # NaN is not equal to itself; it is treated as NULL here.
            distinct.setdefault(tuple(None if is_missing(value) else value for value in columns.values()), columns)
    result = [_prediction(stream, columns, list(distinct.values())) for columns in distinct.values()]
    return sorted(result, key=lambda prediction: (prediction.key, prediction.time))


def _prediction(stream: Stream, columns: dict[str, Any], others: Sequence[dict[str, Any]]) -> Prediction:
    keys = [column.name.lower() for column in stream.keys]
    time = stream.time.name.lower()
    key, start = tuple(columns[name] for name in keys), instant(columns[time])
    other_times = [instant(other[time]) for other in others if tuple(other[name] for name in keys) == key]
    period = stream.declaration.period
    length = written(period.amount) * _SECONDS[period.unit]
    end = min([start + length, *(later for later in other_times if later > start)])
    lines = {value.name.lower(): _line(stream, value.name, columns, start) for value in stream.values}
    typed = {name: scalar(value) for name, value in columns.items()}
    answer_struct = {column.name: columns[column.name.lower()] for column in (*stream.keys, stream.time)}
    return Prediction(key, start, end, lines, typed, answer_struct)


def _line(stream: Stream, value: str, columns: Mapping[str, Any], start: Fraction) -> Line | None:
    at, rate = columns[value.lower()], columns[f"{value}_rate".lower()]
    if is_missing(at) or is_missing(rate):
        return None
    (error,) = [bound.amount for bound in stream.declaration.error if (bound.column or value).lower() == value.lower()]
    half = written(columns.get(f"{value}_accel".lower()) or 0) / 2
    base = written(at) - written(rate) * start + half * start**2
    return Line(base, written(rate) - 2 * half * start, written(error), half)


def written(number: float) -> Fraction:
    """A number as it is written: 0.1 is a tenth, although no double is."""
    return Fraction(repr(number) if isinstance(number, float) else number)


def instant(time: float | datetime) -> Fraction:
    """A time as a number; a datetime is seconds since 1970, in UTC if it has no time zone."""
    return Fraction(scalar(time), 1_000_000) if isinstance(time, datetime) else written(time)
