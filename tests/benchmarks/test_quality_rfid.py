"""The contest over simulated readings: who beats whom at which thresholds, its workbook, and the pictures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from benchmarks import quality_rfid
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, curves_svg
from benchmarks.quality import Quality
from benchmarks.quality_rfid import ASKED, INPUTS, METHODS, MODELS, QUERIES, beats, longest, run_starts, stayed

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.families import objections
from anabranch.language.parser import parse

SVG = "{http://www.w3.org/2000/svg}"
HELD = Quality(0.5, answers=10, right=8, events=10, found=5)


@pytest.mark.parametrize(
    ("right", "found", "better"),
    [(9, 6, True), (8, 6, True), (9, 5, True), (8, 5, False), (9, 4, False), (7, 9, False)],
)
def test_both_beat_another_where_neither_is_worse_and_one_is_better(right: int, found: int, better: bool) -> None:
    assert beats(Quality(0.1, 10, right, 10, found), HELD) == better


def test_no_answers_beat_nothing() -> None:
    assert not beats(Quality(0.9, 0, 0, 10, 0), HELD)


def test_the_longest_stretch_of_thresholds() -> None:
    found = [Quality(n / 10, 10, right, 10, 6) for n, right in enumerate((9, 1, 9, 9, 9, 1, 9))]
    assert longest(found, lambda each: beats(each, HELD)) == (0.2, 0.4)
    assert longest(found, lambda each: each.f1 > 2) is None


def test_of_detections_that_follow_each_other_the_first_counts() -> None:
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
def test_the_workbook_can_be_run(model: str, method: str) -> None:
    catalog = Catalog()
    text = INPUTS.format(model=model, method=METHODS[method]) + ASKED + stayed("stayed", 5)
    assert declare(parse(text), catalog) == []
    assert {query.name for query in catalog.queries()} == set(QUERIES)
    assert objections(catalog.queries(), catalog) == []


def test_every_model_has_a_curve_of_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality_rfid, "PICTURES", tmp_path)
    t = list(range(100))
    truth = pa.table({"x": ["a"] * 50, "t": t[:50]})
    answers = {
        (model, "SMOOTH", query): pa.table(
            {"x": ["a"] * 100, "t": t, "probability": [0.8 - shift if at < 60 else 0.1 for at in t]}
        )
        for model, shift in zip(MODELS, (0.0, 0.2, 0.4), strict=True)
        for query in QUERIES
    }
    quality_rfid.draw_calibration(quality_rfid.Asked(answers, dict.fromkeys(QUERIES, truth)))
    picture = ElementTree.fromstring((tmp_path / "quality-calibration.svg").read_text())  # noqa: S314 (our own)
    colours = Counter(line.attrib["stroke"] for line in picture.iter(f"{SVG}polyline"))
    assert colours == dict.fromkeys((FIRST, SECOND, BASELINE, PALE), 2 * len(QUERIES))
    written = "".join(picture.itertext())
    assert all(meaning in written for meaning in MODELS.values())


def test_curves_are_drawn_where_they_have_values() -> None:
    curve = Curve(FIRST, [(0.0001, 0.1), (0.001, 0.0), (0.01, 0.5), (0.1, float("nan"))])
    axis = Axis(0.001, 0.1, marks=(0.001, 0.1), name="threshold", logarithmic=True)
    picture = curves_svg("a <title>", {"row": {"left": [curve], "right": [curve]}}, axis, [(FIRST, "it")], row_width=50)
    lines = list(ElementTree.fromstring(picture).iter(f"{SVG}polyline"))  # noqa: S314 (we drew it ourselves)
    assert len(lines) == 2
    (start, middle) = (tuple(map(float, point.split(","))) for point in lines[0].attrib["points"].split())
    assert middle[0] > start[0]
    assert start[1] - middle[1] == pytest.approx(46), "half of a panel"


def test_curves_can_be_drawn_up_a_logarithmic_axis() -> None:
    curve = Curve(FIRST, [(0.0, 1e8), (1.0, 1e9), (2.0, 1.0), (3.0, 1e-5)])
    up = Axis(1e-4, 1e8, marks=(1e-4, 1.0, 20_000.0, 1e8), name="", logarithmic=True)
    axis = Axis(0.0, 3.0, marks=(0, 3), name="")
    picture = ElementTree.fromstring(  # noqa: S314 (we drew it ourselves)
        curves_svg("speeds", {"row": {"": [curve]}}, axis, [(FIRST, "it")] * 5, row_width=50, up=up, tall=120)
    )
    (line,) = picture.iter(f"{SVG}polyline")
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights[0] == heights[1], "what is above the axis is drawn at its end"
    assert heights[2] - heights[0] == pytest.approx(80), "two thirds of a panel"
    assert len(heights) == 3
    assert {"10⁻⁴", "1", "20000", "10⁸"} <= {text.text for text in picture.iter(f"{SVG}text")}
