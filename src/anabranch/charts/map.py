"""CONSTRAIN answers on a map: the locations of their events, joined by lines, over a grid of longitudes and latitudes.

The map has no coasts, so that the picture is self-contained; the grid has labels. The globe is cut in the widest gap
between locations, so data on both sides of the date line are one region.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from anabranch.drawing import svg
from anabranch.drawing.axis import tick_label, ticks
from anabranch.drawing.geometry import Point, arrow_barbs, convex_hull, turned, west_end
from anabranch.evaluation.series import instants
from anabranch.text import short

TOP, LEFT = 66, 62
FOOT = 74
"""Margins in pixels: above the map for title and key, left for latitudes, below for longitudes and the colour scale."""

LOWEST, HIGHEST = 220.0, 620.0
"""Bounds of the height in pixels. Within them a map keeps its proportions; a narrow belt is stretched."""

RAMP = ("#33348e", "#0b7a8f", "#4ba65b", "#e0a21b", "#c92a2a")
"""Colours from the first alert to the last, or from the rarest to the most frequent."""

REST = "#b9c0c6"
"""The colour of locations that are in no alert."""

LINE: dict[str, str | float] = {"fill": "none", "stroke": REST, "stroke_width": 0.7, "stroke_linejoin": "round"}
"""The style of lines between locations that are in no alert."""

CELL = 6.0
"""Pixels; alerts whose events are this close to each other are about the same locations."""


@dataclass(frozen=True, slots=True)
class _Alert:
    """The time of an alert, or its frequency, and the locations of its events in the order of the variables."""

    value: float
    locations: list[Point]
    counted: bool


@dataclass(frozen=True, slots=True)
class _Map:
    """The projection of locations to pixels."""

    x: svg.Scale
    y: svg.Scale
    geodesic: bool

    def __call__(self, location: Point) -> Point:
        """Return the position of a location on the page."""
        return self.x(turned(location[0], self.x.start) if self.geodesic else location[0]), self.y(location[1])

    @property
    def stretched(self) -> float:
        """How many times larger a distance is drawn from south to north than from west to east."""
        across = (self.x.right - self.x.left) / (self.x.end - self.x.start)
        if self.geodesic:
            across /= math.cos(math.radians((self.y.start + self.y.end) / 2))
        return (self.y.left - self.y.right) / (self.y.end - self.y.start) / across


def draw_map(
    answers: pa.Table,
    *,
    title: str = "",
    space: tuple[str, str] = ("lon", "lat"),
    geodesic: bool = True,
    colour: Literal["time", "number"] = "time",
    join: Literal["hull", "path", "auto"] = "auto",
    background: pa.Table | None = None,
    background_name: str = "no alert",
    background_by: str | None = None,
    limit: int = 400,
    width: int = 800,
) -> svg.Svg:
    """Draw the locations of the events of answers.

    Parameters
    ----------
    answers : pa.Table
        Of a CONSTRAIN query: `t`, and a struct or an array of structs for each variable. Events and columns without
        coordinates are skipped.
    title : str
        The title of the map.
    space : pair of str
        The names of the coordinates, as in SPACE.
    geodesic : bool
        The coordinates are degrees of longitude and latitude.
    colour : {'time', 'number'}
        By the time of an alert; or by the number of alerts about the same locations, which are then drawn once.
    join : {'hull', 'path', 'auto'}
        How the events of an alert are joined: by their convex hull, or by a path from the first variable to the last.
        The default is the hull if a variable is counted (`v*5`), else the path.
    background : pa.Table, optional
        More locations, with the same names of coordinates, drawn in grey.
    background_name : str
        What these are, for the key.
    background_by : str, optional
        A column of `background`: rows with the same value are drawn as one line, in their order.
    limit : int
        The maximum number of alerts; if there are more, alerts spread evenly over time are drawn, or the most frequent.
    width : int
        In pixels.

    Returns
    -------
    Svg
        The text of the picture, which a notebook displays.
    """
    alerts = _alerts(answers, space)
    tracks = _tracks(background, space, background_by) if background is not None and background_by is not None else []
    others = _locations(background, space) if background is not None else []
    chart = _chart([location for alert in alerts for location in alert.locations] + others, geodesic, width)
    by_time = colour == "time"
    figures = alerts if by_time else _counted(alerts, chart)
    drawn = _evenly(figures, limit) if by_time else figures[-limit:]
    scale = svg.Scale(*_span([figure.value for figure in figures]), 0.0, 1.0)
    parts = svg.header(short(title or "alerts"), _signs(others, background_name, bool(tracks)), width, key_baseline=50)
    parts += _graticule(chart)
    if background_by is None:
        parts += _dots(dict.fromkeys(map(chart, others), REST), 2.6)
    parts += [svg.element("polyline", "", points=svg.point_list(map(chart, track)), **LINE) for track in tracks]
    parts += [part for alert in drawn for part in _joined(alert, chart, scale, join, len(drawn))]
    parts += _dots(
        {chart(location): _colour(scale(alert.value)) for alert in drawn for location in alert.locations}, 3.6
    )
    if drawn:
        clock = by_time and pa.types.is_timestamp(answers.schema.field("t").type)
        parts += _legend(chart, scale, "time" if by_time else "alerts at the same places", clock)
    parts += _notes(chart, len(figures), len(drawn))
    return svg.page(parts, width, chart.y.left + FOOT, title or "alerts on a map")


# ------------------------------------------------------------ data


def _alerts(answers: pa.Table, space: tuple[str, str]) -> list[_Alert]:
    """Return the answers that have a time and a location, in the order of time."""
    columns = [name for name in answers.column_names if _event_type(answers.schema.field(name).type, space) is not None]
    counted = any(not pa.types.is_struct(answers.schema.field(name).type) for name in columns)
    events = [answers[name].to_pylist() for name in columns]
    times = instants(answers["t"])
    alerts = []
    for number in np.argsort(times, kind="stable"):
        answer_events = [event for column in events for event in _as_list(column[number])]
        locations = [location for event in answer_events if (location := _location(event, space)) is not None]
        if locations and math.isfinite(times[number]):
            alerts.append(_Alert(float(times[number]), locations, counted))
    return alerts


def _event_type(kind: pa.DataType, space: tuple[str, str]) -> pa.DataType | None:
    """Return the struct type of the events in a column of this type, if it has both coordinates."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind):
        return None
    return kind if {field.name for field in kind} >= set(space) else None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _location(event: Any, space: tuple[str, str]) -> Point | None:
    if event is None or event[space[0]] is None or event[space[1]] is None:
        return None
    x, y = float(event[space[0]]), float(event[space[1]])
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def _locations(table: pa.Table, space: tuple[str, str]) -> list[Point]:
    rows = table.select(list(space)).group_by(list(space)).aggregate([]).to_pylist()
    return [location for row in rows if (location := _location(row, space)) is not None]


