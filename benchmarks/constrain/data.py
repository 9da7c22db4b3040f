"""The data of the CONSTRAIN benchmark: measurements of buoys in the Pacific.

They are the El Nino data of the UCI archive, one row per buoy and day with five measurements. Every measurement that is
not missing is an event.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tao_elnino" / "tao-all2.dat.gz"

PROPERTIES = ("zonal wind", "meridional wind", "humidity", "air temperature", "water temperature")
_COLUMNS = ("number", "year", "month", "day", "date", "lat", "lon", *PROPERTIES)

JUMP_LAT, JUMP_LON = 1.5, 3.0
"""A difference in degrees between two rows that no buoy drifts in a day: the second row is of another buoy."""


class Measurements:
    """Events in order of time, and the quantiles of their values."""

    def __init__(self, events: pa.Table) -> None:
        self.events = events
        names, values = events["property"].to_numpy(), events["value"].to_numpy()
        self._values = {name: np.sort(values[names == name]) for name in PROPERTIES}

    def __len__(self) -> int:
        return self.events.num_rows

    def quantile(self, name: str, share: float) -> float:
        """Return the value of a property that is above this share of its values."""
        values = self._values[name]
        return float(values[min(int(share * len(values)), len(values) - 1)])


def read_measurements(path: Path | None = None) -> pa.Table:
    """Return one event per measurement, in order of time: buoy, property, value, day, lon, lat.

    Raises
    ------
    FileNotFoundError
        If the data are missing.
    """
    path = path or DATA
    if not path.exists():
        raise FileNotFoundError(f"the CONSTRAIN benchmark needs the El Nino data of the UCI archive as {path}")
    rows = csv.read_csv(
        path,
        csv.ReadOptions(column_names=_COLUMNS),
        csv.ParseOptions(delimiter=" "),
        csv.ConvertOptions(null_values=["."], column_types=dict.fromkeys(PROPERTIES, pa.float64())),
    )
    return events_of(rows)


def events_of(rows: pa.Table) -> pa.Table:
    """Return the measurements of rows of buoys and days as events; missing values are left out."""
    year, month, day = (rows[name].to_numpy() for name in ("year", "month", "day"))
    months = (year - 70).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    days = (months.astype("datetime64[D]") + (day - 1)).astype(np.int64)
    lat, lon = rows["lat"].to_numpy(), rows["lon"].to_numpy()
    buoy = _buoy_numbers(days, lat, lon)
    values = np.stack([rows[name].to_numpy() for name in PROPERTIES], axis=1)
    row, kind = np.nonzero(~np.isnan(values))
    order = np.lexsort((kind, buoy[row], days[row]))
    row, kind = row[order], kind[order]
    return pa.table(
        {
            "buoy": buoy[row],
            "property": pa.array(PROPERTIES).take(pa.array(kind)),
            "value": values[row, kind],
            "day": days[row],
            "lon": lon[row],
            "lat": lat[row],
        }
    )


def _buoy_numbers(days: np.ndarray, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Number the buoys: their rows are adjacent, and a new one begins if time goes back or the position jumps."""
    lon_difference = np.abs(np.diff(lon))
    jumps = (np.abs(np.diff(lat)) > JUMP_LAT) | (np.minimum(lon_difference, 360 - lon_difference) > JUMP_LON)
    return np.cumsum(np.concatenate([[0], (np.diff(days) <= 0) | jumps]))


def part_of(events: pa.Table, share: float) -> pa.Table:
    """Return whole days from the middle, with about this share of the events."""
    day = events["day"].to_numpy()
    count = max(int(share * len(day)), 1)
    start = (len(day) - count) // 2
    first, last = np.searchsorted(day, day[[start, start + count - 1]], side="left")
    return events.slice(first, last - first) if last > first else events
