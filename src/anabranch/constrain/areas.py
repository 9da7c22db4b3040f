"""The share of a disc of the plane that is inside an area."""

from __future__ import annotations

import numpy as np
import shapely

from anabranch.arrays import F64
from anabranch.constrain.geometry import Shapes, without_overlaps


def shares_of_discs(centres: F64, radii: F64, areas: Shapes) -> F64:
    """The share of each disc that is inside its area.

    An area is a sum of triangles between the centre and its edges, with signs. A disc shares sectors and triangles with
    each of them.

    Parameters
    ----------
    centres, radii : (n, 2) and (n,)
    areas : shapes; lines and points have no inside
    """
    parts, area_of_part = shapely.get_parts(without_overlaps(areas), return_index=True)
    is_polygon = shapely.get_type_id(parts) == shapely.GeometryType.POLYGON
    rings, polygon_of_ring = shapely.get_rings(parts[is_polygon], return_index=True)
    area_of_ring = area_of_part[is_polygon][polygon_of_ring]
    points, ring_of_point = shapely.get_coordinates(rings, return_index=True)
    is_edge = ring_of_point[1:] == ring_of_point[:-1]
    ring = ring_of_point[:-1][is_edge]
    disc = area_of_ring[ring]
    starts, ends = ((corners[is_edge] - centres[disc]) / radii[disc][:, None] for corners in (points[:-1], points[1:]))
    shared = np.bincount(ring, _shared_with_triangles(starts, ends), minlength=len(rings))
    # The corners of a ring may be in either order. The first ring of a polygon is its outline, the others are holes.
    orientation = np.sign(np.bincount(ring, _cross(starts, ends), minlength=len(rings)))
    is_outline = np.append(True, polygon_of_ring[1:] != polygon_of_ring[:-1])[: len(rings)]
    signed = shared * orientation * np.where(is_outline, 1.0, -1.0)
    return np.clip(np.bincount(area_of_ring, signed, minlength=len(areas)) / np.pi, 0.0, 1.0)


def _shared_with_triangles(starts: F64, ends: F64) -> F64:
    """The signed area that the unit disc shares with triangles between its centre and two points."""
    along = ends - starts
    square, half, rest = _dot(along, along), _dot(starts, along), _dot(starts, starts) - 1.0
    root = np.sqrt(np.maximum(half**2 - square * rest, 0.0))
    square = np.where(square > 0, square, 1.0)
    enters, leaves = (
        starts + np.clip((sign * root - half) / square, 0.0, 1.0)[:, None] * along for sign in (-1.0, 1.0)
    )
    return (_angle(starts, enters) + _cross(enters, leaves) + _angle(leaves, ends)) / 2


def _dot(one: F64, other: F64) -> F64:
    return np.einsum("ij,ij->i", one, other)


def _cross(one: F64, other: F64) -> F64:
    return one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]


def _angle(one: F64, other: F64) -> F64:
    """The angle from one point to another, seen from the centre."""
    return np.arctan2(_cross(one, other), _dot(one, other))
