"""RELATE with lost ends: which pairs of real intervals intersect, if 20 % of the ends are lost.

Each point event is lost with probability 0.2. The distributions of durations and gaps are learned by class from what
is left of the other days (`home_adl`) or the other journeys (`wmata_bus`). Only pairs with a lost event are scored,
because the answers about the others are certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from anabranch.arrays import BEGINNING, F64, I64, Bools
from anabranch.columns.times import TimeKind
from anabranch.evaluation.learning import learn_map
from anabranch.relate.analysis import RelateAnalysis
from anabranch.relate.assembly import IntervalRows, assemble
from anabranch.relate.fit import CLAUSES, MOST_K, fit_durations, lengths_of
from anabranch.relate.pairs import relate
from anabranch.relate.windows import Windows
from anabranch.transport.layout import SegmentLaws, SegmentTimes
from benchmarks.calibration.results import Result
from benchmarks.engines import make_job

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

#: The share of point events that is lost.
LOST = 0.2

#: The largest k of ERLANG that each method learns; None for the law without distributions.
METHODS: Mapping[str, int | None] = {"uniform": None, "exponential by class": 1, "erlang by class": MOST_K}

#: The journeys of buses are held out in this many parts.
PARTS = 2


@dataclass(frozen=True)
class Intervals:
    """Segments with whole seconds as times, sorted by entity and time.

    `entity` numbers the entities from 0, `part` is the held-out part of each of them, `of_class` its class.
    """

    entity: I64
    start: I64
    end: I64
    part: I64
    of_class: I64

    @property
    def times(self) -> I64:
        """The times of the point events."""
        return np.stack([self.start, self.end], axis=1).ravel()


@dataclass(frozen=True)
class Task:
    """Pairs of entities of two sets of intervals (or twice the same).

    The part of the second entity of a pair is that of the first plus `shift`.
    """

    data: str
    task: str
    first: Intervals
    second: Intervals
    pairs: I64
    horizon: tuple[int, int]
    shift: int = 0


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """The probabilities of every method, for every data set and seed."""
    for task in (_home(0), _home(1), _buses()):
        true = _true(task)
        for seed in seeds:
            yield from _results(task, true, seed)


def _results(task: Task, true: Bools, seed: int) -> Iterator[Result]:
    random = np.random.default_rng(seed)
    lost_first = random.random(len(task.first.times)) < LOST
    lost_second = lost_first if task.second is task.first else random.random(len(task.second.times)) < LOST
    sides = [(task.first, lost_first), (task.second, lost_second)]
    uncertain = np.logical_or(*(
        np.bincount(np.repeat(side.entity, 2), lost)[task.pairs[:, number]] > 0
        for number, (side, lost) in enumerate(sides)
    ))  # fmt: skip
    pairs, truth = task.pairs[uncertain], true[uncertain]
    part = task.first.part[pairs[:, 0]]
    for method, most_k in METHODS.items():
        probabilities = np.zeros(len(pairs))
        for held_out in np.unique(part):
            chosen = part == held_out
            parts = held_out, (held_out + task.shift) % (task.second.part.max() + 1)
            first, second = (
                _windows(side, lost, task.horizon, of_side, most_k)
                for (side, lost), of_side in zip(sides, parts, strict=True)
            )
            probabilities[chosen] = relate(_intersects(), False, first, second, pairs[chosen]).probability
        yield Result(task.data, task.task, method, seed, probabilities, truth)
    # A map needs true answers of every probability; the buses of a part have too few.
    if task.data == "home_adl":
        calibrated = _calibrated(probabilities, truth, part)
        yield Result(task.data, task.task, f"{method}, calibrated", seed, calibrated, truth)


def _calibrated(probabilities: F64, true: Bools, part: I64) -> F64:
    """The probabilities after a monotone map that was learned from the other parts, as CALIBRATED BY does."""
    calibrated = np.zeros(len(probabilities))
    for held_out in np.unique(part):
        others = part != held_out
        calibration = learn_map(probabilities[others], true[others])
        calibrated[~others] = calibration.apply(probabilities[~others])
    return calibrated


def _windows(side: Intervals, lost: Bools, horizon: tuple[int, int], part: int, most_k: int | None) -> Windows:
    """The entities, with the distributions learned from the other parts."""
    if most_k is None:
        return _assembled(side, lost, horizon, (None, None))
    return _assembled(side, lost, horizon, _learned(side, lost, horizon, part, most_k))


def _learned(side: Intervals, lost: Bools, horizon: tuple[int, int], part: int, most_k: int) -> SegmentLaws:
    others = np.flatnonzero(side.part != part)
    windows = _assembled(side, lost, horizon, (None, None)).select(others)
    names = [str(number) for number in range(side.of_class.max() + 1)]
    lengths = lengths_of(windows, TimeKind.INTEGER, np.repeat(side.of_class[others], windows.lengths), len(names))
    fits = fit_durations(lengths, names, most_k)
    by_clause = [tuple((fit.name, fit.k, fit.mean) for fit in fits if fit.clause == clause) for clause in CLAUSES]
    duration, gap = (SegmentTimes(column="class", classes=laws) if laws else None for laws in by_clause)
    return duration, gap


def _assembled(side: Intervals, lost: Bools, horizon: tuple[int, int], laws: SegmentLaws) -> Windows:
    n = 2 * len(side.entity)
    entity = np.repeat(side.entity, 2)
    seq = np.arange(n) - np.searchsorted(entity, entity) + 1
    t = np.where(lost, BEGINNING, side.times)
    last = np.bincount(entity)[entity]
    # The number of a class in `SegmentTimes`; 0 if it has none.
    numbers = [_class_numbers(law, side.of_class[entity]) for law in laws]
    columns = {"seq": seq, "t": t, "length": last, "segment_mean": numbers[0], "gap_mean": numbers[1]}
    rows = IntervalRows.of(entity, columns)
    return assemble(rows, int(entity[-1]) + 1, horizon, laws=laws).windows


def _class_numbers(law: SegmentTimes | None, of_class: I64) -> I64:
    names = [] if law is None else [name for name, _, _ in law.classes]
    others = names.index("") + 1 if "" in names else 0
    numbers = [names.index(str(c)) + 1 if str(c) in names else others for c in range(of_class.max() + 1)]
    return np.array(numbers)[of_class]


def _true(task: Task) -> Bools:
    """Whether some segments of each pair intersect."""
    parts = [
        np.split(np.arange(len(side.entity)), np.flatnonzero(np.diff(side.entity)) + 1)
        for side in (task.first, task.second)
    ]
    true = np.zeros(len(task.pairs), bool)
    for number, (a, b) in enumerate(task.pairs):
        x, y = parts[0][a], parts[1][b]
        before = task.first.end[x][:, None] < task.second.start[y]
        after = task.first.start[x][:, None] > task.second.end[y]
        true[number] = not (before | after).all()
    return true


@cache
def _intersects() -> RelateAnalysis:
    """The query of both tasks."""
    workbook = """
        CREATE STREAM intervals KEY (id INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq;
        CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM intervals AS a, intervals AS b WHERE a.id < b.id;
    """
    return make_job(workbook, "q").spec.analysis


# ------------------------------------------------------------ the data


def _home(shift: int) -> Task:
    """Activities of one person, and sensors: an entity has the segments of one activity or sensor in one day.

    With `shift`, the sensors are those of another day, at the same time of day. Then the two entities of a pair are
    independent, as RELATE supposes. On the same day they are not: who watches television does not open the fridge.
    """
    first, second = (
        _intervals(_read(DATA / "home_adl" / file, name), ["day", name], "day", name)
        for file, name in (("adls.csv", "activity"), ("sensors.csv", "sensor"))
    )
    pairs = np.argwhere((first.part[:, None] + shift) % (second.part.max() + 1) == second.part)
    task = f"which activities and sensors of {'different days' if shift else 'a day'} intersect, 20 % of the ends lost"
    latest = int(max(first.end.max(), second.end.max()))
    return Task("home_adl", task, first, second, pairs, (0, latest + 1), shift)


def _read(path: Path, name: str) -> pd.DataFrame:
    """Segments in seconds since midnight of the day on which they begin."""
    rows = pd.read_csv(path, parse_dates=["start", "end"])
    day = rows["start"].dt.normalize()
    table = pd.DataFrame({"day": day, name: rows[name]})
    for end in ("start", "end"):
        table[end] = (rows[end] - day).dt.total_seconds().astype(int)
    return table[table["end"] > table["start"]]  # three activities end before they begin


def _buses() -> Task:
    """Stays of buses at stops: the reports of a journey from a stop, from the first to the last.

    The first and the last stop of a journey are left out, because buses wait there.
    """
    feed = pd.read_csv(DATA / "wmata_bus" / "wmata_gtfsrt_021626.csv.gz", index_col=0)
    feed = feed.rename(columns=lambda name: name.removeprefix("vehicle."))
    sequence = feed["current_stop_sequence"].groupby(feed["trip.trip_id"])
    between = (feed["current_stop_sequence"] > sequence.transform("min")) & (
        feed["current_stop_sequence"] < sequence.transform("max")
    )
    at_stop = feed[between & (feed["current_status"] == 1)]
    keys = ["stop_id", "trip.trip_id", "trip.route_id"]
    stays = at_stop.groupby(keys)["timestamp"].agg(start="min", end="max").reset_index()
    stays = stays[stays["end"] > stays["start"]].set_axis(["stop", "journey", "route", "start", "end"], axis="columns")
    stays[["start", "end"]] -= stays["start"].min()
    intervals = _intervals(
        stays.assign(part=pd.factorize(stays["journey"])[0] % PARTS), ["stop", "journey"], "part", "route"
    )
    stop = stays.sort_values(["stop", "journey"])["stop"].to_numpy()
    pairs = np.argwhere(np.triu(stop[:, None] == stop, 1) & (intervals.part[:, None] == intervals.part))
    task = "which buses are at a stop together, 20 % of the ends lost"
    return Task("wmata_bus", task, intervals, intervals, pairs, (0, int(stays["end"].max()) + 1))


def _intervals(rows: pd.DataFrame, keys: list[str], part: str, of_class: str) -> Intervals:
    rows = rows.sort_values([*keys, "start"], ignore_index=True)
    entity = rows.groupby(keys).ngroup().to_numpy()
    first = np.flatnonzero(np.diff(entity, prepend=-1))
    times = (rows[end].to_numpy(np.int64) for end in ("start", "end"))
    parts, classes = (pd.factorize(rows[name], sort=True)[0].astype(np.int64)[first] for name in (part, of_class))
    return Intervals(entity.astype(np.int64), *times, parts, classes)
