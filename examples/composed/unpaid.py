"""Goods that left the shop unpaid, confirmed by a camera: simulated, because no public data have both.

The shop is that of `anabranch simulate shop`. In addition, the antenna at the exit sometimes reads goods on a shelf
near it, although nobody carries them out, and a camera films the exit zone. So a reading at the exit alone does not
prove that an item left.
"""

# ruff: noqa: T201 - an example prints

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import anabranch as ab
from anabranch.evaluation import Bin, Quality, bins_of, qualities
from anabranch.inference.fit import fit_hmm
from anabranch.inference.hmm import Hmm, Sensing
from anabranch.inference.labels import Labelled
from anabranch.inference.model import write_hmm
from anabranch.simulate.shop import EXIT, Options, simulate, simulate_trips

# shared.py is in the folder of all examples.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from shared import calibration_lines, quality_header, quality_line

WORKBOOK = Path(__file__).with_name("unpaid.abq")

SHOP = Options(items=6_000, items_per_hour=30, put_back=0.3)
STRAY = 0.8
"""The share of items put back that the antenna at the exit reads from their shelf."""

VISITS_PER_HOUR = 20
"""People in the exit zone who carry nothing with a tag."""

FRAME = 5.0
"""Seconds from one frame to the next."""

STATES, DETECTED = ["empty", "present"], ["nothing", "person"]
RIGHT = (0.95, 0.9)
"""The share of frames in which the detector is right: without and with a person."""

THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, slots=True)
class Day:
    """The readings and frames, and the truth.

    Attributes
    ----------
    reads : tag, reader, t
    frames : zone, detected, t
    present : whether there was a person, for each frame
    exits : the readings at the exit: tag, t, unpaid (whether the item was not paid for before), and stolen
    """

    reads: pd.DataFrame
    frames: pd.DataFrame
    present: np.ndarray
    exits: pd.DataFrame


def simulate_day(options: Options, seed: int) -> Day:
    """Simulate the shop, stray readings at the exit, and the camera."""
    shop = simulate(options, seed)
    rng = np.random.default_rng([seed, 1])
    reads, trips = shop.reads.to_pandas(), shop.truth.to_pandas()
    reads = pd.concat([reads, _stray_reads(options, trips, seed, rng)], ignore_index=True)
    frames, present = _film(trips["exit"].dropna(), reads["t"].min(), reads["t"].max(), rng)
    exits = reads[reads["reader"] == "exit"].merge(trips[["tag", "checkout", "stolen"]], on="tag")
    exits = exits.assign(unpaid=~(exits["checkout"] < exits["t"]))
    return Day(reads, frames, present, exits[["tag", "t", "unpaid", "stolen"]])


