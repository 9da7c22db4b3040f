"""RELATE with many pairs of few keys: a matrix of the pairs, coloured by their probabilities."""

from __future__ import annotations

from typing import Any

import altair as alt

from anabranch.plotting import marks
from anabranch.plotting.answers import Answers, Row, key_text

SMALLEST, LARGEST = 6, 26
"""The side of a cell in pixels."""


def draw(answers: Answers, title: str, threshold: float | None, **_: Any) -> Any:
    """Draw a cell for each pair; the first entity is on the left, the second one below."""
    first, second = answers.events
    labels = {name: _labels(answers, name) for name in (first, second)}
    rows = [
        {"first": key_text(row[first]), "second": key_text(row[second]), **details} for row, details in answers.rows()
    ]
    side = min(max(marks.WIDTH // max(len(labels[second]), 1), SMALLEST), LARGEST)
    chart = (
        alt.Chart(marks.data(rows))
        .transform_filter(marks.shown())
        .mark_rect()
        .encode(
            x=alt.X("second:N", title=_title(answers, second), axis=_axis(), scale=alt.Scale(domain=labels[second])),
            y=alt.Y("first:N", title=_title(answers, first), axis=_axis(), scale=alt.Scale(domain=labels[first])),
            color=alt.Color("probability:Q", title="probability", scale=marks.PROBABILITY_SCALE),
            tooltip=marks.tooltips(answers),
        )
        .properties(width=side * len(labels[second]), height=side * len(labels[first]))
        .add_params(marks.threshold_slider(threshold))
    )
    notes = ["the probability of each pair; empty: the pair is no answer", *answers.notes]
    return marks.titled(chart, title or "Probability of each pair", notes)


def _labels(answers: Answers, name: str) -> list[str]:
    """Return the keys of a side in their order: numbers by size."""
    keys: dict[str, Row] = {key_text(key): key for key in answers.table[name].to_pylist()}
    return sorted(keys, key=lambda label: [_rank(value) for value in keys[label].values()])


def _rank(value: Any) -> tuple[bool, float, str]:
    is_number = isinstance(value, int | float)
    return not is_number, float(value) if is_number else 0.0, str(value)


def _title(answers: Answers, name: str) -> str:
    """Return the variable and the names of its keys."""
    keys = answers.table.schema.field(name).type
    return f"{', '.join(keys.field(index).name for index in range(keys.num_fields))} of {name}"


def _axis() -> Any:
    return alt.Axis(ticks=False, domain=False, grid=False, labelAngle=0, labelOverlap="greedy")
