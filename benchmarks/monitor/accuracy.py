"""The accuracy of MONITOR by the number of vehicles, with and without predictions, and by the discard policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from anabranch.simulate.vehicles import Options as Vehicles
from benchmarks.harness import CPU_PER_SECOND, Options, Record, Recorder, load_records, recorder
from benchmarks.monitor import charts
from benchmarks.monitor.run import AccuracyRun, run_micro_batches, run_seconds
from benchmarks.monitor.scenarios import cached_scenario, make_monitor_job

OBJECTS = (100, 250, 500, 1000)
DURATION = 60.0
"""The numbers of vehicles, and the seconds that they are monitored; the paper has three minutes."""

WINDOWS = (1.0, 3.0, 5.0, 10.0)
POLICIES = ("LEAST CONTRIBUTION", "OLDEST", "RANDOM", "NEWEST")
UNLIMITED = "unlimited"
"""The windows of the join in seconds, and the policies of a full buffer."""

DELAYS, DELAYED_WINDOW = (0.0, 1.0, 3.0, 6.0), 3.0
"""How late reports arrive at most, in seconds, and the window of the join then."""

CROWD, BUFFER = 300, 325
"""The vehicles and the size of the buffer when policies are compared."""

FAR = 155.0
"""The threshold in metres at which vehicles without predictions report about as often as those with predictions."""

REPORTING = {"predictions": (True, 25.0), "values": (False, 25.0), "values, same tuple rate": (False, FAR)}
"""Whether vehicles predict, and the threshold in metres of their reports."""


# ------------------------------------------------------------ runs


@cache
def compile_kernels() -> None:
    """Compile the kernels before anything is timed."""
    few = Vehicles(objects=20, duration=30.0, density=10.0)
    run_seconds(make_monitor_job(few), cached_scenario(few, 0))
    run_seconds(make_monitor_job(few, clauses="BUFFER 10"), cached_scenario(few, 0))
    run_micro_batches(make_monitor_job(few), cached_scenario(few, 0), batch=6.0, warm_up=0.0)


@cache
def run_objects(objects: int, reporting: str, options: Options) -> AccuracyRun:
    """Run the scenario of the paper with a number of vehicles."""
    compile_kernels()
    is_predicting, error = REPORTING[reporting]
    vehicles = Vehicles(objects=objects, duration=_duration(options), error=error)
    return run_seconds(make_monitor_job(vehicles), cached_scenario(vehicles, options.seed, is_predicting))


def run_policy(within: float, policy: str, options: Options, most_delay: float = 0.0) -> AccuracyRun:
    """Run vehicles that turn more often, with a buffer that is too small for them."""
    compile_kernels()
    objects, size = (20, 22) if options.quick else (CROWD, BUFFER)
    vehicles = Vehicles(
        objects=objects, duration=_duration(options), sample=1.0, turn_period=5.0, turn_probability=0.75, density=30.0
    )
    clauses = "" if policy == UNLIMITED else f"BUFFER {size} DISCARD {policy}"
    scenario = replace(cached_scenario(vehicles, options.seed), most_delay=most_delay)
    return run_seconds(make_monitor_job(vehicles, within, clauses), scenario)


def _duration(options: Options) -> float:
    return 15.0 if options.quick else DURATION


def _objects(options: Options) -> tuple[int, ...]:
    return (20, 40) if options.quick else OBJECTS


def _windows(options: Options) -> tuple[float, ...]:
    return (1.0, 3.0) if options.quick else WINDOWS


# ------------------------------------------------------------ figures 5 to 7


def objects(options: Options) -> Iterator[Record]:
    """Accuracy by the number of vehicles (figure 5)."""
    record = recorder("monitor.objects", "10 km2, window 3 s, with predictions", options)
    runs = {count: run_objects(count, "predictions", options) for count in _objects(options)}
    for count, run in runs.items():
        yield from _score_records(record, f"{count} vehicles", run)
        yield record(f"{count} vehicles: tuples sent", run.tuples, "per second")
        yield record(f"{count} vehicles: processor time", run.seconds, CPU_PER_SECOND)
    most = _objects(options)[-1]
    vehicles = Vehicles(objects=most, duration=_duration(options))
    instant = run_seconds(make_monitor_job(vehicles, 0.0), cached_scenario(vehicles, options.seed))
    yield from _score_records(record, f"{most} vehicles, WITHIN 0", instant)
    yield from load_records(record)
    if not options.quick:
        charts.draw_objects(runs)


def functions(options: Options) -> Iterator[Record]:
    """Accuracy and the number of reports, with and without predictions (figure 6)."""
    record = recorder("monitor.functions", "10 km2, window 3 s", options)
    compared = {count: {name: run_objects(count, name, options) for name in REPORTING} for count in _objects(options)}
    for count, runs in compared.items():
        base = runs["predictions"]
        for name, run in runs.items():
            prefix = f"{count} vehicles, {name}"
            yield from _score_records(record, prefix, run)
            yield record(f"{prefix}: tuples sent", run.tuples, "per second", "predictions", run.tuples / base.tuples)
            ratio = run.seconds / base.seconds
            yield record(f"{prefix}: processor time", run.seconds, CPU_PER_SECOND, "predictions", ratio)
    yield from load_records(record)
    if not options.quick:
        charts.draw_functions(compared)


def policies(options: Options) -> Iterator[Record]:
    """Accuracy by window, for each policy of a buffer that is too small (figure 7)."""
    workload = f"{CROWD} vehicles, BUFFER {BUFFER}, one measurement per second, a turn every 5 s with probability 0.75"
    record = recorder("monitor.policies", workload, options)
    compared = {
        within: {policy: run_policy(within, policy, options) for policy in (UNLIMITED, *POLICIES)}
        for within in _windows(options)
    }
    for within, runs in compared.items():
        yield from _policy_records(record, f"{within:g} s", runs)
    yield from load_records(record)
    if not options.quick:
        charts.draw_policies(compared)


def delays(options: Options) -> Iterator[Record]:
    """Accuracy by how late reports arrive, for each policy of a buffer that is too small."""
    workload = f"{CROWD} vehicles, BUFFER {BUFFER}, window {DELAYED_WINDOW:g} s, vehicles as for the policies"
    record = recorder("monitor.delays", workload, options)
    for delay in (0.0, 2.0) if options.quick else DELAYS:
        runs = {policy: run_policy(DELAYED_WINDOW, policy, options, delay) for policy in (UNLIMITED, *POLICIES)}
        yield from _policy_records(record, f"up to {delay:g} s late", runs)
    yield from load_records(record)


def _policy_records(record: Recorder, prefix: str, runs: Mapping[str, AccuracyRun]) -> Iterator[Record]:
    best = runs[UNLIMITED].score
    for policy, run in runs.items():
        for name in ("recall", "precision", "f"):
            value = getattr(run.score, name)
            yield record(f"{prefix}, {policy}: {name}", value, "", UNLIMITED, value / getattr(best, name))
        yield record(f"{prefix}, {policy}: F in the window", run.window_score.f, "")


def _score_records(record: Recorder, prefix: str, run: AccuracyRun) -> Iterator[Record]:
    for name in ("precision", "recall", "f"):
        yield record(f"{prefix}: {name}", getattr(run.score, name), "")
    for name in ("precision", "recall", "f"):
        yield record(f"{prefix}: {name}, in the window", getattr(run.window_score, name), "")
