"""CONSTRAIN answers on a map: the places of their events, joined, over a net of longitudes and latitudes.

There are no coasts: the picture stands alone, and a net with labels tells where things are. The globe is cut in the
widest gap between places, so data on both sides of the date line are one region.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.show.axis import tick_label, ticks
from anabranch.show.series import instants
from anabranch.show.svg import EDGE, FAINT, GRID, PAPER, Scale, Svg, element, key, label, page
from anabranch.show.text import short

TOP, LEFT = 66, 62
FOOT = 74
"""Pixels above, left of and below the map: title and key, latitudes, longitudes and the scale of colours."""

LOWEST, HIGHEST = 220.0, 620.0
"""Pixels. A map keeps its proportions where it is then between so high; a narrow belt is stretched."""

RAMP = ("#33348e", "#0b7a8f", "#4ba65b", "#e0a21b", "#c92a2a")
"""From the first alert to the last, or from the rarest to the most frequent."""

REST = "#b9c0c6"
"""Of places that are in no alert."""

LINE: dict[str, str | float] = {"fill": "none", "stroke": REST, "stroke_width": 0.7, "stroke_linejoin": "round"}
"""Of places in no alert that are joined."""

CELL = 6.0
"""Pixels; alerts whose events are this close to each other are about the same places."""

Floats = NDArray[np.float64]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Alert:
    """When it was, or how often, and the places of its events in the order of the variables."""

    value: float
    places: list[Point]
    counted: bool


@dataclass(frozen=True, slots=True)
class _Map:
    """From places to pixels."""

    x: Scale
    y: Scale
    geodesic: bool

    def __call__(self, place: Point) -> Point:
        """Where a place is on the page."""
        return self.x(_turned(place[0], self.x.start) if self.geodesic else place[0]), self.y(place[1])

    @property
    def stretched(self) -> float:
        """How much larger a distance is drawn from south to north than from west to east."""
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
) -> Svg:
    """Draw where the events of answers were.

    Parameters
    ----------
    answers : pa.Table
        Of a CONSTRAIN query: `t`, and a struct or an array of structs for each variable. Events without a place are
        passed over, and so are columns that have none.
    title : str
        Stands above the map.
    space : pair of str
        The names of the coordinates, as in SPACE.
    geodesic : bool
        They are degrees of longitude and latitude.
    colour : {'time', 'number'}
        By when an alert was; or by how many there are about the same places, which are then drawn once.
    join : {'hull', 'path', 'auto'}
        How the events of an alert are joined: by a line around them, or from the first variable to the last. By default
        around them where a variable is counted (`v*5`).
    background : pa.Table, optional
        More places, by the same names of coordinates: drawn in grey.
    background_name : str
        What they are, for the key.
    background_by : str, optional
        A column of `background`: those that have the same in it are drawn as one line, in their order.
    limit : int
        How many alerts are drawn; where there are more, they are taken evenly over time, or the most frequent ones.
    width : int
        In pixels.

    Returns
    -------
    Svg
        The text of the picture; a notebook shows it.
    """
    alerts = _alerts(answers, space)
    ways = _ways(background, space, background_by) if background is not None and background_by is not None else []
    others = _places(background, space) if background is not None else []
    chart = _chart([place for alert in alerts for place in alert.places] + others, geodesic, width)
    by_time = colour == "time"
    figures = alerts if by_time else _counted(alerts, chart)
    drawn = _evenly(figures, limit) if by_time else figures[-limit:]
    scale = Scale(*_span([figure.value for figure in figures]), 0.0, 1.0)
    parts = [label(short(title or "alerts"), EDGE, 27, size=15, font_weight=600)]
    parts.append(key(_signs(others, background_name, bool(ways)), width - EDGE, 50))
    parts += _graticule(chart)
    if background_by is None:
        parts += _dots(dict.fromkeys(map(chart, others), REST), 2.6)
    parts += [element("polyline", "", points=_written(list(map(chart, way))), **LINE) for way in ways]
    parts += [part for alert in drawn for part in _joined(alert, chart, scale, join, len(drawn))]
    parts += _dots({chart(place): _colour(scale(alert.value)) for alert in drawn for place in alert.places}, 3.6)
    if drawn:
        clock = by_time and pa.types.is_timestamp(answers.schema.field("t").type)
        parts += _legend(chart, scale, "time" if by_time else "alerts at the same places", clock)
    parts += _notes(chart, len(figures), len(drawn))
    return page(parts, width, chart.y.left + FOOT, title or "alerts on a map")


# ------------------------------------------------------------ what there is to draw


def _alerts(answers: pa.Table, space: tuple[str, str]) -> list[_Alert]:
    """The answers that have a time and a place, in the order of time."""
    columns = [name for name in answers.column_names if _event_type(answers.schema.field(name).type, space) is not None]
    counted = any(not pa.types.is_struct(answers.schema.field(name).type) for name in columns)
    events = [answers[name].to_pylist() for name in columns]
    times = instants(answers["t"])
    alerts = []
    for number in np.argsort(times, kind="stable"):
        of_answer = [event for column in events for event in _listed(column[number])]
        places = [place for event in of_answer if (place := _place(event, space)) is not None]
        if places and math.isfinite(times[number]):
            alerts.append(_Alert(float(times[number]), places, counted))
    return alerts


def _event_type(kind: pa.DataType, space: tuple[str, str]) -> pa.DataType | None:
    """The struct of an event in a column of this type, where it has both coordinates."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind):
        return None
    return kind if {field.name for field in kind} >= set(space) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _place(event: Any, space: tuple[str, str]) -> Point | None:
    if event is None or event[space[0]] is None or event[space[1]] is None:
        return None
    x, y = float(event[space[0]]), float(event[space[1]])
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def _places(table: pa.Table, space: tuple[str, str]) -> list[Point]:
    rows = table.select(list(space)).group_by(list(space)).aggregate([]).to_pylist()
    return [place for row in rows if (place := _place(row, space)) is not None]


