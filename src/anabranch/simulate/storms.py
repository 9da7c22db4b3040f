"""Storms of a tropical ocean: they form near the equator, move west and towards the pole, and last some days.

A storm has a moving centre, a strength (the difference between the pressure around it and at its centre) and a radius.
Its effect at a location is the profile of Holland (1980): pressure rises from the centre outwards; wind is strongest at
a fifth of the radius and blows around the centre, counter-clockwise in the north and clockwise in the south, and a
little inwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I64

HOUR = 3_600
DAY = 24 * HOUR
"""Times are in seconds."""

EARTH_KM = 6_371.0088
"""The radius of the sphere on which DISTANCE is measured."""
DEGREE_KM = np.pi / 180 * EARTH_KM

MONTH = 30 * DAY
"""The same number of storms forms in each such period."""
BEFORE = 4 * DAY
"""The first storms form this long before the beginning: the shortest life, so that all of them reach it."""
LIFE_DAYS = (4.0, 9.0)

# Where storms form, in degrees; the latitude is the distance from the equator.
FORMS_LON = (165.0, 205.0)
FORMS_LAT = (7.0, 13.0)

# How storms move: in m/s; the heading at first, and its change per day, in degrees from west towards the pole.
SPEED = (4.0, 7.0)
HEADING = (5.0, 25.0)
TURN = (0.0, 3.0)

# The maxima, reached at half of the life.
STRENGTH = (15.0, 60.0)
"""In hPa."""
RADIUS = (300.0, 550.0)
"""In km."""

# The profile of wind and pressure.
STEEPNESS = 1.5
AIR_DENSITY = 1.15
EARTH_TURNS = 7.292e-5
"""The angular speed of the earth, in radians per second."""
SURFACE_WIND = 0.8
"""The wind at a buoy, relative to the wind aloft."""
INFLOW = np.radians(20.0)
STRONGEST_AT = 0.2
"""The distance of the strongest wind, relative to the radius."""
FADES_AT = 1.5
"""The distance at which the profile fades out, relative to the radius; at twice that distance it is 0."""


@dataclass(frozen=True, slots=True)
class Storm:
    """The track of one storm, one row per hour; in between it moves at constant speed.

    Attributes
    ----------
    t : int64
        Whole hours, in seconds since the beginning; negative before it.
    lon, lat : float64
        The centre in degrees, the longitude from 0 to 360.
    radius : float64
        In km; a location that is not further from the centre is inside the storm.
    strength : float64
        In hPa: the difference between the pressure around the storm and at its centre.
    """

    t: I64
    lon: F64
    lat: F64
    radius: F64
    strength: F64

    def at(self, t: I64) -> Storm:
        """Return the storm at these times of its life."""
        rows = (np.interp(t, self.t, getattr(self, name)) for name in self.__slots__[1:])
        return Storm(t, *rows)


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a storm at locations.

    Attributes
    ----------
    distance : float64
        From the centre, in km.
    deficit : float64
        The fall of the pressure, in hPa.
    east, north : float64
        The wind, in m/s.
    """

    distance: F64
    deficit: F64
    east: F64
    north: F64


