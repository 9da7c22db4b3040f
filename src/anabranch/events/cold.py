"""The cold events of a bucket: kept events of keys without new ones are moved from the operator to pages, and back.

A row of a page is one event: its columns, in a struct of its stream, and a list of its roles. Only queries whose
matches are among the events of one key, and which nothing but an event of the key makes due, can have cold events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import U64
from anabranch.columns.dictionary import flat
from anabranch.events.batch import Batch, role_columns, row_numbers
from anabranch.events.table import EventTable
from anabranch.transport.layout import Layout
from anabranch.transport.pages import HASH, Pages

#: The hash of the key of each event, given the number of their stream.
KeyHashes = Callable[[int, EventTable], U64]

_STREAM, _COUNTED, _TIME, _ROLES = "stream", "counted", "time", "roles"


class ColdEvents:
    """Moves the events of idle keys between an operator and pages.

    Parameters
    ----------
    hashes : of the keys of events
    role_types : the types of the role columns
    """

    def __init__(
        self, pages: Pages, layouts: Sequence[Layout], role_types: Mapping[str, type], hashes: KeyHashes
    ) -> None:
        self.pages = pages
        self._layouts, self._role_types, self._hashes = layouts, role_types, hashes

    def hashes(self, batch: Batch) -> U64:
        """The hash of the key of each event."""
        return batch.gathered([self._hashes(number, table) for number, table in enumerate(batch.tables)], np.uint64)

    def warm(self, arrived: Batch, kept: Batch) -> Batch:
        """The kept events, with the cold ones of the keys that have arrived."""
        if not len(self.pages) or not len(arrived):
            return kept
        absent = np.setdiff1d(self.hashes(arrived), self.hashes(kept))
        return Batch.concat([kept, *map(self._events, self.pages.take(absent))])

    def take_all(self) -> Batch:
        """All cold events, which are not cold any more."""
        parts = map(self._events, self.pages.take_all())
        return Batch.concat([Batch.empty(self._layouts, self._role_types), *parts])

    def cool(self, kept: Batch, busy: Sequence[Batch], forgotten: int) -> Batch:
        """Move the kept events of all but the busy keys to pages, if they are many; returns the others.

        Cold events before the time `forgotten`, a code, are removed from the pages that are used.
        """
        if not len(kept):
            return kept
        hashes = self.hashes(kept)
        is_idle = ~np.isin(hashes, np.concatenate([self.hashes(batch) for batch in busy]))
        if not self.pages.wants(len(np.unique(hashes[is_idle]))):
            return kept
        idle = kept.where(is_idle)
        self.pages.put(self._rows(idle, hashes[is_idle]), lambda rows: rows[_TIME].to_numpy() >= forgotten)
        return kept.take(np.flatnonzero(~is_idle))

    def _rows(self, batch: Batch, hashes: U64) -> pa.Table:
        """Events as rows of pages."""
        rows = row_numbers(batch.stream, len(batch.tables))
        columns: dict[str, pa.Array] = {
            HASH: pa.array(hashes), _STREAM: pa.array(batch.stream), _COUNTED: pa.array(batch.counted),
            _TIME: pa.array(batch.event_time),
        }  # fmt: skip
        for number, table in enumerate(batch.tables):
            absent = batch.stream != number
            chosen = table.table.take(pa.array(np.where(absent, 0, rows), mask=absent))
            fields = [flat(column) for column in chosen.columns]
            columns[f"event {number}"] = pa.StructArray.from_arrays(fields, chosen.column_names)
        roles = pa.StructArray.from_arrays([pa.array(column) for column in batch.roles.values()], [*batch.roles])
        columns[_ROLES] = pa.ListArray.from_arrays(pa.array(batch.first, pa.int32()), roles)
        return pa.table(columns)

    def _events(self, rows: pa.Table) -> Batch:
        """The events of rows of pages; role columns that they do not have are 0."""
        stream = rows[_STREAM].to_numpy()
        tables = []
        for number, layout in enumerate(self._layouts):
            events = flat(rows[f"event {number}"]).filter(pa.array(stream == number))
            tables.append(EventTable(_table(events), layout))
        lists = flat(rows[_ROLES])
        first = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())]).astype(np.int64)
        roles = role_columns(_table(lists.flatten()), self._role_types)
        return Batch(tables, stream, rows[_COUNTED].to_numpy(), first, roles)


def _table(structs: pa.StructArray) -> pa.Table:
    """Structs as rows."""
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(structs)])
