"""Drifting buoys of a tropical ocean with passing storms: readings with a location and a time, for CONSTRAIN.

Modelled on the TAO buoys of the CCQ paper, section 5.1. Each buoy reports its position, the temperatures of sea and
air, pressure, humidity and wind (`ocean.py`) at an interval, with its own phase. The ground truth is the tracks of the
storms (`storms.py`), and which reports come from inside a storm.

`simulate_buoys` returns arrays; `simulate` and `write` make files and a workbook.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.simulate.files import timestamps, write_files
from anabranch.simulate.ocean import START, Hits, Readings, drift, observe
from anabranch.simulate.options import option
from anabranch.simulate.storms import DAY, HOUR, Storm, make_storms

WORKBOOK = """\
-- Drifting buoys: where did storms pass? Distances are in metres, pressure is in hPa and wind in m/s.

CREATE STREAM readings
  KEY (buoy) VALUE (sst, airt, pressure, humidity, wind, dir) TIME t
  SPACE (lon, lat) GEODESIC
  FROM 'readings.parquet';

-- A low: three buoys within 500 km report low pressure within half a day.
CREATE QUERY low AS
  CONSTRAIN v*3 FROM readings
  WHERE v.pressure < 1005 AND v.buoy <> v.buoy
    AND DISTANCE(v, v) <= 500000 AND SPAN(v, v) <= 12 HOURS;

-- A moving low: pressure falls fast at one buoy, and half a day to a day later it is low at another buoy.
CREATE QUERY passage AS
  CONSTRAIN before, drop, next FROM readings
  WHERE drop.buoy = before.buoy AND drop.t - before.t IN [1 HOUR, 12 HOURS]
    AND drop.pressure < 1005 AND before.pressure - drop.pressure >= 6
    AND next.buoy <> drop.buoy AND next.t - drop.t IN [12 HOURS, 24 HOURS]
    AND DISTANCE(drop, next) >= 200000 AND DISTANCE(drop, next) <= 600000
    AND next.pressure < 1005;

-- A cold wake: one to two days after a gale, the sea at the same buoy is at least one degree colder.
CREATE QUERY cold_wake AS
  CONSTRAIN gale, after FROM readings
  WHERE gale.wind >= 17.2 AND after.buoy = gale.buoy
    AND after.t - gale.t IN [1 DAY, 2 DAYS]
    AND gale.sst - after.sst >= 1;
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    buoys: int = option(200, "number of buoys", most=100_000)
    days: float = option(30.0, "length of the simulation", least=1, most=3_660)
    interval: float = option(6.0, "hours between two reports of a buoy", least=0.01, most=24)
    storms: int = option(8, "number of storms that form in 30 days", least=0, most=100)


@dataclass(frozen=True, slots=True)
class Buoys:
    """The reports and the ground truth.

    Attributes
    ----------
    readings : pa.Table
        A CERTAIN stream with SPACE: buoy, t, lon, lat, sst, airt, pressure, humidity, wind, dir.
    storms : pa.Table
        Ground truth, the track of each storm, one row per hour: storm, t, lon, lat, radius (km), strength (hPa).
    hits : pa.Table
        Ground truth, the readings from inside a storm: storm, buoy, t, distance (from the centre, km).
    workbook : str
        With queries for storms.
    """

    readings: pa.Table
    storms: pa.Table
    hits: pa.Table
    workbook: str


def simulate(options: Options | None = None, seed: int = 0) -> Buoys:
    """Simulate buoys and storms.

    Parameters
    ----------
    options : Options, optional
        More buoys or days do not change the data of the others.
    seed : int
        The same seed gives the same data.

    Examples
    --------
    >>> simulate(Options(buoys=3, days=2), seed=0).readings.num_rows
    24
    """
    options = options or Options()
    readings, storms, hits = simulate_buoys(options, np.random.default_rng(seed))
    return Buoys(_reading_rows(readings), _storm_rows(storms, options.days), _hit_rows(hits), WORKBOOK)


def simulate_buoys(options: Options, rng: np.random.Generator) -> tuple[Readings, list[Storm], Hits]:
    """Return the reports, the storms, and which reports come from inside a storm; times are in seconds.

    Examples
    --------
    >>> readings, storms, hits = simulate_buoys(Options(buoys=2, days=1), np.random.default_rng(0))
    >>> readings.buoy
    array([1, 2, 1, 2, 1, 2, 1, 2])
    """
    buoy_rng, storm_rng, wave_rng = rng.spawn(3)
    storms = make_storms(options.days, options.storms, storm_rng)
    tracks = drift(options.buoys, options.days, options.interval, buoy_rng)
    readings, hits = observe(tracks, options.days, storms, wave_rng)
    return readings, storms, hits


def write(buoys: Buoys, folder: Path) -> Path:
    """Write the files and a workbook with queries for storms; return the path of the workbook."""
    tables = {"readings": buoys.readings, "true_storms": buoys.storms, "true_hits": buoys.hits}
    return write_files(folder, "buoys", buoys.workbook, tables)


def _timestamps(seconds: I64) -> pa.Array:
    return timestamps(START, seconds, np.timedelta64(1, "s"))


def _reading_rows(readings: Readings) -> pa.Table:
    values = {name: pa.array(getattr(readings, name)) for name in Readings.__slots__[2:-1]}
    return pa.table(
        {
            "buoy": pa.array(readings.buoy, pa.int32()),
            "t": _timestamps(readings.t),
            **values,
            "dir": pa.array(readings.dir, pa.int32()),
        }
    )


def _storm_rows(storms: list[Storm], days: float) -> pa.Table:
    """Return the tracks from the beginning up to the first whole hour that is not before the end."""
    last = int(np.ceil(days * DAY / HOUR)) * HOUR
    no_storm = Storm(np.empty(0, dtype=np.int64), *(np.empty(0) for _ in range(4)))
    rows = {name: np.concatenate([getattr(storm, name) for storm in (no_storm, *storms)]) for name in Storm.__slots__}
    number = np.repeat(np.arange(1, len(storms) + 1), [len(storm.t) for storm in storms])
    seen = (rows["t"] >= 0) & (rows["t"] <= last)
    return pa.table(
        {
            "storm": pa.array(number[seen], pa.int32()),
            "t": _timestamps(rows["t"][seen]),
            "lon": pa.array(((rows["lon"][seen] + 180) % 360 - 180).round(4)),
            **{name: pa.array(rows[name][seen]) for name in ("lat", "radius", "strength")},
        }
    )


def _hit_rows(hits: Hits) -> pa.Table:
    return pa.table(
        {
            "storm": pa.array(hits.storm, pa.int32()),
            "buoy": pa.array(hits.buoy, pa.int32()),
            "t": _timestamps(hits.t),
            "distance": pa.array(hits.distance),
        }
    )
