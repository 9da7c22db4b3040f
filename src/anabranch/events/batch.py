"""Events as workers hold them: the rows of each stream as they were, all in one order, each with its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools, Numbers
from anabranch.columns.dictionary import dense_codes, encode_tuples, flat
from anabranch.columns.numbers import numbers_of
from anabranch.columns.times import TimeKind, encode_times, order_doubles, restore_doubles
from anabranch.compiled import compiled
from anabranch.splitmix import mix_all
from anabranch.transport.checks import LATE, QUARANTINE, quarantine
from anabranch.transport.packing import Layout
from anabranch.transport.routing import Packets
from anabranch.transport.state import read_tables, write_tables


def arrow_type_of(layout: Layout) -> pa.StructType:
    """The type of an event in an answer: all columns of its stream."""
    return pa.struct(list(_types(layout).items()))


def _types(layout: Layout) -> dict[str, pa.DataType]:
    known: dict[str, pa.DataType] = {}
    if layout.space is not None:
        known = {name: layout.space.shape_type or pa.float64() for name in layout.space.columns}
    known |= dict(zip((*layout.keys, *layout.values), (*layout.key_types, *layout.value_types), strict=True))
    known |= dict.fromkeys(filter(None, (layout.start, layout.time)), layout.time_kind.arrow_type)
    return {name: known[name] for name in layout.columns}


class EventTable:
    """Rows of one stream."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        self.table = table
        self.layout = layout

    @staticmethod
    def from_rows(rows: pa.Table, layout: Layout) -> EventTable:
        """Rows of a source, in the types of their stream."""
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
        """Times as codes that sort as the times do."""
        return encode_times(self.table[self.layout.time], self.layout.time_kind)

    @cached_property
    def t(self) -> Numbers:
        """Times as numbers to calculate with."""
        return self._times(self.layout.time)

    @property
    def begin(self) -> Numbers:
        """When each event began."""
        return self.t if self.layout.start is None else self._times(self.layout.start)

    def _times(self, name: str) -> Numbers:
        codes = encode_times(self.table[name], self.layout.time_kind)
        return restore_doubles(codes) if self.layout.time_kind is TimeKind.DOUBLE else codes

    def ranks(self, rows: I64) -> I64:
        """The places of some rows in their order: by time, then by key, then by the other columns; NULL comes first."""
        table, layout = self.table.take(pa.array(rows)), self.layout
        columns: dict[str, pa.ChunkedArray] = {}
        for name in dict.fromkeys((layout.time, *layout.keys, *layout.columns)):
            columns |= {f"{name} is there": table[name].is_valid(), name: table[name]}
        order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]).to_numpy()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank

    def repeated(self) -> Bools:
        """Which rows are given once more, all columns alike."""
        again = np.zeros(len(self), np.bool_)
        codes, firsts = dense_codes(_mixed_numbers([self.code, *self._number_columns()]))
        if len(firsts) == len(self):
            return again
        # Only rows whose numbers are alike are compared with each other.
        alike = np.flatnonzero(np.bincount(codes)[codes] > 1)
        chosen = self.table.take(pa.array(alike))
        same, _ = encode_tuples(chosen.columns, len(alike))
        _, seen = np.unique(same, return_index=True)
        again[alike] = True
        again[alike[seen]] = False
        return again

    def _number_columns(self) -> list[I64]:
        doubles = [column for column in self.columns.values() if pa.types.is_floating(column.type)]
        return [order_doubles(numbers_of(column)) for column in doubles]


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    cast = column if column.type == kind else column.cast(kind)
    return pc.add(cast, 0.0) if pa.types.is_floating(kind) else cast  # -0.0 and 0.0 are one number


def _mixed_numbers(columns: Sequence[I64]) -> I64:
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = mix_all(hashes ^ column.view(np.uint64))
    return hashes.view(np.int64)


