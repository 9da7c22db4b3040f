"""What the MONITOR benchmark runs: vehicles, the operator stepped by the second, and how its answers are scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.columns.times import order_doubles
from anabranch.language.parser import parse
from anabranch.monitor import operator
from anabranch.monitor.answers import INVALIDATED, TENTATIVE
from anabranch.monitor.choices import Choices
from anabranch.monitor.job import MonitorJob, make_job
from anabranch.monitor.predictions import Predictions
from anabranch.runtime.sources.schema import layouts_for
from anabranch.simulate.vehicles import NEAR, Options, Told, reports, trajectories, true_pairs
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Outcome
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock

Floats = npt.NDArray[np.float64]

_FINGERPRINT = "00" * 16

_WORKBOOK = """
    CREATE STREAM cars
      KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE
      MODEL PREDICTED ERROR {error} PERIOD {period};
    CREATE QUERY near AS
      MONITOR a, b FROM cars AS a, cars AS b
      WHERE ABS(a.x - b.x) <= {near} AND ABS(a.y - b.y) <= {near} AND a.car < b.car
      WITHIN {within} SEMANTICS EXPECTED {more};
    """


def job_of(vehicles: Options, within: float = 3.0, more: str = "") -> MonitorJob:
    """The query, ready to run live; `more` are clauses such as BUFFER."""
    text = _WORKBOOK.format(error=vehicles.error, period=vehicles.period, near=NEAR, within=within, more=more)
    catalog = Catalog()
    findings = declare(parse(text), catalog)
    if findings:
        raise ValueError(str(findings))
    query = bind(catalog.query("near"), catalog)
    return make_job([query], JobContext(layouts_for(query.streams), {}, _FINGERPRINT, live=True))


# ------------------------------------------------------------ vehicles


@dataclass(frozen=True, eq=False)
class Scenario:
    """Vehicles that were driven: where they were, and what they told."""

    vehicles: Options
    positions: Floats
    told: Told

    @property
    def tuples(self) -> float:
        """How many predictions are communicated, a second."""
        return len(self.told.t) / self.vehicles.duration


@cache
def scenario(vehicles: Options, seed: int, is_predicting: bool = True) -> Scenario:
    """Drive; without predictions a vehicle tells where it is once that is too far from where it said it was."""
    positions = trajectories(vehicles, np.random.default_rng(seed))
    return Scenario(vehicles, positions, (reports if is_predicting else plain_reports)(positions, vehicles))


def plain_reports(positions: Floats, vehicles: Options) -> Told:
    """What vehicles tell that predict nothing: a place, and rates of 0.

    Examples
    --------
    >>> places = np.array([[[0.0, 0.0]], [[20.0, 0.0]], [[40.0, 0.0]], [[40.0, 0.0]]])
    >>> told = plain_reports(places, Options(objects=1, duration=12.0, error=25.0, period=6.0))
    >>> told.t, told.places[:, 0], told.rates.any()
    (array([0., 6.]), array([ 0., 40.]), np.False_)
    """
    errors = vehicles.error
    last, since = positions[0].copy(), np.full(positions.shape[1], -np.inf)
    cars, times, places = [], [], []
    for t, now in zip(vehicles.times, positions, strict=True):
        is_told = (np.abs(now - last) > errors).any(axis=1) | (t - since >= vehicles.period - 1e-9)
        last[is_told], since[is_told] = now[is_told], t
        cars.append(1 + np.flatnonzero(is_told))
        times.append(np.full(len(cars[-1]), t))
        places.append(now[is_told])
    told = np.concatenate(places)
    return Told(np.concatenate(cars), np.concatenate(times), told, np.zeros_like(told))


def _table(told: Told) -> pa.Table:
    columns = {"car": told.car, "t": told.t}
    for place, name in enumerate(("x", "y")):
        columns[name] = np.ascontiguousarray(told.places[:, place])
        columns[f"{name}_rate"] = np.ascontiguousarray(told.rates[:, place])
    return pa.table(columns)


# ------------------------------------------------------------ the answer of an instant


def _numbers(column: pa.ChunkedArray, name: str) -> npt.NDArray[np.generic]:
    return pc.struct_field(column, name).to_numpy()


def pair_codes(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> I64:
    """Pairs of cars as numbers that can be compared."""
    return first.astype(np.int64) << 32 | second.astype(np.int64)


class Standing:
    """The answers that stand: said, not taken back, and not yet over.

    What is tentative was said, what is invalidated is taken back. What is validated is over, and need not be looked at:
    it ended before the watermark. Two predictions have one region here, so they name an answer.

    Parameters
    ----------
    sample : seconds from one measurement to the next
    """

    def __init__(self, sample: float) -> None:
        self._sample = sample
        self._name, self._pair = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._from, self._to = np.zeros(0), np.zeros(0)

    def take(self, answers: pa.Table, now: float) -> None:
        """The answers of a step."""
        status = answers["status"]
        gone = answers.filter(pc.equal(status, INVALIDATED))
        said = answers.filter(pc.equal(status, TENTATIVE))
        kept = (self._to > now) & ~np.isin(self._name, self._names(gone))
        first, second = (_numbers(said[name], "car") for name in "ab")
        self._name = np.concatenate([self._name[kept], self._names(said)])
        self._pair = np.concatenate([self._pair[kept], pair_codes(first, second)])
        self._from = np.concatenate([self._from[kept], said["valid_from"].to_numpy()])
        self._to = np.concatenate([self._to[kept], said["valid_to"].to_numpy()])

    def at(self, now: float) -> I64:
        """The pairs that match at an instant; an end is where a prediction no longer applies, so not part of it."""
        return np.unique(self._pair[(self._from <= now + 1e-9) & (self._to > now + 1e-9)])

    def _names(self, answers: pa.Table) -> I64:
        """The two predictions of each answer, car and number of the measurement, as one number."""
        names = np.zeros(answers.num_rows, np.int64)
        for side in "ab":
            number = np.rint(_numbers(answers[side], "t") / self._sample).astype(np.int64)
            names = names << 31 | _numbers(answers[side], "car") << 11 | number
        return names


# ------------------------------------------------------------ scores


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F-measure of an answer, or their means over answers."""

    precision: float
    recall: float
    f: float

    @staticmethod
    def of(found: I64, ideal: I64) -> Score:
        """Of one answer; nothing said is precise, and nothing to find is found.

        Examples
        --------
        >>> Score.of(np.array([1, 2, 3, 4]), np.array([2, 3, 9]))
        Score(precision=0.5, recall=0.6666666666666666, f=0.5714285714285714)
        """
        right = len(np.intersect1d(found, ideal, assume_unique=True))
        precision = right / len(found) if len(found) else 1.0
        recall = right / len(ideal) if len(ideal) else 1.0
        total = precision + recall
        return Score(precision, recall, 2 * precision * recall / total if total else 0.0)

    @staticmethod
    def mean(scores: list[Score]) -> Score:
        """The means of each over instants."""
        return Score(
            *(float(np.mean([getattr(each, name) for each in scores])) for name in ("precision", "recall", "f"))
        )


