"""Answers of any kind of query as plain values: where they come from, which kind they are, and which are shown."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import DataError
from anabranch.evaluation.files import read_table
from anabranch.evaluation.series import NOT_GROUPS
from anabranch.text import short, value_text

KINDS = ("pattern", "sequence", "relate", "monitor", "constrain")

PROBABILITY = "probability"

LONGEST_LABEL, LONGEST_DETAIL = 28, 160
"""The maximum lengths of a label next to an axis, and of a value in a tooltip."""

MOST_KEYS = 120
"""The most keys on a side of a matrix."""

Row = dict[str, Any]


def table_of(source: Any) -> pa.Table:
    """Return a DataFrame of Spark, pandas or Polars, an Arrow table, rows or the file or folder of a table as Arrow.

    Columns of CSV files such as `x.tag` become structs again, and arrays in JSON text become lists.
    """
    if isinstance(source, str | os.PathLike):
        return _nested(read_table(os.fspath(source)))
    if hasattr(source, "toArrow"):
        return source.toArrow()
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if isinstance(source, list):
        return _nested(pa.Table.from_pylist(source))
    raise DataError(
        f"cannot plot a {type(source).__name__}; pass answers as a DataFrame (Spark, pandas, Polars), an Arrow table, "
        "a list of dicts or a path, or the result of evaluate"
    )


def _nested(table: pa.Table) -> pa.Table:
    """Return the table with structs and lists instead of the columns that stand for them in CSV."""
    names = table.column_names
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    for name in names:
        parent, dot, _ = name.partition(".")
        if not dot:
            columns[name] = _parsed_lists(table[name])
        elif parent not in columns:
            inner = [other for other in names if other.startswith(f"{parent}.")]
            fields = pa.table({other.removeprefix(f"{parent}."): table[other] for other in inner})
            columns[parent] = _structs(_nested(fields))
    return pa.table(columns)


def _structs(fields: pa.Table) -> pa.Array:
    """Return rows as structs; one without any value was NULL."""
    present = [any(value is not None for value in row.values()) for row in fields.to_pylist()]
    batch = fields.combine_chunks()
    arrays = [pa.array([], field.type) if not batch.num_rows else batch[field.name].chunk(0) for field in batch.schema]
    mask = pa.array([not value for value in present], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(batch.schema), mask=mask)


def _parsed_lists(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if not pa.types.is_string(column.type) or not len(column):
        return column
    texts = column.to_pylist()
    if not all(text is None or text.startswith("[{") for text in texts) or not any(texts):
        return column
    try:
        return pa.array([None if text is None else json.loads(text) for text in texts])
    except (ValueError, pa.ArrowException):
        return column


def kind_of(table: pa.Table) -> str:
    """Return the kind of query that has such answers.

    Examples
    --------
    >>> kind_of(pa.table({"t": [1], "x": ["ana"], "probability": [0.5]}))
    'pattern'
    """
    names = set(table.column_names)
    if PROBABILITY not in names:
        raise DataError(f"answers have a column probability; these columns are: {', '.join(table.column_names)}")
    if {"valid_from", "valid_to"} <= names:
        return "monitor"
    if "t_start" in names:
        return "sequence"
    if {"t_from", "t_to"} <= names:
        return "pattern"
    structs = [field.name for field in table.schema if is_event(field)]
    if "t" in names:
        return "constrain" if structs else "pattern"
    return "relate"


def is_event(field: pa.Field) -> bool:
    """Return whether a column holds events or keys: structs, or lists of structs."""
    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return pa.types.is_struct(kind) and field.name not in NOT_GROUPS


def is_matrix(table: pa.Table) -> bool:
    """Return whether answers are about pairs of few keys, so that they fill a matrix."""
    pairs = [field.name for field in table.schema if is_event(field)]
    if len(pairs) != 2 or set(table.column_names) - {*pairs, *NOT_GROUPS}:
        return False
    return all(1 < len({key_text(key) for key in table[name].to_pylist()}) <= MOST_KEYS for name in pairs)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers that a chart shows.

    Attributes
    ----------
    table : pa.Table
        The answers with the highest probabilities, in their order.
    total : int
        The number of all answers.
    without : int
        Answers without a probability, which no chart can show.
    """

    table: pa.Table
    total: int
    without: int

    @classmethod
    def highest(cls, table: pa.Table, limit: int) -> Answers:
        """Return the answers with the highest probabilities, at most `limit`."""
        probabilities = pc.cast(table[PROBABILITY], pa.float64())
        known = pc.fill_null(pc.is_finite(probabilities), False)
        valid = table.filter(known)
        shown = valid
        if valid.num_rows > limit:
            order = pc.sort_indices(valid, [(PROBABILITY, "descending")])
            shown = valid.take(pc.array_take(order, pc.sort_indices(order.slice(0, limit))))
        return cls(shown, table.num_rows, table.num_rows - valid.num_rows)

    def fewer(self, limit: int) -> Answers:
        """Return those with the highest probabilities, at most `limit`."""
        return replace(self, table=Answers.highest(self.table, limit).table)

    @property
    def notes(self) -> list[str]:
        """What the reader of the chart must know about answers that are not in it."""
        valid = self.total - self.without
        notes = []
        if self.table.num_rows < valid:
            notes.append(f"{self.table.num_rows:,} of {valid:,} answers: those with the highest probabilities")
        if self.without:
            notes.append(f"{self.without:,} answers without a probability are left out")
        return notes

    @property
    def groups(self) -> list[str]:
        """The columns that say whom an answer is about."""
        return [name for name in self.table.column_names if name not in NOT_GROUPS]

    @property
    def events(self) -> list[str]:
        """The columns that hold events, in the order of the query; in a list of dicts, one may be NULL in all rows."""
        unknown = {field.name for field in self.table.schema if pa.types.is_null(field.type)} - NOT_GROUPS
        return [field.name for field in self.table.schema if is_event(field) or field.name in unknown]

    @property
    def detail_names(self) -> list[str]:
        """The columns of a tooltip: all of them, except the corners of a region."""
        return [name for name in self.table.column_names if name != "boundary"]

    def rows(self) -> Iterator[tuple[Row, Row]]:
        """Give the values of each answer, and what marks of it carry: its probability and the texts of its tooltip.

        Columns get short names there, because the names of columns are expressions to Vega.
        """
        texts = [[short(value_text(value), LONGEST_DETAIL) for value in self.table[name]] for name in self.detail_names]
        for number, row in enumerate(self.table.to_pylist()):
            details = {f"c{index}": column[number] for index, column in enumerate(texts)}
            yield row, {PROBABILITY: float(row[PROBABILITY]), **details}

    def label(self, row: Row, names: Sequence[str] | None = None) -> str:
        """Return the text of an answer's grouping columns."""
        return ", ".join(key_text(row[name]) for name in (self.groups if names is None else names))


