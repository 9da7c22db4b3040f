"""Line charts as SVG: panels in rows and columns that share their axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.drawing import svg

#: Where the charts of the documentation are.
PICTURES = Path(__file__).parents[1] / "docs" / "images"

#: The colours of the first and the second contestant, of the baseline, and of a reference line.
FIRST, SECOND, BASELINE, PALE = svg.LIKELY, "#9a6fb0", svg.TRUE, "#c9cfcc"

WIDTH, HEAD, FOOT = 800, 66, 46
"""The width of a chart, and the heights above and below its panels."""

LEGEND_LENGTH = 115
"""The number of characters of a line of a legend."""

GAP, PANEL, ROW = 36, 92, 122
"""The distance between two panels of a row; the height of a panel, without and with the space below it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The x axis or the y axis of every panel: its ends, its tick marks and its name.

    Attributes
    ----------
    logarithmic : bool
        Whether equal distances are equal ratios.
    """

    start: float
    end: float
    ticks: tuple[float, ...]
    name: str = ""
    logarithmic: bool = False

    def position(self, value: float, scale: svg.Scale) -> float:
        """Return the coordinate of a value on the page."""
        return scale(self._transformed(value))

    def scale(self, left: float, right: float) -> svg.Scale:
        """Return the scale of the axis between two coordinates of the page."""
        return svg.Scale(self._transformed(self.start), self._transformed(self.end), left, right)

    def _transformed(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def axis_over(values: Mapping[float, object], name: str, logarithmic: bool = False) -> Axis:
    """Return an axis with a tick at each key of a mapping."""
    ticks = tuple(sorted(values))
    return Axis(ticks[0], ticks[-1], ticks, name, logarithmic)


#: From 0 to 1: the default y axis.
SHARES = Axis(0.0, 1.0, ticks=(0.0, 0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a panel, as (x, y); points without a y (NaN) and points beyond the axes are left out.

    A value above the end of the y axis is drawn at the end.
    """

    colour: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


Panels = Mapping[str, Mapping[str, Sequence[Curve]]]
"""The curves of each panel, by the name of its row, then of its column."""

Legend = Sequence[tuple[str, str]]
"""The colours and their meanings."""


def legend_of(colours: Mapping[str, str]) -> Legend:
    """Return the legend of a mapping from meanings to colours."""
    return [(colour, meaning) for meaning, colour in colours.items()]


def save_chart(name: str, chart: svg.Svg) -> None:
    """Write a chart to the images of the documentation."""
    (PICTURES / f"{name}.svg").write_text(chart + "\n", encoding="utf-8")


def curves_svg(
    title: str,
    panels: Panels,
    x_axis: Axis,
    legend: Legend,
    label_width: float,
    y_axis: Axis = SHARES,
    panel_height: float = PANEL,
) -> svg.Svg:
    """Draw panels in rows and columns.

    Parameters
    ----------
    title : str
    panels : Panels
        Every row has the same columns.
    x_axis : Axis
    legend : Legend
        With more than four entries it is below the title.
    label_width : float
        The space for the names of the rows.
    y_axis : Axis
    panel_height : float
    """
    legend_height = 24 if len(legend) > 4 else 0
    head, row_height = HEAD + legend_height, panel_height + ROW - PANEL
    signs = [("━", colour, meaning) for colour, meaning in legend]
    parts = svg.header(title, signs, WIDTH, key_baseline=svg.TITLE_BASELINE + legend_height)
    columns = len(next(iter(panels.values())))
    left = svg.EDGE + label_width
    panel_width = (WIDTH - svg.EDGE - left - GAP * (columns - 1)) / columns
    for number, (row, row_panels) in enumerate(panels.items()):
        base = head + row_height * number + panel_height
        y_scale = y_axis.scale(base, base - panel_height)
        parts.append(svg.label(row, svg.EDGE, base - panel_height / 2 + 4, size=13))
        for column, (name, curves) in enumerate(row_panels.items()):
            start = left + column * (panel_width + GAP)
            x_scale = x_axis.scale(start, start + panel_width)
            if number == 0:
                middle = (x_scale.left + x_scale.right) / 2
                parts.append(svg.label(name, middle, head - 12, size=12, fill=svg.FAINT, text_anchor="middle"))
            parts += _frame(x_axis, x_scale, y_axis, y_scale)
            parts += [line for curve in curves for line in _line(curve, x_axis, x_scale, y_axis, y_scale)]
    height = head + row_height * len(panels) + FOOT - (ROW - PANEL)
    parts.append(svg.label(x_axis.name, WIDTH - svg.EDGE, height - 10, size=11, fill=svg.FAINT, text_anchor="end"))
    return svg.page(parts, WIDTH, height, title)


