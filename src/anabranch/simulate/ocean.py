"""Buoys that drift in a tropical ocean, and the weather that they report.

The ocean is on both sides of the equator and of the date line. Buoys drift in two gyres, with random eddies (`drift`).
The weather at a buoy (`observe`) has parts that depend on the location, the time of day and the season; waves that
travel west; slow noise of each buoy; and the effect of storms (`storms.py`). Amplitudes and correlation times follow
the records of the TAO buoys in the western Pacific.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.simulate.storms import DAY, DEGREE_KM, HOUR, Storm, near

START = datetime(2026, 11, 1, tzinfo=UTC)
YEAR = 365.25 * DAY

# The basin, in degrees; longitudes continue beyond 180.
WEST, EAST = 140.0, 200.0
EDGE = 25.0
"""The largest latitude, in the north and in the south."""

GYRE = 0.25
"""The maximum speed of the gyres, in m/s."""

# Noise of each buoy: the standard deviation, and the correlation time in days.
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

# Atmospheric waves, which travel west: number, length (km), speed (m/s) and amplitudes (hPa, m/s).
WAVES = 4
WAVE_LENGTH = (2_500.0, 4_500.0)
WAVE_SPEED = (5.0, 9.0)
WAVE_PRESSURE, WAVE_WIND = 0.4, 0.8

# Other effects of storms.
COOLING = 3.0
"""Degrees per day that a storm wind of 30 m/s cools the sea; proportional to the cube of the wind."""
COOLED = 6.0
"""The maximum cooling: deeper water is no colder."""
WARMING_DAYS = 10.0
"""The time in which the sea recovers. The water drifts with the buoy, so the cold wake stays with the buoy."""
STORM_AIR, STORM_HUMIDITY = -0.08, 0.6
"""Change per hPa of the fall of pressure: degrees, and percent."""


@dataclass(frozen=True, slots=True)
class Tracks:
    """Times and positions of reports: arrays of shape (buoys, reports).

    Attributes
    ----------
    t : int64
        In seconds since the beginning. Every buoy has its own phase; the last report of some is after the end.
    lon, lat : float64
        In degrees, to 4 decimals, the longitude from 0 to 360.
    noise : dict of float64
        The noise of each buoy, by the names of `NOISE`.
    interval : int
        Seconds between two reports of a buoy.
    """

    t: I64
    lon: F64
    lat: F64
    noise: dict[str, F64]
    interval: int


@dataclass(frozen=True, slots=True)
class Readings:
    """The reports of the buoys, sorted by time and buoy.

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
        The direction from which the wind comes, clockwise from north, 0 to 359 degrees.
    """

    buoy: I64
    t: I64
    lon: F64
    lat: F64
    sst: F64
    airt: F64
    pressure: F64
    humidity: F64
    wind: F64
    dir: I64


@dataclass(frozen=True, slots=True)
class Hits:
    """Reports from inside a storm, sorted by time, buoy and storm.

    `storm` and `buoy` count from 1, `t` is in seconds, and `distance`, from the centre, is in km.
    """

    storm: I64
    buoy: I64
    t: I64
    distance: F64


def drift(buoys: int, days: float, interval: float, rng: np.random.Generator) -> Tracks:
    """Simulate the tracks of buoys from random positions in the basin.

    Parameters
    ----------
    buoys : int
        The number of buoys; more of them do not change the others.
    days : float
        The length of the simulation; more days do not change the first ones.
    interval : float
        Hours between two reports of a buoy.
    rng : np.random.Generator
        Each buoy has its own child generator.
    """
    seconds = round(interval * HOUR)
    reports = int(np.ceil(days * DAY / seconds))
    first, shocks = np.empty((buoys, 3)), np.empty((buoys, reports, len(NOISE)))
    for number, buoy_rng in enumerate(rng.spawn(buoys)):
        first[number] = buoy_rng.random(3)
        shocks[number] = buoy_rng.standard_normal((reports, len(NOISE)))
    noise = dict(zip(NOISE, np.moveaxis(_noise(shocks, seconds), 2, 0), strict=True))
    lon, lat = np.empty((buoys, reports)), np.empty((buoys, reports))
    x, y = WEST + (EAST - WEST) * first[:, 0], EDGE * (2 * first[:, 1] - 1)
    for number in range(reports):
        lon[:, number], lat[:, number] = x, y
        east, north = _gyres(x, y)
        step = seconds / 1_000 / DEGREE_KM
        x = x + step * (east + noise["drift_east"][:, number]) / np.cos(np.radians(y))
        y = y + step * (north + noise["drift_north"][:, number])
        x, y = np.clip(x, WEST, EAST), np.clip(y, -EDGE, EDGE)
    t = np.floor(first[:, 2] * seconds).astype(np.int64)[:, None] + seconds * np.arange(reports)
    return Tracks(t, lon.round(4), lat.round(4), noise, seconds)


def _noise(shocks: F64, interval: int) -> F64:
    """Return correlated noise from independent shocks of shape (buoys, reports, kinds of noise)."""
    deviations, days = np.array(list(NOISE.values())).T
    decay = np.exp(-interval / (days * DAY))
    innovations = deviations * np.sqrt(1 - decay**2)
    return _decaying_sum(np.concatenate([deviations * shocks[:, :1], innovations * shocks[:, 1:]], axis=1), decay)


def _decaying_sum(values: F64, decay: F64 | float) -> F64:
    """Return the sum of the values up to each report, where earlier values decay exponentially."""
    sums = values.copy()
    for number in range(1, values.shape[1]):
        sums[:, number] += decay * sums[:, number - 1]
    return sums


def _gyres(lon: F64, lat: F64) -> tuple[F64, F64]:
    """Return the current towards the east and the north: west at the equator, with a gyre on each side."""
    x, y = np.pi * (lon - WEST) / (EAST - WEST), np.pi * lat / EDGE
    return -GYRE * np.sin(x) * np.cos(y), GYRE * EDGE / (EAST - WEST) * np.cos(x) * np.sin(y)


# ---------------------------------------------------------------- weather


def observe(tracks: Tracks, days: float, storms: list[Storm], rng: np.random.Generator) -> tuple[Readings, Hits]:
    """Return the reports of buoys, and which of them come from inside a storm.

    Parameters
    ----------
    tracks : Tracks
        The times and positions of the reports.
    days : float
        Later reports are left out.
    storms : list of Storm
    rng : np.random.Generator
        For the waves.
    """
    order = np.argsort(tracks.t, axis=None, kind="stable")
    order = order[: np.searchsorted(tracks.t.ravel()[order], days * DAY)]
    (deficit, storm_east, storm_north), hits = _storm_effects(tracks, order, storms)
    pressure, sst, air, east, north = _fair_weather(tracks, rng)
    noise = tracks.noise
    sst += noise["sst"] - _wake(np.hypot(storm_east, storm_north), tracks.interval)
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
    values = {name: column.ravel()[order] for name, column in columns.items()}
    return Readings(buoy=1 + order // tracks.t.shape[1], t=tracks.t.ravel()[order], **values), hits


def _storm_effects(tracks: Tracks, order: I64, storms: list[Storm]) -> tuple[F64, Hits]:
    """Return the effect of storms on each report, as three arrays: fall of pressure, wind to the east and north.

    Where two storms overlap, the one with the larger fall of pressure counts.
    """
    t, lon, lat = tracks.t.ravel()[order], tracks.lon.ravel()[order], tracks.lat.ravel()[order]
    strongest = np.zeros((3, tracks.t.size))
    hit_rows = [np.empty((4, 0))]
    for number, chosen, then, effect in near(storms, t, lon, lat):
        reports = order[chosen]
        stronger = effect.deficit > strongest[0, reports]
        strongest[:, reports[stronger]] = effect.deficit[stronger], effect.east[stronger], effect.north[stronger]
        inside = effect.distance <= then.radius
        buoy = 1 + reports[inside] // tracks.t.shape[1]
        hit_rows.append(np.stack([np.full(len(buoy), 1 + number), buoy, t[chosen[inside]], effect.distance[inside]]))
    rows = np.concatenate(hit_rows, axis=1)
    storm, buoy, time, distance = rows[:, np.lexsort((rows[0], rows[1], rows[2]))]
    hits = Hits(storm.astype(np.int64), buoy.astype(np.int64), time.astype(np.int64), distance.round(1))
    return strongest.reshape(3, *tracks.t.shape), hits


def _fair_weather(tracks: Tracks, rng: np.random.Generator) -> tuple[F64, F64, F64, F64, F64]:
    """Return weather without storms and noise: pressure, sea, air relative to the sea, and wind to east and north."""
    lon, lat = tracks.lon, tracks.lat / EDGE
    solar = 2 * np.pi * (tracks.t / DAY + tracks.lon / 360)
    new_year = datetime(START.year, 1, 1, tzinfo=UTC)
    # 1 in the middle of August, when the northern sea is warmest.
    season = np.cos(2 * np.pi * ((tracks.t + (START - new_year).total_seconds()) / YEAR - 227 / 365.25))
    eastern = (lon - WEST) / (EAST - WEST)
    # The atmospheric tide has two peaks a day, at 10:00 and 22:00.
    pressure = 1_009.5 + 4 * lat**2 - 1.5 * season * lat + 1.2 * np.cos(2 * (solar - 2 * np.pi * 10 / 24))
    sst = 29.4 - 0.6 * eastern**2 - 4 * lat**2 + 1.2 * season * lat + 0.2 * np.cos(solar - 2 * np.pi * 15 / 24)
    air = -0.85 + 0.4 * np.cos(solar - 2 * np.pi * 14 / 24)
    # Trade winds, strongest at 15 degrees of latitude, and weaker in the west.
    east = -(0.5 + 3.0 * eastern) - 3.5 * np.exp(-(((np.abs(lat) - 0.6) / 0.3) ** 2))
    north = -1.5 * np.tanh(3 * lat)
    for length, speed, phase in rng.random((WAVES, 3)):
        length, speed = (low + (high - low) * u for (low, high), u in ((WAVE_LENGTH, length), (WAVE_SPEED, speed)))
        wave = 2 * np.pi * ((DEGREE_KM * lon + speed / 1_000 * tracks.t) / length + phase)
        pressure += WAVE_PRESSURE * np.cos(wave)
        north += WAVE_WIND * np.sin(wave)
    return pressure, sst, air, east, north


def _wake(wind: F64, interval: int) -> F64:
    """Return how much the wind of storms up to each report has cooled the sea."""
    cooling = COOLING * (wind / 30) ** 3 * interval / DAY
    cooled = _decaying_sum(cooling, float(np.exp(-interval / (WARMING_DAYS * DAY))))
    return COOLED * (1 - np.exp(-cooled / COOLED))
