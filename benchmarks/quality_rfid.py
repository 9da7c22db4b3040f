"""Quality over simulated RFID readings, as in section 4.2 of Lahar: probabilities against a deterministic path.

People walk about a building whose antennas miss much (`anabranch simulate rfid`), and four queries are asked of where
they were: in real time, filtered probabilities against the most likely place at each instant (MLE); over the archive,
smoothed ones against the most likely path (VITERBI), with the correlations between instants and without (MARGINALS).
Everything is asked with each model of the simulator. The answers are those of `Session.run`.

An answer above the threshold is a detection. It is right where an event of its tag is at most WITHIN away, and an event
is found where a detection is; "runs as one" counts only the first of detections that follow each other. A round is
another building with other people; what is measured is all rounds together. Without --quick the pictures in docs/images
are drawn anew.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from anabranch.session import Session
from anabranch.simulate import rfid
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, curves_svg
from benchmarks.engines import spark_session
from benchmarks.harness import Options, Record
from benchmarks.quality import Bin, Quality, calibration, expected_error, qualities

PICTURES = Path(__file__).parents[1] / "docs" / "images"

WITHIN, WITHIN_LESS = 30.0, 5.0
"""How many seconds apart an answer and an event may be: Lahar's tolerance, and another to see what depends on it."""

THRESHOLDS = (0.001, 0.002, 0.005, *(n / 100 for n in range(1, 51)))

MODELS = {"building": "knows the building", "habits": "knows the habits, too", "heading": "knows the heading, too"}
QUERIES = {"coffee": "coffee", "laptop_left": "laptop left", "meeting": "meeting", "stayed": "stayed 5 s"}

#: How each method is written in the workbook.
METHODS = {
    "FILTER": "FILTER PRUNE 1e-6",
    "PARTICLE": "PARTICLE(200) PRUNE 1e-6",
    "MLE": "MLE",
    "SMOOTH": "SMOOTH PRUNE 1e-6",
    "MARGINALS": "MARGINALS PRUNE 1e-6",
    "VITERBI": "VITERBI",
}

INPUTS = """\
CREATE RELATION person (tag) FROM 'person.csv';
CREATE RELATION laptop (tag) FROM 'laptop.csv';
CREATE RELATION office (tag, location) FROM 'office.csv';
CREATE RELATION meets_in (tag, location) FROM 'meets_in.csv';
CREATE RELATION coffee_room (location) FROM 'coffee_room.csv';
CREATE RELATION corridor (location) FROM 'corridor.csv';
CREATE STREAM readings KEY (tag) VALUE (reader) TIME t FROM 'readings.parquet';
CREATE STREAM at KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM '{model}/' METHOD {method};
"""

ASKED = """\
CREATE QUERY coffee AS
  PATTERN at(x, l1) THEN at(x, l2) THEN at(x, l3)
  WHERE person(x) AND NOT coffee_room(l1) AND NOT coffee_room(l2) AND coffee_room(l3)
  GROUP BY x THRESHOLD 0.001;
CREATE QUERY laptop_left AS
  PATTERN at(x, l1) THEN at(x, l2)
  WHERE laptop(x) AND office(x, l1) AND corridor(l2)
  GROUP BY x THRESHOLD 0.001;
CREATE QUERY meeting AS
  PATTERN at(x, l1) THEN at(x, l2)
  WHERE person(x) AND NOT meets_in(x, l1) AND meets_in(x, l2)
  GROUP BY x THRESHOLD 0.001;
"""


