"""How the time of SEQUENCE grows with events, keys, components and the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.growth import curve
from benchmarks.harness import Options, Record, recorder
from benchmarks.sequence.speed import PER_KEY
from benchmarks.sequence.workloads import InProcess, Load, QueryShape

COMPONENTS = (2, 3, 4, 5, 6)


def growth(options: Options) -> Iterator[Record]:
    """The time from packets to answers when one dimension grows and the others stay the same."""
    base = Load(events=10_000, keys=100) if options.quick else Load(events=100_000)
    sizes: dict[str, dict[float, tuple[Load, float, int]]] = {
        "events": {
            base.events * factor: (replace(base, events=base.events * factor), PER_KEY, 3) for factor in (1, 2, 4, 8)
        },
        "keys": {base.keys * factor: (replace(base, keys=base.keys * factor), PER_KEY, 3) for factor in (1, 2, 4, 8)},
        "components": {
            count: (replace(base, kinds=count + 1), PER_KEY * (count + 1) / 4, count) for count in COMPONENTS
        },
        "events of a key in a window": {per_key: (base, per_key, 3) for per_key in (2.5, 5, 10, 20)},
    }
    record = recorder("sequence.growth", f"{base}, {PER_KEY} per key in a window", options)
    for dimension, by_size in sizes.items():
        runs = {
            size: InProcess(QueryShape(components, load.window(per_key)), load.table(options.seed)).step
            for size, (load, per_key, components) in by_size.items()
        }
        yield from curve(record, dimension, runs, options.rounds)
