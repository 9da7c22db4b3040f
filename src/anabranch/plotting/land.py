"""Coastlines, from a packaged file of low resolution (Natural Earth 1:110m, public domain)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import shapely

Box = tuple[float, float, float, float]


def coastlines(box: Box) -> list[list[tuple[float, float]]]:
    """Return the outlines of the land in a box of longitudes (which may exceed 180) and latitudes."""
    window = shapely.box(*box)
    rings = []
    for turn in (-360.0, 0.0, 360.0):
        part = shapely.intersection(shapely.transform(_land(), lambda points, turn=turn: points + (turn, 0.0)), window)
        rings += [[(x, y) for x, y in ring.coords] for ring in _rings(part)]
    return rings


def _rings(shape: Any) -> list[Any]:
    polygons = [part for part in shapely.get_parts(shape) if part.geom_type == "Polygon"]
    return [ring for polygon in polygons for ring in (polygon.exterior, *polygon.interiors)]


@cache
def _land() -> Any:
    document = json.loads(files("anabranch.plotting").joinpath("land.json").read_text(encoding="utf-8"))
    return shapely.MultiPolygon([(rings[0], rings[1:]) for rings in document["polygons"]])