def stayed(name: str, seconds: int) -> str:
    """The query whether somebody has been in the own office for some seconds."""
    goals = [f"at(x, l{n})" for n in range(1, seconds + 1)]
    conditions = ["person(x)", *(f"office(x, l{n})" for n in range(1, seconds + 1))]
    pattern, where = " THEN ".join(goals), " AND ".join(conditions)
    return f"CREATE QUERY {name} AS PATTERN {pattern} WHERE {where} GROUP BY x THRESHOLD 0.001;\n"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who is held against whom."""

    name: str
    title: str
    methods: tuple[str, str]
    baseline: str


REAL_TIME = Scenario("realtime", "Real time: probabilities against MLE", ("FILTER", "PARTICLE"), "MLE")
ARCHIVED = Scenario("archived", "Archive: probabilities against VITERBI", ("SMOOTH", "MARGINALS"), "VITERBI")


# ------------------------------------------------------------ answers and truth


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers of all rounds, by (model, method, query), and the true events, by query; x is the tag."""

    answers: dict[tuple[str, str, str], pa.Table]
    truth: dict[str, pa.Table]


def ask_all(scenario: Scenario, options: Options) -> Asked:
    """Simulate, and put every query to every contestant with each model."""
    answers: dict[tuple[str, str, str], list[pa.Table]] = defaultdict(list)
    truth: dict[str, list[pa.Table]] = defaultdict(list)
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="anabranch-quality-") as folder:
        for number in range(1 if options.quick else options.rounds):
            world = make_world(options, number)
            rfid.write(world, Path(folder))
            for query in QUERIES:
                truth[query].append(_of_round(true_events(world, query), number))
            for model in MODELS:
                for method in (*scenario.methods, scenario.baseline):
                    session = open_session(spark, Path(folder), model, method, ASKED + stayed("stayed", rfid.STAYED))
                    for query in QUERIES:
                        found = _of_round(session.run(query).toArrow(), number)
                        answers[model, method, query].append(found)
    return Asked(
        {asked: pa.concat_tables(tables) for asked, tables in answers.items()},
        {query: pa.concat_tables(tables) for query, tables in truth.items()},
    )


def make_world(options: Options, number: int) -> rfid.Rfid:
    """The people of a round, with their laptops."""
    people, minutes = (4, 15) if options.quick else (30, 60)
    return rfid.simulate(rfid.Options(people=people, objects=1, minutes=minutes), options.seed + number)


def true_events(world: rfid.Rfid, query: str) -> pa.Table:
    """When a query was true of whom: x, t."""
    of_query = world.events.filter(pc.equal(world.events["query"], query))
    return pa.table({"x": of_query["tag"], "t": of_query["t"]})


def open_session(spark: SparkSession, folder: Path, model: str, method: str, queries: str) -> Session:
    """A session that knows the queries, over a stream that is inferred in this way."""
    workbook = folder / "quality.abq"
    workbook.write_text(INPUTS.format(model=model, method=METHODS[method]) + queries, encoding="utf-8")
    session = Session(spark)
    session.execute_file(str(workbook))
    return session


def _of_round(table: pa.Table, number: int) -> pa.Table:
    """The same with names that tell the people of one round from those of another."""
    names = pc.binary_join_element_wise(str(number), table["x"].cast(pa.string()), "/")
    return table.set_column(table.column_names.index("x"), "x", names)


# ------------------------------------------------------------ precision and recall


def realtime(options: Options) -> Iterator[Record]:
    """FILTER and PARTICLE against MLE."""
    asked = ask_all(REAL_TIME, options)
    if not options.quick:
        draw_quality(REAL_TIME, asked)
    yield from quality_records(REAL_TIME, asked, options)


def archived(options: Options) -> Iterator[Record]:
    """SMOOTH, with correlations, and MARGINALS, without, against VITERBI; and whether SMOOTH's probabilities hold."""
    asked = ask_all(ARCHIVED, options)
    if not options.quick:
        draw_quality(ARCHIVED, asked)
        draw_calibration(asked)
    yield from quality_records(ARCHIVED, asked, options)
    yield from calibration_records(asked, options)


