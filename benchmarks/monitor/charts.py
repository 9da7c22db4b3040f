"""The charts of the MONITOR benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.curves import (
    BASELINE,
    FIRST,
    PALE,
    SECOND,
    SHARES,
    Axis,
    Curve,
    Legend,
    Panels,
    axis_over,
    curves_svg,
    legend_of,
    save_chart,
)
from benchmarks.monitor.run import AccuracyRun

ACCURACY = Axis(0.8, 1.0, ticks=(0.8, 0.9, 1.0))
LOWER_ACCURACY = Axis(0.6, 1.0, ticks=(0.6, 0.8, 1.0))
MEASURES = {"precision": SECOND, "recall": BASELINE, "f": FIRST}
REPORTING = {"predictions": FIRST, "values": BASELINE, "values, same tuple rate": SECOND}
POLICIES = {
    "unlimited": PALE, "LEAST CONTRIBUTION": FIRST, "OLDEST": SECOND, "RANDOM": BASELINE, "NEWEST": "#4d5853",
}  # fmt: skip


def draw_objects(runs: Mapping[int, AccuracyRun]) -> None:
    """Draw precision, recall and F-measure by the number of vehicles, against both ideal answers."""

    def curves(ideal: str) -> list[Curve]:
        return [
            Curve(colour, [(count, getattr(getattr(run, ideal), name)) for count, run in runs.items()])
            for name, colour in MEASURES.items()
        ]

    panels: Panels = {
        "accuracy": {"near at the same instant": curves("score"), "near within the window": curves("window_score")}
    }
    legend = [(colour, {"f": "F-measure"}.get(name, name)) for name, colour in MEASURES.items()]
    _save("objects", "Accuracy with predictions", panels, axis_over(runs, "vehicles in 10 km²"), legend, ACCURACY)


def draw_functions(compared: Mapping[int, Mapping[str, AccuracyRun]]) -> None:
    """Draw F-measure, tuples and time by the number of vehicles, one curve per way of reporting."""
    most = max(run.tuples for runs in compared.values() for run in runs.values())
    longest = max(run.seconds for runs in compared.values() for run in runs.values())

    def curves(value: Callable[[AccuracyRun], float]) -> list[Curve]:
        return [
            Curve(colour, [(count, value(runs[name])) for count, runs in compared.items()])
            for name, colour in REPORTING.items()
        ]

    panels: Panels = {
        "share": {
            "F-measure": curves(lambda run: run.score.f),
            f"tuples, of {most:.0f}/s": curves(lambda run: run.tuples / most),
            f"processor time, of {longest:.2g} s/s": curves(lambda run: run.seconds / longest),
        }
    }
    axis = axis_over(compared, "vehicles in 10 km²")
    _save("functions", "Predictions and plain values", panels, axis, legend_of(REPORTING))


def draw_policies(compared: Mapping[float, Mapping[str, AccuracyRun]]) -> None:
    """Draw recall and precision by window, one curve per policy."""

    def curves(name: str) -> list[Curve]:
        return [
            Curve(
                colour,
                [(within, getattr(runs[policy].score, name)) for within, runs in compared.items()],
                dashed=policy == "LEAST CONTRIBUTION",
            )
            for policy, colour in POLICIES.items()
        ]

    panels: Panels = {"accuracy": {"recall": curves("recall"), "precision": curves("precision")}}
    axis = axis_over(compared, "window, s")
    _save("policies", "A buffer that is too small", panels, axis, legend_of(POLICIES), LOWER_ACCURACY)


def _save(name: str, title: str, panels: Panels, x_axis: Axis, legend: Legend, y_axis: Axis = SHARES) -> None:
    save_chart(f"monitor-{name}", curves_svg(title, panels, x_axis, legend, 100, y_axis, panel_height=150))
