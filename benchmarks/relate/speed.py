"""The throughput of RELATE and of the paper's algorithms, as events are lost and as k grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from reproductions.simpmatch import NO_LIMIT

from benchmarks.harness import Options, Record, Recorder, processor_seconds, recorder
from benchmarks.relate import charts
from benchmarks.relate.algorithms import (
    ANABRANCH,
    EARLY_STOP,
    IGNORE,
    SASE,
    STATIC,
    TREE,
    Result,
    all_algorithms,
    anabranch,
    check_same,
    is_tree,
    node_counts,
)
from benchmarks.relate.workloads import Workload, all_workloads, journeys, poisson

LIMIT = 100_000
"""The maximum number of nodes of a pair's tree when it is timed."""

ALL_NODES = 1e10
"""With the most noise, trees are timed again, complete if they have at most this many nodes together."""

FEW_PAIRS, MANY_NODES = 20, 10_000_000
"""Otherwise only these pairs are timed, with this limit per pair, which gives a better bound."""

SLOW = 1.0
"""Algorithms that take longer than this many seconds are run once."""

NOISES = tuple(n / 100 for n in range(0, 41, 5))
LOST = (4, 6, 8, 10, 12, 14)
"""The lost events of two bus journeys in a window, as in the paper."""

SAME_NOISE = 0.2
"""The noise at which k and the threshold vary."""

Speeds = dict[str, float]


# ------------------------------------------------------------ the kernel


def kernel(options: Options) -> Iterator[Record]:
    """Events per second on one core as more events are lost: the kernel alone, and with its preparation."""
    for workload in all_workloads(options):
        lossy = {noise: workload.with_losses(noise, options.seed) for noise in (0.0, 0.1, 0.2, 0.4, 0.6)}
        runs: dict[tuple[str, float], Callable[[], object]] = {}
        for noise, variant in lossy.items():
            runs["kernel", noise] = variant.bare_kernel()
            runs["marks, tables and kernel", noise] = partial(anabranch, variant)
        seconds = processor_seconds(runs, 3 * options.rounds, warm_up=True)
        record = recorder("relate.kernel", str(workload), options)
        for (stages, noise), run_seconds in seconds.items():
            name = f"{stages}, {noise:.0%} lost"
            ratio = run_seconds / seconds[stages, 0.0]
            yield record(name, workload.events / run_seconds, "events/s")
            yield record(name, 1e9 * run_seconds / workload.events, "ns/event", "0% lost", ratio)


# ------------------------------------------------------------ all algorithms


@dataclass(frozen=True, slots=True)
class Throughput:
    """Events per second of each algorithm.

    Attributes
    ----------
    measured : by name; an upper bound for trees that were aborted
    estimated : the throughput if all trees were complete
    complete : the share of pairs that were not aborted
    """

    measured: Speeds
    estimated: Speeds
    complete: Speeds

    def records(self, record: Recorder, prefix: str) -> Iterator[Record]:
        """Yield each throughput with its ratio to Anabranch, and the ratio of Anabranch to the trees."""
        reference = self.measured[ANABRANCH]
        yield record(f"{prefix}: {ANABRANCH}", reference, "events/s")
        for name, speed in self.measured.items():
            if name == ANABRANCH:
                continue
            bound = "" if self.complete[name] == 1 else f" (at most; {self.complete[name]:.0%} complete)"
            yield record(f"{prefix}: {name}{bound}", speed, "events/s", ANABRANCH, speed / reference)
            if bound:
                estimate = self.estimated[name]
                yield record(f"{prefix}: {name}, estimated", estimate, "events/s", ANABRANCH, estimate / reference)
            if name in (TREE, EARLY_STOP):
                faster = f"{prefix}: {ANABRANCH} / {name}"
                yield record(f"{faster}, at least" if bound else faster, reference / speed, "times")
                if bound:
                    yield record(f"{faster}, estimated", reference / self.estimated[name], "times")

    def drawn(self) -> charts.Speeds:
        """Return the speed of each algorithm, and whether it is an estimate."""
        return {name: (speed, self.complete[name] < 1) for name, speed in self.estimated.items()}


