"""CONSTRAIN: a map of the configurations, or lanes if events have no locations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from anabranch.drawing.geometry import Point, turned, west_end
from anabranch.plotting import lanes, marks
from anabranch.plotting.answers import Answers, Row
from anabranch.plotting.land import coastlines
from anabranch.plotting.locations import Space, event_columns, space_of

LOWEST, HIGHEST = 240, 480
"""Bounds of the height in pixels. Within them a map keeps its proportions."""

MARGIN = 0.12
"""Space around the locations, as a share of their extent."""

SEEN = 2.0
"""How far the land goes on outside of the map, for zooming, as a share of the extent."""


def draw(
    answers: Answers, title: str, threshold: float | None, space: Sequence[str] | None = None, limit: int | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Draw the locations of the events of each answer, linked in the order of the variables."""
    found = space_of(event_columns(answers), space)
    if found is None:
        return lanes.draw(answers.fewer(limit or lanes.MOST), title, threshold, **options)
    points = _points(answers, found)
    if found.geodesic:
        _turn(points)
    left, bottom, right, top = _extent(points)
    chart = alt.layer(*_land((left, bottom, right, top), found), *_layers(answers, points, found))
    across = (right - left) * (math.cos(math.radians((bottom + top) / 2)) if found.geodesic else 1)
    height = min(max(marks.WIDTH * (top - bottom) / max(across, 1e-9), LOWEST), HIGHEST)
    width = min(marks.WIDTH, max(height * across / (top - bottom), 320))
    # The page of `serve` makes charts narrower, and keeps the proportions of this one.
    chart = chart.properties(width=round(width), height=round(height), usermeta={"proportions": "kept"})
    placed = {row["answer"] for row in points}
    notes = ["linked: the events of one answer; paler: less probable", *answers.notes]
    if len(placed) < answers.table.num_rows:
        notes.append(f"{answers.table.num_rows - len(placed):,} answers without locations are left out")
    return marks.titled(chart.add_params(marks.threshold_slider(threshold)), title or "Where answers are", notes)


def _points(answers: Answers, space: Space) -> list[Row]:
    """Return the located events of all answers."""
    points: list[Row] = []
    for number, (row, details) in enumerate(answers.rows()):
        located = space.located(answers, row)
        points += [
            {"answer": number, "order": order, "variable": name, "x": place[0], "y": place[1], **details}
            for order, (name, place) in enumerate(located)
        ]
    return points


def _turn(points: list[Row]) -> None:
    """Move longitudes so that locations on both sides of the date line are one region."""
    if points:
        west = west_end([point["x"] for point in points])
        for point in points:
            point["x"] = turned(point["x"], west)


def _extent(points: list[Row]) -> tuple[float, float, float, float]:
    """Return west, south, east and north of the map."""
    xs, ys = ([point[name] for point in points] or [0.0] for name in ("x", "y"))
    margin = MARGIN * max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    return min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin


def _layers(answers: Answers, points: list[Row], space: Space) -> list[Any]:
    base = alt.Chart(marks.data(points)).transform_filter(marks.shown())
    tooltip = marks.tooltips(answers)
    variables = answers.events
    colour = {"color": alt.Color("variable:N", title="event", sort=variables, scale=alt.Scale(domain=variables))}
    faint = alt.Opacity("probability:Q", scale=alt.Scale(domain=[0, 1], range=[0.25, 1]), legend=None)
    at = {"x": alt.X("x:Q"), "y": alt.Y("y:Q"), "opacity": faint, "tooltip": tooltip}
    # The links of three or more events close.
    linked = base.mark_line(style="link", interpolate="linear-closed", clip=True)
    links = linked.encode(**at, detail="answer:N", order="order:Q")
    events = base.mark_point(style="known", filled=True, size=90, clip=True)
    events = events.encode(**at, **(colour if len(variables) > 1 else {}))
    below = base.mark_point(style="paper", filled=True, size=90, clip=True).encode(x="x:Q", y="y:Q")
    return [links, below, events]


def _land(box: tuple[float, float, float, float], space: Space) -> list[Any]:
    """Return the land below the locations, and the axes of the map."""
    rings: list[list[Point]] = []
    if space.geodesic:
        wide, tall = SEEN * (box[2] - box[0]), SEEN * (box[3] - box[1])
        rings = coastlines((box[0] - wide, max(box[1] - tall, -90), box[2] + wide, min(box[3] + tall, 90)))
    rows = [
        {"x": x, "y": y, "ring": number, "order": order}
        for number, ring in enumerate(rings)
        for order, (x, y) in enumerate(ring)
    ]
    base = alt.Chart(marks.data(rows)).mark_line(style="land", clip=True)
    names = ("longitude", "latitude") if space.geodesic else (space.across, space.along)
    scales = [alt.Scale(domain=domain, nice=False, zero=False) for domain in ([box[0], box[2]], [box[1], box[3]])]
    degrees = "((datum.value + 540) % 360) - 180" if space.geodesic else "datum.value"
    across = alt.X(
        "x:Q", title=names[0], scale=scales[0], axis=alt.Axis(labelExpr=f"format({degrees}, '~g')", tickCount=8)
    )
    along = alt.Y("y:Q", title=names[1], scale=scales[1], axis=alt.Axis(tickCount=6))
    shape = base.encode(x=across, y=along, detail="ring:N", order="order:Q")
    return [shape.add_params(marks.zoom("zoom", "x", "y"))]
