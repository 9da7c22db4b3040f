"""SEQUENCE: how good its answers are as readings are lost, whether its scores are probabilities, and how fast it is.

`quality` and `calibration` ask about simulated shops, of which the truth is known; they depend on the seed alone.
`kernel`, `pruning` and `window` run in this process, over events of `sequence_workloads.py`, and are timed by the
processor's clock; a rate counts all events, also those of kinds that no query asks for. `spark` goes from one CSV
file to answers that are thrown away, by the clock on the wall, beside Flink SQL where there is one
(`sequence_flink.py`). Without --quick the pictures in docs/images are drawn anew.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from anabranch.session import Session
from anabranch.show.quality import Quality
from anabranch.simulate.shop import Options as ShopOptions
from anabranch.simulate.shop import simulate
from benchmarks import sequence_charts, sequence_flink
from benchmarks.engines import consume, open_session, spark_session
from benchmarks.harness import Options, Record
from benchmarks.sequence_workloads import (
    InProcess,
    Load,
    LongWay,
    QueryShape,
    Rows,
    Scored,
    ask_shop,
    at_threshold,
    count_matches,
    count_next,
    deterministic,
    in_order,
    scored_jointly,
    seconds_of,
    write_csv,
)

MISSES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4)
HALF, LOW = 0.5, 0.1
"""The chances that a reading is lost, and the thresholds that answers are held to."""

LAWS = ("gamma", "exponential", "lognormal", "uniform")

OF_KEY = 5
"""The events of a key that a window holds on average, where that does not change."""

WINDOWS = (2.5, 5, 10, 20)
COMPONENTS = (2, 3, 4, 5, 6)
THRESHOLDS = (0.5, 0.05, 0.02, 0.005, 0.0005)
KEYS = (1, 10, 100, 1_000, 10_000, 100_000)
USUAL = 0.05
"""The threshold where that does not change: above the square of the miss rate, so at most one event may be missing."""


def _recorder(benchmark: str, workload: str, options: Options) -> Callable[..., Record]:
    return partial(Record, f"sequence.{benchmark}", workload, seed=options.seed)


def load_of(record: Callable[..., Record]) -> Iterator[Record]:
    """How busy the machine was."""
    yield record("load of the machine, last minute", os.getloadavg()[0], "processes")


# ------------------------------------------------------------ quality


Found = Mapping[str, Quality]
"""How good the answers of each contestant are."""


def quality(options: Options) -> Iterator[Record]:
    """Thefts and purchases that are found as more readings are lost: ours, and an engine that believes its readers."""
    items = 2_000 if options.quick else 50_000
    found = {miss: shop_qualities(ShopOptions(items=items, miss=miss), options.seed) for miss in MISSES}
    for query in ("shoplifting", "purchase"):
        record = _recorder("quality", f"{query}, {items:,} items taken", options)
        for miss, of_queries in found.items():
            base = of_queries[query]["deterministic"]
            for name, each in of_queries[query].items():
                yield record(f"{miss:.0%} lost: {name}: precision", each.precision, "")
                yield record(f"{miss:.0%} lost: {name}: recall", each.recall, "")
                yield record(f"{miss:.0%} lost: {name}: F1", each.f1, "", "deterministic", each.f1 / base.f1)
            yield record(f"{miss:.0%} lost: there were", base.events, query)
    if not options.quick:
        sequence_charts.draw_quality(found)


def shop_qualities(shop_options: ShopOptions, seed: int) -> dict[str, Found]:
    """Both queries about one shop, asked three ways."""
    shop = simulate(shop_options, seed)
    left = pc.is_valid(shop.truth["exit"])
    stolen = shop.truth["stolen"]
    true = {"shoplifting": stolen, "purchase": pc.and_(left, pc.invert(stolen))}
    of_queries: dict[str, Found] = {}
    for query, events in true.items():
        tags = set(shop.truth.filter(events)["tag"].to_pylist())
        ours = ask_shop(shop.reads, at_threshold(shop.workbook, LOW), query)
        plain = ask_shop(shop.reads, deterministic(shop.workbook), query)
        of_queries[query] = {
            f"threshold {HALF:g}": _quality(ours, tags, HALF),
            f"threshold {LOW:g}": _quality(ours, tags, LOW),
            "deterministic": _quality(plain, tags, 0.0),
        }
    return of_queries


def _quality(answers: Scored, true: set[str], threshold: float) -> Quality:
    found = set(answers.tags[answers.probability >= threshold])
    right = len(found & true)
    return Quality(threshold, len(found), right, len(true), right)


# ------------------------------------------------------------ calibration


@dataclass(frozen=True, slots=True)
class Reliable:
    """Answers with about the same score: how many, what they say on average, the share that is true, its error."""

    answers: int
    said: float
    true: float
    error: float

    @property
    def deviation(self) -> float:
        """How far what was said is from what was true, in standard errors."""
        return abs(self.true - self.said) / self.error


def reliability(said: np.ndarray, true: np.ndarray, bins: int = 10, least: int = 30) -> list[Reliable]:
    """Answers by what they say, in bins of equal width; those with fewer than `least` answers are left out."""
    place = np.clip((said * bins).astype(np.int64), 0, bins - 1)
    found = []
    for number in range(bins):
        some = place == number
        spread = np.sum(said[some] * (1 - said[some]))
        if some.sum() >= least and spread > 0:
            error = float(np.sqrt(spread)) / int(some.sum())
            found.append(Reliable(int(some.sum()), float(said[some].mean()), float(true[some].mean()), error))
    return found


def calibration(options: Options) -> Iterator[Record]:
    """Among the answers that claim about the same, the share that is true: SCORING POSTERIOR, and the paper's score."""
    items = 5_000 if options.quick else 300_000
    drawn: dict[str, dict[str, dict[str, list[Reliable]]]] = {}
    for law in LAWS:
        for pattern, scores in shop_scores(law, items, options.seed).items():
            drawn.setdefault(pattern, {})[law] = scores
    drawn["(x, y, w, z)"] = {"exponential": long_scores(items, options.seed)}
    for pattern, by_law in drawn.items():
        record = _recorder("calibration", f"{pattern}, {items:,} items", options)
        for law, by_score in by_law.items():
            for score, bins in by_score.items():
                worst = max(bins, key=lambda each: each.deviation)
                yield record(f"{law}: {score}: farthest off", worst.deviation, f"errors, at {worst.said:.2f}")
                far = max(abs(each.true - each.said) for each in bins)
                yield record(f"{law}: {score}: farthest off", far, "probability")
            for each in by_score["posterior"]:
                yield record(f"{law}: {each.answers:,} say {each.said:.3f}: true", each.true, f"+- {each.error:.4f}")
    posterior = [each.deviation for of in drawn.values() for by in of.values() for each in by["posterior"]]
    record = _recorder("calibration", "SCORING POSTERIOR, all patterns and laws", options)
    yield record(f"farthest off of {len(posterior)} bins", max(posterior), "errors")
    yield record("root of the mean square", float(np.sqrt(np.mean(np.square(posterior)))), "errors")
    if not options.quick:
        sequence_charts.draw_calibration(drawn)


