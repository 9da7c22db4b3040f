"""The globe: a sphere, and a plane that touches it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, Bools

#: The mean radius of the Earth in metres.
RADIUS = 6_371_008.8


@dataclass(frozen=True, slots=True)
class Projection:
    """The oblique stereographic projection: degrees become metres east and north of an origin.

    A point is projected from the point opposite the origin to the plane that touches the sphere at the origin. Angles
    are kept. Lengths are too long by the factor 1 + (d / 2R)² at the distance d of the origin: by 0.006% at 100 km, by
    0.6% at 1,000 km.

    Attributes
    ----------
    columns : (int, int)
        The positions of the longitude and of the latitude among the value columns.
    longitude, latitude : float
        The origin, in degrees.

    Examples
    --------
    >>> Projection((0, 1), 8.0, 47.0).project(np.array([[8.0, 47.0], [8.0, 48.0]])).round(1).tolist()
    [[0.0, 0.0], [0.0, 111197.9]]
    """

    columns: tuple[int, int]
    longitude: float
    latitude: float

    def identity(self) -> list[float]:
        """What tells this projection from another."""
        return [*self.columns, self.longitude, self.latitude]

    def project(self, values: F64) -> F64:
        """The values with the two coordinates in metres."""
        angle = np.radians(values[:, self.columns[0]] - self.longitude)
        latitude, origin = np.radians(values[:, self.columns[1]]), np.radians(self.latitude)
        to_origin = np.sin(origin) * np.sin(latitude) + np.cos(origin) * np.cos(latitude) * np.cos(angle)
        scale = 2 * RADIUS / (1 + to_origin)
        projected = np.array(values, np.float64)
        projected[:, self.columns[0]] = scale * np.cos(latitude) * np.sin(angle)
        north = np.cos(origin) * np.sin(latitude) - np.sin(origin) * np.cos(latitude) * np.cos(angle)
        projected[:, self.columns[1]] = scale * north
        return projected


def beyond(longitude: F64, latitude: F64, origin: tuple[float, float]) -> Bools:
    """Which points are more than 90 degrees from an origin: the projection stretches them more than twofold."""
    angle = np.radians(longitude - origin[0])
    at, of = np.radians(latitude), np.radians(origin[1])
    return np.sin(of) * np.sin(at) + np.cos(of) * np.cos(at) * np.cos(angle) < 0
