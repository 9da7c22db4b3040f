"""RELATE, ours and the algorithms of the SimpMatch paper side by side: figures 8 to 11 of its section 4.

The data are the paper's: 500 pairs of segmented intervals whose events come as in a Poisson process, and the congested
sectors of a motorway, two by two (`relate_contest.py`). *Noise* is the share of events that are lost. An event is a
point event of either entity of a pair, lost or not; an entity in many pairs counts in each.

The tree of possible worlds is exponential in the lost events, so it is given up at LIMIT nodes a pair. Its throughput
is then an upper bound, and what it would be is estimated: the nodes that it would have are counted (`count_nodes`), and
each is taken to cost what those cost that were made. Wherever the tree comes to its end, its answer must be ours.

What runs on one thread is timed by the processor's clock. Without --quick the pictures in docs/images are drawn anew.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.relate.deciding import decide
from anabranch.relate.job import RelateJob
from anabranch.simulate import traffic
from benchmarks import relate_charts
from benchmarks.engines import (
    TOLERANCE,
    consume,
    largest_difference,
    make_job,
    one_thread,
    open_session,
    run_in_process,
    spark_session,
)
from benchmarks.harness import Options, Record, interleaved
from benchmarks.relate_contest import (
    IGNORE,
    OURS,
    SASE,
    STATIC,
    SURE,
    TREE,
    Contest,
    Found,
    contestants,
    contests,
    discrete,
    is_tree,
    nodes,
    ours,
    poisson,
)
from benchmarks.relate_paper import NO_LIMIT

LIMIT = 100_000
"""The nodes of a pair's tree when it is timed."""

PATIENCE = 1_000_000
"""The nodes of a pair's tree when it is asked for an answer."""

ALL_NODES = 1e10
"""With the most noise trees are timed once more, to their ends if they have no more nodes than these together."""

FEW, MANY_NODES = 20, 10_000_000
"""Else on few pairs, with so many nodes a pair: that gives a better bound."""

SLOW = 1.0
"""Seconds: who takes longer has one turn."""

NOISES = tuple(n / 100 for n in range(0, 41, 5))
THRESHOLDS = tuple(n / 10 for n in range(11))
SAME_NOISE = 0.2
"""The noise at which k and the threshold change."""

Speeds = dict[str, float]

processor_seconds = partial(interleaved, clock=time.process_time)


# ------------------------------------------------------------ the kernel


def kernel(options: Options) -> Iterator[Record]:
    """Events a second on one core as more is lost: the kernel alone, and with all that prepares it."""
    for contest in contests(options):
        lossy = {noise: contest.losing(noise, options.seed) for noise in (0.0, 0.1, 0.2, 0.4, 0.6)}
        runs: dict[tuple[str, float], Callable[[], object]] = {}
        for noise, each in lossy.items():
            runs["kernel", noise] = each.bare_kernel()
            runs["marks, tables and kernel", noise] = partial(ours, each)
        processor_seconds(runs, 1)
        seconds = processor_seconds(runs, 3 * options.rounds)
        record = partial(Record, "relate.kernel", _title(contest), seed=options.seed)
        for (way, noise), taken in seconds.items():
            name = f"{way}, {noise:.0%} lost"
            yield record(name, contest.events / taken, "events/s")
            yield record(name, 1e9 * taken / contest.events, "ns/event", "0% lost", taken / seconds[way, 0.0])


def _title(contest: Contest) -> str:
    return f"{contest.name}: {len(contest.pairs):,} pairs, {contest.events:,} events"


# ------------------------------------------------------------ throughput


