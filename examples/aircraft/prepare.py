"""Convert the positions of aircraft over Switzerland on 1 August 2018 to metres, one row per aircraft and ten seconds.

The data come from the OpenSky Network: a folder with switzerland_20180801_10s.csv.gz, with positions in degrees and
altitudes in feet.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import options

FOLDER = "adsb_switzerland"
FILE = "switzerland_20180801_10s.csv.gz"

RADIUS, FOOT = 6_371_008.8, 0.3048
"""The radius of the earth and the length of a foot, in metres."""

LON, LAT = 8.2, 46.8
"""The centre of Switzerland, in degrees."""

STEP = pd.Timedelta(seconds=10)
"""The time between two positions of an aircraft."""


def read_positions(folder: Path, hours: float | None = None) -> pd.DataFrame:
    """Return the stream: icao24, t, x and y (metres to the east and north of the centre) and altitude (metres).

    Parameters
    ----------
    folder : Path
    hours : float, optional
        Read only the first hours.
    """
    columns = {"timestamp": "t", "icao24": "icao24", "longitude": "lon", "latitude": "lat", "altitude": "feet"}
    rows = pd.read_csv(folder / FILE, usecols=list(columns), dtype={"icao24": str}).rename(columns=columns)
    t = pd.to_datetime(rows["t"], utc=True).dt.as_unit("us")
    x, y = project(rows["lon"], rows["lat"])
    positions = pd.DataFrame({"icao24": rows["icao24"], "t": t, "x": x, "y": y, "altitude": rows["feet"] * FOOT})
    if hours is not None:
        positions = positions[t < t.min() + pd.Timedelta(hours=hours)]
    return positions.sort_values(["icao24", "t"], ignore_index=True)


def project(lon: pd.Series, lat: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return metres to the east and north of the centre, with the distance of meridians at the centre.

    At the northern and southern ends of the data, one degree away, the error of x is 2%.
    """
    return np.radians(lon - LON) * RADIUS * np.cos(np.radians(LAT)), np.radians(lat - LAT) * RADIUS


def degrees(x: pd.Series, y: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return the longitude and latitude of projected positions."""
    return np.degrees(x / (RADIUS * np.cos(np.radians(LAT)))) + LON, np.degrees(y / RADIUS) + LAT


def write_files(positions: pd.DataFrame, folder: Path, minutes: float) -> int:
    """Write files of `minutes` each, as they would arrive, and return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    files = positions.groupby(positions["t"].dt.floor(pd.Timedelta(minutes=minutes)))
    for begin, rows in files:
        file = folder / f"{begin:%H%M}.parquet"
        rows.to_parquet(file, index=False)
        # A stream reads the oldest file first.
        modified = rows["t"].max().timestamp()
        os.utime(file, (modified, modified))
    return len(files)


def main() -> None:
    """Write the stream of positions."""
    parser = options("Convert the positions of aircraft to metres.", FOLDER)
    parser.add_argument("--hours", type=float, help="read only the first hours")
    parser.add_argument("--split", type=float, metavar="MINUTES", help="also write files of this length, for a stream")
    parser.add_argument("--output", type=Path, default=Path("aircraft"), help="the folder to write")
    arguments = parser.parse_args()
    positions = read_positions(arguments.data, arguments.hours)
    arguments.output.mkdir(parents=True, exist_ok=True)
    positions.to_parquet(arguments.output / "positions.parquet", index=False)
    if arguments.split:
        print(f"{write_files(positions, arguments.output / 'positions', arguments.split)} files")
    moved = positions.groupby("icao24")[["x", "y"]].diff()
    consecutive = positions.groupby("icao24")["t"].diff() == STEP
    speed = np.hypot(moved["x"], moved["y"])[consecutive] / STEP.total_seconds()
    print(f"{len(positions):,} positions of {positions['icao24'].nunique()} aircraft")
    print(f"altitude: {positions['altitude'].min():,.0f} to {positions['altitude'].max():,.0f} m")
    print(
        f"speed: {speed.median():.0f} m/s; below 50 m/s or above 400 m/s in {((speed < 50) | (speed > 400)).mean():.2%}"
    )


if __name__ == "__main__":
    main()
