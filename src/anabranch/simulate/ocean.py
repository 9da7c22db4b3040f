"""Buoys that drift in a tropical ocean, and the weather that they report.

The ocean lies on both sides of the equator and of the date line. Two gyres turn in it, and eddies carry buoys about
(`drift`). What buoys feel (`observe`) has parts that depend on the place, the time of day and the season; waves that
travel west; a slow noise of each buoy's own; and the storms that pass (`storms.py`). How much of each, and for how long
noise is remembered, follows the records of the TAO buoys in the western Pacific.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from anabranch.simulate.segmented import Floats, Integers
from anabranch.simulate.storms import DAY, DEGREE_KM, HOUR, Storm, near

START = datetime(2026, 11, 1, tzinfo=UTC)
YEAR = 365.25 * DAY

# The basin, in degrees; longitudes go on beyond 180.
WEST, EAST = 140.0, 200.0
EDGE = 25.0
"""As far to the north as to the south."""

GYRE = 0.25
"""How fast the gyres turn at most, in m/s."""

# What is random of each buoy: how much (standard deviation), and for how many days it is remembered.
NOISE = {
    "drift_east": (0.12, 5.0),
    "drift_north": (0.12, 5.0),
    "sst": (0.4, 15.0),
    "airt": (0.45, 2.0),
    "pressure": (0.8, 3.0),
    "humidity": (3.2, 2.0),
    "wind_east": (2.0, 3.0),
    "wind_north": (1.9, 2.0),
}

# Waves in the air, which all go west: how many, how long (km), how fast (m/s), and how much they matter (hPa, m/s).
WAVES = 4
WAVE_LENGTH = (2_500.0, 4_500.0)
WAVE_SPEED = (5.0, 9.0)
WAVE_PRESSURE, WAVE_WIND = 0.4, 0.8

# What a storm does besides pressure and wind.
COOLING = 3.0
"""Degrees a day that a storm's wind of 30 m/s cools the sea; it goes with the cube of the wind."""
COOLED = 6.0
"""The most that it can be cooled: below, the water is no colder."""
WARMING_DAYS = 10.0
"""How long the sea takes to forget it. The water drifts as the buoy does, so the cold wake stays with the buoy."""
STORM_AIR, STORM_HUMIDITY = -0.08, 0.6
"""For each hPa that the storm takes away: degrees, and percent."""


@dataclass(frozen=True, slots=True)
class Tracks:
    """Where and when buoys report: arrays of shape (buoys, reports).

    Attributes
    ----------
    t : int64
        In seconds since the beginning. Every buoy has its own phase; the last report of some is beyond the end.
    lon, lat : float64
        In degrees, to 4 places, the longitude from 0 to 360.
    noise : dict of float64
        What is random of each buoy, by the names of `NOISE`.
    every : int
        Seconds from one report of a buoy to its next.
    """

    t: Integers
    lon: Floats
    lat: Floats
    noise: dict[str, Floats]
    every: int


@dataclass(frozen=True, slots=True)
class Readings:
    """What the buoys reported, in the order of time, then of buoys.

    Attributes
    ----------
    buoy : int64
        Counted from 1.
    t : int64
        In seconds since the beginning.
    lon, lat : float64
        In degrees, the longitude from -180 to 180.
    sst, airt : float64
        The temperature of the sea and of the air, in degrees Celsius.
    pressure, humidity, wind : float64
        In hPa, percent and m/s.
    dir : int64
        Where the wind comes from, in degrees from north by east, 0 to 359.
    """

    buoy: Integers
    t: Integers
    lon: Floats
    lat: Floats
    sst: Floats
    airt: Floats
    pressure: Floats
    humidity: Floats
    wind: Floats
    dir: Integers


@dataclass(frozen=True, slots=True)
class Hits:
    """Reports from inside a storm, in the order of time, then of buoys, then of storms.

    `storm` and `buoy` count from 1, `t` is in seconds and `distance`, from the centre, in km.
    """

    storm: Integers
    buoy: Integers
    t: Integers
    distance: Floats


