"""The speed of SEQUENCE in one process: the kernel, the gain of each kind of pruning, and the events kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.harness import Options, Record, Recorder, load_records, processor_seconds, recorder
from benchmarks.sequence.workloads import InProcess, Load, QueryShape, Rows, count_matches, sorted_matches

PER_KEY = 5
"""The mean number of events of a key in a window, where it does not vary."""

WINDOWS = (2.5, 5, 10, 20)
COMPONENTS = (2, 3, 4, 5, 6)
THRESHOLDS = (0.5, 0.05, 0.02, 0.005, 0.0005)
KEYS = (1, 10, 100, 1_000, 10_000, 100_000)
USUAL = 0.05
"""The threshold where it does not vary: above the square of the miss rate, so at most one event may be missing."""

PER_EVENT = "matches per event"


# ------------------------------------------------------------ the kernel


def kernel(options: Options) -> Iterator[Record]:
    """Events per second on one core, by stage, threshold, window, number of components and number of keys."""
    size = Load(events=20_000) if options.quick else Load()
    yield from _stages(size, options)
    yield from _thresholds(size, options)
    by_window = {f"{per_key:g} events per key": (size, per_key, 3) for per_key in WINDOWS}
    yield from _sweep("the window", by_window, options)
    by_components = {
        f"{count} components": (replace(size, kinds=count + 1), PER_KEY * (count + 1) / 4, count)
        for count in COMPONENTS
    }
    yield from _sweep("components, with one more kind, 1.25 events per kind in a window", by_components, options)
    by_keys = {
        f"{keys:,} keys": (replace(size, keys=keys), PER_KEY, 3) for keys in KEYS if keys * PER_KEY <= size.events
    }
    yield from _sweep("keys", by_keys, options)


def _stages(size: Load, options: Options) -> Iterator[Record]:
    """Measure the cost of each further stage."""
    table = size.table(options.seed)
    record = recorder("sequence.kernel", f"(A, B, C), {size}, {PER_KEY} per key in a window, no losses", options)
    run = InProcess(QueryShape(3, size.window(PER_KEY)), table)
    matches = checked(run)
    stages = {
        "lists and search": run.kernel,
        "and groups": run.matches,
        "from packets to answers": run.step,
        "from rows to answers": lambda: (run.route(), run.step()),
    }
    seconds = processor_seconds(stages, options.rounds, warm_up=True)
    first = seconds["lists and search"]
    for name, stage_seconds in seconds.items():
        yield record(name, size.events / stage_seconds, "events/s", "lists and search", first / stage_seconds)
    yield record("matches", matches / size.events, PER_EVENT)
    yield from load_records(record)


def _thresholds(size: Load, options: Options) -> Iterator[Record]:
    """Measure MISS and DELAY on all components but the last, at thresholds around the square of the miss rate."""
    table = size.table(options.seed)
    record = recorder("sequence.kernel", f"(A, B, C), {size}, {PER_KEY} per key in a window, MISS 0.1 on A, B", options)
    plain = QueryShape(3, size.window(PER_KEY))
    runs = {"no losses": InProcess(plain, table)}
    runs |= {f"threshold {value:g}": InProcess(replace(plain, threshold=value), table) for value in THRESHOLDS}
    matches = {name: checked(run) for name, run in runs.items()}
    seconds = processor_seconds({name: run.kernel for name, run in runs.items()}, options.rounds, warm_up=True)
    base = seconds["no losses"]
    for name, run_seconds in seconds.items():
        yield record(name, size.events / run_seconds, "events/s", "no losses", base / run_seconds)
        yield record(f"{name}: matches", matches[name] / size.events, PER_EVENT)
    yield from load_records(record)


def _sweep(parameter: str, settings: Mapping[str, tuple[Load, float, int]], options: Options) -> Iterator[Record]:
    """Vary one parameter: measure the deterministic kernel, and the kernel with losses."""
    record = recorder("sequence.kernel", f"by {parameter}", options)
    for name, (size, per_key, components) in settings.items():
        table = size.table(options.seed)
        plain = QueryShape(components, size.window(per_key))
        runs = {"no losses": InProcess(plain, table), "losses": InProcess(replace(plain, threshold=USUAL), table)}
        matches = {label: checked(run) for label, run in runs.items()}
        seconds = processor_seconds({label: run.kernel for label, run in runs.items()}, options.rounds, warm_up=True)
        yield record(f"{name}: no losses", size.events / seconds["no losses"], "events/s")
        ratio = seconds["no losses"] / seconds["losses"]
        rate = size.events / seconds["losses"]
        yield record(f"{name}: MISS 0.1, threshold {USUAL}", rate, "events/s", "no losses", ratio)
        for label, count in matches.items():
            yield record(f"{name}: matches, {label}", count / size.events, PER_EVENT)
    yield from load_records(record)


def checked(run: InProcess) -> int:
    """Return the number of matches, after a comparison with another way to compute them.

    Without losses they are counted by brute force; with losses the same search runs without bounds.
    """
    matches = run.kernel().events
    if run.query.threshold is None:
        expected = count_matches(run.table, run.query)
        if len(matches) != expected:
            raise AssertionError(f"{len(matches)} matches instead of the expected {expected}")
    else:
        check_same(matches, run.kernel(bounded=False).events)
    return len(matches)


def check_same(one: Rows, other: Rows) -> None:
    """Raise AssertionError unless two runs have the same matches."""
    if not np.array_equal(sorted_matches(one), sorted_matches(other)):
        raise AssertionError(f"the runs have different matches: {len(one)} and {len(other)}")


# ------------------------------------------------------------ pruning


def pruning(options: Options) -> Iterator[Record]:
    """The gain of bounds on arrivals and of queues by key: without each of them, and without both."""
    for rare in (None, 0.01):
        for per_key in (5, 20):
            for threshold in (0.5, USUAL):
                # Without keys the work is quadratic in the events of a window: too slow for long windows.
                without_keys = per_key == 5
                events = 50_000 if without_keys else 500_000
                size = Load(events=5_000 if options.quick else events, rare=rare)
                query = QueryShape(4, size.window(per_key), threshold=threshold)
                workload = f"{query}, {size}, {per_key} per key in a window, threshold {threshold}"
                record = recorder("sequence.pruning", workload, options)
                yield from _without_pruning(query, size.table(options.seed), record, options, without_keys)


def _without_pruning(
    query: QueryShape, table: pa.Table, record: Recorder, options: Options, without_keys: bool
) -> Iterator[Record]:
    by_key = InProcess(query, table)
    variants = {"both": by_key.kernel, "no bounds": partial(by_key.kernel, bounded=False)}
    if without_keys:
        one_queue = InProcess(replace(query, hashed=False), table)
        variants |= {"no queues by key": one_queue.kernel, "neither": partial(one_queue.kernel, bounded=False)}
    results = {name: run() for name, run in variants.items()}
    for result in results.values():
        check_same(result.events, results["both"].events)
    seconds = processor_seconds(variants, min(options.rounds, 3), warm_up=True)
    for name, run_seconds in seconds.items():
        yield record(name, table.num_rows / run_seconds, "events/s", "both", seconds["both"] / run_seconds)
        yield record(f"{name}: queued", 100 * results[name].queued.mean(), "% of the events of used kinds")
    yield record("matches, the same for all", len(results["both"].events) / table.num_rows, PER_EVENT)
    yield from load_records(record)


def window(options: Options) -> Iterator[Record]:
    """The maximum number of events kept at one time, by window and threshold."""
    for rare in (None, 0.01):
        size = Load(events=20_000 if options.quick else 200_000, rare=rare)
        table = size.table(options.seed)
        for per_key in WINDOWS:
            within = size.window(per_key)
            workload = f"(A, B, C), {size}, {per_key:g} per key in a window of {within:,} ms"
            record = recorder("sequence.window", workload, options)
            for threshold in (None, *THRESHOLDS):
                kept = InProcess(QueryShape(3, within, threshold=threshold), table).step().counts.kept
                name = "no losses" if threshold is None else f"threshold {threshold:g}"
                yield record(name, kept, "events kept", "events in a window", kept / min(within, size.events))
