"""Assembles the rows of an INTERVALS stream into entities, and finds the faults of invalid entities.

An entity is described by the windows of its point events, in order of position. The window of a recorded event has
length 0. A lost event lies between its recorded neighbours, in the WINDOW of its row, and within the HORIZON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, I8, I64, Bools, Numbers
from anabranch.relate import kernel

#: Why all rows of an entity are quarantined.
FAULTS = {
    kernel.REPEATED: "two different rows of its entity have the same position",
    kernel.LENGTHS: "the rows of its entity disagree about the number of events",
    kernel.BEYOND: "its entity has an event after its last event",
    kernel.ODD: "its entity has an odd number of events",
    kernel.ORDER: "the times of its entity do not increase with the position",
    kernel.NO_START: "the first event of its entity is lost, and no HORIZON or WINDOW gives its earliest time",
    kernel.NO_END: "the last event of its entity is lost, and no HORIZON or WINDOW gives its latest time",
    kernel.NO_ROOM: "an event of its entity is lost, and its neighbours, HORIZON and WINDOW leave no time for it",
    kernel.TOO_LONG: (
        f"its entity has more than {kernel.MOST_EVENTS:,} events, "
        f"or more than {kernel.MOST_LOST} consecutive lost events"
    ),
}


@dataclass(slots=True)
class IntervalRows:
    """Rows as columns; entities are numbered from 0.

    For unknown values, `t` and `lo` are BEGINNING, `hi` is END, `length` is 0 and `role` is -1.
    """

    entity: I64
    seq: I64
    t: I64
    length: I64
    role: I64
    lo: I64
    hi: I64

    def __len__(self) -> int:
        return len(self.t)

    def arrays(self) -> dict[str, I64]:
        """The columns by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def where(self, chosen: Numbers) -> IntervalRows:
        """The rows selected by a mask or by indexes."""
        return IntervalRows(**{name: column[chosen] for name, column in self.arrays().items()})

    @staticmethod
    def of(entity: Numbers, columns: Mapping[str, Numbers]) -> IntervalRows:
        """Rows from the columns of their stream; missing columns are unknown."""
        n = len(entity)
        unknown = {"length": 0, "role": -1, "lo": BEGINNING, "hi": END}
        filled = {name: columns[name] if name in columns else np.full(n, value) for name, value in unknown.items()}
        # A window of length 0 is the time of the event.
        lost = columns["t"] == BEGINNING
        t = np.where(lost & (filled["lo"] == filled["hi"]), filled["lo"], columns["t"])
        return IntervalRows(entity.astype(np.int64), columns["seq"], t, **filled)

    @staticmethod
    def from_table(table: pa.Table) -> IntervalRows:
        """Rows from a table with all columns."""
        return IntervalRows(**{name: table[name].to_numpy().copy() for name in IntervalRows.__slots__})

    @staticmethod
    def concat(parts: list[IntervalRows]) -> IntervalRows:
        """The rows of all parts, in order."""
        if not parts:
            return IntervalRows(*(np.zeros(0, np.int64) for _ in IntervalRows.__slots__))
        return IntervalRows(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in IntervalRows.__slots__}
        )


@dataclass(frozen=True, slots=True)
class Assembled:
    """Assembled entities.

    Attributes
    ----------
    fault : for each entity a key of FAULTS, or 0; an entity with a fault has no events
    events : the index of each entity's first event in `lo` and `hi`; one entry more than entities
    lo, hi : the window of each event; for a recorded event both are its time
    duplicate : for each row, whether it is equal to another row
    """

    fault: I8
    events: I64
    lo: I64
    hi: I64
    duplicate: Bools


def assemble(rows: IntervalRows, n_entities: int, horizon: tuple[int, int], complete: Bools | bool = True) -> Assembled:
    """Assemble entities from rows.

    Of an entity that is not `complete`, only the closed segments are assembled.
    """
    # Numba would compile the functions a second time for read-only columns, such as those of Arrow.
    row_columns = (rows.seq, rows.t, rows.length, rows.role, rows.lo, rows.hi)
    columns = [np.require(column, requirements=["C", "W"]) for column in row_columns]
    order, starts = kernel.order_rows(rows.entity, columns[0], n_entities)
    fault, count, duplicate = kernel.check_entities(order, starts, np.full(n_entities, complete, np.bool_), *columns)
    events = np.concatenate([[0], np.cumsum(count)])
    lo, hi = kernel.event_windows(order, starts, events, fault, *horizon, *columns)
    if fault.any():
        kept = np.repeat(fault == 0, count)
        lo, hi = lo[kept], hi[kept]
        events = np.concatenate([[0], np.cumsum(np.where(fault == 0, count, 0))])
    return Assembled(fault, events, lo, hi, duplicate)
