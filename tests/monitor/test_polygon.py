"""WITHIN(a, 'POLYGON(...)'): against areas by Shapely, for every split into micro-batches, and by hand."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.stats
import shapely
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import assert_same
from tests.monitor.local import run_of
from tests.monitor.test_distance import refusals
from tests.oracles.monitor_distance import Contact
from tests.oracles.monitor_polygon import Zone
from tests.oracles.monitor_predictions import predictions
from tests.splits import splits

from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan
from anabranch.monitor.overlay import union
from anabranch.monitor.polygons import rings_of

STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER SPACE (x, y) "
    "MODEL PREDICTED ERROR ({error}) PERIOD 6;"
)
POLYGONS = [
    "POLYGON((0 0, 4 0, 4 3, 0 3, 0 0))",
    "POLYGON((0 0, 3 -1, 5 2, 1 4, 0 0))",
    "POLYGON((0 0, 0 3, 1 3, 1 1, 3 1, 3 3, 4 3, 4 0, 0 0))",  # a U, clockwise
    "POLYGON((-1 -1, 5 -1, 5 4, -1 4, -1 -1), (1 0.5, 3 0.5, 3 2.5, 1 2.5, 1 0.5))",  # with a hole
    "MULTIPOLYGON(((0 0, 1 0, 1 4, 0 4, 0 0)), ((2 0, 3 0, 2.5 3.5, 2 0)))",
    "POLYGON((0 0, 2.5 0, 2.5 1, 4 1, 4 3, 1 3, 1 1, 0 1, 0 0))",  # two boxes; both have the level of 1
]
INSTANTS = ("valid_from", "valid_to", "certain_from", "certain_to")


@st.composite
def cases(draw: Draw) -> Case:
    """One operand in one of one or two polygons, or outside of all of them."""
    negated = draw(st.sampled_from(["", "", "NOT "]))
    polygons = draw(st.lists(st.sampled_from(POLYGONS), min_size=1, max_size=2, unique=True))
    calls = [draw(st.sampled_from([f"WITHIN(a, '{text}')", f"CONTAINS('{text}', a)"])) for text in polygons]
    where = f"{negated}({' OR '.join(calls)})"
    if negated and draw(st.booleans()):
        where = " AND ".join(f"NOT {call}" for call in calls)
    error = f"x = {draw(st.sampled_from([0.5, 0, 0.25, 1.1]))}, y = {draw(st.sampled_from([0.5, 0, 0.3]))}"
    clauses = draw(st.sampled_from(["", " SEMANTICS MAY", " SEMANTICS MAY", " SEMANTICS MUST"]))
    clauses += draw(st.sampled_from(["", " THRESHOLD 0.25", " THRESHOLD 0.6"]))
    rows: Rows = {"e": [draw(rows_of(number)) for number in range(draw(st.integers(1, 4)))]}
    query = f"CREATE QUERY q AS MONITOR a FROM e WHERE {where}{clauses};"
    return Case(STREAM.format(error=error) + query, "q", rows, {})


@st.composite
def rows_of(draw: Draw, number: int) -> dict[str, Any]:
    return {
        "id": "abab"[number],
        "t": draw(st.sampled_from([0, 1, 2, 3])),
        "x": draw(st.sampled_from([0.05, 1.0, -1.3, 2.5, 6.1])),
        "y": draw(st.sampled_from([0.07, 1.0, -1.3, 2.55, 4.2])),
        "x_rate": draw(st.sampled_from([0.0, 1.0, -1.1, 0.55])),
        "y_rate": draw(st.sampled_from([0.0, 1.03, -1.1, 0.5])),
    }


def expected_of(case: Case) -> list[dict[str, Any]]:
    """The answers of the oracle."""
    query = bound_query(case.workbook, case.query)
    polygon = shapely.union_all([shapely.from_wkt(text) for text in POLYGONS if text in case.workbook])
    is_inside = "NOT " not in case.workbook
    answers = []
    try:
        for prediction in predictions(query.operands[0].stream, case.rows["e"]):
            x, y = prediction.lines["x"], prediction.lines["y"]
            assert x is not None and y is not None
            semantics = query.semantics if x.error or y.error else "EXPECTED"
            zone = Zone(polygon, x, y, is_inside, semantics)
            for begin, end, best in zone.pieces(prediction.time, prediction.end):
                if best > 0 and best >= query.threshold - 1e-9:
                    certain = zone.certain(begin, end, query.threshold) if query.threshold else (None, None)
                    instants = zip(INSTANTS, (begin, end, *certain), strict=True)
                    answers.append({"a": prediction.answer_struct, **dict(instants), "probability": best})
    except Contact:
        assume(False)
    return answers


@examples(80)
@given(cases())
def test_batch_gives_the_answers_of_the_oracle(case: Case) -> None:
    expected = expected_of(case)
    event(f"{'some' if expected else 'no'} answers")
    assert_same(run_of(case, [case.rows]).rows(), expected, ["a"])


@examples(40)
@given(st.data(), cases())
def test_any_split_gives_the_answers_of_the_oracle(data: st.DataObject, case: Case) -> None:
    run = run_of(case, data.draw(splits(case.rows)), live=True)
    assert_same(run.rows(), expected_of(case), ["a"])


# ---------------------------------------------------------------- by hand


def rows_to(query: str, places: dict[str, tuple[float, ...]], error: str = "x = 0, y = 0") -> list[dict[str, Any]]:
    """The answers about predictions (x, x_rate, y, y_rate) that apply from 0 to 6."""
    rows: Rows = {
        "e": [{"id": id, "t": 0, "x": x, "x_rate": vx, "y": y, "y_rate": vy} for id, (x, vx, y, vy) in places.items()]
    }
    case = Case(STREAM.format(error=error) + f"CREATE QUERY q AS MONITOR {query};", "q", rows, {})
    return run_of(case, [rows]).rows()


SQUARE = "'POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))'"


@pytest.mark.parametrize(
    ("where", "place", "ranges"),
    [
        (f"WITHIN(a, {SQUARE})", (-1, 1, 2, 0), [(1, 3)]),  # along a side
        (f"NOT WITHIN(a, {SQUARE})", (-1, 1, 2, 0), [(0, 1), (3, 6)]),
        (f"WITHIN(a, {SQUARE})", (-1, 1, 3, -1), [(1, 3)]),  # along the diagonal
        (f"WITHIN(a, {SQUARE})", (-1, 1, 1, -1), [(1, 1)]),  # a corner
        (f"NOT WITHIN(a, {SQUARE})", (-1, 1, 1, -1), [(0, 1), (1, 6)]),
        (f"WITHIN(a, {SQUARE})", (2, 0, 1, 0), [(0, 6)]),  # stands on a side
        (f"NOT WITHIN(a, {SQUARE})", (2, 0, 1, 0), []),
    ],
)
def test_boundaries_are_inside(where: str, place: tuple[float, ...], ranges: list[tuple[float, float]]) -> None:
    rows = rows_to(f"a FROM e WHERE {where}", {"a": place})
    assert [(row["valid_from"], row["valid_to"]) for row in rows] == [pytest.approx(own) for own in ranges]


UPRIGHT_U = "'POLYGON((0 0, 4 0, 4 3, 3 3, 3 1, 1 1, 1 3, 0 3, 0 0))'"
LYING_U = "'POLYGON((0 0, 3 0, 3 1, 1 1, 1 3, 3 3, 3 4, 0 4, 0 0))'"


@pytest.mark.parametrize(
    ("where", "place", "answers"),
    [
        # The segment of the errors, 1 to the left and right, slides along the bottom of the notch, from 0 on.
        (f"WITHIN(a, {UPRIGHT_U}) SEMANTICS MAY", (-2, 1, 1, 0), [(1, 6, 1.0)]),
        (f"WITHIN(a, {UPRIGHT_U}) SEMANTICS MUST", (-2, 1, 1, 0), [(3, 5, 1.0)]),
        (f"WITHIN(a, {UPRIGHT_U})", (-2, 1, 1, 0), [(2, 6, 1.0)]),
        (f"NOT WITHIN(a, {UPRIGHT_U}) SEMANTICS MAY", (-2, 1, 1, 0), [(0, 3, 1.0), (5, 6, 0.5)]),
        (f"NOT WITHIN(a, {UPRIGHT_U}) SEMANTICS MUST", (-2, 1, 1, 0), [(0, 1, 1.0)]),
        # It leaves the bottom upwards at once, or in the middle of its time.
        (f"WITHIN(a, {UPRIGHT_U}) SEMANTICS MUST", (2, 0, 1, 1), [(0, 0, 1.0)]),
        (f"WITHIN(a, {UPRIGHT_U}) SEMANTICS MAY", (2, 0, 0.7, 0.1), [(0, 3, 1.0)]),
        (f"NOT WITHIN(a, {UPRIGHT_U}) SEMANTICS MUST", (2, 0, 0.7, 0.1), [(3, 6, 1.0)]),
        # It is on the outer boundary, from below and from above.
        (f"WITHIN(a, {UPRIGHT_U}) SEMANTICS MAY", (2, 0, 0, -1), [(0, 0, 1.0)]),
        (f"WITHIN(a, {UPRIGHT_U}) SEMANTICS MAY", (3, 0, 3, 1), [(0, 0, 0.5)]),
        (f"NOT WITHIN(a, {UPRIGHT_U}) SEMANTICS MAY", (2, 0, 0, -1), [(0, 6, 1.0)]),
    ],
)
@pytest.mark.parametrize("exact", ["y", "x"])
def test_a_segment_on_an_edge_is_inside(
    where: str, place: tuple[float, ...], answers: list[tuple[float, ...]], exact: str
) -> None:
    error = "x = 1, y = 0"
    if exact == "x":  # the same with the axes exchanged
        where, place, error = where.replace(UPRIGHT_U, LYING_U), (*place[2:], *place[:2]), "x = 0, y = 1"
    rows = rows_to(f"a FROM e WHERE {where}", {"a": place}, error)
    assert [(row["valid_from"], row["valid_to"], row["probability"]) for row in rows] == [
        pytest.approx(own, abs=1e-9) for own in answers
    ]


STEP = "'POLYGON((0 0, 2.5 0, 2.5 1, 5 1, 5 2, 2 2, 2 1, 0 1, 0 0))'"


@pytest.mark.parametrize(
    ("where", "answers"),
    [
        (f"WITHIN(a, {STEP}) SEMANTICS MAY", [(0, 4, 1.0)]),
        (f"WITHIN(a, {STEP}) SEMANTICS MUST", [(2, 2, 1.0)]),
        (f"WITHIN(a, {STEP})", [(0, 4, 1.0)]),
        (f"NOT WITHIN(a, {STEP}) SEMANTICS MAY", [(0, 2, 0.375), (2, 6, 1.0)]),
    ],
)
def test_the_probability_is_higher_on_the_level_of_two_edges(where: str, answers: list[tuple[float, ...]]) -> None:
    """The segment from 1.25 to 3.25 rises from the lower box, at its right, to the upper one, at its left."""
    rows = rows_to(f"a FROM e WHERE {where}", {"a": (2.25, 0, 0, 0.5)}, "x = 1, y = 0")
    found = sorted((row["valid_from"], row["valid_to"], row["probability"]) for row in rows)
    assert found == [pytest.approx(own, abs=1e-9) for own in answers]


def test_the_level_of_two_edges_at_different_instants() -> None:
    query = f"a, b FROM e WHERE WITHIN(a, {STEP}) AND WITHIN(b, {STEP}) AND a.id < b.id WITHIN 1 SEMANTICS MAY"
    (row,) = rows_to(query, {"a": (2.25, 0, 0, 0.5), "b": (2.25, 0, 0.8, 0.0)}, "x = 1, y = 0")
    assert row["probability"] == pytest.approx(0.625, abs=1e-9)
    (row,) = rows_to(query, {"a": (2.25, 0, 0, 0.5), "b": (1.25, 0, 0.8, 0.0)}, "x = 1, y = 0")
    assert row["probability"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("semantics", ["EXPECTED", "MAY", "MUST"])
@pytest.mark.parametrize("place", [(0, 1), (2, 1), (1, 0), (1, 2), (0, 0), (2, 2), (0, 2), (2, 0)])
def test_a_point_on_the_boundary_is_inside(place: tuple[float, float], semantics: str) -> None:
    """The errors are columns, which are 0 in this row."""
    stream = STREAM.format(error="x = ex, y = ey")
    x, y = place
    rows: Rows = {
        "e": [{"id": "a", "t": 0, "x": x, "x_rate": 0.0, "y": y, "y_rate": 0.0, "ex": 0.0, "ey": 0.0}],
    }
    query = f"CREATE QUERY q AS MONITOR a FROM e WHERE WITHIN(a, {SQUARE}) SEMANTICS {semantics};"
    (row,) = run_of(Case(stream + query, "q", rows, {}), [rows]).rows()
    assert (row["valid_from"], row["valid_to"], row["probability"]) == (0, 6, 1.0)


def test_two_names_are_in_different_polygons_at_different_instants() -> None:
    """a is in its square from 1 to 3 and b from 2 to 4, and the instants may be 1 apart."""
    query = f"a, b FROM e WHERE WITHIN(a, {SQUARE}) AND WITHIN(b, {SQUARE}) AND a.id < b.id WITHIN 1"
    (row,) = rows_to(query, {"a": (-1, 1, 1, 0), "b": (-2, 1, 1, 0)})
    assert (row["valid_from"], row["valid_to"]) == (2.0, 4.0)
    corners = [(1, 2), (3, 2), (3, 4)]
    assert row["boundary"] == [pytest.approx(corner) for corner in corners]


def test_a_polygon_and_a_distance() -> None:
    """Both pass the square, a second apart, and are never farther than 1 from each other."""
    query = f"a, b FROM e WHERE WITHIN(a, {SQUARE}) AND DISTANCE(a, b) <= 0.5 AND a.id < b.id WITHIN 2"
    (row,) = rows_to(query, {"a": (-1, 1, 1, 0), "b": (-2, 1, 1, 0)})
    assert row["boundary"] == [pytest.approx(corner) for corner in [(1, 1.5), (3, 3.5), (3, 4.5), (1, 2.5)]]


@pytest.mark.parametrize(("error", "spread"), [(1.5, 0.5), (1.0, 3.0), (2.0, 0.1)])
def test_normal_errors(error: float, spread: float) -> None:
    """A rectangle has the product of two differences of distribution functions; a triangle is half of its mirror."""
    law = scipy.stats.truncnorm(-error / spread, error / spread, scale=spread)
    errors = f"x = {error} NORMAL {spread}, y = {error} NORMAL {spread}"
    (row,) = rows_to(f"a FROM e WHERE WITHIN(a, {SQUARE}) SEMANTICS MAY", {"a": (0.25, 0, 1.75, 0)}, errors)
    expected = (law.cdf(1.75) - law.cdf(-0.25)) * (law.cdf(0.25) - law.cdf(-1.75))
    assert row["probability"] == pytest.approx(expected, abs=1e-9)
    triangle = "'POLYGON((-9 -9, 9 -9, 9 9, -9 -9))'"
    (row,) = rows_to(f"a FROM e WHERE WITHIN(a, {triangle}) SEMANTICS MAY", {"a": (1, 0, 1, 0)}, errors)
    assert row["probability"] == pytest.approx(0.5, abs=1e-9)


def test_the_certain_range() -> None:
    """The box of a enters the square: half of it is inside at 1, and three quarters at 1.5."""
    query = f"a FROM e WHERE WITHIN(a, {SQUARE}) SEMANTICS MAY THRESHOLD 0.75"
    (row,) = rows_to(query, {"a": (-1, 1, 1, 0)}, "x = 1, y = 0.5")
    assert (row["valid_from"], row["valid_to"]) == (0.0, 4.0)
    assert (row["certain_from"], row["certain_to"]) == pytest.approx((1.5, 2.5))


@examples(150)
@given(st.data())
def test_the_union_of_polygons_is_that_of_shapely(data: st.DataObject) -> None:
    """Also of polygons that share corners and edges."""
    points = st.tuples(st.integers(0, 4), st.integers(0, 4))
    polygons = []
    for _ in range(data.draw(st.integers(2, 3))):
        corners = data.draw(st.lists(points, min_size=3, max_size=5, unique=True))
        polygon = shapely.Polygon(corners)
        assume(polygon.is_valid and polygon.area > 0)
        polygons.append(polygon)
    rings = union([rings_of(polygon.wkt) for polygon in polygons])
    expected = shapely.union_all(polygons)
    assert sum(shapely.Polygon(ring).area * (1 if shapely.LinearRing(ring).is_ccw else -1) for ring in rings) == (
        pytest.approx(expected.area, abs=1e-12)
    )
    boundary = shapely.union_all([shapely.LinearRing(ring) for ring in rings])
    assert boundary.hausdorff_distance(expected.boundary) < 1e-12
    assert all(len(set(ring)) == len(ring) for ring in rings)


def test_two_zones_with_a_common_border() -> None:
    """The box of a is in both zones while it passes the border, and in one of them all the time."""
    zones = ("POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON((2 0, 4 0, 4 2, 2 2, 2 0))")
    query = f"a FROM e WHERE (WITHIN(a, '{zones[0]}') OR WITHIN(a, '{zones[1]}')) SEMANTICS MUST"
    (row,) = rows_to(query, {"a": (1, 0.5, 1, 0)}, "x = 0.5, y = 0.5")
    assert (row["valid_from"], row["valid_to"], row["probability"]) == (0, 5, 1.0)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("WITHIN(a, 'POINT(1 2)')", "'POINT(1 2)' is not the well-known text of a polygon"),
        ("WITHIN(a, 'POLYGON((0 0, 3 3, 2 0, 0 2, 0 0))')", "has a boundary that crosses itself"),
        ("WITHIN(a, 'POLYGON((0 0, 2 2, 0 0))')", "has a ring without an area"),
        ("WITHIN(a, 'MULTIPOLYGON(((0 0, 2 0, 2 2, 0 0)), ((2 1, 3 1, 2 3, 2 1)))')", "has two edges that overlap"),
        ("WITHIN(a, 'POLYGON((0 0, 2 0, 2 2, 2 1, 0 0))')", "has two edges that overlap"),
        ("WITHIN(a, 'POLYGON((0 0, 2 2, 2 0))')", "has a ring that does not end where it begins"),
        ("WITHIN(a, b)", "WITHIN takes an operand and a polygon"),
        (f"(WITHIN(a, {SQUARE}) OR a.id = 'a')", "conditions on locations can only be joined by AND"),
        (f"(WITHIN(a, {SQUARE}) OR b.x > 1)", "conditions on locations can only be joined by AND"),
        (f"(WITHIN(a, {SQUARE}) OR WITHIN(b, {SQUARE}))", "conditions on locations can only be joined by AND"),
        (f"(WITHIN(a, {SQUARE}) OR NOT WITHIN(a, {SQUARE}))", "conditions on locations can only be joined by AND"),
        (f"(WITHIN(a, {SQUARE}) OR DISTANCE(a, b) < 3)", "conditions on locations can only be joined by AND"),
        (f"WITHIN(a, {SQUARE}) AND (b.x > 1 OR b.y > 1)", f"WITHIN(a, {SQUARE}) cannot be combined with OR"),
        (f"WITHIN(a, {SQUARE}) AND a.x < 1", "a.x has an error and is in two constraints"),
    ],
)
def test_what_cannot_be_answered_is_refused_without_data(where: str, message: str) -> None:
    refused = refusals(f"{STREAM.format(error='x = 1, y = 1')}CREATE QUERY q AS MONITOR a, b FROM e WHERE {where};")
    assert any(message in finding.message and finding.hint for finding in refused), refused


def test_explain_names_the_polygon() -> None:
    workbook = STREAM.format(error="x = 1, y = 1") + f"CREATE QUERY q AS MONITOR a FROM e WHERE WITHIN(a, {SQUARE});"
    described = plan(analyse(bound_query(workbook, "q")))
    assert described.why[0] == "WITHIN(a, 'POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))') must hold"