@dataclass(frozen=True, slots=True)
class Race:
    """Events a second of everybody.

    Attributes
    ----------
    measured : by name; of trees that were given up, an upper bound
    estimated : what it would be, were all trees built to their ends
    finished : the share of pairs that were not given up
    """

    measured: Speeds
    estimated: Speeds
    finished: Speeds

    def records(self, record: Callable[..., Record], prefix: str) -> Iterator[Record]:
        """The figures, each held against ours, and ours against the trees."""
        mine = self.measured[OURS]
        yield record(f"{prefix}: {OURS}", mine, "events/s")
        for name, speed in self.measured.items():
            if name == OURS:
                continue
            bound = "" if self.finished[name] == 1 else f" (at most; {self.finished[name]:.0%} finished)"
            yield record(f"{prefix}: {name}{bound}", speed, "events/s", OURS, speed / mine)
            if bound:
                estimate = self.estimated[name]
                yield record(f"{prefix}: {name}, estimated", estimate, "events/s", OURS, estimate / mine)
            if name in (TREE, SURE):
                faster = f"{prefix}: {OURS} / {name}"
                yield record(f"{faster}, at least" if bound else faster, mine / speed, "times")
                if bound:
                    yield record(f"{faster}, estimated", mine / self.estimated[name], "times")


def race(contest: Contest, names: Sequence[str], options: Options, limit: int = LIMIT) -> Race:
    """Let everybody answer about all pairs; answers of trees that came to their ends must be ours."""
    asked = {name: ask for name, ask in contestants(1_000 if options.quick else limit).items() if name in names}
    found: dict[str, Found] = {}

    def run(name: str) -> None:
        found[name] = asked[name](contest)

    for ask in asked.values():
        ask(contest.only(slice(2)))  # compiles, or loads what was compiled
    runs = {name: partial(run, name) for name in asked}
    seconds = processor_seconds(runs, 1)
    seconds |= processor_seconds({name: runs[name] for name in runs if seconds[name] < SLOW}, options.rounds)
    for name in {TREE, SURE} & asked.keys():
        check_same(found[name], found[OURS])
    measured = {name: contest.events / taken for name, taken in seconds.items()}
    finished = {name: float(each.finished.mean()) for name, each in found.items()}
    estimated = {
        name: measured[name] * found[name].nodes.sum() / nodes(contest, name).sum()
        for name in asked
        if is_tree(name) and finished[name] < 1
    }
    return Race(measured, measured | estimated, finished)


def check_same(found: Found, expected: Found) -> float:
    """The largest difference between an exact contestant and ours, over the pairs that it finished."""
    both = found.finished
    apart = float(np.abs(found.probability[both] - expected.probability[both]).max(initial=0.0))
    if not apart <= TOLERANCE:
        raise AssertionError(f"the tree and the kernel differ by {apart}")
    return apart


def throughput(options: Options) -> Iterator[Record]:
    """Everybody as more is lost (figures 8a and 11a)."""
    races: dict[str, dict[float, Race]] = {}
    for contest in contests(options):
        names = [name for name in contestants(LIMIT) if contest.at_least > 1 or name not in SASE.values()]
        record = partial(Record, "relate.throughput", _title(contest), seed=options.seed)
        races[contest.name] = {}
        for noise in (0.0, 0.2) if options.quick else NOISES:
            ran = race(contest.losing(noise, options.seed), names, options)
            races[contest.name][noise] = ran
            yield from ran.records(record, f"{noise:.0%} lost")
        if contest.at_least > 1:
            lossy, limit = contest.losing(noise, options.seed), NO_LIMIT
            if nodes(lossy, TREE).sum() > ALL_NODES:
                lossy, limit = lossy.only(slice(FEW)), MANY_NODES
            ran = race(lossy, (OURS, TREE, SURE), options, limit)
            yield from ran.records(record, f"{noise:.0%} lost, {len(lossy.pairs)} pairs with patience")
    if not options.quick:
        speeds = {name: {noise: _drawn(ran) for noise, ran in by.items()} for name, by in races.items()}
        relate_charts.draw_throughput(speeds)


def _drawn(ran: Race) -> dict[str, tuple[float, bool]]:
    """The speed of each, and whether it is an estimate."""
    return {name: (speed, ran.finished[name] < 1) for name, speed in ran.estimated.items()}