@lru_cache(maxsize=512)
def ideal_pairs(of: Scenario, now: float) -> I64:
    """The pairs that are near each other by the last GPS measurements."""
    pairs = true_pairs(of.positions, of.vehicles, now)
    return pair_codes(pairs[:, 0], pairs[:, 1])


@lru_cache(maxsize=512)
def window_pairs(of: Scenario, now: float, within: float) -> I64:
    """The pairs of which one, by its last measurement, is near where the other was measured in the window before."""
    from scipy.spatial import cKDTree

    times = of.vehicles.times
    last = int(np.searchsorted(times, now + 1e-9, side="right")) - 1
    here = cKDTree(of.positions[last])
    found = [ideal_pairs(of, now)]
    for earlier in range(last - 1, -1, -1):
        if times[last] - times[earlier] > within + 1e-9:
            break
        near = here.sparse_distance_matrix(cKDTree(of.positions[earlier]), NEAR, p=np.inf, output_type="ndarray")
        first, second = near["i"] + 1, near["j"] + 1
        apart = first != second
        found.append(pair_codes(np.minimum(first, second)[apart], np.maximum(first, second)[apart]))
    return np.unique(np.concatenate(found))


# ------------------------------------------------------------ by the second


@dataclass(slots=True)
class Followed:
    """What came of following a scenario by the second.

    Attributes
    ----------
    score : against the pairs that are near at the same instant, as in the paper
    window_score : against the pairs that are near within the window, which is what was asked
    seconds : of the processor, a second of stream
    """

    score: Score
    window_score: Score
    tuples: float
    seconds: float
    kept: int


def seconds_of(job: MonitorJob, of: Scenario) -> Iterator[tuple[float, Outcome, float]]:
    """Step a live operator from second to second: the instant, what came of it, and the processor time it took."""
    rows, told = _table(of.told), of.told.t
    operator = job.operator()
    for now in np.arange(0.0, of.vehicles.duration, 1.0):
        begin, end = np.searchsorted(told, [now - 1.0, now], side="right")
        watermark = int(order_doubles(np.array([now]))[0])
        start = time.process_time()
        routed = route(rows.slice(begin, end - begin), 0, job, 1)
        outcome = operator.step([(0, blob) for _, blob in routed.packets], watermark, ended=False)
        yield float(now), outcome, time.process_time() - start