class Batch:
    """Events of all streams of a job, in one order, each with its roles: what it can be in which query.

    Attributes
    ----------
    tables : the rows of each stream, in the order of their events
    stream : of each event
    counted : whether this bucket counts the row
    first : where the roles of each event begin; one entry more than events
    roles : columns of numbers by name, one entry a role; which ones is the family's choice
    """

    def __init__(
        self, tables: Sequence[EventTable], stream: I64, counted: Bools, first: I64, roles: Mapping[str, Numbers]
    ) -> None:
        self.tables = list(tables)
        self.stream, self.counted, self.first, self.roles = stream, counted, first, dict(roles)

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def code(self) -> I64:
        """The time of each event as a code."""
        return self.gathered([table.code for table in self.tables], np.int64)

    @property
    def t(self) -> Numbers:
        """The time of each event as a number to calculate with."""
        kind = np.float64 if self.tables[0].layout.time_kind is TimeKind.DOUBLE else np.int64
        return self.gathered([table.t for table in self.tables], kind)

    def gathered(self, parts: Sequence[Numbers], kind: type) -> Numbers:
        """Arrays of the streams' rows as one of the events."""
        if len(parts) == 1:
            return parts[0]
        whole = np.empty((len(self), *parts[0].shape[1:]), kind)
        for number, part in enumerate(parts):
            whole[self.stream == number] = part
        return whole

    # ------------------------------------------------------------ made and kept

    @staticmethod
    def empty(layouts: Sequence[Layout], kinds: Mapping[str, type]) -> Batch:
        """No events; `kinds` are the types of the columns of roles."""
        tables = [EventTable(_empty(layout), layout) for layout in layouts]
        roles: dict[str, Numbers] = {name: np.zeros(0, kind) for name, kind in kinds.items()}
        return Batch(tables, np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(1, np.int64), roles)

    @staticmethod
    def from_packet(stream: int, blob: bytes, layouts: Sequence[Layout], kinds: Mapping[str, type]) -> Batch:
        """The rows of one packet; columns of roles that it does not have are 0."""
        packet = read_tables(blob)
        rows, roles = packet["rows"], packet["roles"]
        batch = Batch.empty(layouts, kinds)
        batch.tables[stream] = EventTable(
            rows.drop_columns(["#counted"]).replace_schema_metadata(None), layouts[stream]
        )
        batch.stream = np.full(rows.num_rows, stream)
        batch.counted = rows["#counted"].to_numpy()
        counts = np.bincount(roles["row"].to_numpy(), minlength=rows.num_rows)
        batch.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        batch.roles = {
            name: roles[name].to_numpy().astype(kind) if name in roles.column_names else np.zeros(roles.num_rows, kind)
            for name, kind in kinds.items()
        }
        return batch

    @staticmethod
    def concat(parts: Sequence[Batch]) -> Batch:
        """The events of all parts, of which there is one at least, one after the other."""
        full = [part for part in parts if len(part)]
        if len(full) < 2:
            return full[0] if full else parts[0]
        tables = [
            EventTable(pa.concat_tables([part.tables[number].table for part in full]), table.layout)
            for number, table in enumerate(full[0].tables)
        ]
        sizes = np.concatenate([np.diff(part.first) for part in full])
        first = np.concatenate([[0], np.cumsum(sizes)])
        stream, counted = (np.concatenate([getattr(part, name) for part in full]) for name in ("stream", "counted"))
        roles = {name: np.concatenate([part.roles[name] for part in full]) for name in full[0].roles}
        return Batch(tables, stream, counted, first, roles)

    def save(self, name: str) -> dict[str, pa.Table]:
        """Everything as tables."""
        tables = {f"{name} {number}": each.table for number, each in enumerate(self.tables)}
        events = {"stream": self.stream, "counted": self.counted, "roles": np.diff(self.first)}
        return tables | {f"{name} events": pa.table(events), f"{name} roles": pa.table(self.roles)}

    @staticmethod
    def load(tables: Mapping[str, pa.Table], name: str, layouts: Sequence[Layout]) -> Batch:
        """What `save` gave."""
        own = [
            EventTable(tables[f"{name} {number}"].replace_schema_metadata(None), layout)
            for number, layout in enumerate(layouts)
        ]
        events, roles = tables[f"{name} events"], tables[f"{name} roles"]
        first = np.concatenate([[0], np.cumsum(events["roles"].to_numpy())]).astype(np.int64)
        columns = {column: roles[column].to_numpy().copy() for column in roles.column_names}
        return Batch(own, events["stream"].to_numpy(), events["counted"].to_numpy(), first, columns)

    # ------------------------------------------------------------ chosen

    def take(self, chosen: I64) -> Batch:
        """Some events, in the order given."""
        stream = self.stream[chosen]
        rows = row_numbers(self.stream, len(self.tables))[chosen]
        tables = [
            EventTable(table.table.take(pa.array(rows[stream == number])), table.layout)
            for number, table in enumerate(self.tables)
        ]
        first, chosen_roles = _gather(self.first, chosen)
        roles = {name: column[chosen_roles] for name, column in self.roles.items()}
        return Batch(tables, stream, self.counted[chosen], first, roles)

    def where(self, chosen: Bools) -> Batch:
        """The events for which `chosen` holds."""
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def with_roles(self, alive: Bools, **changed: Numbers) -> Batch:
        """The events that have a role left, with these roles alone; some columns of roles are given anew."""
        roles = {name: column[alive] for name, column in (self.roles | changed).items()}
        counts = np.add.reduceat(np.append(alive, 0), self.first[:-1]) * (np.diff(self.first) > 0)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Batch(self.tables, self.stream, self.counted, first, roles).where(counts > 0)

    def by_time(self) -> Batch:
        """The same events in order of time."""
        code = self.code
        return self if (code[1:] >= code[:-1]).all() else self.take(np.argsort(code, kind="stable"))

    def without_duplicates(self) -> tuple[Batch, int]:
        """Each event once, and how many of the rows left out this bucket counts."""
        again = self.gathered([table.repeated() for table in self.tables], np.bool_)
        return self.where(~again), int((again & self.counted).sum())

    def set_aside(self) -> pa.Table:
        """The rows as they were, for the quarantine, because they came too late; each is set aside by one bucket."""
        own = self.where(self.counted)
        parts = [quarantine(each.layout.name, LATE, each.table.to_pylist()) for each in own.tables]
        return pa.concat_tables([QUARANTINE.empty_table(), *parts])


