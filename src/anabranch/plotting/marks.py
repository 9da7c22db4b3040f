"""What the charts of all kinds share: axes, tooltips, the threshold and lanes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt

from anabranch.plotting.answers import PROBABILITY, Answers, Row, instant, is_clock

WIDTH = 720
LANE = 26
"""The width of a chart, and the height of a lane, in pixels."""

MANY_LANES = 16
"""With more lanes than these, the horizontal axis is above them: below, it would be out of sight."""

PROBABILITY_SCALE = alt.Scale(domain=[0, 1])

TIME_LABELS = {
    "milliseconds": "%H:%M:%S.%L", "seconds": "%H:%M:%S", "minutes": "%H:%M", "hours": "%H:%M", "date": "%d %b",
    "week": "%d %b", "month": "%b %Y", "year": "%Y",
}  # fmt: skip
"""The labels of a time axis, by the unit of the instant."""

STATUSES = ["validated", "final", "matched", "partial", "tentative", "provisional", "expired", "invalidated"]
"""The statuses in the order of the colours."""


def data(rows: Sequence[Row]) -> Any:
    """Return rows as data of a chart. Altair writes data that several marks use once."""
    return alt.InlineData(values=list(rows))


def threshold_slider(value: float | None) -> Any:
    """Return the slider below which answers are hidden."""
    slider = alt.binding_range(min=0, max=1, step=0.01, name="Hide answers below")
    return alt.param(name="threshold", value=0 if value is None else value, bind=slider)


def shown() -> Any:
    """Return the condition that an answer reaches the threshold, which is inclusive as in a query."""
    return f"datum.{PROBABILITY} >= threshold - 1e-9"


def orient(lanes: int) -> Any:
    """Return the side of the horizontal axis."""
    return "top" if lanes > MANY_LANES else "bottom"


def time_axis(field: str, times: Sequence[Any], domain: Sequence[float], padding: int = 0, lanes: int = 0) -> Any:
    """Return the horizontal axis of a field of the chart; `times` are times of the answers. Timestamps are in UTC.

    The title has the date if it is the same for all times; otherwise it is on the axis, at midnight.
    """
    # An expression: Vega-Lite converts a list of timestamps for one end of a bar only, and warns that both ends differ.
    scale: dict[str, Any] = {"domain": alt.ExprRef(f"[{domain[0]}, {domain[1]}]"), "padding": padding, "nice": False}
    side = orient(lanes)
    if not is_clock(times):
        axis = alt.Axis(tickCount=10, orient=side, **_whole_ticks(times, domain))
        return alt.X(f"{field}:Q", title="time", axis=axis, scale=alt.Scale(zero=False, **scale))
    instants = [found for found in map(instant, times) if found is not None]
    days = {datetime.fromtimestamp(found / 1000, UTC).date() for found in (min(instants), max(instants))}
    title = f"time (UTC), {days.pop()}" if len(days) == 1 else "time (UTC)"
    axis = alt.Axis(tickCount=8, orient=side, labelExpr=f"utcFormat(datum.value, {json.dumps(TIME_LABELS)})")
    return alt.X(f"{field}:T", title=title, axis=axis, scale=alt.Scale(type="utc", **scale))


def _whole_ticks(times: Sequence[Any], domain: Sequence[float]) -> dict[str, Any]:
    """Return the ticks of whole numbers: Vega would also write 3.5 between 3 and 4."""
    if not all(float(time).is_integer() for time in times if time is not None):
        return {}
    first, last = math.ceil(domain[0]), math.floor(domain[1])
    return {"values": list(range(first, last + 1)), "format": ",d"} if last - first <= 10 else {"tickMinStep": 1}


def extent(numbers: Sequence[float | None]) -> list[float]:
    """Return the first and the last of the numbers of a chart; a single one gets some space around it.

    Axes have fixed domains, so that they do not move when the slider hides answers.
    """
    known = [number for number in numbers if number is not None] or [0.0]
    low, high = min(known), max(known)
    return [low, high] if low < high else [low - 1, high + 1]


def zoom(name: str, *encodings: Any) -> Any:
    """Return zooming by the wheel and moving by dragging."""
    return alt.selection_interval(name=name, bind="scales", encodings=list(encodings) or ["x"])


def tooltips(answers: Answers) -> list[Any]:
    """Return a tooltip with all columns."""
    return [alt.Tooltip(f"c{index}:N", title=name) for index, name in enumerate(answers.detail_names)]


def status_colour(answers: Answers) -> Any | None:
    """Return the colour by status, if answers have one."""
    if "status" not in answers.table.column_names:
        return None
    found = set(answers.table["status"].to_pylist())
    domain = [status for status in STATUSES if status in found]
    return alt.Color("status:N", title="status", scale=alt.Scale(domain=domain))


def lane_axis(labels: Sequence[str]) -> Any:
    """Return a vertical axis with a lane for each answer; labels need not be different."""
    texts = f"{json.dumps(list(labels))}[datum.value]"
    axis = alt.Axis(labelExpr=texts, title=None, ticks=False, domain=False, labelPadding=10, labelOverlap=False)
    return alt.Y("lane:O", axis=axis, scale=alt.Scale(domain=list(range(len(labels)))))


def probability_labels(base: Any, position: Any, clip: bool = True) -> Any:
    """Return the probability of each lane, written to the right of it."""
    return base.mark_text(style="label", align="left", dx=8, clip=clip).encode(x=position, text="text:N")


def titled(chart: Any, title: str, notes: Sequence[str]) -> Any:
    """Return the chart with its title and notes on lines below it."""
    lines: dict[str, Any] = {"subtitle": list(notes)} if notes else {}
    return chart.properties(title=alt.TitleParams(title, **lines))
