"""MONITOR as in *A Query Processor for Prediction-Based Monitoring of Data Streams*: figures 5 to 7 of its section 6.

Vehicles in a square tell where they are, and how fast they move; which two are within 400 m of each other, east and
north alike, at instants at most 3 s apart? The live operator is stepped from second to second in this process.

The *answer of an instant* t are the pairs with an answer that stands at t (it was said, and not taken back) and whose
validity interval holds t. That interval is the range of the later of the two matching instants, over a region without
holes: so one vehicle at t matches the other at an instant within the window before t, which is what the paper's
validator checks. The *ideal answer* are the pairs that are near each other by their last GPS measurements: both at the
same instant, as in the paper. The window allows what this does not, so a second score is against the pairs of which one
is near where the other was measured within the window. Precision, recall and F-measure are means over all seconds.

Times are those of the processor (`time.process_time`). Without --quick the pictures in docs/images are drawn anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache, partial

from anabranch.simulate.vehicles import Options as Vehicles
from benchmarks import monitor_charts
from benchmarks.harness import Options, Record
from benchmarks.monitor_run import Driven, EveryPair, Followed, drive, follow, job_of, scenario

OBJECTS = (100, 250, 500, 1000)
DURATION = 60.0
"""Vehicles, and seconds that they are followed; the paper has three minutes."""

WINDOWS = (1.0, 3.0, 5.0, 10.0)
POLICIES = ("LEAST CONTRIBUTION", "OLDEST", "RANDOM", "NEWEST")
UNLIMITED = "unlimited"
CROWD, BUFFER = 300, 325
"""The window of the join in seconds, and what is discarded where a buffer of 325 is full."""

FAR = 155.0
"""The threshold in metres at which vehicles without predictions tell about as often as those with."""

BATCH, WARM, MEASURED = 6.0, 36.0, 24.0
"""Seconds of stream in a micro-batch, before the time is taken, and while it is: all have told twice by then."""

WAYS = {"predictions": (True, 25.0), "values": (False, 25.0), "values, as few tuples": (False, FAR)}
"""Whether vehicles predict, and the threshold: with predictions, without, and without at a like number of tuples."""


# ------------------------------------------------------------ runs


@cache
def _ready() -> None:
    """Compile what is timed later."""
    few = Vehicles(objects=20, duration=30.0, density=10.0)
    follow(job_of(few), scenario(few, 0))
    follow(job_of(few, more="BUFFER 10"), scenario(few, 0))
    drive(job_of(few), scenario(few, 0), BATCH, 0.0)


@cache
def by_objects(objects: int, way: str, options: Options) -> Followed:
    """The paper's scenario with so many vehicles."""
    _ready()
    is_predicting, error = WAYS[way]
    vehicles = Vehicles(objects=objects, duration=15.0 if options.quick else DURATION, error=error)
    return follow(job_of(vehicles), scenario(vehicles, options.seed, is_predicting))


def by_policy(within: float, policy: str, options: Options) -> Followed:
    """Vehicles that turn more often, and a buffer that is too small for them."""
    _ready()
    objects, size = (20, 22) if options.quick else (CROWD, BUFFER)
    vehicles = Vehicles(
        objects=objects, duration=15.0 if options.quick else DURATION, sample=1.0, turn_period=5.0,
        turn_probability=0.75, density=30.0,
    )  # fmt: skip
    more = "" if policy == UNLIMITED else f"BUFFER {size} DISCARD {policy}"
    return follow(job_of(vehicles, within, more), scenario(vehicles, options.seed))


def _objects(options: Options) -> tuple[int, ...]:
    return (20, 40) if options.quick else OBJECTS


def _windows(options: Options) -> tuple[float, ...]:
    return (1.0, 3.0) if options.quick else WINDOWS


# ------------------------------------------------------------ figures 5 to 7


def objects(options: Options) -> Iterator[Record]:
    """Accuracy by the number of vehicles (figure 5)."""
    record = partial(Record, "monitor.objects", "10 km2, window 3 s, with predictions", seed=options.seed)
    followed = {count: by_objects(count, "predictions", options) for count in _objects(options)}
    for count, each in followed.items():
        yield from _scores(record, f"{count} vehicles", each)
        yield record(f"{count} vehicles: communicated", each.tuples, "tuples/s")
        yield record(f"{count} vehicles: processor", each.seconds, "s a second")
    most = _objects(options)[-1]
    vehicles = Vehicles(objects=most, duration=15.0 if options.quick else DURATION)
    instant = follow(job_of(vehicles, 0.0), scenario(vehicles, options.seed))
    yield from _scores(record, f"{most} vehicles, WITHIN 0", instant)
    yield from load(record)
    if not options.quick:
        monitor_charts.draw_objects(followed)


