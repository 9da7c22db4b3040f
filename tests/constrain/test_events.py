"""Features that the random cases do not have: events with a duration, geometries, duplicate and invalid rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
import shapely
from tests.constrain.local import ConstrainRun
from tests.local import local_job, to_table
from tests.oracles.constrain import Solution

WITH_DURATION = "CREATE STREAM e KEY (id STRING) TIME (began, ended) {kind} SPACE (x, y);"
SHAPES = "CREATE STREAM e KEY (id STRING) VALUE (area {kind}) TIME t INTEGER SPACE (x, y);"
GLOBE = "CREATE STREAM e KEY (id STRING) VALUE (temp DOUBLE) TIME t INTEGER SPACE (lon, lat) GEODESIC;"


def run_of(workbook: str, query: str, rows: list[dict[str, Any]], n_buckets: int = 2) -> ConstrainRun:
    run = ConstrainRun(local_job(f"{workbook} CREATE QUERY q AS CONSTRAIN {query};", "q"), n_buckets)
    run.step({"e": rows}, end=True)
    return run


def ids(answers: list[Solution]) -> list[str]:
    """The joined keys of the events of each solution."""
    texts = []
    for answer in answers:
        values = [value for name, value in answer.items() if name != "t"]
        texts.append(
            "".join(value["id"] if isinstance(value, dict) else "".join(row["id"] for row in value) for value in values)
        )
    return sorted(texts)


# ---------------------------------------------------------------- events with a duration

TIMES = {"a": (0, 2), "b": (4, 5), "c": (6, 7), "d": (4, 6), "e": (5, 5)}


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE"])
@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("v.t_from - u.t IN [0, 2]", lambda u, v: 0 <= v[0] - u[1] <= 2),
        ("v.began - u.ended IN [0, 2]", lambda u, v: 0 <= v[0] - u[1] <= 2),
        ("v.t_from < u.t AND u.t_from <= v.t_from", lambda u, v: u[0] <= v[0] < u[1]),
        ("v.t - u.t IN [1, 3]", lambda u, v: 1 <= v[1] - u[1] <= 3),
        ("SPAN(u, v) = 3 AND u.t < v.t", lambda u, v: v[1] - u[1] == 3),
        ("u.t_from = v.t_from", lambda u, v: u[0] == v[0]),
        ("ABS(u.t_from - v.t_from) >= 4", lambda u, v: abs(u[0] - v[0]) >= 4),
    ],
)
def test_events_with_a_duration_have_a_start_and_an_end(kind: str, condition: str, holds: Callable) -> None:
    rows = [{"id": id_, "began": began, "ended": ended, "x": 0, "y": 0} for id_, (began, ended) in TIMES.items()]
    run = run_of(WITH_DURATION.format(kind=kind), f"u, v FROM e WHERE {condition} AND SPAN(u, v) < 100", rows)
    assert ids(run.answers()) == sorted(u + v for u, v in permutations(TIMES, 2) if holds(TIMES[u], TIMES[v]))


def test_an_event_that_ends_before_it_begins_is_quarantined() -> None:
    rows = [{"id": "a", "began": 3, "ended": 2, "x": 0, "y": 0}, {"id": "b", "began": None, "ended": 2, "x": 0, "y": 0}]
    run = run_of(WITH_DURATION.format(kind="INTEGER"), "u, v FROM e WHERE SPAN(u, v) < 100", rows)
    assert [row["reason"] for row in run.rejected] == ["began is NULL", "began is after ended"]
    assert run.counts.quarantined == 2


# ---------------------------------------------------------------- geometries

SQUARES = {"a": (0, 0), "b": (1, 0), "c": (5, 5), "d": (3, 0)}


def square(x: float, y: float, side: float = 1.0) -> shapely.Polygon:
    return shapely.box(x, y, x + side, y + side)


@pytest.mark.parametrize("kind", ["STRING", "BINARY"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("INTERSECTS(u.area, v.area) AND u.id < v.id", ["ab"]),
        ("DISTANCE(u.area, v.area) <= 1 AND u.id < v.id", ["ab", "bd"]),
        ("DISTANCE(u.area, v.area) > 4.9 AND u.id < v.id", ["ac", "bc"]),
        ("WITHIN(u, v.area) AND u.id <> v.id", ["ad", "da"]),
        ("NOT INTERSECTS(u.area, v.area) AND u.id < v.id AND v.id = 'c'", ["ac", "bc"]),
        ("INTERSECTS(u.area, 'LINESTRING(0.5 0.5, 1.5 0.5)') AND v.id = 'c' AND u.id <> v.id", ["ac", "bc"]),
    ],
)
def test_geometry_columns_are_read_from_text_and_binary(kind: str, condition: str, expected: list[str]) -> None:
    write = shapely.to_wkt if kind == "STRING" else shapely.to_wkb
    locations = {"a": (3.5, 0.5), "b": (9, 9), "c": (9, 9), "d": (0.0, 0.5)}
    rows = [
        {"id": id_, "area": write(square(*SQUARES[id_])), "t": number, "x": locations[id_][0], "y": locations[id_][1]}
        for number, id_ in enumerate("abcd")
    ]
    rows.append({"id": "z", "area": "nowhere" if kind == "STRING" else b"\x07", "t": 2, "x": 0.5, "y": 0.5})
    query = f"u, v FROM e WHERE {condition} AND SPAN(u, v) <= 9"
    answers = ids(run_of(SHAPES.format(kind=kind), query, rows).answers())
    assert [keys for keys in answers if "z" not in keys] == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("INTERSECTS(u, v)", ["ab"]),
        ("DISTANCE(u, v) <= 1", ["ab", "bd"]),
        ("WITHIN(u, 'POLYGON((0 0, 9 0, 9 2, 0 2, 0 0))') AND INTERSECTS(u, v)", ["ab"]),
        ("WITHIN(u, 'POLYGON((0.5 0, 9 0, 9 2, 0.5 2, 0.5 0))') AND INTERSECTS(u, v)", []),
    ],
)
def test_a_geometry_can_be_the_location_of_an_event(condition: str, expected: list[str]) -> None:
    rows = [
        {"id": id_, "area": square(*corner).wkt, "t": number} for number, (id_, corner) in enumerate(SQUARES.items())
    ]
    workbook = "CREATE STREAM e KEY (id STRING) VALUE (area STRING) TIME t INTEGER SPACE (area);"
    run = run_of(workbook, f"u, v FROM e WHERE {condition} AND u.id < v.id AND SPAN(u, v) <= 9", rows)
    assert ids(run.answers()) == expected


def test_a_point_on_the_globe_can_be_a_constant() -> None:
    rows = [{"id": "a", "t": 0, "lon": 0, "lat": 1, "temp": 1}, {"id": "b", "t": 0, "lon": 0, "lat": 3, "temp": 1}]
    run = run_of(GLOBE, "u FROM e WHERE DISTANCE(u, 'POINT(0 0)') <= 200000", rows)
    assert ids(run.answers()) == ["a"]


# ---------------------------------------------------------------- rows


def test_impossible_coordinates_are_quarantined() -> None:
    locations = [(0, 91), (181, 0), (float("nan"), 0), (0, float("inf")), (None, 5), (180, -90)]
    rows = [
        {"id": str(number), "t": 0, "lon": lon, "lat": lat, "temp": 1} for number, (lon, lat) in enumerate(locations)
    ]
    run = run_of(GLOBE, "u FROM e WHERE u.temp = 1", rows)
    # An event with an unknown coordinate has no location, but it is an event.
    assert ids(run.answers()) == ["4", "5"]
    assert sorted(row["reason"] for row in run.rejected) == [
        "lat is not a finite number",
        "lat is outside [-90, 90] degrees",
        "lon is not a finite number",
        "lon is outside [-180, 180] degrees",
    ]


@pytest.mark.parametrize("n_buckets", [1, 2, 7])
def test_duplicate_rows_are_one_event_and_are_counted(n_buckets: int) -> None:
    row = {"id": "a", "t": 0, "lon": 0.0, "lat": 0.0, "temp": 1.0}
    rows = [row, {**row}, {**row, "temp": 2.0}, {**row, "lon": -0.0}, {**row, "id": "b", "t": 40}]
    run = run_of(GLOBE, "u, v FROM e WHERE SPAN(u, v) <= 5 AND DISTANCE(u, v) <= 9", rows, n_buckets)
    assert ids(run.answers()) == ["aa", "aa"]
    counts = run.counts
    assert (counts.read, counts.used, counts.duplicate, counts.late) == (5, 3, 2, 0)


@pytest.mark.parametrize("n_buckets", [1, 2, 7])
def test_a_late_row_is_quarantined_once(n_buckets: int) -> None:
    workbook = f"{GLOBE} CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE SPAN(u, v) <= 50 AND DISTANCE(u, v) <= 1e6;"
    run = ConstrainRun(local_job(workbook, "q"), n_buckets)
    row = {"id": "a", "lon": 0.0, "lat": 0.0, "temp": 1.0}
    run.step({"e": [{**row, "t": 100}]})
    run.step({"e": [{**row, "t": 99}, {**row, "t": 101, "id": "b"}]})
    run.step({}, end=True)
    assert ids(run.answers()) == ["ab", "ba"]
    assert run.counts.late == 1
    assert [row["reason"] for row in run.rejected] == ["late"]


def test_integers_too_large_for_doubles_are_distinguished() -> None:
    workbook = "CREATE STREAM e KEY (id STRING) VALUE (n INTEGER) TIME t INTEGER;"
    base = 2**60
    rows = [{"id": id_, "n": base + n, "t": base + t} for id_, n, t in (("a", 0, 0), ("b", 1, 1), ("c", 1, 3))]
    assert ids(run_of(workbook, "u, v FROM e WHERE u.n = v.n AND u.t < v.t AND SPAN(u, v) <= 9", rows).answers()) == [
        "bc"
    ]
    assert ids(run_of(workbook, "u, v FROM e WHERE u.n < v.n AND v.t - u.t = 1", rows).answers()) == ["ab"]


def test_rows_that_cannot_be_a_variable_are_not_sent() -> None:
    rows = [{"id": "a", "t": t, "lon": 0.0, "lat": 0.0, "temp": float(t % 10)} for t in range(100)]
    run = run_of(GLOBE, "u, v FROM e WHERE u.temp = 9 AND v.temp = 8 AND SPAN(u, v) <= 1", rows, 1)
    assert len(run.answers()) == 10
    assert run.counts.used == 100
    packets, ignored = run.job.pack(0, to_table(run.job, 0, rows), 1)
    assert ignored == 80
    assert len(packets) == 1


@pytest.mark.parametrize("strategy", ["LOOSE", "TIGHT", "NOINDEX"])
def test_a_bound_of_weeks_is_exact_to_the_microsecond(strategy: str) -> None:
    workbook = "CREATE STREAM e KEY (id STRING) TIME t TIMESTAMP SPACE (x, y);"
    begin, bound = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=400)
    times = {"a": begin, "b": begin + bound, "c": begin + bound + timedelta(microseconds=1)}
    rows = [{"id": id_, "t": t, "x": 0.0, "y": 0.0} for id_, t in times.items()]
    query = f"u, v FROM e WHERE v.t - u.t IN [1, 400 DAYS] AND DISTANCE(u, v) <= 1 STRATEGY {strategy}"
    assert ids(run_of(workbook, query, rows).answers()) == ["ab"]
    chain = (
        "u, v, w FROM e WHERE u.id = 'a' AND v.id = 'b' AND w.id = 'c' AND v.t - u.t = 400 DAYS "
        f"AND w.t - v.t <= 0.000001 AND DISTANCE(u, w) <= 1 AND SPAN(u, w) < 401 DAYS STRATEGY {strategy}"
    )
    assert ids(run_of(workbook, chain, rows).answers()) == ["abc"]


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "TIMESTAMP"])
def test_a_span_can_be_one_of_several_conditions(kind: str) -> None:
    """Under OR it is not a bound, and is evaluated for each pair."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    at = {id_: began + timedelta(seconds=t) if kind == "TIMESTAMP" else t for id_, t in (("a", 0), ("b", 3), ("c", 7))}
    rows = [{"id": id_, "t": t, "x": 0, "y": 0} for id_, t in at.items()]
    workbook = f"CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE) TIME t {kind} SPACE (x, y);"
    short = "3 SECONDS" if kind == "TIMESTAMP" else "3"
    long = "100 SECONDS" if kind == "TIMESTAMP" else "100"
    query = f"u, v FROM e WHERE (SPAN(u, v) <= {short} OR v.id = 'c') AND u.id < v.id AND SPAN(u, v) <= {long}"
    assert ids(run_of(workbook, query, rows).answers()) == ["ab", "ac", "bc"]