def grid_svg(
    title: str,
    panels: Mapping[str, Sequence[Curve]],
    x_axis: Axis,
    legend: Legend,
    columns: int = 3,
    y_axis: Axis = SHARES,
    panel_height: float = 200,
) -> svg.Svg:
    """Draw panels that have their own names, in rows of `columns`.

    Parameters
    ----------
    title : str
    panels : mapping from names to curves
        A name may have several lines.
    x_axis, y_axis : Axis
    legend : Legend
        Below the title, in as many lines as it needs.
    columns : int
    panel_height : float
    """
    parts = [svg.label(title, svg.EDGE, svg.TITLE_BASELINE, size=15, font_weight=600)]
    lines = _legend_lines(legend)
    for number, entries in enumerate(lines):
        signs = [("━", colour, meaning) for colour, meaning in entries]
        parts.append(svg.key(signs, svg.EDGE, svg.TITLE_BASELINE + 24 + 18 * number, anchor="start"))
    head = HEAD + 18 * (len(lines) - 1)
    names_height = 15 * max(len(name.splitlines()) for name in panels) + 10
    row_height = names_height + panel_height + ROW - PANEL
    width = (WIDTH - 2 * svg.EDGE - GAP * columns) / columns
    for number, (name, curves) in enumerate(panels.items()):
        row, column = divmod(number, columns)
        start, top = svg.EDGE + GAP + column * (width + GAP), head + row * row_height
        base = top + names_height + panel_height
        x_scale, y_scale = x_axis.scale(start, start + width), y_axis.scale(base, base - panel_height)
        for line, text in enumerate(name.splitlines()):
            parts.append(svg.label(text, start, top + 15 * (line + 1), size=12, fill=svg.FAINT))
        parts += _frame(x_axis, x_scale, y_axis, y_scale)
        parts += [line for curve in curves for line in _line(curve, x_axis, x_scale, y_axis, y_scale)]
    height = head + row_height * math.ceil(len(panels) / columns) + FOOT - (ROW - PANEL)
    parts.append(svg.label(x_axis.name, WIDTH - svg.EDGE, height - 10, size=11, fill=svg.FAINT, text_anchor="end"))
    return svg.page(parts, WIDTH, height, title)


def _legend_lines(legend: Legend) -> list[Legend]:
    """Split a legend into lines that fit into a chart."""
    lines: list[list[tuple[str, str]]] = [[]]
    for entry in legend:
        # A sign and the space around it are about as wide as five characters.
        if lines[-1] and sum(len(meaning) + 5 for _, meaning in (*lines[-1], entry)) > LEGEND_LENGTH:
            lines.append([])
        lines[-1].append(entry)
    return list(lines)


def _frame(x_axis: Axis, x_scale: svg.Scale, y_axis: Axis, y_scale: svg.Scale) -> Iterator[str]:
    """Draw the grid lines at the ticks of the y axis, and the ticks of the x axis."""
    base = y_scale.left
    for value in y_axis.ticks:
        y = y_axis.position(value, y_scale)
        stroke = svg.GRID if y != base else svg.FAINT
        yield svg.element("line", x1=x_scale.left, x2=x_scale.right, y1=y, y2=y, stroke=stroke, stroke_width=0.8)
        yield svg.label(_tick_text(value), x_scale.left - 5, y + 3.5, size=10, fill=svg.FAINT, text_anchor="end")
    for value in x_axis.ticks:
        x = x_axis.position(value, x_scale)
        yield svg.element("line", x1=x, x2=x, y1=base, y2=base + 3, stroke=svg.FAINT, stroke_width=0.8)
        yield svg.label(_tick_text(value), x, base + 14, size=10, fill=svg.FAINT, text_anchor="middle")


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _tick_text(value: float) -> str:
    """Return the text of a tick; large and small powers of ten have an exponent."""
    exponent = round(math.log10(value)) if value > 0 else 0
    if abs(exponent) >= 4 and math.isclose(value, 10.0**exponent):
        return f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return f"{value:g}"


def _line(curve: Curve, x_axis: Axis, x_scale: svg.Scale, y_axis: Axis, y_scale: svg.Scale) -> Iterator[str]:
    points = [
        (x_axis.position(x, x_scale), y_axis.position(min(y, y_axis.end), y_scale))
        for x, y in curve.points
        if x_axis.start <= x <= x_axis.end and y >= y_axis.start
    ]
    if points:
        dashes = {"stroke_dasharray": "4 3"} if curve.dashed else {}
        yield svg.element(
            "polyline",
            points=svg.point_list(points),
            fill="none",
            stroke=curve.colour,
            stroke_width=1.6,
            stroke_linejoin="round",
            **dashes,
        )
