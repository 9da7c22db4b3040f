"""Calibration of inferred streams: how often the most probable activity is the true one.

- `home_adl`: the activity of a person in each minute, from sensors that stay on. A third of the days is held out.
- `rfid_batteryless`: the activity of a person in each second with a reading of a tag without battery, from the antenna
  and what the tag measures. A third of the trials of each room is held out. There is a model for each room
  (`fit hmm --by room`), and for comparison one for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from anabranch.arrays import F64, I32
from anabranch.inference.fit import Smoothing, fit_hmm
from anabranch.inference.history import History, make_history, point_rows
from anabranch.inference.hmm import Hmm, Sensing
from anabranch.inference.infer import Inference, advance_keys
from anabranch.inference.labels import Labelled, truth_indexes
from anabranch.inference.tempering import fit_tempering
from benchmarks.calibration.results import Result

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

STAGES = 10

MINUTE = 60.0

#: What a tag measures, and the limits of low, middle and high of the categorical model.
MEASURED = ("acc_vert_g", "acc_front_g", "acc_lat_g", "rssi")
CUTS = {"acc_vert_g": (0.5, 0.9), "acc_front_g": (0.3, 0.5), "rssi": (-60.0, -54.0)}

#: The activity of a person is not known after a longer time without a reading; 99% of the gaps are shorter.
LONGEST_GAP = 10

METHODS = {"MARGINALS": "given all readings", "FILTER": "given the readings so far"}


@dataclass(frozen=True)
class Variant:
    """A model to compare: its name, the most stages of a location, and whether its likelihoods are tempered."""

    name: str
    stages: int = 1
    tempered: bool = False


PLAIN = Variant("plain HMM")
"""What `fit hmm` did before: point readings with one value, geometric stays, and exponent 1."""

VARIANTS = (
    Variant("stages", stages=STAGES),
    Variant("tempered", tempered=True),
    Variant("stages, tempered", stages=STAGES, tempered=True),
)


@dataclass(frozen=True)
class Task:
    """A data set with its history, the keys to hold out, and how a model is fitted to a part of the history."""

    data: str
    name: str
    history: History
    held_out: Sequence[int]
    fit: Callable[..., Hmm]


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """The results of all variants on both data sets."""
    for tasks in (_home_tasks, _tag_tasks):
        for seed, task, variant in tasks(seeds):
            yield from _compare(task, variant, seed)


# ------------------------------------------------------------ home_adl


def _home_tasks(seeds: Sequence[int]) -> Iterator[tuple[int, Task, Variant]]:
    folder = DATA / "home_adl"
    truth = _minutes(folder / "adls.csv", "activity")
    activations = _minutes(folder / "sensors.csv", "sensor")
    starts = _minutes(folder / "sensors.csv", "sensor", only_starts=True)
    fit = partial(fit_hmm, sensing=Sensing.DETECTION, smoothing=Smoothing(), initial="all")
    for seed in seeds:
        days = sorted({*truth["key"].to_pylist()})
        held_out = _third(days, seed)
        for variants, readings in (((PLAIN,), starts), ((Variant("HMM of activations"), *VARIANTS), activations)):
            history = make_history(truth, readings, MINUTE, between="idle")
            task = Task("home_adl", "activity in each minute", history, _codes(days, held_out), fit)
            for variant in variants:
                yield seed, task, variant


def _minutes(path: Path, column: str, only_starts: bool = False) -> pa.Table:
    """The rows of a file in each minute that they cover, with the day as the key; a few rows end before they start."""
    rows = pd.read_csv(path, parse_dates=["start", "end"])
    rows = rows[rows["end"] >= rows["start"]].sort_values("start")
    if only_starts:
        rows = rows.assign(end=rows["start"])
    table = pa.Table.from_pandas(rows[[column, "start", "end"]], preserve_index=False)
    points = point_rows(table, "start", "end", MINUTE).to_pandas()
    day = points["end"].dt.strftime("%Y-%m-%d")
    return pa.table({"key": day, column: points[column], "t": points["end"].astype("datetime64[us]")})


# ------------------------------------------------------------ rfid_batteryless


def _tag_tasks(seeds: Sequence[int]) -> Iterator[tuple[int, Task, Variant]]:
    """A model for each room, and for comparison one for both."""
    seconds = _seconds(pd.read_csv(DATA / "rfid_batteryless" / "reads.csv.gz"))
    rooms = [sorted({key for key in seconds["key"] if key.startswith(room)}) for room in ("d1", "d2")]
    tempered = VARIANTS[-1]
    normal = (Variant("Gaussian"), replace(tempered, name=f"Gaussian, {tempered.name}"))
    in_common = Variant("plain HMM, one for both rooms"), Variant("Gaussian, one for both rooms")
    for seed in seeds:
        held_out = {key for room in rooms for key in _third(room, seed)}
        for room in rooms:
            binned, measured = _tag_histories(seconds, room, held_out)
            yield from ((seed, binned, variant) for variant in (PLAIN, *VARIANTS))
            yield from ((seed, measured, variant) for variant in normal)
        for task, variant in zip(_tag_histories(seconds, [*rooms[0], *rooms[1]], held_out), in_common, strict=True):
            yield seed, task, variant


def _tag_histories(seconds: pd.DataFrame, trials: Sequence[str], held_out: set[str]) -> Iterator[Task]:
    """The history of some trials: with binned measurements, and with measurements as they are."""
    rows = seconds[seconds["key"].isin(trials)]
    truth = pa.Table.from_pandas(_filled(rows), preserve_index=False)
    for reader, measured in (("binned", ()), ("antenna", MEASURED)):
        readings = pa.Table.from_pandas(rows[["key", reader, *measured, "t"]], preserve_index=False)
        fit = partial(
            fit_hmm, sensing=Sensing.EMISSION, smoothing=Smoothing(alpha_unseen=0.2), initial="all", quantities=measured
        )
        history, codes = make_history(truth, readings, 1.0, measured), _codes(trials, held_out)
        yield Task("rfid_batteryless", "activity in each second with a reading", history, codes, fit)


def _seconds(reads: pd.DataFrame) -> pd.DataFrame:
    """One reading per second in which the tag answered: its most frequent antenna, and means of the measurements."""
    reads = reads.assign(t=np.floor(reads["t_s"]).astype(int)).rename(columns={"trial": "key"})
    seconds = reads.groupby(["key", "t"]).agg({**dict.fromkeys(MEASURED, "mean"), "activity": "last"}).reset_index()
    antennas = reads.groupby(["key", "t", "antenna"]).size().unstack(fill_value=0)
    antenna = antennas.idxmax(axis="columns").reset_index(drop=True).astype(str)
    binned = antenna.copy()
    for column, cuts in CUTS.items():
        binned += "/" + pd.Series(np.digitize(seconds[column], cuts)).astype(str)
    return seconds.assign(antenna=antenna, binned=binned, activity=seconds["activity"].astype(str))


def _filled(rows: pd.DataFrame) -> pd.DataFrame:
    """The activity of every second of each trial; up to `LONGEST_GAP` seconds after a reading, that of the reading."""
    trials = {}
    for key, trial in rows.groupby("key"):
        seconds = range(trial["t"].min(), trial["t"].max() + 1)
        trials[key] = trial.set_index("t")["activity"].reindex(seconds, method="ffill", limit=LONGEST_GAP).dropna()
    return pd.concat(trials, names=["key", "t"]).reset_index()[["key", "activity", "t"]]


# ------------------------------------------------------------ both


def _third(names: Sequence[str], seed: int) -> set[str]:
    """A third of the names, drawn with a seed."""
    return set(np.random.default_rng(seed).permutation(names)[: len(names) // 3].tolist())


def _codes(names: Sequence[str], chosen: set[str]) -> list[int]:
    """The codes of the chosen names; keys are numbered in the order of their rows."""
    return [code for code, name in enumerate(names) if name in chosen]


@dataclass(frozen=True)
class Learned:
    """A model that is fitted to a part of a data set, and the held-out part."""

    data: str
    hmm: Hmm
    truth: Labelled
    readings: Labelled
    seed: int


def learned_tags(seeds: Sequence[int]) -> Iterator[Learned]:
    """The plain models of `rfid_batteryless` and the trials that are held out, as in the table of this module."""
    for seed, task, variant in _tag_tasks(seeds):
        if variant is PLAIN:
            yield Learned(task.data, *_held_out(task, variant), seed)


def _compare(task: Task, variant: Variant, seed: int) -> Iterator[Result]:
    """Fit a variant to the history without the held-out keys, and infer these."""
    hmm, truth, readings = _held_out(task, variant)
    # Where the truth is filled between readings, only the steps of readings have a label.
    labelled = (
        np.unique(truth_indexes(truth, readings)) if task.data == "rfid_batteryless" else np.arange(len(truth.key))
    )
    for method, given in METHODS.items():
        p, location = _likeliest(hmm, method, truth, readings)
        right = location == truth.code
        yield Result(task.data, f"{task.name}, {given}", variant.name, seed, p[labelled], right[labelled])


def _held_out(task: Task, variant: Variant) -> tuple[Hmm, Labelled, Labelled]:
    """The model of a variant without the held-out keys, and the truth and the readings of these."""
    history = task.history
    learn = partial(task.fit, locations=history.locations, readers=history.readers, stages=variant.stages)
    test = np.isin(history.truth.key, task.held_out)
    test_readings = np.isin(history.readings.key, task.held_out)
    known, read = history.truth.where(~test), history.readings.where(~test_readings)
    hmm = learn(known, read)
    if variant.tempered:
        hmm = fit_tempering(known, read, learn).temper(hmm)
    return hmm, _sorted(history.truth.where(test)), history.readings.where(test_readings)


def _sorted(rows: Labelled) -> Labelled:
    return rows.where(np.lexsort((rows.step, rows.key)))


def _likeliest(hmm: Hmm, method: str, truth: Labelled, readings: Labelled) -> tuple[F64, I32]:
    """The probability of the most probable location of each known step, and the location."""
    known = probabilities_of(hmm, method, truth, readings)
    return known.max(axis=1), known.argmax(axis=1).astype(np.int32)


def probabilities_of(hmm: Hmm, method: str, truth: Labelled, readings: Labelled) -> F64:
    """(known steps, locations): the probability of each location in each known step."""
    firsts = np.flatnonzero(np.concatenate([[True], np.diff(truth.key) != 0]))
    lasts = np.append(firsts[1:], len(truth.key)) - 1
    # Every step of a key is inferred, from its first known location to its last, also those without a known one.
    step_starts = np.concatenate([[0], np.cumsum(truth.step[lasts] - truth.step[firsts] + 1)])
    shift = dict(zip(truth.key[firsts].tolist(), (step_starts[:-1] - truth.step[firsts]).tolist(), strict=True))
    index = readings.step + np.array([shift[key] for key in readings.key.tolist()], np.int64)
    order = np.argsort(index, kind="stable")
    inference = Inference(hmm, method)
    inferred = advance_keys(
        repeat(inference), [inference.start() for _ in firsts], step_starts,
        np.searchsorted(index[order], np.arange(step_starts[-1] + 1)).astype(np.int64), readings.code[order],
        None if readings.quantities is None else readings.quantities[order],
    )  # fmt: skip
    probabilities = np.zeros((step_starts[-1], len(hmm.locations)))
    probabilities[inferred.step, inferred.location] = inferred.p
    at_truth: F64 = probabilities[truth.step + np.array([shift[key] for key in truth.key.tolist()], np.int64)]
    return at_truth
