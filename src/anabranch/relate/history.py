"""The lengths of recorded segments and gaps of an INTERVALS stream: the history for `fit_durations`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64
from anabranch.columns.dictionary import flat
from anabranch.relate.assembly import IntervalRows, assemble
from anabranch.relate.fit import Lengths, lengths_of
from anabranch.transport.checks import row_codes
from anabranch.transport.interval_columns import interval_numbers
from anabranch.transport.layout import Layout
from anabranch.transport.segments import events_of


@dataclass(frozen=True, slots=True)
class History:
    """The lengths of segments and gaps, and the names of their classes."""

    lengths: Lengths
    classes: tuple[str, ...]


def make_history(table: pa.Table, layout: Layout, by: str | None) -> History:
    """The lengths in the rows of a stream.

    Parameters
    ----------
    table : all rows
    layout : of the stream
    by : the column of the class, which is that of the row that opens a segment; without it, there are no classes
    """
    table = events_of(table, layout)
    entity = row_codes(table, layout.keys)
    rows = IntervalRows.of(entity, interval_numbers(table, layout))
    rows = rows if layout.interval is None or layout.interval.order else rows.numbered()
    assembled = assemble(rows, int(entity.max(initial=-1)) + 1, layout.horizon)
    classes = np.full(len(assembled.lo), -1)
    names: tuple[str, ...] = ()
    if by is not None:
        column = next(name for name in table.column_names if name.lower() == by.lower())
        texts = pc.cast(flat(table[column]), pa.string()).dictionary_encode()
        names = tuple(texts.dictionary.to_pylist())
        codes = pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        classes = _classes(rows, codes, assembled.events)
    return History(lengths_of(assembled.windows, layout.time_kind, classes, len(names)), names)


def _classes(rows: IntervalRows, codes: I64, events: I64) -> I64:
    """The class of the segment that each event opens or closes."""
    classes = np.full(int(events[-1]), -1)
    opening = (rows.seq % 2 == 1) & (rows.seq < np.diff(events)[rows.entity])
    first = events[rows.entity[opening]] + rows.seq[opening] - 1
    for event in (first, first + 1):
        classes[event] = codes[opening]
    return classes