def shop_scores(law: str, items: int, seed: int) -> dict[str, dict[str, list[Reliable]]]:
    """A shop whose checkout loses three readings in ten: both queries, where no checkout was read."""
    given = ShopOptions(items=items, shortest=1.0, checkout_law=law, miss_shelf=0, miss_checkout=0.3, miss_exit=0)
    shop = simulate(given, seed)
    stolen = set(shop.truth.filter(shop.truth["stolen"])["tag"].to_pylist())
    found: dict[str, dict[str, list[Reliable]]] = {}
    for pattern, query in (("(x, y, z)", "purchase"), ("(x, !y, z)", "shoplifting")):
        text = at_threshold(shop.workbook, 1e-6)
        is_read = query == "shoplifting"  # whose second event is the exit
        found[pattern] = {}
        for score, workbook in _scorings(text):
            answers = ask_shop(shop.reads, workbook, query)
            asked = answers.is_read[:, 1] == is_read
            if score == "posterior":
                supposed = set(answers.tags[asked])
            else:  # the paper's score also supposes losses of what was read
                asked &= np.fromiter((tag in supposed for tag in answers.tags), np.bool_, len(answers.tags))
            taken = np.fromiter((tag in stolen for tag in answers.tags[asked]), np.bool_, int(asked.sum()))
            found[pattern][score] = reliability(answers.probability[asked], taken == is_read)
    return found


