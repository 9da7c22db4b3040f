"""Derive the visits of buses to stops from the reports of the buses: when each arrived and departed.

Buses of three routes in Washington, D.C., 16 February 2026: the position, the speed and the next stop of each, every
half minute and near stops. The data are an archive of WMATA's public feed (GTFS-realtime) and the timetable, as in the
R package transittraj: a folder with wmata_gtfsrt_021626.csv.gz, gtfs_stop_times_observed_trips.csv.gz and
gtfs_stops.csv.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import options

FOLDER = "wmata_bus"

LINES = {"arrival": -45.0, "departure": 20.0}
"""Metres past the stop at which a bus arrives and departs: there buses send additional reports."""

NEAR = 3.0
"""A report records a crossing if the bus, at its speed, is at most this many seconds away from the line."""

FASTEST = 20.0
"""The maximum speed in metres per second; a bus far from the line needs time to reach it."""

SILENT = 300.0
"""Seconds; if the window of a crossing is longer, the visit is left out."""

METRES = np.radians(1) * 6_371_008.8
"""Metres per degree of latitude."""

F64 = NDArray[np.float64]


# ------------------------------------------------------------ reports and stops


def read_reports(folder: Path) -> pd.DataFrame:
    """Return the reports of each bus: trip, journey, start (seconds of the day), sequence, t, x, y and speed."""
    feed = pd.read_csv(folder / "wmata_gtfsrt_021626.csv.gz", index_col=0)
    trip, bus = feed["vehicle.trip.trip_id"], feed["vehicle.vehicle.id"]
    start = feed["vehicle.trip.start_time"]
    reports = pd.DataFrame(
        {
            "trip": trip,
            "journey": feed["vehicle.trip.route_id"] + " " + start.str[:5] + " " + bus.astype(str),
            "start": pd.to_timedelta(start).dt.total_seconds(),
            "sequence": feed["vehicle.current_stop_sequence"].astype(int),
            "t": feed["vehicle.timestamp"].astype(float),
            "speed": feed["vehicle.position.speed"],
            **_plane(feed["vehicle.position.longitude"], feed["vehicle.position.latitude"]),
        }
    )
    return _on_the_way(reports.sort_values(["journey", "t"], ignore_index=True), read_stops(folder))


def read_stops(folder: Path) -> pd.DataFrame:
    """Return the stops of each trip in their order: trip, sequence, stop, x and y."""
    times = pd.read_csv(folder / "gtfs_stop_times_observed_trips.csv.gz")
    known = pd.read_csv(folder / "gtfs_stops.csv", index_col="stop_id").loc[times["stop_id"]].reset_index()
    columns = times[["trip_id", "stop_sequence", "stop_id"]].set_axis(["trip", "sequence", "stop"], axis="columns")
    stops = columns.assign(**_plane(known["stop_lon"], known["stop_lat"]))
    return stops.sort_values(["trip", "sequence"], ignore_index=True)


def read_names(folder: Path) -> pd.Series:
    """Return the name of each stop."""
    return pd.read_csv(folder / "gtfs_stops.csv", index_col="stop_id")["stop_name"]


def _plane(longitude: pd.Series, latitude: pd.Series) -> dict[str, pd.Series]:
    """Return metres to the east and north; with one latitude for all, the error in this city is 0.3%."""
    return {"x": longitude * METRES * np.cos(np.radians(38.9)), "y": latitude * METRES}


def _on_the_way(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """Return the reports without those before a bus leaves its first stop and after it reached its last one."""
    ends = stops.groupby("trip")["sequence"].agg(["min", "max"]).loc[reports["trip"]].reset_index()
    t, journey = reports["t"], reports["journey"]
    leaves = t.where(reports["sequence"] == ends["min"]).groupby(journey).transform("max")
    arrives = t.where(reports["sequence"] == ends["max"]).groupby(journey).transform("min")
    return reports[~(t < leaves) & ~(t > arrives)]


# ------------------------------------------------------------ visits


def visits_of(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """Return the visits to all stops of each journey but the first and the last: stop, journey, start, and two events.

    - `arrival`: its time if a report records it, else NaN;
    - `arrival_lo`, `arrival_hi`: the window in which it was;
    - `arrival_seen`: the first report from the stop, if there is one;
    - `arrival_straight`: its time if the bus had constant speed between reports;
    - `departure` and so on: the same, with the last report from the stop.
    """
    trip_stops = dict(iter(stops.groupby("trip")))
    journeys = [rows for _, rows in reports.groupby("journey") if len(rows) > 1]
    parts = [_journey_visits(rows, trip_stops[rows["trip"].iloc[0]]) for rows in journeys]
    visits = pd.concat(parts, ignore_index=True)
    known = pd.Series(True, visits.index)
    for event in LINES:
        width = visits[f"{event}_hi"] - visits[f"{event}_lo"]
        known &= visits[event].notna() | (width <= SILENT)
    return visits[known].reset_index(drop=True)


def _journey_visits(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """Return the visits of one journey; the columns of an event are NaN without a report before and after it."""
    past = _metres_past(reports, stops)[:, 1:-1]
    t, speed = reports["t"].to_numpy(), reports["speed"].to_numpy()
    visits = stops[["stop"]].iloc[1:-1].assign(journey=reports["journey"].iloc[0], start=reports["start"].iloc[0])
    at_stop = (past >= LINES["arrival"]) & (past < LINES["departure"])
    seen = np.where(at_stop, t[:, None], np.nan)
    for event, line in LINES.items():
        is_last = event == "departure"
        columns = _crossing(t, speed, past - line, is_last)
        columns["_seen"] = (np.fmax if is_last else np.fmin).reduce(seen)
        visits = visits.assign(**{event + part: values for part, values in columns.items()})
    return visits


def _metres_past(reports: pd.DataFrame, stops: pd.DataFrame) -> F64:
    """Return how far each report is past each stop, in a straight line; negative before the stop."""
    positions = stops[["x", "y"]].to_numpy()
    direction = np.gradient(positions, axis=0)  # from the stop before to the one after
    offset = reports[["x", "y"]].to_numpy()[:, None] - positions
    passed = reports["sequence"].to_numpy()[:, None] - stops["sequence"].to_numpy()
    # The next stop tells whether a stop is passed; close to the stop, the direction does.
    side = np.where(np.abs(passed) > 1, passed, (offset * direction).sum(axis=2))
    return np.where(side > 0, 1.0, -1.0) * np.hypot(offset[..., 0], offset[..., 1])


def _crossing(t: F64, speed: F64, past: F64, is_last: bool) -> dict[str, F64]:
    """Return when a bus crossed each line for the first or last time, from how far each report is past it."""
    beyond = past >= 0
    after = len(t) - (~beyond[::-1]).argmax(axis=0) if is_last else beyond.argmax(axis=0)
    known = (after > 0) & (after < len(t))
    after = np.where(known, after, 1)
    before, line = after - 1, np.arange(past.shape[1])
    to_go, gone = np.where(known, -past[before, line], 1.0), np.where(known, past[after, line], 1.0)
    lo, hi = t[before] + to_go / FASTEST, t[after] - gone / FASTEST
    # Positions have errors of some metres, so a few imply speeds that no bus had.
    lo, hi = np.where(lo < hi, lo, t[before]), np.where(lo < hi, hi, t[after])
    pace = np.where(speed > 0, speed, 1e-9)  # a bus that stands on the line may have stood there for a while
    until, since = to_go / pace[before], gone / pace[after]
    at_line = np.where(until <= since, np.minimum(t[before] + until, t[after]), np.maximum(t[after] - since, t[before]))
    columns = {
        "": np.where(np.minimum(until, since) <= NEAR, at_line, np.nan),
        "_lo": lo,
        "_hi": hi,
        "_straight": t[before] + (t[after] - t[before]) * to_go / (to_go + gone),
    }
    return {part: np.where(known, values, np.nan) for part, values in columns.items()}


def stream_of(visits: pd.DataFrame) -> pd.DataFrame:
    """Return the INTERVALS stream: two rows per visit, with a time if it is recorded, or a window if it is lost."""
    rows = []
    for seq, event in enumerate(LINES, start=1):
        lost = visits[event].isna()
        window = [visits[f"{event}_{end}"].where(lost) for end in ("lo", "hi")]
        times = dict(zip(("t", "lo", "hi"), map(_timestamps, (visits[event], *window)), strict=True))
        rows.append(visits[["stop", "journey"]].assign(seq=seq, **times))
    return pd.concat(rows, ignore_index=True)


def journeys_of(visits: pd.DataFrame) -> pd.DataFrame:
    """Return the same rows with the visits of a journey as the segments of one interval, numbered in order of stops."""
    number = visits.groupby("journey").cumcount()
    rows = stream_of(visits)
    return rows.assign(seq=rows["seq"] + 2 * pd.concat([number] * len(LINES), ignore_index=True))


def _timestamps(seconds: pd.Series) -> pd.Series:
    micros = (seconds * 1e6).round().astype("Int64")
    return pd.to_datetime(micros, unit="us", utc=True).dt.as_unit("us")


def main() -> None:
    """Write the stream of visits."""
    parser = options("Derive visits to stops from the reports of buses.", FOLDER)
    parser.add_argument("--output", type=Path, default=Path("buses"), help="the folder to write")
    arguments = parser.parse_args()
    folder = arguments.data
    reports = read_reports(folder)
    visits = visits_of(reports, read_stops(folder))
    arguments.output.mkdir(parents=True, exist_ok=True)
    stream_of(visits).to_parquet(arguments.output / "visits.parquet", index=False)
    print(f"{len(reports):,} reports of {reports['journey'].nunique()} journeys, {len(visits):,} visits to stops")
    for event in LINES:
        lost = visits[event].isna()
        width = (visits[f"{event}_hi"] - visits[f"{event}_lo"])[lost].median()
        print(f"{event}s: {lost.sum():,} lost ({lost.mean():.0%}), half of them within {width:.0f} s")
    print(f"both lost: {(visits[list(LINES)].isna().all(axis='columns')).sum():,}")


if __name__ == "__main__":
    main()
