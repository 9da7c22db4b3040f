"""The rows of text files as Arrow tables, and the lines that hold none.

Compiled loops read plain lines and cells; Python reads the others one by one. The rows that Python has read are the
last ones of their block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, U8, Bools
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.times import midnights
from anabranch.files.blocks import blocks_of, is_readable, tasks_of, without_mark
from anabranch.files.formats import LineFormat, Row, Split, Unreadable
from anabranch.files.json_lines import unescape
from anabranch.files.kernel import numbers, times
from anabranch.files.kernel.bytes import EMPTY, ESCAPED, INTEGER, KNOWN, LONG, NULL, UNDECIDED
from anabranch.files.kernel.texts import gather_texts
from anabranch.files.reader import ROWS_AT_ONCE, UnreadableFile, plain_path, readable
from anabranch.language.types import Type
from anabranch.transport.checks import QUARANTINE, UNREADABLE, quarantine
from anabranch.transport.layout import Layout

#: Why a line is quarantined that is no text.
NOT_UTF8 = "the line is not valid UTF-8"

_PARSERS: dict[Type, Callable[[U8, I64, I64, U8], Any]] = {
    Type.INTEGER: numbers.parse_integers,
    Type.DOUBLE: numbers.parse_doubles,
    Type.BOOLEAN: numbers.parse_booleans,
    Type.TIMESTAMP: times.parse_timestamps,
    Type.DATE: times.parse_days,
}

#: The types of columns that can be read.
READABLE_TYPES = frozenset({Type.STRING, *_PARSERS})


@dataclass(frozen=True, slots=True)
class TextReader:
    """Reads CSV or JSON-lines files (a `FileReader`)."""

    lines: LineFormat

    def tasks(self, paths: Sequence[str], n_cores: int) -> pa.Table:
        """Tasks of consecutive lines."""
        return tasks_of(paths, n_cores)

    def clustered_tasks(self, paths: Sequence[str], column: str, n_tasks: int) -> list[pa.Table] | None:
        """None: text files have no statistics."""
        return None

    def tables(self, task: dict[str, Any], layout: Layout) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The rows of a task, and those that cannot be read, in tables of at most about ROWS_AT_ONCE rows."""
        held: list[tuple[pa.Table, pa.Table]] = []
        for data in self._blocks(plain_path(task["path"]), task.get("start"), task.get("stop")):
            if data:
                held.append(read_block(data, self.lines, layout.name))
            if sum(rows.num_rows for rows, _ in held) >= ROWS_AT_ONCE:
                yield joined(held, layout)
                held = []
        if held:
            yield joined(held, layout)

    def _blocks(self, path: str, start: int | None, stop: int | None) -> Iterator[bytes]:
        """The blocks of a task without the header, which is checked."""
        if not is_readable(path):
            raise UnreadableFile("is compressed in a way that workers cannot read")
        with readable():
            blocks = blocks_of(path, start, stop)
            if not start:
                first = without_mark(next(blocks, b""))
                if self.lines.has_header:
                    while first and not first.strip(_BLANK):
                        first = next(blocks, b"")
                    first = self._without_header(first)
                yield first
            yield from blocks

    def _without_header(self, data: bytes) -> bytes:
        """The lines after the header, which is the first line that is not blank."""
        header = _HEADER.match(data)
        if header is None or not header[1]:
            return b""
        self.lines.check_header(header[1].decode(errors="replace"))
        return data[header.end() :]


#: The bytes of which blank lines consist.
_BLANK = bytes(range(0x21))

#: Blank lines, and the first line that is not blank.
_HEADER = re.compile(rb"(?:[\x00-\x20]*[\r\n])?([^\r\n]*)(?:\r\n|\r|\n)?")


def joined(parts: Sequence[tuple[pa.Table, pa.Table]], layout: Layout) -> tuple[pa.Table, pa.Table]:
    """The rows of several blocks with the columns of the layout; text columns as codes, as from Parquet files."""
    table = pa.concat_tables([rows for rows, _ in parts])
    for index, name in enumerate(layout.source_columns):
        if name.lower() in layout.coded_sources and pa.types.is_string(table.schema.field(index).type):
            table = table.set_column(index, name, table.column(index).dictionary_encode())
    table = table.rename_columns(layout.source_columns)
    table = table if layout.preparation is not None else midnights(table, layout.times)
    return table, pa.concat_tables([rejected for _, rejected in parts])


