"""SEQUENCE on real process logs: 20 % of the occurrences of one activity are removed, and asked for.

For every case with a first event x and a later event z, the gap between them either has the activity y or not. A gap
without a reading of y is asked for: did y happen? Cases are divided at random into history and test. If y happened
several times in a gap, all of them are removed together.

    python -m benchmarks.calibration.sequence      prints how well `fit delays` recovers the removed share
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from scipy import optimize, special

from anabranch.arrays import F64, Bools
from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.language.parser import parse
from anabranch.sequence.gaps import Between, gap_table
from anabranch.sequence.likelihood import ranked
from anabranch.sequence.occurrence import occurrence_table
from anabranch.sequence.occurrence_fit import GapLengths, Occurrence, Stated, estimate
from anabranch.sequence.query import BoundComponent, BoundDelay, BoundSequence, GivenDelay
from benchmarks.calibration.results import Result

DATA = Path(__file__).parents[3] / "shared" / "data"

#: The share of the events that is removed, and of the cases that are history.
REMOVED, HISTORY = 0.2, 0.5

#: By data set: the activities x, y and z.
TASKS = {
    "hospital_billing": [
        ("NEW", "CHANGE DIAGN", "FIN"),
        ("NEW", "CHANGE DIAGN", "DELETE"),
        ("RELEASE", "CODE OK", "BILLED"),
        ("FIN", "REOPEN", "BILLED"),
    ],
    "traffic_fines": [
        ("Create Fine", "Send Fine", "Payment"),
        ("Create Fine", "Insert Fine Notification", "Payment"),
        ("Create Fine", "Add penalty", "Payment"),
        ("Insert Fine Notification", "Add penalty", "Payment"),
    ],
}

#: Activities that always happen between the others: MISS alone is asked for.
CERTAIN_TASKS = {
    "hospital_billing": [("FIN", "RELEASE", "CODE OK"), ("NEW", "FIN", "BILLED")],
}

#: A query with the components of a task.
WORKBOOK = f"""
    CREATE STREAM log KEY (case_id TEXT) VALUE (activity TEXT) TIME t DOUBLE FROM 'log.csv';
    CREATE QUERY q AS
      SEQUENCE (x, y, z) FROM log
      WHERE x.activity = 'x' AND y.activity = 'y' AND z.activity = 'z'
        AND x.case_id = y.case_id AND y.case_id = z.case_id
      MISS y {REMOVED}
      OCCURS y 0.5
      DELAY y EXPONENTIAL(1), z EXPONENTIAL(1)
      WITHIN 100
      SCORING POSTERIOR;
