"""What the state of a bucket has about a key, for people.

Operators of all kinds save tables that are built in a few ways. Keys are numbered by the table `keys N` of stream N;
other tables have these numbers, or a row for each key in the same order. Events are saved with all their columns. Pages
have the columns of the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, I64, Bools
from anabranch.columns.times import TimeKind, decode_times
from anabranch.transport.pages import HASH

#: Tables of a bucket by name.
Tables = Mapping[str, pa.Table]

#: What the tables are called for people.
_PLACES = {"pending": "waiting", "held": "prediction", "held positions": "waiting", "ended": "entity"}


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream of a checkpoint: its number among the streams of the query, key columns and kind of time."""

    number: int
    name: str
    keys: tuple[str, ...]
    time_kind: TimeKind

    def has_key(self, columns: Iterable[str]) -> bool:
        """Whether these columns, in lower case, are part of the key."""
        return {name.lower() for name in self.keys}.issuperset(columns)


@dataclass(frozen=True, slots=True)
class Found:
    """A row of the state about a key, and where it is."""

    place: str
    row: dict[str, Any]


def rows_about(
    key: Mapping[str, str], stream: StoredStream, tables: Tables, pages: Mapping[int, pa.Table], n_streams: int
) -> Iterator[Found]:
    """The rows of a bucket about the keys that have these values, by lower-case name of the column."""
    yield from _events(key, stream, tables)
    known = tables.get(f"keys {stream.number}")
    if known is not None:
        of_key = np.flatnonzero(_matches(known, key, list(stream.keys)))
        yield from _numbered(of_key, stream, tables)
        yield from _weights(of_key, stream, tables, n_streams)
        yield from _entities(of_key, stream, tables, pages, n_streams)
    for page in pages.values():
        yield from _idle(key, stream, page)


def _matches(table: pa.Table, key: Mapping[str, str], names: Sequence[str]) -> Bools:
    """The rows of a table that have the values of a key; `names` are the names of its first columns."""
    matches = np.ones(table.num_rows, np.bool_)
    for column, name in zip(table.columns, names, strict=False):
        if name.lower() in key:
            matches &= np.array([str(value) == key[name.lower()] for value in column.to_pylist()], np.bool_)
    return matches


def _rows(place: str, stream: StoredStream, table: pa.Table, chosen: Bools | I64) -> Iterator[Found]:
    """Rows of a table, without times that are not set."""
    for name in ("t", "code"):
        if name in table.column_names and pa.types.is_int64(table.schema.field(name).type):
            times = decode_times(table[name].to_numpy(), stream.time_kind)
            table = table.set_column(table.column_names.index(name), "t", times)
    rows = table.filter(pa.array(chosen)) if chosen.dtype == np.bool_ else table.take(pa.array(chosen))
    for row in rows.to_pylist():
        yield Found(place, {name: value for name, value in row.items() if value not in (BEGINNING, END, None)})


def _events(key: Mapping[str, str], stream: StoredStream, tables: Tables) -> Iterator[Found]:
    """Events of SEQUENCE and CONSTRAIN, with all their columns."""
    for name in ("pending", "kept"):
        table = tables.get(f"{name} {stream.number}")
        if table is not None:
            columns = table.select([column for column in table.column_names if column.lower() in key])
            yield from _rows(_PLACES.get(name, name), stream, table, _matches(columns, key, columns.column_names))


def _numbered(of_key: I64, stream: StoredStream, tables: Tables) -> Iterator[Found]:
    """Rows that have the number of the key and of its stream."""
    for name, table in tables.items():
        if {"stream", "key"} <= set(table.column_names):
            chosen = (table["stream"].to_numpy() == stream.number) & np.isin(table["key"].to_numpy(), of_key)
            shown = _with_values(table, tables.get(f"values {stream.number}")).drop_columns(["stream", "key"])
            yield from _rows(_PLACES.get(name, name), stream, shown, chosen)


def _with_values(table: pa.Table, values: pa.Table | None) -> pa.Table:
    """A table in which the numbers of values are replaced by the values."""
    for name in ("value", "prev"):
        if values is not None and name in table.column_names:
            rows = values.take(table[name].combine_chunks()).to_pylist()
            shown = [next(iter(row.values())) if len(row) == 1 else [*row.values()] for row in rows]
            table = table.set_column(table.column_names.index(name), name, pa.array(shown))
    return table


def _weights(of_key: I64, stream: StoredStream, tables: Tables, n_streams: int) -> Iterator[Found]:
    """PATTERN: the weight of each state of the automaton, of a Markov key for each value; only if a chain is a key."""
    table = tables.get("weights")
    if n_streams > 1 or table is None:
        return
    weights = table.rename_columns([f"state {name}" for name in table.column_names])
    if "offsets" not in tables:
        yield from _rows("weights", stream, weights, of_key[of_key < weights.num_rows])
        return
    offsets = tables["offsets"]["offset"].to_numpy()
    numbered = weights.add_column(0, "value", tables["codes"]["code"])
    of_chain = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    yield from _rows("weights", stream, _with_values(numbered, tables.get("values 0")), np.isin(of_chain, of_key))


def _entities(
    of_key: I64, stream: StoredStream, tables: Tables, pages: Mapping[int, pa.Table], n_streams: int
) -> Iterator[Found]:
    """RELATE: whether an entity has ended, and its rows, which are in the state or in pages by age."""
    ended = tables.get(f"ended {stream.number}")
    if ended is None:
        return
    yield from _rows("entity", stream, ended.select(["ended"]), of_key)
    own_rows = tables.get(f"rows {stream.number}")
    if own_rows is not None:
        yield from _entity_rows(of_key, stream, own_rows)
    numbers = np.cumsum(ended["step"].to_numpy())[of_key]
    for page, table in pages.items():
        if page > 0 and "entity" in table.column_names and (page - 1) % n_streams == stream.number:
            yield from _entity_rows(numbers, stream, table)


def _entity_rows(numbers: I64, stream: StoredStream, table: pa.Table) -> Iterator[Found]:
    shown = table.select([name for name in table.column_names if name in ("seq", "t", "length", "lo", "hi")])
    yield from _rows("row", stream, shown, np.isin(table["entity"].to_numpy(), numbers))


def _idle(key: Mapping[str, str], stream: StoredStream, page: pa.Table) -> Iterator[Found]:
    """A page of idle keys: the columns of the key follow the hash."""
    if page.column_names[:1] == [HASH]:
        shown = page.drop_columns([HASH])
        yield from _rows("idle", stream, shown, _matches(shown, key, list(stream.keys)))
