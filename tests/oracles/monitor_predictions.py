"""Predictions as the oracle of MONITOR has them: lines in time, in fractions, each until it no longer applies."""

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
    """What a column is predicted to be: `start + rate * s`, s being the instant, give or take `error`."""

    start: Number
    rate: Number
    error: Number


@dataclass(frozen=True)
class Prediction:
    """One prediction.

    Attributes
    ----------
    key : tuple of the values of the key columns
    time, end : Fraction
        It applies from `time`, and ends before `end`.
    lines : dict from value column, in lower case, to its line; None where it is not known
    columns : dict from column, in lower case, to its value as conditions have it
    shown : dict
        The struct of an answer: key and t, as given.
    """

    key: tuple[Any, ...]
    time: Fraction
    end: Fraction
    lines: dict[str, Line | None]
    columns: dict[str, Any]
    shown: dict[str, Any]


def predictions(stream: Stream, rows: Iterable[Mapping[str, Any]]) -> list[Prediction]:
    """The different predictions of a stream, by key and time."""
    given: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        own = {name.lower(): value for name, value in row.items()}
        columns = {column.name.lower(): own.get(column.name.lower()) for column in stream.columns}
        if not any(is_missing(columns[column.name.lower()]) for column in (*stream.keys, stream.time)):
            # What is no number is not equal to itself, and is the same as NULL here.
            given.setdefault(tuple(None if is_missing(value) else value for value in columns.values()), columns)
    found = [_prediction(stream, columns, list(given.values())) for columns in given.values()]
    return sorted(found, key=lambda each: (each.key, each.time))


def _prediction(stream: Stream, columns: dict[str, Any], others: Sequence[dict[str, Any]]) -> Prediction:
    keys = [column.name.lower() for column in stream.keys]
    time = stream.time.name.lower()
    key, start = tuple(columns[name] for name in keys), instant(columns[time])
    later = [instant(other[time]) for other in others if tuple(other[name] for name in keys) == key]
    period = stream.declaration.period
    # As the bound query has its durations: in seconds, a double.
    length = Fraction(period.amount * _SECONDS[period.unit])
    end = min([start + length, *(each for each in later if each > start)])
    lines = {value.name.lower(): _line(stream, value.name, columns, start) for value in stream.values}
    typed = {name: scalar(value) for name, value in columns.items()}
    shown = {column.name: columns[column.name.lower()] for column in (*stream.keys, stream.time)}
    return Prediction(key, start, end, lines, typed, shown)


def _line(stream: Stream, value: str, columns: Mapping[str, Any], start: Fraction) -> Line | None:
    at, rate = columns[value.lower()], columns[f"{value}_rate".lower()]
    if is_missing(at) or is_missing(rate):
        return None
    (error,) = [each.amount for each in stream.declaration.error if (each.column or value).lower() == value.lower()]
    return Line(Fraction(at) - Fraction(rate) * start, Fraction(rate), Fraction(error))


def instant(time: float | datetime) -> Fraction:
    """A time as a number: that of its column, or seconds since 1970 (in UTC, where it does not say)."""
    return Fraction(scalar(time), 1_000_000) if isinstance(time, datetime) else Fraction(time)
