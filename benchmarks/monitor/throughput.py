"""The throughput of MONITOR: how many vehicles one core can monitor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from anabranch.simulate.vehicles import Options as Vehicles
from benchmarks.harness import CPU_PER_SECOND, Options, Record, Recorder, load_records, recorder
from benchmarks.monitor.accuracy import OBJECTS, compile_kernels
from benchmarks.monitor.run import EveryPair, ThroughputRun, run_micro_batches
from benchmarks.monitor.scenarios import make_chain_job, make_monitor_job, simulate_scenario

BATCH, WARM_UP, MEASURED = 6.0, 36.0, 24.0
"""Seconds of stream: in a micro-batch, before counting begins (all vehicles report twice in it), and counted."""

NAMES = (("abc", 0.0, 1_000), ("abc", 3.0, 300), ("abcd", 0.0, 300), ("abcd", 3.0, 50))
"""Queries with several names: the names, the window in seconds, and the number of vehicles."""

SHARE_IN_WEST = 0.25
"""The share of the square in which vehicles satisfy the value constraint."""


def throughput_by_vehicles(options: Options) -> Iterator[Record]:
    """Processor seconds per second of stream: 1,000 to 100,000 vehicles, and every pair compared instead."""
    compile_kernels()
    sizes = (
        ((30, 10.0), (60, 10.0)) if options.quick else ((1_000, 10.0), (1_000, 100.0), (10_000, 10.0), (100_000, 10.0))
    )
    for count, density in sizes:
        vehicles = Vehicles(objects=count, duration=WARM_UP + MEASURED, density=density)
        scenario = simulate_scenario(vehicles, options.seed)
        workload = f"{count:,} vehicles, {density:g} per km2, micro-batches of {BATCH:g} s, one bucket"
        record = recorder("monitor.throughput", workload, options)
        run = run_micro_batches(make_monitor_job(vehicles), scenario, BATCH, WARM_UP)
        yield from _records(record, run)
        if count == sizes[0][0]:
            every = run_micro_batches(make_monitor_job(vehicles), scenario, BATCH, WARM_UP, EveryPair)
            check_same(run, every)
            ratio = every.total / run.total
            yield record("every pair compared: processor time", every.total, CPU_PER_SECOND, "with the grid", ratio)
            ratio = every.candidates / run.candidates
            rate = every.candidates / every.stream
            yield record("every pair compared: candidates", rate, "per second", "with the grid", ratio)
        if count == sizes[-2][0]:
            ticking = run_micro_batches(make_monitor_job(vehicles, clauses="EVERY 1"), scenario, BATCH, WARM_UP)
            ratio = ticking.total / run.total
            yield record("with EVERY 1: processor time", ticking.total, CPU_PER_SECOND, "without EVERY", ratio)
        yield from load_records(record)


def value_constraints(options: Options) -> Iterator[Record]:
    """Processor time without and with a value constraint, which few vehicles satisfy, by the number of vehicles.

    The constraint is checked before predictions are compared. The answers must be those of comparing every pair. With
    EXPECTED, an answer has a probability, which takes longer to compute if constraints connect more values.
    """
    compile_kernels()
    for count in (30, 60) if options.quick else OBJECTS:
        vehicles = Vehicles(objects=count, duration=WARM_UP + MEASURED)
        scenario = simulate_scenario(vehicles, options.seed)
        workload = f"{count:,} vehicles in {vehicles.area:g} km2, micro-batches of {BATCH:g} s, one bucket"
        record = recorder("monitor.values", workload, options)
        for semantics in ("MUST", "EXPECTED"):
            job = partial(make_monitor_job, vehicles, semantics=semantics)
            west = job(at_most=SHARE_IN_WEST * vehicles.side)
            plain, constrained = (run_micro_batches(each, scenario, BATCH, WARM_UP) for each in (job(), west))
            check_same(constrained, run_micro_batches(west, scenario, BATCH, WARM_UP, EveryPair))
            yield from _value_records(record, semantics, plain, constrained)
        yield from load_records(record)


def several_names(options: Options) -> Iterator[Record]:
    """Processor seconds per second of stream for three and four names in a chain: each vehicle is near the next one.

    With WITHIN 0, all are compared at the same instant; otherwise each has an instant of its own.
    """
    compile_kernels()
    for names, within, count in NAMES:
        vehicles = Vehicles(objects=10 if options.quick else count, duration=WARM_UP + MEASURED, density=10.0)
        scenario = simulate_scenario(vehicles, options.seed)
        workload = f"{len(names)} names, WITHIN {within:g}, {vehicles.objects} vehicles, 10 per km2"
        record = recorder("monitor.names", workload, options)
        run = run_micro_batches(make_chain_job(vehicles, names, within), scenario, BATCH, WARM_UP)
        yield record("processor time", run.total, CPU_PER_SECOND)
        yield record("candidates", run.candidates / run.stream, "per second")
        yield record("answers", run.answers / run.stream, "per second")
        yield record("sum of ends", run.checksum, "")
        yield from load_records(record)


def _value_records(
    record: Recorder, semantics: str, plain: ThroughputRun, constrained: ThroughputRun
) -> Iterator[Record]:
    """Yield what runs without and with a value constraint took, and the ratio of the second to the first."""
    without, name = f"{semantics}, no value constraint", f"{semantics}, only in the western {SHARE_IN_WEST:.0%}"
    yield record(f"{without}: processor time", plain.total, CPU_PER_SECOND)
    ratio = constrained.total / plain.total
    yield record(f"{name}: processor time", constrained.total, CPU_PER_SECOND, without, ratio)
    for what in ("candidates", "answers"):
        before, after = (getattr(run, what) / run.stream for run in (plain, constrained))
        yield record(f"{without}: {what}", before, "per second")
        yield record(f"{name}: {what}", after, "per second", without, after / before if before else None)


def _records(record: Recorder, run: ThroughputRun) -> Iterator[Record]:
    yield record("processor time", run.total, CPU_PER_SECOND)
    for name in ("route", "open", "step", "save"):
        yield record(f"processor time: {name}", getattr(run, name) / run.stream, CPU_PER_SECOND)
    yield record("predictions", run.predictions / run.stream, "per second")
    yield record("candidates", run.candidates / run.stream, "per second")
    for status, count in sorted(run.statuses.items()):
        yield record(f"answers: {status}", count / run.stream, "per second")
    if run.statuses.get("tentative"):
        yield record("candidates per tentative answer", run.candidates / run.statuses["tentative"], "")
    yield record("state", run.state / 1e6, "MB")


def check_same(one: ThroughputRun, other: ThroughputRun) -> None:
    """Raise AssertionError unless two runs have the same answers."""
    if one.statuses != other.statuses or abs(one.checksum - other.checksum) > 1e-6 * abs(one.checksum):
        raise AssertionError(f"the answers differ: {one.statuses} and {other.statuses}")
