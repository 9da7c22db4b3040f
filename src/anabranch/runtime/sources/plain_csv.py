"""The columns of small, plain CSV files, without a job of Spark.

Spark needs two jobs to infer the types of a file, which takes longer than a query over a few rows. Files of the usual
form are inferred here instead, with the result that Spark would have: numbers, words, dates and times, without quotes.
Everything else is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import types as spark_types

from anabranch.runtime.sources.small_files import small_texts

_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,18}\.\d{1,18}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", re.ASCII)
#: A text that is neither a number nor a time in any notation of Spark. `T1` might be a time, and so it is no word.
_WORD = re.compile(r"(?![Tt]\d)[A-Za-z_][\w -]*")
_NO_WORDS = frozenset(("true", "false", "nan", "inf", "infinity", "epoch", "now", "today", "yesterday", "tomorrow"))

#: Characters with a meaning in some dialect of CSV.
_SPECIAL = re.compile(r'["\\\r\0\ufeff]')
_INT32 = 2**31

_INTEGERS = spark_types.IntegerType(), spark_types.LongType()
_NUMBERS = (*_INTEGERS, spark_types.DoubleType())


def plain_csv_schema(
    paths: Sequence[str], options: Mapping[str, str], infer: bool, timestamps: spark_types.DataType | None
) -> spark_types.StructType | None:
    """The columns of uncompressed local files, as Spark names and infers them; None if Spark must read them.

    Parameters
    ----------
    paths : of all files
    options : those of Spark's reader that differ from the defaults of the package
    infer : whether types are needed; if not, all columns are STRING
    timestamps : the type that Spark infers for a time without a zone; None if dates and times are left to Spark
    """
    separator = options.get("sep", ",")
    if options.keys() - {"sep"} or len(separator) != 1 or separator in "\n ":
        return None
    texts = small_texts(paths, (".csv",))
    rows = None if texts is None else _rows(texts, separator)
    if rows is None:
        return None
    names, *cells = rows
    if not all(map(_is_plain_name, names)) or len({name.lower() for name in names}) < len(names):
        return None
    schema = spark_types.StructType()
    for name, column in zip(names, _columns(names, cells), strict=True):
        kind = _kind(column, timestamps) if infer else spark_types.StringType()
        if kind is None:
            return None
        schema.add(name, kind)
    return schema


def _rows(texts: Sequence[str], separator: str) -> list[list[str]] | None:
    """The header that all files have, and their rows; None if a line has an unusual form."""
    header, rows = None, []
    for text in texts:
        first, *lines = text.removesuffix("\n").split("\n")
        if _SPECIAL.search(text) or header not in (None, first) or not all(lines):
            return None
        header = first
        # Spark skips each line that equals the header.
        rows += [line.split(separator) for line in lines if line != first]
    names = (header or "").split(separator)
    return [names, *rows] if all(len(row) == len(names) for row in rows) else None


def _is_plain_name(name: str) -> bool:
    return bool(name) and name == name.strip()


def _columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[set[str]]:
    """The different cells of each column, without the empty ones, which are NULL in every type."""
    return [{row[index] for row in rows} - {""} for index in range(len(names))]


def _kind(cells: set[str], timestamps: spark_types.DataType | None) -> spark_types.DataType | None:
    """The type of a column; None if it is not certain."""
    found = {_kind_of_cell(cell, timestamps) for cell in cells}
    if not found or spark_types.StringType() in found:
        return spark_types.StringType()
    if found <= set(_NUMBERS):
        return max(found, key=_NUMBERS.index)
    return found.pop() if len(found) == 1 else None


def _kind_of_cell(cell: str, timestamps: spark_types.DataType | None) -> spark_types.DataType | None:
    """The only type that Spark infers from a cell; None if it is not certain."""
    if _INTEGER.fullmatch(cell):
        return _INTEGERS[not -_INT32 <= int(cell) < _INT32]
    if _DECIMAL.fullmatch(cell):
        return spark_types.DoubleType()
    if _WORD.fullmatch(cell):
        return None if cell.lower() in _NO_WORDS or cell != cell.strip() else spark_types.StringType()
    if timestamps is None or not _exists(cell):
        return None
    return spark_types.DateType() if _DATE.fullmatch(cell) else timestamps


def _exists(time: str) -> bool:
    """Whether a text is a date or a time, and in the calendar."""
    if not _DATE.fullmatch(time) and not _TIMESTAMP.fullmatch(time):
        return False
    try:
        datetime.fromisoformat(time)
    except ValueError:
        return False
    return True
