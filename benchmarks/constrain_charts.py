"""The pictures of the CONSTRAIN benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from anabranch.constrain.analysis import LOOSE, NOINDEX, TIGHT
from benchmarks.curves import BASELINE, FIRST, SECOND, Axis, Curve, curves_svg

PICTURES = Path(__file__).parents[1] / "docs" / "images"

COLOURS = {LOOSE: SECOND, TIGHT: FIRST, NOINDEX: BASELINE}

TITLES = {
    "verbosity": ("Five queries by verbosity", "alerts of a query, % of events"),
    "queries": ("Many queries, verbosity 1%", "queries"),
    "length": ("Five queries by length, verbosity 1%", "days between two events"),
}

_ROUND = (1.0, 2.0, 5.0)


class Measurement(Protocol):
    """What `constrain.Outcome` is to a picture."""

    rate: float
    peak: int


def draw(name: str, compared: Mapping[float, Mapping[str, Measurement]], events: int) -> None:
    """Two pictures: million events a second, and the share of events kept, a curve a strategy."""
    rates = {x: {who: of.rate / 1e6 for who, of in outcomes.items()} for x, outcomes in compared.items()}
    kept = {x: {who: 100 * of.peak / events for who, of in outcomes.items()} for x, outcomes in compared.items()}
    _save(f"constrain-{name}", name, "million/s", rates)
    _save(f"constrain-{name}-kept", name, "% kept", kept)


def _save(file: str, name: str, row: str, values: Mapping[float, Mapping[str, float]]) -> None:
    title, below = TITLES[name]
    places = sorted(values)
    axis = Axis(places[0], places[-1], marks=tuple(places), name=below, logarithmic=True)
    top = _above(max(max(of.values()) for of in values.values()))
    # TIGHT and NOINDEX keep the same events: one is dashed so that both are seen.
    curves = [
        Curve(colour, [(x, values[x][who]) for x in places], dashed=who == NOINDEX) for who, colour in COLOURS.items()
    ]
    signs = [(colour, who) for who, colour in COLOURS.items()]
    up = Axis(0.0, top, marks=(0.0, top / 2, top), name="")
    picture = curves_svg(title, {row: {"": curves}}, axis, signs, row_width=100, up=up, tall=150)
    (PICTURES / f"{file}.svg").write_text(picture + "\n", encoding="utf-8")


def _above(value: float) -> float:
    """The first round number that is no less."""
    power = 10.0**-6
    while True:
        for each in _ROUND:
            if each * power >= value:
                return each * power
        power *= 10
