"""Colours and fonts of charts. A theme is a Vega-Lite configuration, so one specification has all themes.

The hues are those of Okabe and Ito, which readers with any colour blindness can tell apart. Each theme has those of
them that have enough contrast on its background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

THEMES = ("light", "dark")

FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours of a theme; `categories` are used in this order, and probabilities are from `faint` to `accent`."""

    paper: str
    ink: str
    muted: str
    grid: str
    land: str
    accent: str
    faint: str
    alarm: str
    categories: tuple[str, ...]


LIGHT = Colours(
    paper="#ffffff", ink="#1b1f24", muted="#59636e", grid="#e4e8ec", land="#e9ece4", accent="#0072b2", faint="#d6e8f3",
    alarm="#d55e00",
    categories=("#0072b2", "#d55e00", "#009e73", "#b5508a", "#8a6a00", "#56b4e9", "#59636e"),
)  # fmt: skip

DARK = Colours(
    paper="#14171b", ink="#e8eaed", muted="#a3adb8", grid="#2b3138", land="#262c2b", accent="#56b4e9", faint="#1d3342",
    alarm="#e69f00",
    categories=("#56b4e9", "#e69f00", "#2fbf96", "#e08cbb", "#f0e442", "#d55e00", "#a3adb8"),
)  # fmt: skip


def colours(theme: str) -> Colours:
    """Return the colours of a theme."""
    return DARK if theme == "dark" else LIGHT


def config(theme: str) -> dict[str, Any]:
    """Return the configuration of a theme."""
    found = colours(theme)
    return {
        "background": found.paper,
        "font": FONT,
        "padding": 18,
        "view": {"stroke": None},
        "mark": {"color": found.accent},
        "text": {"color": found.muted, "fontSize": 11},
        "range": {"category": list(found.categories), "heatmap": [found.faint, found.accent]},
        "style": _styles(found),
        "title": {
            "anchor": "start", "frame": "group", "fontSize": 16, "fontWeight": 600, "color": found.ink, "offset": 14,
            "subtitleColor": found.muted, "subtitleFontSize": 12, "subtitlePadding": 5, "subtitleLineHeight": 16,
        },
        "axis": {
            "labelColor": found.muted, "titleColor": found.muted, "gridColor": found.grid, "domainColor": found.muted,
            "tickColor": found.muted, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal",
            "titlePadding": 8, "labelLimit": 220, "labelOverlap": True,
        },
        "legend": {
            "orient": "top", "direction": "horizontal", "labelColor": found.ink, "titleColor": found.muted,
            "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titleOrient": "left",
            "symbolSize": 90, "symbolOpacity": 1, "columnPadding": 16, "offset": 10, "labelLimit": 180,
        },
        "header": {
            "title": None, "labelColor": found.ink, "labelFontSize": 12, "labelFontWeight": 600, "labelAnchor": "start",
            "labelOrient": "top", "labelPadding": 4, "labelLimit": 400,
        },
    }  # fmt: skip


def _styles(found: Colours) -> dict[str, Any]:
    """Return the looks of marks that are not coloured by the data."""
    return {
        "answer": {"color": found.accent},
        "threshold": {"color": found.alarm, "strokeWidth": 1.5, "strokeDash": [5, 4]},
        "range": {"color": found.muted, "strokeWidth": 1},
        "lane": {"color": found.muted, "opacity": 0.45, "strokeWidth": 2},
        "missing": {"strokeWidth": 2, "strokeDash": [3, 2]},
        "paper": {"color": found.paper, "opacity": 1},
        "known": {"stroke": found.paper, "strokeWidth": 1},
        "link": {"color": found.muted, "strokeWidth": 1.5},
        "land": {"fill": found.land, "color": found.muted, "strokeWidth": 0.6, "strokeOpacity": 0.7},
        "validity": {"color": found.muted, "opacity": 0.13},
        "label": {"color": found.ink, "fontSize": 11},
    }
