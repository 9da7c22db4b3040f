"""Answers as GeoJSON (RFC 7946), for maps: the locations of CONSTRAIN, and the predicted tracks of MONITOR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from anabranch.drawing.geometry import Point
from anabranch.errors import DataError
from anabranch.plotting.answers import Answers, Row, instant, kind_of, table_of
from anabranch.plotting.locations import Space, event_columns, space_of
from anabranch.plotting.predictions import Predictions
from anabranch.text import value_text

Feature = dict[str, Any]


def to_geojson(
    answers: Any, *, data: Any = None, space: Sequence[str] | None = None, time: str | None = None
) -> dict[str, Any]:
    """Return answers with locations as a GeoJSON feature collection.

    A CONSTRAIN answer is one feature: a line through the locations of its events in the order of the variables, or a
    point if they are all at one location. A MONITOR answer has one feature for each of its objects: the predicted
    track while the answer is valid. The columns of the answer are the properties. Lines are cut at the date line.

    Parameters
    ----------
    answers, data, space, time
        As for `plot`. A MONITOR needs its predictions as `data`, with longitudes and latitudes.

    Raises
    ------
    DataError
        If the answers have no longitudes and latitudes. Coordinates in the plane have no place on the globe.
    """
    table = table_of(answers)
    everything = Answers.highest(table, max(table.num_rows, 1))
    kind = kind_of(table)
    if kind == "monitor":
        features = list(_tracks(everything, data, space, time))
    else:
        features = list(_configurations(everything, _degrees(event_columns(everything), space)))
    return {"type": "FeatureCollection", "features": features}


def _degrees(columns: Sequence[str], given: Sequence[str] | None) -> Space:
    found = space_of(columns, given)
    if found is None or not found.geodesic:
        raise DataError("GeoJSON has longitudes and latitudes, such as columns lon and lat; these answers have none")
    return found


def _configurations(answers: Answers, space: Space) -> Iterator[Feature]:
    for row in answers.table.to_pylist():
        places = [place for _, place in space.located(answers, row)]
        if places:
            yield _feature(places, _properties(answers, row))


def _tracks(answers: Answers, data: Any, given: Sequence[str] | None, time: str | None) -> Iterator[Feature]:
    if data is None:
        raise DataError("a MONITOR answer has no locations; pass its predictions as data= (--data)")
    predictions = Predictions(table_of(data), time)
    space = _degrees(predictions.values, given)
    for row in answers.table.to_pylist():
        start, end = instant(row["valid_from"]), instant(row["valid_to"])
        for name in answers.events:
            places = _track(predictions, row[name], space, start or 0.0, end or 0.0)
            if places:
                yield _feature(places, {"object": name, **_properties(answers, row)})


def _track(predictions: Predictions, event: Row, space: Space, start: float, end: float) -> list[Point]:
    """Return the predicted locations at both ends of the validity, by the prediction that the answer names."""
    own = instant(event.get(predictions.time))
    rows = [row for row in predictions.of(event) if own is None or instant(row[predictions.time]) == own]
    if not rows:
        return []
    axes = [list(predictions.points(rows[0], name, start, end)) for name in (space.across, space.along)]
    longest = max(len(axis) for axis in axes)
    instants = [start + (end - start) * step / (longest - 1) for step in range(longest)]
    across, along = ([predictions.value_at(rows[0], name, s) for s in instants] for name in (space.across, space.along))
    return list(zip(across, along, strict=True))


def _feature(places: Sequence[Point], properties: Row) -> Feature:
    return {"type": "Feature", "geometry": _geometry(places), "properties": properties}


def _geometry(places: Sequence[Point]) -> Row:
    turned = [((x + 180) % 360 - 180 if not -180 <= x <= 180 else x, y) for x, y in places]
    if len(set(turned)) == 1:
        return {"type": "Point", "coordinates": list(turned[0])}
    lines = _cut(turned)
    if len(lines) == 1:
        return {"type": "LineString", "coordinates": lines[0]}
    return {"type": "MultiLineString", "coordinates": lines}


def _cut(places: Sequence[Point]) -> list[list[list[float]]]:
    """Return a line in parts that do not cross the date line."""
    lines = [[list(places[0])]]
    for (x, y), (next_x, next_y) in zip(places, places[1:], strict=False):
        if abs(next_x - x) > 180:
            edge = 180.0 if x > 0 else -180.0
            share = (edge - x) / (next_x + 2 * edge - x)
            crossing = y + share * (next_y - y)
            lines[-1].append([edge, crossing])
            lines.append([[-edge, crossing]])
        lines[-1].append([next_x, next_y])
    return [line for line in lines if line[0] != line[-1] or len(line) > 2]


def _properties(answers: Answers, row: Row) -> Row:
    """Return the columns of an answer as JSON values."""
    return {name: _plain(row[name]) for name in answers.table.column_names if name not in ("boundary", "sample")}


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else None
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case _ if hasattr(value, "isoformat"):
            return value.isoformat()
        case _:
            return value_text(pa.scalar(value))
