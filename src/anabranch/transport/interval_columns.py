"""The columns of INTERVALS rows as numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, END, I64, Numbers
from anabranch.columns.times import encode_known_times
from anabranch.transport.layout import Layout
from anabranch.transport.segments import FIRST, LAST, POSITION

#: What an event does to its entity.
ROLES = ("start", "suspend", "resume", "end")

#: The names of the ends of the horizon of an entity, in packets.
HORIZONS = ("horizon_lo", "horizon_hi")


def interval_numbers(table: pa.Table, layout: Layout) -> dict[str, Numbers]:
    """The columns of INTERVALS rows; unknown times are BEGINNING, and END for the end of a window.

    Rows of segments are those of `events_of`; their `lo` and `hi` are the ends of the segment.
    """
    interval, kind = layout.interval, layout.time_kind
    if interval is None:
        return {}
    position = interval.order if layout.start is None else POSITION
    columns = {"t": encode_known_times(table[layout.time], kind), "seq": whole_numbers(table[position])}
    if layout.start is not None:
        # The ends of the segment are no closer than its neighbours, so as a window they change nothing.
        columns["lo"] = encode_known_times(table[FIRST], kind)
        columns["hi"] = encode_known_times(table[LAST], kind, unknown=END)
    if interval.length:
        columns["length"] = whole_numbers(table[interval.length])
    if interval.role:
        columns["role"] = role_numbers(table[interval.role])
    if interval.window:
        low, high = interval.window
        columns["lo"] = encode_known_times(table[low], kind)
        columns["hi"] = encode_known_times(table[high], kind, unknown=END)
    for name, column, unknown in zip(HORIZONS, interval.horizon_columns, (BEGINNING, END), strict=True):
        if column is not None:
            columns[name] = encode_known_times(table[column], kind, unknown)
    for name, (law, column) in interval.laws_by_row.items():
        columns[name] = law.encode(table[column], kind)
    return columns


def whole_numbers(column: pa.ChunkedArray) -> I64:
    """A column of integers; 0 for NULL."""
    return pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy()


def role_numbers(column: pa.ChunkedArray) -> I64:
    """The index of each role in ROLES; -1 for NULL, -2 for an unknown role."""
    names = pc.utf8_lower(pc.cast(column, pa.string()))
    numbers = pc.fill_null(pc.index_in(names, value_set=pa.array(ROLES)), -2)
    return pc.if_else(column.is_null(), -1, numbers).to_numpy().astype(np.int64)
