"""Streams and variables of CONSTRAIN cases: their declarations, and the domains of their rows."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from tests.cases import DOUBLE, INTEGER, STRING, TIMESTAMP, Row, moment, watermark_of

#: Locations on integers, on quarters, in degrees on the globe, and streams without locations. In space there is a third
#: coordinate, and in the air a height above the globe.
PLANE, QUARTERS, GLOBE, NOWHERE, SPACE, AIR = "plane", "quarters", "globe", "nowhere", "space", "air"
SPACES = (PLANE, QUARTERS, GLOBE, PLANE, NOWHERE)

KEYS = {STRING: ("a", "b", "c", "d"), INTEGER: (1, 2, 3, 10)}
KINDS = ("A", "B", "A", "C", "B", None)
TEMPS = {INTEGER: (1, 2, 0, 3, -1, 2, None), DOUBLE: (1.0, 2.5, 0.0, 0.25, -1.5, 2.5, None)}
INSTANTS = {
    INTEGER: (0, 1, 2, 3, 4, 5, 7, -2),
    DOUBLE: (0.0, 0.25, 0.5, 1.0, 1.25, 2.0, 3.5, -0.75),
    TIMESTAMP: (0.0, 1.0, 0.5, 2.0, 1.5, 3.0, 60.0, 120.5),
}
#: Instants whose differences are rounded in doubles.
DECIMAL_INSTANTS = {INTEGER: INSTANTS[INTEGER]} | dict.fromkeys(
    (DOUBLE, TIMESTAMP), (0.0, 0.1, 0.3, 0.7, 0.2, 0.4, 1.1, -0.6)
)
#: The least difference of two instants of a type.
STEPS = {INTEGER: 1, DOUBLE: 0.25, TIMESTAMP: 0.5}

#: The coordinates to choose from, by space. In the plane many distances are integers, as 5 is for sides of 3 and 4. On
#: the globe, they are in the middle of a map, around the antimeridian, or around a pole.
COORDINATES = {
    PLANE: [((0.0, 3.0, 6.0), (0.0, 4.0)), ((0.0, 3.0, 1.0, 6.0), (0.0, 4.0, 1.0, 8.0))],
    QUARTERS: [((0.0, 0.75, 0.25, 1.5), (0.0, 1.0, -0.25))],
    GLOBE: [
        ((10.0, 10.25, 10.5, 11.0), (50.0, 50.25, 50.5)),
        ((179.75, 179.5, -180.0, -179.75), (0.0, 0.25, -0.25)),
        ((0.0, 90.0, 179.5, -120.0), (90.0, 89.75, 89.5)),
    ],
    NOWHERE: [((), ())],
    SPACE: [((0.0, 3.0, 6.0), (0.0, 4.0), (0.0, 12.0)), ((0.0, 3.0, 1.0, 6.0), (0.0, 4.0, 8.0), (0.0, 12.0, 1.0))],
    AIR: [
        ((10.0, 10.25, 10.5), (50.0, 50.25), (0.0, 9000.0, 10000.5)),
        ((179.75, -180.0, -179.75), (0.0, 0.25), (0.0, 9000.0, -50.0)),
    ],
}


#: The columns of locations that are not x and y.
AXES = {GLOBE: ("lon", "lat"), NOWHERE: (), SPACE: ("x", "y", "z"), AIR: ("lon", "lat", "height")}


@dataclass(frozen=True)
class Shape:
    """The declaration of a stream, and the domains of its rows."""

    name: str
    key_type: str
    temp_type: str
    time_type: str
    instants: tuple[int | float, ...]
    space: str
    coordinates: tuple[tuple[float, ...], ...]
    unknown_locations: bool
    watermark: int | float | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns of a location."""
        return AXES.get(self.space, ("x", "y"))

    def text(self) -> str:
        """The declaration."""
        columns = f"KEY (id {self.key_type}) VALUE (kind STRING, temp {self.temp_type}) TIME t {self.time_type}"
        space = f" SPACE ({', '.join(self.axes)})" if self.axes else ""
        geodesic = " GEODESIC" if self.space in (GLOBE, AIR) else ""
        return f"CREATE STREAM {self.name} {columns}{space}{geodesic}{watermark_of(self.watermark)};"

    def rows(self) -> st.SearchStrategy[Row]:
        """A row; its values may be NULL, and its coordinates with `unknown_locations`."""
        unknown = [None] if self.unknown_locations else []
        return st.fixed_dictionaries(
            {
                "id": st.sampled_from(KEYS[self.key_type]),
                "kind": st.sampled_from(KINDS),
                "temp": st.sampled_from(TEMPS[self.temp_type]),
                "t": st.sampled_from([moment(instant, self.time_type) for instant in self.instants]),
                **{
                    axis: st.sampled_from([*numbers * 6, *unknown])
                    for axis, numbers in zip(self.axes, self.coordinates, strict=False)
                },
            }
        )


@dataclass(frozen=True)
class Variable:
    """A variable, and its models: rows of the case that can be its events, one for each of them.

    With `least` above 0, it is written with AT LEAST this number.
    """

    name: str
    shape: Shape
    count: int = 1
    models: tuple[Row, ...] = ()
    negated: bool = False
    least: int = 0

    def text(self) -> str:
        """The variable in the syntax of CONSTRAIN."""
        if self.negated:
            return f"NOT {self.name}"
        if self.least:
            return f"AT LEAST {self.least} {self.name}"
        return self.name if self.count == 1 else f"{self.name}*{self.count}"


@dataclass(frozen=True)
class Style:
    """Options of conditions; parameters of `constrain_cases`.

    One of `stray` conditions is drawn independently of the models.
    """

    consistent: bool
    connected: bool
    polygons: bool
    decimals: bool
    tables: tuple[str, ...]
    stray: int = 12
