"""CONSTRAIN as in *Continuous Constraint Query Evaluation for Spatiotemporal Streams*: figures 5 to 7 of its section 5.

The data and the queries are those of `constrain_workloads.py`. The three strategies run over the same events, and their
alerts must be the same. A rate is the events divided by the processor time of what is done for each of them: to find
the variables that it can be, to lay out the store, and to find alerts. What is kept is the most events that were kept
at any time, as a share of all.

Two parts hold it against others: the search for events that fit (`constrain_index.py`), and Spark's own joins
(`constrain_spark.py`). Without --quick the pictures in docs/images are drawn anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from anabranch.constrain.analysis import LOOSE, NOINDEX, STRATEGIES, TIGHT
from benchmarks import constrain_charts, constrain_index, constrain_spark
from benchmarks.constrain_workloads import (
    MOST,
    RULE,
    InProcess,
    Measured,
    Query,
    draw_configurations,
    part_of,
    read_measurements,
    selective,
    tune,
)
from benchmarks.harness import Options, Record

VERBOSITIES = (0.001, 0.005, 0.01, 0.02, 0.05)
QUERIES = (5, 10, 25, 50, 100)
LENGTHS = (5, 10, 20, 40)

FEW, VERBOSITY = 5, 0.01
"""The queries, and the alerts an event of each, where these do not change."""

SHARED, SPARK_PART = 12, 0.25
"""The queries that Spark is asked together, and the share of the events, in whole days, that it is asked about."""

ROUNDS = 3
"""The best of so many turns counts: what disturbs a run makes it slower, never faster."""

Solutions = list[tuple[int, np.ndarray]]
"""A query, and the events of its alerts, a row an alert; a query can come more than once."""


# ------------------------------------------------------------ one measurement


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one strategy: events a second, the most events kept, and how many alerts."""

    rate: float
    peak: int
    alerts: int


def compare(measured: Measured, queries: Sequence[Query], whole: bool = False) -> dict[str, Outcome]:
    """Every strategy over the same events; alerts must be the same, and TIGHT must not keep more than others.

    Parameters
    ----------
    whole : compare the alerts themselves, not sums over them
    """
    runs = {name: InProcess(measured.job(queries, name), measured.events) for name in STRATEGIES}
    expected: object = None
    alerts, peaks = {}, {}
    for name, run in runs.items():
        found, peaks[name] = _solutions(run)
        alerts[name] = sum(len(rows) for _, rows in found)
        summary = sorted_alerts(found) if whole else checksum(found)
        if expected is not None and not _same(summary, expected):
            raise AssertionError(f"the alerts of {name} are not those of {STRATEGIES[0]}")
        expected = summary
    if peaks[TIGHT] > min(peaks.values()):
        raise AssertionError(f"TIGHT keeps more than others: {peaks}")
    rates = _rates(measured, runs)
    return {name: Outcome(rates[name], peaks[name], alerts[name]) for name in runs}


def _solutions(run: InProcess) -> tuple[Solutions, int]:
    """All alerts, and the most events kept; compiles what is timed later."""
    ready = run.run(run.numbers(*run.roles()))
    found = list(ready.solutions())
    return found, ready.peak()


