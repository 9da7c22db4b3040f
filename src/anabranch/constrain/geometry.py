"""Geometries, by Shapely, and the coordinates of events in the plane and on the globe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from shapely.errors import ShapelyError

from anabranch.arrays import F64
from anabranch.columns.globe import RADIUS

Shapes = npt.NDArray[np.object_]


class Fault(NamedTuple):
    """Why a text is not a geometry, and how to fix it."""

    reason: str
    hint: str


def fault_of(text: str, on_globe: bool) -> Fault | None:
    """Why a text is not a geometry; None if it is one."""
    try:
        shape = shapely.from_wkt(text)
    except (ShapelyError, ValueError) as error:
        # GEOS puts the name of its exception first.
        reason = str(error).splitlines()[0].removeprefix("IllegalArgumentException: ").removeprefix("ParseException: ")
        return Fault(reason, "write well-known text, such as 'POLYGON((0 0, 1 0, 1 1, 0 0))'")
    if on_globe and _is_around_pole(shape):
        hint = "draw it as on a map, such as 'POLYGON((-180 60, 0 60, 180 60, 180 90, -180 90, -180 60))'"
        return Fault("its outline goes around a pole", hint)
    return None


def _is_around_pole(shape: shapely.Geometry) -> bool:
    """Whether an outline goes once around the globe, each step the shorter way."""
    rings = (_without_jumps(shapely.get_coordinates(ring)) for ring in shapely.get_rings(shapely.get_parts(shape)))
    return any(abs(ring[0, 0] - ring[-1, 0]) > 180 for ring in rings)


def shapes_of(values: pa.Array, on_globe: bool) -> Shapes:
    """The geometries of a column of well-known text or binary; None if a value is not a geometry."""
    binary = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    read = shapely.from_wkb if binary else shapely.from_wkt
    shapes = np.asarray(read(np.array(values.to_pylist(), object), on_invalid="ignore"), object)
    return cut_at_date_line(shapes) if on_globe else shapes


def shape_of(text: str, on_globe: bool) -> shapely.Geometry:
    """The geometry of well-known text."""
    shape = shapely.from_wkt(text)
    return cut_at_date_line(np.array([shape], object))[0] if on_globe else shape


def points_of(x: F64, y: F64) -> Shapes:
    """Points with these coordinates; None if a coordinate is not a finite number."""
    shapes = np.full(len(x), None, object)
    known = np.isfinite(x) & np.isfinite(y)
    shapes[known] = shapely.points(x[known], y[known])
    return shapes


def boxes_of(shapes: Shapes) -> F64:
    """(n, 4): the lowest x and y of each shape, then the highest; NaN if there is no shape."""
    return np.asarray(shapely.bounds(shapes), np.float64).reshape(len(shapes), 4)


def on_sphere(lon: F64, lat: F64) -> F64:
    """(n, 3): points on the unit sphere, from degrees."""
    longitude, latitude = np.radians(lon), np.radians(lat)
    horizontal = np.cos(latitude)
    return np.stack([horizontal * np.cos(longitude), horizontal * np.sin(longitude), np.sin(latitude)], axis=1)


def locations(coordinates: Sequence[F64], geodesic: bool) -> F64:
    """(n, 3): where events are; all coordinates are NaN if one is not known.

    On the globe, degrees become points of the unit sphere, or, with a height, points in metres from its centre. A plane
    is at height 0.
    """
    first, second, *height = coordinates
    if geodesic:
        return on_sphere(first, second) * (RADIUS + height[0][:, None] if height else 1.0)
    third = height[0] if height else np.zeros(len(first))
    points = np.stack([first, second, third], axis=1)
    points[np.isnan(points).any(axis=1)] = np.nan
    return points


def great_circle(one: F64, other: F64) -> F64:
    """The distance in metres between points (n, 3) of the unit sphere."""
    half = np.linalg.norm(one - other, axis=1) / 2.0
    return 2.0 * RADIUS * np.arcsin(np.minimum(1.0, half))


def straight_distance(one: F64, other: F64) -> F64:
    """The distance between points (n, 3), as the kernel calculates it."""
    x, y, z = (one - other).T
    return np.hypot(np.hypot(x, y), z)


def related(relation: str, one: Shapes, other: Shapes) -> pa.Array:
    """A relation or distance of pairs of shapes; NULL if a shape is missing, or has no edge.

    A shape on the boundary counts as within: `covered_by` in Shapely.
    """
    unknown = shapely.is_missing(one) | shapely.is_missing(other)
    functions: dict[str, Any] = {
        "distance": shapely.distance,
        "gap": shapely.distance,
        "depth": _depths,
        "edge": _edge_distances,
        "within": shapely.covered_by,
        "intersects": shapely.intersects,
        "touches": shapely.touches,
    }
    values = functions[relation](one, other)
    return pa.array(values, mask=unknown | np.isnan(values))


def _depths(points: Shapes, areas: Shapes) -> F64:
    """How far points are from the nearest point that is not inside an area; 0 if a shape has no inside."""
    is_inside = shapely.covered_by(points, areas) & (shapely.get_dimensions(areas) == 2)
    return np.where(is_inside, _edge_distances(points, areas), 0.0)


def _edge_distances(points: Shapes, areas: Shapes) -> F64:
    """The distances of points to the edge of an area, or to the ends of a line; NaN if there are none."""
    return np.asarray(shapely.distance(points, shapely.boundary(without_overlaps(areas))), np.float64)


def without_overlaps(shapes: Shapes) -> Shapes:
    """Shapes with the same points, and no parts with common inner points, as collections may have them."""
    whole = shapes.copy()
    is_collection = shapely.get_type_id(shapes) == shapely.GeometryType.GEOMETRYCOLLECTION
    if is_collection.any():
        whole[is_collection] = shapely.union_all(shapes[is_collection][:, None], axis=1)
    return whole


def fixed_location(text: str, geodesic: bool, has_height: bool) -> F64:
    """(1, 3): the location of a point in well-known text, as `locations` has it."""
    coordinates = shapely.get_coordinates(shapely.from_wkt(text), include_z=has_height)
    return locations(list(coordinates.T), geodesic)


# ---------------------------------------------------------------- the date line


def cut_at_date_line(shapes: Shapes) -> Shapes:
    """Geometries in degrees, with those that cross the date line cut there, so that all longitudes are -180 to 180.

    A line between two points goes the shorter way around the globe; only a line from -180 to 180 goes all around it.
    """
    cut = shapes.copy()
    points, owner = shapely.get_coordinates(shapes, return_index=True)
    is_beyond = np.abs(points[:, 0]) > 180
    is_long = (owner[1:] == owner[:-1]) & _goes_the_other_way(np.diff(points[:, 0]))
    for number in np.unique(owner[is_beyond | np.append(is_long, False)]):
        cut[number] = _cut(shapes[number])
    return cut


def _goes_the_other_way(steps: F64) -> npt.NDArray[np.bool_]:
    """Which steps in longitude are shorter across the date line."""
    return (np.abs(steps) > 180) & (np.abs(steps) < 360)


def _cut(shape: shapely.Geometry) -> shapely.Geometry | None:
    """A geometry that crosses the date line, as one whose parts do not; None if its inside is not known."""
    if _is_around_pole(shape):
        return None
    world = shapely.box(-180, -90, 180, 90)
    parts = []
    for part in shapely.get_parts(shape):
        whole = _unrolled(part)
        for turn in (-360.0, 0.0, 360.0):
            moved = shapely.transform(whole, lambda points, turn=turn: points + (turn, 0.0))
            inside = shapely.intersection(moved, world)
            # Where a shape only touches the date line from the other side, nothing is left but its edge.
            if shapely.get_dimensions(inside) == shapely.get_dimensions(whole):
                parts.append(inside)
    return shapely.union_all(parts)


def _unrolled(shape: shapely.Geometry) -> shapely.Geometry:
    """A part with longitudes that go on beyond 180 instead of jumping to -180; holes go where their polygon is."""
    if shapely.get_type_id(shape) != shapely.GeometryType.POLYGON:
        return shapely.transform(shape, _without_jumps)
    shell = shapely.Polygon(_without_jumps(shapely.get_coordinates(shape.exterior)))
    shapely.prepare(shell)
    holes = []
    for hole in shape.interiors:
        points = _without_jumps(shapely.get_coordinates(hole))
        turned = [points + (turn, 0.0) for turn in (0.0, -360.0, 360.0)]
        holes.append(next((ring for ring in turned if shell.covers(shapely.Polygon(ring))), points))
    return shapely.Polygon(shapely.get_coordinates(shell.exterior), holes)


def _without_jumps(points: F64) -> F64:
    """Points of a line with the longitudes moved by whole turns, so that each step goes the shorter way."""
    steps = np.diff(points[:, 0])
    turns = np.where(_goes_the_other_way(steps), -np.sign(steps), 0.0)
    return points + np.stack([360.0 * np.append(0.0, np.cumsum(turns)), np.zeros(len(points))], axis=1)
