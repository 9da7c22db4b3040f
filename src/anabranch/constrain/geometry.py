"""Places and shapes: what Shapely knows of geometries, and where events are in the plane or on the globe."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely
from shapely.errors import ShapelyError

from anabranch.arrays import F64

#: Metres; the mean radius of the Earth.
RADIUS = 6_371_008.8

Shapes = npt.NDArray[np.object_]


def fault_of(text: str) -> str:
    """Why a text is no geometry; empty where it is one."""
    try:
        shapely.from_wkt(text)
    except (ShapelyError, ValueError) as error:
        # GEOS puts the name of its exception first.
        return str(error).splitlines()[0].removeprefix("IllegalArgumentException: ").removeprefix("ParseException: ")
    return ""


def shapes_of(values: pa.Array) -> Shapes:
    """The geometries of a column of well-known text or binary; None where a value is none."""
    binary = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    read = shapely.from_wkb if binary else shapely.from_wkt
    return np.asarray(read(np.array(values.to_pylist(), object), on_invalid="ignore"), object)


def points_of(x: F64, y: F64) -> Shapes:
    """Points; None where a coordinate is not known."""
    shapes = np.full(len(x), None, object)
    known = np.isfinite(x) & np.isfinite(y)
    shapes[known] = shapely.points(x[known], y[known])
    return shapes


def boxes_of(shapes: Shapes) -> F64:
    """(n, 4): the least x and y of each shape, and the greatest; NaN where there is none."""
    return np.asarray(shapely.bounds(shapes), np.float64).reshape(len(shapes), 4)


def on_sphere(lon: F64, lat: F64) -> F64:
    """(n, 3): degrees on the globe as places on the unit sphere."""
    along, up = np.radians(lon), np.radians(lat)
    return np.stack([np.cos(up) * np.cos(along), np.cos(up) * np.sin(along), np.sin(up)], axis=1)


def in_plane(x: F64, y: F64) -> F64:
    """(n, 3): places in the plane."""
    return np.stack([x, y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)], axis=1)


def great_circle(lon: F64, lat: F64, other_lon: F64, other_lat: F64) -> F64:
    """Metres between places in degrees."""
    half = np.linalg.norm(on_sphere(lon, lat) - on_sphere(other_lon, other_lat), axis=1) / 2.0
    return 2.0 * RADIUS * np.arcsin(np.minimum(1.0, half))


def related(relation: str, one: Shapes, other: Shapes) -> pa.Array:
    """`distance`, `within` or `intersects` of shapes, pair by pair; NULL where one is none.

    A boundary counts as within, which is what Shapely calls covered.
    """
    unknown = shapely.is_missing(one) | shapely.is_missing(other)
    functions: dict[str, Any] = {
        "distance": shapely.distance,
        "within": shapely.covered_by,
        "intersects": shapely.intersects,
    }
    return pa.array(functions[relation](one, other), mask=unknown)