def key_text(value: Any, without: Sequence[str] = ()) -> str:
    """Return a key, or the fields of a struct of keys, as a label."""
    if isinstance(value, Mapping):
        return short(" ".join(key_text(part) for name, part in value.items() if name not in without), LONGEST_LABEL)
    return short(value_text(pa.scalar(value)), LONGEST_LABEL)


# ---------------------------------------------------------------- times


def is_clock(values: Sequence[Any]) -> bool:
    """Return whether times are dates or timestamps; JSON and CSV files may have them as text."""
    return any(isinstance(value, str | date) for value in values)


def instant(value: Any) -> float | None:
    """Return a time as a number for a chart: itself, or milliseconds since 1970 UTC; None if it is not known.

    Examples
    --------
    >>> instant(3), instant("1970-01-01T00:00:02Z"), instant(float("nan"))
    (3.0, 2000.0, None)
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise DataError(f"'{short(value)}' is not a time") from None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000
    return None if value is None or math.isnan(value) else float(value)


def event_time(answers: Answers, given: str | None = None) -> str:
    """Return the field of events that is their time: the one whose latest value is the time of the answer.

    The time of an answer with an open ending is later than all events; any field with times in its range then counts.
    """
    fields: dict[str, int] = {}
    for row in answers.table.to_pylist():
        start, end = instant(row.get("t_start")), instant(row["t"])
        for name, values in _field_values(events_of(row, answers.events)).items():
            times = [time for value in values if (time := _time_or_none(value)) is not None]
            if end is None or is_clock(values) != is_clock([row["t"]]) or not times or len(times) < len(values):
                continue
            low, high = min(times), max(times)
            if high <= end and (start is None or low >= start):
                fields[name] = fields.get(name, 0) + 1 + (high == end)
    if given is not None or "t" in fields or not fields:
        return given or "t"
    return max(fields, key=lambda name: fields[name])


def _field_values(events: Sequence[tuple[str, Row | None]]) -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = {}
    for _, event in events:
        for name, value in (event or {}).items():
            values.setdefault(name, []).append(value)
    return values


def _time_or_none(value: Any) -> float | None:
    if isinstance(value, str | date | int | float) and not isinstance(value, bool):
        try:
            return instant(value)
        except DataError:
            return None
    return None


def events_of(row: Row, columns: Sequence[str]) -> list[tuple[str, Row | None]]:
    """Return the events of an answer with their variables, in order; None for one that is missing.

    A run (`y+`) has its first and its last event.
    """
    events: list[tuple[str, Row | None]] = []
    for name in columns:
        value = row[name]
        if isinstance(value, list):
            events += [(name, event) for event in value]
        elif value is not None and {"count", "first", "last"} <= value.keys():
            ends = [value["first"], value["last"]] if (value["count"] or 0) > 1 else [value["first"]]
            events += [(name, event) for event in ends]
        else:
            events.append((name, value))
    return events
