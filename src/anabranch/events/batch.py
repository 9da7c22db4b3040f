"""Events of all streams of a job in one order, each with its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools, Numbers
from anabranch.columns.dictionary import flat
from anabranch.columns.times import TimeKind
from anabranch.events.kernel import gather_roles
from anabranch.events.table import EventTable
from anabranch.transport.checks import LATE, QUARANTINE, plain_rows, quarantine
from anabranch.transport.layout import Layout
from anabranch.transport.limits import last_one
from anabranch.transport.state import read_tables


class Batch:
    """Events of all streams of a job, in one order, each with its roles: which variable of which query it can be.

    Attributes
    ----------
    tables : the events of each stream, in order
    stream : number of the stream of each event
    counted : whether this bucket counts the row; a row that goes to several buckets is counted by one
    first : index of the first role of each event; one entry more than events
    roles : columns of numbers by name, one entry per role; each kind has its own columns
    """

    def __init__(
        self, tables: Sequence[EventTable], stream: I64, counted: Bools, first: I64, roles: Mapping[str, Numbers]
    ) -> None:
        self.tables = list(tables)
        self.stream, self.counted, self.first, self.roles = stream, counted, first, dict(roles)

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def event_time(self) -> I64:
        """The code of the time of each event."""
        return self.gathered([table.code for table in self.tables], np.int64)

    @property
    def t(self) -> Numbers:
        """The time of each event as a number to calculate with."""
        kind = np.float64 if self.tables[0].layout.time_kind is TimeKind.DOUBLE else np.int64
        return self.gathered([table.t for table in self.tables], kind)

    def gathered(self, parts: Sequence[Numbers], kind: type) -> Numbers:
        """Combine arrays of the rows of each stream into one array of all events."""
        if len(parts) == 1:
            return parts[0]
        whole = np.empty((len(self), *parts[0].shape[1:]), kind)
        for number, part in enumerate(parts):
            whole[self.stream == number] = part
        return whole

    # ------------------------------------------------------------ construction and state

    @staticmethod
    def empty(layouts: Sequence[Layout], kinds: Mapping[str, type]) -> Batch:
        """No events; `kinds` are the types of the role columns."""
        tables = [EventTable.empty(layout) for layout in layouts]
        roles: dict[str, Numbers] = {name: np.zeros(0, kind) for name, kind in kinds.items()}
        return Batch(tables, np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(1, np.int64), roles)

    @staticmethod
    def from_packet(stream: int, blob: bytes, layouts: Sequence[Layout], kinds: Mapping[str, type]) -> Batch:
        """The rows of one packet; role columns that it does not have are 0."""
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
        batch.roles = role_columns(roles, kinds)
        return batch

    @staticmethod
    def concat(parts: Sequence[Batch]) -> Batch:
        """Concatenate the events of all parts; there must be at least one part."""
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
        """The batch as tables, for `load`."""
        tables = {f"{name} {number}": table.table for number, table in enumerate(self.tables)}
        events = {"stream": self.stream, "counted": self.counted, "roles": np.diff(self.first)}
        return tables | {f"{name} events": pa.table(events), f"{name} roles": pa.table(self.roles)}

    @staticmethod
    def load(tables: Mapping[str, pa.Table], name: str, layouts: Sequence[Layout], kinds: Mapping[str, type]) -> Batch:
        """Load a batch from the tables of `save`; role columns that it does not have are 0."""
        event_tables = [
            EventTable(tables[f"{name} {number}"].replace_schema_metadata(None), layout)
            for number, layout in enumerate(layouts)
        ]
        events, roles = tables[f"{name} events"], tables[f"{name} roles"]
        first = np.concatenate([[0], np.cumsum(events["roles"].to_numpy())]).astype(np.int64)
        columns = role_columns(roles, kinds)
        return Batch(event_tables, events["stream"].to_numpy(), events["counted"].to_numpy(), first, columns)

    # ------------------------------------------------------------ selection

    def take(self, chosen: I64) -> Batch:
        """The chosen events, in the order of `chosen`."""
        stream = self.stream[chosen]
        rows = row_numbers(self.stream, len(self.tables))[chosen]
        tables = [
            EventTable(table.table.take(pa.array(rows[stream == number])), table.layout)
            for number, table in enumerate(self.tables)
        ]
        first, chosen_roles = gather_roles(self.first, chosen)
        roles = {name: column[chosen_roles] for name, column in self.roles.items()}
        return Batch(tables, stream, self.counted[chosen], first, roles)

    def where(self, chosen: Bools) -> Batch:
        """The events where a mask is true."""
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def with_roles(self, alive: Bools, **changed: Numbers) -> Batch:
        """Keep only these roles and the events that have one; `changed` replaces role columns."""
        batch = self.only_roles(alive, **changed)
        return batch.where(batch.has_role)

    def only_roles(self, alive: Bools, **changed: Numbers) -> Batch:
        """Keep all events, but only these of their roles; `changed` replaces role columns."""
        roles = {name: column[alive] for name, column in (self.roles | changed).items()}
        counts = np.add.reduceat(np.append(alive, 0), self.first[:-1]) * (np.diff(self.first) > 0)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Batch(self.tables, self.stream, self.counted, first, roles)

    def renumbered(self, variables: I64) -> Batch:
        """The events with new numbers of their variables, by the old number; roles with a negative one are dropped."""
        variable = variables[self.roles["variable"]]
        event = np.repeat(np.arange(len(self)), np.diff(self.first))
        # The variables of an event ascend.
        order = np.lexsort((variable, event))
        roles = {name: column[order] for name, column in (self.roles | {"variable": variable}).items()}
        return Batch(self.tables, self.stream, self.counted, self.first, roles).only_roles(roles["variable"] >= 0)

    @property
    def has_role(self) -> Bools:
        """Which events have a role."""
        return np.diff(self.first) > 0

    def by_time(self) -> Batch:
        """The same events in order of time."""
        code = self.event_time
        return self if (code[1:] >= code[:-1]).all() else self.take(np.argsort(code, kind="stable"))

    def by_time_and_location(self) -> I64:
        """The order of the events by time; events at one time are in the same order in every bucket that has them.

        Packets arrive in any order. Events with equal hashes of their numbers have one location.
        """
        code = self.event_time
        order = np.argsort(code, kind="stable")
        same = code[order[1:]] == code[order[:-1]]
        if same.any():
            is_tied = np.append(same, False) | np.append(False, same)
            tied, hashes = order[is_tied], self.gathered([table.number_hashes for table in self.tables], np.int64)
            order[is_tied] = tied[np.lexsort((hashes[tied], code[tied]))]
        return order

    def repeated(self) -> Bools:
        """Which events are duplicates of an earlier one, in all columns."""
        return self.gathered([table.repeated() for table in self.tables], np.bool_)

    def without_duplicates(self) -> tuple[Batch, int]:
        """The events without duplicates, and the number of dropped rows that this bucket counts."""
        again = self.repeated()
        return self.where(~again), int((again & self.counted).sum())

    def described(self, event: int) -> str:
        """The time and the key of an event, for a message."""
        table = self.tables[self.stream[event]]
        row = int((self.stream[:event] == self.stream[event]).sum())
        names = (table.layout.time, *table.layout.keys)
        return last_one({name: table.table[name][row] for name in names})

    def quarantined_late(self) -> pa.Table:
        """The rows for the quarantine of late rows; a row is quarantined by the bucket that counts it."""
        counted = self.where(self.counted)
        parts = [quarantine(table.layout.name, LATE, plain_rows(table.table)) for table in counted.tables]
        return pa.concat_tables([QUARANTINE.empty_table(), *parts])


def role_columns(roles: pa.Table, kinds: Mapping[str, type]) -> dict[str, Numbers]:
    """The role columns as arrays of the given types; those that the table does not have are 0."""
    return {
        name: roles[name].to_numpy().astype(kind) if name in roles.column_names else np.zeros(roles.num_rows, kind)
        for name, kind in kinds.items()
    }


def lists_of_events(batch: Batch, stream: int, rows: I64, list_type: pa.ListType) -> pa.Array:
    """Convert row numbers (n, k) of a stream to one list of k events per answer; -1 is a missing event, NULL."""
    missing = (rows < 0).ravel()
    table = batch.tables[stream].table.take(pa.array(rows.ravel(), mask=missing)).combine_chunks()
    events = pa.StructArray.from_arrays(
        [flat(column) for column in table.columns], fields=list(list_type.value_type), mask=pa.array(missing)
    )
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), events, type=list_type)


def row_numbers(stream: I64, n_streams: int) -> I64:
    """The index of each event among the events of its stream."""
    if n_streams == 1:
        return np.arange(len(stream))
    rows = np.empty(len(stream), np.int64)
    for number in range(n_streams):
        is_stream = stream == number
        rows[is_stream] = np.arange(is_stream.sum())
    return rows
