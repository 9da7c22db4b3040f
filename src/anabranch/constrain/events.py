"""Events as workers hold them: the rows of each stream as they were, all in one order, each with its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from anabranch.constrain import geometry
from anabranch.constrain.comparisons import ColumnOf
from anabranch.constrain.functions import is_exact, numbers_of
from anabranch.constrain.kernel.run import Run
from anabranch.constrain.kernel.tables import Events, make_events
from anabranch.language.typed import Reference
from anabranch.rows.conditions import evaluate
from anabranch.rows.dictionary import dense_codes, encode_tuples, flat
from anabranch.rows.packing import Layout
from anabranch.rows.times import TimeKind, encode_times, order_doubles, restore_doubles
from anabranch.splitmix import mix_all

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def arrow_type_of(layout: Layout) -> pa.StructType:
    """The type of an event in an answer: all columns of its stream."""
    return pa.struct(list(_types(layout).items()))


def _types(layout: Layout) -> dict[str, pa.DataType]:
    known: dict[str, pa.DataType] = {}
    if layout.space is not None:
        known = {name: layout.space.shape_type or pa.float64() for name in layout.space.columns}
    known |= dict(zip((*layout.keys, *layout.values), (*layout.key_types, *layout.value_types), strict=True))
    known |= dict.fromkeys(filter(None, (layout.start, layout.time)), layout.time_kind.arrow_type)
    return {name: known[name] for name in layout.columns}


class EventTable:
    """Rows of one stream."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        self.table = table
        self.layout = layout

    @staticmethod
    def from_rows(rows: pa.Table, layout: Layout) -> EventTable:
        """Rows of a source, in the types of their stream."""
        columns = [_cast(flat(rows[name]), kind) for name, kind in _types(layout).items()]
        return EventTable(pa.table(columns, names=list(_types(layout))), layout)

    def __len__(self) -> int:
        return self.table.num_rows

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The columns by lower-case name."""
        return {name.lower(): flat(self.table[name]) for name in self.table.column_names}

    @cached_property
    def code(self) -> I64:
        """Times as codes that sort as the times do."""
        return encode_times(self.table[self.layout.time], self.layout.time_kind)

    @cached_property
    def t(self) -> npt.NDArray[Any]:
        """Times as numbers to calculate with."""
        return self._times(self.layout.time)

    @property
    def begin(self) -> npt.NDArray[Any]:
        """When each event began."""
        return self.t if self.layout.start is None else self._times(self.layout.start)

    def _times(self, name: str) -> npt.NDArray[Any]:
        codes = encode_times(self.table[name], self.layout.time_kind)
        return restore_doubles(codes) if self.layout.time_kind is TimeKind.DOUBLE else codes

    @cached_property
    def at(self) -> geometry.F64:
        """(n, 3): where each event was; NaN where it is not known, or is more than a point."""
        space = self.layout.space
        if space is None or space.shape_type is not None:
            return np.full((len(self), 3), np.nan)
        x, y = (numbers_of(self.columns[name.lower()]) for name in space.columns)
        return geometry.on_sphere(x, y) if space.geodesic else geometry.in_plane(x, y)

    def shapes(self, name: str) -> geometry.Shapes:
        """The geometries of a column, or the points of the events themselves ("*")."""
        if name != "*":
            return geometry.shapes_of(self.columns[name])
        names = self.layout.space.columns if self.layout.space else ()
        return geometry.points_of(*(numbers_of(self.columns[each.lower()]) for each in names))

    def repeated(self) -> Bools:
        """Which rows are given once more, all columns alike."""
        again = np.zeros(len(self), np.bool_)
        codes, firsts = dense_codes(_mixed_numbers([self.code, *self._number_columns()]))
        if len(firsts) == len(self):
            return again
        # Only rows whose numbers are alike are compared with each other.
        alike = np.flatnonzero(np.bincount(codes)[codes] > 1)
        chosen = self.table.take(pa.array(alike))
        same, _ = encode_tuples(chosen.columns, len(alike))
        _, seen = np.unique(same, return_index=True)
        again[alike] = True
        again[alike[seen]] = False
        return again

    def _number_columns(self) -> list[I64]:
        doubles = [column for column in self.columns.values() if pa.types.is_floating(column.type)]
        return [order_doubles(numbers_of(column)) for column in doubles]


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    cast = column if column.type == kind else column.cast(kind)
    return pc.add(cast, 0.0) if pa.types.is_floating(kind) else cast  # -0.0 and 0.0 are one number


def _mixed_numbers(columns: Sequence[I64]) -> I64:
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = mix_all(hashes ^ column.view(np.uint64))
    return hashes.view(np.int64)


class Batch:
    """Events of all streams of a job, in one order, with their roles.

    Attributes
    ----------
    tables : the rows of each stream, in the order of their events
    stream : of each event
    counted : whether this bucket counts the row
    first : where the roles of each event begin; one entry more than events
    variable, home : of each role
    expires, met : of each role, what the kernel left; meaningless for events that are yet to come
    """

    def __init__(
        self, tables: Sequence[EventTable], stream: I64, counted: Bools, first: I64, variable: I64, home: Bools,
        expires: npt.NDArray[Any], met: npt.NDArray[np.uint64],
    ) -> None:  # fmt: skip
        self.tables = list(tables)
        self.stream, self.counted, self.first = stream, counted, first
        self.variable, self.home, self.expires, self.met = variable, home, expires, met

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def code(self) -> I64:
        """The time of each event as a code."""
        return self.gathered([table.code for table in self.tables], np.int64)

    def gathered(self, parts: Sequence[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
        """Arrays of the streams' rows as one of the events."""
        if len(parts) == 1:
            return parts[0]
        whole = np.empty((len(self), *parts[0].shape[1:]), kind)
        for number, part in enumerate(parts):
            whole[self.stream == number] = part
        return whole

    # ------------------------------------------------------------ made and kept

    @staticmethod
    def empty(layouts: Sequence[Layout]) -> Batch:
        """No events."""
        tables = [EventTable(_empty(layout), layout) for layout in layouts]
        none = np.zeros(0, np.int64)
        times = none.astype(np.float64) if layouts[0].time_kind is TimeKind.DOUBLE else none
        return Batch(
            tables, none, none.astype(np.bool_), np.zeros(1, np.int64), none, none.astype(np.bool_), times,
            none.astype(np.uint64),
        )  # fmt: skip

    @staticmethod
    def from_packet(stream: int, packet: Mapping[str, pa.Table], layouts: Sequence[Layout]) -> Batch:
        """The rows of one packet."""
        rows, roles = packet["rows"], packet["roles"]
        batch = Batch.empty(layouts)
        batch.tables[stream] = EventTable(
            rows.drop_columns(["#counted"]).replace_schema_metadata(None), layouts[stream]
        )
        batch.stream = np.full(rows.num_rows, stream)
        batch.counted = rows["#counted"].to_numpy()
        counts = np.bincount(roles["row"].to_numpy(), minlength=rows.num_rows)
        batch.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        batch.variable = roles["variable"].to_numpy().astype(np.int64)
        batch.home = roles["home"].to_numpy()
        batch.expires = np.zeros(roles.num_rows, batch.expires.dtype)
        batch.met = np.zeros(roles.num_rows, np.uint64)
        return batch

    @staticmethod
    def concat(parts: Sequence[Batch], layouts: Sequence[Layout]) -> Batch:
        """The events of all parts, one after the other."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else Batch.empty(layouts)
        tables = [
            EventTable(pa.concat_tables([part.tables[number].table for part in parts]), layout)
            for number, layout in enumerate(layouts)
        ]
        sizes = np.concatenate([np.diff(part.first) for part in parts])
        first = np.concatenate([[0], np.cumsum(sizes)])
        joined = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("stream", "counted", "variable", "home", "expires", "met")
        )
        stream, counted, *roles = joined
        return Batch(tables, stream, counted, first, *roles)

    def save(self, name: str) -> dict[str, pa.Table]:
        """Everything as tables."""
        tables = {f"{name} {number}": each.table for number, each in enumerate(self.tables)}
        events = {"stream": self.stream, "counted": self.counted, "roles": np.diff(self.first)}
        roles = {"variable": self.variable, "home": self.home, "expires": self.expires, "met": self.met}
        return tables | {f"{name} events": pa.table(events), f"{name} roles": pa.table(roles)}

    @staticmethod
    def load(tables: Mapping[str, pa.Table], name: str, layouts: Sequence[Layout]) -> Batch:
        """What `save` gave."""
        own = [
            EventTable(tables[f"{name} {number}"].replace_schema_metadata(None), layout)
            for number, layout in enumerate(layouts)
        ]
        events, roles = tables[f"{name} events"], tables[f"{name} roles"]
        first = np.concatenate([[0], np.cumsum(events["roles"].to_numpy())]).astype(np.int64)
        of_roles = (roles[column].to_numpy().copy() for column in ("variable", "home", "expires", "met"))
        return Batch(own, events["stream"].to_numpy(), events["counted"].to_numpy(), first, *of_roles)

    # ------------------------------------------------------------ chosen

    def take(self, chosen: I64) -> Batch:
        """Some events, in the order given."""
        stream = self.stream[chosen]
        rows = row_numbers(self.stream, len(self.tables))[chosen]
        tables = [
            EventTable(table.table.take(pa.array(rows[stream == number])), table.layout)
            for number, table in enumerate(self.tables)
        ]
        first, roles = _gather(self.first, chosen)
        return Batch(
            tables, stream, self.counted[chosen], first, self.variable[roles], self.home[roles],
            self.expires[roles], self.met[roles],
        )  # fmt: skip

    def where(self, chosen: Bools) -> Batch:
        """The events for which `chosen` holds."""
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def by_time(self) -> Batch:
        """The same events in order of time."""
        code = self.code
        return self if (code[1:] >= code[:-1]).all() else self.take(np.argsort(code, kind="stable"))

    def without_duplicates(self) -> tuple[Batch, int]:
        """Each event once, and how many of the rows left out this bucket counts."""
        again = self.gathered([table.repeated() for table in self.tables], np.bool_)
        return self.where(~again), int((again & self.counted).sum())

    def kept(self, run: Run, watermark: int) -> Batch:
        """What may be needed by events at the watermark or later, with what a run has left of it."""
        doubles = self.tables[0].layout.time_kind is TimeKind.DOUBLE
        now = restore_doubles(np.array([watermark]))[0] if doubles else watermark
        alive = run.kept(now)
        counts = np.add.reduceat(np.append(alive, 0), self.first[:-1]) * (np.diff(self.first) > 0)
        roles = Batch(
            self.tables, self.stream, self.counted, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            self.variable[alive], self.home[alive], run.expires[alive], run.met[alive],
        )  # fmt: skip
        return roles.where(counts > 0)


def _empty(layout: Layout) -> pa.Table:
    return pa.schema(list(_types(layout).items())).empty_table()


def row_numbers(stream: I64, n_streams: int) -> I64:
    """Of each event, its number among those of its stream."""
    if n_streams == 1:
        return np.arange(len(stream))
    rows = np.empty(len(stream), np.int64)
    for number in range(n_streams):
        own = stream == number
        rows[own] = np.arange(own.sum())
    return rows


@njit(cache=True)
def _gather(first: I64, chosen: I64) -> tuple[I64, I64]:
    """The roles of chosen events: where they begin, and their numbers."""
    begins = np.zeros(len(chosen) + 1, np.int64)
    for place in range(len(chosen)):
        begins[place + 1] = begins[place] + first[chosen[place] + 1] - first[chosen[place]]
    roles = np.empty(begins[-1], np.int64)
    for place in range(len(chosen)):
        for number in range(begins[place + 1] - begins[place]):
            roles[begins[place] + number] = first[chosen[place]] + number
    return begins, roles


# ---------------------------------------------------------------- numbers


def numbers_of_events(batch: Batch, columns: Sequence[ColumnOf], layouts: Sequence[Layout]) -> Events:
    """What the kernel sees of events in order of time."""
    kind = np.float64 if layouts[0].time_kind is TimeKind.DOUBLE else np.int64
    t = batch.gathered([table.t for table in batch.tables], kind)
    lasting = any(layout.start is not None for layout in layouts)
    begin = batch.gathered([table.begin for table in batch.tables], kind) if lasting else t
    at = batch.gathered([table.at for table in batch.tables], np.float64)
    return make_events(t, begin, at, _matrix(batch, columns), batch.first, batch.variable, batch.home)


def _matrix(batch: Batch, columns: Sequence[ColumnOf]) -> geometry.F64:
    """(n, numbers): the values that checks compare; NaN for events of other streams."""
    matrix = np.full((len(batch), sum(4 if column.box else 1 for column in columns)), np.nan)
    names = [table.layout.name.lower() for table in batch.tables]
    place = 0
    groups: dict[int, list[tuple[Bools, int, pa.Array]]] = {}
    for column in columns:
        number = names.index(column.stream)
        own, table = batch.stream == number, batch.tables[number]
        if column.box:
            name = column.value.name if isinstance(column.value, Reference) else ""
            matrix[own, place : place + 4] = geometry.boxes_of(table.shapes(name))
            place += 4
            continue
        values = evaluate(column.value, table.columns, {}, len(table))
        if column.group is None:
            matrix[own, place] = numbers_of(values)
        else:
            groups.setdefault(column.group, []).append((own, place, values))
        place += 1
    for members in groups.values():
        for (own, place, _), numbers in zip(members, _coded([values for _, _, values in members]), strict=True):
            matrix[own, place] = numbers
    return matrix


def _coded(columns: Sequence[pa.Array]) -> list[geometry.F64]:
    """Columns of one type as numbers that compare as their values do."""
    joined = pa.concat_arrays([column.cast(columns[0].type) for column in columns])
    if is_exact(joined):
        return [numbers_of(column) for column in columns]
    coded = joined.dictionary_encode()
    rank = np.empty(len(coded.dictionary) + 1)
    rank[pc.array_sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    rank[-1] = np.nan
    numbers = rank[pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)]
    return np.split(numbers, np.cumsum([len(column) for column in columns])[:-1])
