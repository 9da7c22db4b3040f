"""Delays as a picture: for each component, a histogram of the observed delays and the fitted distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64
from anabranch.drawing import svg
from anabranch.text import short

PANEL, PLOT = 170, 96
"""Heights in pixels: of a component, and of its plot."""

MOST_BARS = 40
CURVE_POINTS = 240
TITLE_LENGTH = 90


@dataclass(frozen=True, slots=True)
class Panel:
    """The observed delays of a component, and the density of the distribution that was fitted to them."""

    title: str
    delays: F64
    density: Callable[[F64], F64]


def draw_delays(panels: Sequence[Panel], title: str, unit: str = "", width: int = 800) -> svg.Svg:
    """Draw a histogram for each component, and its fitted distribution over it.

    Parameters
    ----------
    panels : sequence of Panel
        Those without delays are left out.
    title : str
        The title of the picture.
    unit : str
        The unit of the delays, such as 'seconds'.
    width : int
        In pixels.

    Examples
    --------
    >>> panel = Panel("y", np.array([1.0, 2.0, 2.5]), lambda x: np.exp(-x / 2) / 2)
    >>> draw_delays([panel], "delays").startswith("<svg")
    True
    """
    shown = [panel for panel in panels if len(panel.delays)]
    parts = svg.header(short(title, TITLE_LENGTH), [("■", svg.UNLIKELY, "seen"), ("—", svg.LIKELY, "fitted")], width)
    for number, panel in enumerate(shown):
        parts += _panel(panel, svg.TOP + PANEL * number, unit, width)
    return svg.page(parts, width, svg.TOP + PANEL * max(len(shown), 1) + 8, title)


def _panel(panel: Panel, top: float, unit: str, width: int) -> list[str]:
    longest = float(panel.delays.max())
    scale = svg.Scale(0.0, longest * 1.02, svg.EDGE, width - svg.EDGE)
    base = top + 32 + PLOT
    bars = int(np.clip(np.sqrt(len(panel.delays)), 5, MOST_BARS))
    heights, ends = np.histogram(panel.delays, bins=bars, range=(0.0, longest), density=True)
    x = np.linspace(0.0, scale.end, CURVE_POINTS + 1)[1:]
    curve = panel.density(x)
    # A density may be unbounded near 0; the plot must not be.
    highest = max(float(heights.max()), min(float(curve.max()), 1.5 * float(heights.max())))
    parts = [svg.label(short(panel.title, TITLE_LENGTH), svg.EDGE, top + 20, size=13)]
    parts += svg.time_axis(scale, base, base - PLOT, clock=False)
    for height, begin, end in zip(heights, ends, ends[1:], strict=False):
        tall, left = PLOT * float(height) / highest, scale(float(begin))
        wide = max(scale(float(end)) - left - 1, 0.5)
        parts.append(svg.element("rect", x=left, y=base - tall, width=wide, height=tall, fill=svg.UNLIKELY))
    rise = PLOT * np.minimum(curve / highest, 1.0)
    points = svg.point_list(((scale(float(at)), base - y) for at, y in zip(x, rise, strict=True)), decimals=2)
    parts.append(svg.element("polyline", points=points, fill="none", stroke=svg.LIKELY, stroke_width=2))
    parts.append(svg.element("line", x1=scale.left, x2=scale.right, y1=base, y2=base, stroke=svg.INK, stroke_width=0.8))
    if unit:
        parts.append(svg.label(unit, width - svg.EDGE, base + 30, size=11, fill=svg.FAINT, text_anchor="end"))
    return parts
