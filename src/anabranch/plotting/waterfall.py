"""The effect of each piece of evidence on the probability of an answer: bars from the probability without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from anabranch.plotting import marks
from anabranch.plotting.answers import LONGEST_LABEL, Row
from anabranch.text import short, value_text

RAISES, LOWERS = "raises the probability", "lowers it"


def draw(effects: Sequence[Row], probability: float, title: str, notes: Sequence[str]) -> Any:
    """Draw effects, the strongest first; each has `evidence`, `t`, `without` and `effect`."""
    texts = [
        effect["evidence"] if effect["t"] is None else f"{value_text(pa.scalar(effect['t']))}  {effect['evidence']}"
        for effect in effects
    ]
    rows = [
        {
            "lane": number,
            "without": effect["without"],
            "probability": probability,
            "direction": RAISES if effect["effect"] > 0 else LOWERS,
            "text": f"{effect['effect']:+.3f}",
            "right": max(effect["without"], probability),
            "evidence": text,
        }
        for number, (effect, text) in enumerate(zip(effects, texts, strict=True))
    ]
    at = alt.X(
        "without:Q",
        title="probability, from without this evidence to with it",
        scale=marks.PROBABILITY_SCALE,
        axis=alt.Axis(tickCount=10),
    )
    labels = [short(text, 2 * LONGEST_LABEL) for text in texts]
    base = alt.Chart(marks.data(rows)).encode(y=marks.lane_axis(labels))
    colour = alt.Color("direction:N", title=None, scale=alt.Scale(domain=[RAISES, LOWERS]))
    tooltip = [
        alt.Tooltip("evidence:N"),
        alt.Tooltip("without:Q", title="probability without it", format=".4f"),
        alt.Tooltip("text:N", title="effect"),
    ]
    bars = base.mark_bar(height=13, cornerRadius=2).encode(x=at, x2="probability:Q", color=colour, tooltip=tooltip)
    written = marks.probability_labels(base, alt.X("right:Q", scale=marks.PROBABILITY_SCALE), clip=False)
    answer = alt.Chart(marks.data([{"probability": probability}])).mark_rule(style="range", strokeDash=[5, 4])
    layers = alt.layer(bars, written, answer.encode(x=alt.X("probability:Q", scale=marks.PROBABILITY_SCALE)))
    height = max(marks.LANE * len(rows), 2 * marks.LANE)
    return marks.titled(layers.properties(width=marks.WIDTH, height=height), title, notes)
