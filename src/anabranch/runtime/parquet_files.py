"""Parquet files that the workers read themselves: the tasks of a run, and the rows of a task.

A file that cannot be read does not stop a stream: it is quarantined with its path. Errors that may pass, such as a
missing permission or a lost connection, do stop it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from errno import ENOENT

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.columns.times import midnights
from anabranch.columns.types import can_read, type_of
from anabranch.errors import DataError
from anabranch.language.types import Type
from anabranch.transport.layout import Layout

#: A worker packs at most about this many rows at once, so its memory does not grow with the partition.
ROWS_AT_ONCE = 2_000_000

_TASKS = pa.schema([("path", pa.string()), ("groups", pa.list_(pa.int32()))])


class UnreadableFile(Exception):
    """A file that no later attempt can read: the reason, to be read after the name of the file."""


def tasks_of(paths: Sequence[str], n_cores: int) -> pa.Table:
    """Tasks of consecutive row groups with about the same number of rows, several per core."""
    groups: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            metadata = _readable(lambda path=path: pq.read_metadata(path))
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


def read_tables(path: str, groups: list[int] | None, layout: Layout, types: Mapping[str, Type]) -> Iterator[pa.Table]:
    """The rows of some row groups, or of all, in tables of at most about ROWS_AT_ONCE rows; text columns as codes.

    `types` are those of the source columns, by lower-case name. Raises `UnreadableFile`, perhaps after some tables.
    """
    path = path.removeprefix("file://").removeprefix("file:")
    columns = _source_columns(_readable(lambda: pq.read_schema(path)), layout, types)
    coded = [name for name in columns if name.lower() in layout.coded_sources]
    with _readable(lambda: pq.ParquetFile(path, read_dictionary=coded)) as file:
        metadata = file.metadata
        chosen: list[int] = []
        rows = 0
        for group in range(metadata.num_row_groups) if groups is None else groups:
            chosen.append(group)
            rows += metadata.row_group(group).num_rows
            if rows >= ROWS_AT_ONCE:
                yield _read_groups(file, chosen, columns, layout)
                chosen, rows = [], 0
        if chosen:
            yield _read_groups(file, chosen, columns, layout)


def _source_columns(schema: pa.Schema, layout: Layout, types: Mapping[str, Type]) -> list[str]:
    """The file's spelling of the columns to read; each must have the type that the stream had at first."""
    spelled = {field.name.lower(): field for field in schema}
    fields = []
    for name in layout.source_columns:
        field = spelled.get(name.lower())
        if field is None:
            raise UnreadableFile(f"has no column {name}; it has {', '.join(schema.names)}")
        found, wanted = type_of(field.type), types.get(name.lower(), Type.UNKNOWN)
        if not can_read(found, wanted):
            raise UnreadableFile(f"has a column {field.name} of type {found.value}, not {wanted.value}")
        fields.append(field.name)
    return fields


def _read_groups(file: pq.ParquetFile, groups: list[int], columns: list[str], layout: Layout) -> pa.Table:
    table = _readable(lambda: file.read_row_groups(groups, columns=columns)).select(columns)
    if layout.preparation is not None:
        return table.rename_columns(layout.source_columns)
    return midnights(table.rename_columns(layout.columns), layout.times)


def _readable(read):
    """The result of a function that reads a file; a damaged or missing file is an `UnreadableFile`."""
    try:
        return read()
    except pa.ArrowException as error:
        raise UnreadableFile(f"cannot be read: {str(error).splitlines()[0]}") from error
    except OSError as error:
        # Arrow reports damaged pages as an OSError without a number.
        if error.errno not in (None, ENOENT):
            raise
        raise UnreadableFile(f"cannot be read: {str(error).splitlines()[0]}") from error
