"""Removes a share of the events of a file by a seed, and keeps them as ground truth: `anabranch holdout`."""

from __future__ import annotations

import csv
import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from anabranch.arrays import I64, Bools
from anabranch.errors import DataError
from anabranch.evaluation.columns import condition
from anabranch.evaluation.files import format_of, is_compressed


class Rows(ABC):
    """The rows of a file. What is not removed is written as it was read."""

    path: Path

    @property
    @abstractmethod
    def columns(self) -> Sequence[str]:
        """The names of the columns."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def texts(self, column: str) -> list[str | None]:
        """The values of a column as text; None for NULL."""

    @abstractmethod
    def take(self, chosen: Bools) -> Rows:
        """The chosen rows."""

    @abstractmethod
    def clear(self, column: str, chosen: Bools) -> Rows:
        """The rows, with NULL in a column of the chosen ones."""

    @abstractmethod
    def write(self, path: Path) -> None:
        """Write the rows to a file of the same format."""

    def require(self, column: str) -> str:
        """The name of a column as the file spells it."""
        spelled = next((name for name in self.columns if name.lower() == column.lower()), None)
        if spelled is None:
            raise DataError(f"{self.path}: there is no column {column}; the columns are: {', '.join(self.columns)}")
        return spelled


@dataclass(frozen=True)
class ArrowRows(Rows):
    """The rows of a Parquet file, or of a CSV file, in which every cell stays text."""

    path: Path
    table: pa.Table
    is_csv: bool

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        names: list[str] = self.table.column_names
        return names

    def __len__(self) -> int:
        rows: int = self.table.num_rows
        return rows

    def texts(self, column: str) -> list[str | None]:
        """The values of a column as text; None for NULL."""
        values: list[str | None] = pc.cast(self.table[column], pa.string()).to_pylist()
        return values

    def take(self, chosen: Bools) -> Rows:
        """The chosen rows."""
        return ArrowRows(self.path, self.table.filter(pa.array(chosen)), self.is_csv)

    def clear(self, column: str, chosen: Bools) -> Rows:
        """The rows, with NULL in a column of the chosen ones."""
        index = self.table.column_names.index(column)
        values = pc.if_else(pa.array(chosen), pa.scalar(None, self.table[column].type), self.table[column])
        return ArrowRows(self.path, self.table.set_column(index, self.table.field(index), values), self.is_csv)

    def write(self, path: Path) -> None:
        """Write the rows to a file of the same format."""
        if self.is_csv:
            # Arrow would put every text in quotes.
            with _writing(path) as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(self.columns)
                writer.writerows(zip(*(column.to_pylist() for column in self.table.columns), strict=True))
        else:
            pq.write_table(self.table, path)


@dataclass(frozen=True)
class JsonRows(Rows):
    """The rows of a file of JSON lines."""

    path: Path
    rows: Sequence[dict[str, Any]]

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, column: str) -> list[str | None]:
        """The values of a column as text; None for NULL."""
        values = (row.get(column) for row in self.rows)
        return [value if isinstance(value, str | None) else json.dumps(value) for value in values]

    def take(self, chosen: Bools) -> Rows:
        """The chosen rows."""
        return JsonRows(self.path, [row for row, kept in zip(self.rows, chosen, strict=True) if kept])

    def clear(self, column: str, chosen: Bools) -> Rows:
        """The rows, with NULL in a column of the chosen ones."""
        pairs = zip(self.rows, chosen, strict=True)
        return JsonRows(self.path, [{**row, column: None} if cleared else row for row, cleared in pairs])

    def write(self, path: Path) -> None:
        """Write the rows to a file of the same format."""
        with _writing(path) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)


@contextmanager
def _writing(path: Path) -> Iterator[TextIO]:
    """A text file that is compressed if its name ends in .gz; without the time, so that equal rows give equal files."""
    if not is_compressed(path):
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    with path.open("wb") as raw, GzipFile("", "wb", fileobj=raw, mtime=0) as compressed:
        with TextIOWrapper(compressed, encoding="utf-8", newline="") as text:
            yield text


def read_rows(path: Path) -> Rows:
    """Read a Parquet, CSV or JSON lines file."""
    file_format = format_of(path)
    try:
        if file_format == "parquet":
            return ArrowRows(path, pq.ParquetFile(path).read(), is_csv=False)
        if file_format == "csv":
            return ArrowRows(path, _text_table(path), is_csv=True)
        text = gzip.decompress(path.read_bytes()) if is_compressed(path) else path.read_bytes()
        lines = text.decode("utf-8").splitlines()
        return JsonRows(path, [_object(path, number, line) for number, line in enumerate(lines, 1) if line.strip()])
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None


def _text_table(path: Path) -> pa.Table:
    """A CSV file with all cells as text; an empty cell is NULL."""
    with pa_csv.open_csv(path) as reader:
        types = dict.fromkeys(reader.schema.names, pa.string())
    options = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    return pa_csv.read_csv(path, convert_options=options)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise DataError(f"{path}:{number}: the line is not a JSON object")
    return row


# ---------------------------------------------------------------- choosing


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The file without the held-out events, these events, and how many there were and could have been."""

    kept: Rows
    truth: Rows
    chosen: int
    candidates: int


