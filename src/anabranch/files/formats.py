"""What the lines of CSV and JSON files hold: the cells of a block of lines, and the rows of one line.

`split` is fast, and leaves odd lines and undecided cells to `rows`, which is slow and exact. A file is in UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from anabranch.arrays import I64, U8, Bools
from anabranch.files.cells import boolean_of, date_of, double_of, integer_of, timestamp_of
from anabranch.files.csv_lines import QUOTE, Dialect, column_names
from anabranch.files.json_lines import Fields, NotJson, Value, read_line
from anabranch.files.kernel.bytes import ESCAPED, FRACTION, INTEGER, LITERAL, TEXT
from anabranch.files.kernel.csv_cells import split_csv
from anabranch.files.kernel.json_cells import split_json
from anabranch.files.reader import UnreadableFile
from anabranch.language.types import Type
from anabranch.text import safe, short

#: A row: a value for each column.
Row = tuple[Any, ...]


class Unreadable(Exception):
    """A line that holds no row of the stream; it counts as `n_rows` rows."""

    def __init__(self, n_rows: int = 1) -> None:
        super().__init__()
        self.n_rows = n_rows


class Split(NamedTuple):
    """The cells of a block; see `split_csv`."""

    n_lines: int
    lines: I64
    odd: Bools
    starts: I64
    ends: I64
    kinds: U8


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to read: their names in the files, and their types."""

    names: Sequence[str]
    types: Sequence[Type]


class LineFormat(Protocol):
    """How lines hold rows."""

    @property
    def columns(self) -> Columns:
        """The columns to read."""

    @property
    def has_header(self) -> bool:
        """Whether the first line of a file is a header."""

    @property
    def accepted(self) -> Mapping[Type, int]:
        """For each type, the kinds of cells that may hold it, as bits; other cells are decided by `rows`."""

    def check_header(self, line: str) -> None:
        """Raise `UnreadableFile` if the header does not fit."""

    def split(self, data: U8) -> Split:
        """The cells of all lines that are not blank."""

    def rows(self, line: str) -> list[Row]:
        """The rows of a line; raises `Unreadable`."""


def _bits(*kinds: int) -> int:
    return sum(1 << kind for kind in kinds)


# ---------------------------------------------------------------- CSV

_CSV_VALUES: dict[Type, Callable[[str], Any]] = {
    Type.STRING: str,
    Type.INTEGER: integer_of,
    Type.DOUBLE: double_of,
    Type.BOOLEAN: boolean_of,
    Type.TIMESTAMP: timestamp_of,
    Type.DATE: date_of,
}


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """CSV with a header; `header` has the names of all columns.

    As in Spark, lines and headers may have fewer or more cells, unless all columns are read.
    """

    columns: Columns
    header: Sequence[str]
    dialect: Dialect
    has_header: bool = True
    accepted: Mapping[Type, int] = field(default_factory=lambda: dict.fromkeys(_CSV_VALUES, _bits(TEXT)))

    def check_header(self, line: str) -> None:
        """Raise if a file has other columns where those to read should be; upper and lower case are the same."""
        found = column_names(self.dialect.cells(line))
        wanted = [self.header[index].lower() for index in self._indexes]
        at_place = [found[index].lower() for index in self._indexes if index < len(found)]
        if at_place != wanted or (self._is_fixed and len(found) != len(self.header)):
            raise UnreadableFile(f"has the columns {short(safe(', '.join(found)))}, not {', '.join(self.header)}")

    def split(self, data: U8) -> Split:
        """The cells of all lines that are not blank."""
        slots = np.full(len(self.header), -1, np.int64)
        slots[self._indexes] = np.arange(len(self.columns.names))
        separator = ord(self.dialect.separator)
        return Split(*split_csv(data, slots, len(self.columns.names), separator, self._is_fixed))

    def rows(self, line: str) -> list[Row]:
        """The row of a line; a cell that is empty or missing is NULL."""
        cells = self.dialect.cells(line)
        if self._is_fixed and len(cells) != len(self.header):
            raise Unreadable
        row = []
        for index, kind in zip(self._indexes, self.columns.types, strict=True):
            cell = cells[index] if index < len(cells) else ""
            value = _CSV_VALUES[kind](cell) if cell else None
            if value is None and cell:
                raise Unreadable
            row.append(value)
        return [tuple(row)]

    @property
    def _indexes(self) -> list[int]:
        return [self.header.index(name) for name in self.columns.names]

    @property
    def _is_fixed(self) -> bool:
        return len(self.columns.names) == len(self.header)