def selectivity(options: Options) -> Iterator[Record]:
    """Throughput as k grows and fewer pairs match (figure 9a)."""
    names = (OURS, TREE, SURE, IGNORE, STATIC)
    races: dict[str, dict[float, Race]] = {}
    for segments in (20, 10):
        contest = poisson(options, segments, 1, options.seed).losing(SAME_NOISE, options.seed)
        record = partial(Record, "relate.selectivity", f"{segments} segments, {SAME_NOISE:.0%} lost", seed=options.seed)
        races[f"{segments} segments"] = {}
        for k in _ks(segments, options):
            asking = contest.asking(k)
            ran = race(asking, names, options)
            races[f"{segments} segments"][k] = ran
            yield record(f"k = {k}: pairs that truly match", float(asking.truth.mean()), "share")
            yield from ran.records(record, f"k = {k}")
    if not options.quick:
        speeds = {name: {k: _drawn(ran) for k, ran in by.items()} for name, by in races.items()}
        relate_charts.draw_selectivity(speeds)


def _ks(segments: int, options: Options) -> Sequence[int]:
    return (1, segments // 2) if options.quick else (1, *range(2, segments + 1, segments // 10))


# ------------------------------------------------------------ accuracy


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers about all pairs of all rounds, NaN where there is none, and the truth."""

    truth: np.ndarray
    answers: Mapping[str, np.ndarray]
    apart: float

    def accuracy(self, name: str, threshold: float = 0.5, among: str | None = None) -> float:
        """The share of pairs that are decided as the whole data say; those that `among` has an answer to."""
        probability, asked = self.answers[name], ~np.isnan(self.answers[among or name])
        decided = (probability > 0) & (probability >= threshold)
        return float(np.mean(decided[asked] == self.truth[asked]))


def ask(rounds: Sequence[Contest], options: Options) -> Asked:
    """Ask everybody; a tree where it comes to its end, SASE+ where nearly all of its trees do."""
    patience = 1_000 if options.quick else PATIENCE
    asked = contestants(patience)
    answers: dict[str, list[np.ndarray]] = {name: [] for name in asked}
    apart = 0.0
    for number, contest in enumerate(rounds):
        exact = ours(contest)
        for name in asked:
            if not is_tree(name):
                found = asked[name](contest).probability
            elif name == SURE and number == 0:
                found = _patiently(contest, name, asked[name], patience, least=0.0)
                apart = check_same(Found(found), exact)
            elif name in SASE.values() and contest.at_least > 1:
                found = _patiently(contest, name, asked[name], patience, least=0.95)
            else:
                found = np.full(len(contest.pairs), np.nan)
            answers[name].append(found)
    pooled = {name: np.concatenate(each) for name, each in answers.items()}
    return Asked(np.concatenate([contest.truth for contest in rounds]), pooled, apart)


def _patiently(
    contest: Contest, name: str, asked: Callable[[Contest], Found], patience: int, least: float
) -> np.ndarray:
    """The answers about the pairs whose trees are not too large, where these are at least such a share."""
    found = np.full(len(contest.pairs), np.nan)
    small = nodes(contest, name) < patience
    if small.mean() >= least and small.any():
        found[small] = asked(contest.only(small)).probability
    return found


def accuracy(options: Options) -> Iterator[Record]:
    """The share of pairs that are decided rightly, by noise, threshold and k (figures 8b, 8c, 9b and 11b)."""
    seeds = [options.seed + number for number in range(1 if options.quick else options.rounds)]
    rounds = [contests(options, seed) for seed in seeds]
    by_noise: dict[str, dict[float, Asked]] = {}
    for contest in zip(*rounds, strict=True):
        name = contest[0].name
        by_noise[name] = {}
        for noise in (0.0, 0.2) if options.quick else NOISES:
            lossy = [each.losing(noise, seed) for each, seed in zip(contest, seeds, strict=True)]
            by_noise[name][noise] = ask(lossy, options)
        record = partial(Record, "relate.accuracy", f"{name}: {_count(contest)} pairs", seed=options.seed)
        for noise, asked in by_noise[name].items():
            yield from _accuracy_records(record, f"{noise:.0%} lost", asked)
        yield from _threshold_records(record, by_noise[name])
    by_k: dict[str, dict[float, Asked]] = {}
    for segments in (20, 10):
        contest = [poisson(options, segments, 1, seed).losing(SAME_NOISE, seed) for seed in seeds]
        name = f"{segments} segments"
        workload = f"{name}, {SAME_NOISE:.0%} lost: {_count(contest)} pairs"
        record = partial(Record, "relate.accuracy", workload, seed=options.seed)
        by_k[name] = {}
        for k in _ks(segments, options):
            by_k[name][k] = asked = ask([each.asking(k) for each in contest], options)
            yield record(f"k = {k}: pairs that truly match", float(asked.truth.mean()), "share")
            yield from _accuracy_records(record, f"k = {k}", asked)
    if not options.quick:
        relate_charts.draw_noise(by_noise)
        relate_charts.draw_thresholds(by_noise, THRESHOLDS, (SAME_NOISE, 2 * SAME_NOISE))
        relate_charts.draw_k(by_k)


def _count(contest: Sequence[Contest]) -> str:
    return f"{sum(len(each.pairs) for each in contest):,}"


def _accuracy_records(record: Callable[..., Record], prefix: str, asked: Asked) -> Iterator[Record]:
    for name, answers in asked.answers.items():
        finished = float(np.mean(~np.isnan(answers)))
        if finished == 0:
            continue
        mine, value = asked.accuracy(OURS, among=name), asked.accuracy(name)
        part = "" if finished == 1 else f", {finished:.0%} of the pairs"
        yield record(f"{prefix}: {name}{part}", value, "share", OURS, value / mine if mine else None)
    yield record(f"{prefix}: largest difference to the tree", asked.apart, "probability")


def _threshold_records(record: Callable[..., Record], by_noise: Mapping[float, Asked]) -> Iterator[Record]:
    """Over all noise levels but none, as in the paper."""
    lossy = [asked for noise, asked in by_noise.items() if noise > 0]
    for threshold in THRESHOLDS:
        for name in (OURS, IGNORE, STATIC):
            mean = float(np.mean([asked.accuracy(name, threshold) for asked in lossy]))
            yield record(f"threshold {threshold:g}, mean over noise: {name}", mean, "share")


# ------------------------------------------------------------ SASE+


def sase(options: Options) -> Iterator[Record]:
    """SASE+ by how many timestamps an event can have, over pairs whose trees are small enough (figure 10)."""
    for noise in (0.1, 0.2):
        contest = poisson(options, 10, 7, options.seed).losing(noise, options.seed)
        contest = contest.only(nodes(contest, TREE) < (1_000 if options.quick else LIMIT))
        exact = ours(contest).probability
        runs = {delta: partial(discrete, contest, delta, LIMIT) for delta in (10, 20, 30, 40, 60, 80)}
        found = {delta: run().probability for delta, run in runs.items()}
        seconds = processor_seconds(runs, options.rounds)
        record = partial(Record, "relate.sase", f"{_title(contest)}, {noise:.0%} lost", seed=options.seed)
        first = seconds[10]
        for delta, answers in found.items():
            name = f"{delta} timestamps"
            right = float(np.mean((answers >= 0.5) == contest.truth))
            yield record(name, contest.events / seconds[delta], "events/s", "10 timestamps", first / seconds[delta])
            yield record(f"{name}: accuracy", right, "share")
            yield record(f"{name}: mean difference to ours", float(np.abs(answers - exact).mean()), "probability")
        yield record("ours: accuracy", float(np.mean((exact >= 0.5) == contest.truth)), "share")


# ------------------------------------------------------------ Spark


def spark(options: Options) -> Iterator[Record]:
    """From files to counted answers, by Spark on two cores, and by one process with the same stages."""
    sectors, pairs = (40, 100) if options.quick else (200, 500)
    many = 4 if options.quick else 10
    with spark_session() as session, tempfile.TemporaryDirectory(prefix="anabranch-relate-") as folder:
        for loss in (0.0, 0.2) if options.quick else (0.0, 0.2, 0.4):
            drawn = traffic.Options(loss=loss, sectors=sectors)
            yield from _from_files(session, Path(folder), f"road of {sectors:,} sectors", drawn, options)
        for name, drawn in {
            f"road of {many * sectors:,} sectors": traffic.Options(loss=SAME_NOISE, sectors=many * sectors),
            "Poisson pairs": traffic.Options(data="poisson", loss=SAME_NOISE, pairs=4 * many * pairs),
        }.items():
            yield from _from_files(session, Path(folder), name, drawn, options)


def _from_files(
    spark: SparkSession, folder: Path, name: str, drawn: traffic.Options, options: Options
) -> Iterator[Record]:
    """Simulate, and ask the simulator's own query in both ways."""
    simulated = traffic.simulate(drawn, options.seed)
    traffic.write(simulated, folder)
    query = "shared" if drawn.data == "poisson" else "jam"
    workbook = typed(simulated.workbook).replace("FROM '", f"FROM '{folder}/")
    session = open_session(spark, workbook)
    job = make_job(workbook, query, {})
    expected = answers_in_process(job, folder / "congestion.parquet")
    apart = largest_difference(session.run(query).toArrow().flatten(), expected.flatten())
    contest = {
        "in process": partial(answers_in_process, job, folder / "congestion.parquet"),
        "Spark": lambda: consume(session.run(query)),
    }
    interleaved(contest, 1)
    seconds = interleaved(contest, options.rounds)
    pairs, events = sizes(job, folder / "congestion.parquet")
    workload = f"{name}, {drawn.loss:.0%} lost: {pairs:,} pairs, {events:,} events, {expected.num_rows:,} answers"
    record = partial(Record, "relate.spark", workload, seed=options.seed)
    for count, unit in ((pairs, "pairs/s"), (events, "events/s")):
        alone, by_spark = count / seconds["in process"], count / seconds["Spark"]
        yield record("in process, one thread", alone, unit)
        yield record("Spark, 2 cores", by_spark, unit, "in process, one thread", by_spark / alone)
    yield record("Spark, 2 cores", seconds["Spark"], "s")
    yield record("largest difference of answers", apart, "probability")


def typed(workbook: str) -> str:
    """The workbook of `anabranch simulate traffic`, with the types that Spark would find in its files."""
    for old, new in (
        ("KEY (sector) TIME t", "KEY (sector INTEGER) TIME t TIMESTAMP"),
        ("KEY (pair, side) TIME t", "KEY (pair INTEGER, side STRING) TIME t DOUBLE"),
    ):
        workbook = workbook.replace(old, new)
    return workbook


def answers_in_process(job: RelateJob, path: Path) -> pa.Table:
    """What Spark's workers do, on one thread: entities are put together, and all of them are one block."""
    with one_thread():
        return decide(job, _members(job, path))


def sizes(job: RelateJob, path: Path) -> tuple[int, int]:
    """How many pairs WHERE chooses, and their point events; those that lie apart in time are never looked at."""
    lengths = np.array([len(blob) // 16 for blob in run_in_process(job, path)["entity"].to_pylist()])
    if job.analysis.equalities:
        return len(lengths) // 2, int(lengths.sum())
    return len(lengths) * (len(lengths) - 1) // 2, int(lengths.sum()) * (len(lengths) - 1)


def _members(job: RelateJob, path: Path) -> pa.Table:
    """Every entity as the first operand, and as the second."""
    entities = run_in_process(job, path)
    sides = [pa.repeat(pa.scalar(side, pa.int32()), entities.num_rows) for side in (0, 1)]
    return pa.concat_tables([entities.append_column("side", side) for side in sides])


PARTS = {
    "kernel": kernel,
    "throughput": throughput,
    "accuracy": accuracy,
    "selectivity": selectivity,
    "sase": sase,
    "spark": spark,
}
