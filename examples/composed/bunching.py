"""Buses that were bunched at a stop during congestion, from the reports of the buses of `examples/buses`.

One report in three is used; all reports give the truth. The error of predictions was learned from the buses that
started before 13:00, and the answers are compared with the truth for the others.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import anabranch as ab
from anabranch.evaluation import Bin, bins_of

# shared.py and the folder of the other example are in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from buses.prepare import FOLDER, read_names, read_reports, read_stops
from shared import calibration_lines, options

WORKBOOK = Path(__file__).with_name("bunching.abq")

KEPT = 3
"""Every third report is used."""

OFF = 200.0
"""Metres from the line; a report further away is not used."""

APART = 1_000.0
"""Metres between the stops that are used; a bus is at a stop within half of this."""

NEAR = 400.0
"""Metres between buses that are bunched."""

SLOW = 0.8
"""Congestion: the speed past a stop, relative to its median."""

MEAN = 3.4
"""The mean speed of all buses, stops included, in metres per second; half of a prediction, its own speed the other."""

HISTORY = 13 * 3600.0
"""Buses that started before this second of the day are for learning."""

STEP = 15.0
"""Seconds between the instants at which the truth is computed."""


@dataclass(frozen=True, slots=True)
class Day:
    """Positions of buses (line, journey, start, t, x) and of stops (line, stop, x); x is in metres along the line."""

    positions: pd.DataFrame
    stops: pd.DataFrame


def read_day(folder: Path) -> Day:
    """Return the positions of all buses along their lines, and the stops that are used."""
    reports, stops = read_reports(folder), read_stops(folder)
    first = stops.groupby("trip")["stop"].first()
    stops = stops.assign(x_along=stops.groupby("trip", group_keys=False)[["x", "y"]].apply(_lengths))
    rows = pd.concat([_along(rows, stops[stops["trip"] == trip]) for trip, rows in reports.groupby("trip")])
    rows["line"] = rows["journey"].str.split().str[0] + " from " + rows["trip"].map(first).astype(str)
    rows = rows.sort_values(["journey", "t"]).drop_duplicates(["journey", "t"])
    rows["x"] = rows.groupby("journey")["x"].cummax()
    of_line = stops.merge(rows[["trip", "line"]].drop_duplicates("line"), on="trip")
    of_line = of_line.assign(kilometre=of_line["x_along"] // APART).drop_duplicates(["line", "kilometre"])
    stops = of_line[["line", "stop", "x_along"]].set_axis(["line", "stop", "x"], axis="columns")
    return Day(rows[["line", "journey", "start", "t", "x"]].reset_index(drop=True), stops.reset_index(drop=True))


def _lengths(points: pd.DataFrame) -> pd.Series:
    """Return the length of the line from its first stop to each, with straight lines between stops."""
    steps = points.diff().fillna(0.0)
    return np.hypot(steps["x"], steps["y"]).cumsum()


def _along(reports: pd.DataFrame, stops: pd.DataFrame) -> pd.DataFrame:
    """Return reports of one trip with x: the nearest point on the line, near the next stop of the report."""
    points, length = stops[["x", "y"]].to_numpy(), stops["x_along"].to_numpy()
    steps, position = np.diff(points, axis=0), reports[["x", "y"]].to_numpy()
    number = np.searchsorted(stops["sequence"].to_numpy(), reports["sequence"].to_numpy())
    segment = np.clip(number[:, None] + np.arange(-2, 2), 0, len(steps) - 1)
    offset, step = position[:, None] - points[segment], steps[segment]
    share = np.clip((offset * step).sum(axis=2) / np.maximum((step**2).sum(axis=2), 1e-9), 0, 1)
    distance = np.linalg.norm(offset - share[..., None] * step, axis=2)
    nearest, row = distance.argmin(axis=1), np.arange(len(reports))
    x = length[segment] + share * np.linalg.norm(step, axis=2)
    return reports.assign(x=x[row, nearest])[distance[row, nearest] <= OFF]


def predictions(positions: pd.DataFrame) -> pd.DataFrame:
    """Return every third report, with the speed that is expected: between the mean and that of the last minutes."""
    kept = positions[positions.groupby("journey").cumcount() % KEPT == 0]
    before = kept.groupby("journey")[["x", "t"]].shift(4)
    own = ((kept["x"] - before["x"]) / (kept["t"] - before["t"])).clip(0, 15).fillna(MEAN)
    return kept.assign(x_rate=(own + MEAN) / 2)


def residuals(positions: pd.DataFrame) -> pd.Series:
    """Return how far the reports of buses for learning were from predictions of at most two minutes."""
    positions = positions[positions["start"] < HISTORY].sort_values("t")
    kept = predictions(positions.sort_values(["journey", "t"])).assign(sent=lambda rows: rows["t"]).sort_values("t")
    pairs = pd.merge_asof(
        positions, kept[["journey", "t", "sent", "x", "x_rate"]], on="t", by="journey", suffixes=("", "_sent"),
        allow_exact_matches=False,
    )  # fmt: skip
    age = pairs["t"] - pairs["sent"]
    return (pairs["x"] - pairs["x_sent"] - pairs["x_rate"] * age)[age <= 120]


def passages(day: Day) -> pd.DataFrame:
    """Return how fast each bus passed each stop, relative to the median there: line, stop, t and pace."""
    parts = []
    for stop in day.stops.itertuples():
        for _, rows in day.positions[day.positions["line"] == stop.line].groupby("journey"):
            near = [stop.x - APART / 2, stop.x, stop.x + APART / 2]
            x = rows["x"].to_numpy() + 1e-6 * np.arange(len(rows))  # A bus that stands has increasing positions.
            if x[0] <= near[0] and x[-1] >= near[-1]:
                begin, t, end = np.interp(near, x, rows["t"].to_numpy())
                parts.append((stop.line, stop.stop, t, APART / (end - begin)))
    speeds = pd.DataFrame(parts, columns=["line", "stop", "t", "speed"])
    return speeds.assign(pace=speeds["speed"] / speeds.groupby(["line", "stop"])["speed"].transform("median"))


def write(day: Day, passed: pd.DataFrame, folder: Path) -> Path:
    """Write the files of the workbook for the buses that are not for learning, and a copy of it; return its path."""
    later = day.positions[day.positions["start"] >= HISTORY]
    still = day.stops.assign(t=later["t"].min(), x_rate=0.0)
    for name, rows in (("buses", predictions(later)), ("stops", still), ("passages", passed)):
        times = pd.to_datetime((rows["t"] * 1e6).round().astype("int64"), unit="us", utc=True)
        rows.assign(t=times.dt.as_unit("us")).to_parquet(folder / f"{name}.parquet", index=False)
    return Path(shutil.copy(WORKBOOK, folder))


def ask(day: Day, passed: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the answers of `bunched` and `bunched_in_congestion`, with the fields of structs as columns."""
    with tempfile.TemporaryDirectory(prefix="anabranch-bunching-") as folder:
        session = ab.Session()
        session.execute_file(str(write(day, passed, Path(folder))))
        names = ("bunched", "bunched_in_congestion")
        bunched, both = (session.run(name).drop("boundary").toArrow().flatten().to_pandas() for name in names)
    keys = {"b.line": "line", "b.stop": "stop", "b.first": "first", "b.other": "other"}
    return bunched, both.rename(columns=keys)[[*keys.values(), "probability"]]