def _ways(table: pa.Table, space: tuple[str, str], by: str) -> list[list[Point]]:
    """The places of those that belong together, each in the order of the table."""
    ways: dict[Any, list[Point]] = {}
    for row in table.select([*space, by]).to_pylist():
        if (place := _place(row, space)) is not None:
            ways.setdefault(row[by], []).append(place)
    return list(ways.values())


def _counted(alerts: Sequence[_Alert], chart: _Map) -> list[_Alert]:
    """One of the alerts about the same places, with their number; the most frequent last."""
    of: dict[frozenset[Point], list[_Alert]] = {}
    for alert in alerts:
        cells = ((round(x / CELL), round(y / CELL)) for x, y in map(chart, alert.places))
        of.setdefault(frozenset(cells), []).append(alert)
    found = [_Alert(len(same), same[0].places, same[0].counted) for same in of.values()]
    return sorted(found, key=lambda alert: alert.value)


def _evenly(alerts: Sequence[_Alert], limit: int) -> list[_Alert]:
    """At most so many, from the first to the last."""
    if len(alerts) <= limit:
        return list(alerts)
    return [alerts[round(number)] for number in np.linspace(0, len(alerts) - 1, limit)]


# ------------------------------------------------------------ where it is drawn


def _chart(places: Sequence[Point], geodesic: bool, width: float) -> _Map:
    """The region that all places are in, with a margin."""
    x, y = [place[0] for place in places], [place[1] for place in places]
    if geodesic and x:
        west = _west_end(x)
        x = [_turned(longitude, west) for longitude in x]
    (left, right), (bottom, top) = _wider(_span(x)), _wider(_span(y))
    if geodesic:
        right, bottom, top = min(right, left + 360.0), max(bottom, -90.0), min(top, 90.0)
    across = width - EDGE - LEFT
    shrunk = math.cos(math.radians((bottom + top) / 2)) if geodesic else 1.0
    high = min(max(across * (top - bottom) / ((right - left) * shrunk), LOWEST), HIGHEST)
    return _Map(Scale(left, right, LEFT, width - EDGE), Scale(bottom, top, TOP + high, TOP), geodesic)


def _west_end(longitudes: Sequence[float]) -> float:
    """The longitude at which the region begins: east of the widest gap.

    Examples
    --------
    >>> _west_end([165.0, -95.0, 180.0, -140.0])
    165.0
    """
    around = np.unique(np.mod(longitudes, 360.0))
    gaps = np.diff(around, prepend=around[-1] - 360.0)
    west = float(around[np.argmax(gaps)])
    return west if west <= 180 else west - 360


def _turned(longitude: float, west: float) -> float:
    """The same longitude, as a number between west and west + 360."""
    return west + (longitude - west) % 360.0


def _span(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 1.0)


def _wider(span: tuple[float, float]) -> tuple[float, float]:
    margin = 0.06 * (span[1] - span[0]) or 1.0
    return span[0] - margin, span[1] + margin


# ------------------------------------------------------------ drawing


def _graticule(chart: _Map) -> Iterator[str]:
    """A frame, and lines with the longitudes below and the latitudes at the left."""
    left, right, bottom, top = chart.x.left, chart.x.right, chart.y.left, chart.y.right
    yield element("rect", x=left, y=top, width=right - left, height=bottom - top, fill="#f4f8f9", stroke=FAINT)
    for value, text in ticks(chart.x.start, chart.x.end, at_most=max(int((right - left) / 75), 2), clock=False):
        x = chart.x(value)
        yield element("line", x1=x, x2=x, y1=top, y2=bottom, stroke=GRID)
        told = _degrees(value, "E", "W") if chart.geodesic else text
        yield label(told, x, bottom + 16, size=11, fill=FAINT, text_anchor="middle")
    for value, text in ticks(chart.y.start, chart.y.end, at_most=max(int((bottom - top) / 38), 2), clock=False):
        y = chart.y(value)
        yield element("line", x1=left, x2=right, y1=y, y2=y, stroke=FAINT if value == 0 else GRID, stroke_width=0.8)
        told = _degrees(value, "N", "S") if chart.geodesic else text
        yield label(told, left - 8, y + 4, size=11, fill=FAINT, text_anchor="end")