def drift(buoys: int, days: float, interval: float, rng: np.random.Generator) -> Tracks:
    """Let buoys drift, from anywhere in the basin.

    Parameters
    ----------
    buoys : int
        How many; more of them leave the others as they were.
    days : float
        How long; more days leave the first as they were.
    interval : float
        Hours from one report of a buoy to its next.
    rng : np.random.Generator
        Each buoy draws from a generator of its own.
    """
    every = round(interval * HOUR)
    reports = int(np.ceil(days * DAY / every))
    first, shocks = np.empty((buoys, 3)), np.empty((buoys, reports, len(NOISE)))
    for number, own in enumerate(rng.spawn(buoys)):
        first[number] = own.random(3)
        shocks[number] = own.standard_normal((reports, len(NOISE)))
    noise = dict(zip(NOISE, np.moveaxis(_noise(shocks, every), 2, 0), strict=True))
    lon, lat = np.empty((buoys, reports)), np.empty((buoys, reports))
    x, y = WEST + (EAST - WEST) * first[:, 0], EDGE * (2 * first[:, 1] - 1)
    for number in range(reports):
        lon[:, number], lat[:, number] = x, y
        east, north = _gyres(x, y)
        step = every / 1_000 / DEGREE_KM
        x = x + step * (east + noise["drift_east"][:, number]) / np.cos(np.radians(y))
        y = y + step * (north + noise["drift_north"][:, number])
        x, y = np.clip(x, WEST, EAST), np.clip(y, -EDGE, EDGE)
    t = np.floor(first[:, 2] * every).astype(np.int64)[:, None] + every * np.arange(reports)
    return Tracks(t, lon.round(4), lat.round(4), noise, every)


def _noise(shocks: Floats, every: int) -> Floats:
    """What is random, made of independent shocks of shape (buoys, reports, kinds of noise)."""
    amounts, memories = np.array(list(NOISE.values())).T
    keeps = np.exp(-every / (memories * DAY))
    fresh = amounts * np.sqrt(1 - keeps**2)
    return _remembered(np.concatenate([amounts * shocks[:, :1], fresh * shocks[:, 1:]], axis=1), keeps)


def _remembered(values: Floats, keeps: Floats | float) -> Floats:
    """With each report its own value, and what is kept of those before, which are forgotten exponentially."""
    found = values.copy()
    for number in range(1, values.shape[1]):
        found[:, number] += keeps * found[:, number - 1]
    return found


def _gyres(lon: Floats, lat: Floats) -> tuple[Floats, Floats]:
    """The current, towards the east and the north: westward at the equator, and around on both sides."""
    x, y = np.pi * (lon - WEST) / (EAST - WEST), np.pi * lat / EDGE
    return -GYRE * np.sin(x) * np.cos(y), GYRE * EDGE / (EAST - WEST) * np.cos(x) * np.sin(y)


# ---------------------------------------------------------------- what they feel


