"""The accuracy of RELATE and of the paper's algorithms: the share of pairs that are decided correctly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from benchmarks.harness import Options, Record, Recorder, processor_seconds, recorder
from benchmarks.relate import charts
from benchmarks.relate.algorithms import ANABRANCH, IGNORE, STATIC, TREE, anabranch, discrete, node_counts
from benchmarks.relate.answers import Answers, answer_all
from benchmarks.relate.speed import LIMIT, NOISES, SAME_NOISE, k_values
from benchmarks.relate.workloads import Workload, all_workloads, poisson

THRESHOLDS = tuple(n / 10 for n in range(11))


def accuracy(options: Options) -> Iterator[Record]:
    """The share of pairs that are decided correctly, by noise, threshold and k (figures 8b, 8c, 9b and 11b)."""
    seeds = [options.seed + number for number in range(1 if options.quick else options.rounds)]
    by_noise: dict[str, dict[float, Answers]] = {}
    for rounds in zip(*(all_workloads(options, seed) for seed in seeds), strict=True):
        name = rounds[0].name
        by_noise[name] = {}
        for noise in (0.0, 0.2) if options.quick else NOISES:
            lossy = [workload.with_losses(noise, seed) for workload, seed in zip(rounds, seeds, strict=True)]
            by_noise[name][noise] = answer_all(lossy, options)
        record = recorder("relate.accuracy", f"{name}: {_pair_count(rounds)} pairs", options)
        for noise, answers in by_noise[name].items():
            yield from _accuracy_records(record, f"{noise:.0%} lost", answers)
        yield from _threshold_records(record, by_noise[name])
    by_k: dict[str, dict[float, Answers]] = {}
    for segments in (20, 10):
        rounds = [poisson(options, segments, 1, seed).with_losses(SAME_NOISE, seed) for seed in seeds]
        name = f"{segments} segments"
        record = recorder("relate.accuracy", f"{name}, {SAME_NOISE:.0%} lost: {_pair_count(rounds)} pairs", options)
        by_k[name] = {}
        for k in k_values(segments, options):
            by_k[name][k] = answers = answer_all([workload.with_k(k) for workload in rounds], options)
            yield record(f"k = {k}: pairs that truly match", float(answers.truth.mean()), "share")
            yield from _accuracy_records(record, f"k = {k}", answers)
    if not options.quick:
        charts.draw_noise(by_noise)
        charts.draw_thresholds(by_noise, THRESHOLDS, (SAME_NOISE, 2 * SAME_NOISE))
        charts.draw_k(by_k)


def _pair_count(rounds: Sequence[Workload]) -> str:
    return f"{sum(len(workload.pairs) for workload in rounds):,}"


def _accuracy_records(record: Recorder, prefix: str, answers: Answers) -> Iterator[Record]:
    for name, probability in answers.by_algorithm.items():
        complete = float(np.mean(~np.isnan(probability)))
        if complete == 0:
            continue
        reference, value = answers.accuracy(ANABRANCH, among=name), answers.accuracy(name)
        part = "" if complete == 1 else f", {complete:.0%} of the pairs"
        yield record(f"{prefix}: {name}{part}", value, "share", ANABRANCH, value / reference if reference else None)
    yield record(f"{prefix}: largest difference to the tree", answers.difference, "probability")


def _threshold_records(record: Recorder, by_noise: Mapping[float, Answers]) -> Iterator[Record]:
    """Yield means over all noise levels above 0, as in the paper."""
    lossy = [answers for noise, answers in by_noise.items() if noise > 0]
    for threshold in THRESHOLDS:
        for name in (ANABRANCH, IGNORE, STATIC):
            mean = float(np.mean([answers.accuracy(name, threshold) for answers in lossy]))
            yield record(f"threshold {threshold:g}, mean over noise: {name}", mean, "share")


def sase(options: Options) -> Iterator[Record]:
    """SASE+ by the number of timestamps of an event, over pairs with small trees (figure 10)."""
    for noise in (0.1, 0.2):
        workload = poisson(options, 10, 7, options.seed).with_losses(noise, options.seed)
        workload = workload.subset(node_counts(workload, TREE) < (1_000 if options.quick else LIMIT))
        exact = anabranch(workload).probability
        runs = {delta: partial(discrete, workload, delta, LIMIT) for delta in (10, 20, 30, 40, 60, 80)}
        answers = {delta: run().probability for delta, run in runs.items()}
        seconds = processor_seconds(runs, options.rounds)
        record = recorder("relate.sase", f"{workload}, {noise:.0%} lost", options)
        for delta, probability in answers.items():
            name = f"{delta} timestamps"
            ratio = seconds[10] / seconds[delta]
            yield record(name, workload.events / seconds[delta], "events/s", "10 timestamps", ratio)
            yield record(f"{name}: accuracy", float(np.mean((probability >= 0.5) == workload.truth)), "share")
            difference = float(np.abs(probability - exact).mean())
            yield record(f"{name}: mean difference to {ANABRANCH}", difference, "probability")
        yield record(f"{ANABRANCH}: accuracy", float(np.mean((exact >= 0.5) == workload.truth)), "share")