def long_scores(items: int, seed: int) -> dict[str, list[Reliable]]:
    """Whether both of two events in one gap happened, where neither was read."""
    way = LongWay(items)
    reads, paid = way.draw(seed)
    unread = np.ones(items, np.bool_)
    readers = reads["reader"].to_numpy(zero_copy_only=False)
    known = np.isin(readers, ("scales", "checkout"))
    unread[reads["tag"].to_numpy(zero_copy_only=False)[known].astype(np.int64)] = False
    found = {}
    for score, workbook in _scorings(at_threshold(way.workbook(), 1e-6)):
        answers = ask_shop(reads, workbook, "way")
        numbers = answers.tags.astype(np.int64)
        asked = unread[numbers] & ~answers.is_read[:, 1:3].any(axis=1)
        found[score] = reliability(answers.probability[asked], paid[numbers[asked]])
    return found


def _scorings(workbook: str) -> tuple[tuple[str, str], ...]:
    return ("posterior", workbook), ("joint", scored_jointly(workbook))


# ------------------------------------------------------------ the kernel


def kernel(options: Options) -> Iterator[Record]:
    """Events a second on one core: stages, thresholds, windows, components and keys."""
    size = Load(events=20_000) if options.quick else Load()
    yield from _stages(size, options)
    yield from _thresholds(size, options)
    by_window = {f"{of_key:g} events of a key": (size, of_key, 3) for of_key in WINDOWS}
    yield from _sweep("the window", by_window, options)
    by_components = {
        f"{count} components": (replace(size, kinds=count + 1), OF_KEY * (count + 1) / 4, count) for count in COMPONENTS
    }
    yield from _sweep("components, one kind more than these, 1.25 events of a kind in a window", by_components, options)
    by_keys = {f"{keys:,} keys": (replace(size, keys=keys), OF_KEY, 3) for keys in KEYS if keys * OF_KEY <= size.events}
    yield from _sweep("keys", by_keys, options)


def _stages(size: Load, options: Options) -> Iterator[Record]:
    """What each further stage adds."""
    table = size.table(options.seed)
    record = _recorder("kernel", f"(A, B, C), {size}, {OF_KEY} of a key in a window, nothing lost", options)
    run = InProcess(QueryShape(3, size.window(OF_KEY)), table)
    matches = checked(run)
    stages = {
        "lists and search": run.kernel,
        "and groups": run.matches,
        "from packets to answers": run.step,
        "from rows to answers": lambda: (run.route(), run.step()),
    }
    seconds = seconds_of(stages, options.rounds)
    for name, taken in seconds.items():
        yield record(name, size.events / taken, "events/s", "lists and search", seconds["lists and search"] / taken)
    yield record("matches", matches / size.events, "an event")
    yield from load_of(record)


def _thresholds(size: Load, options: Options) -> Iterator[Record]:
    """MISS and DELAY on all but the last, at thresholds above and below the square of the miss rate."""
    table = size.table(options.seed)
    record = _recorder("kernel", f"(A, B, C), {size}, {OF_KEY} of a key in a window, MISS 0.1 on A and B", options)
    plain = QueryShape(3, size.window(OF_KEY))
    runs = {"nothing lost": InProcess(plain, table)}
    runs |= {f"threshold {each:g}": InProcess(replace(plain, threshold=each), table) for each in THRESHOLDS}
    matches = {name: checked(run) for name, run in runs.items()}
    seconds = seconds_of({name: run.kernel for name, run in runs.items()}, options.rounds)
    base = seconds["nothing lost"]
    for name, taken in seconds.items():
        yield record(name, size.events / taken, "events/s", "nothing lost", base / taken)
        yield record(f"{name}: matches", matches[name] / size.events, "an event")
    yield from load_of(record)


