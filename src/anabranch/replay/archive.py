"""Files of rows with a time, in blocks: a file that is sorted by time may be larger than the memory."""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from anabranch.arrays import F64
from anabranch.binding.file_options import extension_format
from anabranch.columns.json_rows import json_rows
from anabranch.columns.local_times import WrittenTimes
from anabranch.drafting.roles import time_of
from anabranch.drafting.sample import Column, Sample, read_sample
from anabranch.errors import AnabranchError
from anabranch.language.types import Type
from anabranch.machine import usable_memory

#: Rows of a block of Parquet or JSON lines, and bytes of a block of CSV.
BLOCK_ROWS, BLOCK_BYTES = 20_000, 1 << 20

#: The share of the memory that the rows of a file may take if they have to be sorted.
SORTABLE_SHARE = 0.25

_LINE = "line"


@dataclass(frozen=True, slots=True)
class Block:
    """Rows and their times, in seconds."""

    times: F64
    rows: pa.Table

    def part(self, begin: int, end: int) -> Block:
        """The rows from `begin` to `end`."""
        return Block(self.times[begin:end], self.rows.slice(begin, end - begin))


@dataclass(frozen=True, slots=True)
class Survey:
    """The rows with a time, those without one, whether the file is in order of time, and how long it lasts."""

    n_rows: int
    n_without_time: int
    is_sorted: bool
    seconds: float


class Archive(ABC):
    """A file; how it is read, and how its rows are written as files and messages."""

    def __init__(self, path: str, sample: Sample, time: Column) -> None:
        self.path = path
        self.time = time.name
        self._sample = sample
        self._time = time

    #: The extension of files with rows of this archive.
    suffix: str

    @abstractmethod
    def tables(self, only_time: bool) -> Iterator[pa.Table]:
        """The rows in blocks; with `only_time`, other columns may be missing."""

    @abstractmethod
    def column(self, rows: pa.Table, name: str) -> pa.Array:
        """A column of the rows."""

    @abstractmethod
    def file_text(self, rows: pa.Table) -> bytes:
        """The rows as a file of the format of the archive."""

    @abstractmethod
    def messages(self, rows: pa.Table) -> list[bytes]:
        """The rows as JSON objects."""

    def keys(self, rows: pa.Table, name: str) -> list[bytes | None]:
        """The values of a column as keys of messages."""
        values = self.column(rows, name).to_pylist()
        return [None if value is None else str(value).encode() for value in values]

    def blocks(self) -> Iterator[Block]:
        """The rows that have a time, in order of time.

        Raises
        ------
        AnabranchError
            If they have to be sorted, and are too large for it.
        """
        if self.survey.is_sorted:
            yield from self._as_stored()
            return
        self._refuse_too_large()
        stored = list(self._as_stored())
        times, rows = np.concatenate([block.times for block in stored]), pa.concat_tables(b.rows for b in stored)
        order = np.argsort(times, kind="stable")
        for begin in range(0, len(order), BLOCK_ROWS):
            chosen = order[begin : begin + BLOCK_ROWS]
            yield Block(times[chosen], rows.take(chosen))

    @cached_property
    def survey(self) -> Survey:
        """How many rows there are, and in which order; all times are read for it."""
        n_rows = n_without = 0
        latest, is_sorted = -np.inf, True
        first, last = np.inf, -np.inf
        for table in self.tables(only_time=True):
            times = self._times(table)
            known = times[~np.isnan(times)]
            n_rows, n_without = n_rows + len(known), n_without + len(times) - len(known)
            if len(known):
                is_sorted = is_sorted and known[0] >= latest and bool((np.diff(known) >= 0).all())
                latest = known[-1]
                first, last = min(first, known.min()), max(last, known.max())
        if n_without and not n_rows:
            raise AnabranchError(f"no row of {self.path} has a time in {self.time}; name another column with --time")
        return Survey(n_rows, n_without, bool(is_sorted), float(last - first) if n_rows else 0.0)

    def _as_stored(self) -> Iterator[Block]:
        for table in self.tables(only_time=False):
            times = self._times(table)
            known = ~np.isnan(times)
            if not known.all():
                times, table = times[known], table.filter(pa.array(known))
            if len(times):
                yield Block(times, table)

    def _times(self, rows: pa.Table) -> F64:
        """The times in seconds, NaN where a row has none."""
        column = self.column(rows, self.time)
        if self._time.type is Type.TIMESTAMP:
            seconds = _instants(column, self._time.pattern)
        elif pa.types.is_string(column.type):
            seconds = _numbers(column)
            # Texts, because some of the first rows have no time: others may have one.
            if self._time.type is Type.STRING:
                seconds = pc.coalesce(seconds, _instants(column, None))
        else:
            seconds = pc.cast(column, pa.float64(), safe=False)
        return seconds.to_numpy(zero_copy_only=False).astype(np.float64)

    def _refuse_too_large(self) -> None:
        first = next(self.tables(only_time=False))
        needed = first.nbytes / max(first.num_rows, 1) * self.survey.n_rows
        if needed > SORTABLE_SHARE * usable_memory():
            raise AnabranchError(
                f"{self.path} is not sorted by {self.time}, and {needed / 1e9:.1f} GB of rows are too many to sort in "
                f"memory; sort the file first"
            )


def _instants(column: pa.Array, pattern: str | None) -> pa.Array:
    """Timestamps or written times as seconds, NULL where there is none."""
    instants, _ = WrittenTimes(pattern).instants("", column)
    return pc.divide(pc.cast(instants.cast(pa.int64()), pa.float64()), 1e6)


