"""SEMANTICS MAY: whether all bounds on the distances of one location can be true together, in a plane or on a sphere.

A true location v is in the disc of its error. Another one, in a disc with the radius d around its reading, can be at a
distance from `least` to `most` of v if v is at most `most` + d and at least `least` - d from this reading. So v is
inside some circles and outside others. If there are such points, then one of them is a point where two circles cross,
or all points of some circle are.

On the sphere, the stereographic projection around the reading of v converts circles to circles of the plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, Bools

#: A point is inside or outside a circle if it misses it by at most this share of the largest radius.
_ROUNDING = 1e-9


class Circle(NamedTuple):
    """A circle in each of n planes: points must be inside, or outside; a radius that is no number asks for nothing.

    Attributes
    ----------
    centre, radius, is_inside : (n, 2), (n,) and (n,)
    """

    centre: F64
    radius: F64
    is_inside: Bools


def circles_in_plane(reading: F64, error: F64, others: Sequence[tuple[F64, F64, F64]]) -> list[Circle]:
    """The circles for locations around a reading (n, 3), and others (n, 3) with a least and a greatest distance.

    All third coordinates are 0.
    """
    circles = [_circle(reading[:, :2], error, True)]
    for other, least, most in others:
        circles += [_circle(other[:, :2], most, True), _circle(other[:, :2], least, False)]
    return circles


def circles_on_sphere(reading: F64, error: F64, others: Sequence[tuple[F64, F64, F64]]) -> list[Circle]:
    """The same for points (n, 3) of the unit sphere and angles; the plane touches the sphere at the reading."""
    axis = np.eye(3)[np.abs(reading).argmin(axis=1)]
    one = np.cross(reading, axis)
    one /= np.linalg.norm(one, axis=1)[:, None]
    basis = np.stack([one, np.cross(reading, one)], axis=2)
    circles = [_projected(np.zeros((len(reading), 2)), np.zeros(len(reading)), error, True)]
    for other, least, most in others:
        towards = np.einsum("ij,ijk->ik", other, basis)
        length = np.linalg.norm(towards, axis=1)
        direction = np.divide(towards, length[:, None], out=np.zeros_like(towards), where=length[:, None] > 0)
        angle = 2 * np.arcsin(np.minimum(1.0, np.linalg.norm(reading - other, axis=1) / 2))
        circles += [_projected(direction, angle, most, True), _projected(direction, angle, least, False)]
    return circles


def _circle(centre: F64, radius: F64, is_inside: bool) -> Circle:
    """A circle; nothing is outside of one with a radius of 0 or less, or inside of an infinite one only."""
    asks = np.isfinite(radius) if is_inside else radius > 0
    return Circle(centre, np.where(asks, radius, np.nan), np.full(len(radius), is_inside))


def _projected(direction: F64, angle: F64, radius: F64, is_inside: bool) -> Circle:
    """The projection of a circle of the sphere whose centre is in a direction, at an angle from the reading."""
    asks = radius < np.pi if is_inside else radius > 0
    is_empty = radius < 0  # nothing is inside of it
    radius = np.where(asks, radius, 0.0)
    near, far = (2 * np.tan((angle + sign * radius) / 2) for sign in (-1.0, 1.0))
    # A circle around the point opposite to the reading has its inside outside of its projection.
    is_around = angle + radius > np.pi
    centre = direction * ((near + far) / 2)[:, None]
    projected = np.where(is_empty, -np.inf, np.abs(far - near) / 2)
    return Circle(centre, np.where(asks, projected, np.nan), is_around != is_inside)


def have_common_point(circles: Sequence[Circle]) -> Bools:
    """Whether there are points that are inside or outside of circles as each asks, or at the edge of some."""
    radii = np.stack([circle.radius for circle in circles])
    largest = np.max(radii, axis=0, initial=0.0, where=np.isfinite(radii))
    feasible = np.zeros(len(largest), np.bool_)
    with np.errstate(invalid="ignore", divide="ignore"):  # circles that do not cross
        for point in _candidates(circles):
            fits = np.ones(len(largest), np.bool_)
            for centre, radius, is_inside in circles:
                missed = np.sqrt(((point - centre) ** 2).sum(axis=1)) - radius
                fits &= (np.where(is_inside, missed, -missed) <= _ROUNDING * largest) | np.isnan(radius)
            feasible |= fits & np.isfinite(point).all(axis=1)
    return feasible


def _candidates(circles: Sequence[Circle]) -> list[F64]:
    """Points (n, 2), of which one fits all circles if any point does; not finite where there is none."""
    points = [centre + np.stack([radius, np.zeros(len(radius))], axis=1) for centre, radius, _ in circles]
    for one, other in combinations(circles, 2):
        points += _crossings(one, other)
    return points


def _crossings(one: Circle, other: Circle) -> list[F64]:
    """The points where two circles cross, and the point between them, which is on both if they only touch."""
    along = other.centre - one.centre
    gap = np.sqrt((along**2).sum(axis=1))
    along = along / gap[:, None]
    foot = (gap + (one.radius - other.radius) * (one.radius + other.radius) / gap) / 2
    half = np.sqrt(one.radius**2 - foot**2)
    middle = one.centre + foot[:, None] * along
    across = half[:, None] * np.stack([-along[:, 1], along[:, 0]], axis=1)
    return [middle, middle + across, middle - across]
