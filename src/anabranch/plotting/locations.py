"""The locations of the events of answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.drawing.geometry import Point
from anabranch.errors import DataError
from anabranch.plotting.answers import Answers, Row, events_of

SPACES = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"))
"""The columns that are locations where none are named; the last are in the plane."""


@dataclass(frozen=True, slots=True)
class Space:
    """The two columns of a location, and whether they are degrees of longitude and latitude."""

    across: str
    along: str
    geodesic: bool

    def location(self, event: Row | None) -> Point | None:
        """Return the location of an event; None if it is not known."""
        if event is None or event.get(self.across) is None or event.get(self.along) is None:
            return None
        point = float(event[self.across]), float(event[self.along])
        return point if all(map(math.isfinite, point)) else None

    def located(self, answers: Answers, row: Row) -> list[tuple[str, Point]]:
        """Return the locations of the events of an answer with their variables."""
        places = [(name, self.location(event)) for name, event in events_of(row, answers.events)]
        return [(name, place) for name, place in places if place is not None]


def space_of(columns: Sequence[str], given: Sequence[str] | None = None) -> Space | None:
    """Return the columns of the locations; None if there are none.

    Examples
    --------
    >>> space_of(["id", "lat", "lon"])
    Space(across='lon', along='lat', geodesic=True)
    """
    if given is not None:
        missing = [name for name in given if name not in columns]
        if len(given) != 2 or missing:
            raise DataError(f"space= names two columns of the events, which are: {', '.join(columns)}")
        return Space(given[0], given[1], given[0].lower().startswith("lon"))
    found = next((pair for pair in SPACES if set(pair) <= set(columns)), None)
    return None if found is None else Space(*found, geodesic=found != SPACES[-1])


def event_columns(answers: Answers) -> list[str]:
    """Return the columns that events of answers have."""
    names: dict[str, None] = {}
    for row in answers.table.slice(0, 100).to_pylist():
        for _, event in events_of(row, answers.events):
            names |= dict.fromkeys(event or {})
    return list(names)
