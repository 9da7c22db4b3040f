"""The quality of SEQUENCE answers as readings are lost, and whether their scores are probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow.compute as pc

from anabranch.evaluation import Quality
from anabranch.simulate.shop import Options as ShopOptions
from anabranch.simulate.shop import simulate
from benchmarks.harness import Options, Record, recorder
from benchmarks.sequence import charts
from benchmarks.sequence.reliability import ReliabilityBin, reliability_bins
from benchmarks.sequence.shop import (
    ShopAnswers,
    WeighedItems,
    at_threshold,
    deterministic,
    run_shop_query,
    scored_jointly,
)

MISSES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4)
HALF, LOW = 0.5, 0.1
"""The probabilities that a reading is lost, and the thresholds of the answers."""

LAWS = ("gamma", "exponential", "lognormal", "uniform")

Qualities = Mapping[str, Quality]
"""The quality of the answers of each contestant."""

ByScore = dict[str, list[ReliabilityBin]]
"""The bins of each score: posterior and joint."""


# ------------------------------------------------------------ quality


def quality(options: Options) -> Iterator[Record]:
    """Thefts and purchases found as more readings are lost, with MISS and by a deterministic engine."""
    items = 2_000 if options.quick else 50_000
    by_miss = {miss: shop_qualities(ShopOptions(items=items, miss=miss), options.seed) for miss in MISSES}
    for query in ("shoplifting", "purchase"):
        record = recorder("sequence.quality", f"{query}, {items:,} items taken", options)
        for miss, results in by_miss.items():
            baseline = results[query]["deterministic"]
            for name, result in results[query].items():
                prefix = f"{miss:.0%} lost: {name}"
                yield record(f"{prefix}: precision", result.precision, "")
                yield record(f"{prefix}: recall", result.recall, "")
                yield record(f"{prefix}: F1", result.f1, "", "deterministic", result.f1 / baseline.f1)
            yield record(f"{miss:.0%} lost: true events", baseline.events, query)
    if not options.quick:
        charts.draw_quality(by_miss)


def shop_qualities(shop_options: ShopOptions, seed: int) -> dict[str, Qualities]:
    """Return the quality of both queries about one shop, run in three ways."""
    shop = simulate(shop_options, seed)
    left = pc.is_valid(shop.truth["exit"])
    stolen = shop.truth["stolen"]
    is_true = {"shoplifting": stolen, "purchase": pc.and_(left, pc.invert(stolen))}
    results: dict[str, Qualities] = {}
    for query, events in is_true.items():
        tags = set(shop.truth.filter(events)["tag"].to_pylist())
        lossy = run_shop_query(shop.reads, at_threshold(shop.workbook, LOW), query)
        plain = run_shop_query(shop.reads, deterministic(shop.workbook), query)
        results[query] = {
            f"threshold {HALF:g}": _quality(lossy, tags, HALF),
            f"threshold {LOW:g}": _quality(lossy, tags, LOW),
            "deterministic": _quality(plain, tags, 0.0),
        }
    return results


def _quality(answers: ShopAnswers, true: set[str], threshold: float) -> Quality:
    claimed = set(answers.tags[answers.probability >= threshold])
    right = len(claimed & true)
    return Quality(threshold, len(claimed), right, len(true), right)


# ------------------------------------------------------------ calibration


def calibration(options: Options) -> Iterator[Record]:
    """The share of true answers among those of similar score: SCORING POSTERIOR, and the score of the paper."""
    items = 5_000 if options.quick else 300_000
    results: dict[str, dict[str, ByScore]] = {}
    for law in LAWS:
        for pattern, scores in shop_scores(law, items, options.seed).items():
            results.setdefault(pattern, {})[law] = scores
    results["(x, y, w, z)"] = {"exponential": two_event_scores(items, options.seed)}
    for pattern, by_law in results.items():
        record = recorder("sequence.calibration", f"{pattern}, {items:,} items", options)
        for law, by_score in by_law.items():
            for score, bins in by_score.items():
                worst = max(bins, key=lambda bin: bin.deviation)
                unit = f"errors, at {worst.predicted:.2f}"
                yield record(f"{law}: {score}: largest deviation", worst.deviation, unit)
                largest = max(abs(bin.observed - bin.predicted) for bin in bins)
                yield record(f"{law}: {score}: largest deviation", largest, "probability")
            for bin in by_score["posterior"]:
                metric = f"{law}: share of true ones of {bin.answers:,} answers at {bin.predicted:.3f}"
                yield record(metric, bin.observed, f"+- {bin.error:.4f}")
    posterior = [
        bin.deviation for by_law in results.values() for by_score in by_law.values() for bin in by_score["posterior"]
    ]
    record = recorder("sequence.calibration", "SCORING POSTERIOR, all patterns and laws", options)
    yield record(f"largest deviation of {len(posterior)} bins", max(posterior), "errors")
    yield record("root mean square deviation", float(np.sqrt(np.mean(np.square(posterior)))), "errors")
    if not options.quick:
        charts.draw_calibration(results)


def shop_scores(law: str, items: int, seed: int) -> dict[str, ByScore]:
    """Return the bins of both queries about a shop whose checkout loses 30% of its readings, if none was read."""
    shop_options = ShopOptions(
        items=items, shortest=1.0, checkout_law=law, miss_shelf=0, miss_checkout=0.3, miss_exit=0
    )
    shop = simulate(shop_options, seed)
    stolen = set(shop.truth.filter(shop.truth["stolen"])["tag"].to_pylist())
    bins: dict[str, ByScore] = {}
    for pattern, query in (("(x, y, z)", "purchase"), ("(x, !y, z)", "shoplifting")):
        text = at_threshold(shop.workbook, 1e-6)
        is_theft = query == "shoplifting"  # its second event is the exit, which is always read
        bins[pattern] = {}
        for score, workbook in _scorings(text):
            answers = run_shop_query(shop.reads, workbook, query)
            used = answers.is_read[:, 1] == is_theft
            if score == "posterior":
                unread = set(answers.tags[used])
            else:  # the score of the paper also assumes losses of events that were read
                used &= np.fromiter((tag in unread for tag in answers.tags), np.bool_, len(answers.tags))
            was_stolen = np.fromiter((tag in stolen for tag in answers.tags[used]), np.bool_, int(used.sum()))
            bins[pattern][score] = reliability_bins(answers.probability[used], was_stolen == is_theft)
    return bins


def two_event_scores(items: int, seed: int) -> ByScore:
    """Return the bins of the query whether both of two events in one gap happened, if neither was read."""
    weighed_items = WeighedItems(items)
    reads, paid = weighed_items.draw(seed)
    unread = np.ones(items, np.bool_)
    readers = reads["reader"].to_numpy(zero_copy_only=False)
    between = np.isin(readers, ("scales", "checkout"))
    unread[reads["tag"].to_numpy(zero_copy_only=False)[between].astype(np.int64)] = False
    bins = {}
    for score, workbook in _scorings(at_threshold(weighed_items.workbook(), 1e-6)):
        answers = run_shop_query(reads, workbook, "weighed_and_paid")
        numbers = answers.tags.astype(np.int64)
        used = unread[numbers] & ~answers.is_read[:, 1:3].any(axis=1)
        bins[score] = reliability_bins(answers.probability[used], paid[numbers[used]])
    return bins


def _scorings(workbook: str) -> tuple[tuple[str, str], ...]:
    return ("posterior", workbook), ("joint", scored_jointly(workbook))
