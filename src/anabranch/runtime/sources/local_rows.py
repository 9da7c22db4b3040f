"""Rows in this process that a user binds: pandas and Polars DataFrames, Arrow tables, lists of rows.

All become an Arrow table, which Spark takes as it is. A library that exports its tables by the Arrow PyCapsule
interface (`__arrow_c_stream__`), such as Polars, works without being known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import from_arrow_type

from anabranch.binding.reading import optional_sources
from anabranch.catalog import Column, Relation, Stream
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.errors import AnabranchError, DataError
from anabranch.language import nodes

#: What `bind` takes, for messages.
ACCEPTED = "a DataFrame (Spark, pandas, Polars), an Arrow table, a list of rows or a path"

_CONVERSION_ERRORS = (pa.ArrowException, PySparkTypeError, TypeError, ValueError, OverflowError)


@dataclass(slots=True)
class LocalRows:
    """The columns of bound rows that Spark can take, and why it cannot take the others."""

    table: pa.Table
    unreadable: dict[str, str]
    _frames: dict[pa.Schema, DataFrame] = field(default_factory=dict)

    def schema(self, entry: Stream | Relation) -> spark_types.StructType:
        """The types of all columns."""
        return _struct(_with_types(self.table, entry).schema)

    def frame(self, spark: SparkSession, entry: Stream | Relation, columns: Sequence[Column]) -> DataFrame:
        """The columns that a stream or relation needs."""
        needed = {column.name.lower() for column in columns}
        for name, reason in self.unreadable.items():
            if name.lower() in needed:
                raise DataError(f"column {name} of the input of {entry.name} cannot be read: {reason}")
        table = _with_types(self.table, entry)
        chosen = table.select([name for name in table.column_names if name.lower() in needed])
        if chosen.schema not in self._frames:
            self._frames[chosen.schema] = spark.createDataFrame(chosen, _struct(chosen.schema))
        return self._frames[chosen.schema]


def _struct(schema: pa.Schema) -> spark_types.StructType:
    """The Spark types of columns; times without a zone have none in Spark, whatever the zone of the session."""
    columns = (spark_types.StructField(column.name, from_arrow_type(column.type)) for column in schema)
    return spark_types.StructType(list(columns))


def _with_types(table: pa.Table, entry: Stream | Relation) -> pa.Table:
    """The table; a column of NULLs alone, which has no type, gets the type that the entry needs, else STRING."""
    types = {column.name.lower(): ARROW_TYPES.get(column.type) for column in entry.columns}
    if isinstance(entry, Stream):
        types |= {name.lower(): ARROW_TYPES[column.type] for name, column in optional_sources(entry).items()}
        spelled = {name.lower(): table[name].type for name in table.column_names}
        for value, previous in zip(entry.values, entry.previous, strict=False):
            types[previous.name.lower()] = spelled.get(value.name.lower())
    for index, column in enumerate(table.schema):
        if pa.types.is_null(column.type):
            kind = types.get(column.name.lower()) or pa.string()
            table = table.set_column(index, column.name, pa.nulls(table.num_rows, kind))
    return table


def local_rows(source: Any, entry: Stream | Relation, columns: Sequence[str] | None) -> LocalRows:
    """The rows of a DataFrame of another library, an Arrow table or a list of rows; `columns` names those of tuples."""
    pandas = sys.modules.get("pandas")  # an object of pandas exists only if pandas is imported
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _collect(entry.name, _pandas_columns(source))
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        table = pa.table(source)
        return _collect(entry.name, zip(table.column_names, map(_constant, table.columns), strict=True))
    if isinstance(source, list | tuple):
        return _collect(entry.name, _row_columns(source, entry, columns))
    hint = "call its collect() first" if hasattr(source, "collect") else f"pass {ACCEPTED}"
    raise AnabranchError(f"cannot bind a {type(source).__name__} to {entry.name}; {hint}")


def local_table(source: Any, name: str) -> pa.Table:
    """The rows of a source in this process that needs no declaration; `name` is for messages."""
    return local_rows(source, Relation(name, (), nodes.CreateRelation(name, ())), None).table


def _collect(name: str, columns: Iterable[tuple[str, Callable[[], Any]]]) -> LocalRows:
    """Convert columns one by one, so that a column that nobody needs may be of any type."""
    converted: dict[str, pa.ChunkedArray] = {}
    unreadable: dict[str, str] = {}
    for column, values in columns:
        if column in converted or column in unreadable:
            raise AnabranchError(f"the input of {name} has two columns {column}; rename one of them")
        try:
            converted[column] = _plain(values())
        except _CONVERSION_ERRORS as error:
            unreadable[column] = str(error).splitlines()[0]
    return LocalRows(pa.table(converted), unreadable)


def _constant(column: pa.ChunkedArray) -> Callable[[], pa.ChunkedArray]:
    return lambda: column


# ---------------------------------------------------------------- types


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that Spark takes; raises if there is none."""
    column = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    kind = _spark_type(column.type)
    column = column if kind == column.type else column.cast(kind)
    from_arrow_type(kind)
    return column


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """The nearest Arrow type that Spark knows."""
    types = pa.types
    if types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if types.is_unsigned_integer(kind):
        return pa.int64()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    return kind


