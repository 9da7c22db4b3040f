"""The reliability chart and the tables of an evaluation."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import Console

from anabranch.charts import draw_reliability, print_evaluation
from anabranch.charts.reliability import wilson_interval
from anabranch.evaluation import Bin, evaluate
from tests.drawing.pictures import elements, texts

BINS = [Bin(0.1, 0.2, 12_400, 0.15, 0.1), Bin(0.8, 0.9, 900, 0.85, 0.5), Bin(0.9, 1.0, 2_000_000, 0.97, 0.99)]


def test_a_point_per_bin_with_its_number_of_answers() -> None:
    picture = draw_reliability(BINS, "theft <b>")
    points = elements(picture, "circle")
    assert len(points) == 3
    assert [float(point.get("cx", "")) for point in points] == sorted(float(point.get("cx", "")) for point in points)
    assert {"12.4k", "900", "2M", "probability", "share of true answers", "theft <b>"} <= set(texts(picture))


def test_no_bins_are_an_empty_chart() -> None:
    assert not elements(draw_reliability([]), "circle")


@pytest.mark.parametrize(("share", "count", "interval"), [(0.0, 10, (0.0, 0.2775)), (1.0, 10, (0.7225, 1.0))])
def test_intervals_stay_between_0_and_1(share: float, count: int, interval: tuple[float, float]) -> None:
    assert wilson_interval(share, count) == pytest.approx(interval, abs=1e-4)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_an_evaluation_in_the_terminal(encoding: str) -> None:
    answers = pa.table({"x": ["añá", "ben"], "t": [1, 50], "probability": [0.9, 0.7]})
    result = evaluate(answers, pa.table({"x": ["añá"], "t": [2]}), tolerance=1)
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_evaluation(result, Console(file=file, width=120))
    file.flush()
    text = file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert "calibration error" in text
    assert "0.700 false  x ben, t 50; no event" in text
    assert "0.9" in text
