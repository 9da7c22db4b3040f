"""The picture of delays: a histogram and a curve for each component, whatever it is called."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from anabranch.show.delays import Panel, draw_delays
from anabranch.show.svg import UNLIKELY

NAMESPACE = "{http://www.w3.org/2000/svg}"


def steep(x: np.ndarray) -> np.ndarray:
    """A density that rises without bounds towards 0."""
    return 1e9 / x


def test_each_component_has_bars_and_a_curve_inside_its_plot() -> None:
    delays = np.random.default_rng(0).exponential(2.0, 400)
    panels = [Panel("<y> & more", delays, steep), Panel("z", np.array([5.0]), steep), Panel("none", np.empty(0), steep)]
    picture = ElementTree.fromstring(draw_delays(panels, "delays", "seconds"))  # noqa: S314 (we drew it ourselves)
    assert len(list(picture.iter(f"{NAMESPACE}polyline"))) == 2
    bars = [each for each in picture.iter(f"{NAMESPACE}rect") if each.get("fill") == UNLIKELY]
    assert len(bars) == 20 + 5
    heights = [
        float(point.split(",")[1])
        for curve in picture.iter(f"{NAMESPACE}polyline")
        for point in curve.get("points", "").split()
    ]
    assert min(heights) >= 0
    texts = [text.text for text in picture.iter(f"{NAMESPACE}text")]
    assert "<y> & more" in texts
    assert texts.count("seconds") == 2
