"""The charts of the SEQUENCE benchmark, in docs/images."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.evaluation import Quality
from benchmarks.curves import BASELINE, FIRST, PALE, SECOND, Axis, Curve, Panels, curves_svg, legend_of, save_chart
from benchmarks.sequence.reliability import ReliabilityBin

CONTESTANTS = {"threshold 0.5": FIRST, "threshold 0.1": SECOND, "deterministic": BASELINE}
MEASURES = {"precision": "precision", "recall": "recall", "F1": "f1"}
SCORES = {"posterior": FIRST, "joint": SECOND}

PREDICTED = Axis(0.0, 1.0, ticks=(0.0, 0.5, 1.0), name="score")


def draw_quality(by_miss: Mapping[float, Mapping[str, Mapping[str, Quality]]]) -> None:
    """Draw precision, recall and F1 over the share of lost readings, one row per query."""
    queries = next(iter(by_miss.values()))

    def curves(query: str, measure: str) -> list[Curve]:
        return [
            Curve(colour, [(miss, getattr(results[query][name], measure)) for miss, results in by_miss.items()])
            for name, colour in CONTESTANTS.items()
        ]

    panels: Panels = {
        query: {title: curves(query, measure) for title, measure in MEASURES.items()} for query in queries
    }
    axis = Axis(0.0, max(by_miss), ticks=(0.0, 0.1, 0.2, 0.3, 0.4), name="share of readings lost")
    chart = curves_svg(
        "Quality as readings are lost", panels, axis, legend_of(CONTESTANTS), label_width=110, panel_height=130
    )
    save_chart("sequence-quality", chart)


def draw_calibration(results: Mapping[str, Mapping[str, Mapping[str, list[ReliabilityBin]]]]) -> None:
    """Draw the share of true answers over the score, one column per pattern, each with its first distribution."""

    def curves(by_score: Mapping[str, list[ReliabilityBin]]) -> list[Curve]:
        measured = [
            Curve(colour, [(bin.predicted, bin.observed) for bin in by_score[score]], dashed=score == "joint")
            for score, colour in SCORES.items()
        ]
        return [Curve(PALE, [(0.0, 0.0), (1.0, 1.0)]), *measured]

    firsts = {pattern: next(iter(by_law.items())) for pattern, by_law in results.items()}
    columns = {f"{pattern}, {law}": curves(by_score) for pattern, (law, by_score) in firsts.items()}
    legend = [(FIRST, "SCORING POSTERIOR"), (SECOND, "SCORING JOINT"), (PALE, "ideal")]
    panels = {"share true": columns}
    chart = curves_svg("Are scores probabilities?", panels, PREDICTED, legend, label_width=150, panel_height=170)
    save_chart("sequence-calibration", chart)
