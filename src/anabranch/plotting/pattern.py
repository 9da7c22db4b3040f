"""PATTERN: the probability over time, a row of the chart for each group; rows of PER as bars."""

from __future__ import annotations

import json
from typing import Any

import altair as alt

from anabranch.plotting import marks
from anabranch.plotting.answers import Answers, Row, instant
from anabranch.text import short

MOST_GROUPS = 12

HEIGHT, HEIGHT_OF_ONE = 64, 260
"""The height of a group in pixels, and if it is the only one."""


def draw(answers: Answers, title: str, threshold: float | None, **_: Any) -> Any:
    """Draw a stem at each instant, because an instant without a row has probability 0; or a bar for each row of PER."""
    per = "t" not in answers.table.column_names
    start = "t_from" if per else "t"
    times = answers.table[start].to_pylist()
    rows = [_row(answers, row, details, per) for row, details in answers.rows()]
    timed = [row for row in rows if row["t"] is not None]
    kept, notes = _highest_groups(timed)
    if len(timed) < len(rows):
        notes.append(f"{len(rows) - len(timed):,} answers without a time are left out")
    colour = marks.status_colour(answers)
    domain = marks.extent([row[name] for row in kept for name in ("t", "t_to")])
    padding = 0 if per else 12
    at, middle = (marks.time_axis(field, times, domain, padding) for field in ("t", "middle"))
    single = len({row["group"] for row in kept}) <= 1
    height = HEIGHT_OF_ONE if single else HEIGHT
    layers = alt.layer(*_layers(answers, (at, middle), per, single, colour)).properties(
        width=marks.WIDTH, height=height
    )
    if single:
        chart = layers.properties(data=marks.data(kept))
    else:
        order = sorted({row["group"] for row in kept})
        row_of = alt.Row("group:N", sort=order, header=alt.Header(labelExpr=_short_labels(order)))
        chart = layers.properties(data=marks.data(kept)).facet(row=row_of, spacing=14)
    notes = [_reading(answers, per, kept[0]["group"] if single and kept else None), *answers.notes, *notes]
    return marks.titled(chart.add_params(marks.threshold_slider(threshold)), title or "Probability over time", notes)


def _reading(answers: Answers, per: bool, group: str | None) -> str:
    """Return what the chart shows; of a single group, with its name."""
    subject = "probability of each window or episode" if per else "probability at each instant"
    names = ", ".join(answers.groups)
    if not names:
        return subject
    return f"{subject}, by {names}" if group is None else f"{subject}, {names} = {short(group)}"


def _layers(answers: Answers, axes: tuple[Any, Any], per: bool, single: bool, colour: Any | None) -> list[Any]:
    base = alt.Chart().transform_filter(marks.shown())
    at, middle = axes
    scale, axis = marks.PROBABILITY_SCALE, alt.Axis(format="~g", tickCount=5 if single else 2)
    height = alt.Y("probability:Q", scale=scale, title="probability" if single else None, axis=axis)
    coloured = {} if colour is None else {"color": colour}
    encoded: dict[str, Any] = {"tooltip": marks.tooltips(answers), **coloured}
    if per:
        bars = base.mark_bar(style="answer", opacity=0.75, clip=True)
        # An episode of one instant has no width.
        instants = base.transform_filter("datum.t === datum.t_to").mark_rule(style="answer", strokeWidth=2, clip=True)
        layers = [
            bars.encode(x=at, x2="t_to:Q", y=height, y2=alt.datum(0), **encoded),
            instants.encode(x=at, y=height, y2=alt.datum(0), **encoded),
        ]
    else:
        stems = base.mark_rule(style="answer", strokeWidth=2, opacity=0.55, clip=True)
        points = base.mark_point(style="answer", filled=True, size=46, opacity=1, clip=True)
        layers = [stems.encode(x=at, y=height, y2=alt.datum(0), **encoded), points.encode(x=at, y=height, **encoded)]
    if {"lower", "upper"} <= set(answers.table.column_names):
        intervals = base.transform_filter("datum.upper - datum.lower > 1e-9").mark_rule(style="range", clip=True)
        layers.append(intervals.encode(x=middle, y="lower:Q", y2="upper:Q"))
    layers[0] = layers[0].add_params(marks.zoom("zoom"))
    return [*layers, _threshold_line()]


def _threshold_line() -> Any:
    """Return a line that follows the slider."""
    height = alt.YDatum(alt.expr("threshold"), type="quantitative")
    visible = alt.value(alt.expr("threshold > 0 ? 1 : 0"))
    return alt.Chart(marks.data([{}])).mark_rule(style="threshold").encode(y=height, opacity=visible)


def _row(answers: Answers, row: Row, details: Row, per: bool) -> Row:
    start, end = (row["t_from"], row["t_to"]) if per else (row["t"], row["t"])
    times = instant(start), instant(end)
    middle = None if times[0] is None or times[1] is None else (times[0] + times[1]) / 2
    bounds: Row = {name: row[name] for name in ("lower", "upper") if name in row}
    status = {"status": row["status"]} if "status" in row else {}
    label = answers.label(row)
    return {"group": label, "t": times[0], "t_to": times[1], "middle": middle, **bounds, **status, **details}


def _highest_groups(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """Return the rows of the groups with the highest peaks, and a note about the others."""
    peaks: dict[str, float] = {}
    for row in rows:
        peaks[row["group"]] = max(peaks.get(row["group"], 0.0), row["probability"])
    if len(peaks) <= MOST_GROUPS:
        return rows, []
    kept = sorted(peaks, key=lambda group: (-peaks[group], group))[:MOST_GROUPS]
    note = f"{MOST_GROUPS} of {len(peaks):,} groups: those with the highest probabilities"
    return [row for row in rows if row["group"] in kept], [note]


def _short_labels(groups: list[str]) -> str:
    """Return the expression of a header: long labels are truncated, but stay different groups."""
    texts = {group: short(group) or "all" for group in groups}
    return f"({json.dumps(texts)})[datum.value]"
