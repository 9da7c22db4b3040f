"""The cost of a row and of a key by Spark, for each kind: the processor time over files of several sizes, and a fit.

The fit is processor seconds = a run + rows * a row + keys * a key, with least squares and no negative costs. `scale.py`
makes predictions from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from scipy.optimize import nnls

from anabranch.simulate import buoys, traffic, vehicles
from benchmarks.engines import open_session, spark_session
from benchmarks.harness import Options, Record, interleaved, load_records, recorder
from benchmarks.sequence.workloads import Load
from benchmarks.whole import (
    Workload,
    constrain_workload,
    monitor_workload,
    pattern_workload,
    relate_workload,
    run_query,
    sequence_workload,
    with_processor_time,
)
from benchmarks.workloads import Spec

FACTORS = ((1, 1), (2, 1), (4, 1), (4, 2), (4, 4))
"""How many times the rows, and the keys, of the smallest size; the first has a quarter of the rows of `whole`."""

RUN, ROW, KEY = "a run", "a million rows", "a million keys"


@dataclass(frozen=True, slots=True)
class Size:
    """A workload, and the keys of its rows."""

    workload: Workload
    keys: int


def _pattern(rows: int, keys: int, small: int, seed: int) -> Size:
    people = 500 * keys // small
    return Size(pattern_workload(Spec("MARKOV", people, max(52 * rows // keys, 4), seed=seed)), people)


def _sequence(rows: int, keys: int, small: int, seed: int) -> Size:
    load = Load(events=250_000 * rows // small, keys=1_000 * keys)
    return Size(sequence_workload(load, seed), load.keys)


def _relate(rows: int, keys: int, small: int, seed: int) -> Size:
    pairs = 3_750 * keys // small
    size = traffic.Options(data="poisson", loss=0.2, pairs=pairs, segments=max(20 * rows // keys, 8))
    return Size(relate_workload(size, seed), 2 * pairs)


def _monitor(rows: int, keys: int, small: int, seed: int) -> Size:
    size = vehicles.Options(objects=5_000 * keys // small, duration=150.0 * rows / keys, density=1.0)
    return Size(monitor_workload(size, seed), size.objects)


def _constrain(rows: int, keys: int, small: int, seed: int) -> Size:
    size = buoys.Options(buoys=100 * keys, days=625.0 * rows / keys / small)
    return Size(constrain_workload(size, seed), size.buoys)


SIZES: dict[str, Callable[[int, int, int, int], Size]] = {
    "PATTERN": _pattern,
    "SEQUENCE": _sequence,
    "RELATE": _relate,
    "MONITOR": _monitor,
    "CONSTRAIN": _constrain,
}


def cost(options: Options) -> Iterator[Record]:
    """Processor seconds of a run by Spark over five sizes of each kind, and the costs of a run, a row and a key."""
    small = 50 if options.quick else 1
    with spark_session() as spark:
        for kind, make in SIZES.items():
            sizes = [make(rows, keys, small, options.seed) for rows, keys in FACTORS]
            yield from _measure(spark, kind, sizes, options)


def _measure(spark: SparkSession, kind: str, sizes: Sequence[Size], options: Options) -> Iterator[Record]:
    runs, rows = {}, []
    times: dict[int, list[float]] = {number: [] for number in range(len(sizes))}
    for number, size in enumerate(sizes):
        path = size.workload.parquet_file()
        rows.append(pq.read_metadata(path).num_rows)
        session = open_session(spark, size.workload.reading(path, path.parent))
        run = partial(run_query, session, size.workload.query)
        runs[number] = partial(with_processor_time, run, times[number])
    seconds = interleaved(runs, options.rounds, warm_up=True)
    # The first of the times is that of the warm-up.
    processor = [median(times[number][1:]) for number in runs]
    record = recorder("whole.cost", f"{kind}: {sizes[0].workload.description}, and larger", options)
    for number, size in enumerate(sizes):
        name = f"{rows[number]:,} rows, {size.keys:,} keys"
        yield record(f"{name}: processor time", processor[number], "s")
        yield record(f"{name}: time", seconds[number], "s")
    costs, error = fit(rows, [size.keys for size in sizes], processor)
    for name, value in costs.items():
        yield record(name, value, "CPU s")
    yield record("largest error of the fit", 100 * error, "%")
    yield from load_records(record)


def fit(rows: Sequence[int], keys: Sequence[int], seconds: Sequence[float]) -> tuple[dict[str, float], float]:
    """Return the costs of a run, of a million rows and of a million keys, and the largest relative error."""
    factors = np.column_stack([np.ones(len(rows)), np.array(rows) / 1e6, np.array(keys) / 1e6])
    # Relative errors: otherwise, only the largest size would count.
    weights = 1 / np.array(seconds)
    costs, _ = nnls(factors * weights[:, np.newaxis], np.ones(len(rows)))
    errors = np.abs(factors @ costs * weights - 1)
    return dict(zip((RUN, ROW, KEY), costs.tolist(), strict=True)), float(errors.max())


PARTS = {"cost": cost}
