"""The speed of inference: steps per second of each method and of its baselines, and growth with the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.engines import one_thread
from benchmarks.growth import curve
from benchmarks.harness import Options, Record, interleaved, recorder
from benchmarks.inference.buildings import PARTICLES, PRUNE, Building, make_building
from benchmarks.inference.dense import (
    check_answers,
    dense_filter,
    dense_marginals,
    dense_viterbi,
    make_hmmlearn_model,
    particle_error,
)

#: The probability that a reader detects a tag, by the name of the workload.
DETECTION = {"read often": 0.5, "read rarely": 0.02}

#: The methods, and the baselines that solve the same problem.
METHODS: dict[str, tuple[str, ...]] = {
    "FILTER": ("dense NumPy",),
    "MLE": (),
    "PARTICLE": (),
    "SMOOTH": ("dense NumPy", "hmmlearn"),
    "MARGINALS": (),
    "VITERBI": ("dense NumPy", "hmmlearn"),
}


def kernel(options: Options) -> Iterator[Record]:
    """Steps per second on one core, and their ratio to the baselines."""
    for locations in (50, 350) if options.quick else (50, 350, 1500):
        for frequency, detection in DETECTION.items():
            steps = 500 if options.quick else 20_000
            building = make_building(locations, steps, detection, options.seed)
            # The dense methods take N^2 per step; a few hundred steps are enough to time and compare them.
            short = building.first(min(steps, 5_000_000 // locations**2 + 100))
            check_answers(short)
            speeds = _speeds(building, short, options.rounds)
            record = recorder("inference.kernel", f"{locations} locations, {frequency}", options)
            for method, baselines in METHODS.items():
                speed = speeds[method]
                prune = "" if method in ("VITERBI", "MLE") else f", prune {PRUNE}"
                yield record(f"{method}{prune}", speed, "steps/s")
                for baseline in baselines:
                    name = f"{method} by {baseline}"
                    yield record(name, speeds[name], "steps/s", method, speeds[name] / speed)
            for method in ("FILTER", "SMOOTH"):
                rows = len(building.infer(method, PRUNE).p) / steps
                yield record(f"{method}, prune {PRUNE}: rows written", rows, "rows/step")
            yield record(f"PARTICLE, {PARTICLES:,}: mean distance to FILTER", particle_error(short), "probability")


def _speeds(building: Building, short: Building, rounds: int) -> dict[str, float]:
    """Return the steps per second of each method and of its baselines."""
    model, symbols = make_hmmlearn_model(short), short.symbols[:, np.newaxis]
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        method: (building.method(method), building.steps) for method in METHODS
    }
    contestants["FILTER by dense NumPy"] = partial(dense_filter, short), short.steps
    contestants["SMOOTH by dense NumPy"] = partial(dense_marginals, short), short.steps
    contestants["VITERBI by dense NumPy"] = partial(dense_viterbi, short), short.steps
    contestants["SMOOTH by hmmlearn"] = partial(model.predict_proba, symbols), short.steps
    contestants["VITERBI by hmmlearn"] = partial(model.decode, symbols), short.steps
    with one_thread():
        seconds = interleaved({name: run for name, (run, _) in contestants.items()}, rounds)
    return {name: steps / seconds[name] for name, (_, steps) in contestants.items()}


def growth(options: Options) -> Iterator[Record]:
    """The time of each method when the steps or the locations grow."""
    locations, steps = (50, 250) if options.quick else (100, 5_000)
    sizes = {
        "steps": {steps * factor: (locations, steps * factor) for factor in (1, 2, 4, 8)},
        "locations": {locations * factor: (locations * factor, steps) for factor in (1, 2, 4, 8)},
    }
    buildings = {
        dimension: {
            size: make_building(*both, DETECTION["read rarely"], options.seed) for size, both in by_size.items()
        }
        for dimension, by_size in sizes.items()
    }
    for method in METHODS:
        record = recorder("inference.growth", f"{method}, {locations} locations, {steps:,} steps", options)
        for dimension, by_size in buildings.items():
            with one_thread():
                runs = {size: building.method(method) for size, building in by_size.items()}
                yield from curve(record, dimension, runs, options.rounds)
