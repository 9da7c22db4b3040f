"""Evaluates conditions with functions of events: first the functions (DISTANCE, WITHIN, SPAN ...), then the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from anabranch.arrays import F64, Bools
from anabranch.binding.time_bounds import Streams, TimeBound, time_bound
from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed
from anabranch.columns.conditions import Columns, Relations, evaluate, holds
from anabranch.columns.numbers import numbers_of
from anabranch.columns.times import compare_difference
from anabranch.constrain import geometry
from anabranch.constrain.arguments import OF_AREA, SPATIAL
from anabranch.language.types import Type

_FUNCTIONS = (*SPATIAL, *OF_AREA, "span")


def holds_of_events(condition: Typed | None, columns: Columns, streams: Streams, relations: Relations, n: int) -> Bools:
    """The rows where a condition on events is TRUE.

    Parameters
    ----------
    columns : arrays by lower-case name, `owner.name` for references with an owner
    """
    if condition is None:
        return np.ones(n, np.bool_)
    extended = dict(columns)
    return holds(_with_functions_evaluated(condition, extended, streams, n), extended, relations, n)


def value_of_events(tree: Typed, columns: Columns, streams: Streams, relations: Relations, n: int) -> pa.Array:
    """The value of an expression over events, such as a distance; the parameters are those of `holds_of_events`."""
    extended = dict(columns)
    return evaluate(_with_functions_evaluated(tree, extended, streams, n), extended, relations, n)


def _with_functions_evaluated(tree: Typed, columns: dict[str, pa.Array], streams: Streams, n: int) -> Typed:
    """The tree with every function and every bound on times replaced by a reference to a new column with its values."""
    if not isinstance(tree, Operation | Member):
        return tree
    bound = time_bound(streams, tree)
    if bound is not None:
        name = f"#{len(columns)}"
        columns[name] = _compare_times(bound, columns, streams)
        return Reference(None, name, Type.BOOLEAN)
    if isinstance(tree, Operation) and tree.op in _FUNCTIONS:
        name = f"#{len(columns)}"
        columns[name] = _values(tree, columns, streams, n)
        return Reference(None, name, tree.type)
    arguments = (_with_functions_evaluated(argument, columns, streams, n) for argument in tree.arguments)
    return replace(tree, arguments=tuple(arguments))


def _compare_times(bound: TimeBound, columns: Columns, streams: Streams) -> pa.Array:
    """Where a bound on the difference of two times holds."""
    one, other = (
        _time(time, columns, streams) if time.name == "*" else column_of(time, time.name, columns)
        for time in (bound.one, bound.other)
    )
    return compare_difference(bound.op, one, other, bound.value, bound.is_absolute)


def _values(function: Operation, columns: Columns, streams: Streams, n: int) -> pa.Array:
    """The values of a function of two arguments."""
    one, other = function.arguments
    if function.op == "span":
        return _span(_time(one, columns, streams), _time(other, columns, streams))
    events = [streams[_reference(value).owner or ""] for value in (one, other) if _is_event(value)]
    on_globe = any(stream.declaration.geodesic for stream in events)
    has_height = any(stream.has_height for stream in events)
    if function.op == "distance" and (on_globe or has_height or len(events) == 2):
        points = [
            geometry.locations(_coordinates(value, columns, streams, n, 3 if has_height else 2), on_globe)
            for value in (one, other)
        ]
        measure = geometry.straight_distance if has_height or not on_globe else geometry.great_circle
        distance = measure(*points)
        return pa.array(distance, mask=np.isnan(distance))
    return geometry.related(function.op, _shapes(one, columns, streams, n), _shapes(other, columns, streams, n))


def _reference(value: Typed) -> Reference:
    """The argument of a function as a reference; the binder allows nothing else here."""
    if not isinstance(value, Reference):
        raise TypeError(value)
    return value


def _is_event(value: Typed) -> bool:
    return isinstance(value, Reference) and value.name == "*"


def column_of(reference: Reference, name: str, columns: Columns) -> pa.Array:
    """The column with this name of the event of a reference."""
    return columns[name.lower() if reference.owner is None else f"{reference.owner}.{name.lower()}"]


def _time(event: Typed, columns: Columns, streams: Streams) -> pa.Array:
    reference = _reference(event)
    return column_of(reference, streams[reference.owner or ""].time.name, columns)


def _span(one: pa.Array, other: pa.Array) -> pa.Array:
    """The absolute differences of times, in seconds for timestamps."""
    if pa.types.is_timestamp(one.type):
        microseconds = (pc.cast(pc.cast(time, pa.timestamp("us", tz="UTC")), pa.int64()) for time in (one, other))
        return pc.divide(pc.cast(pc.abs(pc.subtract(*microseconds)), pa.float64(), safe=False), 1e6)
    return pc.abs(pc.subtract(one, other))


def _coordinates(value: Typed, columns: Columns, streams: Streams, n: int, count: int) -> list[F64]:
    """The first coordinates of an event, or of a constant point."""
    if isinstance(value, Constant):
        (point,) = shapely.get_coordinates(shapely.from_wkt(str(value.value)), include_z=count == 3)
        return [np.full(n, coordinate) for coordinate in point]
    event = _reference(value)
    names = (streams[event.owner or ""].declaration.space or ())[:count]
    return [numbers_of(column_of(event, name, columns)) for name in names]


def _shapes(value: Typed, columns: Columns, streams: Streams, n: int) -> geometry.Shapes:
    """The geometries of an event, a column or a constant; in degrees if an event of the condition is on the globe."""
    on_globe = any(stream.declaration.geodesic for stream in streams.values())
    if isinstance(value, Constant):
        return np.full(n, geometry.shape_of(str(value.value), on_globe), object)
    if _is_event(value):
        return geometry.points_of(*_coordinates(value, columns, streams, n, 2))
    return geometry.shapes_of(column_of(_reference(value), _reference(value).name, columns), on_globe)
