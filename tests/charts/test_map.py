"""Answers on a map: regions across the date line, joined events, colours, and any data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.charts.map import RAMP, REST, draw_map
from anabranch.drawing.svg import Svg
from tests.charts.answers import HOSTILE, minutes
from tests.drawing.pictures import element_names, elements, parsed, points, texts
from tests.drawn import examples

EVENT = pa.struct([("buoy", pa.string()), ("lon", pa.float64()), ("lat", pa.float64())])
STATIONS = pa.table({"lon": [137.0, 165.0, -180.0, -140.0, -95.0], "lat": [8.0, -8.0, 0.0, 0.0, 0.0]})
FIRST, LAST = RAMP[0], RAMP[-1]

Location = tuple[float | None, float | None] | None


def event(location: Location) -> dict[str, Any] | None:
    return None if location is None else {"buoy": "b", "lon": location[0], "lat": location[1]}


def counted(*alerts: list[Location]) -> pa.Table:
    """Return answers to a query about v*n, a minute apart."""
    events = [[event(location) for location in locations] for locations in alerts]
    return pa.table({"t": minutes(*range(len(alerts))), "v": pa.array(events, pa.list_(EVENT))})


def path(*alerts: list[Location]) -> pa.Table:
    """Return answers to a query about a, b, c, ..., a minute apart."""
    columns = {
        name: pa.array([event(location) for location in locations], EVENT)
        for name, locations in zip("abcd", zip(*alerts, strict=True), strict=False)
    }
    return pa.table({"t": minutes(*range(len(alerts))), **columns})


def dots(picture: str, radius: str = "3.6") -> list[tuple[float, float]]:
    """Return the positions of events from left to right; with radius 2.6, of the background locations."""
    return sorted((float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in elements(picture, "circle", r=radius))


# ---------------------------------------------------------------- projection


def test_a_region_across_the_date_line_is_not_split() -> None:
    picture = draw_map(counted([(165, 0), (180, 5), (-170, 0), (-95, -5)]), background=STATIONS)
    xs = [x for x, _ in dots(picture)]
    scale = (xs[-1] - xs[0]) / 100
    assert xs == pytest.approx([xs[0] + scale * degrees for degrees in (0, 15, 25, 100)], abs=0.1)
    labels = texts(picture)
    assert labels.index("160°E") < labels.index("180°") < labels.index("160°W") < labels.index("100°W")
    assert not {"0°E", "0°W", "180°W", "190°E"} & set(labels)


@pytest.mark.parametrize("west", [-180, -178, -90, 0, 100, 179, 350])
def test_a_shape_looks_the_same_at_every_longitude(west: float) -> None:
    def turned(by: float) -> str:
        return draw_map(counted([((by + step + 180) % 360 - 180, 0) for step in (0, 3, 9)]))

    np.testing.assert_allclose(dots(turned(west)), dots(turned(20)), atol=0.02)


def test_longitudes_may_go_from_0_to_360() -> None:
    pictures = [dots(draw_map(counted([(170, 0), (lon, 5), (lon + 10, 0)]))) for lon in (-140, 220)]
    np.testing.assert_allclose(*pictures, atol=0.02)


def test_north_is_up_and_a_stretched_belt_has_a_note() -> None:
    picture = draw_map(counted([(-140, -1), (-95, 1)]))
    (_, south), (_, north) = dots(picture)
    assert north < south
    assert any("north to south" in text and "times as large" in text for text in texts(picture))
    assert "times as large" not in draw_map(counted([(0, 0), (40, 20)]))


def test_a_plane_has_numbers_and_no_date_line() -> None:
    plane = pa.struct([("x", pa.float64()), ("y", pa.float64())])
    rows = [[{"x": -1000.0, "y": 0.0}, {"x": 1000.0, "y": 900.0}]]
    table = pa.table({"t": [3], "v": pa.array(rows, pa.list_(plane))})
    picture = draw_map(table, space=("x", "y"), geodesic=False)
    assert dots(picture)[1][0] - dots(picture)[0][0] > 600
    assert {"-1000", "0", "1000"} <= set(texts(picture))
    assert "°" not in picture


def test_background_locations_are_grey_and_below() -> None:
    picture = draw_map(counted([(165, -8), (180, 0)]), background=STATIONS, background_name="another buoy")
    assert len(dots(picture, "2.6")) == 5
    assert any("another buoy" in text for text in texts(picture))
    assert picture.index('r="2.6"') < picture.index('r="3.6"')
    assert "another buoy" not in draw_map(counted([(165, -8)]), background_name="another buoy")


def test_background_locations_of_one_key_are_a_line() -> None:
    tracks = pa.table(
        {"lon": [5.0, 6.0, 10.0, 7.0, None], "lat": [1.0, 2.0, 4.0, 3.0, 1.0], "who": ["b", "b", "a", "b", "a"]}
    )
    picture = draw_map(counted([(5, 1), (9, 4)]), background=tracks, background_name="a track", background_by="who")
    assert not dots(picture, "2.6")
    lines = elements(picture, "polyline", stroke=REST)
    assert [len(points(line)) for line in lines] == [3, 1]
    xs = [x for x, _ in points(lines[0])]
    assert xs == sorted(xs), "in the order of the table"
    assert any("a track" in text for text in texts(picture))
    assert picture.index(f'stroke="{REST}"') < picture.index('r="3.6"')


# ---------------------------------------------------------------- joined events


def test_events_of_a_counted_variable_are_joined_by_their_hull() -> None:
    picture = draw_map(counted([(0, 0), (20, 0), (10, 5), (20, 10), (0, 10)]))
    (hull,) = elements(picture, "polygon")
    assert len(points(hull)) == 4, "the middle one is inside"
    assert len(dots(picture)) == 5


@pytest.mark.parametrize("locations", [[(0, 0), (20, 10)], [(0, 0), (10, 5), (20, 10)]])
def test_events_on_a_line_are_joined_by_it(locations: list[Location]) -> None:
    picture = draw_map(counted(locations))
    assert not elements(picture, "polygon")
    (line,) = elements(picture, "polyline")
    assert len(points(line)) == 2


def test_variables_are_joined_in_their_order_with_arrows() -> None:
    picture = draw_map(path([(165, 0), (-140, 2), (-155, -2)]))
    line, *arrows = elements(picture, "polyline")
    assert len(arrows) == 2
    (ax, _), (bx, _), (cx, _) = points(line)
    assert ax < cx < bx, "to the east and back"
    assert elements(draw_map(path([(165, 0), (-140, 2), (-155, -2)]), join="hull"), "polygon")


# ---------------------------------------------------------------- colours


def test_colours_are_in_the_order_of_time() -> None:
    picture = draw_map(counted(*([(lon, 0), (lon, 5), (lon + 5, 0)] for lon in (0, 10, 20))))
    strokes = [hull.attrib["stroke"] for hull in elements(picture, "polygon")]
    assert strokes == [FIRST, RAMP[2], LAST]
    assert {"09:00", "09:02"} <= set(texts(picture))


def test_alerts_about_the_same_locations_can_be_counted() -> None:
    often, once = [(0, 0), (0, 5), (5, 0)], [(20, 0), (20, 5), (25, 0)]
    picture = draw_map(counted(often, once, often, often), colour="number")
    assert [hull.attrib["stroke"] for hull in elements(picture, "polygon")] == [FIRST, LAST]
    assert {"1", "3", "alerts at the same places"} <= set(texts(picture))


def test_some_of_many_alerts_are_drawn_and_all_are_counted() -> None:
    many = counted(*([(lon / 10, 0), (lon / 10, 5), (5, 0)] for lon in range(100)))
    picture = draw_map(many, limit=10)
    strokes = [hull.attrib["stroke"] for hull in elements(picture, "polygon")]
    assert (len(strokes), strokes[0], strokes[-1]) == (10, FIRST, LAST)
    assert "10 of 100 drawn" in texts(picture)
    assert "drawn" not in draw_map(many)


def test_a_single_alert_has_one_time_label() -> None:
    labels = texts(draw_map(counted([(0, 0), (5, 5)])))
    assert labels.count("09:00:00") == 1


# ---------------------------------------------------------------- any data


def test_no_answers_give_a_picture() -> None:
    picture = draw_map(counted(), background=STATIONS)
    assert "no answers" in texts(picture)
    assert len(dots(picture, "2.6")) == 5
    assert "no answers" in texts(draw_map(counted()))


def test_events_without_a_location_are_skipped() -> None:
    picture = draw_map(counted([(0, 0), None, (None, 1), (float("nan"), 1), (10, float("inf")), (10, 5)], [None]))
    assert len(dots(picture)) == 2
    assert len(dots(draw_map(path([(0, 0), None, (10, 5)])))) == 2


def test_columns_that_have_no_events_are_skipped() -> None:
    table = counted([(0, 0), (5, 5)]).append_column("probability", pa.array([1.0]))
    table = table.append_column("other", pa.array([{"lon": 50.0}])).append_column("tags", pa.array([["x"]]))
    assert dots(draw_map(table)) == dots(draw_map(counted([(0, 0), (5, 5)])))


def test_hostile_texts_are_escaped() -> None:
    picture = draw_map(counted([(0, 0)]), title=HOSTILE, background=STATIONS, background_name=HOSTILE)
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture
    assert isinstance(picture, Svg)


coordinates = st.floats(allow_nan=True, allow_infinity=True, width=32) | st.none()


@given(st.lists(st.lists(st.tuples(coordinates, st.floats(-90, 90)), max_size=5), max_size=4), st.booleans())
@examples(25)
def test_any_locations_give_a_well_formed_picture(alerts: list[list[Location]], geodesic: bool) -> None:
    picture = draw_map(counted(*alerts), geodesic=geodesic, background=STATIONS)
    assert "nan" not in picture
    assert "inf" not in picture
    known = {"svg", "title", "rect", "text", "tspan", "line", "circle", "polygon", "polyline"}
    assert element_names(picture) <= known
    # All events are on the map.
    wide, high = (float(parsed(picture).attrib[name]) for name in ("width", "height"))
    assert all(0 <= x <= wide and 0 <= y <= high for x, y in dots(picture))


def test_all_around_the_globe() -> None:
    picture = draw_map(counted([(lon, 0) for lon in range(-180, 180, 10)]))
    assert len(dots(picture)) == 36
    assert REST not in picture
