"""Segments: rows with a start and an end (`TIME (t_from, t_to)` of INTERVALS) as two rows of point events each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.binding.typed import Reference, Typed, walk
from anabranch.columns.conditions import ARROW_TYPES, holds
from anabranch.columns.dictionary import plain
from anabranch.transport.layout import Layout

#: The columns that rows of point events have in addition: position, and both ends of the segment.
POSITION, FIRST, LAST = "_position", "_first", "_last"

#: The column of rows from which runs are made: 1 if a row satisfies the condition, else 0.
SATISFIES = "_satisfies"


def events_of(table: pa.Table, layout: Layout) -> pa.Table:
    """The rows of segments as rows of the events that open and close them; other rows do not change.

    The time of an event is in the column of the event time. Without ORDER, the position is 1 or 2: segments are
    numbered when all of their entity are known.
    """
    if layout.interval is None or layout.start is None:
        return table
    n, start, end = table.num_rows, table[layout.start], table[layout.time]
    is_end = np.tile([False, True], n)
    rows = table.take(pa.array(np.repeat(np.arange(n), 2)))
    number = np.zeros(n, np.int64)
    if layout.interval.order:
        number = pc.fill_null(pc.cast(table[layout.interval.order], pa.int64()), 1).to_numpy() - 1
    columns = {name: rows[name] for name in rows.column_names if name != layout.start}
    first, last = rows[layout.start], rows[layout.time]
    if start.type != end.type:
        first = first.cast(end.type)
    columns[layout.time] = pc.if_else(pa.array(is_end), last, first)
    columns |= {POSITION: pa.array(2 * np.repeat(number, 2) + 1 + is_end), FIRST: first, LAST: last}
    if layout.interval.length:
        columns[layout.interval.length] = pc.multiply(pc.cast(rows[layout.interval.length], pa.int64()), 2)
    return pa.table(columns)


def with_condition(table: pa.Table, condition: Typed, relations: Mapping[str, pa.Table]) -> pa.Table:
    """The rows with a column that says whether each satisfies the condition of WHILE."""
    columns = {name.lower(): plain(table[name]) for name in table.column_names}
    for node in walk(condition):
        if isinstance(node, Reference) and node.type in ARROW_TYPES:
            columns[node.name] = pc.cast(columns[node.name], ARROW_TYPES[node.type], safe=False)
    satisfied = holds(condition, columns, relations, table.num_rows)
    return table.append_column(SATISFIES, pa.array(satisfied.astype(np.int64)))
