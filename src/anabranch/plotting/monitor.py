"""MONITOR: when answers about the same keys hold, in a lane; with the predictions also their tracks.

The answers of a stream have a lane each: later ones correct earlier ones, and would cover them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import pyarrow as pa

from anabranch.plotting import marks
from anabranch.plotting.answers import Answers, Row, instant, key_text
from anabranch.plotting.predictions import Predictions, error_of
from anabranch.text import probability_text

MOST_LANES = 40

TRACK = 150
"""The height of a track in pixels."""

AROUND = 0.25
"""How much of the tracks is drawn before and after the answers, as a share of their time."""


def draw(
    answers: Answers, title: str, threshold: float | None, data: pa.Table | None = None, time: str | None = None,
    error: float | Mapping[str, float] | None = None, period: float | None = None, **_: Any,
) -> Any:  # fmt: skip
    """Draw validity, the certain part of it, status and probability; `data` are the predictions."""
    answers, left_out = _with_lanes(answers, time)
    times = [t for name in ("valid_from", "valid_to") for t in answers.table[name].to_pylist()]
    ordered = sorted(answers.rows(), key=lambda pair: instant(pair[0]["valid_from"]) or 0.0)
    labels, lanes = _numbered([_lane_key(answers, row, time, number) for number, (row, _) in enumerate(ordered)])
    rows = [_bar(lane, row, details) for lane, (row, details) in zip(lanes, ordered, strict=True)]
    _write_probabilities(rows)
    height = max(marks.LANE * len(labels), 2 * marks.LANE)
    certain = any(row["certain_from"] is not None for row in rows)
    notes = ["solid: where the probability reaches the THRESHOLD of the query"] if certain else []
    notes += ["number: the highest probability of the lane"] if len(labels) < len(rows) else []
    extent = _extent(rows)
    known = marks.extent([row[name] for row in rows for name in ("t", "valid_to")])
    domain, padding = (known, 46) if data is None else (list(extent), 0)
    fields = ("t", "certain_from", "valid_to")
    axes = {field: marks.time_axis(field, times, domain, padding, len(labels)) for field in fields}
    chart = _lanes(answers, rows, labels, axes, certain)
    chart = chart.properties(width=marks.WIDTH, height=height)
    if data is not None:
        tracks = _tracks(
            answers, [row for row, _ in ordered], Predictions(data, time), extent, error, period, rows, times
        )
        chart = alt.vconcat(chart, *tracks, spacing=22).resolve_scale(color="independent")
        notes += [] if error is None else ["band: the error of the predictions"]
    title = title or "When each answer holds"
    notes += answers.notes if left_out is None else [left_out]
    return marks.titled(chart.add_params(marks.threshold_slider(threshold)), title, notes)


def _with_lanes(answers: Answers, time: str | None) -> tuple[Answers, str | None]:
    """Return the answers of the lanes that a chart can have, and a note about the others.

    The lanes with the highest probabilities are kept; of equal ones, those with the longest validity.
    """
    weights: dict[tuple[str, int], tuple[float, float]] = {}
    rows = answers.table.to_pylist()
    keys = [_lane_key(answers, row, time, number) for number, row in enumerate(rows)]
    for key, row in zip(keys, rows, strict=True):
        highest, length = weights.get(key, (0.0, 0.0))
        valid = (instant(row["valid_to"]) or 0.0) - (instant(row["valid_from"]) or 0.0)
        weights[key] = max(highest, row["probability"]), length + valid
    if len(weights) <= MOST_LANES:
        return answers, None
    kept = set(sorted(weights, key=lambda key: weights[key], reverse=True)[:MOST_LANES])
    numbers = [number for number, key in enumerate(keys) if key in kept]
    note = f"{MOST_LANES} of {len(weights):,} lanes, with {len(numbers):,} of {answers.total:,} answers"
    return replace(answers, table=answers.table.take(numbers)), f"{note}: those with the highest probabilities"


def _lane_key(answers: Answers, row: Row, time: str | None, number: int) -> tuple[str, int]:
    """Return the label of the lane of an answer, and a number that makes lanes of a stream different."""
    return _label(answers, row, time), number if "status" in row else 0


def _numbered(keys: Sequence[tuple[str, int]]) -> tuple[list[str], list[int]]:
    """Return the labels of the lanes, and the lane of each answer."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [label for label, _ in numbers], [numbers[key] for key in keys]


def _bar(lane: int, row: Row, details: Row) -> Row:
    times = {name: instant(row.get(name)) for name in ("valid_to", "certain_from", "certain_to")}
    status = {"status": row["status"]} if "status" in row else {}
    return {"lane": lane, "t": instant(row["valid_from"]), **times, "text": "", **status, **details}


def _write_probabilities(rows: Sequence[Row]) -> None:
    """Give the last bar of each lane the highest probability of the lane as its text."""
    last: dict[int, Row] = {}
    highest: dict[int, float] = {}
    for row in rows:
        lane = row["lane"]
        if lane not in last or (row["valid_to"] or 0.0) >= (last[lane]["valid_to"] or 0.0):
            last[lane] = row
        highest[lane] = max(highest.get(lane, 0.0), row["probability"])
    for lane, row in last.items():
        row["text"] = probability_text(highest[lane])


def _label(answers: Answers, row: Row, time: str | None) -> str:
    """Return the keys of an answer; the times of its predictions are in the tooltip."""
    return " – ".join(key_text(row[name], without=(time or "t",)) for name in answers.groups)


def _lanes(answers: Answers, rows: list[Row], labels: Sequence[str], axes: Row, certain: bool) -> Any:
    base = alt.Chart(marks.data(rows)).transform_filter(marks.shown()).encode(y=marks.lane_axis(labels))
    colour = marks.status_colour(answers)
    encoded: dict[str, Any] = {"tooltip": marks.tooltips(answers), **({} if colour is None else {"color": colour})}
    # Round corners would leave gaps between answers that follow each other in a lane.
    corners = 2 if len(labels) == len(rows) else 0
    look: dict[str, Any] = {"style": "answer", "height": 14, "clip": True, "cornerRadius": corners}
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
    at = marks.time_axis("t", times, list(extent))
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