def quality_records(scenario: Scenario, asked: Asked, options: Options) -> Iterator[Record]:
    """The figures of each query with each model."""
    for query in QUERIES:
        for model in MODELS:
            for within in (WITHIN, WITHIN_LESS):
                workload = f"{query}, {model}, within {within:g} s"
                record = partial(Record, f"quality_rfid.{scenario.name}", workload, seed=options.seed)
                contest = _contest(scenario, asked, model, query, within, record)
                # Without any answer there is no precision, as may be in a small world.
                yield from (each for each in contest if not math.isnan(each.value))


def _contest(
    scenario: Scenario, asked: Asked, model: str, query: str, within: float, record: partial[Record]
) -> Iterator[Record]:
    """The baseline, then each method at its best threshold, and the thresholds at which it beats the baseline."""
    baseline = scenario.baseline
    (held,) = _judged(asked, model, baseline, query, within, [0.5])
    yield record("true events", held.events, "events")
    for metric in ("f1", "precision", "recall"):
        yield record(f"{baseline}: {metric}", getattr(held, metric), "share")
    for method, found in _found(scenario, asked, model, query, within):
        best = max(found, key=lambda each: each.f1)
        for metric in ("f1", "precision", "recall"):
            value, other = getattr(best, metric), getattr(held, metric)
            name = f"{method}: {metric}, at threshold {best.threshold:g}"
            yield record(name, value, "share", baseline, value / other if other else None)
        for what, stretch in (
            ("both beat it", longest(found, partial(beats, held=held))),
            ("F1 beats it", longest(found, lambda each: each.f1 > held.f1)),
        ):
            if stretch:
                yield record(f"{method}: {what}, from threshold", stretch[0], "probability", baseline)
                yield record(f"{method}: {what}, to threshold", stretch[1], "probability", baseline)


def _judged(
    asked: Asked, model: str, method: str, query: str, within: float, thresholds: Sequence[float]
) -> list[Quality]:
    return qualities(asked.answers[model, method, query], asked.truth[query], "x", thresholds, within)


def _found(
    scenario: Scenario, asked: Asked, model: str, query: str, within: float
) -> Iterator[tuple[str, list[Quality]]]:
    """Each method as Lahar counts, then with detections that follow each other as one, where events do not."""
    for method in scenario.methods:
        yield method, _judged(asked, model, method, query, within, THRESHOLDS)
        if query != "stayed":
            answers, truth = asked.answers[model, method, query], asked.truth[query]
            yield (
                f"{method}, runs as one",
                [
                    found
                    for threshold in THRESHOLDS
                    for found in qualities(run_starts(answers, threshold), truth, "x", [threshold], within)
                ],
            )


def run_starts(answers: pa.Table, threshold: float) -> pa.Table:
    """The answers above a threshold which the same group has none of at the instant before."""
    above = answers.filter(pc.greater(answers["probability"], threshold)).sort_by(
        [("x", "ascending"), ("t", "ascending")]
    )
    group = above["x"].combine_chunks().dictionary_encode().indices.to_numpy()
    t = above["t"].to_numpy()
    follows = (group[1:] == group[:-1]) & (t[1:] == t[:-1] + 1)
    return above.filter(pa.array(np.concatenate([[True] * (len(t) > 0), ~follows]), pa.bool_()))


def beats(found: Quality, held: Quality) -> bool:
    """Whether precision and recall are both at least as good as another's, and one of them is better."""
    pairs = ((found.precision, held.precision), (found.recall, held.recall))
    return all(mine >= other for mine, other in pairs) and any(mine > other for mine, other in pairs)


def longest(found: Sequence[Quality], holds: Callable[[Quality], bool]) -> tuple[float, float] | None:
    """The first and last of the most thresholds in a row at which something holds."""
    stretches = [[each.threshold for each in stretch] for held, stretch in groupby(found, key=holds) if held]
    best = max(stretches, key=len, default=[])
    return (best[0], best[-1]) if best else None


