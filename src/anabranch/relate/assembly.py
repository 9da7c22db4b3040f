"""Assembles the rows of an INTERVALS stream into entities, and finds the faults of invalid entities.

An entity is described by the windows of its point events, in order of position. The window of a recorded event has
length 0. A lost event lies between its recorded neighbours, in the WINDOW of its row, and within the HORIZON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, F64, I8, I64, Bools, Numbers
from anabranch.relate import kernel
from anabranch.relate.windows import Windows
from anabranch.transport.layout import SegmentLaws

#: The columns of means.
_MEANS = ("segment_mean", "gap_mean")

#: The columns in which rows with the same position and time may differ; the kernel compares the others.
_COMPARED = (*_MEANS, "attributes")

#: The columns that rows need not have, and what stands for an unknown value.
_UNKNOWN = {
    "length": 0, "role": -1, "lo": BEGINNING, "hi": END, "segment_mean": 0, "gap_mean": 0,
    "horizon_lo": BEGINNING, "horizon_hi": END, "attributes": -1, "page": 0,
}  # fmt: skip

#: The fault of an entity whose rows disagree about the HORIZON; the kernel knows the others.
HORIZON_FAULT = kernel.NO_MEAN + 1

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
    kernel.NO_MEAN: "an event of its entity is lost, and no row of the entity has a mean for DURATION or GAP",
    HORIZON_FAULT: "the rows of its entity disagree about the HORIZON",
    kernel.TOO_LONG: (
        f"its entity has more than {kernel.MOST_EVENTS:,} events, "
        f"or more than {kernel.MOST_LOST} consecutive lost events"
    ),
}


@dataclass(slots=True)
class IntervalRows:
    """Rows as columns; entities are numbered from 0.

    For unknown values, `t` and `lo` are BEGINNING, `hi` is END, `length` is 0 and `role` is -1. `segment_mean` and
    `gap_mean` belong to the segment that an event opens and the gap after it; see `SegmentTimes.encode`. `horizon_lo`
    and `horizon_hi` are those of the entity, where a column has them. `attributes` is the number of the row's
    attributes, -1 if the query uses none. `page` is the page in which a stream has saved the row, 0 if it has not.
    """

    entity: I64
    seq: I64
    t: I64
    length: I64
    role: I64
    lo: I64
    hi: I64
    segment_mean: I64
    gap_mean: I64
    horizon_lo: I64
    horizon_hi: I64
    attributes: I64
    page: I64

    def __len__(self) -> int:
        return len(self.t)

    def arrays(self) -> dict[str, I64]:
        """The columns by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def numbered(self) -> IntervalRows:
        """Rows of segments (`lo`, `hi`) with the positions that the segments of an entity have in order of time."""
        order = np.lexsort((self.hi, self.lo, self.entity))
        entity, lo, hi = self.entity[order], self.lo[order], self.hi[order]
        new_entity = np.append(True, entity[1:] != entity[:-1])[: len(order)]
        new = new_entity | np.append(True, (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1]))[: len(order)]
        number = np.cumsum(new)  # of the segment among all entities
        first = number[np.maximum.accumulate(np.where(new_entity, np.arange(len(order)), 0))]
        seq = self.seq.copy()
        seq[order] = 2 * (number - first) + 2 - self.seq[order] % 2
        return replace(self, seq=seq)

    def where(self, chosen: Numbers) -> IntervalRows:
        """The rows selected by a mask or by indexes."""
        return IntervalRows(**{name: column[chosen] for name, column in self.arrays().items()})

    @staticmethod
    def of(entity: Numbers, columns: Mapping[str, Numbers]) -> IntervalRows:
        """Rows from the columns of their stream; missing columns are unknown."""
        n = len(entity)
        filled = {name: columns[name] if name in columns else np.full(n, value) for name, value in _UNKNOWN.items()}
        # A window of length 0 is the time of the event.
        lost = columns["t"] == BEGINNING
        t = np.where(lost & (filled["lo"] == filled["hi"]), filled["lo"], columns["t"])
        return IntervalRows(entity.astype(np.int64), columns["seq"], t, **filled)

    @staticmethod
    def from_table(table: pa.Table) -> IntervalRows:
        """Rows from a table with all columns."""
        columns = {name: table[name].to_numpy().copy() for name in table.column_names}
        for name, value in _UNKNOWN.items():  # earlier versions wrote no means, no horizons and no attributes
            columns.setdefault(name, np.full(table.num_rows, value))
        return IntervalRows(**columns)

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
    phases, rates : of the state that each event begins; None if segments and gaps have no distributions
    attributes : of the segment that each event opens, see `Windows`
    duplicate : for each row, whether it is equal to another row
    """

    fault: I8
    events: I64
    lo: I64
    hi: I64
    phases: I64 | None
    rates: F64 | None
    attributes: I64 | None
    duplicate: Bools

    @property
    def windows(self) -> Windows:
        """The windows of the events."""
        return Windows(self.events, self.lo, self.hi, self.phases, self.rates, self.attributes)


def assemble(
    rows: IntervalRows,
    n_entities: int,
    horizon: tuple[int, int],
    complete: Bools | bool = True,
    laws: SegmentLaws = (None, None),
    with_attributes: bool = False,
) -> Assembled:
    """Assemble entities from rows.

    Of an entity that is not `complete`, only the closed segments are assembled.
    """
    n_rows = len(rows)
    disagree = np.zeros(n_entities, np.bool_)
    if (rows.horizon_lo > BEGINNING).any() or (rows.horizon_hi < END).any():
        rows, disagree = _within_horizons(rows, n_entities)
    # Numba would compile the functions a second time for read-only columns, such as those of Arrow.
    row_columns = (rows.seq, rows.t, rows.length, rows.role, rows.lo, rows.hi)
    columns = [np.require(column, requirements=["C", "W"]) for column in row_columns]
    order, starts = kernel.order_rows(rows.entity, columns[0], n_entities)
    fault, count, duplicate = kernel.check_entities(order, starts, np.full(n_entities, complete, np.bool_), *columns)
    _compare_duplicates(rows, order, duplicate, fault)
    fault[disagree] = HORIZON_FAULT
    events = np.concatenate([[0], np.cumsum(count)])
    lo, hi = kernel.event_windows(order, starts, events, fault, *horizon, *columns)
    phases = rates = None
    if any(laws):
        phases, rates = _states(rows.where(~duplicate), events, lo < hi, laws, fault)
    attributes = _attributes(rows, events) if with_attributes else None
    if fault.any():
        kept = np.repeat(fault == 0, count)
        lo, hi = lo[kept], hi[kept]
        phases, rates, attributes = (None if column is None else column[kept] for column in (phases, rates, attributes))
        events = np.concatenate([[0], np.cumsum(np.where(fault == 0, count, 0))])
    return Assembled(fault, events, lo, hi, phases, rates, attributes, duplicate[:n_rows])


def _within_horizons(rows: IntervalRows, n_entities: int) -> tuple[IntervalRows, Bools]:
    """The rows with the horizons of their entities as windows of lost events; and the entities whose rows disagree.

    A first or last event without a row gets one: the order then bounds all lost events next to it.
    """
    low, high = np.full(n_entities, BEGINNING), np.full(n_entities, END)
    np.maximum.at(low, rows.entity, rows.horizon_lo)
    np.minimum.at(high, rows.entity, rows.horizon_hi)
    disagree = np.zeros(n_entities, np.bool_)
    for stated, unknown, of_entity in ((rows.horizon_lo, BEGINNING, low), (rows.horizon_hi, END, high)):
        disagree[rows.entity[(stated != unknown) & (stated != of_entity[rows.entity])]] = True
    lost = rows.t == BEGINNING
    bounded = replace(
        rows,
        lo=np.where(lost, np.maximum(rows.lo, low[rows.entity]), rows.lo),
        hi=np.where(lost, np.minimum(rows.hi, high[rows.entity]), rows.hi),
    )
    first, last, length = np.full(n_entities, END), np.zeros(n_entities, np.int64), np.zeros(n_entities, np.int64)
    np.minimum.at(first, rows.entity, rows.seq)
    np.maximum.at(last, rows.entity, rows.seq)
    np.maximum.at(length, rows.entity, rows.length)
    no_first, no_last = np.flatnonzero((first > 1) & (first < END)), np.flatnonzero((last > 0) & (last < length))
    entity = np.concatenate([no_first, no_last])
    seq = np.concatenate([np.ones(len(no_first), np.int64), length[no_last]])
    unrecorded = {"t": np.full(len(entity), BEGINNING), "seq": seq, "lo": low[entity], "hi": high[entity]}
    return IntervalRows.concat([bounded, IntervalRows.of(entity, unrecorded)]), disagree


def _compare_duplicates(rows: IntervalRows, order: I64, duplicate: Bools, fault: I8) -> None:
    """Write a fault for each entity with rows that differ only in means or attributes; they are no duplicates."""
    again = np.flatnonzero(duplicate[order])
    for name in _COMPARED:
        column = getattr(rows, name)[order]
        different = order[again[column[again] != column[again - 1]]]
        duplicate[different] = False
        fault[rows.entity[different]] = kernel.REPEATED


def _states(rows: IntervalRows, events: I64, lost: Bools, laws: SegmentLaws, fault: I8) -> tuple[I64, F64]:
    """The number of phases, and the rate of a phase, of the state that each event begins.

    Odd positions begin segments, even ones begin gaps. The state after the last event has the rate 0. A mean of a
    segment or gap that is unknown is the average of its entity; writes a fault where that is unknown too, and needed.
    """
    n_events = int(events[-1])
    position = np.arange(n_events) - np.repeat(events[:-1], np.diff(events))
    phases, rates = np.ones(n_events, np.int64), np.zeros(n_events)
    entity = np.repeat(np.arange(len(events) - 1), np.diff(events))
    incomplete = np.bincount(entity, lost, len(events) - 1) > 0
    for offset, (name, law) in enumerate(zip(_MEANS, laws, strict=True)):
        if law is None:
            continue
        ks, means = np.full(n_events, float(law.phases)), np.full(n_events, law.mean or np.nan)
        if law.column is not None:
            ks, means = (_by_state(rows, values, events, offset) for values in law.decode(getattr(rows, name)))
        states = position % 2 == offset
        states[events[1:][np.diff(events) > 0] - 1] = False
        unknown = states & np.isnan(means)
        fault[np.unique(entity[unknown & incomplete[entity] & (fault[entity] == 0)])] = kernel.NO_MEAN
        known = states & ~unknown
        phases[known] = np.maximum(1, np.rint(ks[known])).astype(np.int64)
        rates[known] = phases[known] / means[known]
    return phases, rates


def _attributes(rows: IntervalRows, events: I64) -> I64:
    """The number of the attributes of the segment that each event opens, from the row of that event."""
    attributes = np.full(int(events[-1]), -1)
    opening = (rows.seq % 2 == 1) & (rows.seq <= np.diff(events)[rows.entity])
    attributes[events[rows.entity[opening]] + rows.seq[opening] - 1] = rows.attributes[opening]
    return attributes


def _by_state(rows: IntervalRows, values: F64, events: I64, offset: int) -> F64:
    """The value of the state that each event begins: of the row that opens its segment, else the average by entity.

    The state of a segment begins with that event (`offset` 0), the gap after it one event later (1).
    """
    n_entities, known = len(events) - 1, ~np.isnan(values)
    counts = np.bincount(rows.entity[known], minlength=n_entities)
    sums = np.bincount(rows.entity[known], values[known], minlength=n_entities)
    average = np.divide(sums, counts, out=np.full(n_entities, np.nan), where=counts > 0)
    by_state = np.repeat(average, np.diff(events))
    opening = known & (rows.seq % 2 == 1) & (rows.seq + offset <= np.diff(events)[rows.entity])
    by_state[events[rows.entity[opening]] + rows.seq[opening] - 1 + offset] = values[opening]
    return by_state
