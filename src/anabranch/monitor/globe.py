"""Areas on the globe as areas in the plane of the projection, in which locations are predicted.

The stereographic projection maps circles to circles. So the points within a distance of a fixed point are a disk in the
plane, exactly. The distance of two moving points p and q depends on where they are: it is at most d if the length of
p - q in the plane is at most 2 R sin(d / 2R) times the square root of k(p) k(q), where k(p) = 1 + (|p| / 2R)² is the
scale of the projection at p. The kernel computes the smallest and the largest scale for each pair of predictions.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.columns.globe import RADIUS, Projection
from anabranch.monitor.alternatives import Form
from anabranch.monitor.areas import Area
from anabranch.monitor.numbers import ALL, Interval, Numbers

Point = tuple[float, float]
#: A center, and the smallest and the largest distance from it.
Ring = tuple[Point, tuple[float, float]]


def ring_of(area: Area) -> Ring:
    """The ring of an area in the plane; if it is scaled, its distances are those where the scale is 1."""
    distances = (area.distances[0].low, area.distances[0].high)
    if area.origin is None:
        return area.center, distances
    if area.is_scaled:
        return area.center, (_chord(distances[0]), _chord(distances[1]))
    low, high = distances
    if high < math.inf:
        center, radius = _disk(area.origin, area.center, high)
        return center, (0.0, radius)
    center, radius = _disk(area.origin, area.center, low)
    return center, (radius, math.inf)


def implied_by(area: Area, scale: float = math.inf) -> tuple[tuple[Form, Numbers], ...]:
    """The numbers in which each form must be: the sides of a rectangle around the area. `scale` is the largest one."""
    if area.rings and not area.is_outside:
        axes = (sorted(point[axis] for ring in area.rings for point in ring) for axis in range(2))
        return tuple(
            (form, (Interval((ends[0], 0), (ends[-1], 1)),)) for form, ends in zip(area.forms, axes, strict=True)
        )
    center, (_, radius) = ring_of(area) if area.distances else (area.center, (0.0, math.inf))
    if area.is_scaled:
        radius *= scale
    if area.rings or not radius < math.inf:
        return tuple((form, ALL) for form in area.forms)
    sides = zip(area.forms, center, strict=True)
    return tuple((form, (Interval((at - radius, 0), (at + radius, 1)),)) for form, at in sides)


def scale_at(distance: float) -> float:
    """The scale of the projection at a distance from its origin, in the plane."""
    return 1.0 + (distance / (2 * RADIUS)) ** 2


def _chord(distance: float) -> float:
    """The length of the straight line between two points of the globe at a distance."""
    return 2 * RADIUS * math.sin(distance / (2 * RADIUS)) if distance < math.inf else math.inf


def _disk(origin: Point, point: Point, distance: float) -> tuple[Point, float]:
    """The center and the radius of the disk of all points within a distance of a point, which is in degrees."""
    x, y = Projection((0, 1), *origin).project(np.array([point]))[0].tolist()
    from_origin = math.hypot(x, y)
    angle, reach = math.atan(from_origin / (2 * RADIUS)), distance / (2 * RADIUS)
    near, far = 2 * RADIUS * math.tan(angle - reach), 2 * RADIUS * math.tan(angle + reach)
    share = 0.5 * (near + far) / from_origin if from_origin else 0.0
    return (share * x, share * y), 0.5 * (far - near)
