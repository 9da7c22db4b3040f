"""Curves as an SVG picture: panels in rows and columns, all over the same axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.show.svg import EDGE, FAINT, GRID, LIKELY, TRUE, Scale, Svg, element, key, label, page

#: The colours of the first contestant, of the second, of what they are held against, and of what is to compare with.
FIRST, SECOND, BASELINE, PALE = LIKELY, "#9a6fb0", TRUE, "#c9cfcc"

WIDTH, HEAD, FOOT = 800, 66, 46
"""The width of a picture, and the heights above and below its panels."""

GAP, PLOT, ROW = 36, 92, 122
"""Between two panels of a row; the height of a panel, and with the room below it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What lies along the bottom, or up the side, of every panel: its ends, where to write what, and its name.

    Attributes
    ----------
    logarithmic : bool
        Equal distances are equal ratios.
    """

    start: float
    end: float
    marks: tuple[float, ...]
    name: str
    logarithmic: bool = False

    def place(self, value: float, scale: Scale) -> float:
        """Where a value lies on the page."""
        return scale(self._along(value))

    def scale(self, left: float, right: float) -> Scale:
        """The axis between two places of the page."""
        return Scale(self._along(self.start), self._along(self.end), left, right)

    def _along(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


#: From nothing to all: what is up the side where nothing else is said.
SHARES = Axis(0.0, 1.0, marks=(0.0, 0.5, 1.0), name="")


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a panel, as (x, y); points without a y (NaN), and those beyond the axes, are left out.

    What is above a share of 1 is drawn at 1.
    """

    colour: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


Panels = Mapping[str, Mapping[str, Sequence[Curve]]]
"""The curves of each panel, by the name of its row, then of its column."""


def curves_svg(
    title: str,
    panels: Panels,
    axis: Axis,
    signs: Sequence[tuple[str, str]],
    row_width: float,
    up: Axis = SHARES,
    tall: float = PLOT,
) -> Svg:
    """Draw panels in rows and columns.

    Parameters
    ----------
    title : str
    panels : Panels
        Every row has the same columns.
    axis : Axis
    signs : sequence of (colour, meaning)
        More than four have a line of their own.
    row_width : float
        The room for the names of the rows.
    up : Axis
        What is up the side of every panel.
    tall : float
        The height of a panel.
    """
    more = 24 if len(signs) > 4 else 0
    head, row_height = HEAD + more, tall + ROW - PLOT
    parts = [label(title, EDGE, 27, size=15, font_weight=600)]
    parts.append(key([("━", colour, meaning) for colour, meaning in signs], WIDTH - EDGE, 27 + more))
    columns = len(next(iter(panels.values())))
    left = EDGE + row_width
    wide = (WIDTH - EDGE - left - GAP * (columns - 1)) / columns
    for number, (row, of_row) in enumerate(panels.items()):
        base = head + row_height * number + tall
        side = up.scale(base, base - tall)
        parts.append(label(row, EDGE, base - tall / 2 + 4, size=13))
        for column, (name, curves) in enumerate(of_row.items()):
            scale = axis.scale(left + column * (wide + GAP), left + column * (wide + GAP) + wide)
            if number == 0:
                middle = (scale.left + scale.right) / 2
                parts.append(label(name, middle, head - 12, size=12, fill=FAINT, text_anchor="middle"))
            parts += _frame(axis, scale, up, side)
            parts += [line for curve in curves for line in _line(curve, axis, scale, up, side)]
    height = head + row_height * len(panels) + FOOT - (ROW - PLOT)
    parts.append(label(axis.name, WIDTH - EDGE, height - 10, size=11, fill=FAINT, text_anchor="end"))
    return page(parts, WIDTH, height, title)


def _frame(axis: Axis, scale: Scale, up: Axis, side: Scale) -> Iterator[str]:
    """The lines at the marks up the side, and the marks along the bottom."""
    base = side.left
    for value in up.marks:
        y = up.place(value, side)
        stroke = GRID if y != base else FAINT
        yield element("line", x1=scale.left, x2=scale.right, y1=y, y2=y, stroke=stroke, stroke_width=0.8)
        yield label(_written(value), scale.left - 5, y + 3.5, size=10, fill=FAINT, text_anchor="end")
    for value in axis.marks:
        x = axis.place(value, scale)
        yield element("line", x1=x, x2=x, y1=base, y2=base + 3, stroke=FAINT, stroke_width=0.8)
        yield label(_written(value), x, base + 14, size=10, fill=FAINT, text_anchor="middle")


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _written(value: float) -> str:
    """A number at a mark; large and small powers of ten as such."""
    exponent = round(math.log10(value)) if value > 0 else 0
    if abs(exponent) >= 4 and math.isclose(value, 10.0**exponent):
        return f"10{str(exponent).translate(_RAISED)}"
    return f"{value:g}"


def _line(curve: Curve, axis: Axis, scale: Scale, up: Axis, side: Scale) -> Iterator[str]:
    points = [
        f"{axis.place(x, scale):.1f},{up.place(min(y, up.end), side):.1f}"
        for x, y in curve.points
        if axis.start <= x <= axis.end and y >= up.start
    ]
    if points:
        dashes = {"stroke_dasharray": "4 3"} if curve.dashed else {}
        yield element(
            "polyline",
            points=" ".join(points),
            fill="none",
            stroke=curve.colour,
            stroke_width=1.6,
            stroke_linejoin="round",
            **dashes,
        )
