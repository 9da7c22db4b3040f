"""Aggregate the daily readings of buoys to weeks: the anomaly of the water temperature, and the wind.

The buoys of the TAO array are along the equator in the Pacific, 1980 to 1998. The data are the El Nino data of the UCI
archive: a folder with tao-all2.dat.gz, one row per buoy and day. A row does not name its buoy, and buoys drift.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import options

FOLDER = "tao_elnino"
COLUMNS = ["number", "year", "month", "day", "date", "lat", "lon", "wind", "north_wind", "humidity", "air", "water"]

JUMP_LAT, JUMP_LON = 1.5, 3.0
"""Degrees that no buoy drifts in a day: the next row is of another buoy, or the buoy was moved back."""

ADRIFT = 1.0
"""Degrees from its mooring; a buoy further away has broken loose, and the usual temperature there is not known."""

DAYS_OF_WEEK, DAYS_OF_MONTH, YEARS = 4, 10, 4
"""How many days the mean of a week and of a month needs, and how many years the usual temperature of a month."""

RISE = pd.Timedelta(weeks=4)
"""The time over which a rise is computed."""


# ------------------------------------------------------------ readings


def read_readings(folder: Path) -> pd.DataFrame:
    """Return the daily readings: buoy, t, lat, east (longitude, 0 to 360), wind and north_wind (m/s), water (Celsius).

    `wind` is the speed of the wind to the east.
    """
    file = folder / "tao-all2.dat.gz"
    rows = pd.read_csv(file, sep=r"\s+", names=COLUMNS, na_values=".")
    day = {"year": 1900 + rows["year"], "month": rows["month"], "day": rows["day"]}
    rows = rows.assign(t=pd.to_datetime(day).dt.tz_localize("UTC"), east=rows["lon"] % 360)
    return moored(rows)[["buoy", "t", "lat", "east", "wind", "north_wind", "water"]]


def moored(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the readings at the moorings, each with the name of its buoy: the whole degrees of the mooring.

    Rows are sorted by buoy and day. So another buoy begins where days go back or the position jumps. If the new mooring
    has the same whole degrees, it is the same buoy, which was replaced.
    """
    back = rows["t"].diff() <= pd.Timedelta(0)
    jumps = (rows["lat"].diff().abs() > JUMP_LAT) | (rows["east"].diff().abs() > JUMP_LON)
    segments = rows[["lat", "east"]].groupby((back | jumps).cumsum())
    mooring = segments.transform("median")
    at_mooring = ((rows[["lat", "east"]] - mooring).abs() <= ADRIFT).all(axis="columns")
    whole = mooring.round().astype(int)
    names = [_name(lat, east) for lat, east in zip(whole["lat"], whole["east"], strict=True)]
    return rows.assign(buoy=names)[at_mooring]


def _name(lat: int, east: int) -> str:
    """Return the usual name of a mooring, such as 2S 110W."""
    north = f"{abs(lat)}{'N' if lat > 0 else 'S' if lat < 0 else ''}"
    return f"{north} {min(east, 360 - east)}{'E' if east < 180 else 'W' if east > 180 else ''}"


# ------------------------------------------------------------ weeks


def with_anomaly(readings: pd.DataFrame) -> pd.DataFrame:
    """Return the readings with the anomaly: the temperature minus the usual one at this buoy and time of the year."""
    usual = usual_of_months(readings)
    # Interpolate between the middles of two months; otherwise the usual temperature would jump on the first of a month.
    t = readings["t"].dt
    months = t.month - 1.5 + (t.day - 0.5) / t.days_in_month
    before = np.floor(months)
    known = usual.reindex(readings["buoy"]).to_numpy()
    row, (first, second) = np.arange(len(readings)), [((before + n) % 12).astype(int) for n in (0, 1)]
    share = (months - before).to_numpy()
    expected = (1 - share) * known[row, first] + share * known[row, second]
    return readings.assign(anomaly=readings["water"] - expected)


def usual_of_months(readings: pd.DataFrame) -> pd.DataFrame:
    """Return the median over years of the mean of each buoy (rows) and month (columns); NaN if there are too few."""
    t = readings["t"].dt
    by_month = readings["water"].groupby([readings["buoy"], t.month.rename("month"), t.year.rename("year")])
    means = by_month.mean()[by_month.count() >= DAYS_OF_MONTH]
    by_year = means.groupby(["buoy", "month"])
    usual = by_year.median()[by_year.size() >= YEARS]
    return usual.unstack("month").reindex(columns=range(1, 13))


def weeks_of(readings: pd.DataFrame) -> pd.DataFrame:
    """Return the stream: buoy, t (the last day of the week), anomaly, rise, wind, lon and lat."""
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
    """Write the stream, with the microseconds of Spark."""
    weeks.assign(t=weeks["t"].dt.as_unit("us")).to_parquet(file, index=False)


def main() -> None:
    """Write the stream of weeks."""
    parser = options("Aggregate the daily readings of buoys to weeks.", FOLDER)
    parser.add_argument("--output", type=Path, default=Path("buoys"), help="the folder to write")
    arguments = parser.parse_args()
    readings = read_readings(arguments.data)
    weeks = weeks_of(readings)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_weeks(weeks, arguments.output / "weeks.parquet")
    print(f"{len(readings):,} days of {readings['buoy'].nunique()} buoys, {len(weeks):,} weeks")
    warm = weeks["anomaly"].dropna()
    print(f"water: {len(warm):,} weeks of {weeks['buoy'][warm.index].nunique()} buoys, {(warm >= 1.5).sum():,} warm")
    print(f"wind: {weeks['wind'].count():,} weeks, {(weeks['wind'] >= 5).sum():,} of them from the west")


if __name__ == "__main__":
    main()
