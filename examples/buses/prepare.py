"""Make visits of buses to stops of what the buses reported: when each came and left, as far as the reports tell.

Buses of three routes in Washington, D.C., 16 February 2026: where each was, how fast, and which stop came next, every
half minute and around stops. The data are an archive of WMATA's public feed (GTFS-realtime), and the timetable, as in
the R package transittraj: a folder with wmata_gtfsrt_021626.csv.gz, gtfs_stop_times_observed_trips.csv.gz and
gtfs_stops.csv.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDER = "wmata_bus"

LINES = {"arrival": -45.0, "departure": 20.0}
"""Metres past the stop at which a bus comes to it, and leaves it: where buses report out of turn."""

NEAR = 3.0
"""A report records a crossing if the bus, at its speed, is at most so many seconds away from the line."""

FASTEST = 20.0
"""Metres a second; a bus that was far from the line needed time to get there."""

SILENT = 300.0
"""Seconds; where a bus may have crossed a line within more than this, it is not even known that it did."""

METRES = np.radians(1) * 6_371_008.8
"""In a degree of latitude."""

Floats = NDArray[np.float64]


# ------------------------------------------------------------ what there is


def read_reports(folder: Path) -> pd.DataFrame:
    """What each bus said on its way: trip, journey, start (seconds of the day), sequence, t, x, y and speed."""
    feed = pd.read_csv(folder / "wmata_gtfsrt_021626.csv.gz", index_col=0)
    trip, bus = (feed[f"vehicle.{of}"] for of in ("trip.trip_id", "vehicle.id"))
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
    """The stops of each trip in their order: trip, sequence, stop, x and y."""
    times = pd.read_csv(folder / "gtfs_stop_times_observed_trips.csv.gz")
    places = pd.read_csv(folder / "gtfs_stops.csv", index_col="stop_id").loc[times["stop_id"]].reset_index()
    columns = times[["trip_id", "stop_sequence", "stop_id"]].set_axis(["trip", "sequence", "stop"], axis="columns")
    stops = columns.assign(**_plane(places["stop_lon"], places["stop_lat"]))
    return stops.sort_values(["trip", "sequence"], ignore_index=True)


def read_names(folder: Path) -> pd.Series:
    """The name of each stop."""
    return pd.read_csv(folder / "gtfs_stops.csv", index_col="stop_id")["stop_name"]


def _plane(longitude: pd.Series, latitude: pd.Series) -> dict[str, pd.Series]:
    """Metres east and north; one latitude for all is right to 0.3 % in this city."""
    return {"x": longitude * METRES * np.cos(np.radians(38.9)), "y": latitude * METRES}


def _on_the_way(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """Without what a bus says while it waits to set out, or after it has come to its last stop."""
    ends = stops.groupby("trip")["sequence"].agg(["min", "max"]).loc[reports["trip"]].reset_index()
    t, journey = reports["t"], reports["journey"]
    sets_out = t.where(reports["sequence"] == ends["min"]).groupby(journey).transform("max")
    is_there = t.where(reports["sequence"] == ends["max"]).groupby(journey).transform("min")
    return reports[~(t < sets_out) & ~(t > is_there)]


# ------------------------------------------------------------ visits


def visits_of(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """The visits to stops between the first and the last of each journey: stop, journey, start, and both events.

    - `arrival`: when it was, if a report records it, else NaN;
    - `arrival_lo`, `arrival_hi`: between which instants it was;
    - `arrival_seen`: the first report from the stop, if there is one;
    - `arrival_straight`: when it was if the bus went steadily from report to report;
    - `departure` and so on: the same, with the last report from the stop.
    """
    of_trip = dict(iter(stops.groupby("trip")))
    journeys = [rows for _, rows in reports.groupby("journey") if len(rows) > 1]
    visits = pd.concat([_of_journey(rows, of_trip[rows["trip"].iloc[0]]) for rows in journeys], ignore_index=True)
    known = pd.Series(True, visits.index)
    for event in LINES:
        width = visits[f"{event}_hi"] - visits[f"{event}_lo"]
        known &= visits[event].notna() | (width <= SILENT)
    return visits[known].reset_index(drop=True)


def _of_journey(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """The visits of one journey; all of an event's columns are NaN where no report is before it, or none after."""
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


