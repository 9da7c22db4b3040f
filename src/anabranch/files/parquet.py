"""Parquet files that the workers read themselves: the tasks of a run, and the rows of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.columns.conditions import ARROW_TYPES
from anabranch.columns.times import midnights
from anabranch.columns.types import can_read, type_of
from anabranch.errors import DataError
from anabranch.files.cells import date_of, double_of, integer_of
from anabranch.files.clusters import Interval, clustered_tasks
from anabranch.files.reader import ROWS_AT_ONCE, UnreadableFile, plain_path, readable
from anabranch.language.types import Type
from anabranch.transport.checks import QUARANTINE
from anabranch.transport.layout import Layout

_TASKS = pa.schema([("path", pa.string()), ("groups", pa.list_(pa.int32()))])


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Reads Parquet files (a `FileReader`).

    `types` are those of the source columns, by lower-case name, and `in_folders` the columns that are not in the files,
    but in the names of their folders (`day=2026-01-31/`).
    """

    types: Mapping[str, Type]
    in_folders: frozenset[str] = frozenset()

    def tasks(self, paths: Sequence[str], n_cores: int) -> pa.Table:
        """Tasks of consecutive row groups."""
        return tasks_of(paths, n_cores)

    def clustered_tasks(self, paths: Sequence[str], column: str, n_tasks: int) -> list[pa.Table] | None:
        """Tasks with all rows of their values, if statistics show that the files are clustered."""
        return None if column.lower() in self.in_folders else clustered_tasks(paths, column, n_tasks)

    def tables(self, task: dict[str, Any], layout: Layout) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The rows of a task; text columns as codes. No row is unreadable."""
        path = plain_path(task["path"])
        named = self._folder_values(path)
        interval = Interval(task["column"], task["above"], task["last"]) if "column" in task else None
        for table in read_tables(path, task.get("groups"), layout, self.types, named, interval):
            yield table, QUARANTINE.empty_table()

    def _folder_values(self, path: str) -> dict[str, pa.Scalar]:
        """The values of the columns that are in the names of folders."""
        texts = dict(folder.split("=", 1) for folder in path.split("/")[:-1] if "=" in folder)
        texts = {name.lower(): unquote(text) for name, text in texts.items()}
        values = {}
        for name in self.in_folders:
            kind = self.types[name]
            text = texts.get(name)
            value = None if text in (None, _NULL_FOLDER) else FOLDER_VALUES[kind](text)
            if text is None:
                raise UnreadableFile(f"is in no folder {name}=..., which has the column {name}")
            if value is None and text != _NULL_FOLDER:
                raise UnreadableFile(f"is in the folder {name}={text}, which is no {kind.value}")
            values[name] = pa.scalar(value, ARROW_TYPES[kind])
        return values


#: How the name of a folder becomes a value, for the types that do not depend on settings of Spark.
FOLDER_VALUES: dict[Type, Callable[[str], Any]] = {
    Type.STRING: str,
    Type.INTEGER: integer_of,
    Type.DOUBLE: double_of,
    Type.DATE: date_of,
}
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def tasks_of(paths: Sequence[str], n_cores: int) -> pa.Table:
    """Tasks of consecutive row groups with about the same number of rows, several per core."""
    groups: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            with readable():
                metadata = pq.read_metadata(path)
        except UnreadableFile as error:
            raise DataError(f"{path} {error}") from error
        groups += [(path, group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)]
    share = min(ROWS_AT_ONCE, max(1, sum(rows for _, _, rows in groups) // (2 * n_cores)))
    tasks: list[tuple[str, list[int]]] = []
    filled = share
    for path, group, rows in groups:
        if filled >= share or tasks[-1][0] != path:
            tasks.append((path, []))
            filled = 0
        tasks[-1][1].append(group)
        filled += rows
    return pa.table({"path": [path for path, _ in tasks], "groups": [chosen for _, chosen in tasks]}, schema=_TASKS)


def read_tables(
    path: str,
    groups: list[int] | None,
    layout: Layout,
    types: Mapping[str, Type],
    named: Mapping[str, pa.Scalar],
    interval: Interval | None = None,
) -> Iterator[pa.Table]:
    """The rows of some row groups, or of all, in tables of at most about ROWS_AT_ONCE rows; text columns as codes.

    `types` are those of the source columns, by lower-case name, and `named` the values of columns that the file lacks.
    With an interval, only the rows with such values. Raises `UnreadableFile`, perhaps after some tables.
    """
    with readable():
        columns = _source_columns(pq.read_schema(path), layout, types, named)
        coded = [name for name in columns if name.lower() in layout.coded_sources]
        with pq.ParquetFile(path, read_dictionary=coded) as file:
            metadata = file.metadata
            chosen: list[int] = []
            rows = 0
            for group in range(metadata.num_row_groups) if groups is None else groups:
                chosen.append(group)
                rows += metadata.row_group(group).num_rows
                if rows >= ROWS_AT_ONCE:
                    yield _read_groups(file, chosen, columns, layout, named, interval)
                    chosen, rows = [], 0
            if chosen:
                yield _read_groups(file, chosen, columns, layout, named, interval)


def _source_columns(
    schema: pa.Schema, layout: Layout, types: Mapping[str, Type], named: Mapping[str, pa.Scalar]
) -> list[str]:
    """The file's spelling of the columns to read; each must have the type that the stream had at first."""
    spelled = {field.name.lower(): field for field in schema}
    fields = []
    for name in layout.source_columns:
        if name.lower() in named:
            continue
        field = spelled.get(name.lower())
        if field is None:
            raise UnreadableFile(f"has no column {name}; it has {', '.join(schema.names)}")
        found, wanted = type_of(field.type), types.get(name.lower(), Type.UNKNOWN)
        if not can_read(found, wanted):
            raise UnreadableFile(f"has a column {field.name} of type {found.value}, not {wanted.value}")
        fields.append(field.name)
    return fields


def _read_groups(
    file: pq.ParquetFile,
    groups: list[int],
    columns: list[str],
    layout: Layout,
    named: Mapping[str, pa.Scalar],
    interval: Interval | None,
) -> pa.Table:
    table = file.read_row_groups(groups, columns=columns).select(columns)
    _check_codes(table)
    for index, name in enumerate(layout.source_columns):
        if name.lower() in named:
            table = table.add_column(index, name, pa.repeat(named[name.lower()], table.num_rows))
    table = table.rename_columns(layout.source_columns)
    table = table if interval is None else interval.rows_of(table)
    return table if layout.preparation is not None else midnights(table, layout.times)


def _check_codes(table: pa.Table) -> None:
    """Raise if a code is not in its dictionary: Arrow does not check the codes of a damaged file."""
    for chunk in (chunk for column in table.columns for chunk in column.chunks if pa.types.is_dictionary(column.type)):
        codes = pc.min_max(chunk.indices).as_py()
        if codes["min"] is not None and not 0 <= codes["min"] <= codes["max"] < len(chunk.dictionary):
            raise UnreadableFile("cannot be read: a code is not in the dictionary of its column")
