"""Invalid entities: their rows are quarantined together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from anabranch.arrays import Bools
from anabranch.relate.assembly import FAULTS, IntervalRows, assemble
from anabranch.transport.checks import row_codes
from anabranch.transport.interval_columns import interval_numbers
from anabranch.transport.layout import Layout
from anabranch.transport.segments import events_of


def invalid_entities(table: pa.Table, layout: Layout) -> Iterator[tuple[str, Bools]]:
    """The rows of entities that are invalid as a whole, by reason; the table has all rows of an entity."""
    events = events_of(table, layout)
    entity = row_codes(events, layout.keys)
    rows = IntervalRows.of(entity, interval_numbers(events, layout))
    rows = rows if layout.interval is None or layout.interval.order else rows.numbered()
    fault = assemble(rows, int(entity.max()) + 1, layout.horizon, laws=layout.segment_laws).fault
    of_row = entity[:: events.num_rows // table.num_rows]
    for number in np.unique(fault[fault > 0]):
        yield FAULTS[int(number)], fault[of_row] == number
