"""Assembles the rows of an INTERVALS stream into entities, and finds the faults of invalid entities.

An entity is described by the windows of its point events, in order of position. The window of a recorded event has
length 0. A lost event lies between its recorded neighbours, in the WINDOW of its row, and within the HORIZON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import I8, I64, Bools, Numbers
from anabranch.columns.times import BEGINNING, END
from anabranch.compiled import assign, compiled

#: The most point events of an entity, and the most consecutive ones that may be lost.
MOST_EVENTS = 20_000
MOST_LOST = 500

_REPEATED, _LENGTHS, _BEYOND, _ODD, _ORDER, _NO_START, _NO_END, _NO_ROOM, _TOO_LONG = range(1, 10)

#: Why all rows of an entity are quarantined.
FAULTS = {
    _REPEATED: "two different rows of its entity have the same position",
    _LENGTHS: "the rows of its entity disagree about the number of events",
    _BEYOND: "its entity has an event after its last event",
    _ODD: "its entity has an odd number of events",
    _ORDER: "the times of its entity do not increase with the position",
    _NO_START: "the first event of its entity is lost, and no HORIZON or WINDOW gives its earliest time",
    _NO_END: "the last event of its entity is lost, and no HORIZON or WINDOW gives its latest time",
    _NO_ROOM: "an event of its entity is lost, and its neighbours, HORIZON and WINDOW leave no time for it",
    _TOO_LONG: f"its entity has more than {MOST_EVENTS:,} events, or more than {MOST_LOST} consecutive lost events",
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
    order, starts = _order(rows.entity, columns[0], n_entities)
    fault, count, duplicate = _check_entities(order, starts, np.full(n_entities, complete, np.bool_), *columns)
    events = np.concatenate([[0], np.cumsum(count)])
    lo, hi = _windows(order, starts, events, fault, *horizon, *columns)
    if fault.any():
        kept = np.repeat(fault == 0, count)
        lo, hi = lo[kept], hi[kept]
        events = np.concatenate([[0], np.cumsum(np.where(fault == 0, count, 0))])
    return Assembled(fault, events, lo, hi, duplicate)


@compiled
def _order(entity: I64, seq: I64, n_entities: int) -> tuple[I64, I64]:
    """The order of the rows by entity and position, and the index at which each entity starts in it."""
    starts = np.zeros(n_entities + 1, np.int64)
    for e in entity:
        starts[e + 1] += 1
    for e in range(n_entities):
        starts[e + 1] += starts[e]
    fill = starts[:-1].copy()
    order = np.empty(len(entity), np.int64)
    for row in range(len(entity)):
        order[fill[entity[row]]] = row
        fill[entity[row]] += 1
    for e in range(n_entities):
        part = order[starts[e] : starts[e + 1]]
        in_order = True
        for k in range(1, len(part)):
            in_order &= seq[part[k - 1]] <= seq[part[k]]
        if not in_order:
            assign(part, part[np.argsort(seq[part], kind="mergesort")])
    return order, starts


@compiled
def _check_entities(
    order: I64, starts: I64, complete: Bools, seq: I64, t: I64, length: I64, role: I64, lo: I64, hi: I64
) -> tuple[I8, I64, Bools]:
    """For each entity its fault (or 0) and its number of events; for each row, whether it is a duplicate.

    `known` is the number of events by LENGTH, `last` the position with ROLE 'end', and `highest` the highest position.
    """
    n_entities = len(starts) - 1
    fault = np.zeros(n_entities, np.int8)
    count = np.zeros(n_entities, np.int64)
    duplicate = np.zeros(len(order), np.bool_)
    for e in range(n_entities):
        known = last = highest = np.int64(0)
        latest = BEGINNING
        for k in range(starts[e], starts[e + 1]):
            row = order[k]
            if k > starts[e] and seq[row] == seq[order[k - 1]]:
                other = order[k - 1]
                same = t[row] == t[other] and length[row] == length[other] and role[row] == role[other]
                if same and lo[row] == lo[other] and hi[row] == hi[other]:
                    duplicate[row] = True
                else:
                    fault[e] = _REPEATED
                continue
            highest = seq[row]
            if length[row] > 0:
                fault[e] = _LENGTHS if known > 0 and known != length[row] else fault[e]
                known = length[row]
            if role[row] == 3:
                fault[e] = _LENGTHS if last > 0 else fault[e]
                last = seq[row]
            if t[row] > BEGINNING:
                fault[e] = _ORDER if t[row] <= latest else fault[e]
                latest = t[row]
        if known > 0 and last > 0 and known != last:
            fault[e] = _LENGTHS
        total = max(known, last) if max(known, last) > 0 else highest
        if highest > total:
            fault[e] = _BEYOND
        if not complete[e]:
            total = highest - highest % 2
        elif total % 2 == 1:
            fault[e] = _ODD
        if total > MOST_EVENTS:
            fault[e] = _TOO_LONG
        count[e] = 0 if fault[e] == _TOO_LONG else total
    return fault, count, duplicate


@compiled
def _windows(
    order: I64, starts: I64, events: I64, fault: I8, horizon_lo: int, horizon_hi: int,
    seq: I64, t: I64, length: I64, role: I64, row_lo: I64, row_hi: I64,
) -> tuple[I64, I64]:  # fmt: skip
    """The window of every event; writes a fault for each entity in which an event has an empty window."""
    lo = np.full(events[-1], horizon_lo)
    hi = np.full(events[-1], horizon_hi)
    recorded = np.zeros(events[-1], np.bool_)
    for e in range(len(starts) - 1):
        first, n_events = events[e] - 1, events[e + 1] - events[e]
        beyond = horizon_hi  # the time of the first recorded event after the assembled ones
        for k in range(starts[e], starts[e + 1]):
            row = order[k]
            if seq[row] > n_events:
                beyond = t[row] if t[row] > BEGINNING and beyond == horizon_hi else beyond
                continue
            x = first + seq[row]
            if t[row] > BEGINNING:
                lo[x] = hi[x] = t[row]
                recorded[x] = True
            else:
                lo[x], hi[x] = max(lo[x], row_lo[row]), min(hi[x], row_hi[row])
        if fault[e] == 0 and n_events > 0:
            entity_events = slice(first + 1, first + 1 + n_events)
            fault[e] = _tighten(lo[entity_events], hi[entity_events], recorded[entity_events], beyond)
    return lo, hi


@compiled
def _tighten(lo: I64, hi: I64, recorded: Bools, beyond: int) -> int:
    """Narrow the windows so that no event is before an earlier one or after a later one; returns a fault, or 0."""
    for x in range(1, len(lo)):
        lo[x] = lo[x] if recorded[x] else max(lo[x], lo[x - 1])
    hi[-1] = hi[-1] if recorded[-1] else min(hi[-1], beyond)
    for x in range(len(lo) - 2, -1, -1):
        hi[x] = hi[x] if recorded[x] else min(hi[x], hi[x + 1])
    if lo[0] == BEGINNING:
        return _NO_START
    if hi[-1] == END:
        return _NO_END
    consecutive = 0
    for x in range(len(lo)):
        if not recorded[x] and lo[x] >= hi[x]:
            return _NO_ROOM
        consecutive = 0 if recorded[x] else consecutive + 1
        if consecutive > MOST_LOST:
            return _TOO_LONG
    return 0