def _tracks(table: pa.Table, space: tuple[str, str], by: str) -> list[list[Point]]:
    """Return the locations for each value of the column `by`, in the order of the table."""
    tracks: dict[Any, list[Point]] = {}
    for row in table.select([*space, by]).to_pylist():
        if (location := _location(row, space)) is not None:
            tracks.setdefault(row[by], []).append(location)
    return list(tracks.values())


def _counted(alerts: Sequence[_Alert], chart: _Map) -> list[_Alert]:
    """Return one of the alerts about the same locations, with their number; the most frequent last."""
    by_cells: dict[frozenset[Point], list[_Alert]] = {}
    for alert in alerts:
        cells = ((round(x / CELL), round(y / CELL)) for x, y in map(chart, alert.locations))
        by_cells.setdefault(frozenset(cells), []).append(alert)
    counted = [_Alert(len(same), same[0].locations, same[0].counted) for same in by_cells.values()]
    return sorted(counted, key=lambda alert: alert.value)


def _evenly(alerts: Sequence[_Alert], limit: int) -> list[_Alert]:
    """Return at most `limit` alerts, evenly spaced from the first to the last."""
    if len(alerts) <= limit:
        return list(alerts)
    return [alerts[round(number)] for number in np.linspace(0, len(alerts) - 1, limit)]


# ------------------------------------------------------------ projection


def _chart(locations: Sequence[Point], geodesic: bool, width: float) -> _Map:
    """Return the projection of the region of all locations, with a margin."""
    x, y = [location[0] for location in locations], [location[1] for location in locations]
    if geodesic and x:
        west = west_end(x)
        x = [turned(longitude, west) for longitude in x]
    (left, right), (bottom, top) = _wider(_span(x)), _wider(_span(y))
    if geodesic:
        right, bottom, top = min(right, left + 360.0), max(bottom, -90.0), min(top, 90.0)
    across = width - svg.EDGE - LEFT
    # A degree of longitude is shorter than one of latitude.
    ratio = math.cos(math.radians((bottom + top) / 2)) if geodesic else 1.0
    high = min(max(across * (top - bottom) / ((right - left) * ratio), LOWEST), HIGHEST)
    return _Map(svg.Scale(left, right, LEFT, width - svg.EDGE), svg.Scale(bottom, top, TOP + high, TOP), geodesic)


def _span(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 1.0)


def _wider(span: tuple[float, float]) -> tuple[float, float]:
    margin = 0.06 * (span[1] - span[0]) or 1.0
    return span[0] - margin, span[1] + margin


# ------------------------------------------------------------ drawing


def _graticule(chart: _Map) -> Iterator[str]:
    """Draw a frame, and grid lines with the longitudes below and the latitudes at the left."""
    left, right, bottom, top = chart.x.left, chart.x.right, chart.y.left, chart.y.right
    yield svg.element("rect", x=left, y=top, width=right - left, height=bottom - top, fill="#f4f8f9", stroke=svg.FAINT)
    for value, text in ticks(chart.x.start, chart.x.end, at_most=max(int((right - left) / 75), 2), clock=False):
        x = chart.x(value)
        yield svg.element("line", x1=x, x2=x, y1=top, y2=bottom, stroke=svg.GRID)
        shown = _degrees(value, "E", "W") if chart.geodesic else text
        yield svg.label(shown, x, bottom + 16, size=11, fill=svg.FAINT, text_anchor="middle")
    for value, text in ticks(chart.y.start, chart.y.end, at_most=max(int((bottom - top) / 38), 2), clock=False):
        y = chart.y(value)
        yield svg.element(
            "line", x1=left, x2=right, y1=y, y2=y, stroke=svg.FAINT if value == 0 else svg.GRID, stroke_width=0.8
        )
        shown = _degrees(value, "N", "S") if chart.geodesic else text
        yield svg.label(shown, left - 8, y + 4, size=11, fill=svg.FAINT, text_anchor="end")