# ---------------------------------------------------------------- JSON lines

_JSON_KINDS = {
    Type.STRING: _bits(TEXT, ESCAPED, INTEGER, FRACTION, LITERAL),
    Type.INTEGER: _bits(INTEGER),
    Type.DOUBLE: _bits(INTEGER, FRACTION),
    Type.BOOLEAN: _bits(LITERAL),
    Type.TIMESTAMP: _bits(TEXT),
    Type.DATE: _bits(TEXT),
}


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """JSON lines. A field that a line lacks is NULL; of a repeated field, the last one counts."""

    columns: Columns
    has_header: bool = False
    accepted: Mapping[Type, int] = field(default_factory=lambda: _JSON_KINDS)

    def check_header(self, line: str) -> None:
        """There is no header."""

    def split(self, data: U8) -> Split:
        """The cells of all lines that are not blank."""
        names = [name.encode() for name in self.columns.names]
        ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
        return Split(*split_json(data, np.frombuffer(b"".join(names), np.uint8), ends))

    def rows(self, line: str) -> list[Row]:
        """The rows of a line: an object is a row, and an array has the rows of its elements."""
        try:
            elements = read_line(line)
        except (NotJson, RecursionError) as error:
            raise Unreadable from error
        objects = [element for element in elements if not isinstance(element, Value)]
        if len(objects) < len(elements):
            raise Unreadable
        try:
            return [self._row(fields) for fields in objects]
        except NotJson as error:
            raise Unreadable(len(objects)) from error

    def _row(self, fields: Fields) -> Row:
        row: dict[str, Any] = {}
        for name, value in fields:
            if name in self.columns.names:
                row[name] = _json_value(value, self.columns.types[self.columns.names.index(name)])
        return tuple(row.get(name) for name in self.columns.names)


def _json_value(value: Value, kind: Type) -> Any:
    if value.kind == "n":
        return None
    converted = _JSON_VALUES[kind](value)
    if converted is None:
        raise NotJson
    return converted


def _json_double(value: Value) -> float | None:
    names = ("NaN", "+INF", "+Infinity", "Infinity", "-INF", "-Infinity")
    if value.kind == "0":
        return float(int(value.text)) if len(value.text) < 300 else float(value.text)
    return float(value.text) if value.kind == "." or (value.kind == QUOTE and value.text in names) else None


def _json_boolean(value: Value) -> bool | None:
    return value.kind == "t" if value.kind in "tf" else None


def _json_timestamp(value: Value) -> int | None:
    """A time as text, or the seconds since 1970."""
    seconds = integer_of(value.text) if value.kind == "0" else None
    if seconds is not None:
        return seconds * 1_000_000 if abs(seconds) < 2**63 // 1_000_000 else None
    return timestamp_of(value.text) if value.kind == QUOTE else None


def _json_date(value: Value) -> int | None:
    """A date as text, or the days since 1970 as text."""
    if value.kind != QUOTE:
        return None
    days = date_of(value.text)
    number = integer_of(value.text) if days is None else None
    return number if number is not None and abs(number) < 2**31 else days


_JSON_VALUES: dict[Type, Callable[[Value], Any]] = {
    Type.STRING: lambda value: value.text,
    Type.INTEGER: lambda value: integer_of(value.text) if value.kind == "0" else None,
    Type.DOUBLE: _json_double,
    Type.BOOLEAN: _json_boolean,
    Type.TIMESTAMP: _json_timestamp,
    Type.DATE: _json_date,
}
