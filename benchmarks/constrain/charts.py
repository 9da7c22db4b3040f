"""The charts of the CONSTRAIN benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.constrain.analysis import LOOSE, NOINDEX, TIGHT
from benchmarks.constrain.strategies import Outcome
from benchmarks.curves import BASELINE, FIRST, SECOND, Axis, Curve, axis_over, curves_svg, legend_of, save_chart

COLOURS = {LOOSE: SECOND, TIGHT: FIRST, NOINDEX: BASELINE}

TITLES = {
    "verbosity": ("Five queries by verbosity", "alerts of a query, % of events"),
    "queries": ("Many queries, verbosity 1%", "queries"),
    "length": ("Five queries by length, verbosity 1%", "days between two events"),
}

_ROUND = (1.0, 2.0, 5.0)


def draw(name: str, compared: Mapping[float, Mapping[str, Outcome]], events: int) -> None:
    """Draw two charts: million events per second, and the share of events kept, one curve per strategy."""
    rates = {x: {strategy: of.rate / 1e6 for strategy, of in outcomes.items()} for x, outcomes in compared.items()}
    kept = {
        x: {strategy: 100 * of.peak / events for strategy, of in outcomes.items()} for x, outcomes in compared.items()
    }
    _save(f"constrain-{name}", name, "million/s", rates)
    _save(f"constrain-{name}-kept", name, "% kept", kept)


def _save(file: str, name: str, row: str, values: Mapping[float, Mapping[str, float]]) -> None:
    title, x_name = TITLES[name]
    x_axis = axis_over(values, x_name, logarithmic=True)
    top = round_up(max(max(series.values()) for series in values.values()))
    # TIGHT and NOINDEX keep the same events: one is dashed so that both are visible.
    curves = [
        Curve(colour, [(x, values[x][strategy]) for x in x_axis.ticks], dashed=strategy == NOINDEX)
        for strategy, colour in COLOURS.items()
    ]
    y_axis = Axis(0.0, top, ticks=(0.0, top / 2, top))
    save_chart(file, curves_svg(title, {row: {"": curves}}, x_axis, legend_of(COLOURS), 100, y_axis, panel_height=150))


def round_up(value: float) -> float:
    """Return the first of 1, 2 and 5 times a power of ten that is not below the value."""
    power = 10.0**-6
    while True:
        for factor in _ROUND:
            if factor * power >= value:
                return factor * power
        power *= 10
