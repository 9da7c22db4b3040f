"""Make weeks of buoys of what they read every day: how much warmer than usual the water was, and how the wind blew.

The buoys of the TAO array lie along the equator in the Pacific, 1980 to 1998. The data are the El Nino data of the UCI
archive: a folder with tao-all2.dat.gz, a row a buoy and day. They do not say which buoy a row is of, and buoys drift.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDER = "tao_elnino"
COLUMNS = ["number", "year", "month", "day", "date", "lat", "lon", "wind", "north_wind", "humidity", "air", "water"]

JUMP_LAT, JUMP_LON = 1.5, 3.0
"""Degrees from one row to the next that no buoy drifts in a day: the next is another one, or was put back."""

ADRIFT = 1.0
"""Degrees from where it was moored; a buoy further away has broken loose, and no usual temperature is known there."""

DAYS_OF_WEEK, DAYS_OF_MONTH, YEARS = 4, 10, 4
"""How many days make the mean of a week, and of a month, and how many years of a month tell what is usual in it."""

RISE = pd.Timedelta(weeks=4)
"""The time over which a rise is told."""


# ------------------------------------------------------------ what there is


def read_readings(folder: Path) -> pd.DataFrame:
    """A row a buoy and day: buoy, t, lat, east (longitude, 0 to 360), wind (m/s to the east) and water (Celsius)."""
    file = folder / "tao-all2.dat.gz"
    rows = pd.read_csv(file, sep=r"\s+", names=COLUMNS, na_values=".")
    day = {"year": 1900 + rows["year"], "month": rows["month"], "day": rows["day"]}
    rows = rows.assign(t=pd.to_datetime(day).dt.tz_localize("UTC"), east=rows["lon"] % 360)
    return moored(rows)[["buoy", "t", "lat", "east", "wind", "water"]]


def moored(rows: pd.DataFrame) -> pd.DataFrame:
    """The readings at the moorings, each with the name of its buoy: the whole degrees it is moored at.

    Rows are in the order of buoys, then days. So another one begins where days go back, or the place jumps; and where
    it jumps back to the same degrees, the buoy was replaced.
    """
    back = rows["t"].diff() <= pd.Timedelta(0)
    jumps = (rows["lat"].diff().abs() > JUMP_LAT) | (rows["east"].diff().abs() > JUMP_LON)
    stretch = rows[["lat", "east"]].groupby((back | jumps).cumsum())
    mooring = stretch.transform("median")
    at_home = ((rows[["lat", "east"]] - mooring).abs() <= ADRIFT).all(axis="columns")
    whole = mooring.round().astype(int)
    names = [_name(lat, east) for lat, east in zip(whole["lat"], whole["east"], strict=True)]
    return rows.assign(buoy=names)[at_home]


def _name(lat: int, east: int) -> str:
    """As the moorings are called: 2S 110W."""
    north = f"{abs(lat)}{'N' if lat > 0 else 'S' if lat < 0 else ''}"
    return f"{north} {min(east, 360 - east)}{'E' if east < 180 else 'W' if east > 180 else ''}"


# ------------------------------------------------------------ weeks


def with_anomaly(readings: pd.DataFrame) -> pd.DataFrame:
    """The readings, each with how much warmer the water is than usual at this buoy and time of the year."""
    usual = usual_of_months(readings)
    # From the middle of a month to that of the next, what is usual goes straight: else each first of a month is a step.
    t = readings["t"].dt
    months = t.month - 1.5 + (t.day - 0.5) / t.days_in_month
    before = np.floor(months)
    known = usual.reindex(readings["buoy"]).to_numpy()
    row, (first, second) = np.arange(len(readings)), [((before + n) % 12).astype(int) for n in (0, 1)]
    share = (months - before).to_numpy()
    expected = (1 - share) * known[row, first] + share * known[row, second]
    return readings.assign(anomaly=readings["water"] - expected)


def usual_of_months(readings: pd.DataFrame) -> pd.DataFrame:
    """For each buoy (rows) and month (columns) the middle one of the years' means; NaN where there are too few."""
    t = readings["t"].dt
    by_month = readings["water"].groupby([readings["buoy"], t.month.rename("month"), t.year.rename("year")])
    means = by_month.mean()[by_month.count() >= DAYS_OF_MONTH]
    by_year = means.groupby(["buoy", "month"])
    usual = by_year.median()[by_year.size() >= YEARS]
    return usual.unstack("month").reindex(columns=range(1, 13))


def weeks_of(readings: pd.DataFrame) -> pd.DataFrame:
    """The stream: buoy, t (the last day of the week), anomaly, rise, wind, lon and lat."""
    columns = ["anomaly", "wind", "lat", "east"]
    last_day = readings["t"] + pd.to_timedelta(6 - readings["t"].dt.dayofweek, unit="D")
    by_week = with_anomaly(readings)[columns].groupby([readings["buoy"], last_day.rename("t")])
    weeks = by_week.mean()
    for name in ("anomaly", "wind"):
        weeks[name] = weeks[name].where(by_week[name].count() >= DAYS_OF_WEEK)
    weeks = weeks.dropna(subset=["anomaly", "wind"], how="all").reset_index()
    earlier = weeks[["buoy", "t", "anomaly"]].assign(t=weeks["t"] + RISE)
    weeks = weeks.merge(earlier, on=["buoy", "t"], how="left", suffixes=("", "_before"))
    weeks["rise"] = weeks["anomaly"] - weeks["anomaly_before"]
    weeks["lon"] = (weeks["east"] + 180) % 360 - 180
    return weeks[["buoy", "t", "anomaly", "rise", "wind", "lon", "lat"]]


def write_weeks(weeks: pd.DataFrame, file: Path) -> None:
    """Write the stream; Spark has microseconds."""
    weeks.assign(t=weeks["t"].dt.as_unit("us")).to_parquet(file, index=False)


def find_data(data: Path) -> Path:
    """The folder of the data; where it is not there, the end."""
    if not (data / FOLDER).is_dir():
        sys.exit(f"there is no {FOLDER} in {data}; say with --data where it is")
    return data / FOLDER


def main() -> None:
    """Write the stream of weeks."""
    parser = argparse.ArgumentParser(description="Make weeks of what buoys read every day.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument("--output", type=Path, default=Path("buoys"), help="where to write them")
    given = parser.parse_args()
    readings = read_readings(find_data(given.data))
    weeks = weeks_of(readings)
    given.output.mkdir(parents=True, exist_ok=True)
    write_weeks(weeks, given.output / "weeks.parquet")
    print(f"{len(readings):,} days of {readings['buoy'].nunique()} buoys, {len(weeks):,} weeks")
    warm = weeks["anomaly"].dropna()
    print(f"water: {len(warm):,} weeks of {weeks['buoy'][warm.index].nunique()} buoys, {(warm >= 1.5).sum():,} warm")
    print(f"wind: {weeks['wind'].count():,} weeks, {(weeks['wind'] >= 5).sum():,} of them from the west")


if __name__ == "__main__":
    main()
