"""MONITOR: a lane for each answer, from `valid_from` to `valid_to`; with the predictions also their tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from anabranch.plotting import marks
from anabranch.plotting.answers import Answers, Row, instant, key_text
from anabranch.plotting.predictions import Predictions, error_of
from anabranch.text import probability_text

TRACK = 150
"""The height of a track in pixels."""

AROUND = 0.25
"""How much of the tracks is drawn before and after the answers, as a share of their time."""


def draw(
    answers: Answers, title: str, threshold: float | None, data: pa.Table | None = None, time: str | None = None,
    error: float | Mapping[str, float] | None = None, period: float | None = None, **_: Any,
) -> Any:  # fmt: skip
    """Draw validity, the certain part of it, status and probability; `data` are the predictions."""
    times = [t for name in ("valid_from", "valid_to") for t in answers.table[name].to_pylist()]
    ordered = sorted(answers.rows(), key=lambda pair: instant(pair[0]["valid_from"]) or 0.0)
    rows = [_lane(number, row, details) for number, (row, details) in enumerate(ordered)]
    labels = [_label(answers, row, time) for row, _ in ordered]
    height = max(marks.LANE * len(rows), 2 * marks.LANE)
    certain = any(row["certain_from"] is not None for row in rows)
    notes = ["solid: where the probability reaches the THRESHOLD of the query"] if certain else []
    extent = _extent(rows)
    known = marks.extent([row[name] for row in rows for name in ("t", "valid_to")])
    axis: dict[str, Any] = {"padding": 46, "domain": known} if data is None else {"domain": list(extent)}
    axes = {field: marks.time_axis(field, times, **axis) for field in ("t", "certain_from", "valid_to")}
    chart = _lanes(answers, rows, labels, axes, certain)
    chart = chart.properties(width=marks.WIDTH, height=height)
    if data is not None:
        tracks = _tracks(
            answers, [row for row, _ in ordered], Predictions(data, time), extent, error, period, rows, times
        )
        chart = alt.vconcat(chart, *tracks, spacing=22).resolve_scale(color="independent")
        notes += [] if error is None else ["band: the error of the predictions"]
    title = title or "When each answer holds"
    return marks.titled(chart.add_params(marks.threshold_slider(threshold)), title, [*notes, *answers.notes])


def _lane(number: int, row: Row, details: Row) -> Row:
    times = {name: instant(row.get(name)) for name in ("valid_to", "certain_from", "certain_to")}
    status = {"status": row["status"]} if "status" in row else {}
    text = probability_text(details["probability"])
    return {"lane": number, "t": instant(row["valid_from"]), **times, "text": text, **status, **details}


def _label(answers: Answers, row: Row, time: str | None) -> str:
    """Return the keys of an answer; the times of its predictions are in the tooltip."""
    return " – ".join(key_text(row[name], without=(time or "t",)) for name in answers.groups)


def _lanes(answers: Answers, rows: list[Row], labels: Sequence[str], axes: Row, certain: bool) -> Any:
    base = alt.Chart(marks.data(rows)).transform_filter(marks.shown()).encode(y=marks.lane_axis(labels))
    colour = marks.status_colour(answers)
    encoded: dict[str, Any] = {"tooltip": marks.tooltips(answers), **({} if colour is None else {"color": colour})}
    look: dict[str, Any] = {"style": "answer", "height": 14, "clip": True, "cornerRadius": 2}
    valid = base.mark_bar(**look, opacity=0.35 if certain else 0.8).encode(x=axes["t"], x2="valid_to:Q", **encoded)
    layers = [valid.add_params(marks.zoom("zoom"))]
    if certain:
        sure = base.transform_filter("datum.certain_from !== null").mark_bar(**look)
        layers.append(sure.encode(x=axes["certain_from"], x2="certain_to:Q", **encoded))
    # A validity of one instant has no width.
    instants = base.transform_filter("datum.t === datum.valid_to")
    layers.append(instants.mark_tick(style="answer", height=14, thickness=2, clip=True).encode(x=axes["t"], **encoded))
    return alt.layer(*layers, marks.probability_labels(base, axes["valid_to"]))


# ---------------------------------------------------------------- tracks


def _extent(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the time range of the chart: that of the answers and a margin."""
    low = min((row["t"] for row in rows), default=0.0)
    high = max((row["valid_to"] for row in rows), default=1.0)
    margin = (high - low) * AROUND or 1.0
    return low - margin, high + margin


def _tracks(
    answers: Answers, rows: Sequence[Row], predictions: Predictions, extent: tuple[float, float],
    error: float | Mapping[str, float] | None, period: float | None, lanes: list[Row], times: list[Any],
) -> list[Any]:  # fmt: skip
    """Return a chart for each predicted value: lines, with a band for the error, over the validity of the answers."""
    events = {key_text(row[name], without=(predictions.time,)): row[name] for row in rows for name in answers.events}
    points: dict[str, list[Row]] = {name: [] for name in predictions.values}
    for key, event in events.items():
        for number, (row, start, end) in enumerate(predictions.spans(event, period, extent[1])):
            for name in predictions.values:
                half = error_of(row, name, error) or 0.0
                points[name] += [
                    {"key": key, "part": f"{key} {number}", "t": s, "value": x, "low": x - half, "high": x + half}
                    for s, x in predictions.points(row, name, start, end)
                ]
    at = marks.time_axis("t", times, domain=list(extent))
    return [_track(number, name, points[name], sorted(events), lanes, at) for number, name in enumerate(points)]


def _track(number: int, name: str, points: list[Row], keys: list[str], lanes: list[Row], at: Any) -> Any:
    base = alt.Chart(marks.data(points)).encode(
        x=at, color=alt.Color("key:N", title=None, scale=alt.Scale(domain=keys)), detail="part:N"
    )
    band = base.mark_area(opacity=0.22, clip=True).encode(
        y=alt.Y("low:Q", title=name, scale=alt.Scale(zero=False)), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2, clip=True).encode(y="value:Q")
    shade = alt.Chart(marks.data(lanes)).transform_filter(marks.shown()).mark_rect(style="validity", clip=True)
    validity = shade.encode(x=at, x2="valid_to:Q")
    zoomed = validity.add_params(marks.zoom(f"zoom_{number}"))
    return alt.layer(zoomed, band, line).properties(width=marks.WIDTH, height=TRACK)
