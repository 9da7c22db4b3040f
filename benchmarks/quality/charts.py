"""The charts of the quality benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, Panels, curves_svg, save_chart
from benchmarks.quality.judging import THRESHOLDS, WITHIN, Answers
from benchmarks.quality.queries import MODELS, QUERIES, Scenario

MIN_ANSWERS = 20
"""Bins with fewer answers are not drawn: the share of true ones would mean little."""


def draw_quality(scenario: Scenario, answers: Answers, model: str = "heading") -> None:
    """Draw precision, recall and F1 over the threshold, one row per query."""
    ends = THRESHOLDS[0], THRESHOLDS[-1]
    panels: dict[str, dict[str, list[Curve]]] = {}
    for query, name in QUERIES.items():
        baseline = answers.baseline(model, scenario.baseline, query)
        results = [answers.qualities(model, method, query) for method in scenario.methods]
        panels[name] = {
            metric: [
                Curve(BASELINE, [(end, getattr(baseline, metric.lower())) for end in ends], dashed=True),
                *(
                    Curve(colour, [(quality.threshold, getattr(quality, metric.lower())) for quality in qualities])
                    for colour, qualities in zip((SECOND, FIRST), results[::-1], strict=True)
                ),
            ]
            for metric in ("precision", "recall", "F1")
        }
    axis = Axis(*ends, ticks=(0.001, 0.01, 0.1, 0.5), name="threshold", logarithmic=True)
    legend = list(zip((FIRST, SECOND, BASELINE), (*scenario.methods, scenario.baseline), strict=True))
    save_chart(f"quality-{scenario.name}", curves_svg(scenario.title, panels, axis, legend, label_width=104))


def draw_calibration(answers: Answers) -> None:
    """Draw the share of true answers over the probability by SMOOTH, one curve per model, one column per query."""
    colours = dict(zip(MODELS, (FIRST, SECOND, BASELINE), strict=True))
    panels: Panels = {
        name: {
            title: [
                Curve(PALE, [(0.0, 0.0), (1.0, 1.0)], dashed=True),
                *(
                    Curve(colour, [(bin.predicted, bin.observed) for bin in bins if bin.answers >= MIN_ANSWERS])
                    for model, colour in colours.items()
                    for bins in [answers.calibration(model, query, within)]
                ),
            ]
            for query, title in QUERIES.items()
        }
        for name, within in (("at the instant", 0.0), (f"within {WITHIN:g} s", WITHIN))
    }
    axis = Axis(0.0, 1.0, ticks=(0.0, 0.5, 1.0), name="probability by SMOOTH")
    legend = [(colour, MODELS[model]) for model, colour in colours.items()]
    chart = curves_svg("The share of true answers", panels, axis, legend, label_width=118)
    save_chart("quality-calibration", chart)


def draw_visit(
    truth: Sequence[tuple[float, float]], estimates: Mapping[str, Sequence[tuple[float, float]]], seconds: int
) -> None:
    """Draw the probabilities of one visit by each method, over the seconds since the person entered."""
    colours = dict(zip(estimates, (FIRST, SECOND, BASELINE), strict=True))
    curves = [Curve(PALE, truth)]
    curves += [Curve(colour, estimates[method], dashed=colour == BASELINE) for method, colour in colours.items()]
    start, end = truth[0][0], truth[-1][0]
    axis = Axis(start, end, ticks=tuple(range(0, int(end), 20)), name="seconds since entering")
    legend = [*((colour, method) for method, colour in colours.items()), (PALE, "truth")]
    title = f"One visit: {seconds} s in their own office"
    save_chart("quality-visit", curves_svg(title, {"probability": {"": curves}}, axis, legend, label_width=104))
