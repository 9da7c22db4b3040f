"""How the MONITOR benchmark runs: the operator stepped once per second, or in micro-batches as under Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64, Bools
from anabranch.columns.times import order_doubles
from anabranch.monitor import operator
from anabranch.monitor.combinations import Combinations
from anabranch.monitor.job import MonitorJob
from anabranch.monitor.predictions import Predictions
from anabranch.transport.operator import Outcome
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock, Progress
from benchmarks.engines import packets_of
from benchmarks.monitor.scenarios import Scenario
from benchmarks.monitor.scores import CurrentAnswers, Score, ideal_pairs, window_pairs

# ------------------------------------------------------------ once per second


@dataclass(slots=True)
class AccuracyRun:
    """The result of a run that is stepped once per second.

    Attributes
    ----------
    score : against the pairs that are near at the same instant, as in the paper
    window_score : against the pairs that are near within the window, as in the query
    tuples : reports per second
    seconds : processor time per second of stream
    kept : the maximum number of predictions that were kept
    """

    score: Score
    window_score: Score
    tuples: float
    seconds: float
    kept: int


def step_seconds(job: MonitorJob, scenario: Scenario) -> Iterator[tuple[float, Outcome, float]]:
    """Step a live operator once per second; yield the instant, the outcome and its processor time."""
    order = np.argsort(scenario.arrivals, kind="stable")
    rows, arrivals = scenario.report_rows().take(pa.array(order)), scenario.arrivals[order]
    live_operator = job.operator()
    for now in np.arange(0.0, scenario.vehicles.duration, 1.0):
        begin, end = np.searchsorted(arrivals, [now - 1.0, now], side="right")
        passed = int(order_doubles(np.array([now - scenario.most_delay]))[0])
        watermark = Progress.of_all(passed, len(job.layouts))
        start = time.process_time()
        packets = packets_of(job, rows.slice(begin, end - begin))
        outcome = live_operator.step(packets, watermark, ended=False)
        yield float(now), outcome, time.process_time() - start


def run_seconds(job: MonitorJob, scenario: Scenario) -> AccuracyRun:
    """Score the answer at every second."""
    within = float(job.spec.analysis.query.within)
    current, kept, seconds = CurrentAnswers(scenario.vehicles.sample), 0, []
    scores, window_scores = [], []
    for now, outcome, step_time in step_seconds(job, scenario):
        current.update(outcome.answers, now)
        pairs = current.at(now)
        scores.append(Score.of(pairs, ideal_pairs(scenario, now)))
        window_scores.append(Score.of(pairs, window_pairs(scenario, now, within)))
        kept = max(kept, outcome.counts.kept)
        seconds.append(step_time)
    mean_seconds = float(np.mean(seconds))
    return AccuracyRun(Score.mean(scores), Score.mean(window_scores), scenario.tuples, mean_seconds, kept)


# ------------------------------------------------------------ in micro-batches


class CountingCombinations(Combinations):
    """Counts the candidate pairs that the grid leaves."""

    counted = 0

    def with_new(self, held: Predictions, is_new: Bools) -> Iterator[I64]:
        """Yield and count all combinations."""
        for members in super().with_new(held, is_new):
            CountingCombinations.counted += len(members)
            yield members


class EveryPair(CountingCombinations):
    """The baseline without a grid: every new prediction is compared with every other one."""

    def _pairs(self, held: Predictions, one: int, other: int, firsts: I64, seconds: I64) -> Iterator[I64]:
        left, right, _ = self._comparisons(held, one, other, firsts, seconds)
        chunk_size = max(1, (1 << 18) // max(1, len(seconds)))
        for begin in range(0, len(firsts), chunk_size):
            chunk = slice(begin, begin + chunk_size)
            good = (left[0, chunk, None] != right[0]) & (left[1, chunk, None] < right[1])
            i, j = np.nonzero(good)
            yield np.stack([firsts[chunk][i], seconds[j]], axis=1)


@contextmanager
def combinations_replaced(replacement: type[CountingCombinations]) -> Iterator[None]:
    """Make operators find candidate pairs in another way."""
    original, operator.Combinations = operator.Combinations, replacement
    try:
        yield
    finally:
        operator.Combinations = original


@dataclass(slots=True)
class ThroughputRun:
    """The result of a run in micro-batches: seconds of stream, processor seconds by stage, and counts."""

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
        """Processor seconds per second of stream."""
        return (self.route + self.open + self.step + self.save) / self.stream


def run_micro_batches(
    job: MonitorJob, scenario: Scenario, batch: float, warm_up: float,
    combinations: type[CountingCombinations] = CountingCombinations, on_start: Callable[[], None] = lambda: None,
) -> ThroughputRun:  # fmt: skip
    """Run micro-batches through one bucket, each from state bytes to state bytes, as under Spark.

    Parameters
    ----------
    batch : the seconds of stream in a micro-batch
    warm_up : the seconds of stream that are not counted
    on_start : called when counting begins
    """
    rows, times = scenario.report_rows(), scenario.reports.t
    bucket, clock, state = job.operator(), Clock(job.layouts), None
    result = ThroughputRun()
    with combinations_replaced(combinations):
        for begin in np.arange(0.0, scenario.vehicles.duration, batch):
            if begin == warm_up:
                on_start()
            low, high = np.searchsorted(times, [begin - 1e-9, begin + batch - 1e-9])
            CountingCombinations.counted = 0
            marks = [time.process_time()]
            routed = route(rows.slice(low, high - low), 0, job, 1)
            marks.append(time.process_time())
            bucket.open(state)
            marks.append(time.process_time())
            watermark = clock.advance([routed.newest])
            outcome = bucket.step([(0, packet) for _, packet in routed.packets], watermark, ended=False)
            marks.append(time.process_time())
            state = bucket.save()
            marks.append(time.process_time())
            if begin < warm_up:
                continue
            result.stream += batch
            for name, seconds in zip(("route", "open", "step", "save"), np.diff(marks), strict=True):
                setattr(result, name, getattr(result, name) + seconds)
            result.predictions += high - low
            result.candidates += CountingCombinations.counted
            result.answers += outcome.answers.num_rows
            for count in outcome.answers["status"].value_counts().to_pylist():
                result.statuses[count["values"]] = result.statuses.get(count["values"], 0) + count["counts"]
            result.checksum += float(pc.sum(outcome.answers["valid_to"]).as_py() or 0.0)
            result.state, result.kept = max(result.state, len(state)), max(result.kept, outcome.counts.kept)
    return result
