"""Probability over time as an SVG picture, for notebooks, web pages and documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anabranch.drawing import svg
from anabranch.drawing.axis import day
from anabranch.evaluation.series import Instant, Series, Timeline, highest, timeline
from anabranch.text import short

ROW, PLOT, BOTTOM = 56, 36, 44
"""Heights in pixels: of a group, of its plot, and of the margin below all groups."""

LABEL_LENGTH = 18


def chart_svg(
    answers: pa.Table,
    *,
    title: str = "",
    by: Sequence[str] | None = None,
    span: tuple[Instant, Instant] | None = None,
    threshold: float | None = None,
    truth: pa.Table | None = None,
    limit: int = 20,
    width: int = 800,
) -> svg.Svg:
    """Draw the probability of each group over time, one group below the other.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping columns.
    title : str
        The title of the chart.
    by : sequence of str, optional
        The grouping columns; by default all that are not about time and probability.
    span : pair of instants, optional
        The time range to show; by default that of the data.
    threshold : float, optional
        Drawn as a line; probabilities that reach it are darker.
    truth : pa.Table, optional
        The true events (`t` and the grouping columns), marked below each group.
    limit : int
        The maximum number of groups; those with the highest peaks are drawn.
    width : int
        In pixels.

    Returns
    -------
    Svg
        The text of the picture, which a notebook displays.
    """
    time = timeline(answers, by=by, span=span, truth=truth)
    groups = highest(time.groups, limit)
    longest = max((min(len(group.label), LABEL_LENGTH) for group in groups), default=0)
    scale = svg.Scale(time.start, time.end, svg.EDGE + 12 + 7.2 * longest, width - svg.EDGE - 24)
    bottom = svg.TOP + ROW * max(len(groups), 1)
    parts = svg.header(title or "probability over time", _signs(threshold, truth is not None), width)
    parts += svg.time_axis(scale, bottom, svg.TOP, clock=time.clock)
    bar = bar_width(groups, scale)
    for number, group in enumerate(groups):
        parts += _row(group, time, scale, svg.TOP + ROW * (number + 1) - (ROW - PLOT - 6), bar, threshold)
    hidden = len(time.groups) - len(groups)
    if hidden:
        parts.append(svg.label(f"… and {hidden:,} more", svg.EDGE, bottom + 34, size=11, fill=svg.FAINT))
    if time.clock:
        parts.append(
            svg.label(day(time.start), width - svg.EDGE, bottom + 34, size=11, fill=svg.FAINT, text_anchor="end")
        )
    return svg.page(parts, width, bottom + BOTTOM, title or "probability over time")


def bar_width(groups: Sequence[Series], scale: svg.Scale) -> float:
    """Return the width of a bar: the smallest distance between two times, but wide enough to be visible."""
    times = np.unique(np.concatenate([group.times for group in groups] or [np.empty(0)]))
    step = float(np.diff(times).min()) if times.size > 1 else 0.0
    return max(3.0, scale(scale.start + step) - scale.left)


def probability_bars(
    group: Series, scale: svg.Scale, base: float, height: float, width: float, threshold: float | None
) -> list[str]:
    """Draw a bar on `base` for each answer of a group, higher probabilities over lower ones."""
    parts = []
    for number in np.argsort(group.probabilities, kind="stable"):
        t, p = float(group.times[number]), float(group.probabilities[number])
        if scale.start <= t <= scale.end and p > 0:
            tall = max(min(p, 1.0) * height, 1.0)
            fill = svg.LIKELY if threshold is None or p >= threshold else svg.UNLIKELY
            parts.append(
                svg.element("rect", x=scale(t) - width / 2, y=base - tall, width=width, height=tall, fill=fill)
            )
    return parts


def threshold_line(scale: svg.Scale, y: float) -> str:
    """Draw a dashed line across the plot."""
    return svg.element(
        "line", x1=scale.left, x2=scale.right, y1=y, y2=y, stroke=svg.FAINT, stroke_width=0.8, stroke_dasharray="3 3"
    )


def true_mark(x: float, y: float) -> str:
    """Draw the mark of a true event: a small triangle whose tip is (x, y)."""
    points = f"{svg.attribute(x)},{svg.attribute(y)} {svg.attribute(x - 4.5)},{svg.attribute(y + 8)} "
    return svg.element("polygon", points=f"{points}{svg.attribute(x + 4.5)},{svg.attribute(y + 8)}", fill=svg.TRUE)


def _row(
    group: Series, time: Timeline, scale: svg.Scale, base: float, bar: float, threshold: float | None
) -> list[str]:
    """Draw one group: its name, a base line, bars, the threshold and the true events."""
    parts = [svg.label(short(group.label, LABEL_LENGTH), svg.EDGE, base - PLOT / 2 + 4, size=13)]
    parts.append(
        svg.element("line", x1=scale.left, x2=scale.right, y1=base, y2=base, stroke=svg.FAINT, stroke_width=0.8)
    )
    for share in (0, 1):
        y = base - share * PLOT
        parts.append(svg.label(str(share), scale.right + 6, y + 3.5, size=10, fill=svg.FAINT))
    parts += probability_bars(group, scale, base, PLOT, bar, threshold)
    if threshold is not None:
        parts.append(threshold_line(scale, base - threshold * PLOT))
    parts += [true_mark(scale(float(t)), base + 2) for t in group.true_times if time.start <= t <= time.end]
    return parts


def _signs(threshold: float | None, marked: bool) -> list[tuple[str, str, str]]:
    """Return the entries of the key."""
    levels = (
        [("■", svg.UNLIKELY, "less"), ("■", svg.LIKELY, f"at least {threshold:g}")] if threshold is not None else []
    )
    return levels + ([("▲", svg.TRUE, "really happened")] if marked else [])
