"""Runs (INTERVALS FROM s WHILE cond): maximal runs of a key's rows that satisfy a condition are segments.

A run begins at its first row and ends at the first row that does not satisfy the condition. After a silence, its end is
lost between its last row and the next row. Several rows of one key and time satisfy the condition if all of them do.
Rows are held until the watermark has passed them, so that runs do not depend on the split into micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, F64, I64, Bools
from anabranch.columns.times import TimeKind, later, restore_doubles
from anabranch.relate.assembly import IntervalRows
from anabranch.transport.layout import Layout, RunColumns
from anabranch.transport.watermark import Advance

#: What is known of each entity.
_BY_ENTITY = ("start", "last", "n_segments", "n_rows")


@dataclass(slots=True)
class RunRows:
    """Rows of the stream that is read: entity, time, and 1 if the row satisfies the condition, else 0."""

    entity: I64
    t: I64
    satisfies: I64

    def __len__(self) -> int:
        return len(self.t)

    def where(self, chosen: Bools | I64) -> RunRows:
        """The rows selected by a mask or by indexes."""
        return RunRows(self.entity[chosen], self.t[chosen], self.satisfies[chosen])

    @staticmethod
    def concat(parts: list[RunRows]) -> RunRows:
        """The rows of all parts."""
        columns = [[part.entity for part in parts], [part.t for part in parts], [part.satisfies for part in parts]]
        return RunRows(*(np.concatenate([np.zeros(0, np.int64), *column]) for column in columns))


class RunFinder:
    """Finds the runs of the entities of one bucket.

    For each entity: `start`, the time of the first row of its open run (BEGINNING if none is open); `last`, the time of
    its last row; `n_segments` so far; `n_rows` that were used.
    """

    def __init__(self, layout: Layout, runs: RunColumns, timeout: float | None) -> None:
        self._runs, self._kind, self._timeout = runs, layout.time_kind, timeout
        self.held = RunRows.concat([])
        self.start = self.last = self.n_segments = self.n_rows = np.zeros(0, np.int64)

    def grow(self, n_entities: int) -> None:
        """Add entities that have no rows yet."""
        missing = n_entities - len(self.last)
        unknown, none = np.full(missing, BEGINNING), np.zeros(missing, np.int64)
        self.start, self.last = np.concatenate([self.start, unknown]), np.concatenate([self.last, unknown])
        self.n_segments = np.concatenate([self.n_segments, none])
        self.n_rows = np.concatenate([self.n_rows, none])

    def take(self, arrived: RunRows, advance: Advance) -> tuple[IntervalRows, RunRows, Bools]:
        """Take rows that are not late; return the events of closed runs, and the rows after a TIMEOUT.

        The third result says which entities have such rows: they have ended before.
        """
        rows = RunRows.concat([self.held, arrived])
        is_ready = advance.is_ready(rows.t)
        self.held = rows.where(~is_ready)
        rows = rows.where(is_ready)
        rows = rows.where(np.lexsort((rows.t, rows.entity)))
        cut_off = self._after_timeout(rows)
        ended = np.zeros(len(self.last), np.bool_)
        ended[rows.entity[cut_off]] = True
        late, rows = rows.where(cut_off), rows.where(~cut_off)
        np.add.at(self.n_rows, rows.entity, 1)
        return self._closed(_instants(rows)), late, ended

    def timed_out(self, advance: Advance) -> Bools:
        """The entities of which nothing was recorded for TIMEOUT."""
        if self._timeout is None:
            return np.zeros(len(self.last), np.bool_)
        return (self.last > BEGINNING) & advance.is_ready(later(self.last, self._timeout, self._kind))

    def close(self, entities: Bools) -> IntervalRows:
        """The events of the open runs of entities that have ended: their ends are lost after their last rows."""
        entity = np.flatnonzero(entities & (self.start > BEGINNING))
        start, last = self.start[entity].copy(), self.last[entity]
        self.start[entity] = BEGINNING
        return self._segments(entity, start, np.full(len(entity), BEGINNING), last, np.full(len(entity), END))

    def _after_timeout(self, rows: RunRows) -> Bools:
        """Which rows, sorted, follow a gap of their entity that is longer than TIMEOUT."""
        if self._timeout is None or not len(rows):
            return np.zeros(len(rows), np.bool_)
        first = np.append(True, rows.entity[1:] != rows.entity[:-1])
        before = np.where(first, self.last[rows.entity], np.append(BEGINNING, rows.t[:-1]))
        gap = (before > BEGINNING) & (rows.t > later(before, self._timeout, self._kind))
        # The number of gaps up to each row, minus that at the first row of its entity.
        gaps = np.cumsum(gap)
        at_first: I64 = (gaps - gap)[np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))]
        after: Bools = gaps > at_first
        return after

    def _closed(self, rows: RunRows) -> IntervalRows:
        """The events of the runs that rows close; `rows` are sorted, one for each instant of an entity."""
        # The last row of each entity before these goes first.
        known = np.unique(rows.entity)
        known = known[self.last[known] > BEGINNING]
        kept = RunRows(known, self.last[known], (self.start[known] > BEGINNING).astype(np.int64))
        began = np.concatenate([np.where(kept.satisfies > 0, self.start[known], kept.t), rows.t])
        rows = RunRows.concat([kept, rows])
        order = np.lexsort((rows.t, rows.entity))
        rows, began = rows.where(order), began[order]
        n = len(rows)
        if not n:
            return IntervalRows.concat([])
        first = np.append(True, rows.entity[1:] != rows.entity[:-1])
        satisfies = rows.satisfies > 0
        before = np.append(False, satisfies[:-1]) & ~first
        previous = np.append(BEGINNING, rows.t[:-1])
        silent = np.zeros(n, np.bool_)
        if self._runs.silence is not None:
            silent = ~first & (rows.t > later(previous, self._runs.silence, self._kind))
        opens = satisfies & (~before | silent)
        start = began[np.maximum.accumulate(np.where(opens, np.arange(n), 0))]
        closes = np.flatnonzero(before & (~satisfies | silent))
        lost = silent[closes]
        events = self._segments(
            rows.entity[closes],
            start[closes - 1],
            np.where(lost, BEGINNING, rows.t[closes]),
            np.where(lost, previous[closes], BEGINNING),
            np.where(lost, rows.t[closes], END),
        )
        newest = np.flatnonzero(np.append(rows.entity[1:] != rows.entity[:-1], True))
        self.last[rows.entity[newest]] = rows.t[newest]
        self.start[rows.entity[newest]] = np.where(satisfies[newest], start[newest], BEGINNING)
        return events

    def _segments(self, entity: I64, start: I64, end: I64, lo: I64, hi: I64) -> IntervalRows:
        """The events of runs in order of entity and time; runs that are too short are left out.

        `end` is BEGINNING where it is lost; it is then between `lo`, the last row, and `hi`.
        """
        recorded = np.where(end > BEGINNING, end, lo)
        chosen = self._lasts(start, recorded)
        entity, start, end, lo, hi = (column[chosen] for column in (entity, start, end, lo, hi))
        first = np.append(True, entity[1:] != entity[:-1])[: len(entity)]
        rank = np.arange(len(entity)) - np.maximum.accumulate(np.where(first, np.arange(len(entity)), 0))
        seq = 2 * (self.n_segments[entity] + rank) + 1
        np.add.at(self.n_segments, entity, 1)
        return IntervalRows.of(
            np.repeat(entity, 2),
            {
                "t": np.stack([start, end], axis=1).ravel(),
                "seq": np.stack([seq, seq + 1], axis=1).ravel(),
                "lo": np.stack([np.full(len(lo), BEGINNING), lo], axis=1).ravel(),
                "hi": np.stack([np.full(len(hi), END), hi], axis=1).ravel(),
            },
        )

    def _lasts(self, start: I64, end: I64) -> Bools:
        """Which runs last for at least as long as FOR AT LEAST says; numbers are taken as they are written."""
        least = self._runs.at_least
        if least is None:
            return np.ones(len(start), np.bool_)
        first, last = _units(start, self._kind), _units(end, self._kind)
        rounding = 4 * np.finfo(np.float64).eps * np.maximum(np.maximum(np.abs(first), np.abs(last)), least)
        if self._kind is not TimeKind.DOUBLE:  # differences of integers are exact
            return (end - start) / self._kind.per_unit >= least * (1 - 4 * np.finfo(np.float64).eps)
        lasts: Bools = last - first >= least - rounding
        return lasts

    def first_instant(self, ended: Bools, rows: IntervalRows) -> int:
        """The time before which no entity that has not ended can have an event."""
        open_runs = self.start[~ended & (self.start > BEGINNING)]
        closed = rows.t[~ended[rows.entity] & (rows.seq == 1)]
        held = self.held.t[~ended[self.held.entity]]
        return int(min(part.min(initial=END) for part in (open_runs, closed, held)))

    # ------------------------------------------------------------ state

    def keep(self, kept: Bools, index: I64) -> None:
        """Forget all other entities, which have no held rows; `index` has the new number of each."""
        for name in _BY_ENTITY:
            setattr(self, name, getattr(self, name)[kept])
        self.held = replace(self.held, entity=index[self.held.entity])

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        held = self.held
        return {
            "held": pa.table({"entity": held.entity, "t": held.t, "satisfies": held.satisfies}),
            "runs": pa.table({name: getattr(self, name) for name in _BY_ENTITY}),
        }

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned."""
        self.held = RunRows(*(tables["held"][name].to_numpy().copy() for name in ("entity", "t", "satisfies")))
        for name in _BY_ENTITY:
            setattr(self, name, tables["runs"][name].to_numpy().copy())


def _instants(rows: RunRows) -> RunRows:
    """One row for each entity and time of sorted rows: it satisfies the condition if all of them do."""
    if not len(rows):
        return rows
    new = np.append(True, (rows.entity[1:] != rows.entity[:-1]) | (rows.t[1:] != rows.t[:-1]))
    starts = np.flatnonzero(new)
    return RunRows(rows.entity[starts], rows.t[starts], np.minimum.reduceat(rows.satisfies, starts))


def _units(codes: I64, kind: TimeKind) -> F64:
    return restore_doubles(codes) if kind is TimeKind.DOUBLE else codes / kind.per_unit
