"""Rows of a stream of INTERVALS put together to entities: what is recorded, what is lost, and what is wrong.

An entity is given by the window of each of its point events, in order of position. A recorded event has a window of no
length; a lost one lies between its recorded neighbours, in the WINDOW of its row, and within the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import I8, I64, Bools, Numbers
from anabranch.columns.times import BEGINNING, END
from anabranch.compiled import assign, compiled

#: An entity may have this many point events, and lose this many in a row.
MOST_EVENTS = 20_000
MOST_LOST = 500

_REPEATED, _LENGTHS, _BEYOND, _ODD, _ORDER, _NO_START, _NO_END, _NO_ROOM, _TOO_LONG = range(1, 10)

#: Why all rows of an entity are set aside.
FAULTS = {
    _REPEATED: "a position of its entity is there twice, with different contents",
    _LENGTHS: "the rows of its entity differ in how many point events it has",
    _BEYOND: "its entity has an event beyond its last",
    _ODD: "its entity has an odd number of point events",
    _ORDER: "the times of its entity do not increase with the position",
    _NO_START: "the first event of its entity is lost, and no HORIZON or WINDOW says when it was at the earliest",
    _NO_END: "the last event of its entity is lost, and no HORIZON or WINDOW says when it was at the latest",
    _NO_ROOM: "an event of its entity is lost, and there is no time between its neighbours, or left in its WINDOW",
    _TOO_LONG: f"its entity has more than {MOST_EVENTS:,} point events, or lost more than {MOST_LOST} in a row",
}


@dataclass(slots=True)
class IntervalRows:
    """Equally long arrays, one entry a row; `entity` counts from 0.

    `t` and `lo` are BEGINNING, `hi` is END, `length` 0 and `role` -1 where nothing is known.
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
        """The rows at a mask or an index."""
        return IntervalRows(**{name: column[chosen] for name, column in self.arrays().items()})

    @staticmethod
    def of(entity: Numbers, columns: Mapping[str, Numbers]) -> IntervalRows:
        """Rows from the columns that their stream has."""
        n = len(entity)
        unknown = {"length": 0, "role": -1, "lo": BEGINNING, "hi": END}
        filled = {name: columns[name] if name in columns else np.full(n, value) for name, value in unknown.items()}
        # A window of no length says when it was.
        lost = columns["t"] == BEGINNING
        t = np.where(lost & (filled["lo"] == filled["hi"]), filled["lo"], columns["t"])
        return IntervalRows(entity.astype(np.int64), columns["seq"], t, **filled)

    @staticmethod
    def from_table(table: pa.Table) -> IntervalRows:
        """Rows from a table of all columns."""
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
    """Entities made of rows.

    Attributes
    ----------
    fault : for each entity 0, or a key of FAULTS; an entity with a fault has no events
    events : where the events of each entity begin; one entry more than entities
    lo, hi : the window of each event; both are its instant where it is recorded
    duplicate : for each row, whether it says what another says
    """

    fault: I8
    events: I64
    lo: I64
    hi: I64
    duplicate: Bools


def assemble(rows: IntervalRows, n_entities: int, horizon: tuple[int, int], complete: Bools | bool = True) -> Assembled:
    """Put entities together.

    An entity that is not `complete` is taken as far as its segments are known to be closed.
    """
    # For columns that must not be written to, as Arrow's, the functions would be compiled once more.
    given = (rows.seq, rows.t, rows.length, rows.role, rows.lo, rows.hi)
    columns = [np.require(column, requirements=["C", "W"]) for column in given]
    order, starts = _order(rows.entity, columns[0], n_entities)
    fault, count, duplicate = _survey(order, starts, np.full(n_entities, complete, np.bool_), *columns)
    events = np.concatenate([[0], np.cumsum(count)])
    lo, hi = _windows(order, starts, events, fault, *horizon, *columns)
    if fault.any():
        kept = np.repeat(fault == 0, count)
        lo, hi = lo[kept], hi[kept]
        events = np.concatenate([[0], np.cumsum(np.where(fault == 0, count, 0))])
    return Assembled(fault, events, lo, hi, duplicate)


@compiled
def _order(entity: I64, seq: I64, n_entities: int) -> tuple[I64, I64]:
    """The order of rows by entity and position, and where each entity starts in it."""
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
def _survey(
    order: I64, starts: I64, complete: Bools, seq: I64, t: I64, length: I64, role: I64, lo: I64, hi: I64
) -> tuple[I8, I64, Bools]:
    """How many events each entity has, and what is wrong with its rows."""
    n_entities = len(starts) - 1
    fault = np.zeros(n_entities, np.int8)
    count = np.zeros(n_entities, np.int64)
    duplicate = np.zeros(len(order), np.bool_)
    for e in range(n_entities):
        known = last = highest = np.int64(0)
        newest = BEGINNING
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
                fault[e] = _ORDER if t[row] <= newest else fault[e]
                newest = t[row]
        if known > 0 and last > 0 and known != last:
            fault[e] = _LENGTHS
        in_all = max(known, last) if max(known, last) > 0 else highest
        if highest > in_all:
            fault[e] = _BEYOND
        if not complete[e]:
            in_all = highest - highest % 2
        elif in_all % 2 == 1:
            fault[e] = _ODD
        if in_all > MOST_EVENTS:
            fault[e] = _TOO_LONG
        count[e] = 0 if fault[e] == _TOO_LONG else in_all
    return fault, count, duplicate


@compiled
def _windows(
    order: I64, starts: I64, events: I64, fault: I8, horizon_lo: int, horizon_hi: int,
    seq: I64, t: I64, length: I64, role: I64, row_lo: I64, row_hi: I64,
) -> tuple[I64, I64]:  # fmt: skip
    """The window of every event; notes entities that leave none for one of theirs."""
    lo = np.full(events[-1], horizon_lo)
    hi = np.full(events[-1], horizon_hi)
    recorded = np.zeros(events[-1], np.bool_)
    for e in range(len(starts) - 1):
        first, n_events = events[e] - 1, events[e + 1] - events[e]
        beyond = horizon_hi  # the first recorded event after those that are taken
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
            mine = slice(first + 1, first + 1 + n_events)
            fault[e] = _tighten(lo[mine], hi[mine], recorded[mine], beyond)
    return lo, hi


@compiled
def _tighten(lo: I64, hi: I64, recorded: Bools, beyond: int) -> int:
    """Let no event be before one ahead of it, nor after one behind it; gives the fault where that cannot be."""
    for x in range(1, len(lo)):
        lo[x] = lo[x] if recorded[x] else max(lo[x], lo[x - 1])
    hi[-1] = hi[-1] if recorded[-1] else min(hi[-1], beyond)
    for x in range(len(lo) - 2, -1, -1):
        hi[x] = hi[x] if recorded[x] else min(hi[x], hi[x + 1])
    if lo[0] == BEGINNING:
        return _NO_START
    if hi[-1] == END:
        return _NO_END
    in_a_row = 0
    for x in range(len(lo)):
        if not recorded[x] and lo[x] >= hi[x]:
            return _NO_ROOM
        in_a_row = 0 if recorded[x] else in_a_row + 1
        if in_a_row > MOST_LOST:
            return _TOO_LONG
    return 0
