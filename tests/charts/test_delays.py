"""The picture of delays: a histogram and a curve for each component."""

from __future__ import annotations

import numpy as np

from anabranch.charts.delays import Panel, draw_delays
from anabranch.drawing.svg import UNLIKELY
from tests.drawing.pictures import elements, points, texts


def steep(x: np.ndarray) -> np.ndarray:
    """Return a density that is unbounded near 0."""
    return 1e9 / x


def test_each_component_has_bars_and_a_curve_inside_its_plot() -> None:
    delays = np.random.default_rng(0).exponential(2.0, 400)
    panels = [Panel("<y> & more", delays, steep), Panel("z", np.array([5.0]), steep), Panel("none", np.empty(0), steep)]
    picture = draw_delays(panels, "delays", "seconds")
    curves = elements(picture, "polyline")
    assert len(curves) == 2
    assert len(elements(picture, "rect", fill=UNLIKELY)) == 20 + 5
    assert min(y for curve in curves for _, y in points(curve)) >= 0
    assert "<y> & more" in texts(picture)
    assert texts(picture).count("seconds") == 2
