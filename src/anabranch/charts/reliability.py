"""Reliability as a picture: the share of true answers over their probability, and how many answers each bin has."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.drawing import svg
from anabranch.evaluation.reliability import Bin, wilson_interval
from anabranch.text import short

WIDTH, PLOT, COUNTS = 420, 340, 60
"""In pixels: the width of the picture, and the heights of the plot and of the bars below it."""

LEFT, RIGHT = 62, 20
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TITLE_LENGTH = 44


def draw_reliability(bins: Sequence[Bin], title: str = "Reliability") -> svg.Svg:
    """Draw the share of true answers over the mean probability of each bin.

    The line is calibrated where it is on the diagonal; below it the probabilities are too high. A vertical line is the
    95 % interval (Wilson) of the share that independent answers give. The bars below show the number of answers.

    Examples
    --------
    >>> draw_reliability([Bin(0.8, 0.9, 40, 0.85, 0.5)], "theft").startswith("<svg")
    True
    """
    x = svg.Scale(0.0, 1.0, LEFT, WIDTH - RIGHT)
    y = svg.Scale(0.0, 1.0, svg.TOP + PLOT, svg.TOP + 14)
    base = svg.TOP + PLOT + 34 + COUNTS
    parts = [svg.label(short(title, TITLE_LENGTH), svg.EDGE, svg.TITLE_BASELINE, size=15, font_weight=600)]
    parts += _frame(x, y)
    parts += [part for bin in bins for part in _interval(bin, x, y)]
    points = svg.point_list([(x(bin.predicted), y(bin.observed)) for bin in bins], decimals=2)
    parts.append(svg.element("polyline", points=points, fill="none", stroke=svg.LIKELY, stroke_width=2))
    parts += [svg.element("circle", cx=x(bin.predicted), cy=y(bin.observed), r=3.5, fill=svg.LIKELY) for bin in bins]
    parts += _counts(bins, x, base)
    parts.append(svg.label("probability", (x.left + x.right) / 2, base + 20, size=12, text_anchor="middle"))
    return svg.page(parts, WIDTH, base + 34, title)


def _frame(x: svg.Scale, y: svg.Scale) -> list[str]:
    """The grid, its labels, and the diagonal."""
    parts = []
    for tick in TICKS:
        parts.append(svg.element("line", x1=x.left, x2=x.right, y1=y(tick), y2=y(tick), stroke=svg.GRID))
        parts.append(svg.element("line", x1=x(tick), x2=x(tick), y1=y.left, y2=y.right, stroke=svg.GRID))
        parts.append(svg.label(f"{tick:g}", x.left - 7, y(tick) + 4, size=11, fill=svg.FAINT, text_anchor="end"))
        parts.append(svg.label(f"{tick:g}", x(tick), y.left + 16, size=11, fill=svg.FAINT, text_anchor="middle"))
    diagonal = {"stroke": svg.FAINT, "stroke_dasharray": "4 4"}
    parts.append(svg.element("line", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0), **diagonal))
    middle = (y.left + y.right) / 2
    turned = f"rotate(-90 {svg.EDGE + 4} {middle:.1f})"
    parts.append(
        svg.label("share of true answers", svg.EDGE + 4, middle, size=12, text_anchor="middle", transform=turned)
    )
    return parts


def _interval(bin: Bin, x: svg.Scale, y: svg.Scale) -> list[str]:
    low, high = wilson_interval(bin.observed, bin.answers)
    at = x(bin.predicted)
    return [svg.element("line", x1=at, x2=at, y1=y(low), y2=y(high), stroke=svg.UNLIKELY, stroke_width=3)]


def _counts(bins: Sequence[Bin], x: svg.Scale, base: float) -> list[str]:
    """Bars for the number of answers in each bin."""
    most = max((bin.answers for bin in bins), default=1)
    parts = []
    for bin in bins:
        tall = max((COUNTS - 16) * bin.answers / most, 1.0)
        left, wide = x(bin.low) + 1, x(bin.high) - x(bin.low) - 2
        parts.append(svg.element("rect", x=left, y=base - tall, width=wide, height=tall, fill=svg.UNLIKELY))
        centre, above = left + wide / 2, base - tall - 4
        parts.append(svg.label(_count(bin.answers), centre, above, size=10, fill=svg.FAINT, text_anchor="middle"))
    parts.append(svg.label("answers", x.left - 7, base - 4, size=11, fill=svg.FAINT, text_anchor="end"))
    return parts


def _count(number: int) -> str:
    """A number of at most four characters, so that neighbours do not touch."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= 10 * size or number >= size == 1_000_000:
            return f"{number / size:.3g}{unit}"
    return str(number)
