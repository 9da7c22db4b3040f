"""The first rows of a file, and the type of each column."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.binding.file_options import extension_format
from anabranch.columns.local_times import WrittenTimes
from anabranch.errors import AnabranchError
from anabranch.language.time_patterns import ISO
from anabranch.language.types import Type

#: How many rows are read.
ROWS = 20_000

_SEPARATORS = (",", ";", "\t", "|")

#: Formats of written times that are tried after ISO 8601. Days come before months: `ambiguous` says whether that was a
#: choice.
_DATES = ("yyyy/MM/dd", "dd.MM.yyyy", "dd/MM/yyyy", "MM/dd/yyyy", "dd-MM-yyyy", "MM-dd-yyyy", "dd MMM yyyy", "yyyyMMdd")
_CLOCKS = (" HH:mm:ss[.SSSSSS]", " HH:mm", "'T'HH:mm:ss[.SSSSSS]", " h:mm:ss a", " h:mm a", "")
_FORMATS = tuple(date + clock for date in _DATES for clock in _CLOCKS)

_INTEGER = r"[+-]?(?:0|[1-9][0-9]{0,17})"
#: Without leading zeros: 0017 is a name.
_NUMBER = r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the sample.

    Attributes
    ----------
    values : pd.Series
        Numbers, texts, booleans, or times as seconds since 1970; missing values are NaN or None.
    pattern : str or None
        The FORMAT of times that are text; None if they have a type, or are ISO 8601 in a text file.
    is_ambiguous : bool
        Whether days and months could be exchanged in every time.
    """

    name: str
    type: Type
    values: pd.Series
    pattern: str | None = None
    is_ambiguous: bool = False

    @property
    def n_distinct(self) -> int:
        """The number of different values."""
        return int(self.values.nunique())


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of a file or folder."""

    path: str
    columns: dict[str, Column]
    options: dict[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of rows that were read."""
        return max((len(column.values) for column in self.columns.values()), default=0)


def read_sample(path: str) -> Sample:
    """Read the first rows of a CSV, JSON lines or Parquet file, or of the first file of a folder or glob.

    Raises
    ------
    AnabranchError
        If the file cannot be read, or has no rows.
    """
    first = _first_file(path)
    try:
        frame, options = _READERS[_format_of(first)](first)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise AnabranchError(f"{first} cannot be read: {str(error).splitlines()[0]}") from error
    if frame.empty:
        raise AnabranchError(f"{first} has no rows; a draft needs some")
    is_text = _format_of(first) != "parquet"
    # pandas names a column without a name, such as an index, by its position.
    names = [name for name in map(str, frame.columns) if not name.startswith("Unnamed: ")]
    return Sample(path, {name: _column(name, frame[name], is_text) for name in names}, options)


def _first_file(path: str) -> str:
    if os.path.isdir(path):
        path = os.path.join(glob.escape(path), "*")
    files = sorted(name for name in glob.glob(path) if extension_format(name)) or sorted(glob.glob(path))
    if not files:
        raise AnabranchError(f"there is no file {path}")
    return files[0]


def _format_of(path: str) -> str:
    found = extension_format(path)
    if found is None:
        raise AnabranchError(f"{path} is not a .csv, .json, .jsonl or .parquet file")
    return found


def _csv(path: str) -> tuple[pd.DataFrame, dict[str, str]]:
    header = str(pd.read_csv(path, sep="\0", header=None, nrows=1, dtype=str, quoting=3, engine="python").iloc[0, 0])
    separator = max(_SEPARATORS, key=header.count)
    frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, na_values=[""], nrows=ROWS)
    return frame, {} if separator == "," else {"sep": "\\t" if separator == "\t" else separator}


def _json(path: str) -> tuple[pd.DataFrame, dict[str, str]]:
    frame = pd.read_json(path, lines=True, nrows=ROWS, dtype=False, convert_dates=False)
    nested = [name for name in frame.columns if frame[name].map(lambda value: isinstance(value, (dict, list))).any()]
    return frame.drop(columns=nested), {}


def _parquet(path: str) -> tuple[pd.DataFrame, dict[str, str]]:
    with pq.ParquetFile(path) as file:
        batches: Iterator[Any] = file.iter_batches(ROWS)
        return pa.Table.from_batches(islice(batches, 1), file.schema_arrow).to_pandas(), {}


_READERS = {"csv": _csv, "json": _json, "parquet": _parquet}


def _column(name: str, values: pd.Series, is_text_file: bool) -> Column:
    present = values.dropna()
    if present.empty:
        return Column(name, Type.STRING, values)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return Column(name, Type.TIMESTAMP, _seconds(pa.array(values), None))
    if pd.api.types.is_bool_dtype(present.infer_objects().dtype):
        return Column(name, Type.BOOLEAN, values)
    if pd.api.types.is_numeric_dtype(present.infer_objects().dtype):
        whole = pd.api.types.is_integer_dtype(present.infer_objects().dtype)
        return Column(name, Type.INTEGER if whole else Type.DOUBLE, values)
    return _text_column(name, values, present.astype(str), is_text_file)


def _text_column(name: str, values: pd.Series, present: pd.Series, is_text_file: bool) -> Column:
    """The type of texts: in a text file they may be written numbers and times."""
    if is_text_file and present.str.fullmatch(_INTEGER).all():
        return Column(name, Type.INTEGER, pd.to_numeric(values))
    if is_text_file and present.str.fullmatch(_NUMBER).all():
        return Column(name, Type.DOUBLE, pd.to_numeric(values))
    if is_text_file and present.str.lower().isin(["true", "false"]).all():
        return Column(name, Type.BOOLEAN, values)
    texts = pa.array(present, pa.string())
    formats = [pattern for pattern in (None, *_FORMATS) if _seconds(texts, pattern).notna().all()]
    if not formats:
        return Column(name, Type.STRING, values)
    pattern = formats[0]
    seconds = _seconds(pa.array(values, pa.string()), pattern)
    is_typed = is_text_file and pattern is None
    stated = None if is_typed else pattern or ISO
    return Column(name, Type.TIMESTAMP, seconds, stated, is_ambiguous=len(formats) > 1)


def _seconds(times: pa.Array, pattern: str | None) -> pd.Series:
    instants, _ = WrittenTimes(pattern).instants("t", times)
    return pd.Series(instants.cast(pa.int64()).to_pandas(), dtype="float64") / 1e6