def read_block(data: bytes, lines: LineFormat, stream: str) -> tuple[pa.Table, pa.Table]:
    """The rows of a block of whole lines, and a QUARANTINE table of the lines that cannot be read."""
    data = data if data.endswith(b"\n") else data + b"\n"
    table, split, undecided = plain_rows(data, lines)
    if not undecided.any():
        return table, QUARANTINE.empty_table()
    rows, rejected = _read_one_by_one(data, split, np.flatnonzero(undecided), lines, stream)
    return pa.concat_tables([table.filter(pa.array(~undecided)), table_of(rows, table.schema)]), rejected


def plain_rows(data: bytes, lines: LineFormat) -> tuple[pa.Table, Split, Bools]:
    """A row for each line of a block that is not blank, its lines, and which of the rows are not known."""
    view = np.frombuffer(data, np.uint8)
    split = lines.split(view)
    n_lines = split.n_lines
    undecided = split.odd[:n_lines] | _not_text(data, split)
    columns = []
    for index, kind in enumerate(lines.columns.types):
        cells = (view, split.starts[index, :n_lines], split.ends[index, :n_lines], split.kinds[index, :n_lines])
        if kind is Type.STRING:
            columns.append(_texts(*cells))
        else:
            column, unknown = _parsed(kind, *cells, lines.accepted[kind])
            columns.append(column)
            undecided |= unknown
    schema = pa.schema([*zip(lines.columns.names, map(ARROW_TYPES.get, lines.columns.types), strict=True)])
    return pa.table(columns, schema=schema), split, undecided


def _not_text(data: bytes, split: Split) -> Bools:
    """The lines that are not valid UTF-8."""
    found = np.zeros(split.n_lines, np.bool_)
    try:
        data.decode()
    except UnicodeDecodeError:
        for line, (start, stop) in enumerate(split.lines[:, : split.n_lines].T):
            found[line] = _decoded(data[start:stop]) is None
    return found


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _texts(data: U8, starts: I64, ends: I64, kinds: U8) -> pa.Array:
    offsets, texts = gather_texts(data, starts, ends, kinds)
    known = kinds != NULL
    validity = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    column = pa.StringArray.from_buffers(len(kinds), pa.py_buffer(offsets), pa.py_buffer(texts), validity)
    escaped = kinds == ESCAPED
    if not escaped.any():
        return column
    texts_without = [unescape(_lenient(cell)) for cell in column.filter(pa.array(escaped))]
    return pc.replace_with_mask(column, pa.array(escaped), pa.array(texts_without, pa.string()))


def _lenient(cell: pa.StringScalar) -> str:
    """The text of a cell, which may be one of a line that is not valid UTF-8."""
    return bytes(cell.as_buffer()).decode(errors="replace")


def _parsed(kind: Type, data: U8, starts: I64, ends: I64, kinds: U8, accepted: int) -> tuple[pa.Array, Bools]:
    """The values of cells, and which of them are not known."""
    states = np.where((accepted >> kinds) & 1 == 1, np.uint8(KNOWN), np.uint8(UNDECIDED))
    null = kinds == NULL
    states[null] = EMPTY
    values = _PARSERS[kind](data, starts, ends, states)
    if kind is Type.DOUBLE and accepted >> INTEGER & 1:
        np.add(values, 0.0, out=values, where=kinds == INTEGER)  # in JSON, the integer -0 is 0
    long = states == LONG
    if long.any():
        cells = np.flatnonzero(long)
        offsets, texts = gather_texts(data, starts[cells], ends[cells], kinds[cells])
        numbers = pa.StringArray.from_buffers(len(cells), pa.py_buffer(offsets), pa.py_buffer(texts))
        values[cells] = pc.cast(numbers, pa.float64()).to_numpy()
    column = pa.array(values, mask=null if null.any() else None)
    return column.view(ARROW_TYPES[kind]) if kind in (Type.TIMESTAMP, Type.DATE) else column, states == UNDECIDED


def _read_one_by_one(
    data: bytes, split: Split, numbers: I64, lines: LineFormat, stream: str
) -> tuple[list[Row], pa.Table]:
    rows: list[Row] = []
    unreadable: list[dict[str, object]] = []
    not_text: list[dict[str, object]] = []
    for start, stop in split.lines[:, numbers].T:
        line = _decoded(data[start:stop])
        if line is None:
            not_text.append({"text": data[start:stop].decode(errors="replace")})
            continue
        try:
            rows += lines.rows(line)
        except Unreadable as error:
            unreadable += [{"text": line}] * error.n_rows
    rejected = [quarantine(stream, UNREADABLE, unreadable), quarantine(stream, NOT_UTF8, not_text)]
    return rows, pa.concat_tables(rejected)


def table_of(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Rows as a table."""
    columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)]
    return pa.table(columns, schema=schema)
