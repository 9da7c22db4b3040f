"""How the time of CONSTRAIN grows with events and queries."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.constrain.analysis import TIGHT
from benchmarks.constrain.data import Measurements, part_of
from benchmarks.constrain.figures import FEW, VERBOSITY, measurements
from benchmarks.constrain.run import InProcess
from benchmarks.constrain.tuning import selective
from benchmarks.growth import curve
from benchmarks.harness import Options, Record, recorder

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the events."""

COUNTS = (5, 10, 20, 40)
"""Of queries."""


def growth(options: Options) -> Iterator[Record]:
    """The time to find all alerts when the events or the queries grow."""
    every = measurements(options)
    record = recorder("constrain.growth", f"{FEW} queries, {len(every):,} events, verbosity {VERBOSITY:.0%}", options)
    few = selective(every, FEW, options.seed, VERBOSITY)
    parts = [Measurements(part_of(every.events, share)) for share in SHARES]
    by_events = {len(part): InProcess(part, few, TIGHT).alert_counts for part in parts}
    yield from curve(record, "events", by_events, options.rounds)
    many = selective(every, COUNTS[-1], options.seed, VERBOSITY)
    by_queries = {count: InProcess(every, many[:count], TIGHT).alert_counts for count in COUNTS}
    yield from curve(record, "queries", by_queries, options.rounds)