def _sweep(what: str, settings: Mapping[str, tuple[Load, float, int]], options: Options) -> Iterator[Record]:
    """One thing changes: the deterministic kernel, and one with losses."""
    record = _recorder("kernel", f"by {what}", options)
    for name, (size, of_key, components) in settings.items():
        table = size.table(options.seed)
        plain = QueryShape(components, size.window(of_key))
        runs = {"plain": InProcess(plain, table), "lossy": InProcess(replace(plain, threshold=USUAL), table)}
        matches = {each: checked(run) for each, run in runs.items()}
        seconds = seconds_of({each: run.kernel for each, run in runs.items()}, options.rounds)
        yield record(f"{name}: nothing lost", size.events / seconds["plain"], "events/s")
        ratio = seconds["plain"] / seconds["lossy"]
        rate = size.events / seconds["lossy"]
        yield record(f"{name}: MISS 0.1, threshold {USUAL}", rate, "events/s", "nothing lost", ratio)
        for each, count in matches.items():
            yield record(f"{name}: matches, {each}", count / size.events, "an event")
    yield from load_of(record)


def checked(run: InProcess) -> int:
    """How many matches there are, after they were compared with those of another way.

    Where nothing is lost they are counted by brute force; else the same search runs without bounds.
    """
    found = run.kernel().events
    if run.query.threshold is None:
        expected = count_matches(run.table, run.query)
        if len(found) != expected:
            raise AssertionError(f"{len(found)} matches were found, and there are {expected}")
    else:
        same(found, run.kernel(bounded=False).events)
    return len(found)


def same(one: Rows, other: Rows) -> None:
    """Two ways must have the same matches."""
    if not np.array_equal(in_order(one), in_order(other)):
        raise AssertionError(f"{len(one)} and {len(other)} matches, which are not the same")


# ------------------------------------------------------------ what is saved


def pruning(options: Options) -> Iterator[Record]:
    """Bounds of arrivals, and queues by key: each of them off, and both."""
    for rare in (None, 0.01):
        for of_key in (5, 20):
            for threshold in (0.5, USUAL):
                # Without keys the work grows with the square of what a window holds: in long ones nobody can wait.
                without_keys = of_key == 5
                events = 50_000 if without_keys else 500_000
                size = Load(events=5_000 if options.quick else events, rare=rare)
                query = QueryShape(4, size.window(of_key), threshold=threshold)
                workload = f"{query}, {size}, {of_key} of a key in a window, threshold {threshold}"
                record = _recorder("pruning", workload, options)
                yield from _pruned(query, size.table(options.seed), record, options, without_keys)


def _pruned(
    query: QueryShape, table: pa.Table, record: Callable[..., Record], options: Options, without_keys: bool
) -> Iterator[Record]:
    by_key = InProcess(query, table)
    ways = {"both": by_key.kernel, "no bounds": partial(by_key.kernel, bounded=False)}
    if without_keys:
        in_one = InProcess(replace(query, hashed=False), table)
        ways |= {"no queues by key": in_one.kernel, "neither": partial(in_one.kernel, bounded=False)}
    found = {name: run() for name, run in ways.items()}
    for each in found.values():
        same(each.events, found["both"].events)
    seconds = seconds_of(ways, min(options.rounds, 3))
    for name, taken in seconds.items():
        yield record(name, table.num_rows / taken, "events/s", "both", seconds["both"] / taken)
        yield record(f"{name}: queued", 100 * found[name].queued.mean(), "% of the kinds asked for")
    yield record("matches, the same for all", len(found["both"].events) / table.num_rows, "an event")
    yield from load_of(record)


def window(options: Options) -> Iterator[Record]:
    """The most events that are kept at one time, by the window and the threshold."""
    for rare in (None, 0.01):
        size = Load(events=20_000 if options.quick else 200_000, rare=rare)
        table = size.table(options.seed)
        for of_key in WINDOWS:
            within = size.window(of_key)
            what = f"(A, B, C), {size}, {of_key:g} of a key in a window of {within:,} ms"
            record = _recorder("window", what, options)
            for threshold in (None, *THRESHOLDS):
                kept = InProcess(QueryShape(3, within, threshold=threshold), table).step().counts.kept
                name = "nothing lost" if threshold is None else f"threshold {threshold:g}"
                yield record(name, kept, "events kept", "events in a window", kept / min(within, size.events))