def draw_quality(scenario: Scenario, asked: Asked, model: str = "heading") -> None:
    """Precision, recall and F1 over the threshold, a row a query."""
    ends = THRESHOLDS[0], THRESHOLDS[-1]
    panels: dict[str, dict[str, list[Curve]]] = {}
    for query, name in QUERIES.items():
        (held,) = _judged(asked, model, scenario.baseline, query, WITHIN, [0.5])
        found = [_judged(asked, model, method, query, WITHIN, THRESHOLDS) for method in scenario.methods]
        panels[name] = {
            metric: [
                Curve(BASELINE, [(end, getattr(held, metric.lower())) for end in ends], dashed=True),
                *(
                    Curve(colour, [(each.threshold, getattr(each, metric.lower())) for each in of_method])
                    for colour, of_method in zip((SECOND, FIRST), found[::-1], strict=True)
                ),
            ]
            for metric in ("precision", "recall", "F1")
        }
    axis = Axis(*ends, marks=(0.001, 0.01, 0.1, 0.5), name="threshold", logarithmic=True)
    signs = list(zip((FIRST, SECOND, BASELINE), (*scenario.methods, scenario.baseline), strict=True))
    _save(f"quality-{scenario.name}", curves_svg(scenario.title, panels, axis, signs, row_width=104))


def _save(name: str, picture: str) -> None:
    (PICTURES / f"{name}.svg").write_text(picture + "\n", encoding="utf-8")


# ------------------------------------------------------------ calibration

FEW = 20
"""Fewer answers of about the same probability tell nothing of the share that is true."""


def _bins(asked: Asked, model: str, query: str, within: float) -> list[Bin]:
    return calibration(asked.answers[model, "SMOOTH", query], asked.truth[query], "x", within=within)


def calibration_records(asked: Asked, options: Options) -> Iterator[Record]:
    """What SMOOTH says on average of each tenth, and the share that is true at that very instant."""
    for query in QUERIES:
        for model in MODELS:
            record = partial(
                Record, "quality_rfid.calibration", f"{query}, {model}, SMOOTH, at the instant", seed=options.seed
            )
            bins = _bins(asked, model, query, 0.0)
            yield record("expected calibration error", expected_error(bins), "probability")
            for each in bins:
                yield record(f"true of {each.answers:,} answers at {each.said:.2f}", each.true, "share")


def draw_calibration(asked: Asked) -> None:
    """The share that is true over the probability that SMOOTH gives, a curve a model, a column a query."""
    colours = dict(zip(MODELS, (FIRST, SECOND, BASELINE), strict=True))
    panels = {
        name: {
            query: [
                Curve(PALE, [(0.0, 0.0), (1.0, 1.0)], dashed=True),
                *(
                    Curve(colour, [(each.said, each.true) for each in bins if each.answers >= FEW])
                    for model, colour in colours.items()
                    for bins in [_bins(asked, model, of_query, within)]
                ),
            ]
            for of_query, query in QUERIES.items()
        }
        for name, within in (("at the instant", 0.0), (f"within {WITHIN:g} s", WITHIN))
    }
    axis = Axis(0.0, 1.0, marks=(0.0, 0.5, 1.0), name="probability that SMOOTH gives")
    title = "The share of true answers"
    signs = [(colour, MODELS[model]) for model, colour in colours.items()]
    _save("quality-calibration", curves_svg(title, panels, axis, signs, row_width=118))


# ------------------------------------------------------------ one visit to a room

LENGTHS = (1, 2, 3, 5, 10, 20)
VISIT_METHODS = ("SMOOTH", "MARGINALS", "VITERBI")
VISIT_SECONDS = range(60, 181)
"""How long the visit may be that is drawn."""

BEFORE = 15
"""The seconds that are drawn before and after it."""

Chances = dict[tuple[str, int], float]
"""The probability of an answer, by tag and t; what is missing is below the query's threshold."""


