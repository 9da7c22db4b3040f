"""Make positions in metres of what aircraft over Switzerland sent on 1 August 2018, a row an aircraft and ten seconds.

The data come from the OpenSky Network: a folder with switzerland_20180801_10s.csv.gz, places in degrees and altitudes
in feet.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDER = "adsb_switzerland"
FILE = "switzerland_20180801_10s.csv.gz"

RADIUS, FOOT = 6_371_008.8, 0.3048
"""In metres: of the globe, and how long a foot is."""

LON, LAT = 8.2, 46.8
"""The middle of Switzerland, in degrees."""

STEP = pd.Timedelta(seconds=10)
"""From one position of an aircraft to the next."""


def read_positions(folder: Path, hours: float | None = None) -> pd.DataFrame:
    """The stream: icao24, t, x and y (metres to the east and north of the middle) and altitude (metres).

    Parameters
    ----------
    folder : Path
    hours : float, optional
        Only these first hours.
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
    """Metres to the east and north of the middle, as if meridians were as far apart everywhere as they are there.

    At the northern and southern ends of the data, a degree away, x is off by 2 %.
    """
    return np.radians(lon - LON) * RADIUS * np.cos(np.radians(LAT)), np.radians(lat - LAT) * RADIUS


def degrees(x: pd.Series, y: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Longitude and latitude of projected places."""
    return np.degrees(x / (RADIUS * np.cos(np.radians(LAT)))) + LON, np.degrees(y / RADIUS) + LAT


def write_files(positions: pd.DataFrame, folder: Path, minutes: float) -> int:
    """Write files of so many minutes each, as they would come; how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    files = positions.groupby(positions["t"].dt.floor(pd.Timedelta(minutes=minutes)))
    for begin, rows in files:
        file = folder / f"{begin:%H%M}.parquet"
        rows.to_parquet(file, index=False)
        # A stream takes the oldest file first.
        written = rows["t"].max().timestamp()
        os.utime(file, (written, written))
    return len(files)


def find_data(data: Path) -> Path:
    """The folder of the data; where it is not there, the end."""
    if not (data / FOLDER).is_dir():
        sys.exit(f"there is no {FOLDER} in {data}; say with --data where it is")
    return data / FOLDER


def main() -> None:
    """Write the stream of positions."""
    parser = argparse.ArgumentParser(description="Make positions in metres of what aircraft sent.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument("--hours", type=float, help="take the first hours alone")
    parser.add_argument(
        "--split", type=float, metavar="MINUTES", help="write files of so many minutes, for a stream, too"
    )
    parser.add_argument("--output", type=Path, default=Path("aircraft"), help="where to write them")
    given = parser.parse_args()
    positions = read_positions(find_data(given.data), given.hours)
    given.output.mkdir(parents=True, exist_ok=True)
    positions.to_parquet(given.output / "positions.parquet", index=False)
    if given.split:
        print(f"{write_files(positions, given.output / 'positions', given.split)} files")
    flown = positions.groupby("icao24")[["x", "y"]].diff()
    alike = positions.groupby("icao24")["t"].diff() == STEP
    speed = np.hypot(flown["x"], flown["y"])[alike] / STEP.total_seconds()
    print(f"{len(positions):,} positions of {positions['icao24'].nunique()} aircraft")
    print(f"altitude: {positions['altitude'].min():,.0f} to {positions['altitude'].max():,.0f} m")
    print(
        f"speed: {speed.median():.0f} m/s; below 50 m/s or above 400 m/s in {((speed < 50) | (speed > 400)).mean():.2%}"
    )


if __name__ == "__main__":
    main()