def _metres_past(reports: pd.DataFrame, stops: pd.DataFrame) -> Floats:
    """How far each report is past each stop, as the crow flies; ahead of it is below 0."""
    at = stops[["x", "y"]].to_numpy()
    way = np.gradient(at, axis=0)  # from the stop before to the one after
    offset = reports[["x", "y"]].to_numpy()[:, None] - at
    passed = reports["sequence"].to_numpy()[:, None] - stops["sequence"].to_numpy()
    # Which stop comes next says all but close to the stop, where the direction does.
    side = np.where(np.abs(passed) > 1, passed, (offset * way).sum(axis=2))
    return np.where(side > 0, 1.0, -1.0) * np.hypot(offset[..., 0], offset[..., 1])


def _crossing(t: Floats, speed: Floats, past: Floats, is_last: bool) -> dict[str, Floats]:
    """When a bus crossed each line for the first or the last time, given how far each report is past it."""
    beyond = past >= 0
    after = len(t) - (~beyond[::-1]).argmax(axis=0) if is_last else beyond.argmax(axis=0)
    known = (after > 0) & (after < len(t))
    after = np.where(known, after, 1)
    before, each = after - 1, np.arange(past.shape[1])
    to_go, gone = np.where(known, -past[before, each], 1.0), np.where(known, past[after, each], 1.0)
    lo, hi = t[before] + to_go / FASTEST, t[after] - gone / FASTEST
    # Positions are right to some metres: nobody drove as fast as a few of them say.
    lo, hi = np.where(lo < hi, lo, t[before]), np.where(lo < hi, hi, t[after])
    pace = np.where(speed > 0, speed, 1e-9)  # who stands on the line may have done so for a while
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
    """The stream of INTERVALS: two rows a visit, each with a time if it is recorded, or a window if it is lost."""
    rows = []
    for seq, event in enumerate(LINES, start=1):
        lost = visits[event].isna()
        window = [visits[f"{event}_{end}"].where(lost) for end in ("lo", "hi")]
        times = dict(zip(("t", "lo", "hi"), map(_timestamps, (visits[event], *window)), strict=True))
        rows.append(visits[["stop", "journey"]].assign(seq=seq, **times))
    return pd.concat(rows, ignore_index=True)


def _timestamps(seconds: pd.Series) -> pd.Series:
    micros = (seconds * 1e6).round().astype("Int64")
    return pd.to_datetime(micros, unit="us", utc=True).dt.as_unit("us")


def find_data(data: Path) -> Path:
    """The folder of the data; where it is not there, the end."""
    if not (data / FOLDER).is_dir():
        sys.exit(f"there is no {FOLDER} in {data}; say with --data where it is")
    return data / FOLDER


def main() -> None:
    """Write the stream of visits."""
    parser = argparse.ArgumentParser(description="Make visits to stops of what buses reported.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    parser.add_argument("--output", type=Path, default=Path("buses"), help="where to write them")
    given = parser.parse_args()
    folder = find_data(given.data)
    reports = read_reports(folder)
    visits = visits_of(reports, read_stops(folder))
    given.output.mkdir(parents=True, exist_ok=True)
    stream_of(visits).to_parquet(given.output / "visits.parquet", index=False)
    print(f"{len(reports):,} reports of {reports['journey'].nunique()} journeys, {len(visits):,} visits to stops")
    for event in LINES:
        lost = visits[event].isna()
        width = (visits[f"{event}_hi"] - visits[f"{event}_lo"])[lost].median()
        print(f"{event}s: {lost.sum():,} lost ({lost.mean():.0%}), half of them within {width:.0f} s")
    print(f"both lost: {(visits[list(LINES)].isna().all(axis='columns')).sum():,}")


if __name__ == "__main__":
    main()