def functions(options: Options) -> Iterator[Record]:
    """Accuracy and what is communicated, with and without predictions (figure 6)."""
    record = partial(Record, "monitor.functions", "10 km2, window 3 s", seed=options.seed)
    compared = {count: {way: by_objects(count, way, options) for way in WAYS} for count in _objects(options)}
    for count, ways in compared.items():
        base = ways["predictions"]
        for way, each in ways.items():
            yield from _scores(record, f"{count} vehicles, {way}", each)
            name = f"{count} vehicles, {way}: communicated"
            yield record(name, each.tuples, "tuples/s", "predictions", each.tuples / base.tuples)
            name = f"{count} vehicles, {way}: processor"
            yield record(name, each.seconds, "s a second", "predictions", each.seconds / base.seconds)
    yield from load(record)
    if not options.quick:
        monitor_charts.draw_functions(compared)


def policies(options: Options) -> Iterator[Record]:
    """Accuracy by the window, for each policy of a buffer that is too small (figure 7)."""
    what = f"{CROWD} vehicles, BUFFER {BUFFER}, a measurement a second, a turn in 5 s with 0.75"
    record = partial(Record, "monitor.policies", what, seed=options.seed)
    compared = {
        within: {policy: by_policy(within, policy, options) for policy in (UNLIMITED, *POLICIES)}
        for within in _windows(options)
    }
    for within, ways in compared.items():
        best = ways[UNLIMITED].score
        for policy, each in ways.items():
            score = each.score
            for name in ("recall", "precision", "f"):
                value = getattr(score, name)
                yield record(f"{within:g} s, {policy}: {name}", value, "", UNLIMITED, value / getattr(best, name))
            yield record(f"{within:g} s, {policy}: F in the window", each.window_score.f, "")
    yield from load(record)
    if not options.quick:
        monitor_charts.draw_policies(compared)


def _scores(record: Callable[..., Record], prefix: str, each: Followed) -> Iterator[Record]:
    for name in ("precision", "recall", "f"):
        yield record(f"{prefix}: {name}", getattr(each.score, name), "")
    for name in ("precision", "recall", "f"):
        yield record(f"{prefix}: {name}, in the window", getattr(each.window_score, name), "")


def load(record: Callable[..., Record]) -> Iterator[Record]:
    """How busy the machine was."""
    yield record("load of the machine, last minute", os.getloadavg()[0], "processes")


# ------------------------------------------------------------ how fast


def throughput(options: Options) -> Iterator[Record]:
    """Processor seconds a second of stream: 1,000 to 100,000 vehicles, and every pair compared instead."""
    _ready()
    sizes = (
        ((30, 10.0), (60, 10.0)) if options.quick else ((1_000, 10.0), (1_000, 100.0), (10_000, 10.0), (100_000, 10.0))
    )
    for count, density in sizes:
        vehicles = Vehicles(objects=count, duration=WARM + MEASURED, density=density)
        driven = scenario.__wrapped__(vehicles, options.seed)
        what = f"{count:,} vehicles, {density:g} a km2, micro-batches of {BATCH:g} s, one bucket"
        record = partial(Record, "monitor.throughput", what, seed=options.seed)
        run = drive(job_of(vehicles), driven, BATCH, WARM)
        yield from _speeds(record, run)
        if count == sizes[0][0]:
            peer = drive(job_of(vehicles), driven, BATCH, WARM, EveryPair)
            same(run, peer)
            yield record(
                "every pair compared: processor", peer.total, "s a second", "with the grid", peer.total / run.total
            )
            yield record("every pair compared: candidates", peer.candidates / peer.stream, "a second", "with the grid",
                         peer.candidates / run.candidates)  # fmt: skip
        if count == sizes[-2][0]:
            ticking = drive(job_of(vehicles, more="EVERY 1"), driven, BATCH, WARM)
            ratio = ticking.total / run.total
            yield record("with EVERY 1: processor", ticking.total, "s a second", "without EVERY", ratio)
        yield from load(record)


def _speeds(record: Callable[..., Record], run: Driven) -> Iterator[Record]:
    yield record("processor", run.total, "s a second")
    for name in ("route", "open", "step", "save"):
        yield record(f"processor: {name}", getattr(run, name) / run.stream, "s a second")
    yield record("predictions", run.predictions / run.stream, "a second")
    yield record("candidates", run.candidates / run.stream, "a second")
    for status, count in sorted(run.statuses.items()):
        yield record(f"answers: {status}", count / run.stream, "a second")
    if run.statuses.get("tentative"):
        yield record("candidates an answer", run.candidates / run.statuses["tentative"], "")
    yield record("state", run.state / 1e6, "MB")


def same(one: Driven, other: Driven) -> None:
    """Two ways must have the same answers."""
    if one.statuses != other.statuses or abs(one.checksum - other.checksum) > 1e-6 * abs(one.checksum):
        raise AssertionError(f"the answers differ: {one.statuses} and {other.statuses}")


PARTS = {"objects": objects, "functions": functions, "policies": policies, "throughput": throughput}
