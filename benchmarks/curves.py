"""Curves between 0 and 1 as an SVG picture: panels in rows and columns, all over the same axis."""

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
    """What lies along the bottom of every panel: its ends, where to write what, and its name.

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


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a panel, as (x, y); points without a y (NaN), and those beyond the axis, are left out."""

    colour: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


Panels = Mapping[str, Mapping[str, Sequence[Curve]]]
"""The curves of each panel, by the name of its row, then of its column."""


def curves_svg(title: str, panels: Panels, axis: Axis, signs: Sequence[tuple[str, str]], row_width: float) -> Svg:
    """Draw panels in rows and columns.

    Parameters
    ----------
    title : str
    panels : Panels
        Every row has the same columns.
    axis : Axis
    signs : sequence of (colour, meaning)
    row_width : float
        The room for the names of the rows.
    """
    parts = [label(title, EDGE, 27, size=15, font_weight=600)]
    parts.append(key([("━", colour, meaning) for colour, meaning in signs], WIDTH - EDGE, 27))
    columns = len(next(iter(panels.values())))
    left = EDGE + row_width
    wide = (WIDTH - EDGE - left - GAP * (columns - 1)) / columns
    for number, (row, of_row) in enumerate(panels.items()):
        base = HEAD + ROW * number + PLOT
        parts.append(label(row, EDGE, base - PLOT / 2 + 4, size=13))
        for column, (name, curves) in enumerate(of_row.items()):
            scale = axis.scale(left + column * (wide + GAP), left + column * (wide + GAP) + wide)
            if number == 0:
                middle = (scale.left + scale.right) / 2
                parts.append(label(name, middle, HEAD - 12, size=12, fill=FAINT, text_anchor="middle"))
            parts += _frame(axis, scale, base)
            parts += [line for curve in curves for line in _line(curve, axis, scale, base)]
    height = HEAD + ROW * len(panels) + FOOT - (ROW - PLOT)
    parts.append(label(axis.name, WIDTH - EDGE, height - 10, size=11, fill=FAINT, text_anchor="end"))
    return page(parts, WIDTH, height, title)


def _frame(axis: Axis, scale: Scale, base: float) -> Iterator[str]:
    """The lines at 0, a half and 1, and the marks along the bottom."""
    for share in (0.0, 0.5, 1.0):
        y = base - share * PLOT
        stroke = GRID if share else FAINT
        yield element("line", x1=scale.left, x2=scale.right, y1=y, y2=y, stroke=stroke, stroke_width=0.8)
        yield label(f"{share:g}", scale.left - 5, y + 3.5, size=10, fill=FAINT, text_anchor="end")
    for value in axis.marks:
        x = axis.place(value, scale)
        yield element("line", x1=x, x2=x, y1=base, y2=base + 3, stroke=FAINT, stroke_width=0.8)
        yield label(f"{value:g}", x, base + 14, size=10, fill=FAINT, text_anchor="middle")


def _line(curve: Curve, axis: Axis, scale: Scale, base: float) -> Iterator[str]:
    points = [
        f"{axis.place(x, scale):.1f},{base - min(y, 1.0) * PLOT:.1f}"
        for x, y in curve.points
        if axis.start <= x <= axis.end and not math.isnan(y)
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
