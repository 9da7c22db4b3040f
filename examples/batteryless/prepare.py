"""Make readings of the battery-free RFID tags, fit a model to some of the trials, and hold out the others.

Older people wore a tag on the chest that has an accelerometer and no battery: it answers only when an antenna of the
room reaches it. They lay down, sat up, walked, and sat on a chair; each reading was labelled. The data are those of
Shinmoto Torres, Visvanathan and Ranasinghe (2016), doi:10.24432/C5GG6B: a folder with reads.csv.gz.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from anabranch.inference.fit import Smoothing, fit_hmm
from anabranch.inference.hmm import Hmm, Sensing
from anabranch.inference.labels import Labelled
from anabranch.inference.model import write_hmm

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import options as data_options

FOLDER = "rfid_batteryless"
WORKBOOK = Path(__file__).with_name("batteryless.abq")

ROOMS = {"room1": "d1", "room2": "d2"}
"""The rooms, and the prefix of the names of their trials; the antennas of each room are in different places."""

ACTIVITIES = {1: "sitting on bed", 2: "sitting on chair", 3: "lying", 4: "ambulating"}

CUTS = {"acc_vert_g": (0.5, 0.9), "acc_front_g": (0.3, 0.5), "rssi": (-60.0, -54.0)}
"""The limits between low, middle and high means of a second: upright or not, leaning or not, near or far."""

ANTENNAS = (1, 2, 3, 4)

READINGS = [
    "/".join(map(str, parts)) for parts in itertools.product(ANTENNAS, *(range(len(c) + 1) for c in CUTS.values()))
]
"""All possible readings: the antenna, then 0, 1 or 2 for each of `CUTS`."""

THIRDS, BLOCK = 3, 5
"""Trials are held out in blocks of five, so that most trials of one person are on one side."""


@dataclass(frozen=True)
class Room:
    """The trials of one room: the seconds with a reading (trial, t, reading, activity), and the held-out trials."""

    name: str
    seconds: pd.DataFrame
    held_out: frozenset[str]

    @property
    def history(self) -> pd.DataFrame:
        """The seconds of the trials for fitting."""
        return self.seconds[~self.seconds["trial"].isin(self.held_out)]

    @property
    def test(self) -> pd.DataFrame:
        """The seconds of the held-out trials."""
        return self.seconds[self.seconds["trial"].isin(self.held_out)]


def read_rooms(folder: Path, third: int = 0) -> list[Room]:
    """Return the rooms, with one third of the trials of each held out."""
    seconds = _seconds(pd.read_csv(folder / "reads.csv.gz"))
    blocks = (seconds["trial"].str[3:5].astype(int) - 1) // BLOCK
    held_out = frozenset(seconds["trial"][blocks % THIRDS == third])
    return [Room(name, seconds[seconds["trial"].str.startswith(prefix)], held_out) for name, prefix in ROOMS.items()]


def _seconds(reads: pd.DataFrame) -> pd.DataFrame:
    """Return one reading per second in which the tag answered: the most frequent antenna, and the levels of means."""
    reads = reads.assign(t=np.floor(reads["t_s"]).astype(int))
    seconds = reads.groupby(["trial", "t"]).agg({**dict.fromkeys(CUTS, "mean"), "activity": "last"}).reset_index()
    counts = reads.groupby(["trial", "t", "antenna"]).size().unstack(fill_value=0)
    reading = counts.idxmax(axis="columns").reset_index(drop=True).astype(str)
    for column, cuts in CUTS.items():
        reading += "/" + pd.Series(np.digitize(seconds[column], cuts)).astype(str)
    seconds = seconds.assign(reading=reading, activity=seconds["activity"].map(ACTIVITIES))
    return seconds[["trial", "t", "reading", "activity"]]


def every_second(labelled: pd.DataFrame) -> pd.DataFrame:
    """Return the activity of every second of each trial; between readings, that of the last one."""
    trials = [
        rows.set_index("t")["activity"].reindex(range(rows["t"].min(), rows["t"].max() + 1), method="ffill")
        for _, rows in labelled.groupby("trial")
    ]
    return pd.concat(trials, keys=sorted(labelled["trial"].unique()), names=["trial", "t"]).reset_index()


def fit(history: pd.DataFrame) -> Hmm:
    """Fit the transitions of activities and their readings; a second without a reading has no information."""
    activities, truth = list(ACTIVITIES.values()), every_second(history)
    return fit_hmm(
        _coded(truth, "activity", activities),
        _coded(history, "reading", READINGS),
        activities,
        READINGS,
        Sensing.EMISSION,
        Smoothing(alpha_unseen=0.2),
    )


def _coded(rows: pd.DataFrame, column: str, names: list[str]) -> Labelled:
    codes = rows[column].map({name: code for code, name in enumerate(names)})
    return Labelled(
        *(np.asarray(part, np.int64) for part in (rows["trial"].factorize(sort=True)[0], rows["t"])),
        np.asarray(codes, np.int32),
    )


def write_room(room: Room, hmm: Hmm, output: Path) -> None:
    """Write the readings, the labels and the model of the held-out trials, and a copy of the workbook."""
    output.mkdir(parents=True, exist_ok=True)
    room.test[["trial", "t", "reading"]].to_parquet(output / "readings.parquet", index=False)
    room.test[["trial", "t", "activity"]].to_parquet(output / "truth.parquet", index=False)
    write_hmm(hmm, output / "model", "activity", "reading")
    shutil.copyfile(WORKBOOK, output / WORKBOOK.name)


def options(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all scripts of this example have."""
    parser = data_options(description, FOLDER)
    parser.add_argument("--third", type=int, choices=range(THIRDS), default=0, help="which trials to hold out")
    return parser


def main() -> None:
    """Write the readings, the model and the labels of each room."""
    parser = options("Make readings of the battery-free tags, and fit a model.")
    parser.add_argument("--output", type=Path, default=Path("batteryless"), help="the folder to write")
    arguments = parser.parse_args()
    for room in read_rooms(arguments.data, arguments.third):
        write_room(room, fit(room.history), arguments.output / room.name)
        fitted, held_out = (rows["trial"].nunique() for rows in (room.history, room.test))
        print(f"{room.name}: a model of {fitted} trials; {len(room.test):,} readings of the other {held_out}")


if __name__ == "__main__":
    main()
