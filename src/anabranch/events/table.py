"""The events of one stream: the rows of its source, cast to the types of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools, Numbers
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.columns.kernel import dense_codes
from anabranch.columns.numbers import numbers_of
from anabranch.columns.times import TimeKind, encode_times, order_doubles, restore_doubles
from anabranch.splitmix import mix_all
from anabranch.transport.layout import Layout


def arrow_type_of(layout: Layout) -> pa.StructType:
    """The type of an event in an answer: all columns of its stream."""
    return pa.struct(list(_types(layout).items()))


def _types(layout: Layout) -> dict[str, pa.DataType]:
    known: dict[str, pa.DataType] = {}
    if layout.space is not None:
        known = {name: layout.space.shape_type or pa.float64() for name in layout.space.columns}
    if layout.distribution is not None:
        known[layout.distribution.probability] = pa.float64()
    known |= dict(zip((*layout.keys, *layout.values), (*layout.key_types, *layout.value_types), strict=True))
    known |= dict.fromkeys(filter(None, (layout.start, layout.time)), layout.time_kind.arrow_type)
    return {name: known[name] for name in layout.columns}


class EventTable:
    """The events of one stream."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        self.table = table
        self.layout = layout

    @staticmethod
    def empty(layout: Layout) -> EventTable:
        """No events."""
        return EventTable(pa.schema(list(_types(layout).items())).empty_table(), layout)

    @staticmethod
    def from_rows(rows: pa.Table, layout: Layout) -> EventTable:
        """Cast the rows of a source to the types of their stream."""
        columns = [_cast(flat(rows[name]), kind) for name, kind in _types(layout).items()]
        return EventTable(pa.table(columns, names=list(_types(layout))), layout)

    def __len__(self) -> int:
        return self.table.num_rows

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The columns by lower-case name."""
        return {name.lower(): flat(self.table[name]) for name in self.table.column_names}

    @cached_property
    def code(self) -> I64:
        """The times as integer codes with the same order."""
        return encode_times(self.table[self.layout.time], self.layout.time_kind)

    @cached_property
    def t(self) -> Numbers:
        """The times as numbers to calculate with."""
        return self._times(self.layout.time)

    @property
    def probability(self) -> F64:
        """The probability of each event; 1 in a stream whose events are certain."""
        if self.layout.distribution is None:
            return np.ones(len(self))
        return numbers_of(self.columns[self.layout.distribution.probability.lower()])

    @property
    def instances(self) -> I64:
        """A code of the key and the time of each event: events with the same code exclude each other."""
        keys, _ = encode_tuples([self.table[name] for name in self.layout.keys], len(self))
        times, firsts = dense_codes(self.code)
        return dense_codes(keys.astype(np.int64) * len(firsts) + times)[0].astype(np.int64)

    @property
    def begin(self) -> Numbers:
        """When each event began."""
        return self.t if self.layout.start is None else self._times(self.layout.start)

    def _times(self, name: str) -> Numbers:
        codes = encode_times(self.table[name], self.layout.time_kind)
        return restore_doubles(codes) if self.layout.time_kind is TimeKind.DOUBLE else codes

    def ranks(self, rows: I64) -> I64:
        """The rank of each of these rows by time, then key, then the other columns; NULL comes first."""
        table, layout = self.table.take(pa.array(rows)), self.layout
        columns: dict[str, pa.ChunkedArray] = {}
        for name in dict.fromkeys((layout.time, *layout.keys, *layout.columns)):
            columns |= {f"{name} is valid": table[name].is_valid(), name: table[name]}
        order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]).to_numpy()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank

    def repeated(self) -> Bools:
        """Which rows are duplicates of an earlier row, in all columns."""
        is_duplicate = np.zeros(len(self), np.bool_)
        codes, firsts = dense_codes(self.number_hashes)
        if len(firsts) == len(self):
            return is_duplicate
        # Only rows with equal hashes of their numbers are compared in all columns.
        alike = np.flatnonzero(np.bincount(codes)[codes] > 1)
        candidates = self.table.take(pa.array(alike))
        same, _ = encode_tuples(candidates.columns, len(alike))
        _, seen = np.unique(same, return_index=True)
        is_duplicate[alike] = True
        is_duplicate[alike[seen]] = False
        return is_duplicate

    @cached_property
    def number_hashes(self) -> I64:
        """A hash of the time and the DOUBLE columns of each row, the location among them."""
        doubles = [column for column in self.columns.values() if pa.types.is_floating(column.type)]
        return _mixed_numbers([self.code, *(order_doubles(numbers_of(column)) for column in doubles)])


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    cast = column if column.type == kind else column.cast(kind)
    return pc.add(cast, 0.0) if pa.types.is_floating(kind) else cast  # -0.0 becomes 0.0


def _mixed_numbers(columns: Sequence[I64]) -> I64:
    """One hash per row of columns of integers."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = mix_all(hashes ^ column.view(np.uint64))
    return hashes.view(np.int64)