# ---------------------------------------------------------------- pandas and lists of rows


def _pandas_columns(frame: Any) -> Iterable[tuple[str, Callable[[], pa.Array]]]:
    """The columns of a pandas DataFrame, and the levels of its index that have a name; NaN is NULL."""
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index(level=named) if named else frame
    for index, name in enumerate(frame.columns):
        yield str(name), _series(frame, index)


def _series(frame: Any, index: int) -> Callable[[], pa.Array]:
    return lambda: pa.Array.from_pandas(frame.iloc[:, index])


def _row_columns(
    rows: Sequence[Any], entry: Stream | Relation, columns: Sequence[str] | None
) -> Iterable[tuple[str, Callable[[], pa.Array]]]:
    if not rows:
        raise AnabranchError(f"the list for {entry.name} is empty, so it has no columns; bind an empty DataFrame")
    for number, row in enumerate(rows):
        if type(row) is not type(rows[0]):
            kinds = f"row {number} is a {type(row).__name__}, and row 0 a {type(rows[0]).__name__}"
            raise AnabranchError(f"the rows of {entry.name} are not alike: {kinds}; use one type for all rows")
    if isinstance(rows[0], Mapping):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return [(str(name), _values([row.get(name) for row in rows])) for name in names]
    if is_dataclass(rows[0]):
        names = [column.name for column in fields(rows[0])]
        return [(name, _values([getattr(row, name) for row in rows])) for name in names]
    names = _tuple_names(rows[0], entry, columns)
    wrong = next((number for number, row in enumerate(rows) if len(row) != len(names)), None)
    if wrong is not None:
        counts = f"row {wrong} has {len(rows[wrong])} values for {len(names)} columns ({', '.join(names)})"
        raise AnabranchError(f"the rows of {entry.name} do not fit their columns: {counts}; pass one value for each")
    return [(name, _values(list(values))) for name, values in zip(names, zip(*rows, strict=True), strict=True)]


def _tuple_names(row: Any, entry: Stream | Relation, columns: Sequence[str] | None) -> list[str]:
    """The columns of rows that are tuples: as passed, of a named tuple or a Spark Row, or those of the relation."""
    if not isinstance(row, list | tuple):
        message = f"the rows of {entry.name} are of type {type(row).__name__}"
        raise AnabranchError(f"{message}; use dicts, named tuples, dataclasses, or tuples with columns=[...]")
    names = columns or getattr(row, "_fields", None) or getattr(row, "__fields__", None)
    if names is None and isinstance(entry, Relation):
        names = [column.name for column in entry.columns] or [f"c{number}" for number in range(1, len(row) + 1)]
    if names is None:
        example = ", ".join(repr(column.name) for column in entry.columns)
        raise AnabranchError(f"the rows of {entry.name} are tuples without column names; pass columns=[{example}]")
    return list(names)


def _values(values: list[Any]) -> Callable[[], pa.Array]:
    return lambda: pa.array(values)
