"""Precision, recall and calibration of detections: in real time and over the archive."""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.evaluation import Quality, expected_error
from anabranch.simulate import rfid
from benchmarks.engines import spark_session
from benchmarks.harness import Options, Record, Recorder, recorder
from benchmarks.quality.charts import draw_calibration, draw_quality
from benchmarks.quality.judging import NARROW, WITHIN, Answers, beats, longest_range
from benchmarks.quality.queries import (
    ARCHIVED,
    DETECTIONS,
    MODELS,
    QUERIES,
    REAL_TIME,
    Scenario,
    open_session,
    simulate_round,
    stayed,
)


def realtime(options: Options) -> Iterator[Record]:
    """FILTER and PARTICLE against MLE."""
    answers = run_all(REAL_TIME, options)
    if not options.quick:
        draw_quality(REAL_TIME, answers)
    yield from quality_records(REAL_TIME, answers, options)


def archived(options: Options) -> Iterator[Record]:
    """SMOOTH (with correlations) and MARGINALS (without) against VITERBI; and the calibration of SMOOTH."""
    answers = run_all(ARCHIVED, options)
    if not options.quick:
        draw_quality(ARCHIVED, answers)
        draw_calibration(answers)
    yield from quality_records(ARCHIVED, answers, options)
    yield from calibration_records(answers, options)


# ------------------------------------------------------------ answers and true events


def run_all(scenario: Scenario, options: Options) -> Answers:
    """Simulate, and run every query by every method with each model."""
    answers: dict[tuple[str, str, str], list[pa.Table]] = defaultdict(list)
    truth: dict[str, list[pa.Table]] = defaultdict(list)
    queries = DETECTIONS + stayed("stayed", rfid.STAYED)
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="anabranch-quality-") as folder:
        for number in range(1 if options.quick else options.rounds):
            world = simulate_round(options, number)
            rfid.write(world, Path(folder))
            for query in QUERIES:
                truth[query].append(_with_round(true_events(world, query), number))
            for model in MODELS:
                for method in (*scenario.methods, scenario.baseline):
                    session = open_session(spark, Path(folder), model, method, queries)
                    for query in QUERIES:
                        table = _with_round(session.run(query).toArrow(), number)
                        answers[model, method, query].append(table)
    return Answers(
        {contestant: pa.concat_tables(tables) for contestant, tables in answers.items()},
        {query: pa.concat_tables(tables) for query, tables in truth.items()},
    )


def true_events(world: rfid.Rfid, query: str) -> pa.Table:
    """Return the tags and the times for which a query was true: x, t."""
    events = world.events.filter(pc.equal(world.events["query"], query))
    return pa.table({"x": events["tag"], "t": events["t"]})


def _with_round(table: pa.Table, number: int) -> pa.Table:
    """Return the table with the number of the round in each tag, so that tags differ between rounds."""
    names = pc.binary_join_element_wise(str(number), table["x"].cast(pa.string()), "/")
    return table.set_column(table.column_names.index("x"), "x", names)


# ------------------------------------------------------------ records


def quality_records(scenario: Scenario, answers: Answers, options: Options) -> Iterator[Record]:
    """Yield the records of each query with each model."""
    for query in QUERIES:
        for model in MODELS:
            for within in (WITHIN, NARROW):
                record = recorder(f"quality_rfid.{scenario.name}", f"{query}, {model}, within {within:g} s", options)
                records = _records(scenario, answers, model, query, within, record)
                # Without answers there is no precision, which can happen in a small simulation.
                yield from (one for one in records if not math.isnan(one.value))


def _records(
    scenario: Scenario, answers: Answers, model: str, query: str, within: float, record: Recorder
) -> Iterator[Record]:
    """Yield the baseline, then each method at its best threshold, and the thresholds at which it beats the baseline."""
    baseline = answers.baseline(model, scenario.baseline, query, within)
    yield record("true events", baseline.events, "events")
    for metric in ("f1", "precision", "recall"):
        yield record(f"{scenario.baseline}: {metric}", getattr(baseline, metric), "share")
    for method, results in _results(scenario, answers, model, query, within):
        best = max(results, key=lambda quality: quality.f1)
        for metric in ("f1", "precision", "recall"):
            value, other = getattr(best, metric), getattr(baseline, metric)
            name = f"{method}: {metric}, at threshold {best.threshold:g}"
            yield record(name, value, "share", scenario.baseline, value / other if other else None)
        for what, ends in (
            ("precision and recall beat it", longest_range(results, partial(beats, baseline=baseline))),
            ("F1 beats it", longest_range(results, lambda quality: quality.f1 > baseline.f1)),
        ):
            if ends:
                yield record(f"{method}: {what}, from threshold", ends[0], "probability", scenario.baseline)
                yield record(f"{method}: {what}, to threshold", ends[1], "probability", scenario.baseline)


def _results(
    scenario: Scenario, answers: Answers, model: str, query: str, within: float
) -> Iterator[tuple[str, list[Quality]]]:
    """Yield the qualities of each method counted as in Lahar, then with runs as one, except for `stayed`."""
    for method in scenario.methods:
        yield method, answers.qualities(model, method, query, within)
        if query != "stayed":
            yield f"{method}, runs as one", answers.runs_as_one(model, method, query, within)


def calibration_records(answers: Answers, options: Options) -> Iterator[Record]:
    """Yield the mean probability by SMOOTH and the share of true answers at the same instant, for each tenth."""
    for query in QUERIES:
        for model in MODELS:
            record = recorder("quality_rfid.calibration", f"{query}, {model}, SMOOTH, at the instant", options)
            bins = answers.calibration(model, query, 0.0)
            yield record("expected calibration error", expected_error(bins), "probability")
            for bin in bins:
                metric = f"share of true ones of {bin.answers:,} answers at {bin.predicted:.2f}"
                yield record(metric, bin.observed, "share")
