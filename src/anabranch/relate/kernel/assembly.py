"""Assembles rows into entities: their order, their faults, and the windows of their events."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import BEGINNING, END, I8, I64, Bools
from anabranch.compiled import assign, compiled

#: The most point events of an entity, and the most consecutive ones that may be lost.
MOST_EVENTS = 20_000
MOST_LOST = 500

#: The faults of an entity; `FAULTS` in `relate/assembly.py` has their texts.
REPEATED, LENGTHS, BEYOND, ODD, ORDER, NO_START, NO_END, NO_ROOM, TOO_LONG, NO_MEAN = range(1, 11)


@compiled
def order_rows(entity: I64, seq: I64, n_entities: int) -> tuple[I64, I64]:
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
def check_entities(
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
                    fault[e] = REPEATED
                continue
            highest = seq[row]
            if length[row] > 0:
                fault[e] = LENGTHS if known > 0 and known != length[row] else fault[e]
                known = length[row]
            if role[row] == 3:
                fault[e] = LENGTHS if last > 0 else fault[e]
                last = seq[row]
            if t[row] > BEGINNING:
                fault[e] = ORDER if t[row] <= latest else fault[e]
                latest = t[row]
        if known > 0 and last > 0 and known != last:
            fault[e] = LENGTHS
        total = max(known, last) if max(known, last) > 0 else highest
        if highest > total:
            fault[e] = BEYOND
        if not complete[e]:
            total = highest - highest % 2
        elif total % 2 == 1:
            fault[e] = ODD
        if total > MOST_EVENTS:
            fault[e] = TOO_LONG
        count[e] = 0 if fault[e] == TOO_LONG else total
    return fault, count, duplicate


@compiled
def event_windows(
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
        return NO_START
    if hi[-1] == END:
        return NO_END
    consecutive = 0
    for x in range(len(lo)):
        if not recorded[x] and lo[x] >= hi[x]:
            return NO_ROOM
        consecutive = 0 if recorded[x] else consecutive + 1
        if consecutive > MOST_LOST:
            return TOO_LONG
    return 0
