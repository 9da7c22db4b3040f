"""The oracle of CONSTRAIN compared with cases worked out by hand, and with a database."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from anabranch.binding.typed import Constant, Reference, walk
from anabranch.constrain.query import BoundConstrain
from tests.cases import Case
from tests.constrain.strategies import constrain_cases
from tests.drawn import drawn, examples
from tests.language.workbooks import codes
from tests.local import bound_query
from tests.oracles.constrain import RADIUS, geometry, great_circle, solutions, within
from tests.oracles.database import Database, as_rows
from tests.oracles.events import Row, Rows, events_of, frozen

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp DOUBLE) TIME t DOUBLE SPACE (x, y);
    CREATE STREAM f KEY (id STRING) TIME t DOUBLE;
    CREATE STREAM g KEY (id STRING) TIME t TIMESTAMP SPACE (lon, lat) GEODESIC;
    CREATE STREAM area KEY (id STRING) VALUE (shape STRING) TIME t INTEGER SPACE (x, y);
    CREATE RELATION goes (a STRING, b STRING);
"""


def bound(query: str, workbook: str = STREAMS) -> BoundConstrain:
    """The query over the streams of a workbook."""
    return bound_query(f"{workbook} CREATE QUERY q AS CONSTRAIN {query};", "q")


def event(id_: str, t: float, x: float | None = 0, y: float | None = 0, kind: Any = None, temp: Any = None) -> Row:
    return {"id": id_, "t": t, "x": x, "y": y, "kind": kind, "temp": temp}