def measure(workload: Workload, names: Sequence[str], options: Options, limit: int = LIMIT) -> Throughput:
    """Time some algorithms over all pairs; the answers of complete trees must equal those of Anabranch."""
    limit = 1_000 if options.quick else limit
    algorithms = {name: run for name, run in all_algorithms(limit).items() if name in names}
    results: dict[str, Result] = {}

    def run(name: str) -> None:
        results[name] = algorithms[name](workload)

    for algorithm in algorithms.values():
        algorithm(workload.subset(slice(2)))  # compiles, or loads the cache of the compiler
    runs = {name: partial(run, name) for name in algorithms}
    seconds = processor_seconds(runs, 1)
    seconds |= processor_seconds({name: runs[name] for name in runs if seconds[name] < SLOW}, options.rounds)
    for name in {TREE, EARLY_STOP} & algorithms.keys():
        check_same(results[name], results[ANABRANCH])
    measured = {name: workload.events / run_seconds for name, run_seconds in seconds.items()}
    complete = {name: float(result.complete.mean()) for name, result in results.items()}
    estimated = {
        name: measured[name] * results[name].nodes.sum() / node_counts(workload, name).sum()
        for name in algorithms
        if is_tree(name) and complete[name] < 1
    }
    return Throughput(measured, measured | estimated, complete)


def throughput(options: Options) -> Iterator[Record]:
    """All algorithms as more events are lost (figures 8a and 11a)."""
    drawn: dict[str, dict[float, charts.Speeds]] = {}
    for workload in all_workloads(options):
        names = [name for name in all_algorithms(LIMIT) if workload.at_least > 1 or name not in SASE.values()]
        record = recorder("relate.throughput", str(workload), options)
        drawn[workload.name] = {}
        for noise in (0.0, 0.2) if options.quick else NOISES:
            result = measure(workload.with_losses(noise, options.seed), names, options)
            drawn[workload.name][noise] = result.drawn()
            yield from result.records(record, f"{noise:.0%} lost")
        if workload.at_least > 1:
            lossy, limit = workload.with_losses(noise, options.seed), NO_LIMIT
            if node_counts(lossy, TREE).sum() > ALL_NODES:
                lossy, limit = lossy.subset(slice(FEW_PAIRS)), MANY_NODES
            result = measure(lossy, (ANABRANCH, TREE, EARLY_STOP), options, limit)
            yield from result.records(record, f"{noise:.0%} lost, {len(lossy.pairs)} pairs with a higher limit")
    if not options.quick:
        charts.draw_throughput(drawn)


def selectivity(options: Options) -> Iterator[Record]:
    """Throughput as k grows and fewer pairs match (figure 9a)."""
    names = (ANABRANCH, TREE, EARLY_STOP, IGNORE, STATIC)
    drawn: dict[str, dict[float, charts.Speeds]] = {}
    for segments in (20, 10):
        lossy = poisson(options, segments, 1, options.seed).with_losses(SAME_NOISE, options.seed)
        record = recorder("relate.selectivity", f"{segments} segments, {SAME_NOISE:.0%} lost", options)
        drawn[f"{segments} segments"] = {}
        for k in k_values(segments, options):
            workload = lossy.with_k(k)
            result = measure(workload, names, options)
            drawn[f"{segments} segments"][k] = result.drawn()
            yield record(f"k = {k}: pairs that truly match", float(workload.truth.mean()), "share")
            yield from result.records(record, f"k = {k}")
    if not options.quick:
        charts.draw_selectivity(drawn)


def lost_events(options: Options) -> Iterator[Record]:
    """The time for a pair by the number of lost events in its window, and what pruning saves (figure 13)."""
    record = recorder("relate.lost", f"pairs of journeys, k = {journeys(options, 4, options.seed).at_least}", options)
    for lost in (4, 6) if options.quick else LOST:
        workload = journeys(options, lost, options.seed)
        speeds = measure(workload, (ANABRANCH, TREE, EARLY_STOP), options).estimated
        times = {name: 1e6 * workload.events / speed / len(workload.pairs) for name, speed in speeds.items()}
        for name, microseconds in times.items():
            ratio = None if name == ANABRANCH else microseconds / times[ANABRANCH]
            yield record(f"{lost} lost: {name}", microseconds, "us/pair", ANABRANCH if ratio else None, ratio)
        nodes = {name: float(node_counts(workload, name).mean()) for name in (TREE, EARLY_STOP)}
        yield record(f"{lost} lost: {TREE}, nodes", nodes[TREE], "per pair")
        share = nodes[EARLY_STOP] / nodes[TREE]
        yield record(f"{lost} lost: {EARLY_STOP}, nodes", nodes[EARLY_STOP], "per pair", TREE, share)


def k_values(segments: int, options: Options) -> Sequence[int]:
    """Return the values of k that are measured."""
    return (1, segments // 2) if options.quick else (1, *range(2, segments + 1, segments // 10))