def _degrees(value: float, positive: str, negative: str) -> str:
    """A longitude or latitude as it is written on maps.

    Examples
    --------
    >>> [_degrees(value, "E", "W") for value in (165, 180, 190, 0)]
    ['165°E', '180°', '170°W', '0°']
    """
    turned = (value + 180) % 360 - 180
    side = "" if turned in (0, -180) else positive if turned > 0 else negative
    return f"{abs(turned):.6g}°{side}"


def _joined(alert: _Alert, chart: _Map, scale: Scale, join: str, among: int) -> Iterator[str]:
    """The figure of one alert; the more there are, the fainter is each."""
    points = list(map(chart, alert.places))
    hull = _hull(points) if join == "hull" or (join == "auto" and alert.counted) else []
    style: dict[str, str | float] = {
        "stroke": _colour(scale(alert.value)),
        "stroke_width": 1.6,
        "stroke_opacity": max(0.25, min(0.85, 12 / among)),
        "stroke_linejoin": "round",
    }
    if len(hull) > 2:
        filled = {"fill": style["stroke"], "fill_opacity": max(0.02, min(0.25, 1.2 / among))}
        yield element("polygon", "", points=_written(hull), **filled, **style)
    elif len(points) > 1:
        yield element("polyline", "", points=_written(hull or points), fill="none", **style)
        for behind, tip in zip(points, points[1:], strict=False) if not hull else ():
            yield _arrow(behind, tip, style)


def _arrow(behind: Point, tip: Point, style: dict[str, str | float]) -> str:
    """Two strokes at the middle of a way: at its end there may be many."""
    angle = math.atan2(tip[1] - behind[1], tip[0] - behind[0])
    x, y = (behind[0] + tip[0]) / 2, (behind[1] + tip[1]) / 2
    ends = [(x - 8 * math.cos(angle + turn), y - 8 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    return element("polyline", "", points=_written([ends[0], (x, y), ends[1]]), fill="none", **style)


def _dots(places: dict[Point, str], radius: float) -> Iterator[str]:
    """A dot for each place; those on the same spot are one, of the last one's colour."""
    spots = {(round(x), round(y)): (x, y, fill) for (x, y), fill in places.items()}
    for x, y, fill in spots.values():
        yield element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=PAPER, stroke_width=0.7)


def _hull(points: Sequence[Point]) -> list[Point]:
    """The corners of the smallest convex region around points; the two ends where all lie on a line.

    Examples
    --------
    >>> _hull([(0, 0), (2, 0), (1, 1), (2, 2), (0, 2)])
    [(0, 0), (2, 0), (2, 2), (0, 2)]
    """
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    below, above = _half_hull(ordered), _half_hull(ordered[::-1])
    return below[:-1] + above[:-1]


def _half_hull(ordered: Sequence[Point]) -> list[Point]:
    """One side of the hull: what turns left all the way."""
    corners: list[Point] = []
    for x, y in ordered:
        while len(corners) > 1:
            (ax, ay), (bx, by) = corners[-2:]
            # Pixels: a corner that nobody sees is one of rounding.
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.01:
                break
            corners.pop()
        corners.append((x, y))
    return corners


def _legend(chart: _Map, scale: Scale, name: str, clock: bool) -> Iterator[str]:
    """The scale of colours, below the map at the right."""
    right, top, wide, steps = chart.x.right, chart.y.left + 34, 320.0, 40
    for number in range(steps):
        fill = _colour((number + 0.5) / steps) if scale.end > scale.start else RAMP[0]
        x = right - wide + wide * number / steps
        yield element("rect", x=x, y=top, width=wide / steps + 0.5, height=8, fill=fill)
    yield label(name, right - wide - 10, top + 8, size=11, fill=FAINT, text_anchor="end")
    ends = {"start": scale.start, "end": scale.end} if scale.end > scale.start else {"start": scale.start}
    for anchor, value in ends.items():
        text = tick_label(value, (scale.end - scale.start) / 2, clock)
        yield label(
            text, right - wide if anchor == "start" else right, top + 23, size=11, fill=FAINT, text_anchor=anchor
        )


def _notes(chart: _Map, total: int, drawn: int) -> Iterator[str]:
    """What one must know to read the map, below it at the left."""
    notes = []
    if not total:
        notes.append("no answers")
    if drawn < total:
        notes.append(f"{drawn:,} of {total:,} drawn")
    if not 0.95 < chart.stretched < 1.05:
        notes.append(f"north to south {chart.stretched:.2g} times as large")
    for number, text in enumerate(notes):
        yield label(text, chart.x.left, chart.y.left + 42 + 15 * number, size=11, fill=FAINT)


def _signs(others: Sequence[Point], name: str, joined: bool) -> list[tuple[str, str, str]]:
    signs = [("●", RAMP[1], "in an alert")]
    return [*signs, ("━" if joined else "●", REST, name)] if others else signs


def _colour(share: float) -> str:
    """A colour of the ramp: 0 is its beginning, 1 its end."""
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    number = min(int(place), len(RAMP) - 2)
    ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in RAMP[number : number + 2]]
    mixed = [round(a + (b - a) * (place - number)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _written(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