# ------------------------------------------------------------ Spark, and Flink

FLINK = {"(A, B, C)": ("strict", "skip"), "(A, !B, C)": ("negated",)}
"""The patterns of MATCH_RECOGNIZE that are nearest to each query."""


def spark(options: Options) -> Iterator[Record]:
    """From one CSV file of a million events to answers that are thrown away, by Spark and by Flink SQL."""
    yield from _through_spark(Load(events=20_000) if options.quick else Load(), options)


def spark_large(options: Options) -> Iterator[Record]:
    """The same for three million events."""
    yield from _through_spark(Load(events=20_000 if options.quick else 3_000_000), options)


def _through_spark(size: Load, options: Options) -> Iterator[Record]:
    """On one core and on two."""
    rounds = 1 if options.quick else min(options.rounds, 3)
    flink = None if options.quick else sequence_flink.interpreter()
    if flink is None:
        print(f"Flink is left out: {sequence_flink.INTERPRETER} names no Python that has it")
    table = size.table(options.seed)
    with tempfile.TemporaryDirectory(prefix="anabranch-sequence-") as folder:
        ours, theirs = Path(folder) / "events.csv", Path(folder) / "rows.csv"
        write_csv(table, ours)
        write_csv(table, theirs, header=False)
        for cores in (1, 2):
            record = _recorder("spark", f"{size}, {OF_KEY} of a key in a window, {cores} cores", options)
            asked = partial(_flink, flink, theirs, table, cores, rounds) if flink else None
            with spark_session(cores) as session:
                for negative in (False, True):
                    query = QueryShape(3, size.window(OF_KEY), negative=negative)
                    yield from _contest(session, query, ours, table, asked, rounds, record)


def _contest(
    session: SparkSession,
    query: QueryShape,
    path: Path,
    table: pa.Table,
    flink: Callable | None,
    rounds: int,
    record: Callable,
) -> Iterator[Record]:
    """One query, cold and warm."""
    asked = open_session(session, query.workbook(f" FROM '{path}'"))
    seconds = [_timed(asked) for _ in range(1 + rounds)]
    matches = asked.run("asked").count()
    if matches != count_matches(table, query):
        raise AssertionError(f"Spark has {matches} matches of {query}, and there are others")
    rates = {"first run": table.num_rows / seconds[0], "warm": table.num_rows / median(seconds[1:])}
    for when, rate in rates.items():
        yield record(f"{query}, {when}", rate, "events/s")
    yield record(f"{query}: matches", matches, "matches")
    for pattern in FLINK[str(query)] if flink else ():
        theirs, count = flink(pattern, query.within)
        cold, warm = table.num_rows / theirs[0], table.num_rows / median(theirs[1:])
        yield record(f"Flink {pattern}, first run", cold, "events/s", str(query), cold / rates["first run"])
        yield record(f"Flink {pattern}, warm", warm, "events/s", str(query), warm / rates["warm"])
        yield record(f"Flink {pattern}: matches", count, "matches")
    yield from load_of(record)


def _timed(session: Session) -> float:
    start = time.perf_counter()
    consume(session.run("asked"))
    return time.perf_counter() - start


def _flink(
    python: str, path: Path, table: pa.Table, cores: int, rounds: int, pattern: str, within: int
) -> tuple[Sequence[float], int]:
    """Flink's seconds, and its matches, which must be those that there are."""
    seconds, matches = sequence_flink.measure(python, path, pattern, within, cores, 1 + rounds)
    expected = count_next(table, within)[pattern]
    if matches != expected:
        raise AssertionError(f"Flink has {matches} matches of {pattern}, and there are {expected}")
    return seconds, matches


PARTS = {
    "quality": quality,
    "calibration": calibration,
    "kernel": kernel,
    "pruning": pruning,
    "window": window,
    "spark": spark,
    "spark_large": spark_large,
}
