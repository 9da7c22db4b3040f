"""Conditions with functions of events: DISTANCE, WITHIN, INTERSECTS and SPAN are worked out, then the rest is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from anabranch.arrays import F64, Bools
from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed
from anabranch.catalog import Stream
from anabranch.columns.conditions import Columns, Relations, holds
from anabranch.columns.numbers import numbers_of
from anabranch.constrain import geometry

_FUNCTIONS = ("distance", "within", "intersects", "span")

#: The stream of each event that a condition speaks of; "" where it speaks of one alone.
Streams = Mapping[str, Stream]


def holds_of_events(condition: Typed | None, columns: Columns, streams: Streams, relations: Relations, n: int) -> Bools:
    """Where a condition on events is TRUE.

    Parameters
    ----------
    columns : lower-case column name to array, `owner.name` where a reference has an owner
    """
    if condition is None:
        return np.ones(n, np.bool_)
    known = dict(columns)
    return holds(_worked_out(condition, known, streams, n), known, relations, n)


def _worked_out(tree: Typed, columns: dict[str, pa.Array], streams: Streams, n: int) -> Typed:
    """The tree with every function replaced by a reference to a column of its values, which is added."""
    if not isinstance(tree, Operation | Member):
        return tree
    if isinstance(tree, Operation) and tree.op in _FUNCTIONS:
        name = f"#{len(columns)}"
        columns[name] = _values(tree, columns, streams, n)
        return Reference(None, name, tree.type)
    return replace(tree, arguments=tuple(_worked_out(part, columns, streams, n) for part in tree.arguments))


def _values(function: Operation, columns: Columns, streams: Streams, n: int) -> pa.Array:
    one, other = function.arguments
    if function.op == "span":
        return _span(*(_time(each, columns, streams) for each in (one, other)))
    globe = any(_is_on_globe(each, streams) for each in (one, other))
    if function.op == "distance" and globe:
        places = [_place(each, columns, streams, n) for each in (one, other)]
        metres = geometry.great_circle(*places[0], *places[1])
        return pa.array(metres, mask=np.isnan(metres))
    if function.op == "distance" and _is_event(one) and _is_event(other):
        (x, y), (other_x, other_y) = (_place(each, columns, streams, n) for each in (one, other))
        apart = np.hypot(x - other_x, y - other_y)
        return pa.array(apart, mask=np.isnan(apart))
    return geometry.related(function.op, *(_shapes(each, columns, streams, n) for each in (one, other)))


def _reference(value: Typed) -> Reference:
    """The event or column that an argument is; the binder lets nothing else come here."""
    if not isinstance(value, Reference):
        raise TypeError(value)
    return value


def _is_event(value: Typed) -> bool:
    return isinstance(value, Reference) and value.name == "*"


def _is_on_globe(value: Typed, streams: Streams) -> bool:
    return isinstance(value, Reference) and value.name == "*" and streams[value.owner or ""].declaration.geodesic


def column_of(reference: Reference, name: str, columns: Columns) -> pa.Array:
    """The column of an event that a reference is to, by its name."""
    return columns[name.lower() if reference.owner is None else f"{reference.owner}.{name.lower()}"]


def _time(event: Typed, columns: Columns, streams: Streams) -> pa.Array:
    reference = _reference(event)
    return column_of(reference, streams[reference.owner or ""].time.name, columns)


def _span(one: pa.Array, other: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(one.type):
        whole = (pc.cast(pc.cast(each, pa.timestamp("us", tz="UTC")), pa.int64()) for each in (one, other))
        return pc.divide(pc.cast(pc.abs(pc.subtract(*whole)), pa.float64(), safe=False), 1e6)
    return pc.abs(pc.subtract(one, other))


def _place(value: Typed, columns: Columns, streams: Streams, n: int) -> tuple[F64, F64]:
    """The coordinates of an event, or of a point that is written."""
    if isinstance(value, Constant):
        point = shapely.from_wkt(str(value.value))
        return np.full(n, point.x), np.full(n, point.y)
    event = _reference(value)
    x, y = (numbers_of(column_of(event, name, columns)) for name in streams[event.owner or ""].declaration.space or ())
    return x, y


def _shapes(value: Typed, columns: Columns, streams: Streams, n: int) -> geometry.Shapes:
    if isinstance(value, Constant):
        return np.full(n, shapely.from_wkt(str(value.value)), object)
    if _is_event(value):
        return geometry.points_of(*_place(value, columns, streams, n))
    return geometry.shapes_of(column_of(_reference(value), _reference(value).name, columns))