def hold_out(
    rows: Rows,
    share: float,
    *,
    seed: int = 0,
    where: Sequence[str] = (),
    ends: str | None = None,
    by: Sequence[str] = (),
    clear: Sequence[str] = (),
) -> HeldOut:
    """Remove a share of the events of a file.

    Parameters
    ----------
    rows : Rows
        The file.
    share : float
        Above 0 and below 1; the number of events is rounded.
    seed : int
        The same file, share and seed give the same events.
    where : sequence of str
        `COLUMN=VALUE` or `COLUMN!=VALUE`: only rows for which all of these hold. An empty value is NULL.
    ends : str, optional
        The column with the number of an event in its interval: only ends, which have even numbers, can be held out.
    by : sequence of str
        Draw keys instead of rows: all such rows of a drawn key are held out.
    clear : sequence of str
        Set these columns to NULL instead of removing rows. Each column is drawn separately among its known values.

    Returns
    -------
    HeldOut
        The held-out rows are as they were.
    """
    allowed = _allowed(rows, where, ends)
    generator = np.random.default_rng(seed)
    keys = _key_codes(rows, [rows.require(name) for name in by])
    columns = [rows.require(name) for name in clear]
    known = [allowed & np.array([text is not None for text in rows.texts(name)]) for name in columns] or [allowed]
    drawn = [_drawn(candidates, keys, share, generator) for candidates in known]
    chosen, candidates = (sum(int(_units(mask, keys)) for mask in masks) for masks in (drawn, known))
    if not chosen:
        raise DataError(f"{rows.path}: {share:g} of {candidates:,} is no event; use a larger share, or another --where")
    truth = rows.take(np.logical_or.reduce(drawn))
    if not columns:
        return HeldOut(rows.take(~drawn[0]), truth, chosen, candidates)
    kept = rows
    for name, mask in zip(columns, drawn, strict=True):
        kept = kept.clear(name, mask)
    return HeldOut(kept, truth, chosen, candidates)


def _allowed(rows: Rows, where: Sequence[str], ends: str | None) -> Bools:
    """Which rows can be held out."""
    allowed = np.ones(len(rows), dtype=np.bool_)
    for name, value, differs in map(condition, where):
        texts = rows.texts(rows.require(name))
        allowed &= np.array([(text == value) != differs for text in texts], dtype=np.bool_)
    if ends is not None:
        name = rows.require(ends)
        allowed &= np.array([_is_even(rows, name, text) for text in rows.texts(name)], dtype=np.bool_)
    return allowed


def _is_even(rows: Rows, column: str, text: str | None) -> bool:
    try:
        return text is not None and float(text) % 2 == 0
    except ValueError:
        raise DataError(f"{rows.path}: {column} is {text!r}, not the number of an event") from None


def _key_codes(rows: Rows, columns: Sequence[str]) -> I64:
    """The number of the key of each row, in the order of the keys' texts; of the row itself without columns."""
    if not columns:
        return np.arange(len(rows))
    keys = [tuple(text or "" for text in texts) for texts in zip(*map(rows.texts, columns), strict=True)]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def _drawn(allowed: Bools, keys: I64, share: float, generator: np.random.Generator) -> Bools:
    """The rows of the drawn keys that can be held out."""
    candidates = np.unique(keys[allowed])
    order = generator.permutation(len(candidates))
    chosen = candidates[order[: round(share * len(candidates))]]
    drawn: Bools = allowed & np.isin(keys, chosen)
    return drawn


def _units(mask: Bools, keys: I64) -> int:
    return len(np.unique(keys[mask]))