# ---------------------------------------------------------------- the date line

ACROSS = {
    "jump": "POLYGON((170 -10, -170 -10, -170 10, 170 10, 170 -10))",
    "beyond": "POLYGON((170 -10, 190 -10, 190 10, 170 10, 170 -10))",
    "parts": "MULTIPOLYGON(((170 -10, 180 -10, 180 10, 170 10, 170 -10)), "
    "((-180 -10, -170 -10, -170 10, -180 10, -180 -10)))",
}
LONGITUDES = (-180.0, -175.0, -170.0, -169.0, -5.0, 0.0, 165.0, 170.0, 179.5, 180.0)


def at_longitudes(*values: float) -> list[dict[str, Any]]:
    return [{"id": str(lon), "t": 1, "lon": lon, "lat": 2.0, "temp": 1.0} for lon in values]


@pytest.mark.parametrize("name", ACROSS)
def test_a_polygon_across_the_date_line_has_its_inside_there(name: str) -> None:
    run = run_of(GLOBE, f"u FROM e WHERE WITHIN(u, '{ACROSS[name]}')", at_longitudes(*LONGITUDES))
    assert ids(run.answers()) == sorted(str(lon) for lon in LONGITUDES if abs(lon) >= 170)


def test_a_hole_may_cross_the_date_line_too() -> None:
    outline = "(170 -10, -170 -10, -170 10, 170 10, 170 -10)"
    polygon = f"POLYGON({outline}, (178 0, -178 0, -178 4, 178 4, 178 0))"
    run = run_of(GLOBE, f"u FROM e WHERE WITHIN(u, '{polygon}')", at_longitudes(171, 177, 178, 179, 180, -179, -177))
    assert ids(run.answers()) == sorted(["171", "177", "178", "-177"])


