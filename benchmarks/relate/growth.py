"""How the time of RELATE grows with pairs, segments and lost events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.growth import curve
from benchmarks.harness import Options, Record, recorder
from benchmarks.relate.algorithms import anabranch
from benchmarks.relate.speed import LOST, SAME_NOISE
from benchmarks.relate.workloads import journeys, poisson


def growth(options: Options) -> Iterator[Record]:
    """The time from windows to probabilities when one dimension grows and the others stay the same."""
    lossy = poisson(options, 10, 7, options.seed).with_losses(SAME_NOISE, options.seed)
    pairs = len(lossy.pairs)
    sizes = {
        "pairs": {pairs * share // 8: lossy.subset(slice(pairs * share // 8)) for share in (1, 2, 4, 8)},
        "segments": {
            count: poisson(options, count, 7 * count // 10, options.seed).with_losses(SAME_NOISE, options.seed)
            for count in (5, 10, 20, 40)
        },
        "lost events": {lost: journeys(options, lost, options.seed) for lost in LOST},
    }
    record = recorder("relate.growth", f"{lossy}, {SAME_NOISE:.0%} lost", options)
    for dimension, workloads in sizes.items():
        runs = {size: partial(anabranch, workload) for size, workload in workloads.items()}
        yield from curve(record, dimension, runs, options.rounds)
