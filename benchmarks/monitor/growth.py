"""How the time of MONITOR grows with the number of vehicles."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from anabranch.simulate.vehicles import Options as Vehicles
from benchmarks.growth import curve_records
from benchmarks.harness import Options, Record, recorder
from benchmarks.monitor.accuracy import compile_kernels
from benchmarks.monitor.run import run_micro_batches
from benchmarks.monitor.scenarios import make_monitor_job, simulate_scenario
from benchmarks.monitor.throughput import BATCH, MEASURED, WARM_UP

DENSITY = 10.0
"""Vehicles per square kilometre, for the first number of vehicles and where the density stays the same."""


def growth(options: Options) -> Iterator[Record]:
    """Processor seconds for the measured time, for more vehicles at the same density, and in the same area."""
    compile_kernels()
    first = 30 if options.quick else 250
    record = recorder("monitor.growth", f"{MEASURED:g} s of stream, {DENSITY:g} vehicles per km2 or more", options)
    for dimension, crowding in (("vehicles, same density", False), ("vehicles, same area", True)):
        seconds = {}
        for factor in (1, 2, 4, 8):
            density = DENSITY * factor if crowding else DENSITY
            vehicles = Vehicles(objects=first * factor, duration=WARM_UP + MEASURED, density=density)
            seconds[vehicles.objects] = median(_seconds(vehicles, options.seed) for _ in range(options.rounds))
        yield from curve_records(record, dimension, seconds)


def _seconds(vehicles: Vehicles, seed: int) -> float:
    run = run_micro_batches(make_monitor_job(vehicles), simulate_scenario(vehicles, seed), BATCH, WARM_UP)
    return run.total * run.stream
