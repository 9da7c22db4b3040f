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


def invalid_entities(table: pa.Table, layout: Layout) -> Iterator[tuple[str, Bools]]:
    """The rows of entities that are invalid as a whole, by reason; the table has all rows of an entity."""
    entity = row_codes(table, layout.keys)
    rows = IntervalRows.of(entity, interval_numbers(table, layout))
    fault = assemble(rows, int(entity.max()) + 1, layout.horizon, laws=layout.segment_laws).fault
    for number in np.unique(fault[fault > 0]):
        yield FAULTS[int(number)], fault[entity] == number