def _numbers(texts: pa.Array) -> pa.Array:
    """Written numbers, NULL where a text is none."""
    trimmed = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(trimmed, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    return pc.cast(pc.if_else(is_number, trimmed, pa.scalar(None, pa.string())), pa.float64())


class _CsvArchive(Archive):
    suffix = "csv"

    @property
    def _separator(self) -> str:
        return self._sample.options.get("sep", ",").replace("\\t", "\t")

    def tables(self, only_time: bool) -> Iterator[pa.Table]:
        parsed = pacsv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
        with self._open(parsed, pacsv.ConvertOptions()) as reader:
            names = reader.schema.names
        # Cells stay as they are written; an empty cell in quotes is no NULL.
        texts = pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=False, include_columns=[self.time] if only_time else [],
        )  # fmt: skip
        with self._open(parsed, texts) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _open(self, parsed: pacsv.ParseOptions, converted: pacsv.ConvertOptions) -> pacsv.CSVStreamingReader:
        source = pa.input_stream(self.path, compression="detect")
        return pacsv.open_csv(source, pacsv.ReadOptions(block_size=BLOCK_BYTES), parsed, converted)

    def column(self, rows: pa.Table, name: str) -> pa.Array:
        return rows[name].combine_chunks()

    def file_text(self, rows: pa.Table) -> bytes:
        header, written = io.StringIO(), io.BytesIO()
        csv.writer(header, delimiter=self._separator, lineterminator="\n").writerow(rows.column_names)
        written.write(header.getvalue().encode())
        style = "needed" if any(map(_needs_quotes(self._separator), rows.columns)) else "none"
        options = pacsv.WriteOptions(include_header=False, delimiter=self._separator, quoting_style=style)
        pacsv.write_csv(rows, written, options)
        return written.getvalue()

    def messages(self, rows: pa.Table) -> list[bytes]:
        columns = [_typed(rows[name], self._sample.columns.get(name)) for name in rows.column_names]
        return [text.encode() for text in json_rows(pa.table(columns, names=rows.column_names))]


def _needs_quotes(separator: str) -> Any:
    pattern = f'["\\r\\n\\{separator}]|^$|^\\s|\\s$'
    return lambda column: pc.any(pc.match_substring_regex(column, pattern)).as_py()


_ARROW_TYPES = {Type.INTEGER: pa.int64(), Type.DOUBLE: pa.float64(), Type.BOOLEAN: pa.bool_()}


def _typed(texts: pa.ChunkedArray, column: Column | None) -> pa.ChunkedArray:
    """Texts of a CSV file as the numbers that the first rows of the file suggest; texts if one of them is none."""
    kind = _ARROW_TYPES.get(column.type) if column is not None else None
    if kind is None:
        return texts
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return texts


class _JsonArchive(Archive):
    suffix = "jsonl"

    def tables(self, only_time: bool) -> Iterator[pa.Table]:
        with pa.input_stream(self.path, compression="detect") as source, io.BufferedReader(source) as lines:
            block: list[bytes] = []
            for line in lines:
                if line.strip():
                    block.append(line.strip())
                if len(block) == BLOCK_ROWS:
                    yield pa.table({_LINE: block})
                    block = []
            if block:
                yield pa.table({_LINE: block})

    def column(self, rows: pa.Table, name: str) -> pa.Array:
        values = [_field(line, name) for line in rows[_LINE].to_pylist()]
        if self._time.type is not Type.TIMESTAMP and name == self.time:
            return pa.array([v if isinstance(v, int | float) else None for v in values], pa.float64())
        return pa.array([None if value is None else str(value) for value in values], pa.string())

    def file_text(self, rows: pa.Table) -> bytes:
        return b"".join(line + b"\n" for line in self.messages(rows))

    def messages(self, rows: pa.Table) -> list[bytes]:
        return rows[_LINE].to_pylist()


def _field(line: bytes, name: str) -> Any:
    """A field of a JSON object; None if there is none, or no object."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row.get(name) if isinstance(row, dict) else None


class _ParquetArchive(Archive):
    suffix = "parquet"

    def tables(self, only_time: bool) -> Iterator[pa.Table]:
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(BLOCK_ROWS, columns=[self.time] if only_time else None):
                yield pa.Table.from_batches([batch])

    def column(self, rows: pa.Table, name: str) -> pa.Array:
        return rows[name].combine_chunks()

    def file_text(self, rows: pa.Table) -> bytes:
        written = io.BytesIO()
        pq.write_table(rows, written)
        return written.getvalue()

    def messages(self, rows: pa.Table) -> list[bytes]:
        return [text.encode() for text in json_rows(rows)]


_ARCHIVES: dict[str | None, type[Archive]] = {"csv": _CsvArchive, "json": _JsonArchive, "parquet": _ParquetArchive}


def open_archive(path: str, time: str | None, columns: Sequence[str] = ()) -> Archive:
    """A CSV, JSON lines or Parquet file; its time column is guessed if it is not named.

    Raises
    ------
    AnabranchError
        If the file cannot be read, it has none of the named `columns`, or no column or several look like a time.
    """
    kind = _ARCHIVES.get(extension_format(path))
    if kind is None:
        raise AnabranchError(f"{path} is not a .csv, .json, .jsonl or .parquet file")
    sample = read_sample(path)
    for name in columns:
        if name not in sample.columns:
            raise AnabranchError(f"there is no column {name}; the columns are {', '.join(sample.columns)}")
    return kind(path, sample, time_of(sample, time))
