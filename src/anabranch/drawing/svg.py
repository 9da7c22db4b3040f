"""SVG elements, scales and pages.

A picture is self-contained: it has no script, font or link. It has its own background, so that it looks the same on a
white page and on a dark one, unless it has dark colours too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from anabranch.drawing.axis import ticks
from anabranch.drawing.geometry import Point
from anabranch.text import safe

PAPER, INK, FAINT, GRID = "#fcfcfa", "#1f2933", "#64707d", "#e3e6e4"
LIKELY, UNLIKELY, TRUE = "#0b7a8f", "#9cc9d1", "#d9480f"
WASH = "#eef3f3"

DARK = {
    PAPER: "#151b21", INK: "#e4e9ed", FAINT: "#9aa6b2", GRID: "#313a43",
    LIKELY: "#45b5c8", UNLIKELY: "#2c6672", TRUE: "#ff8a4c", WASH: "#1d252c",
}  # fmt: skip
"""What the colours become for readers who prefer dark pages."""

FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

EDGE, TOP = 20, 44
"""The margin at both sides, and the height of the title line, in pixels."""

TITLE_BASELINE = 27


class Svg(str):
    """The text of an SVG picture, which a notebook displays as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values, such as times, to pixels."""

    start: float
    end: float
    left: float
    right: float

    def __call__(self, value: float) -> float:
        """Return the position of a value on the page."""
        length = self.end - self.start
        share = (value - self.start) / length if length > 0 else 0.0
        return self.left + share * (self.right - self.left)


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """Return an SVG element; `content` is SVG, attributes are escaped (`_` in their names becomes `-`)."""
    written = "".join(f' {key.replace("_", "-")}="{attribute(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def attribute(value: str | float) -> str:
    """Return the value of an attribute: text is escaped, a number has up to two decimals."""
    return escape(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def point_list(points: Iterable[Point], decimals: int = 1) -> str:
    """Return the `points` attribute of a polyline or polygon.

    >>> point_list([(0, 1.25), (2, 3)])
    '0.0,1.2 2.0,3.0'
    """
    return " ".join(f"{x:.{decimals}f},{y:.{decimals}f}" for x, y in points)


def label(text: str, x: float, y: float, *, size: float = 12, fill: str = INK, **attributes: str | float) -> str:
    """Return a line of text; any characters are safe."""
    return element("text", escape(safe(text)), x=x, y=y, font_size=size, fill=fill, **attributes)


def key(signs: Sequence[tuple[str, str, str]], x: float, y: float, *, anchor: str = "end") -> str:
    """Return the legend of a picture, from (sign, colour, meaning); it ends at x, or starts there."""
    parts = []
    for number, (sign, colour, meaning) in enumerate(signs):
        parts.append(element("tspan", sign, fill=colour, font_size=13, dx=14 if number else 0))
        parts.append(element("tspan", escape(safe(meaning)), dx=5))
    return element("text", "".join(parts), x=x, y=y, font_size=12, fill=FAINT, text_anchor=anchor)


def header(
    title: str, signs: Sequence[tuple[str, str, str]], width: float, *, key_baseline: float = TITLE_BASELINE
) -> list[str]:
    """Return the title of a picture, at the left, and its key, at the right."""
    return [
        label(title, EDGE, TITLE_BASELINE, size=15, font_weight=600),
        key(signs, width - EDGE, key_baseline),
    ]


def page(parts: Sequence[str], width: float, height: float, description: str, *, dark: bool = False) -> Svg:
    """Return a whole picture: its parts on a card with rounded corners.

    Parameters
    ----------
    parts : sequence of str
    width, height : float
    description : str
        For screen readers.
    dark : bool
        The colours of this module change to those of `DARK` where the reader prefers dark pages. Other colours stay.
    """
    card = element("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=10, fill=PAPER, stroke=GRID)
    title = element("title", escape(safe(description)))
    body = "\n".join([title, *([_dark_style()] if dark else []), card, *parts])
    return Svg(
        element(
            "svg",
            f"\n{body}\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {attribute(width)} {attribute(height)}",
            width=width,
            height=height,
            role="img",
            font_family=FONT,
        )
    )


def _dark_style() -> str:
    """Return rules that replace colours; a rule is stronger than the attribute of an element."""
    rules = (f'[{name}="{light}"]{{{name}:{dark}}}' for light, dark in DARK.items() for name in ("fill", "stroke"))
    return element("style", f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}")


def time_axis(scale: Scale, y: float, top: float, *, clock: bool, spacing: float = 80) -> list[str]:
    """Return ticks with labels below y, and grid lines from y up to top."""
    at_most = max(int((scale.right - scale.left) / spacing), 2)
    parts = []
    for value, text in ticks(scale.start, scale.end, at_most=at_most, clock=clock):
        x = scale(value)
        parts.append(element("line", x1=x, x2=x, y1=top, y2=y, stroke=GRID))
        parts.append(label(text, x, y + 16, size=11, fill=FAINT, text_anchor="middle"))
    return parts
