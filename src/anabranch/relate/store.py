"""The entities of one stream in one bucket, from their first event until no later entity can be paired with them.

RELATE differs from the rule of `transport/watermark.py` in one point: rows are not held until they are ready. Entities
are assembled from the rows so far, and answers about entities that have not ended are provisional.

An entity has *ended* when its last event is ready, when nothing of it was recorded for TIMEOUT, or when the input has
ended. Events that have not arrived by then are lost, and rows that arrive later are late. Until then, only its closed
segments are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, END, I64, Bools
from anabranch.columns.dictionary import Dictionary, flat
from anabranch.columns.hashing import hash_tuples
from anabranch.columns.times import decode_time, later
from anabranch.relate.assembly import FAULTS, Assembled, IntervalRows, assemble
from anabranch.relate.runs import RunFinder, RunRows
from anabranch.relate.windows import Windows
from anabranch.transport.checks import LATE, QUARANTINE, quarantine
from anabranch.transport.interval_columns import HORIZONS, ROLES
from anabranch.transport.layout import Layout
from anabranch.transport.log import RowLog
from anabranch.transport.operator import Counts
from anabranch.transport.packing import numbers_of_rows
from anabranch.transport.pages import HASH, Pages, PageStore, PartOfStore
from anabranch.transport.state import read_tables
from anabranch.transport.watermark import Advance

_END = ROLES.index("end")


@dataclass(slots=True)
class Step:
    """The entities of a stream after one step.

    Attributes
    ----------
    current : the current version of each entity; it has no events if the entity is invalid or has no closed segment
    has_events : whether the current version has events
    previous : the versions of the changed entities before this step, on live inputs
    changed : whether the entity got an event or ended
    rejected, counts : of the rows of this step
    """

    current: Windows
    has_events: Bools
    previous: Windows | None
    changed: Bools
    rejected: list[pa.Table] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


class EntityStore:
    """Entities by number; `ended` says which of them have ended."""

    def __init__(self, layout: Layout, timeout: float | None, attributes: Sequence[int] = ()) -> None:
        self._layout = layout
        self._timeout = timeout
        self._attributes = list(attributes)  # the indexes of the VALUE columns that the query uses
        self.keys = Dictionary(layout.key_types)
        self.values = Dictionary([layout.value_types[index] for index in attributes])
        self.rows = IntervalRows.concat([])
        self.ended = np.zeros(0, np.bool_)
        #: On live inputs, the rows are in a log, by numbers of entities that never change.
        self._log: RowLog | None = None
        self._directory: pa.Table | None = None
        self._dropped: Bools | None = None
        self._numbers = np.zeros(0, np.int64)
        self._next_number = 0
        #: There, the keys of forgotten entities are in pages.
        self._cold: Pages | None = None
        self._cold_directory: pa.Table | None = None
        self.runs = None if layout.runs is None else RunFinder(layout, layout.runs, timeout)

    def step(self, blobs: Sequence[bytes], advance: Advance, input_ended: bool, live: bool) -> Step:
        """Take packets and assemble the entities.

        A row is late if `advance` says so, or if its entity has ended. A row without a time is late only if its entity
        has ended.
        """
        self._warm(blobs)
        rows_before = self.rows
        intake = self._take_rows if self.runs is None else self._take_runs
        arrived, ended, counts, rejected = intake(blobs, advance, input_ended)
        newly_ended = ended & ~self.ended
        changed = newly_ended.copy()
        changed[arrived.entity] = True
        previous = None
        if live:  # an entity that changes had not ended before: its previous version is not complete
            changed_rows = rows_before.where(changed[rows_before.entity])
            previous = self._assemble(changed_rows, False)
        self.ended |= ended
        current = self._assemble(self.rows, self.ended)
        self.rows = self.rows.where(~current.duplicate)
        rejected += self._quarantine_invalid(newly_ended, current, counts)
        return Step(
            current=current.windows,
            has_events=np.diff(current.events) > 0,
            previous=previous.windows if previous else None,
            changed=changed,
            rejected=rejected,
            counts=counts,
        )

    def _assemble(self, rows: IntervalRows, complete: Bools | bool) -> Assembled:
        layout = self._layout
        return assemble(
            rows, len(self.keys), layout.horizon, complete, layout.segment_laws, with_attributes=bool(self._attributes)
        )

    def _take_rows(
        self, blobs: Sequence[bytes], advance: Advance, input_ended: bool
    ) -> tuple[IntervalRows, Bools, Counts, list[pa.Table]]:
        """Take rows of events; returns those that are not late, which entities have ended, counts and late rows."""
        arrived = IntervalRows.concat([self._decode(blob) for blob in blobs])
        self._grow()
        at = self._event_times(arrived)
        late = self.ended[arrived.entity] | ((at > BEGINNING) & advance.is_late(at))
        counts = Counts(late=int(late.sum()))
        rejected = [self._quarantine(LATE, arrived.where(late))]
        arrived = arrived.where(~late)
        self.rows = IntervalRows.concat([self.rows, arrived])
        if self._layout.interval is not None and not self._layout.interval.order:
            self.rows = self.rows.numbered()
        ended, cut_off = self._ends(advance, input_ended)
        if cut_off.any():
            counts += Counts(late=int(cut_off.sum()))
            rejected.append(self._quarantine(LATE, self.rows.where(cut_off)))
            self.rows = self.rows.where(~cut_off)
        return arrived, ended, counts, rejected

    def _take_runs(
        self, blobs: Sequence[bytes], advance: Advance, input_ended: bool
    ) -> tuple[IntervalRows, Bools, Counts, list[pa.Table]]:
        """Take rows from which segments are made; returns the events of the segments, and the same as above."""
        runs = self.runs
        if runs is None:
            raise LookupError(f"{self._layout.name} has no runs")
        rows = RunRows.concat([self._decode_run_rows(blob) for blob in blobs])
        self._grow()
        runs.grow(len(self.keys))
        is_late = self.ended[rows.entity] | advance.is_late(rows.t)
        arrived, cut_off, timed_out = runs.take(rows.where(~is_late), advance)
        late = RunRows.concat([rows.where(is_late), cut_off])
        ended = self.ended | timed_out | runs.timed_out(advance) | input_ended
        if self._layout.horizon[1] < END:  # else nothing says how long a run can last that has not ended
            arrived = IntervalRows.concat([arrived, runs.close(ended & ~self.ended)])
        self.rows = IntervalRows.concat([self.rows, arrived])
        late_rows = IntervalRows.of(late.entity, {"t": late.t, "seq": late.satisfies})
        return arrived, ended, Counts(late=len(late)), [self._quarantine(LATE, late_rows)]

    def _grow(self) -> None:
        """Make room for the entities of new keys."""
        missing = len(self.keys) - len(self.ended)
        self.ended = np.concatenate([self.ended, np.zeros(missing, np.bool_)])
        self._numbers = np.concatenate([self._numbers, self._next_number + np.arange(missing)])
        self._next_number += missing

    def _decode_run_rows(self, blob: bytes) -> RunRows:
        tables = read_tables(blob)
        rows = numbers_of_rows(tables["rows"])
        entity = self.keys.encode(tables["keys"])[rows["key"]].astype(np.int64)
        return RunRows(entity, rows["t"], rows["satisfies"])

    def _event_times(self, rows: IntervalRows) -> I64:
        """The time of each row, by which it is late; that of a segment is its end, or its start if the end is lost."""
        if self._layout.start is None:
            return rows.t
        return np.where(rows.hi < END, rows.hi, rows.lo)

    def _decode(self, blob: bytes) -> IntervalRows:
        tables = read_tables(blob)
        columns = numbers_of_rows(tables["rows"])
        if self._attributes:
            used = self.values.encode(tables["values"].select(self._attributes))
            columns["attributes"] = used[columns["value"]].astype(np.int64)
        return IntervalRows.of(self.keys.encode(tables["keys"])[columns.pop("key")], columns)

    def _ends(self, advance: Advance, input_ended: bool) -> tuple[Bools, Bools]:
        """Which entities have ended, and which rows are cut off: they came after the TIMEOUT of their entity."""
        rows, n_entities = self.rows, len(self.ended)
        cut_off = np.zeros(len(rows), np.bool_)
        ended = self.ended | input_ended
        if self._timeout is not None:
            until = self._timeouts(n_entities)
            ended |= advance.is_ready(until)
            cut_off = ended[rows.entity] & ~self.ended[rows.entity] & (rows.t > until[rows.entity])
            # A row without a time belongs to the recorded event before it.
            first_cut = np.full(n_entities, END)
            np.minimum.at(first_cut, rows.entity[cut_off], rows.seq[cut_off])
            cut_off |= (rows.t == BEGINNING) & (rows.seq > first_cut[rows.entity])
        length = np.zeros(n_entities, np.int64)  # the LENGTH in one row is valid for the whole entity
        np.maximum.at(length, rows.entity, rows.length)
        is_last = (rows.role == _END) | (rows.seq == length[rows.entity])
        is_complete = is_last & ~cut_off & (rows.t > BEGINNING) & advance.is_ready(rows.t)
        ended[rows.entity[is_complete]] = True
        return ended, cut_off

    def _timeouts(self, n_entities: int) -> I64:
        """The end of the first TIMEOUT in which nothing of an entity was recorded; END if it has no recorded event."""
        recorded = np.flatnonzero(self.rows.t > BEGINNING)
        order = recorded[np.lexsort((self.rows.t[recorded], self.rows.entity[recorded]))]
        entity, t = self.rows.entity[order], self.rows.t[order]
        limit = later(t, self._timeout or 0.0, self._layout.time_kind)
        next_is_in_time = np.zeros(len(t), np.bool_)
        next_is_in_time[:-1] = (entity[1:] == entity[:-1]) & (t[1:] <= limit[:-1])
        until = np.full(n_entities, END)
        stops = np.flatnonzero(~next_is_in_time)[::-1]  # reversed: the first stop of an entity is written last
        until[entity[stops]] = limit[stops]
        return until

    def _quarantine_invalid(self, newly_ended: Bools, current: Assembled, counts: Counts) -> list[pa.Table]:
        """Quarantine the rows of entities that have ended and are invalid; count the rows of all that have ended."""
        fault, tables = current.fault, []
        if self.runs is None:
            counts += Counts(duplicate=int(current.duplicate.sum()))
            counts += Counts(used=int((newly_ended & (fault == 0))[self.rows.entity].sum()))
        else:  # the rows of events are not those of the source
            n_rows = self.runs.n_rows
            counts += Counts(used=int(n_rows[newly_ended & (fault == 0)].sum()))
            counts += Counts(quarantined=int(n_rows[newly_ended & (fault > 0)].sum()))
        for number in np.unique(fault[newly_ended & (fault > 0)]):
            invalid = (newly_ended & (fault == number))[self.rows.entity]
            tables.append(self._quarantine(FAULTS[int(number)], self.rows.where(invalid)))
            if self.runs is None:
                counts += Counts(quarantined=int(invalid.sum()))
            self.rows = self.rows.where(~invalid)
        return tables

    def _quarantine(self, reason: str, rows: IntervalRows) -> pa.Table:
        if not len(rows):
            return QUARANTINE.empty_table()
        return quarantine(self._layout.name, reason, (self._source_row(rows, row) for row in range(len(rows))))

    def _source_row(self, rows: IntervalRows, row: int) -> dict[str, object]:
        """A row with the columns of its source."""
        layout, interval = self._layout, self._layout.interval
        source_row = dict(zip(layout.keys, self.keys.tuple_of(rows.entity[row]), strict=True))
        if self._attributes and rows.attributes[row] >= 0:
            names = [layout.values[index] for index in self._attributes]
            source_row |= zip(names, self.values.tuple_of(rows.attributes[row]), strict=True)
        is_segment = layout.start is not None
        source_row[layout.time] = self._time(rows.hi[row] if is_segment else rows.t[row])
        if layout.start is not None:
            source_row[layout.start] = self._time(rows.lo[row])
        if interval is not None:
            if interval.order:
                source_row[interval.order] = int(rows.seq[row] + 1) // 2 if is_segment else int(rows.seq[row])
            if interval.length:
                source_row[interval.length] = int(rows.length[row]) // (2 if is_segment else 1) or None
            if interval.role:
                source_row[interval.role] = ROLES[rows.role[row]] if rows.role[row] >= 0 else None
            for name, column in zip(HORIZONS, interval.horizon_columns, strict=True):
                if column is not None:
                    source_row[column] = self._time(getattr(rows, name)[row])
            if interval.window:
                source_row |= zip(interval.window, map(self._time, (rows.lo[row], rows.hi[row])), strict=True)
            for name, (law, column) in interval.laws_by_row.items():
                source_row[column] = law.source_cell(int(getattr(rows, name)[row]), layout.time_kind)
        return source_row

    def _time(self, code: int) -> object:
        return None if code in (BEGINNING, END) else decode_time(code, self._layout.time_kind)

    # ------------------------------------------------------------ state

    def first_instant(self) -> int:
        """The time before which no entity that has not ended can have an event.

        If lost events cannot lie in the past (`reaches_back`), the first event of an entity is recorded, or it will
        arrive at the watermark or after it.
        """
        if self.runs is not None:
            return self.runs.first_instant(self.ended, self.rows)
        rows = self.rows.where(~self.ended[self.rows.entity])
        first_events = rows.where((rows.seq == 1) & (rows.t > BEGINNING))
        if self._layout.reaches_back and len(np.unique(rows.entity)) > len(np.unique(first_events.entity)):
            return self._layout.horizon[0]
        return int(first_events.t.min(initial=END))

    def forget(self, entities: Bools) -> None:
        """Remove the rows of entities. Their keys stay, because later rows of them are late."""
        self.rows = self.rows.where(~entities[self.rows.entity])
        if self._cold is not None:
            self._cool(self._cold)

    def _without_rows(self) -> Bools:
        """Which entities have ended and have no rows any more: only their keys are needed."""
        unneeded = self.ended.copy()
        unneeded[self.rows.entity] = False
        return unneeded

    def save(self) -> dict[str, pa.Table]:
        """The state as tables."""
        dropped = self._without_rows()  # their rows are still in pages, but forgotten
        steps = np.diff(self._numbers, prepend=0)  # most are 1, and take no space
        tables = {
            "keys": self.keys.to_table(),
            "ended": pa.table({"ended": self.ended, "dropped": dropped, "step": steps}),
            "numbers": pa.table({"next": [self._next_number]}),
            **(self._save_rows() if self._log is None else {"log": self._write_log(self._log, ~dropped)}),
            **({} if self._cold is None else {"cold": self._cold.save()}),
        }
        return tables if self.runs is None else tables | self.runs.save()

    def _save_rows(self) -> dict[str, pa.Table]:
        columns, values = self.rows.arrays(), {}
        if self._attributes:  # only the values of rows that are kept
            used, numbers = np.unique(np.append(-1, self.rows.attributes), return_inverse=True)
            columns["attributes"] = numbers[1:] - 1
            values = {"values": self.values.to_table().take(used[1:])}
        return {"rows": pa.table(columns), **values}

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Restore what `save` returned; rows in a log are read by `use_log`."""
        self.keys.encode(tables["keys"])
        ended = tables["ended"]
        self.ended = ended["ended"].to_numpy(zero_copy_only=False).copy()
        if "dropped" in ended.column_names:  # not in format 3
            self._dropped = ended["dropped"].to_numpy(zero_copy_only=False)
        self._numbers, self._next_number = np.arange(len(self.ended)), len(self.ended)
        if "step" in ended.column_names:  # not in formats 3 and 4
            self._numbers = np.cumsum(ended["step"].to_numpy())
            self._next_number = tables["numbers"]["next"][0].as_py()
        self._directory, self._cold_directory = tables.get("log"), tables.get("cold")
        if "rows" in tables:
            self.rows = IntervalRows.from_table(tables["rows"])
            if self._attributes:
                self.values.encode(tables["values"])
        if self.runs is not None:
            self.runs.load(tables)

    # ------------------------------------------------------------ pages

    def use_log(self, store: PageStore, fingerprint: str, first: int, stride: int) -> None:
        """Have the rows in a log, and keys in pages; both are numbered from `first` in steps of `stride`."""
        self._cold = Pages.open(PartOfStore(store, first, stride), fingerprint, self._cold_directory)
        self._log = RowLog(store, fingerprint, first, stride, self._directory)
        parts = [self._from_page(page, table) for page, table in self._log.read()]
        logged = IntervalRows.concat(parts)
        self._logged = logged.entity, logged.page
        self.rows = IntervalRows.concat([logged, self.rows])  # state of format 3 has its rows

    def _from_page(self, page: int, table: pa.Table) -> IntervalRows:
        """The rows of a page, without those of entities that are forgotten."""
        number = table["entity"].to_numpy()
        entity = np.searchsorted(self._numbers, number)
        kept = np.append(self._numbers, -1)[entity] == number  # the others are cold
        if self._dropped is not None:
            kept &= ~np.append(self._dropped, True)[entity]
        columns = {name: table[name].to_numpy()[kept] for name in IntervalRows.__slots__ if name in table.column_names}
        if self._attributes:
            values = self.values.encode(table.select([f"value {index}" for index in self._attributes]))[kept]
            columns["attributes"] = np.where(columns["attributes"] >= 0, values, -1)
        columns |= {"entity": entity[kept], "page": np.full(int(kept.sum()), page)}
        return IntervalRows(**columns)

    def _write_log(self, log: RowLog, kept: Bools) -> pa.Table:
        """Write the rows that are not in pages; returns the directory. `kept` says which entities have rows."""
        rows, pages = self.rows, sorted(log.written)
        logged_entities, logged_pages = self._logged
        n_expected, n_rows = (
            np.bincount(np.searchsorted(pages, of_rows), minlength=len(pages))
            for of_rows in (logged_pages[kept[logged_entities]], rows.page[rows.page > 0])
        )
        columns = rows.arrays() | {"entity": self._numbers[rows.entity]}
        del columns["page"]
        if self._attributes:
            codes = pa.array(rows.attributes, mask=rows.attributes < 0)
            values = self.values.to_table().take(codes)
            columns |= dict(zip([f"value {index}" for index in self._attributes], values.columns, strict=True))
        return log.save(pa.table(columns), rows.page, n_expected == n_rows)

    def _warm(self, blobs: Sequence[bytes]) -> None:
        """Number the forgotten entities again that packets have rows of: their rows are late."""
        if self._cold is None or not len(self._cold):
            return
        keys = [table for blob in blobs if (table := read_tables(blob).get("keys")) is not None]
        for table in keys:
            absent = table.filter(pa.array(~self.keys.has(table)))
            columns = [flat(column).cast(kind) for column, kind in zip(absent.columns, self.keys.types, strict=True)]
            for rows in self._cold.take(np.unique(hash_tuples(columns, absent.num_rows))):
                self.keys.encode(rows.drop_columns([HASH]))
                known = len(self.ended)
                self._grow()
                self.ended[known:] = True

    def _cool(self, cold: Pages) -> None:
        """Move the keys of forgotten entities to pages, if they are many."""
        unneeded = self._without_rows()
        if self.runs is not None:
            unneeded[self.runs.held.entity] = False
        if not cold.wants(int(unneeded.sum())):
            return
        keys = self.keys.take(np.flatnonzero(unneeded).astype(np.int32))
        names = map(str, range(len(keys)))
        cold.put(pa.table({HASH: hash_tuples(keys, int(unneeded.sum())), **dict(zip(names, keys, strict=True))}))
        self._keep(~unneeded)

    def _keep(self, kept: Bools) -> None:
        """Forget all other entities, which have no rows."""
        index = self.keys.keep(kept).astype(np.int64)
        self.ended, self._numbers = self.ended[kept], self._numbers[kept]
        self.rows.entity = index[self.rows.entity]
        entity, page = self._logged
        logged = kept[entity]
        self._logged = index[entity[logged]], page[logged]
        if self.runs is not None:
            self.runs.keep(kept, index)
