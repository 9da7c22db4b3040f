"""WITHIN, INTERSECTS and TOUCHES of locations with an ERROR: compared with an oracle that tries true locations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case
from tests.constrain.local import ConstrainRun, job_of
from tests.constrain.test_expected import answers
from tests.constrain.test_location_errors import STREAM, count
from tests.drawn import examples
from tests.local import prepared_query
from tests.oracles import true_locations as oracle
from tests.oracles.constrain import geometry
from tests.splits import disordered_splits

Point = tuple[float, float]

SQUARE = [(0.0, 0.0), (6.0, 0.0), (6.0, 6.0), (0.0, 6.0)]
HOLE = [(2.0, 2.0), (2.0, 5.0), (5.0, 5.0), (5.0, 2.0)]
TRIANGLE = [(7.0, 0.0), (10.0, 4.0), (7.0, 4.0)]
#: The rings of each area; those of a MULTIPOLYGON are apart from each other.
AREAS: dict[str, list[list[Point]]] = {
    "POLYGON": [SQUARE],
    "POLYGON with a hole": [SQUARE, HOLE],
    "POLYGON in the other direction": [SQUARE[::-1]],
    "POLYGON with three corners": [TRIANGLE],
    "MULTIPOLYGON": [SQUARE, TRIANGLE],
}


def text_of(name: str) -> str:
    rings = [f"({', '.join(f'{x:g} {y:g}' for x, y in [*ring, ring[0]])})" for ring in AREAS[name]]
    return (
        f"MULTIPOLYGON({', '.join(f'({ring})' for ring in rings)})"
        if name == "MULTIPOLYGON"
        else (f"POLYGON({', '.join(rings)})")
    )


def disc(centre: Point, radius: float, area: str) -> Iterator[Point]:
    """Points of a disc: in many directions, and where edges are nearest."""
    yield centre
    towards = [corner for ring in AREAS[area] for corner in ring]
    for ring in AREAS[area]:
        for (x, y), (x_end, y_end) in itertools.pairwise([*ring, ring[0]]):
            dx, dy = x_end - x, y_end - y
            share = ((centre[0] - x) * dx + (centre[1] - y) * dy) / (dx**2 + dy**2)
            towards.append((x + min(1, max(0, share)) * dx, y + min(1, max(0, share)) * dy))
    angles = [k * math.pi / 12 for k in range(24)]
    angles += [math.atan2(y - centre[1], x - centre[0]) for x, y in towards]
    for angle in angles:
        for part in (0.5, 1.0):
            yield centre[0] + part * radius * math.cos(angle), centre[1] + part * radius * math.sin(angle)


def is_true(relation: str, semantics: str, centre: Point, radius: float, area: str) -> bool:
    """Whether the relation may, or must, be true for the true locations."""
    shape = geometry(text_of(area))
    assert shape is not None
    covered = [shape.covers((Fraction(x), Fraction(y))) for x, y in disc(centre, radius, area)]
    if relation == "TOUCHES":  # a disc that is not a point has points beside the edge, and on it if on both sides
        on_edge = any(covered) and not all(covered)
        return semantics == "MAY" and on_edge
    return any(covered) if semantics == "MAY" else all(covered)


@st.composite
def blurred_events(draw: Any) -> list[dict[str, Any]]:
    """Events whose discs neither touch an edge nor have it as their edge: their numbers are not multiples of a half."""
    numbers = st.sampled_from([-1.3, 0.4, 1.1, 2.6, 3.4, 5.3, 6.2, 8.1, 9.7])
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "id": st.integers(0, 9),
                    "off": st.sampled_from([0.17, 0.9, 1.37, 2.9, None, -1.0]),
                    "t": st.integers(0, 4),
                    "x": numbers,
                    "y": numbers,
                }
            ),
            min_size=1,
            max_size=6,
            unique_by=lambda row: row["id"],
        )
    )


RELATIONS = {
    "WITHIN": "WITHIN(u, {})",
    "CONTAINS": "CONTAINS({}, u)",
    "INTERSECTS": "INTERSECTS({}, u)",
    "TOUCHES": "TOUCHES(u, {})",
}


@examples(60)
@given(
    st.data(), blurred_events(), st.sampled_from([*AREAS]), st.sampled_from([*RELATIONS]),
    st.sampled_from(["MAY", "MUST", "EXPECTED"]), st.booleans(),
)  # fmt: skip
def test_areas_give_the_answers_of_the_oracle(
    data: st.DataObject, rows: list, area: str, relation: str, semantics: str, column: bool
) -> None:
    """The area is a text, or a column of another event."""
    streams = "CREATE STREAM e KEY (id INTEGER) VALUE (off DOUBLE) TIME t INTEGER SPACE (x, y) ERROR off WATERMARK 2;"
    streams += "CREATE STREAM f KEY (id INTEGER) VALUE (area STRING) TIME t INTEGER WATERMARK 2;"
    names = "u, v FROM e AS u, f AS v" if column else "u FROM e"
    condition = RELATIONS[relation].format("v.area" if column else f"'{text_of(area)}'")
    more = " AND SPAN(u, v) <= 9" if column else ""
    workbook = f"{streams} CREATE QUERY q AS CONSTRAIN {names} WHERE {condition}{more} SEMANTICS {semantics};"
    all_rows = {"e": rows} | ({"f": [{"id": 0, "area": text_of(area), "t": 2}]} if column else {})
    run = ConstrainRun(job_of(Case(workbook, "q", all_rows)), 5)
    run.run(data.draw(st.just([all_rows]) | disordered_splits(all_rows, 2)))
    found = {row["events_0"][0]["id"]: row["probability"] for row in run.rows_of(0) if row["probability"] > 1e-12}
    truth = {}
    for row in rows:
        centre, radius = (row["x"], row["y"]), row["off"]
        if radius is None or radius < 0:
            continue
        if semantics == "EXPECTED":
            chance = 0.0 if relation == "TOUCHES" else oracle.chance_of_area(centre, radius, AREAS[area])
        else:
            chance = float(is_true(relation, semantics, centre, radius, area))
        if chance > 1e-12:
            truth[row["id"]] = chance
    event(f"{semantics} {relation}: {'some' if truth else 'no'} answers")
    assert found == pytest.approx(truth, abs=1e-9)


BOX = "'POLYGON((0 -5, 4 -5, 4 5, 0 5, 0 -5))'"


def test_the_edge_of_the_error_may_touch_the_area() -> None:
    """The error is 1."""
    assert count(f"WITHIN(u, {BOX}) SEMANTICS MAY", [-1.1, -1.0, 5.0, 5.1], names="u") == 2
    assert count(f"WITHIN(u, {BOX}) SEMANTICS MUST", [0.9, 1.0, 3.0, 3.1], names="u") == 2
    assert count(f"TOUCHES(u, {BOX}) SEMANTICS MAY", [-1.1, -1.0, 1.0, 1.1], names="u") == 2
    assert count(f"TOUCHES(u, {BOX}) SEMANTICS MUST", [0.0, 4.0], names="u") == 0


def test_without_an_error_the_readings_decide() -> None:
    stream = STREAM.replace("ERROR 1", "ERROR 0")
    for semantics in ("MAY", "MUST", "EXPECTED"):
        assert count(f"WITHIN(u, {BOX}) SEMANTICS {semantics}", [-0.1, 0.0, 4.0, 4.1], stream, "u") == 2
        assert count(f"TOUCHES(u, {BOX}) SEMANTICS {semantics}", [-0.1, 0.0, 2.0, 4.0], stream, "u") == 2


def test_lines_and_points_have_no_inside() -> None:
    for text in ("'LINESTRING(0 0, 4 0)'", "'POINT(2 0)'"):
        assert count(f"WITHIN(u, {text}) SEMANTICS MAY", [2.0, 9.0], names="u") == 1
        assert count(f"WITHIN(u, {text}) SEMANTICS MUST", [2.0, 9.0], names="u") == 0
        assert answers(f"WITHIN(u, {text})", [(2.0, 0.0)], names="u") == []


def test_parts_of_a_collection_are_one_area() -> None:
    """Two squares with a common edge: a location on it is inside both together."""
    parts = "POLYGON((0 -5, 4 -5, 4 5, 0 5, 0 -5)), POLYGON((3 -5, 8 -5, 8 5, 3 5, 3 -5))"
    text = f"'GEOMETRYCOLLECTION({parts})'"
    assert count(f"WITHIN(u, {text}) SEMANTICS MUST", [3.5, 7.5], names="u") == 1
    (row,) = answers(f"WITHIN(u, {text})", [(3.5, 0.0)], names="u")
    assert row["probability"] == pytest.approx(1.0)


def test_two_points_are_within_each_other_if_they_are_equal() -> None:
    for function in ("WITHIN", "INTERSECTS"):
        pair = f"u.id < v.id AND {function}(u, v) SEMANTICS"
        assert count(f"{pair} MAY", [0.0, 2.0]) == 1
        assert count(f"{pair} MAY", [0.0, 2.1]) == 0
        assert count(f"{pair} MUST", [0.0, 0.0]) == 0
        assert count(f"{pair} EXPECTED", [0.0, 1.0]) == 0


def test_several_areas_of_one_location_are_sampled() -> None:
    half = "'POLYGON((0 -9, 9 -9, 9 9, 0 9, 0 -9))'"
    upper = "'POLYGON((-9 0, 9 0, 9 9, -9 9, -9 0))'"
    (row,) = answers(f"WITHIN(u, {half}) AND INTERSECTS(u, {upper})", [(0.0, 0.0)], names="u")
    assert row["method"] == "sampling"
    assert row["lower"] <= 0.25 <= row["upper"]


def test_an_absent_event_is_outside_for_sure() -> None:
    """NOT v is about an event v in the box; of MAY, one that is inside for sure is needed to exclude an answer."""
    where = f"u.id = 0 AND v.id = 1 AND WITHIN(v, {BOX}) SEMANTICS"
    for x, may, must in ((-2.0, 1, 1), (0.5, 1, 0), (2.0, 0, 0)):
        assert count(f"{where} MAY", [50.0, x], names="u, NOT v") == may
        assert count(f"{where} MUST", [50.0, x], names="u, NOT v") == must


def test_heights_have_no_effect_on_areas() -> None:
    stream = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y, z) ERROR 1;"
    text = f"{stream} CREATE QUERY q AS CONSTRAIN u FROM e WHERE WITHIN(u, {BOX}) SEMANTICS"
    for semantics, expected in (("MAY", 3), ("MUST", 1)):
        run = ConstrainRun(job_of(Case(f"{text} {semantics};", "q", {})), 3)
        locations = enumerate((-1.0, 0.0, 2.0, 9.0))
        run.run([{"e": [{"id": i, "t": 0, "x": x, "y": 0.0, "z": 100.0 * i} for i, x in locations]}])
        assert len(run.answers()) == expected


def test_the_plan_says_what_the_readings_satisfy() -> None:
    text = f"{STREAM} CREATE QUERY q AS CONSTRAIN u FROM e WHERE WITHIN(u, 'POINT(1 2)') SEMANTICS"
    assert "u has DISTANCE(it, 'POINT(1 2)') <= 1.0 (stream e)" in prepared_query(f"{text} MAY;", "q").plan.why
    must = "u has WITHIN(it, 'POINT(1 2)') AND DISTANCE(it, the outside of 'POINT(1 2)') >= 1.0 (stream e)"
    assert must in prepared_query(f"{text} MUST;", "q").plan.why
    wrong = f"{STREAM} CREATE QUERY q AS CONSTRAIN u FROM e WHERE WITHIN(u, 'POLYGON((1 2, 3 4))') SEMANTICS MAY;"
    refused = prepared_query(wrong, "q").plan.refused
    assert refused is not None
    assert "not a valid geometry" in refused.message
