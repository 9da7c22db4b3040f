"""The quality benchmark over simulated readings: its comparisons, its workbook, and charts of curves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, curves_svg
from benchmarks.quality.charts import draw_calibration, draw_quality
from benchmarks.quality.judging import Answers, beats, longest_range, run_starts
from benchmarks.quality.queries import ARCHIVED, DETECTIONS, INPUTS, METHODS, MODELS, QUERIES, stayed
from benchmarks.quality.visit import MARGIN, draw_typical_visit

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.evaluation import Quality
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner
from tests.benchmarks.charts import parse_chart, polylines, texts

BASE = Quality(0.5, answers=10, right=8, events=10, found=5)


@pytest.mark.parametrize(
    ("right", "found", "better"),
    [(9, 6, True), (8, 6, True), (9, 5, True), (8, 5, False), (9, 4, False), (7, 9, False)],
)
def test_a_quality_beats_another_if_no_measure_is_worse_and_one_is_better(right: int, found: int, better: bool) -> None:
    assert beats(Quality(0.1, 10, right, 10, found), BASE) == better


def test_a_quality_without_answers_does_not_beat_another() -> None:
    assert not beats(Quality(0.9, 0, 0, 10, 0), BASE)


def test_the_longest_range_of_thresholds() -> None:
    results = [Quality(n / 10, 10, right, 10, 6) for n, right in enumerate((9, 1, 9, 9, 9, 1, 9))]
    assert longest_range(results, lambda quality: beats(quality, BASE)) == (0.2, 0.4)
    assert longest_range(results, lambda quality: quality.f1 > 2) is None


def test_only_the_first_of_consecutive_detections_counts() -> None:
    names, t = ["b", "a", "a", "a", "a", "b"], [4, 2, 1, 4, 3, 5]
    answers = pa.table({"x": names, "t": t, "probability": [0.9, 0.9, 0.9, 0.9, 0.1, 0.9]})
    assert run_starts(answers, 0.5).select(["x", "t"]).to_pylist() == [
        {"x": "a", "t": 1},
        {"x": "a", "t": 4},
        {"x": "b", "t": 4},
    ]
    assert run_starts(answers, 0.05)["t"].to_pylist() == [1, 4]
    assert run_starts(answers, 0.95).num_rows == 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_the_workbook_is_valid(model: str, method: str) -> None:
    catalog = Catalog()
    text = INPUTS.format(model=model, method=METHODS[method]) + DETECTIONS + stayed("stayed", 5)
    assert declare(parse(text), catalog) == []
    assert {query.name for query in catalog.queries()} == set(QUERIES)
    assert Planner(catalog).objections(catalog.queries()) == []


def test_every_model_has_a_calibration_curve(chart_folder: Path) -> None:
    t = list(range(100))
    truth = pa.table({"x": ["a"] * 50, "t": t[:50]})
    answers = {
        (model, "SMOOTH", query): pa.table(
            {"x": ["a"] * 100, "t": t, "probability": [0.8 - shift if at < 60 else 0.1 for at in t]}
        )
        for model, shift in zip(MODELS, (0.0, 0.2, 0.4), strict=True)
        for query in QUERIES
    }
    draw_calibration(Answers(answers, dict.fromkeys(QUERIES, truth)))
    chart = parse_chart((chart_folder / "quality-calibration.svg").read_text())
    colours = Counter(line["stroke"] for line in polylines(chart))
    assert colours == dict.fromkeys((FIRST, SECOND, BASELINE, PALE), 2 * len(QUERIES))
    text = "".join(chart.itertext())
    assert all(meaning in text for meaning in MODELS.values())


def test_every_method_has_a_quality_curve(chart_folder: Path) -> None:
    t = list(range(100))
    truth = pa.table({"x": ["a"] * 50, "t": t[:50]})
    table = pa.table({"x": ["a"] * 100, "t": t, "probability": [0.9 if at < 60 else 0.1 for at in t]})
    methods = (*ARCHIVED.methods, ARCHIVED.baseline)
    answers = {("heading", method, query): table for method in methods for query in QUERIES}
    draw_quality(ARCHIVED, Answers(answers, dict.fromkeys(QUERIES, truth)))
    chart = parse_chart((chart_folder / "quality-archived.svg").read_text())
    colours = Counter(line["stroke"] for line in polylines(chart))
    assert colours == dict.fromkeys((FIRST, SECOND, BASELINE), 3 * len(QUERIES))


def test_a_visit_that_viterbi_misses_is_drawn(chart_folder: Path) -> None:
    stays = [("a", range(100, 170)), ("b", range(50, 120))]
    found = {("b", t): 1.0 for t in range(50, 120)}
    unsure = {("a", t): 0.4 for t in range(100, 170)}
    draw_typical_visit({"SMOOTH": unsure, "MARGINALS": {}, "VITERBI": found}, stays)
    chart = parse_chart((chart_folder / "quality-visit.svg").read_text())
    points = {line["stroke"]: len(line["points"].split()) for line in polylines(chart)}
    assert points == dict.fromkeys((PALE, FIRST, SECOND, BASELINE), 70 + 2 * MARGIN)


def test_points_without_a_value_or_outside_the_axis_are_left_out() -> None:
    curve = Curve(FIRST, [(0.0001, 0.1), (0.001, 0.0), (0.01, 0.5), (0.1, float("nan"))])
    axis = Axis(0.001, 0.1, ticks=(0.001, 0.1), name="threshold", logarithmic=True)
    panels = {"row": {"left": [curve], "right": [curve]}}
    lines = polylines(parse_chart(curves_svg("a <title>", panels, axis, [(FIRST, "it")], label_width=50)))
    assert len(lines) == 2
    (start, middle) = (tuple(map(float, point.split(","))) for point in lines[0]["points"].split())
    assert middle[0] > start[0]
    assert start[1] - middle[1] == pytest.approx(46), "half of a panel"


def test_the_y_axis_can_be_logarithmic() -> None:
    curve = Curve(FIRST, [(0.0, 1e8), (1.0, 1e9), (2.0, 1.0), (3.0, 1e-5)])
    y_axis = Axis(1e-4, 1e8, ticks=(1e-4, 1.0, 20_000.0, 1e8), logarithmic=True)
    x_axis = Axis(0.0, 3.0, ticks=(0, 3))
    legend = [(FIRST, "it")] * 5
    chart = parse_chart(curves_svg("speeds", {"row": {"": [curve]}}, x_axis, legend, 50, y_axis, panel_height=120))
    (line,) = polylines(chart)
    heights = [float(point.split(",")[1]) for point in line["points"].split()]
    assert heights[0] == heights[1], "a value above the axis is drawn at its end"
    assert heights[2] - heights[0] == pytest.approx(80), "two thirds of a panel"
    assert len(heights) == 3
    assert {"10⁻⁴", "1", "20000", "10⁸"} <= texts(chart)