def observe(tracks: Tracks, days: float, storms: list[Storm], rng: np.random.Generator) -> tuple[Readings, Hits]:
    """What buoys report on their way, and which of the reports come from inside a storm.

    Parameters
    ----------
    tracks : Tracks
        Where and when they report.
    days : float
        What would be reported later is left out.
    storms : list of Storm
        What passes meanwhile.
    rng : np.random.Generator
        Is drawn from for the waves.
    """
    order = np.argsort(tracks.t, axis=None, kind="stable")
    order = order[: np.searchsorted(tracks.t.ravel()[order], days * DAY)]
    (deficit, storm_east, storm_north), hits = _pass_over(tracks, order, storms)
    pressure, sst, air, east, north = _fair_weather(tracks, rng)
    noise = tracks.noise
    sst += noise["sst"] - _wake(np.hypot(storm_east, storm_north), tracks.every)
    airt = sst + air + noise["airt"] + STORM_AIR * deficit
    humidity = 81 - 3 * noise["airt"] + noise["humidity"] + STORM_HUMIDITY * deficit
    east += noise["wind_east"] + storm_east
    north += noise["wind_north"] + storm_north
    columns = {
        "lon": ((tracks.lon + 180) % 360 - 180).round(4),
        "lat": tracks.lat,
        "sst": sst.round(2),
        "airt": airt.round(2),
        "pressure": (pressure + noise["pressure"] - deficit).round(1),
        "humidity": np.clip(humidity, 0, 100).round(1),
        "wind": np.hypot(east, north).round(1),
        "dir": np.rint(np.degrees(np.arctan2(-east, -north))).astype(np.int64) % 360,
    }
    told = {name: values.ravel()[order] for name, values in columns.items()}
    return Readings(buoy=1 + order // tracks.t.shape[1], t=tracks.t.ravel()[order], **told), hits


def _pass_over(tracks: Tracks, order: Integers, storms: list[Storm]) -> tuple[Floats, Hits]:
    """What storms do to the reports, three arrays beside them: pressure taken away, wind to the east and north.

    Where two storms meet, a buoy feels the one that takes more away.
    """
    t, lon, lat = tracks.t.ravel()[order], tracks.lon.ravel()[order], tracks.lat.ravel()[order]
    felt = np.zeros((3, tracks.t.size))
    found = [np.empty((4, 0))]
    for number, chosen, then, effect in near(storms, t, lon, lat):
        places = order[chosen]
        more = effect.deficit > felt[0, places]
        felt[:, places[more]] = effect.deficit[more], effect.east[more], effect.north[more]
        inside = effect.distance <= then.radius
        buoy = 1 + places[inside] // tracks.t.shape[1]
        found.append(np.stack([np.full(len(buoy), 1 + number), buoy, t[chosen[inside]], effect.distance[inside]]))
    rows = np.concatenate(found, axis=1)
    storm, buoy, moment, far = rows[:, np.lexsort((rows[0], rows[1], rows[2]))]
    hits = Hits(storm.astype(np.int64), buoy.astype(np.int64), moment.astype(np.int64), far.round(1))
    return felt.reshape(3, *tracks.t.shape), hits


def _fair_weather(tracks: Tracks, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Without storms and noise: pressure, the sea, how much warmer air is than it, and wind to the east and north."""
    lon, lat = tracks.lon, tracks.lat / EDGE
    solar = 2 * np.pi * (tracks.t / DAY + tracks.lon / 360)
    new_year = datetime(START.year, 1, 1, tzinfo=UTC)
    # 1 in the middle of August, when the sea of the north is warmest.
    season = np.cos(2 * np.pi * ((tracks.t + (START - new_year).total_seconds()) / YEAR - 227 / 365.25))
    eastern = (lon - WEST) / (EAST - WEST)
    # The tide of the air has two peaks a day, at ten and at ten.
    pressure = 1_009.5 + 4 * lat**2 - 1.5 * season * lat + 1.2 * np.cos(2 * (solar - 2 * np.pi * 10 / 24))
    sst = 29.4 - 0.6 * eastern**2 - 4 * lat**2 + 1.2 * season * lat + 0.2 * np.cos(solar - 2 * np.pi * 15 / 24)
    air = -0.85 + 0.4 * np.cos(solar - 2 * np.pi * 14 / 24)
    # The trades, strongest at 15 degrees, and weaker in the west.
    east = -(0.5 + 3.0 * eastern) - 3.5 * np.exp(-(((np.abs(lat) - 0.6) / 0.3) ** 2))
    north = -1.5 * np.tanh(3 * lat)
    for length, speed, phase in rng.random((WAVES, 3)):
        length, speed = (low + (high - low) * u for (low, high), u in ((WAVE_LENGTH, length), (WAVE_SPEED, speed)))
        wave = 2 * np.pi * ((DEGREE_KM * lon + speed / 1_000 * tracks.t) / length + phase)
        pressure += WAVE_PRESSURE * np.cos(wave)
        north += WAVE_WIND * np.sin(wave)
    return pressure, sst, air, east, north


def _wake(wind: Floats, every: int) -> Floats:
    """How much colder the sea is, with each report of a buoy, for the storms' wind until then."""
    cooling = COOLING * (wind / 30) ** 3 * every / DAY
    cooled = _remembered(cooling, float(np.exp(-every / (WARMING_DAYS * DAY))))
    return COOLED * (1 - np.exp(-cooled / COOLED))