@pytest.mark.parametrize(
    ("polygon", "inside"),
    [
        ("POLYGON((-180 -10, 180 -10, 180 10, -180 10, -180 -10))", LONGITUDES),
        ("POLYGON((-100 -10, 0 -10, 100 -10, 100 10, 0 10, -100 10, -100 -10))", (-5.0, 0.0)),
    ],
)
def test_a_wide_polygon_is_not_cut(polygon: str, inside: tuple[float, ...]) -> None:
    run = run_of(GLOBE, f"u FROM e WHERE WITHIN(u, '{polygon}')", at_longitudes(*LONGITUDES))
    assert ids(run.answers()) == sorted(map(str, inside))


@pytest.mark.parametrize("write", [str, lambda text: shapely.to_wkb(shapely.from_wkt(text))])
def test_polygons_in_a_column_may_cross_the_date_line(write: Callable) -> None:
    kind = "STRING" if write is str else "BINARY"
    workbook = f"{GLOBE} CREATE STREAM f KEY (id STRING) VALUE (area {kind}) TIME t INTEGER;"
    job = local_job(f"{workbook} CREATE QUERY q AS CONSTRAIN u, v FROM e AS u, f AS v WHERE WITHIN(u, v.area);", "q")
    run = ConstrainRun(job, 2)
    areas = [{"id": name, "t": 1, "area": write(text)} for name, text in ACROSS.items()]
    around_pole = {"id": "pole", "t": 1, "area": write("POLYGON((0 70, 120 70, -120 70, 0 70))")}
    run.step({"e": at_longitudes(*LONGITUDES), "f": [*areas, around_pole]}, end=True)
    expected = [f"{lon}{name}" for lon in LONGITUDES if abs(lon) >= 170 for name in ACROSS]
    assert ids(run.answers()) == sorted(expected)


def test_a_polygon_in_the_plane_is_not_cut() -> None:
    rows = [{"id": str(x), "area": None, "t": 1, "x": float(x), "y": 0.0} for x in (-175, 0, 175)]
    run = run_of(SHAPES.format(kind="STRING"), f"u FROM e WHERE WITHIN(u, '{ACROSS['jump']}')", rows)
    assert ids(run.answers()) == ["0"]
