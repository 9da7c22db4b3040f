"""Storms of a tropical ocean: born near the equator, carried west and towards the pole, growing, and gone after days.

A storm has a centre that moves, a strength (how much lower the pressure is at the centre than around it) and a radius
within which one is inside it. What it does at a place is the profile of Holland (1980): pressure rises from the centre
outwards, wind is strongest at a fifth of the radius and blows around the centre, against the clock in the north and
with it in the south, and a little inwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.simulate.segmented import Floats, Integers

HOUR = 3_600
DAY = 24 * HOUR
"""Times are in seconds."""

EARTH_KM = 6_371.0088
"""The radius of the sphere on which DISTANCE is measured."""
DEGREE_KM = np.pi / 180 * EARTH_KM

MONTH = 30 * DAY
"""As many storms are born in one such time as in the next."""
BEFORE = 4 * DAY
"""The first are born so long before anybody looks: the shortest life, so that all are seen."""
LIFE_DAYS = (4.0, 9.0)

# Where they are born, in degrees; of the latitude that is how far from the equator.
BORN_LON = (165.0, 205.0)
BORN_LAT = (7.0, 13.0)

# How they move: in m/s, and in degrees from due west towards the pole, at birth and more every day.
SPEED = (4.0, 7.0)
HEADING = (5.0, 25.0)
TURN = (0.0, 3.0)

# The most that they come to, halfway through their lives.
STRENGTH = (15.0, 60.0)
"""In hPa."""
RADIUS = (300.0, 550.0)
"""In km."""

# The profile of wind and pressure.
STEEPNESS = 1.5
AIR_DENSITY = 1.15
EARTH_TURNS = 7.292e-5
"""In radians a second."""
SURFACE_WIND = 0.8
"""The wind at a buoy as a share of the wind aloft."""
INFLOW = np.radians(20.0)
STRONGEST_AT = 0.2
"""Where wind is strongest, as a share of the radius."""
FADES_AT = 1.5
"""Where what is left of the profile is faded out, as a multiple of the radius; at twice that nothing is left."""


@dataclass(frozen=True, slots=True)
class Storm:
    """The track of one storm, a row an hour; in between it moves evenly.

    Attributes
    ----------
    t : int64
        In seconds since the beginning, whole hours; negative before anybody looks.
    lon, lat : float64
        The centre in degrees, the longitude from 0 to 360.
    radius : float64
        In km: who is not further from the centre is inside the storm.
    strength : float64
        In hPa: how much lower the pressure is at the centre than around the storm.
    """

    t: Integers
    lon: Floats
    lat: Floats
    radius: Floats
    strength: Floats

    def at(self, t: Integers) -> Storm:
        """The storm at these times of its life."""
        rows = (np.interp(t, self.t, getattr(self, name)) for name in self.__slots__[1:])
        return Storm(t, *rows)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a storm does at some places: in hPa, and in m/s towards the east and the north.

    `distance` is that from the centre, in km.
    """

    distance: Floats
    deficit: Floats
    east: Floats
    north: Floats


def brew(days: float, storms: int, rng: np.random.Generator) -> list[Storm]:
    """The storms of some days, in the order of their births.

    Parameters
    ----------
    days : float
        How long somebody looks; more days leave the storms of the first as they were.
    storms : int
        How many are born in 30 days, anywhere in them.
    rng : np.random.Generator
        Each storm draws from a generator of its own.
    """
    months = int((days * DAY + BEFORE) // MONTH) + 1
    born = [
        _storm(number * MONTH - BEFORE, own)
        for number, month in enumerate(rng.spawn(months))
        for own in month.spawn(storms)
    ]
    return sorted((each for each in born if each.t[0] < days * DAY), key=lambda each: int(each.t[0]))


def _storm(earliest: int, rng: np.random.Generator) -> Storm:
    """One storm, born within 30 days."""
    hours = np.arange(int(24 * rng.uniform(*LIFE_DAYS)) + 1)
    t = (earliest // HOUR + rng.integers(MONTH // HOUR) + hours) * HOUR
    side = rng.choice([-1.0, 1.0])
    heading = np.radians(rng.uniform(*HEADING) + rng.uniform(*TURN) * hours[:-1] / 24)
    step = rng.uniform(*SPEED) * HOUR / 1_000 / DEGREE_KM
    lat = rng.uniform(*BORN_LAT) + np.append(0.0, np.cumsum(step * np.sin(heading)))
    west = np.append(0.0, np.cumsum(step * np.cos(heading) / np.cos(np.radians(lat[:-1]))))
    # It grows up to its best day and shrinks again; it is never without size.
    grown = np.sin(np.pi * hours / hours[-1])
    return Storm(
        t=t,
        lon=(rng.uniform(*BORN_LON) - west).round(4),
        lat=(side * lat).round(4),
        radius=(rng.uniform(*RADIUS) * (0.5 + 0.5 * grown)).round(1),
        strength=(rng.uniform(*STRENGTH) * (0.1 + 0.9 * grown)).round(1),
    )


def effect(storm: Storm, lon: Floats, lat: Floats) -> Effect:
    """What a storm does at some places, each with its own moment of the storm.

    With r the distance, x = (r_max / r)^B and f the Coriolis parameter, the pressure is lower by
    strength (1 - exp(-x)), and wind aloft has the speed sqrt(B strength x exp(-x) / density + (r f / 2)^2) - r f / 2.

    Parameters
    ----------
    storm : Storm
        Its rows stand beside the places: where it was when.
    lon, lat : float64
        The places, in degrees.
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


def near(storms: list[Storm], t: Integers, lon: Floats, lat: Floats) -> Iterator[tuple[int, Integers, Storm, Effect]]:
    """For each storm, the places that it reaches: its number, which they are, how it was then and what it does there.

    The places stand in the order of time.
    """
    for number, storm in enumerate(storms):
        first, last = np.searchsorted(t, storm.t[0]), np.searchsorted(t, storm.t[-1], side="right")
        # A band of latitudes first: that is quick, and leaves out most of the ocean.
        reach = 2 * FADES_AT * storm.radius.max() / DEGREE_KM
        south, north = storm.lat.min() - reach, storm.lat.max() + reach
        chosen = first + np.flatnonzero((lat[first:last] > south) & (lat[first:last] < north))
        then = storm.at(t[chosen])
        yield number, chosen, then, effect(then, lon[chosen], lat[chosen])


def distance(lon_1: Floats, lat_1: Floats, lon_2: Floats, lat_2: Floats) -> Floats:
    """The distance on the sphere, in km.

    Examples
    --------
    >>> distance(np.array([179.0]), np.array([0.0]), np.array([-179.0]), np.array([0.0])).round(1)
    array([222.4])
    """
    d_lat, d_lon = np.radians(lat_2 - lat_1), np.radians(lon_2 - lon_1)
    cosines = np.cos(np.radians(lat_1)) * np.cos(np.radians(lat_2))
    haversine = np.sin(d_lat / 2) ** 2 + cosines * np.sin(d_lon / 2) ** 2
    return 2 * EARTH_KM * np.arcsin(np.sqrt(haversine))
