"""Converts events to arrays for the kernel: times, locations, the numbers that are compared, and roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, Bools
from anabranch.binding.typed import Reference
from anabranch.columns.conditions import evaluate
from anabranch.columns.numbers import coded, numbers_of
from anabranch.columns.times import TimeKind
from anabranch.constrain import geometry
from anabranch.constrain.comparisons import ColumnOf
from anabranch.constrain.kernel.tables import Events, make_events
from anabranch.events.batch import Batch
from anabranch.events.table import EventTable
from anabranch.transport.layout import Layout


def role_types(layouts: Sequence[Layout]) -> Mapping[str, type]:
    """The role columns; `expires` and `met` are set by the kernel, and unused for new events."""
    times = np.float64 if layouts[0].time_kind is TimeKind.DOUBLE else np.int64
    return {"variable": np.int64, "is_primary": np.bool_, "expires": times, "met": np.uint64}


def locations_of(events: EventTable) -> F64:
    """(n, 3): the coordinates of each event; NaN if they are not known, or if the event is not a point."""
    space = events.layout.space
    if space is None or space.shape_type is not None:
        return np.full((len(events), 3), np.nan)
    return geometry.locations([numbers_of(events.columns[name.lower()]) for name in space.columns], space.geodesic)


def _shapes(events: EventTable, name: str, on_globe: bool) -> geometry.Shapes:
    """The geometries of a column, or the points of the events themselves ("*")."""
    if name != "*":
        return geometry.shapes_of(events.columns[name], on_globe)
    names = events.layout.space.columns[:2] if events.layout.space else ()
    return geometry.points_of(*(numbers_of(events.columns[name.lower()]) for name in names))


def numbers_of_events(batch: Batch, columns: Sequence[ColumnOf]) -> Events:
    """The events of a batch, which are in order of time, as arrays for the kernel."""
    have_duration = any(table.layout.start is not None for table in batch.tables)
    begin = batch.gathered([table.begin for table in batch.tables], batch.t.dtype.type) if have_duration else batch.t
    locations = batch.gathered([locations_of(table) for table in batch.tables], np.float64)
    matrix, roles = _matrix(batch, columns), batch.roles
    return make_events(batch.t, begin, locations, matrix, batch.first, roles["variable"], roles["is_primary"])


def _matrix(batch: Batch, columns: Sequence[ColumnOf]) -> F64:
    """(events, numbers): the values that checks compare; NaN for events of other streams."""
    matrix = np.full((len(batch), sum(4 if column.box else 1 for column in columns)), np.nan)
    names = [table.layout.name.lower() for table in batch.tables]
    index = 0
    groups: dict[int, list[tuple[Bools, int, pa.Array]]] = {}
    for column in columns:
        number = names.index(column.stream)
        mask, table = batch.stream == number, batch.tables[number]
        if column.box:
            name = column.value.name if isinstance(column.value, Reference) else ""
            matrix[mask, index : index + 4] = geometry.boxes_of(_shapes(table, name, column.on_globe))
            index += 4
            continue
        values = evaluate(column.value, table.columns, {}, len(table))
        if column.group is None:
            matrix[mask, index] = numbers_of(values)
        else:
            groups.setdefault(column.group, []).append((mask, index, values))
        index += 1
    for members in groups.values():
        for (mask, index, _), numbers in zip(members, coded([values for _, _, values in members]), strict=True):
            matrix[mask, index] = numbers
    return matrix