def visit(options: Options) -> Iterator[Record]:
    """Has somebody been in the own office for k seconds? With correlations, without, and by the most likely path."""
    world = make_world(options, 0)
    found = _ask_lengths(world)
    stays = _stays(world)
    means = {
        (method, seconds): _mean(found[method, seconds], stays, seconds)
        for method in VISIT_METHODS
        for seconds in LENGTHS
    }
    for seconds in LENGTHS:
        record = partial(Record, "quality_rfid.visit", f"stayed {seconds} s, building, where true", seed=options.seed)
        first = means["SMOOTH", seconds]
        yield record("SMOOTH: mean probability", first, "probability")
        for method in VISIT_METHODS[1:]:
            mean = means[method, seconds]
            yield record(f"{method}: mean probability", mean, "probability", "SMOOTH", mean / first if first else None)
    if not options.quick:
        draw_visit({method: found[method, rfid.STAYED] for method in VISIT_METHODS}, stays)


def _ask_lengths(world: rfid.Rfid) -> dict[tuple[str, int], Chances]:
    found = {}
    queries = "".join(stayed(f"stayed_{seconds}", seconds) for seconds in LENGTHS)
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="anabranch-quality-") as folder:
        rfid.write(world, Path(folder))
        for method in VISIT_METHODS:
            session = open_session(spark, Path(folder), "building", method, queries)
            for seconds in LENGTHS:
                table = session.run(f"stayed_{seconds}").toArrow()
                keys = zip(table["x"].to_pylist(), table["t"].to_pylist(), strict=True)
                found[method, seconds] = dict(zip(keys, table["probability"].to_pylist(), strict=True))
    return found


def _stays(world: rfid.Rfid) -> list[tuple[str, range]]:
    """Who was in the own office, and at which instants, visit by visit."""
    office = dict(zip(*world.relations["office"].to_pydict().values(), strict=True))
    people = set(world.relations["person"]["tag"].to_pylist())
    stays = []
    for tag, rows in groupby(world.locations.to_pylist(), key=lambda row: row["tag"]):
        if tag in people:
            for inside, visit in groupby(rows, key=lambda row: row["location"] == office[row["tag"]]):
                times = [row["t"] for row in visit]
                if inside:
                    stays.append((tag, range(times[0], times[-1] + 1)))
    return stays


def _mean(chances: Chances, stays: Sequence[tuple[str, range]], seconds: int) -> float:
    """The mean probability over all instants at which somebody really had been there for so long."""
    true = [(tag, t) for tag, visit in stays for t in visit[seconds - 1 :]]
    return sum(chances.get(instant, 0.0) for instant in true) / len(true) if true else float("nan")


def draw_visit(chances: Mapping[str, Chances], stays: Sequence[tuple[str, range]]) -> None:
    """Of the visits of which the most likely path knows nothing, the one about which SMOOTH is in the middle."""
    missed = [
        (tag, visit)
        for tag, visit in stays
        if len(visit) in VISIT_SECONDS and not any((tag, t) in chances["VITERBI"] for t in visit)
    ]
    missed.sort(key=lambda each: _mean(chances["SMOOTH"], [each], rfid.STAYED))
    tag, times = missed[len(missed) // 2]
    first = times[0]
    seen = range(-BEFORE, len(times) + BEFORE)
    truth = [(float(t), float(rfid.STAYED - 1 <= t < len(times))) for t in seen]
    curves = [Curve(PALE, truth)]
    for colour, method in zip((FIRST, SECOND, BASELINE), VISIT_METHODS, strict=True):
        points = [(float(t), chances[method].get((tag, first + t), 0.0)) for t in seen]
        curves.append(Curve(colour, points, dashed=colour == BASELINE))
    end = float(seen[-1])
    axis = Axis(float(-BEFORE), end, marks=tuple(range(0, int(end), 20)), name="seconds since entering")
    title = f"One visit: {rfid.STAYED} s in the own office"
    signs = [*zip((FIRST, SECOND, BASELINE), VISIT_METHODS, strict=True), (PALE, "in truth")]
    _save("quality-visit", curves_svg(title, {"probability": {"": curves}}, axis, signs, row_width=104))


PARTS = {"realtime": realtime, "archived": archived, "visit": visit}
