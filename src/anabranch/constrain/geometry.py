"""Geometries, by Shapely, and the coordinates of events in the plane and on the globe."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from shapely.errors import ShapelyError

from anabranch.arrays import F64
from anabranch.columns.globe import RADIUS

Shapes = npt.NDArray[np.object_]


def fault_of(text: str) -> str:
    """Why a text is not a geometry; empty if it is one."""
    try:
        shapely.from_wkt(text)
    except (ShapelyError, ValueError) as error:
        # GEOS puts the name of its exception first.
        return str(error).splitlines()[0].removeprefix("IllegalArgumentException: ").removeprefix("ParseException: ")
    return ""


def shapes_of(values: pa.Array) -> Shapes:
    """The geometries of a column of well-known text or binary; None if a value is not a geometry."""
    binary = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    read = shapely.from_wkb if binary else shapely.from_wkt
    return np.asarray(read(np.array(values.to_pylist(), object), on_invalid="ignore"), object)


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


def in_plane(x: F64, y: F64) -> F64:
    """(n, 3): points in the plane; the third coordinate is 0, or NaN if a coordinate is NaN."""
    return np.stack([x, y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)], axis=1)


def great_circle(lon: F64, lat: F64, other_lon: F64, other_lat: F64) -> F64:
    """The distance in metres between points in degrees."""
    half = np.linalg.norm(on_sphere(lon, lat) - on_sphere(other_lon, other_lat), axis=1) / 2.0
    return 2.0 * RADIUS * np.arcsin(np.minimum(1.0, half))


def related(relation: str, one: Shapes, other: Shapes) -> pa.Array:
    """`distance`, `within` or `intersects` of pairs of shapes; NULL if a shape is missing.

    A shape on the boundary counts as within: `covered_by` in Shapely.
    """
    unknown = shapely.is_missing(one) | shapely.is_missing(other)
    functions: dict[str, Any] = {
        "distance": shapely.distance,
        "within": shapely.covered_by,
        "intersects": shapely.intersects,
    }
    return pa.array(functions[relation](one, other), mask=unknown)