def _rates(measured: Measured, runs: Mapping[str, InProcess]) -> dict[str, float]:
    """Events a second by the processor's clock; contestants take turns."""
    best = dict.fromkeys(runs, np.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = min(best[name], _seconds(run))
    return {name: len(measured) / seconds for name, seconds in best.items()}


def _seconds(run: InProcess) -> float:
    """Processor time to find roles, to lay out the store, and to find alerts."""
    start = time.process_time()
    roles = run.roles()
    taken = time.process_time() - start
    # A run writes to its events, so each has its own.
    events = run.numbers(*roles)
    start = time.process_time()
    for _ in run.run(events).solutions():
        pass
    return taken + time.process_time() - start


# ------------------------------------------------------------ are alerts the same?


def checksum(found: Solutions) -> tuple[int, int]:
    """How many alerts, and a sum over them that does not depend on their order."""
    total, count = np.uint64(0), 0
    for query, rows in found:
        mixed = np.full(len(rows), _mix(np.array([query], np.uint64))[0])
        for place in range(rows.shape[1]):
            mixed = _mix(mixed ^ rows[:, place].astype(np.uint64))
        with np.errstate(over="ignore"):
            total += mixed.sum(dtype=np.uint64)
        count += len(rows)
    return count, int(total)


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Numbers whose bits each depend on all bits of those given (the last steps of SplitMix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def sorted_alerts(found: Solutions) -> dict[int, np.ndarray]:
    """The alerts of each query in order."""
    parts: dict[int, list[np.ndarray]] = {}
    for query, rows in found:
        parts.setdefault(query, []).append(rows)
    joined = {query: np.concatenate(rows) for query, rows in parts.items()}
    return {query: rows[np.lexsort(rows.T)] for query, rows in joined.items() if len(rows)}


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)
    return one == other


# ------------------------------------------------------------ data and queries, made once


@cache
def measurements(options: Options) -> Measured:
    """The events: with --quick a tenth of them."""
    events = read_measurements()
    return Measured(part_of(events, 0.1) if options.quick else events)


@cache
def plain_queries(options: Options) -> list[Query]:
    """The first hundred queries that are drawn, whatever they accept."""
    return tune(measurements(options), draw_configurations(QUERIES[-1], options.seed), VERBOSITY)


@cache
def many_queries(options: Options) -> list[Query]:
    """A hundred queries that select."""
    return selective(measurements(options), QUERIES[-1], options.seed, VERBOSITY, plain=plain_queries(options))


@cache
def queries_by_verbosity(options: Options) -> dict[float, list[Query]]:
    """The same configurations for all verbosities: those that select at the highest do at all."""
    measured = measurements(options)
    chosen = selective(measured, FEW, options.seed, max(VERBOSITIES))
    configurations = [query.configuration for query in chosen]
    return {each: tune(measured, configurations, each, MOST) for each in VERBOSITIES}


@cache
def queries_by_length(options: Options) -> dict[int, list[Query]]:
    """The same configurations but for their lengths: those that select when short do when long."""
    measured = measurements(options)
    chosen = selective(measured, FEW, options.seed, VERBOSITY, min(LENGTHS))
    return {
        days: tune(measured, [query.configuration.lasting(days) for query in chosen], VERBOSITY, MOST)
        for days in LENGTHS
    }


# ------------------------------------------------------------ figures 5 to 7


def verbosity(options: Options) -> Iterator[Record]:
    """Rates and events kept by verbosity (figure 5)."""
    measured = measurements(options)
    compared = {each: compare(measured, of, whole=True) for each, of in queries_by_verbosity(options).items()}
    record = _recorder("constrain.verbosity", f"{FEW} queries", options)
    for each, outcomes in compared.items():
        yield from _records(record, f"{each:.1%}", outcomes, len(measured))
    yield from load(record)
    _draw(options, "verbosity", {100 * each: outcomes for each, outcomes in compared.items()})


def queries(options: Options) -> Iterator[Record]:
    """Rates and events kept by the number of queries (figure 6)."""
    measured, many = measurements(options), many_queries(options)
    compared = {count: compare(measured, many[:count]) for count in QUERIES}
    record = _recorder("constrain.queries", f"verbosity {VERBOSITY:.0%}", options)
    for count, outcomes in compared.items():
        yield from _records(record, f"{count} queries", outcomes, len(measured))
    anything = compare(measured, plain_queries(options))
    yield from _records(record, f"the first {QUERIES[-1]} drawn, none again", anything, len(measured))
    yield from load(record)
    _draw(options, "queries", compared)


def length(options: Options) -> Iterator[Record]:
    """Rates and events kept by the longest time between two events (figure 7)."""
    measured = measurements(options)
    compared = {days: compare(measured, of) for days, of in queries_by_length(options).items()}
    record = _recorder("constrain.length", f"{FEW} queries, verbosity {VERBOSITY:.0%}", options)
    for days, outcomes in compared.items():
        yield from _records(record, f"{days} days", outcomes, len(measured))
    yield from load(record)
    _draw(options, "length", compared)


def _recorder(benchmark: str, what: str, options: Options) -> Callable[..., Record]:
    workload = f"{len(measurements(options)):,} events, {what}; {RULE}"
    return partial(Record, benchmark, workload, seed=options.seed)


def _records(
    record: Callable[..., Record], prefix: str, outcomes: Mapping[str, Outcome], events: int
) -> Iterable[Record]:
    """Rates held against NOINDEX, what is kept against LOOSE."""
    for name, outcome in outcomes.items():
        ratio = outcome.rate / outcomes[NOINDEX].rate
        yield record(f"{prefix}: {name}", outcome.rate, "events/s", NOINDEX, ratio)
    for name, outcome in outcomes.items():
        ratio = outcome.peak / outcomes[LOOSE].peak if outcomes[LOOSE].peak else None
        yield record(f"{prefix}: {name} keeps at most", 100 * outcome.peak / events, "% of events", LOOSE, ratio)
    yield record(f"{prefix}: alerts, the same for all", outcomes[TIGHT].alerts, "alerts")


def load(record: Callable[..., Record]) -> Iterator[Record]:
    """How busy the machine was."""
    yield record("load of the machine, last minute", os.getloadavg()[0], "processes")
    yield record("load of the machine, last quarter of an hour", os.getloadavg()[2], "processes")


def _draw(options: Options, name: str, compared: Mapping[float, Mapping[str, Outcome]]) -> None:
    if not options.quick:
        constrain_charts.draw(name, compared, len(measurements(options)))


# ------------------------------------------------------------ held against others


def index(options: Options) -> Iterator[Record]:
    """The search for events that fit, in microseconds a probe: our lists, and trees built anew."""
    measured = measurements(options)
    for days in (LENGTHS[1], LENGTHS[-1]):
        kept = constrain_index.Kept.of(measured, queries_by_length(options)[days])
        searched = dict(constrain_index.contest(kept))
        ours = searched["lists with a grid"]
        what = f"{FEW} queries of {days} days, {ours.probes:,} probes, {ours.found / ours.probes:.1f} found by a probe"
        record = _recorder("constrain.index", f"{what}, {kept.most():,} roles kept at most", options)
        for name, each in searched.items():
            ratio = each.microseconds / ours.microseconds
            built = f", built every {each.every:,} events" if each.every else ""
            yield record(name + built, each.microseconds, "us/probe", "lists with a grid", ratio)
        yield from load(record)


def spark(options: Options) -> Iterator[Record]:
    """From a file to counted alerts by Spark on two cores: CONSTRAIN, and joins of Spark SQL."""
    # A plain join compares every two events that pass the filters: its time grows with the square of their number.
    measured = Measured(part_of(measurements(options).events, 1.0 if options.quick else SPARK_PART))
    workload = f"{len(measured):,} events, verbosity {VERBOSITY:.0%}; {RULE}"
    record = partial(Record, "constrain.spark", workload, seed=options.seed)
    chosen = selective(measured, SHARED, options.seed, VERBOSITY)
    yield from constrain_spark.contest(measured, chosen, min(options.rounds, 3), record)


PARTS = {"verbosity": verbosity, "queries": queries, "length": length, "index": index, "spark": spark}
