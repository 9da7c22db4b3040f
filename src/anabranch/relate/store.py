"""The entities of one stream in one bucket, from their first event until nothing can come of them any more.

An entity has *ended* when its last event was seen and the watermark is past it, when nothing of it was recorded for
TIMEOUT, or when the input has ended. What came by then is all there is: the rest is lost, and rows that come later are
late. Until then its segments that are closed make provisional answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from anabranch.arrays import I8, I64, Bools
from anabranch.columns.dictionary import Dictionary
from anabranch.columns.times import BEGINNING, END, decode_time, later
from anabranch.relate.assembly import FAULTS, IntervalRows, assemble
from anabranch.relate.pairs import Windows
from anabranch.transport.checks import LATE, QUARANTINE, quarantine
from anabranch.transport.interval_columns import ROLES
from anabranch.transport.layout import Layout
from anabranch.transport.operator import Counts
from anabranch.transport.state import read_tables
from anabranch.transport.watermark import Advance

_END = ROLES.index("end")


@dataclass(slots=True)
class Step:
    """What one step did to the entities of a stream.

    Attributes
    ----------
    now : the entities as they are known now; `shown` says which of them have anything to show
    before : those that changed, as they were known before
    changed : which entities got an event or ended
    """

    now: Windows
    shown: Bools
    before: Windows | None
    changed: Bools
    rejected: list[pa.Table] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


class EntityStore:
    """Entities by number; `over` says which have ended."""

    def __init__(self, layout: Layout, timeout: float | None) -> None:
        self._layout = layout
        self._timeout = timeout
        self.keys = Dictionary(layout.key_types)
        self.rows = IntervalRows.concat([])
        self.over = np.zeros(0, np.bool_)

    def step(self, blobs: Sequence[bytes], advance: Advance, input_ended: bool, live: bool) -> Step:
        """Take packets.

        Rows are not held. A row is late if its time is known and late, or if its entity has ended.
        """
        arrived = IntervalRows.concat([self._decode(blob) for blob in blobs])
        n_entities = len(self.keys)
        self.over = np.concatenate([self.over, np.zeros(n_entities - len(self.over), np.bool_)])
        late = self.over[arrived.entity] | ((arrived.t > BEGINNING) & advance.is_late(arrived.t))
        changed = np.zeros(n_entities, np.bool_)
        changed[arrived.entity[~late]] = True
        known = self.rows
        counts = Counts(late=int(late.sum()))
        rejected = [self._set_aside(LATE, arrived.where(late))]
        self.rows = IntervalRows.concat([self.rows, arrived.where(~late)])
        ended, cut_off = self._ends(advance, input_ended)
        if cut_off.any():
            counts += Counts(late=int(cut_off.sum()))
            rejected.append(self._set_aside(LATE, self.rows.where(cut_off)))
            self.rows = self.rows.where(~cut_off)
        fresh = ended & ~self.over
        changed |= fresh
        # What changes had not ended.
        before = assemble(known.where(changed[known.entity]), n_entities, self._layout.horizon, False) if live else None
        self.over |= ended
        now = assemble(self.rows, n_entities, self._layout.horizon, self.over)
        self.rows = self.rows.where(~now.duplicate)
        counts += Counts(duplicate=int(now.duplicate.sum()))
        counts += Counts(used=int((fresh & (now.fault == 0))[self.rows.entity].sum()))
        rejected += self._refuse(fresh, now.fault, counts)
        return Step(
            now=Windows(now.events, now.lo, now.hi),
            shown=np.diff(now.events) > 0,
            before=Windows(before.events, before.lo, before.hi) if before else None,
            changed=changed,
            rejected=rejected,
            counts=counts,
        )

    def _decode(self, blob: bytes) -> IntervalRows:
        tables = read_tables(blob)
        columns = {name: tables["rows"][name].to_numpy() for name in tables["rows"].column_names}
        return IntervalRows.of(self.keys.encode(tables["keys"])[columns.pop("key")], columns)

    def _ends(self, advance: Advance, input_ended: bool) -> tuple[Bools, Bools]:
        """Which entities have ended, and which rows came after a silence that ended theirs."""
        rows, n_entities = self.rows, len(self.over)
        cut_off = np.zeros(len(rows), np.bool_)
        ended = self.over | input_ended
        if self._timeout is not None:
            until = self._silence(n_entities)
            ended |= advance.is_ready(until)
            cut_off = ended[rows.entity] & ~self.over[rows.entity] & (rows.t > until[rows.entity])
            # A row without a time belongs to the recorded event ahead of it.
            first_cut = np.full(n_entities, END)
            np.minimum.at(first_cut, rows.entity[cut_off], rows.seq[cut_off])
            cut_off |= (rows.t == BEGINNING) & (rows.seq > first_cut[rows.entity])
        length = np.zeros(n_entities, np.int64)  # which one row may tell for all
        np.maximum.at(length, rows.entity, rows.length)
        is_last = (rows.role == _END) | (rows.seq == length[rows.entity])
        seen = is_last & ~cut_off & (rows.t > BEGINNING) & advance.is_ready(rows.t)
        ended[rows.entity[seen]] = True
        return ended, cut_off

    def _silence(self, n_entities: int) -> I64:
        """The instant by which an entity was first silent for TIMEOUT; END where nothing of it is recorded."""
        recorded = np.flatnonzero(self.rows.t > BEGINNING)
        order = recorded[np.lexsort((self.rows.t[recorded], self.rows.entity[recorded]))]
        entity, t = self.rows.entity[order], self.rows.t[order]
        limit = later(t, self._timeout or 0.0, self._layout.time_kind)
        goes_on = np.zeros(len(t), np.bool_)
        goes_on[:-1] = (entity[1:] == entity[:-1]) & (t[1:] <= limit[:-1])
        until = np.full(n_entities, END)
        stops = np.flatnonzero(~goes_on)[::-1]  # the first of an entity is written last
        until[entity[stops]] = limit[stops]
        return until

    def _refuse(self, fresh: Bools, fault: I8, counts: Counts) -> list[pa.Table]:
        """Set aside the rows of entities that have ended and cannot be."""
        tables = []
        for number in np.unique(fault[fresh & (fault > 0)]):
            bad = (fresh & (fault == number))[self.rows.entity]
            tables.append(self._set_aside(FAULTS[int(number)], self.rows.where(bad)))
            counts += Counts(quarantined=int(bad.sum()))
            self.rows = self.rows.where(~bad)
        return tables

    def _set_aside(self, reason: str, rows: IntervalRows) -> pa.Table:
        if not len(rows):
            return QUARANTINE.empty_table()
        return quarantine(self._layout.name, reason, (self._described(rows, row) for row in range(len(rows))))

    def _described(self, rows: IntervalRows, row: int) -> dict[str, object]:
        """A row as its source had it."""
        layout, interval = self._layout, self._layout.interval
        described = dict(zip(layout.keys, self.keys.tuple_of(rows.entity[row]), strict=True))
        described[layout.time] = self._time(rows.t[row])
        if interval is not None:
            described[interval.order] = int(rows.seq[row])
            if interval.length:
                described[interval.length] = int(rows.length[row]) or None
            if interval.role:
                described[interval.role] = ROLES[rows.role[row]] if rows.role[row] >= 0 else None
            if interval.window:
                described |= zip(interval.window, map(self._time, (rows.lo[row], rows.hi[row])), strict=True)
        return described

    def _time(self, code: int) -> object:
        return None if code in (BEGINNING, END) else decode_time(code, self._layout.time_kind)

    # ------------------------------------------------------------ what is kept

    def first_instant(self) -> int:
        """The instant before which no event of an entity that has not ended can have been.

        Where nothing reaches back, a first event is recorded, or still to come: at the watermark or after it.
        """
        rows = self.rows.where(~self.over[self.rows.entity])
        begun = rows.where((rows.seq == 1) & (rows.t > BEGINNING))
        if self._layout.reaches_back and len(np.unique(rows.entity)) > len(np.unique(begun.entity)):
            return self._layout.horizon[0]
        return int(begun.t.min(initial=END))

    def forget(self, gone: Bools) -> None:
        """Forget the events of entities. Their keys stay known, because what comes of them later is late."""
        self.rows = self.rows.where(~gone[self.rows.entity])

    def save(self) -> dict[str, pa.Table]:
        """Everything that is known, as tables."""
        return {
            "rows": pa.table(self.rows.arrays()),
            "keys": self.keys.to_table(),
            "over": pa.table({"over": self.over}),
        }

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Take over what `save` gave."""
        self.rows = IntervalRows.from_table(tables["rows"])
        self.keys.encode(tables["keys"])
        self.over = tables["over"]["over"].to_numpy(zero_copy_only=False).copy()