def follow(job: MonitorJob, of: Scenario) -> Followed:
    """Score the answer of every second."""
    within = float(job.analysis.query.within)
    standing, kept, seconds = Standing(of.vehicles.sample), 0, []
    plain, windowed = [], []
    for now, outcome, taken in seconds_of(job, of):
        standing.take(outcome.answers, now)
        found = standing.at(now)
        plain.append(Score.of(found, ideal_pairs(of, now)))
        windowed.append(Score.of(found, window_pairs(of, now, within)))
        kept = max(kept, outcome.counts.kept)
        seconds.append(taken)
    return Followed(Score.mean(plain), Score.mean(windowed), of.tuples, float(np.mean(seconds)), kept)


# ------------------------------------------------------------ as fast as it goes


class CountingChoices(Choices):
    """Counts the pairs that the grid leaves to be compared."""

    counted = 0

    def of(self, held: Predictions, fresh: Bools) -> Iterator[I64]:
        """All choices, counted."""
        for members in super().of(held, fresh):
            CountingChoices.counted += len(members)
            yield members


class EveryPair(CountingChoices):
    """The peer: every new prediction is compared with every other that is held."""

    def _pairs(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> Iterator[I64]:
        left, right, how = self._comparisons(held, one, other, firsts, seconds)
        at_once = max(1, (1 << 18) // max(1, len(seconds)))
        for begin in range(0, len(firsts), at_once):
            some = slice(begin, begin + at_once)
            good = (left[0, some, None] != right[0]) & (left[1, some, None] < right[1])
            i, j = np.nonzero(good)
            yield np.stack([firsts[some][i], seconds[j]], axis=1)


@contextmanager
def choosing(kind: type[CountingChoices]) -> Iterator[None]:
    """Let operators find what to compare in another way."""
    real, operator.Choices = operator.Choices, kind
    try:
        yield
    finally:
        operator.Choices = real


@dataclass(slots=True)
class Driven:
    """What came of a stretch of a stream: seconds of stream, processor seconds by stage, and what was found."""

    stream: float = 0.0
    route: float = 0.0
    open: float = 0.0
    step: float = 0.0
    save: float = 0.0
    predictions: int = 0
    candidates: int = 0
    answers: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    state: int = 0
    kept: int = 0
    checksum: float = 0.0

    @property
    def total(self) -> float:
        """Processor seconds a second of stream."""
        return (self.route + self.open + self.step + self.save) / self.stream


def drive(
    job: MonitorJob, of: Scenario, batch: float, warm: float, kind: type[CountingChoices] = CountingChoices,
    watch: Callable[[], None] = lambda: None,
) -> Driven:  # fmt: skip
    """Micro-batches through one bucket, each from state bytes to state bytes, as under Spark.

    Parameters
    ----------
    batch : how many seconds of stream come together
    warm : seconds of stream that are not counted
    watch : called where counting begins
    """
    rows, told = _table(of.told), of.told.t
    operator, clock, state = job.operator(), Clock(job.layouts), None
    done = Driven()
    with choosing(kind):
        for begin in np.arange(0.0, of.vehicles.duration, batch):
            if begin == warm:
                watch()
            low, high = np.searchsorted(told, [begin - 1e-9, begin + batch - 1e-9])
            CountingChoices.counted = 0
            marks = [time.process_time()]
            routed = route(rows.slice(low, high - low), 0, job, 1)
            marks.append(time.process_time())
            operator.open(state)
            marks.append(time.process_time())
            watermark = clock.advance([routed.newest])
            outcome = operator.step([(0, blob) for _, blob in routed.packets], watermark, ended=False)
            marks.append(time.process_time())
            state = operator.save()
            marks.append(time.process_time())
            if begin < warm:
                continue
            done.stream += batch
            for name, taken in zip(("route", "open", "step", "save"), np.diff(marks), strict=True):
                setattr(done, name, getattr(done, name) + taken)
            done.predictions += high - low
            done.candidates += CountingChoices.counted
            done.answers += outcome.answers.num_rows
            for each in outcome.answers["status"].value_counts().to_pylist():
                done.statuses[each["values"]] = done.statuses.get(each["values"], 0) + each["counts"]
            done.checksum += float(pc.sum(outcome.answers["valid_to"]).as_py() or 0.0)
            done.state, done.kept = max(done.state, len(state)), max(done.kept, outcome.counts.kept)
    return done
