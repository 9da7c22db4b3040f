"""Events for the oracles of SEQUENCE and CONSTRAIN, made from the rows of streams."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from anabranch.catalog import Stream
from anabranch.language.types import Type
from tests.oracles.conditions import Relations, Value

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Mapping[str, Any]]]

NO_RELATIONS: Relations = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Event:
    """One event of a stream.

    Attributes
    ----------
    stream : Stream
    row : dict from column, as declared, to its value in the row
    columns : dict from column, in lower case, to its value in conditions; `*` is the event itself
    order : tuple
        The sort key of the events of a stream.
    """

    stream: Stream
    row: Row
    columns: dict[str, Value]
    order: tuple[tuple[int, Value], ...]

    @property
    def time(self) -> Value:
        """The event time; microseconds for a TIMESTAMP."""
        return self.columns[self.stream.time.name.lower()]

    @property
    def location(self) -> tuple[float, ...] | None:
        """The coordinates, two or three; None if they are not known."""
        coordinates = tuple(self.columns[name.lower()] for name in self.stream.declaration.space or ())
        return None if any(map(is_missing, coordinates)) else coordinates


def events_by_stream(streams: Sequence[Stream], rows: Rows) -> dict[str, list[Event]]:
    """The events of each stream, by its name in lower case."""
    by_name = {name.lower(): stream_rows for name, stream_rows in rows.items()}
    return {stream.name.lower(): events_of(stream, by_name.get(stream.name.lower(), ())) for stream in streams}


def events_of(stream: Stream, rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The distinct events of a stream, sorted by time, key and the other columns."""
    events: dict[tuple[tuple[int, Value], ...], Event] = {}
    for source_row in rows:
        values = {name.lower(): value for name, value in source_row.items()}
        row = {column.name: values.get(column.name.lower()) for column in stream.columns}
        columns = {column.name.lower(): scalar(row[column.name], column.type) for column in stream.columns}
        for time in filter(None, (stream.time, stream.start)):
            columns[time.name.lower()] = as_written(columns[time.name.lower()])
        required = [stream.time, *stream.keys]
        if any(is_missing(columns[column.name.lower()]) for column in required):
            continue
        order = tuple(_rank(columns[column.name.lower()]) for column in (*required, *stream.columns))
        event = Event(stream, row, columns, order)
        columns["*"] = event
        events.setdefault(order, event)
    return sorted(events.values(), key=lambda event: event.order)


def scalar(value: Any, kind: Type | None = None) -> Value:
    """The value in the form of constants: microseconds since 1970 for a TIMESTAMP, days for a DATE."""
    if isinstance(value, date) and kind is Type.UNKNOWN:
        message = f"{value} is a time, and its column has no type: bind the query with the types of its sources"
        raise TypeError(message)
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def as_written(value: Value) -> Value:
    """A number as the decimal that it was written as, so that differences of times are exact."""
    return Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value


def is_missing(value: Value) -> bool:
    """Whether a value is NULL or a number that is not finite."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _rank(value: Value) -> tuple[int, Value]:
    """The sort key of a value of a column: NULL is first; NaN is last, and equal to itself."""
    if value is None:
        return 0, 0
    return (2, 0) if value != value else (1, value)


def frozen(answer: Any) -> Hashable:
    """A hashable copy of an answer without its probability.

    The order of columns does not matter; the order of the events of a counted variable does.
    """
    if isinstance(answer, Mapping):
        return frozenset((name, frozen(value)) for name, value in answer.items() if name != "probability")
    return tuple(map(frozen, answer)) if isinstance(answer, list | tuple) else answer