def _stray_reads(options: Options, trips: pd.DataFrame, seed: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return readings at the exit of items that were put back later: after the shortest stay, before they were."""
    times = simulate_trips(options, np.random.default_rng(seed)).times
    stay = (times[:, EXIT] - times[:, 0])[trips["tag"].str[4:].astype(int) - 1]
    at = rng.uniform(60e6 * options.shortest, stay).astype(np.int64)
    stray = trips[trips["exit"].isna() & (rng.random(len(trips)) < STRAY)]
    return pd.DataFrame(
        {"tag": stray["tag"], "reader": "exit", "t": stray["shelf"] + pd.to_timedelta(at[stray.index], unit="us")}
    )


def _film(
    exits: pd.Series, begin: pd.Timestamp, end: pd.Timestamp, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the frames, and whether there is a person in each: around each exit, and at random times."""
    seconds = (exits - begin).dt.total_seconds().to_numpy()
    length = (end - begin).total_seconds() + 60
    visits = rng.uniform(0, length, rng.poisson(VISITS_PER_HOUR * length / 3_600))
    middle = np.concatenate([seconds, visits])
    arrive, leave = middle - rng.uniform(5, 15, len(middle)), middle + rng.uniform(5, 15, len(middle))
    t = np.arange(0, length, FRAME)
    steps = np.zeros(len(t) + 1, np.int64)
    np.add.at(steps, np.searchsorted(t, arrive), 1)
    np.add.at(steps, np.searchsorted(t, leave), -1)
    present = np.cumsum(steps[:-1]) > 0
    detected = present ^ (rng.random(len(t)) >= np.array(RIGHT)[present.astype(int)])
    times = begin.floor("s") + pd.to_timedelta((t * 1e6).astype(np.int64), unit="us")
    frames = pd.DataFrame({"zone": "exit", "detected": np.array(DETECTED)[detected.astype(int)], "t": times})
    return frames, present


def fit(history: Day) -> Hmm:
    """Fit the model of the camera to the labelled frames of another day."""
    step = np.arange(len(history.frames))
    key = np.zeros(len(step), np.int64)
    detected = (history.frames["detected"] == DETECTED[1]).to_numpy(np.int32)
    truth = Labelled(key, step, history.present.astype(np.int32))
    return fit_hmm(truth, Labelled(key, step, detected), STATES, DETECTED, Sensing.EMISSION, initial="all", stages=4)


def write(day: Day, hmm: Hmm, folder: Path) -> Path:
    """Write the readings, the frames and the model, and a copy of the workbook; return its path."""
    for name, rows in (("reads", day.reads), ("frames", day.frames)):
        rows.assign(t=rows["t"].dt.as_unit("us")).to_parquet(folder / f"{name}.parquet", index=False)
    write_hmm(hmm, folder / "model", "state", "detected")
    return Path(shutil.copy(WORKBOOK, folder))


def ask(day: Day, hmm: Hmm) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the answers of `unpaid` and `confirmed`: tag, t (of the reading at the exit), probability, and more."""
    with tempfile.TemporaryDirectory(prefix="anabranch-unpaid-") as folder:
        session = ab.Session()
        session.execute_file(str(write(day, hmm, Path(folder))))
        unpaid, confirmed = (session.run(name).toArrow().flatten().to_pandas() for name in ("unpaid", "confirmed"))
    unpaid = unpaid.rename(columns={"z.tag": "tag"})[["tag", "t", "probability"]]
    names = {"theft.tag": "tag", "theft.t": "t", "person.t": "frame", "method": "method"}
    return unpaid, confirmed.drop(columns="t").rename(columns=names)[["tag", "t", "frame", "probability"]]


def truth_of(confirmed: pd.DataFrame, day: Day) -> pd.Series:
    """Return which answers of `confirmed` are true: the item was unpaid, and there was a person in both frames."""
    unpaid = confirmed.merge(day.exits, on=["tag", "t"], how="left")["unpaid"].to_numpy(bool)
    number = pd.Index(day.frames["t"]).get_indexer(confirmed["frame"])
    return pd.Series(unpaid & day.present[number] & day.present[number - 1])


def reliability(day: Day, unpaid: pd.DataFrame, confirmed: pd.DataFrame) -> Iterator[tuple[str, list[Bin]]]:
    """Yield the calibration of both queries."""
    paid = unpaid.merge(day.exits, on=["tag", "t"], how="left")["unpaid"].to_numpy(bool)
    yield "unpaid", bins_of(unpaid["probability"].to_numpy(), paid, bins=5)
    yield "confirmed", bins_of(confirmed["probability"].to_numpy(), truth_of(confirmed, day).to_numpy(), bins=5)


def thefts(day: Day, answers: pd.DataFrame, thresholds: Sequence[float] = THRESHOLDS) -> list[Quality]:
    """Return how well answers find the stolen goods that were read at the shelf and at the exit."""
    taken = day.reads.loc[day.reads["reader"] == "shelf", "tag"]
    stolen = day.exits[day.exits["stolen"] & day.exits["tag"].isin(taken)]
    tables = (pa.Table.from_pandas(rows, preserve_index=False) for rows in (answers, stolen[["tag", "t"]]))
    return qualities(*tables, "tag", thresholds, within=0)


def report(day: Day, unpaid: pd.DataFrame, confirmed: pd.DataFrame) -> Iterator[str]:
    """Yield the comparison with the truth."""
    yield f"{len(day.reads):,} readings, {len(day.frames):,} frames"
    yield f"{len(unpaid):,} answers of unpaid, {len(confirmed):,} of confirmed"
    for name, bins in reliability(day, unpaid, confirmed):
        yield from ("", f"{name}: probability, and share that is true", *calibration_lines(bins))
    for name, answers in (("unpaid", unpaid), ("confirmed", confirmed)):
        yield from ("", f"stolen goods by {name}", quality_header())
        for quality in thefts(day, answers):
            yield quality_line(f"probability > {quality.threshold:g}", quality)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(
        description="Simulate a shop with a camera, and compare the answers with the truth."
    )
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    day, history = simulate_day(SHOP, seed), simulate_day(SHOP, seed + 1)
    print("\n".join(report(day, *ask(day, fit(history)))))


if __name__ == "__main__":
    main()
