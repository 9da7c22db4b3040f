"""Probability over time as an SVG picture: for notebooks, web pages and documents.

The picture stands alone: no script, no font, no address. It brings its own background, so that it reads the
same on a white page and on a dark one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa

from anabranch.show.axis import day, ticks
from anabranch.show.series import Instant, Series, Timeline, highest, timeline
from anabranch.show.text import safe, short

PAPER, INK, FAINT, GRID = "#fcfcfa", "#1f2933", "#64707d", "#e3e6e4"
LIKELY, UNLIKELY, TRUE = "#0b7a8f", "#9cc9d1", "#d9480f"
FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

ROW, PLOT, TOP, BOTTOM, EDGE = 56, 36, 44, 44, 20
"""Heights in pixels: of a group, of its plot, above and below all groups; and the margin at both sides."""

LABEL_LENGTH = 18


class Svg(str):
    """SVG text that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Scale:
    """From time to pixels."""

    start: float
    end: float
    left: float
    right: float

    def __call__(self, value: float) -> float:
        """The place of an instant on the page."""
        length = self.end - self.start
        share = (value - self.start) / length if length > 0 else 0.0
        return self.left + share * (self.right - self.left)


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """An SVG element; `content` is SVG already, attributes are escaped (`_` in their names is `-`)."""
    written = "".join(f' {key.replace("_", "-")}="{_attribute(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def label(text: str, x: float, y: float, *, size: float = 12, fill: str = INK, **attributes: str | float) -> str:
    """Text on the page, whatever it holds."""
    return element("text", escape(safe(text)), x=x, y=y, font_size=size, fill=fill, **attributes)


def key(signs: Sequence[tuple[str, str, str]], x: float, y: float) -> str:
    """What the signs of a picture mean, as (sign, colour, meaning), ending at x."""
    parts = []
    for number, (sign, colour, meaning) in enumerate(signs):
        parts.append(element("tspan", sign, fill=colour, font_size=13, dx=14 if number else 0))
        parts.append(element("tspan", escape(safe(meaning)), dx=5))
    return element("text", "".join(parts), x=x, y=y, font_size=12, fill=FAINT, text_anchor="end")


def page(parts: Sequence[str], width: float, height: float, description: str) -> Svg:
    """A whole picture: a card with rounded corners, and what is drawn on it."""
    card = element("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=10, fill=PAPER, stroke=GRID)
    title = element("title", escape(safe(description)))
    body = "\n".join([title, card, *parts])
    return Svg(
        element(
            "svg",
            f"\n{body}\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_attribute(width)} {_attribute(height)}",
            width=width,
            height=height,
            role="img",
            font_family=FONT,
        )
    )


def time_axis(scale: Scale, y: float, top: float, *, clock: bool, spacing: float = 80) -> list[str]:
    """Ticks with their labels below y, and faint lines up to top."""
    room = max(int((scale.right - scale.left) / spacing), 2)
    parts = []
    for value, text in ticks(scale.start, scale.end, at_most=room, clock=clock):
        x = scale(value)
        parts.append(element("line", x1=x, x2=x, y1=top, y2=y, stroke=GRID))
        parts.append(label(text, x, y + 16, size=11, fill=FAINT, text_anchor="middle"))
    return parts


def bar_width(groups: Sequence[Series], scale: Scale) -> float:
    """As wide as the distance between two instants, but wide enough to be seen."""
    times = np.unique(np.concatenate([group.times for group in groups] or [np.empty(0)]))
    instant = float(np.diff(times).min()) if times.size > 1 else 0.0
    return max(3.0, scale(scale.start + instant) - scale.left)


def probability_bars(
    group: Series, scale: Scale, base: float, height: float, width: float, threshold: float | None
) -> list[str]:
    """A bar for each answer of a group, standing on base; the likelier are drawn over the others."""
    parts = []
    for number in np.argsort(group.probabilities, kind="stable"):
        t, p = float(group.times[number]), float(group.probabilities[number])
        if scale.start <= t <= scale.end and p > 0:
            tall = max(min(p, 1.0) * height, 1.0)
            fill = LIKELY if threshold is None or p >= threshold else UNLIKELY
            parts.append(element("rect", x=scale(t) - width / 2, y=base - tall, width=width, height=tall, fill=fill))
    return parts


def threshold_line(scale: Scale, y: float) -> str:
    """A dashed line across the plot."""
    return element(
        "line", x1=scale.left, x2=scale.right, y1=y, y2=y, stroke=FAINT, stroke_width=0.8, stroke_dasharray="3 3"
    )


def true_mark(x: float, y: float) -> str:
    """A small triangle that points up at (x, y)."""
    points = f"{_attribute(x)},{_attribute(y)} {_attribute(x - 4.5)},{_attribute(y + 8)} "
    return element("polygon", points=f"{points}{_attribute(x + 4.5)},{_attribute(y + 8)}", fill=TRUE)


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
) -> Svg:
    """Draw the probability of each group over time, one below the other.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping columns.
    title : str
        Stands above the chart.
    by : sequence of str, optional
        The grouping columns, where they are not all the others.
    span : pair of instants, optional
        The stretch of time to show, where it is not that of the data.
    threshold : float, optional
        Drawn as a line; what reaches it is darker.
    truth : pa.Table, optional
        When it really happened (`t` and the grouping columns): marked below each group.
    limit : int
        How many groups are drawn: those with the highest peaks.
    width : int
        In pixels.

    Returns
    -------
    Svg
        The text of the picture; a notebook shows it.
    """
    time = timeline(answers, by=by, span=span, truth=truth)
    groups = highest(time.groups, limit)
    longest = max((min(len(group.label), LABEL_LENGTH) for group in groups), default=0)
    scale = Scale(time.start, time.end, EDGE + 12 + 7.2 * longest, width - EDGE - 24)
    bottom = TOP + ROW * max(len(groups), 1)
    parts = [label(title or "probability over time", EDGE, 27, size=15, font_weight=600)]
    parts.append(key(_signs(threshold, truth is not None), width - EDGE, 27))
    parts += time_axis(scale, bottom, TOP, clock=time.clock)
    wide = bar_width(groups, scale)
    for number, group in enumerate(groups):
        parts += _row(group, time, scale, TOP + ROW * (number + 1) - (ROW - PLOT - 6), wide, threshold)
    more = len(time.groups) - len(groups)
    if more:
        parts.append(label(f"… and {more:,} more", EDGE, bottom + 34, size=11, fill=FAINT))
    if time.clock:
        parts.append(label(day(time.start), width - EDGE, bottom + 34, size=11, fill=FAINT, text_anchor="end"))
    return page(parts, width, bottom + BOTTOM, title or "probability over time")


def _row(group: Series, time: Timeline, scale: Scale, base: float, wide: float, threshold: float | None) -> list[str]:
    """One group: its name, a frame, bars, the threshold and the truth."""
    parts = [label(short(group.label, LABEL_LENGTH), EDGE, base - PLOT / 2 + 4, size=13)]
    parts.append(element("line", x1=scale.left, x2=scale.right, y1=base, y2=base, stroke=FAINT, stroke_width=0.8))
    for share in (0, 1):
        y = base - share * PLOT
        parts.append(label(str(share), scale.right + 6, y + 3.5, size=10, fill=FAINT))
    parts += probability_bars(group, scale, base, PLOT, wide, threshold)
    if threshold is not None:
        parts.append(threshold_line(scale, base - threshold * PLOT))
    parts += [true_mark(scale(float(t)), base + 2) for t in group.true_times if time.start <= t <= time.end]
    return parts


def _signs(threshold: float | None, marked: bool) -> list[tuple[str, str, str]]:
    """The entries of the key."""
    levels = [("■", UNLIKELY, "less"), ("■", LIKELY, f"at least {threshold:g}")] if threshold is not None else []
    return levels + ([("▲", TRUE, "really happened")] if marked else [])


def _attribute(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
