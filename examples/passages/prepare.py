"""Make sightings of the reads of battery-free RFID tags: lying, upright at the bed, at the chair; and lose some.

Older people wore a tag on the chest that has an accelerometer and no battery: it answers when an antenna of the room
reaches it, many times a second or not for minutes. The data are those of Shinmoto Torres, Visvanathan and Ranasinghe
(2016), doi:10.24432/C5GG6B, as a folder with reads.csv.gz.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDER = "rfid_batteryless"
WORKBOOK = Path(__file__).with_name("passages.abq")

CHAIR = {"d1": 2, "d2": 1}
"""The antenna at the chair, by how the names of the trials of a room begin; the others hang at the bed."""

LYING_BELOW = 0.5
"""The acceleration upwards, in g, below which a tag on the chest lies."""

AWAY = 10.0
"""Seconds that a tag was not read at a place, so that the next read there is a new sighting."""

ACTIVITIES = {1: "sitting on bed", 2: "sitting on chair", 3: "lying", 4: "ambulating"}

HALVES, BLOCK = 2, 5
"""Trials are told apart by blocks of five: whoever did several, one after the other, is mostly on one side."""


def read_reads(folder: Path) -> pd.DataFrame:
    """What the antennas read, in the order of time: trial, t, place and the activity that it was labelled with."""
    reads = pd.read_csv(folder / "reads.csv.gz").rename(columns={"t_s": "t"})
    at_chair = reads["antenna"] == reads["trial"].str[:2].map(CHAIR)
    posture = np.where(reads["acc_vert_g"] < LYING_BELOW, "lying", "upright")
    reads = reads.assign(place=np.where(at_chair, "chair", posture), activity=reads["activity"].map(ACTIVITIES))
    return reads.sort_values(["trial", "t"], kind="stable")[["trial", "t", "place", "activity"]]


def sightings_of(reads: pd.DataFrame) -> pd.DataFrame:
    """The first read of each stay: the tag was not read there for a while, and was last seen elsewhere."""
    since = reads.groupby(["trial", "place"])["t"].diff()
    fresh = reads[since.isna() | (since > AWAY)]
    return fresh.loc[fresh["place"] != fresh.groupby("trial")["place"].shift(), ["trial", "t", "place"]]


def half_of(trials: pd.Series) -> pd.Series:
    """To which half each trial belongs."""
    return (trials.str[3:5].astype(int) - 1) // BLOCK % HALVES


def lose(sightings: pd.DataFrame, rate: float, seed: int) -> pd.DataFrame:
    """What is left when a share of the sightings is lost by chance. What a low rate takes, a higher one takes, too."""
    return sightings[np.random.default_rng(seed).random(len(sightings)) >= rate]


def thinned(sightings: pd.DataFrame, rate: float, copies: int) -> pd.DataFrame:
    """Copies of all trials, each of which has lost other sightings; trial is `name#copy`."""
    kept = [lose(sightings, rate, seed=copy) for copy in range(copies)]
    return pd.concat([rows.assign(trial=rows["trial"] + f"#{copy}") for copy, rows in enumerate(kept)])


def find_data(data: Path) -> Path:
    """The folder of the data; where it is not there, the end."""
    if not (data / FOLDER).is_dir():
        sys.exit(f"there is no {FOLDER} in {data}; say with --data where it is")
    return data / FOLDER


def options(description: str) -> argparse.ArgumentParser:
    """What all scripts can be told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder that has {FOLDER}")
    return parser


def main() -> None:
    """Write the sightings of one half, some of them lost, those of the other to learn from, and the workbook."""
    parser = options("Make sightings of the reads of battery-free tags.")
    parser.add_argument("--rate", type=float, default=0.2, help="the share of sightings that is lost")
    parser.add_argument("--output", type=Path, default=Path("passages"), help="where to write them")
    given = parser.parse_args()
    reads = read_reads(find_data(given.data))
    sightings = sightings_of(reads)
    counts = sightings["place"].value_counts()
    print(f"{len(reads):,} reads, {len(sightings):,} sightings: {', '.join(f'{n} {p}' for p, n in counts.items())}")
    half = half_of(sightings["trial"])
    history, test = sightings[half == 1], lose(sightings[half == 0], given.rate, seed=0)
    given.output.mkdir(parents=True, exist_ok=True)
    for rows, name, what in ((history, "history", "to learn from"), (test, "sightings", "to ask of")):
        rows.to_parquet(given.output / f"{name}.parquet", index=False)
        print(f"{name}.parquet: {len(rows)} {what}, of {rows['trial'].nunique()} trials")
    shutil.copyfile(WORKBOOK, given.output / WORKBOOK.name)


if __name__ == "__main__":
    main()
