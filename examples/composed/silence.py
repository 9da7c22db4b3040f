"""Storms at two buoys, and whether a wind sensor fell silent afterwards, from the readings of `examples/buoys`.

The data have no air pressure, so a storm is strong wind. The answers of `silent` are compared with the rows themselves.
For `perhaps_silent`, one row in five is removed at random from the years since 1993, and the complete rows are the
truth; the time to the next row was learned from the years before.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import anabranch as ab

# shared.py and the folder of the other example are in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from buoys.prepare import DAYS_OF_WEEK, FOLDER, read_readings
from shared import options

WORKBOOK = Path(__file__).with_name("silence.abq")

WEEK = pd.Timedelta(weeks=1)
SINCE = pd.Timestamp("1993-01-01", tz="UTC")
"""The years before are for learning."""

LOST = 0.2
STRONG = 9.0
SEEDS = range(5)


def winds_of(readings: pd.DataFrame) -> pd.DataFrame:
    """Return a row per buoy and week with enough readings: buoy, t (the last day), strongest, lon and lat."""
    readings = readings.assign(speed=np.hypot(readings["wind"], readings["north_wind"])).dropna(subset="speed")
    last_day = readings["t"] + pd.to_timedelta(6 - readings["t"].dt.dayofweek, unit="D")
    by_week = readings.groupby([readings["buoy"], last_day.rename("t")])
    weeks = by_week.agg(strongest=("speed", "max"), days=("speed", "size"), lat=("lat", "mean"), east=("east", "mean"))
    weeks = weeks[weeks["days"] >= DAYS_OF_WEEK].reset_index()
    return weeks.assign(lon=(weeks["east"] + 180) % 360 - 180)[["buoy", "t", "strongest", "lon", "lat"]]


def delays_of(winds: pd.DataFrame) -> pd.DataFrame:
    """Return the times to the next row of the same buoy, in seconds; the last row of a buoy has none."""
    history = winds[winds["t"] < SINCE].sort_values(["buoy", "t"])
    gaps = history.groupby("buoy")["t"].diff().dropna().dt.total_seconds().astype(int)
    return pd.DataFrame({"component": "report", "delay": gaps})


def ask(winds: pd.DataFrame, delays: pd.DataFrame, *queries: str) -> list[pd.DataFrame]:
    """Return the answers of queries: buoy, t (of the storm) and probability; storms of the last weeks are left out."""
    with tempfile.TemporaryDirectory(prefix="anabranch-silence-") as folder:
        winds.assign(t=winds["t"].dt.as_unit("us")).to_parquet(Path(folder, "winds.parquet"), index=False)
        delays.to_csv(Path(folder, "delays.csv"), index=False)
        session = ab.Session()
        session.execute_file(shutil.copy(WORKBOOK, folder))
        tables = [session.run(query).toArrow().flatten().to_pandas() for query in queries]
    last = winds["t"].max() - 4 * WEEK
    columns = {"s.buoy": "buoy", "s.t": "t", "probability": "probability"}
    answers = (rows[list(columns)].rename(columns=columns) for rows in tables)
    return [rows[rows["t"] <= last] for rows in answers]


# ------------------------------------------------------------ the truth


def storms_of(winds: pd.DataFrame) -> pd.DataFrame:
    """Return the buoys and weeks with strong wind there and at another buoy within 1,000 km."""
    strong = winds[winds["strongest"] >= STRONG]
    pairs = strong.merge(strong, on="t", suffixes=("", "_other"))
    pairs = pairs[(pairs["buoy"] != pairs["buoy_other"]) & (_metres(pairs) <= 1e6)]
    return pairs[["buoy", "t"]].drop_duplicates()


def _metres(pairs: pd.DataFrame) -> pd.Series:
    """Return distances on the sphere."""
    lat, other = np.radians(pairs["lat"]), np.radians(pairs["lat_other"])
    turn = np.radians(pairs["lon"] - pairs["lon_other"])
    cosine = np.sin(lat) * np.sin(other) + np.cos(lat) * np.cos(other) * np.cos(turn)
    return 6_371_008.8 * np.arccos(np.clip(cosine, -1, 1))


def is_silent(rows: pd.DataFrame, winds: pd.DataFrame, weeks: int) -> pd.Series:
    """Return for buoys and weeks whether no row follows within some weeks."""
    known = set(zip(winds["buoy"], winds["t"], strict=True))
    after = [[(row.buoy, row.t + n * WEEK) in known for n in range(1, weeks + 1)] for row in rows.itertuples()]
    return pd.Series([not any(found) for found in after], rows.index, dtype=bool)


def withheld(winds: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the rows since 1993 without one in five."""
    later = winds[winds["t"] >= SINCE]
    return later[np.random.default_rng(seed).random(len(later)) >= LOST]


def report(winds: pd.DataFrame) -> Iterator[str]:
    """Yield the answers, and the comparison with the truth."""
    delays, last = delays_of(winds), winds["t"].max() - 4 * WEEK
    (silent,) = ask(winds, delays, "silent")
    storms = storms_of(winds[winds["t"] <= last])
    others = winds[winds["t"] <= last]
    yield f"{len(winds):,} weeks of {winds['buoy'].nunique()} buoys, {len(storms)} in storms"
    yield f"silent for four weeks after a storm: {len(silent)} of {len(storms)} ({len(silent) / len(storms):.1%})"
    usual = is_silent(others, winds, 4)
    yield f"silent for four weeks after any week: {usual.sum()} of {len(others):,} ({usual.mean():.1%})"
    for row in silent.sort_values("t").itertuples():
        yield f"  {row.t:%Y-%m-%d}  {row.buoy}"
    yield from ("", "one row in five withheld: silent in the next week")
    yield f"  {'seed':<6}{'answers':>9}{'expected':>10}{'true':>6}"
    for seed in SEEDS:
        (perhaps,) = ask(withheld(winds, seed), delays, "perhaps_silent")
        true = is_silent(perhaps, winds, 1)
        yield f"  {seed:<6}{len(perhaps):>9}{perhaps['probability'].sum():>10.1f}{true.sum():>6}"


def main() -> None:
    """Print the report."""
    arguments = options("Run the queries of silence.abq.", FOLDER).parse_args()
    print("\n".join(report(winds_of(read_readings(arguments.data)))))


if __name__ == "__main__":
    main()