# ------------------------------------------------------------ the truth


class Truth:
    """Where all buses were, by all their reports, with constant speed between them."""

    def __init__(self, day: Day, passed: pd.DataFrame) -> None:
        self._tracks = {
            journey: (rows["t"].to_numpy(), rows["x"].to_numpy()) for journey, rows in day.positions.groupby("journey")
        }
        self._stops = day.stops.set_index(["line", "stop"])["x"]
        self._passed = dict(iter(passed.groupby(["line", "stop"])))

    def x(self, journey: str, t: np.ndarray) -> np.ndarray:
        """Return where a bus was; NaN before its first report and after its last."""
        times, x = self._tracks[journey]
        return np.interp(t, times, x, left=np.nan, right=np.nan)

    def bunched(self, line: str, stop: int, first: str, other: str, t: np.ndarray) -> np.ndarray:
        """Return whether two buses were bunched at a stop, at each instant."""
        a, b = self.x(first, t), self.x(other, t)
        return (np.abs(a - b) <= NEAR) & (np.abs(a - self._stops[line, stop]) <= APART / 2)

    def congested(self, line: str, stop: int, t: np.ndarray) -> np.ndarray:
        """Return whether the last bus before each instant passed the stop slowly."""
        rows = self._passed[line, stop].sort_values("t")
        last = np.searchsorted(rows["t"].to_numpy(), t, side="right") - 1
        return (last >= 0) & (rows["pace"].to_numpy()[np.maximum(last, 0)] < SLOW)

    def both(self, line: str, stop: int, first: str, other: str) -> bool:
        """Return whether two buses were bunched at a stop at some instant of congestion."""
        t = np.arange(self._tracks[first][0][0], self._tracks[first][0][-1], STEP)
        return bool((self.bunched(line, stop, first, other, t) & self.congested(line, stop, t)).any())


def reliability(bunched: pd.DataFrame, truth: Truth) -> list[Bin]:
    """Return how often buses were bunched at the instant for which an answer gives its probability."""
    times = bunched["sample.ta"].astype("int64").to_numpy() / 1e6
    keys = bunched[["s.line", "s.stop", "a.journey", "b.journey"]].itertuples(index=False)
    true = [bool(truth.bunched(*key, np.array([t]))[0]) for key, t in zip(keys, times, strict=True)]
    return bins_of(bunched["probability"].to_numpy(), np.array(true), bins=5)


def report(
    day: Day, passed: pd.DataFrame, bunched: pd.DataFrame, both: pd.DataFrame, names: pd.Series
) -> Iterator[str]:
    """Yield the answers, and the comparison with the truth."""
    truth, errors = Truth(day, passed), residuals(day.positions)
    within = f"99% within {errors.abs().quantile(0.99):.0f} m of predictions"
    yield f"buses before 13:00: {within}, standard deviation {errors.std():.0f} m"
    yield f"{len(passed):,} passages at {len(day.stops)} stops, {(passed['pace'] < SLOW).sum()} of them slow"
    yield from ("", f"bunched: {len(bunched):,} answers; probability, and share that is true")
    yield from calibration_lines(reliability(bunched, truth))
    keys = both[["line", "stop", "first", "other"]].itertuples(index=False)
    both = both.assign(true=[truth.both(*key) for key in keys])
    expected = f"{both['probability'].sum():.1f} expected"
    yield from ("", f"bunched in congestion: {len(both)} answers, {expected}, {both['true'].sum()} true")
    for row in both.sort_values(["first", "other", "stop"]).itertuples():
        place = f"{row.first} and {row.other} at {names[row.stop]}"
        yield f"  {row.probability:.3f}  {'true ' if row.true else 'false'}  {place}"


def main() -> None:
    """Print the report."""
    arguments = options("Run bunching.abq, and compare its answers with those from all reports.", FOLDER).parse_args()
    day = read_day(arguments.data)
    passed = passages(day)
    print("\n".join(report(day, passed, *ask(day, passed), read_names(arguments.data))))


if __name__ == "__main__":
    main()