def _degrees(value: float, positive: str, negative: str) -> str:
    """Return a longitude or latitude in the notation of maps.

    Examples
    --------
    >>> [_degrees(value, "E", "W") for value in (165, 180, 190, 0)]
    ['165°E', '180°', '170°W', '0°']
    """
    turned = (value + 180) % 360 - 180
    side = "" if turned in (0, -180) else positive if turned > 0 else negative
    return f"{abs(turned):.6g}°{side}"


def _joined(alert: _Alert, chart: _Map, scale: svg.Scale, join: str, among: int) -> Iterator[str]:
    """Draw the shape of one alert; the more alerts there are, the fainter each one is."""
    points = list(map(chart, alert.locations))
    hull = convex_hull(points) if join == "hull" or (join == "auto" and alert.counted) else []
    style: dict[str, str | float] = {
        "stroke": _colour(scale(alert.value)),
        "stroke_width": 1.6,
        "stroke_opacity": max(0.25, min(0.85, 12 / among)),
        "stroke_linejoin": "round",
    }
    if len(hull) > 2:
        filled = {"fill": style["stroke"], "fill_opacity": max(0.02, min(0.25, 1.2 / among))}
        yield svg.element("polygon", "", points=svg.point_list(hull), **filled, **style)
    elif len(points) > 1:
        yield svg.element("polyline", "", points=svg.point_list(hull or points), fill="none", **style)
        for behind, tip in zip(points, points[1:], strict=False) if not hull else ():
            yield _arrow(behind, tip, style)


def _arrow(behind: Point, tip: Point, style: dict[str, str | float]) -> str:
    """Draw an arrow head in the middle of a segment: many segments may end in one location."""
    middle = (behind[0] + tip[0]) / 2, (behind[1] + tip[1]) / 2
    left, right = arrow_barbs(behind, middle, length=8, spread=0.45)
    return svg.element("polyline", "", points=svg.point_list([left, middle, right]), fill="none", **style)


def _dots(colours: dict[Point, str], radius: float) -> Iterator[str]:
    """Draw a dot for each position; those in the same pixel are drawn once, in the last colour."""
    by_pixel = {(round(x), round(y)): (x, y, fill) for (x, y), fill in colours.items()}
    for x, y, fill in by_pixel.values():
        yield svg.element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=svg.PAPER, stroke_width=0.7)


def _legend(chart: _Map, scale: svg.Scale, name: str, clock: bool) -> Iterator[str]:
    """Draw the colour scale, below the map at the right."""
    right, top, wide, steps = chart.x.right, chart.y.left + 34, 320.0, 40
    for number in range(steps):
        fill = _colour((number + 0.5) / steps) if scale.end > scale.start else RAMP[0]
        x = right - wide + wide * number / steps
        yield svg.element("rect", x=x, y=top, width=wide / steps + 0.5, height=8, fill=fill)
    yield svg.label(name, right - wide - 10, top + 8, size=11, fill=svg.FAINT, text_anchor="end")
    ends = {"start": scale.start, "end": scale.end} if scale.end > scale.start else {"start": scale.start}
    for anchor, value in ends.items():
        text = tick_label(value, (scale.end - scale.start) / 2, clock)
        yield svg.label(
            text, right - wide if anchor == "start" else right, top + 23, size=11, fill=svg.FAINT, text_anchor=anchor
        )


def _notes(chart: _Map, total: int, drawn: int) -> Iterator[str]:
    """Write notes on how to read the map, below it at the left."""
    notes = []
    if not total:
        notes.append("no answers")
    if drawn < total:
        notes.append(f"{drawn:,} of {total:,} drawn")
    if not 0.95 < chart.stretched < 1.05:
        notes.append(f"north to south {chart.stretched:.2g} times as large")
    for number, text in enumerate(notes):
        yield svg.label(text, chart.x.left, chart.y.left + 42 + 15 * number, size=11, fill=svg.FAINT)


def _signs(others: Sequence[Point], name: str, joined: bool) -> list[tuple[str, str, str]]:
    signs = [("●", RAMP[1], "in an alert")]
    return [*signs, ("━" if joined else "●", REST, name)] if others else signs


def _colour(share: float) -> str:
    """Return a colour of the ramp: 0 is its beginning, 1 its end."""
    position = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    number = min(int(position), len(RAMP) - 2)
    ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in RAMP[number : number + 2]]
    mixed = [round(a + (b - a) * (position - number)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)