def make_storms(days: float, storms: int, rng: np.random.Generator) -> list[Storm]:
    """Return the storms of a period, in the order in which they form.

    Parameters
    ----------
    days : float
        The length of the period; a longer one does not change the storms of the first days.
    storms : int
        How many form in 30 days.
    rng : np.random.Generator
        Each storm has its own child generator.
    """
    months = int((days * DAY + BEFORE) // MONTH) + 1
    tracks = [
        _storm(number * MONTH - BEFORE, storm_rng)
        for number, month_rng in enumerate(rng.spawn(months))
        for storm_rng in month_rng.spawn(storms)
    ]
    return sorted((storm for storm in tracks if storm.t[0] < days * DAY), key=lambda storm: int(storm.t[0]))


def _storm(earliest: int, rng: np.random.Generator) -> Storm:
    """Return one storm that forms within 30 days."""
    hours = np.arange(int(24 * rng.uniform(*LIFE_DAYS)) + 1)
    t = (earliest // HOUR + rng.integers(MONTH // HOUR) + hours) * HOUR
    side = rng.choice([-1.0, 1.0])
    heading = np.radians(rng.uniform(*HEADING) + rng.uniform(*TURN) * hours[:-1] / 24)
    step = rng.uniform(*SPEED) * HOUR / 1_000 / DEGREE_KM
    lat = rng.uniform(*FORMS_LAT) + np.append(0.0, np.cumsum(step * np.sin(heading)))
    west = np.append(0.0, np.cumsum(step * np.cos(heading) / np.cos(np.radians(lat[:-1]))))
    # A storm grows until half of its life, then shrinks; its size is never 0.
    growth = np.sin(np.pi * hours / hours[-1])
    return Storm(
        t=t,
        lon=(rng.uniform(*FORMS_LON) - west).round(4),
        lat=(side * lat).round(4),
        radius=(rng.uniform(*RADIUS) * (0.5 + 0.5 * growth)).round(1),
        strength=(rng.uniform(*STRENGTH) * (0.1 + 0.9 * growth)).round(1),
    )


def effect(storm: Storm, lon: F64, lat: F64) -> Effect:
    """Return the effect of a storm at locations, each with its own time.

    With r the distance, x = (r_max / r)^B and f the Coriolis parameter, the pressure is lower by
    strength (1 - exp(-x)), and wind aloft has the speed sqrt(B strength x exp(-x) / density + (r f / 2)^2) - r f / 2.

    Parameters
    ----------
    storm : Storm
        One row per location: the storm at the time of the location.
    lon, lat : float64
        The locations, in degrees.
    """
    r = np.maximum(distance(storm.lon, storm.lat, lon, lat), 1.0)
    x = (STRONGEST_AT * storm.radius / r) ** STEEPNESS
    fading = np.exp(-((r / (FADES_AT * storm.radius)) ** 4))
    turning = 1_000 * r * EARTH_TURNS * np.abs(np.sin(np.radians(storm.lat)))
    speed = np.sqrt(STEEPNESS * 100 * storm.strength * x * np.exp(-x) / AIR_DENSITY + turning**2) - turning
    speed *= SURFACE_WIND * fading
    outwards = np.arctan2(lat - storm.lat, (lon - storm.lon) * np.cos(np.radians((lat + storm.lat) / 2)))
    blows = outwards + np.sign(storm.lat) * (np.pi / 2 + INFLOW)
    return Effect(
        distance=r,
        deficit=storm.strength * (1 - np.exp(-x)) * fading,
        east=speed * np.cos(blows),
        north=speed * np.sin(blows),
    )


def near(storms: list[Storm], t: I64, lon: F64, lat: F64) -> Iterator[tuple[int, I64, Storm, Effect]]:
    """Yield for each storm its number, the indices of the locations that it reaches, the storm then, and its effect.

    Locations are in the order of time.
    """
    for number, storm in enumerate(storms):
        first, last = np.searchsorted(t, storm.t[0]), np.searchsorted(t, storm.t[-1], side="right")
        # A band of latitudes first: this is fast and excludes most of the ocean.
        reach = 2 * FADES_AT * storm.radius.max() / DEGREE_KM
        south, north = storm.lat.min() - reach, storm.lat.max() + reach
        chosen = first + np.flatnonzero((lat[first:last] > south) & (lat[first:last] < north))
        then = storm.at(t[chosen])
        yield number, chosen, then, effect(then, lon[chosen], lat[chosen])


def distance(lon_1: F64, lat_1: F64, lon_2: F64, lat_2: F64) -> F64:
    """Return the distance on the sphere, in km.

    Examples
    --------
    >>> distance(np.array([179.0]), np.array([0.0]), np.array([-179.0]), np.array([0.0])).round(1)
    array([222.4])
    """
    d_lat, d_lon = np.radians(lat_2 - lat_1), np.radians(lon_2 - lon_1)
    cosines = np.cos(np.radians(lat_1)) * np.cos(np.radians(lat_2))
    haversine = np.sin(d_lat / 2) ** 2 + cosines * np.sin(d_lon / 2) ** 2
    return 2 * EARTH_KM * np.arcsin(np.sqrt(haversine))
