"""Make sightings from the reads of battery-free RFID tags (lying, upright at the bed, at the chair), and lose some.

Older people wore a tag on the chest that has an accelerometer and no battery: it answers only when an antenna of the
room reaches it, many times a second or not for minutes. The data are those of Shinmoto Torres, Visvanathan and
Ranasinghe (2016), doi:10.24432/C5GG6B: a folder with reads.csv.gz.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import options

FOLDER = "rfid_batteryless"
WORKBOOK = Path(__file__).with_name("passages.abq")

CHAIR = {"d1": 2, "d2": 1}
"""The antenna at the chair, by the prefix of the trials of a room; the other antennas are at the bed."""

LYING_BELOW = 0.5
"""A person lies if the vertical acceleration of the tag is below this, in g."""

AWAY = 10.0
"""A read is a new sighting if the tag was not read at the same place for this many seconds."""

ACTIVITIES = {1: "sitting on bed", 2: "sitting on chair", 3: "lying", 4: "ambulating"}

HALVES, BLOCK = 2, 5
"""Trials are divided in blocks of five, so that most trials of one person are on one side."""


def read_reads(folder: Path) -> pd.DataFrame:
    """Return the reads in the order of time: trial, t, place and the label of the activity."""
    reads = pd.read_csv(folder / "reads.csv.gz").rename(columns={"t_s": "t"})
    at_chair = reads["antenna"] == reads["trial"].str[:2].map(CHAIR)
    posture = np.where(reads["acc_vert_g"] < LYING_BELOW, "lying", "upright")
    reads = reads.assign(place=np.where(at_chair, "chair", posture), activity=reads["activity"].map(ACTIVITIES))
    return reads.sort_values(["trial", "t"], kind="stable")[["trial", "t", "place", "activity"]]


def sightings_of(reads: pd.DataFrame) -> pd.DataFrame:
    """Return the first read of each stay: the tag was not read there for a while, and was last seen elsewhere."""
    since = reads.groupby(["trial", "place"])["t"].diff()
    arrivals = reads[since.isna() | (since > AWAY)]
    return arrivals.loc[arrivals["place"] != arrivals.groupby("trial")["place"].shift(), ["trial", "t", "place"]]


def half_of(trials: pd.Series) -> pd.Series:
    """Return the half of each trial."""
    return (trials.str[3:5].astype(int) - 1) // BLOCK % HALVES


def lose(sightings: pd.DataFrame, rate: float, seed: int) -> pd.DataFrame:
    """Return the sightings without a random share; a higher rate loses the same sightings, and more."""
    return sightings[np.random.default_rng(seed).random(len(sightings)) >= rate]


def thinned(sightings: pd.DataFrame, rate: float, copies: int) -> pd.DataFrame:
    """Return copies of all trials, each without different sightings; trial is `name#copy`."""
    kept = [lose(sightings, rate, seed=copy) for copy in range(copies)]
    return pd.concat([rows.assign(trial=rows["trial"] + f"#{copy}") for copy, rows in enumerate(kept)])


def main() -> None:
    """Write the sightings of one half, without the lost ones, the history of the other half, and the workbook."""
    parser = options("Make sightings from the reads of battery-free tags.", FOLDER)
    parser.add_argument("--rate", type=float, default=0.2, help="the share of sightings to lose")
    parser.add_argument("--output", type=Path, default=Path("passages"), help="the folder to write")
    arguments = parser.parse_args()
    reads = read_reads(arguments.data)
    sightings = sightings_of(reads)
    counts = sightings["place"].value_counts()
    print(f"{len(reads):,} reads, {len(sightings):,} sightings: {', '.join(f'{n} {p}' for p, n in counts.items())}")
    half = half_of(sightings["trial"])
    history, test = sightings[half == 1], lose(sightings[half == 0], arguments.rate, seed=0)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for rows, name, purpose in ((history, "history", "to learn from"), (test, "sightings", "to query")):
        rows.to_parquet(arguments.output / f"{name}.parquet", index=False)
        print(f"{name}.parquet: {len(rows)} {purpose}, of {rows['trial'].nunique()} trials")
    shutil.copyfile(WORKBOOK, arguments.output / WORKBOOK.name)


if __name__ == "__main__":
    main()
