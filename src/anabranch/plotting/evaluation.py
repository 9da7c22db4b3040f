"""The result of `evaluate`: reliability, and precision and recall by threshold."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from anabranch.evaluation import Evaluation
from anabranch.evaluation.reliability import wilson_interval
from anabranch.plotting import marks

SIDE, COUNTS = 330, 70
"""The width and height of a curve, and the height of the bars below it, in pixels."""

MEASURES = ("precision", "recall", "F1")


def draw(evaluation: Evaluation, title: str) -> Any:
    """Draw the share of true answers over their probability, and the quality over the threshold."""
    notes = [f"{name}: {text}" for name, text in evaluation.facts() if name in ("answers", "best threshold")]
    left = alt.vconcat(_reliability(evaluation), _counts(evaluation), spacing=8)
    chart = alt.hconcat(left, _thresholds(evaluation), spacing=48).resolve_scale(
        color="independent", strokeDash="independent"
    )
    return marks.titled(chart, title or "Evaluation", notes)


def _reliability(evaluation: Evaluation) -> Any:
    rows = []
    for bin in evaluation.bins:
        low, high = wilson_interval(bin.observed, bin.answers)
        rows.append(
            {"predicted": bin.predicted, "observed": bin.observed, "low": low, "high": high, "answers": bin.answers}
        )
    share = alt.Y("observed:Q", title="share of true answers", scale=marks.PROBABILITY_SCALE)
    at = alt.X("predicted:Q", title=None, scale=marks.PROBABILITY_SCALE)
    diagonal = alt.Chart(marks.data([{"v": 0}, {"v": 1}])).mark_line(style="range", strokeDash=[4, 4])
    base = alt.Chart(marks.data(rows)).encode(x=at)
    tooltip = [
        alt.Tooltip("predicted:Q", title="mean probability", format=".3f"),
        alt.Tooltip("observed:Q", title="share of true answers", format=".3f"),
        alt.Tooltip("answers:Q", format=","),
    ]
    interval = base.mark_rule(style="answer", strokeWidth=4, opacity=0.3).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(style="answer").encode(y=share)
    points = base.mark_point(style="answer", filled=True, size=60, opacity=1).encode(y=share, tooltip=tooltip)
    layers = alt.layer(diagonal.encode(x="v:Q", y="v:Q"), interval, line, points)
    return layers.properties(width=SIDE, height=SIDE, title=alt.TitleParams("Reliability", fontSize=13, offset=8))


def _counts(evaluation: Evaluation) -> Any:
    rows = [{"low": bin.low, "high": bin.high, "answers": bin.answers} for bin in evaluation.bins]
    bars = alt.Chart(marks.data(rows)).mark_bar(style="answer", opacity=0.55, binSpacing=2)
    at = alt.X("low:Q", bin="binned", title="probability", scale=marks.PROBABILITY_SCALE)
    height = alt.Y("answers:Q", title="answers", axis=alt.Axis(tickCount=3, format="~s"))
    encoded = bars.encode(x=at, x2="high:Q", y=height, tooltip=[alt.Tooltip("answers:Q", format=",")])
    return encoded.properties(width=SIDE, height=COUNTS)


def _thresholds(evaluation: Evaluation) -> Any:
    found = {quality.threshold: quality for quality in (*evaluation.qualities, evaluation.best) if quality.answers}
    rows = [
        {"threshold": threshold, "measure": measure, "value": value}
        for threshold, quality in sorted(found.items())
        for measure, value in zip(MEASURES, (quality.precision, quality.recall, quality.f1), strict=True)
        if not math.isnan(value)
    ]
    at = alt.X("threshold:Q", title="threshold", scale=marks.PROBABILITY_SCALE)
    height = alt.Y("value:Q", title="share of episodes", scale=marks.PROBABILITY_SCALE)
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=300)
    named: dict[str, Any] = {"title": None, "scale": alt.Scale(domain=list(MEASURES)), "legend": legend}
    base = alt.Chart(marks.data(rows)).encode(x=at, y=height, color=alt.Color("measure:N", **named))
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=alt.StrokeDash("measure:N", **named))
    points = base.mark_point(filled=True, size=36, opacity=1).encode(tooltip=["threshold:Q", "measure:N", "value:Q"])
    best = alt.Chart(
        marks.data([{"threshold": evaluation.best.threshold, "text": f"best: {evaluation.best.threshold:g}"}])
    ).encode(x=at)
    rule = best.mark_rule(style="range", strokeDash=[5, 4])
    text = best.mark_text(style="label", align="left", dx=5, y=SIDE - 10).encode(text="text:N")
    layers = alt.layer(rule, lines, points, text)
    return layers.properties(width=SIDE, height=SIDE, title=alt.TitleParams("Thresholds", fontSize=13, offset=8))
