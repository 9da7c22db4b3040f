"""The oracle of MONITOR with DISTANCE on the globe: great circles between points of the sphere, as vectors.

A location is predicted in the plane that touches the globe at the ORIGIN, and moves there on a line. Its point on the
globe is where the straight line to the point opposite the ORIGIN meets the sphere. All is computed at one instant, and
for one error of each coordinate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

#: The mean radius of the Earth in metres.
RADIUS = 6_371_008.8


def on_sphere(longitude: float, latitude: float) -> Vector:
    """A point in degrees as a vector of length 1."""
    a, b = math.radians(longitude), math.radians(latitude)
    return np.array([math.cos(b) * math.cos(a), math.cos(b) * math.sin(a), math.sin(b)])


def distance(one: Vector, other: Vector) -> float:
    """The length of the great circle between two points, in metres."""
    return RADIUS * 2 * math.asin(min(1.0, math.dist(one, other) / 2))


@dataclass(frozen=True)
class Plane:
    """The plane that touches the globe at an origin, in degrees."""

    longitude: float
    latitude: float

    @cached_property
    def axes(self) -> tuple[Vector, Vector, Vector]:
        """The directions up, east and north at the origin."""
        up = on_sphere(self.longitude, self.latitude)
        east = np.array([-math.sin(math.radians(self.longitude)), math.cos(math.radians(self.longitude)), 0.0])
        return up, east, np.cross(up, east)

    def to_globe(self, x: float, y: float) -> Vector:
        """The point of the globe on the line from a point of the plane to the point opposite the origin."""
        up, east, north = self.axes
        from_opposite = 2 * up + (x * east + y * north) / RADIUS
        return from_opposite * (4 / float(from_opposite @ from_opposite)) - up

    def from_globe(self, point: Vector) -> tuple[float, float]:
        """The point of the plane in the same direction from the point opposite the origin."""
        up, east, north = self.axes
        stretch = 2 * RADIUS / (1 + float(point @ up))
        return stretch * float(point @ east), stretch * float(point @ north)


@dataclass(frozen=True)
class Track:
    """A predicted location: (x, y) at `time`, its rates, when it applies, and the errors of x and y."""

    plane: Plane
    time: float
    end: float
    place: tuple[float, float]
    rates: tuple[float, float]
    error: float

    def at(self, instant: float, off: tuple[float, float] = (0.0, 0.0)) -> Vector:
        """The point of the globe at an instant, with an error as a share of the largest."""
        since = instant - self.time
        return self.plane.to_globe(
            *(
                start + rate * since + share * self.error
                for start, rate, share in zip(self.place, self.rates, off, strict=True)
            )
        )

    def scales(self, period: float) -> tuple[float, float]:
        """Bounds of the scale of the projection, from the time of the prediction until its period has passed."""
        since = np.linspace(0.0, period, 200)
        away = np.hypot(self.place[0] + self.rates[0] * since, self.place[1] + self.rates[1] * since)
        reach = math.hypot(self.error, self.error) + math.hypot(*self.rates) * period / 200
        low, high = max(float(away.min()) - reach, 0.0), float(away.max()) + reach
        return 1 + (low / (2 * RADIUS)) ** 2, 1 + (high / (2 * RADIUS)) ** 2