def _empty(layout: Layout) -> pa.Table:
    return pa.schema(list(_types(layout).items())).empty_table()


def row_numbers(stream: I64, n_streams: int) -> I64:
    """Of each event, its number among those of its stream."""
    if n_streams == 1:
        return np.arange(len(stream))
    rows = np.empty(len(stream), np.int64)
    for number in range(n_streams):
        own = stream == number
        rows[own] = np.arange(own.sum())
    return rows


@compiled
def _gather(first: I64, chosen: I64) -> tuple[I64, I64]:
    """The roles of chosen events: where they begin, and their numbers."""
    begins = np.zeros(len(chosen) + 1, np.int64)
    for place in range(len(chosen)):
        begins[place + 1] = begins[place] + first[chosen[place] + 1] - first[chosen[place]]
    roles = np.empty(begins[-1], np.int64)
    for place in range(len(chosen)):
        for number in range(begins[place + 1] - begins[place]):
            roles[begins[place] + number] = first[chosen[place]] + number
    return begins, roles


# ---------------------------------------------------------------- packets


def pack_events(
    events: EventTable, row: I64, bucket: I64, roles: Mapping[str, Numbers], n_buckets: int
) -> tuple[Packets, int]:
    """A packet for each bucket: the rows that have a role there, with these; and how many rows have none anywhere.

    Parameters
    ----------
    row, bucket : of each role, its row and where it goes; rows in rising order in each bucket
    roles : further columns of the roles, one of them `variable`
    """
    order = np.argsort(bucket, kind="stable")
    starts = np.searchsorted(bucket[order], np.arange(n_buckets + 1))
    owner = np.full(len(events), -1, np.int64)
    packets = []
    for number in range(n_buckets):
        own = order[starts[number] : starts[number + 1]]
        if len(own):
            chosen = {name: column[own] for name, column in roles.items()}
            packets.append((number, _packet(events, row[own], chosen, owner, number)))
    return packets, int((owner < 0).sum())


def _packet(events: EventTable, row: I64, roles: Mapping[str, Numbers], owner: I64, number: int) -> bytes:
    """The rows of one bucket with their roles; the first bucket that a row goes to counts it (`owner` is written)."""
    rows, place = np.unique(row, return_inverse=True)
    counted = owner[rows] < 0
    owner[rows[counted]] = number
    told = pa.table({"row": place.astype(np.int32), **roles})
    return write_tables(
        {"rows": events.table.take(pa.array(rows)).append_column("#counted", pa.array(counted)), "roles": told}
    )