"""

Predict = Callable[[F64], F64]


class Gaps(NamedTuple):
    """The gaps from x to z.

    Attributes
    ----------
    length : of each gap, in seconds
    delay : from x to the first y; NaN if y did not happen
    """

    length: F64
    delay: F64


@cache
def events_of(data: str) -> dict[str, tuple[list[str], F64]]:
    """By case: the activities and their times, in order."""
    table = csv.read_csv(DATA / data / f"{data}.csv.gz")
    times = pc.cast(table["timestamp"], pa.timestamp("s")).cast(pa.int64()).to_numpy().astype(np.float64)
    cases: dict[str, tuple[list[str], list[float]]] = {}
    for case, activity, time in zip(
        table["case_id"].to_pylist(), table["activity"].to_pylist(), times.tolist(), strict=True
    ):
        activities, moments = cases.setdefault(str(case), ([], []))
        activities.append(activity)
        moments.append(time)
    return {case: (activities, np.array(moments)) for case, (activities, moments) in cases.items()}


@cache
def gaps_of(data: str, x: str, y: str, z: str) -> Gaps:
    """The gap of each case: from its first x to the first z after it."""
    rows = []
    for activities, times in events_of(data).values():
        starts = [t for activity, t in zip(activities, times, strict=True) if activity == x]
        ends = [t for activity, t in zip(activities, times, strict=True) if activity == z and starts and t > starts[0]]
        if not ends:
            continue
        between = [
            t for activity, t in zip(activities, times, strict=True) if activity == y and starts[0] < t < ends[0]
        ]
        rows.append((ends[0] - starts[0], between[0] - starts[0] if between else np.nan))
    return Gaps(*(np.array(column, np.float64) for column in zip(*rows, strict=True)))


class Sample(NamedTuple):
    """Gaps with events removed: which gaps are history, where y happened, and where it was read."""

    gaps: Gaps
    history: Bools
    happened: Bools
    read: Bools


def sample(gaps: Gaps, seed: int) -> Sample:
    """Remove events of y at random, and divide the cases."""
    rng = np.random.default_rng(seed)
    happened = ~np.isnan(gaps.delay)
    kept, history = rng.random((2, len(happened)))
    return Sample(gaps, history < HISTORY, happened, happened & (kept >= REMOVED))


# ---------------------------------------------------------------- methods


def clock(drawn: Sample) -> Predict:
    """The posterior without OCCURS: the delay of y alone says whether it happened."""
    delays = drawn.gaps.delay[drawn.history & drawn.read]
    best = ranked(delays)[0]
    table = gap_table([Between(False, REMOVED, BoundDelay(best.law, best.parameters))], None, True)
    return table.at


def posterior(fit: Occurrence) -> Predict:
    """The posterior with OCCURS, and the laws of the gap WITH and WITHOUT y."""
    laws = tuple(
        GivenDelay(happened, frozenset("y"), BoundDelay("EMPIRICAL", atoms=tuple(lengths)))
        for happened, lengths, _ in fit.laws()
    )
    y, z = components()
    return occurrence_table([replace(y, occurs=fit.occurs)], replace(z, given=laws), None).at


@cache
def components() -> tuple[BoundComponent, BoundComponent]:
    """The components y and z of a query; their DELAY is not used if the whole gap has laws."""
    catalog = Catalog()
    declare(parse(WORKBOOK), catalog)
    _, y, z = cast(BoundSequence, bind(catalog.query("q"), catalog)).components
    return y, z


def from_complete(drawn: Sample) -> Occurrence:
    """What a complete history says: nothing of it was lost."""
    length, history = drawn.gaps.length, drawn.history
    lengths = GapLengths("z", length[history & drawn.happened], length[history & ~drawn.happened])
    return estimate("y", lengths, Stated(miss={"y": (0.0, 0.0)}))


def from_lossy(drawn: Sample, stated: Stated) -> Occurrence:
    """What a history says of which events were lost, too."""
    length, history = drawn.gaps.length, drawn.history
    return estimate("y", GapLengths("z", length[history & drawn.read], length[history & ~drawn.read]), stated)


def logistic(lengths: F64, true: Bools) -> Predict:
    """A logistic regression on the logarithm of the gap."""
    logs = np.log(lengths)
    mean, deviation = logs.mean(), logs.std() or 1.0

    def loss(weights: F64) -> float:
        linear = weights[0] + weights[1] * (logs - mean) / deviation
        return float(np.logaddexp(0.0, linear).sum() - linear[true].sum() + 1e-3 * weights @ weights)

    constant, slope = optimize.minimize(loss, np.zeros(2)).x
    return lambda x: special.expit(constant + slope * (np.log(x) - mean) / deviation)


def isotonic(lengths: F64, true: Bools) -> Predict:
    """An isotonic regression on the gap, rising or falling, whichever fits better."""
    fits = []
    for sign in (1.0, -1.0):
        values, index = np.unique(sign * lengths, return_inverse=True)
        counts = np.bincount(index).astype(np.float64)
        shares = np.bincount(index, true) / counts
        fit = optimize.isotonic_regression(shares, weights=counts).x
        fits.append((float(counts @ (fit - shares) ** 2), sign, values, fit))
    _, sign, values, fit = min(fits, key=lambda item: item[0])
    return lambda x: np.interp(sign * x, values, fit)


# ---------------------------------------------------------------- results


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """The probabilities of each method that y happened in the gaps of the test in which it was not read."""
    for data, tasks in TASKS.items():
        for x, y, z in tasks:
            gaps = gaps_of(data, x, y, z)
            task = f"{y} between {x} and {z}, 20 % removed"
            for seed in seeds:
                drawn = sample(gaps, seed)
                tested = ~drawn.history & ~drawn.read
                for method, predict in methods(drawn):
                    yield Result(data, task, method, seed, predict(gaps.length[tested]), drawn.happened[tested])


def methods(drawn: Sample) -> Iterator[tuple[str, Predict]]:
    """The methods, each with what it has learned from the history."""
    known = drawn.history & ~drawn.read
    lengths, true = drawn.gaps.length[known], drawn.happened[known]
    yield "SCORING POSTERIOR", clock(drawn)
    yield "OCCURS, complete history", posterior(from_complete(drawn))
    yield "OCCURS, MISS stated", posterior(from_lossy(drawn, Stated(miss={"y": (REMOVED, 0.0)})))
    yield "logistic regression", logistic(lengths, true)
    yield "isotonic regression", isotonic(lengths, true)


class Recovery(NamedTuple):
    """The estimate of a removed share; None if `fit delays` says that it cannot tell."""

    data: str
    task: str
    seed: int
    stated: str
    miss: float | None
    error: float


def recoveries(seeds: Sequence[int]) -> Iterator[Recovery]:
    """Estimates of MISS from the history with losses: nothing stated, or the OCCURS of the other, complete half."""
    for data in TASKS:
        for x, y, z in (*TASKS[data], *CERTAIN_TASKS.get(data, ())):
            gaps = gaps_of(data, x, y, z)
            for seed in seeds:
                drawn = sample(gaps, seed)
                occurs = float(drawn.happened[~drawn.history].mean())
                error = float(np.sqrt(occurs * (1 - occurs) / (~drawn.history).sum()))
                for stated, known in (("nothing", Stated()), ("OCCURS", Stated(occurs={"y": (occurs, error)}))):
                    fit = from_lossy(drawn, known)
                    yield Recovery(data, f"{x}, {y}, {z}", seed, stated, fit.miss, fit.miss_error)


def main() -> None:
    """Print for each task how often the estimate is within one and two standard errors of the removed share."""
    found: dict[tuple[str, str, str], list[Recovery]] = {}
    for recovery in recoveries(range(10)):
        found.setdefault((recovery.data, recovery.task, recovery.stated), []).append(recovery)
    for (data, task, stated), recovered in found.items():
        known = [(item.miss, item.error) for item in recovered if item.miss is not None]
        within = [sum(abs(miss - REMOVED) <= n * error for miss, error in known) for n in (1, 2)]
        mean = np.mean([miss for miss, _ in known]) if known else np.nan
        print(
            f"{data:17} {task:55} stated {stated:8} estimated in {len(known):2} of {len(recovered)}: mean {mean:.3f}, "
            f"within one standard error {within[0]:2}, within two {within[1]:2}"
        )


if __name__ == "__main__":
    main()