def ids(answers: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The keys of the events of each solution, one text per variable; the keys of a counted variable are joined."""
    return sorted(
        tuple(value["id"] if isinstance(value, dict) else "".join(row["id"] for row in value) for value in values)
        for *values, _ in (solution.values() for solution in answers)
    )


def answers_to(query: str, *events: Row, **others: Any) -> list[tuple[Any, ...]]:
    """The keys of the solutions over the stream e; `others` are the rows of other streams."""
    relations = {"goes": {("A", "B"), ("B", "B")}}
    return ids(solutions(bound(query), {"e": events, **others}, relations))


# ---------------------------------------------------------------- events and variables


def test_the_example_of_the_language() -> None:
    # Figure 1 of the paper, in numbers: b1 is near a1 and after it, c1 is near b1 and after it, c2 is too late.
    events = [
        event("a1", 0, 0, 0, "A"), event("b1", 5, 0.5, 0.5, "B"), event("b2", 6, 0, 0, "B"),
        event("c1", 6, 1, 1, "C"), event("c2", 11, 1, 1, "C"), event("c3", 5, 0.5, 0.5, "C"),
    ]  # fmt: skip
    query = """v1, v2, v3 FROM e WHERE v1.kind = 'A' AND v2.kind = 'B' AND v3.kind = 'C'
        AND DISTANCE(v1, v2) < 1 AND v2.t - v1.t IN [0, 5] AND DISTANCE(v2, v3) < 1 AND v3.t - v2.t IN [1, 5]"""
    (solution,) = solutions(bound(query), {"e": events})
    assert solution == {"v1": events[0], "v2": events[1], "v3": events[3], "t": 6}
    assert list(solution) == ["v1", "v2", "v3", "t"]


def test_events_are_all_different_and_can_be_exchanged() -> None:
    assert answers_to("u, v FROM e", event("a", 0), event("b", 0)) == [("a", "b"), ("b", "a")]
    assert answers_to("u, v FROM e AS u, e AS v", event("a", 0), event("b", 0)) == [("a", "b"), ("b", "a")]
    assert answers_to("u, v FROM e", event("a", 0)) == []
    assert answers_to("u FROM e") == []


def test_duplicate_rows_are_one_event_and_different_rows_are_two() -> None:
    twice = [event("a", 0, temp=1), event("a", 0, temp=1)]
    assert answers_to("u FROM e", *twice) == [("a",)]
    assert answers_to("u, v FROM e", *twice, event("a", 0, temp=2)) == [("a", "a"), ("a", "a")]
    assert answers_to("u, v FROM e", *twice, event("a", 0)) == [("a", "a"), ("a", "a")]
    # Columns that are not declared are ignored.
    assert answers_to("u, v FROM e", {**event("a", 0), "note": 1}, {**event("a", 0), "note": 2}) == []
    # 0.0 equals -0.0, and NaN equals NaN.
    assert answers_to("u, v FROM e", event("a", 0.0, -0.0, temp=math.nan), event("a", -0.0, 0.0, temp=math.nan)) == []


def test_a_row_without_key_or_time_is_not_an_event() -> None:
    rows = [event("a", 0), event(None, 0), event("b", None), event("c", math.nan), event("d", math.inf)]
    assert answers_to("u FROM e", *rows) == [("a",)]


def test_events_of_two_streams_are_different() -> None:
    rows = [{"id": "a", "t": 0}, {"ID": "b", "T": 3}]
    query = "u, v FROM e AS u, f AS v WHERE v.t - u.t >= 0"
    assert answers_to(query, event("a", 0), event("b", 1), f=rows) == [("a", "a"), ("a", "b"), ("b", "b")]


def test_names_are_as_written_and_t_is_the_latest_time() -> None:
    query = bound("Last, FIRST FROM e WHERE last.t >= first.t")
    assert solutions(query, {"E": [event("a", 1), event("b", 7)]}) == [
        {"Last": event("b", 7), "FIRST": event("a", 1), "t": 7}
    ]


def test_the_threshold_keeps_certain_answers() -> None:
    assert answers_to("u FROM e THRESHOLD 1", event("a", 0)) == [("a",)]


# ---------------------------------------------------------------- conditions


def pairs(text: str) -> list[tuple[str, ...]]:
    return sorted(tuple(pair) for pair in text.split())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("v.t - u.t IN [0, 2]", "ab bc"), ("v.t - u.t IN [-2, -2]", "cb"), ("v.t - u.t IN [2, 0]", ""),
        ("v.t > u.t", "ab ac bc"), ("v.t - u.t < -2", "ca"), ("v.t - u.t NOT IN [0, 2]", "ac ba ca cb"),
        ("SPAN(u, v) <= 2", "ab ba bc cb"), ("SPAN(u, v) < 2", "ab ba"), ("ABS(u.t - v.t) = 3", "ac ca"),
        ("3 = v.t - u.t", "ac"), ("u.t <= 1 AND v.t BETWEEN u.t AND u.t + 2", "ab bc"),
        ("SPAN(u, v) = 0.05 MINUTES", "ac ca"), ("SPAN(u, u) > 0", ""),
    ],
)  # fmt: skip
def test_bounds_on_times(condition: str, expected: str) -> None:
    assert answers_to(f"u, v FROM e WHERE {condition}", event("a", 0), event("b", 1), event("c", 3)) == pairs(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("v.t > u.t", "ac bc"), ("v.t >= u.t", "ab ac ba bc"), ("v.t <> u.t", "ac bc ca cb"), ("v.t = u.t", "ab ba"),
        ("v.t - u.t IN [0, 2]", "ab ac ba bc"), ("v.t - u.t IN [0, 0]", "ab ba"), ("SPAN(u, v) < 0", ""),
    ],
)  # fmt: skip
def test_equal_times(condition: str, expected: str) -> None:
    assert answers_to(f"u, v FROM e WHERE {condition}", event("a", 1), event("b", 1), event("c", 3)) == pairs(expected)


def test_times_are_decimals() -> None:
    # As doubles, 0.3 - 0.1 is a little less than 0.2, and 0.1 + 0.2 a little more than 0.3.
    events = [event("a", 0.1), event("b", 0.3)]
    assert answers_to("u, v FROM e WHERE v.t - u.t >= 0.2", *events) == [("a", "b")]
    assert answers_to("u, v FROM e WHERE v.t >= u.t + 0.2", *events) == [("a", "b")]
    assert answers_to("u, v FROM e WHERE v.t > u.t + 0.2", *events) == []


def test_timestamps_differ_by_seconds() -> None:
    def at(id_: str, *clock: int) -> Row:
        return {"id": id_, "t": datetime(2026, 1, 31, *clock, tzinfo=UTC), "lon": 0.0, "lat": 0.0}

    rows = [at("a", 23, 59, 59, 900_000), at("b", 23, 59, 59, 800_000), at("c", 23, 57, 59, 800_000)]
    for condition, expected in (
        ("SPAN(u, v) <= 2 MINUTES", "ab ba bc cb"), ("u.t - v.t IN [0, 2 MINUTES]", "ab bc"),
        ("u.t - v.t = 0.1", "ab"), ("u.t - v.t = -0.1 SECONDS", "ba"), ("u.t > '2026-01-31 23:59:59.8'", "ab ac"),
    ):  # fmt: skip
        answers = solutions(bound(f"u, v FROM g WHERE {condition}"), {"g": rows})
        assert ids(answers) == pairs(expected), condition
    assert {solution["t"] for solution in answers} == {rows[0]["t"]}


def test_times_without_a_zone_are_utc_and_times_without_a_type_are_refused() -> None:
    naive = {"id": "a", "t": datetime(2026, 1, 31)}  # noqa: DTZ001
    with_zone = {"id": "b", "t": datetime(2026, 1, 31, tzinfo=UTC)}
    assert ids(solutions(bound("u, v FROM g WHERE u.t = v.t"), {"g": [naive, with_zone]})) == [("a", "b"), ("b", "a")]
    with pytest.raises(TypeError, match="bind the query"):
        solutions(bound("u FROM h", "CREATE STREAM h KEY (id) TIME t;"), {"h": [with_zone]})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("DISTANCE(u, v) < 5", "ac ca"), ("DISTANCE(u, v) <= 5", "ab ac ba ca"), ("DISTANCE(u, v) > 5", "bc cb"),
        ("DISTANCE(u, v) >= 5 AND u.t < v.t", "ab bc"), ("NOT DISTANCE(u, v) < 5", "ab ba bc cb"),
        ("DISTANCE(u, v) IN [4.5, 5.5]", "ab ba"), ("DISTANCE(u, u) = 0 AND DISTANCE(u, v) = 1", "ac ca"),
        ("DISTANCE(u, 'POINT(3 4)') = 0", "ba bc bd"), ("DISTANCE(v, 'LINESTRING(-1 2, 9 2)') = 2 AND u.t = 0", "ab"),
        ("DISTANCE(u, v) < 5 OR DISTANCE(u, v) >= 5", "ab ac ba bc ca cb"),
        ("DISTANCE(u, v) IS NULL AND u.t = 0", "ad"), ("DISTANCE(u, 'POINT(1)') IS NULL AND u.t + v.t = 1", "ab ba"),
    ],
)  # fmt: skip
def test_distances_in_the_plane(condition: str, expected: str) -> None:
    events = [event("a", 0, 0, 0), event("b", 1, 3, 4), event("c", 2, 0, -1), event("d", 3, 0, None)]
    assert answers_to(f"u, v FROM e WHERE {condition}", *events) == pairs(expected)


def test_distances_on_the_globe() -> None:
    quarter = RADIUS * math.pi / 2
    assert great_circle(0, 0, 90, 0) == pytest.approx(quarter)
    assert great_circle(17, 90, -123, 0) == pytest.approx(quarter)
    assert great_circle(179.5, 0, -179.5, 0) == pytest.approx(quarter / 90)
    assert great_circle(10, 50, 190, -50) == pytest.approx(2 * quarter)
    assert great_circle(10, 50, 10, 50) == 0
    # At a latitude of 60 degrees, a degree of longitude is half as long; the great circle is a little shorter.
    assert great_circle(0, 60, 1, 60) == pytest.approx(quarter / 180, rel=1e-4)
    # Paris to London, by spherical calculators.
    assert great_circle(2.3522, 48.8566, -0.1278, 51.5074) == pytest.approx(343_560, abs=50)


def test_the_distance_in_a_geodesic_stream_is_in_metres() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    longitudes = {"a": 179.5, "b": -179.5, "c": 0.0}
    rows = [{"id": id_, "t": now, "lon": lon, "lat": 0.0} for id_, lon in longitudes.items()]
    for condition, expected in (
        ("DISTANCE(u, v) <= 111196", "ab ba"), ("DISTANCE(u, v) <= 111195", ""),
        ("DISTANCE(u, 'POINT(180 0)') < 60000 AND v.lon = 0", "ac bc"),
    ):  # fmt: skip
        assert ids(solutions(bound(f"u, v FROM g WHERE {condition}"), {"g": rows})) == pairs(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("u.kind = v.kind", ""), ("u.kind <> v.kind", "ab ba"), ("NOT u.kind = v.kind", "ab ba"),
        ("u.kind = 'A' OR u.temp > 0", "ab ac ca cb"), ("u.kind = 'A' OR v.temp >= 2", "ab ac bc"),
        ("u.kind IS NULL AND v.temp IS NULL", "cb"), ("u.kind NOT IN ('B')", "ab ac"),
        ("u.kind NOT IN ('B', NULL)", ""),
        ("u.temp < v.temp", "ac"), ("NOT (u.temp < v.temp)", "ca"), ("u.temp < v.temp OR NULL", "ac"),
        ("u.temp < v.temp AND NULL", ""), ("goes(u.kind, v.kind)", "ab"), ("NOT goes(u.kind, v.kind)", "ba"),
        ("u.temp / 0 = 1", ""), ("TRUE", "ab ac ba bc ca cb"), ("NULL", ""), ("1 = 2", ""),
        ("u.id < v.id AND u.id IN ('b', 'c')", "bc"),
    ],
)  # fmt: skip
def test_conditions_on_columns_with_null(condition: str, expected: str) -> None:
    events = [event("a", 0, kind="A", temp=1), event("b", 1, kind="B"), event("c", 2, temp=2)]
    assert answers_to(f"u, v FROM e WHERE {condition}", *events) == pairs(expected)


# ---------------------------------------------------------------- counted variables


def test_each_set_is_one_solution_in_the_order_of_time_and_key() -> None:
    rows = [event("c", 1), event("b", 5), event("a", 1), event("a", 1, temp=2)]
    assert answers_to("v*2 FROM e WHERE v.temp IS NULL", *rows) == [("ab",), ("ac",), ("cb",)]
    (solution,) = solutions(bound("v*4 FROM e"), {"e": rows})
    # The two rows with key a are ordered by the other columns, NULL first.
    assert solution == {"v": (rows[2], rows[3], rows[0], rows[1]), "t": 5}
    assert answers_to("v*5 FROM e", *rows) == []


def test_a_condition_that_names_a_counted_variable_once_holds_for_each_event() -> None:
    events = [event(id_, t, kind=kind) for id_, t, kind in zip("abcd", (0, 1, 2, 9), "AAAB", strict=True)]
    assert answers_to("v*2 FROM e WHERE v.kind = 'A'", *events) == [("ab",), ("ac",), ("bc",)]
    assert answers_to("v*2, w FROM e WHERE w.t - v.t IN [0, 2]", *events) == [("ab", "c")]
    assert answers_to("w, v*2 FROM e WHERE w.t - v.t IN [7, 9]", *events) == [("d", "ab"), ("d", "ac"), ("d", "bc")]
    assert answers_to("v*2 FROM e WHERE v.kind IN ('B', 'A') AND v.t IN [1, 2]", *events) == [("bc",)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("DISTANCE(v, v) < 2", "abc"), ("DISTANCE(v, v) <= 2.25", "abc bcd"), ("SPAN(v, v) <= 2", "abc"),
        ("SPAN(v, v) > 1", "acd"), ("v.id <> v.id", "abc abd acd bcd"), ("v.id = v.id", ""),
        # Not symmetric: it must hold for both orders.
        ("v.t - v.t IN [-2, 5]", "abc"), ("v.t - v.t IN [0, 5]", ""), ("v.t < v.t", ""),
        ("v.t <> v.t", "abc abd acd bcd"), ("v.t - v.t < 3", "abc"),
        # On both sides of an OR: it is evaluated for two events.
        ("v.kind = 'A' OR v.temp > 0", "abc"), ("NOT (v.kind = 'A' AND v.temp < 1)", "abc"),
        # Each of the two comparisons names v once.
        ("1 BETWEEN v.temp - 1 AND v.t + 1", "abc abd acd bcd"), ("3 BETWEEN v.temp AND v.t + 1", ""),
    ],
)  # fmt: skip
def test_a_condition_that_names_a_counted_variable_twice_holds_for_every_pair(condition: str, expected: str) -> None:
    # d has kind B and temp 0; a has kind A, b and c have no kind, and all three have temp 1.
    events = [
        event("a", 0, 0, 0, "A", 1), event("b", 1, 1, 0, None, 1), event("c", 2, 1, 1, None, 1),
        event("d", 5, 3, 0, "B", 0),
    ]  # fmt: skip
    assert answers_to(f"v*3 FROM e WHERE {condition}", *events) == sorted(
        (joined_ids,) for joined_ids in expected.split()
    )


def test_all_combinations_of_two_counted_variables() -> None:
    events = [event("a", 0, 0), event("b", 0, 1), event("c", 4, 0), event("d", 4, 1), event("e", 4, 2)]
    query = "v*2, w*2 FROM e WHERE v.t < w.t AND DISTANCE(v, v) <= DISTANCE(w, w)"
    assert answers_to(query, *events) == [("ab", "cd"), ("ab", "ce"), ("ab", "de")]
    assert answers_to("v*2, w*2 FROM e WHERE v.t < w.t AND SPAN(v, w) - SPAN(v, w) = 0", *events) == answers_to(
        query, *events
    )
    # a and b have the same distances to c and d, in both orders.
    query = "v*2, w*2 FROM e WHERE v.t < w.t AND DISTANCE(v, w) = DISTANCE(v, w)"
    assert answers_to(query, *events) == [("ab", "cd")]
    query = "v*2, w FROM e WHERE DISTANCE(v, w) = DISTANCE(v, w) AND w.id = 'b'"
    assert answers_to(query, *events) == [("ac", "b"), ("ae", "b"), ("ce", "b")]


def test_a_variable_counted_once_is_a_plain_variable() -> None:
    assert solutions(bound("v*1 FROM e WHERE DISTANCE(v, v) = 0"), {"e": [event("a", 0)]}) == [
        {"v": event("a", 0), "t": 0}
    ]


def test_answers_are_compared_by_their_events() -> None:
    a, b = event("a", 0), event("b", 1)
    (solution,) = solutions(bound("v*2 FROM e"), {"e": [b, a]})
    assert frozen(solution) == frozen({"t": 1, "v": [a, b], "probability": 1.0})
    assert frozen(solution) != frozen({"t": 1, "v": [b, a], "probability": 1.0})


# ---------------------------------------------------------------- areas

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
HOLED = "POLYGON ((0 0, 4 0, 4 4, 0 4), (1 1, 1 3, 3 3, 3 1, 1 1))"
ARROW = "polygon((0 0, 4 0, 2 2, 4 4, 0 4, 0 0))"
TWO = "MULTIPOLYGON(((0 0, 1 0, 0 1, 0 0)), ((5 5, 6 5, 6 6, 5 6, 5 5)))"


@pytest.mark.parametrize(
    ("area", "inside", "outside"),
    [
        (SQUARE, [(2, 2), (0, 0), (4, 2), (2, 4), (0, 1)], [(-1, 0), (5, 4), (2, 4.25), (-1, 4), (6, 2)]),
        (HOLED, [(0.5, 2), (1, 2), (3, 3), (2, 1), (3.5, 1)], [(2, 2), (1.25, 1.25), (5, 1), (2, 2.75)]),
        (ARROW, [(1, 2), (2, 2), (3, 1), (3, 0.5), (3, 3)], [(3, 2), (2.25, 2), (3, 1.25), (5, 0), (-1, 2)]),
        (TWO, [(0.5, 0.5), (5.5, 5.5), (6, 6)], [(0.75, 0.5), (3, 3), (5.5, 0)]),
        ("LINESTRING(0 0, 2 2, 4 0)", [(1, 1), (2, 2), (3, 1), (4, 0)], [(2, 1), (3, 3), (0, 1)]),
        ("POINT(1.5 -2e0)", [(1.5, -2)], [(1.5, 2)]),
        ("POLYGON((0.1 0.1, 0.7 0.1, 0.7 0.3, 0.1 0.3))", [(0.1, 0.2), (0.3, 0.3), (0.7, 0.1)], [(0.1, 0.1 + 0.2)]),
    ],
)  # fmt: skip
def test_within_includes_the_boundary(area: str, inside: list[Any], outside: list[Any]) -> None:
    stream = bound("u FROM e").variables[0].stream
    for location in (*inside, *outside):
        (point,) = events_of(stream, [event("a", 0, *location)])
        assert within(point, area) is (location in inside), location


def test_texts_that_are_not_geometries() -> None:
    for text in ("HERE", "POINT EMPTY", "POINT(1)", "POLYGON(1 2)", "CIRCLE(1 2)", "POLYGON((0 0, x 1))", "POINT(1 2"):
        assert geometry(text) is None, text


def test_within_and_intersects_in_conditions() -> None:
    def area(id_: str, shape: str | None, x: float | None = 0) -> Row:
        return {"id": id_, "t": 0, "shape": shape, "x": x, "y": 2}

    rows = [area("a", SQUARE, 4), area("b", "LINESTRING(-1 -1, 9 9)", 5), area("c", HOLED, 2), area("d", None, None)]
    for condition, expected in (
        ("WITHIN(u, u.shape) AND u.id < v.id", "ab ac ad"), ("NOT WITHIN(u, u.shape) AND v.id = 'a'", "ba ca"),
        (f"WITHIN(u, '{SQUARE}') AND v.id = 'd'", "ad cd"), ("WITHIN(u, u.shape) IS NULL AND v.id = 'a'", "da"),
        ("WITHIN(u, 'POLYGON(1 2)') IS NULL AND v.id = 'a'", "ba ca da"), ("WITHIN(u, v)", ""),
        ("INTERSECTS(u.shape, v.shape)", "ab ac ba bc ca cb"), ("INTERSECTS(u, v.shape)", "ac ca cb"),
        ("DISTANCE(u, v.shape) = 1", "ba bc"),
        ("INTERSECTS(v.shape, 'LINESTRING(1.5 1.5, 2.5 2)') AND u.id = 'd'", "da db"),
        ("DISTANCE(u.shape, 'POLYGON((7 0, 8 0, 8 1, 7 0))') = 3 AND v.id = 'd'", "ad cd"),
    ):  # fmt: skip
        assert ids(solutions(bound(f"u, v FROM area WHERE {condition}"), {"area": rows})) == pairs(expected), condition


def test_conditions_without_meaning_are_refused() -> None:
    # The binder refuses most of them.
    for condition, code in (
        ("SPAN(u, v) < 1", "type-mismatch"), ("DISTANCE(u, v) < 1", "different-space"),
        (f"DISTANCE(v, '{SQUARE}') < 1", "planar-geometry"),
    ):  # fmt: skip
        assert codes(f"{STREAMS} CREATE QUERY q AS CONSTRAIN u, v FROM e AS u, g AS v WHERE {condition}") == [code]
    rows: Rows = {"g": [{"id": "b", "t": datetime(2026, 1, 1, tzinfo=UTC), "lon": 0, "lat": 0}]}
    with pytest.raises(NotImplementedError, match="extended"):
        solutions(bound(f"v FROM g WHERE WITHIN('{SQUARE}', v)"), rows)


# ---------------------------------------------------------------- a database


@examples(60)
@given(case=constrain_cases())
def test_the_solutions_equal_those_of_a_database(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    answers = solutions(query, case.rows, case.relations)
    assert as_rows(query, answers) == Database(query, case).solutions()
    assert len(set(map(frozen, answers))) == len(answers)


@examples(25)
@given(case=constrain_cases(decimals=True))
def test_the_solutions_equal_those_of_a_database_with_rounded_doubles(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    assert as_rows(query, solutions(query, case.rows, case.relations)) == Database(query, case).solutions()


@examples(25)
@given(case=constrain_cases())
def test_a_solution_has_its_latest_time_and_its_sets_in_order(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    for solution in solutions(query, case.rows, case.relations):
        sets = [value if isinstance(value, tuple) else (value,) for name, value in solution.items() if name != "t"]
        assert solution["t"] == max(row["t"] for rows in sets for row in rows)
        for rows in sets:
            assert sorted(rows, key=lambda row: (row["t"], row["id"])) == list(rows)


# ---------------------------------------------------------------- the strategies


def test_drawn_cases_cover_all_features_and_have_answers() -> None:
    cases = drawn(constrain_cases(), 120)
    seen = Counter[str]()
    for case in cases:
        rows = list(itertools.chain.from_iterable(case.rows.values()))
        assert len(rows) <= 14
        answers = len(solutions(bound_query(case.workbook, case.query), case.rows, case.relations))
        times = [row["t"] for row in rows]
        seen.update(
            {
                "answered": answers > 0,
                "several": answers > 1,
                "counted": "*" in case.workbook,
                "tied": len(set(times)) < len(times),
                "repeated": any(rows.count(row) > 1 for row in rows),
                "alternatives": len({(row["id"], row["t"]) for row in rows}) < len({frozen(row) for row in rows}),
                "globe": "GEODESIC" in case.workbook,
                "two streams": len(case.rows) == 2,
                "few rows": len(rows) < 3,
                "OR or NOT": " OR " in case.workbook or "NOT (" in case.workbook,
                "WITHIN": "WITHIN" in case.workbook,
                "goes": "goes(" in case.workbook,
                **{kind: f" t {kind}" in case.workbook for kind in ("INTEGER", "DOUBLE", "TIMESTAMP")},
            }
        )
    assert seen["answered"] > len(cases) / 2
    assert seen["several"] > len(cases) / 4
    assert min(seen.values()) > 0, seen


@given(case=constrain_cases(consistent=True, connected=True))
def test_connected_cases_bound_the_times_of_all_variables(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    connected = {query.variables[0].name}
    for _ in query.variables:
        for condition in query.conditions:
            named = {node.owner for node in walk(condition) if isinstance(node, Reference)}
            # Only comparisons with a constant count, not OR and NOT.
            compared = any(isinstance(part, Constant) for part in getattr(condition, "arguments", ()))
            if compared and named & connected and not any(getattr(n, "op", "") == "distance" for n in walk(condition)):
                connected |= named
    assert connected == {variable.name for variable in query.variables}
