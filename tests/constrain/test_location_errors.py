"""Locations with an ERROR: the answers of the oracle, which tries true locations, in batch and for every split."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import Case
from tests.constrain.local import ConstrainRun, answers_of
from tests.constrain.test_against_loops import is_possible
from tests.drawn import examples
from tests.local import bound_query, local_job, prepared_query
from tests.oracles.events import frozen
from tests.oracles.locations import Near, Reading, can_be_true, tuples
from tests.splits import disordered_splits

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.columns.globe import RADIUS
from anabranch.constrain.analysis import analyse
from anabranch.constrain.feasibility import circles_in_plane, circles_on_sphere, have_common_point
from anabranch.constrain.location_errors import MAY, MUST
from anabranch.language.parser import parse

NAMES = ("u", "v", "w", "z")

rows_of_events = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 9),
            "off": st.sampled_from([0.0, 0.5, 1.0, 2.0, 0.5, 1.0, 0.0, None, -1.0]),
            "t": st.integers(0, 4),
            "x": st.sampled_from([0.0, 3.0, 6.0, 1.5, 0.0, 3.0, None]),
            "y": st.sampled_from([0.0, 4.0, 8.0]),
        }
    ),
    min_size=2,
    max_size=7,
    unique_by=lambda row: row["id"],
)
bounds = st.builds(
    Near,
    st.just(0),
    st.just(1),
    st.sampled_from(["<=", "<", "<=", ">=", ">"]),
    st.sampled_from([5.0, 6.0, 3.0, 4.0, 7.0, 9.0, 4.5, 7.5, 2.0, 1.0, 0.0, -1.0]),
)


class Blurred(NamedTuple):
    """A query on events whose error is a number or a column, with what the oracle needs."""

    case: Case
    errors: list[float | None]
    near: list[Near]
    names: tuple[str, ...]

    def answer(self, chosen: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        """The columns of an answer, without its probability."""
        return dict(zip(self.names, chosen, strict=True)) | {"t": max(row["t"] for row in chosen)}


@st.composite
def blurred(draw: Any, semantics: str, pairs: list[tuple[int, int]], more: str = "") -> Blurred:
    """A query with bounds on the distances of these pairs of events."""
    rows = draw(rows_of_events)
    near = [draw(bounds)._replace(i=i, j=j) for i, j in pairs]
    constant = draw(st.sampled_from([None, 0, 0.5, 1, 2]))
    errors = [constant if constant is not None else row["off"] for row in rows]
    errors = [None if error is None or error < 0 else error for error in errors]
    names = NAMES[: max(j for _, j in pairs) + 1]
    where = [f"DISTANCE({names[c.i]}, {names[c.j]}) {c.op} {c.bound:g}" for c in near]
    where += [f"SPAN({a}, {b}) <= 3" for a in names for b in names if a < b]
    stream = (
        "CREATE STREAM e KEY (id INTEGER) VALUE (off DOUBLE) TIME t INTEGER SPACE (x, y) "
        f"ERROR {'off' if constant is None else constant} WATERMARK 2;"
    )
    text = f"CONSTRAIN {', '.join(names)} FROM e WHERE {' AND '.join(where)} SEMANTICS {semantics}{more}"
    return Blurred(Case(f"{stream} CREATE QUERY q AS {text};", "q", {"e": rows}), errors, near, names)


@st.composite
def cases(draw: Any, semantics: str) -> tuple[Case, Counter]:
    """A query on two or more events, and its answers; with MAY, no event is in the bounds of two pairs."""
    alone = [[(0, 1)], [(0, 1), (0, 1)], [(0, 1), (2, 3)]]
    pairs = draw(st.sampled_from([*alone, [(0, 1), (1, 2)], [(0, 1), (0, 1), (1, 2)]] if semantics == MUST else alone))
    query = draw(blurred(semantics, pairs))
    chosen = tuples(query.case.rows["e"], query.errors, query.near, 3, semantics, len(query.names))
    return query.case, Counter(frozen(query.answer(rows)) for rows in chosen)


@examples(60)
@given(st.data(), st.sampled_from([MAY, MUST]), st.sampled_from([1, 7]))
def test_batch_gives_the_answers_of_the_oracle(data: st.DataObject, semantics: str, n_buckets: int) -> None:
    case, truth = data.draw(cases(semantics))
    event(f"{semantics}: {'some' if truth else 'no'} answers")
    if not is_possible(case):
        assert not truth
        return
    assert answers_of(case, [case.rows], n_buckets) == truth


@examples(40)
@given(st.data(), st.sampled_from([MAY, MUST]), st.sampled_from([1, 7]))
def test_any_arrival_gives_the_answers_of_the_whole(data: st.DataObject, semantics: str, n_buckets: int) -> None:
    case, truth = data.draw(cases(semantics))
    assume(is_possible(case))
    assert answers_of(case, data.draw(disordered_splits(case.rows, 2)), n_buckets) == truth


@examples(40)
@given(
    st.data(), st.sampled_from([[(0, 1), (1, 2)], [(0, 1), (0, 1), (1, 2)], [(0, 1), (0, 2)], [(0, 1), (0, 2), (0, 3)]])
)
def test_all_bounds_of_one_event_may_be_true_together(data: st.DataObject, pairs: list) -> None:
    """The answers include those that a grid shows to be possible, and no others but for its width."""
    query = data.draw(blurred(MAY, pairs))
    rows = query.case.rows["e"]
    assume(len(rows) <= 4)
    alone = [*tuples(rows, query.errors, query.near, 3, MAY, len(query.names))]
    if not is_possible(query.case):
        assert not alone
        return
    found = answers_of(query.case, data.draw(st.just([query.case.rows]) | disordered_splits(query.case.rows, 2)), 5)
    for chosen in alone:
        readings = [Reading((row["x"], row["y"]), query.errors[rows.index(row)] or 0.0) for row in chosen]
        middle = 1 if pairs[-1] == (1, 2) else 0
        others = [(readings[c.j if c.i == middle else c.i], c.op, c.bound) for c in query.near]
        is_found = frozen(query.answer(chosen)) in found
        event(f"{'an' if is_found else 'no'} answer")
        if can_be_true(readings[middle], others, slack=0.0):
            assert is_found
        assert not is_found or can_be_true(readings[middle], others, slack=0.1)
    assert found.total() == sum(frozen(query.answer(chosen)) in found for chosen in alone)


@pytest.mark.parametrize(("far", "possible"), [(3.9, 1), (4.0, 1), (4.1, 0)])
def test_a_location_cannot_be_near_two_that_are_far_apart(far: float, possible: int) -> None:
    """v is within 1 of 0. It can be next to u, which may be at -1 - far, or to w at 1 + far, but not to both."""
    where = "u.id = 0 AND v.id = 1 AND w.id = 2 AND DISTANCE(u, v) <= {0} AND DISTANCE(v, w) <= {0} SEMANTICS MAY"
    locations = [-far - 1, 0.0, far + 1]
    assert count(where.format(4), locations, names="u, v, w") == possible
    assert count(where.format(far - 0.5), locations, names="u, v, w") == 0


def common(*rings: tuple[float, float, float, float]) -> bool:
    """Whether rings (x, y, least, most) have a common point with the first one, which is a disc."""
    x, y, least, most = np.array(rings, np.float64).T
    points = [np.array([point]) for point in np.column_stack([x, y])]
    bounds = [(point, least[[i]], most[[i]]) for i, point in enumerate(points)][1:]
    return bool(have_common_point(circles_in_plane(points[0], most[[0]], bounds))[0])


def test_rings_have_a_common_point_inside_or_at_an_edge() -> None:
    assert common((0, 0, 0, 2), (3, 0, 0, 1), (2, 0, 0, 0))
    assert not common((0, 0, 0, 2), (3, 0, 0, 1), (2, 0.1, 0, 0))
    assert common((0, 0, 0, 9), (1, 0, 0, 1))  # a disc in a disc
    assert not common((1, 0, 0, 1), (0, 0, 5, 9))  # a disc in a hole
    assert common((1, 0, 0, 4), (0, 0, 5, math.inf))  # at the edge of a hole
    assert common((0, 0, 0, 4), (0, 0, 3.5, 9))  # one around the other
    assert not common((0, 0, 0, 2), (3, 0, 0, 2), (1.5, 2, 0, 0.6))  # two of three have a common point
    assert common((0, 0, 0, 2), (3, 0, 0, 2), (1.5, 2, 0, 0.7))


def on_sphere(lon: Any, lat: Any) -> Any:
    lon, lat = np.radians(lon), np.radians(lat)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


ANGLES = st.sampled_from([0.2, 0.35, 0.5, 0.9, 1.3, 2.1, 2.9, 3.3, -0.4])


@examples(80)
@given(
    st.tuples(st.integers(-180, 180), st.integers(-80, 80)),
    st.sampled_from([0.1, 0.3, 0.7, 1.2]),
    st.lists(st.tuples(st.integers(-180, 180), st.integers(-80, 80), ANGLES, ANGLES), min_size=2, max_size=4),
)
def test_rings_on_the_globe_have_a_common_point_if_a_grid_has_one(reading: tuple, error: float, others: list) -> None:
    """A grid around the reading, ring by ring; two neighbours are less than 0.02 apart."""
    centre = on_sphere(*reading)
    east = np.cross([0.0, 0.0, 1.0], centre)
    east /= np.linalg.norm(east)
    north = np.cross(centre, east)
    angle, turn = np.meshgrid(np.linspace(0, error + 0.02, 90), np.linspace(0, 2 * np.pi, 500))
    towards = np.cos(turn)[..., None] * east + np.sin(turn)[..., None] * north
    points = np.cos(angle)[..., None] * centre + np.sin(angle)[..., None] * towards
    slack = error - angle
    arrays = []
    for lon, lat, least, most in others:
        at = on_sphere(lon, lat)
        gap = 2 * np.arcsin(np.minimum(1.0, np.linalg.norm(points - at, axis=-1) / 2))
        slack = np.minimum(slack, np.minimum(gap - least, most - gap))
        arrays.append((at[None, :], np.array([least]), np.array([most])))
    found = bool(have_common_point(circles_on_sphere(centre[None, :], np.array([error]), arrays))[0])
    event(f"common: {found}")
    if slack.max() >= 0:
        assert found
    assert not found or slack.max() >= -0.02


@pytest.mark.parametrize(("far", "possible"), [(3.99, 1), (4.01, 0)])
@pytest.mark.parametrize("degrees", [10.0, 1e-4])
def test_on_the_globe_a_location_cannot_be_near_two_that_are_far_apart(
    far: float, possible: int, degrees: float
) -> None:
    unit = math.radians(degrees) * RADIUS
    stream = f"CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) GEODESIC ERROR {unit!r};"
    near = "DISTANCE(u, v) <= {0!r} AND DISTANCE(v, w) <= {0!r}".format(4 * unit)
    where = f"u.id = 0 AND v.id = 1 AND w.id = 2 AND {near} SEMANTICS MAY"
    locations = [-degrees * (far + 1), 0.0, degrees * (far + 1)]
    assert count(where, locations, stream, "u, v, w") == possible


STREAM = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) ERROR 1;"


def count(where: str, locations: list[float], stream: str = STREAM, names: str = "u, v") -> int:
    """The number of answers for events at these x, at one time."""
    job = local_job(f"{stream} CREATE QUERY q AS CONSTRAIN {names} FROM e WHERE {where};", "q")
    run = ConstrainRun(job, 5)
    run.run([{"e": [{"id": i, "t": 0, "x": x, "y": 0.0} for i, x in enumerate(locations)]}])
    return len(run.answers())


@pytest.mark.parametrize(("semantics", "least", "most"), [("MAY", 3.0, 7.0), ("MUST", 7.0, 3.0)])
def test_both_errors_widen_or_narrow_a_bound(semantics: str, least: float, most: float) -> None:
    """The bound is 5, and both errors are 1."""
    for bound, at, op in ((most, "<=", "<"), (least, ">=", ">")):
        pair = "u.id < v.id AND DISTANCE(u, v)"
        assert count(f"{pair} {at} 5 SEMANTICS {semantics}", [0.0, bound]) == 1
        assert count(f"{pair} {op} 5 SEMANTICS {semantics}", [0.0, bound]) == 0


def test_no_distance_is_below_zero() -> None:
    pair = "u.id < v.id AND DISTANCE(u, v)"
    for semantics in (MAY, MUST):
        assert count(f"{pair} < 0 SEMANTICS {semantics}", [0.0, 1.0]) == 0
        assert count(f"{pair} >= 0 SEMANTICS {semantics}", [0.0, 1.0]) == 1


def test_sums_of_errors_are_decimals() -> None:
    """0.1 + 0.1 + 0.1 is a little more than 0.3 in doubles."""
    stream = STREAM.replace("ERROR 1", "ERROR 0.1")
    assert count("u.id < v.id AND DISTANCE(u, v) <= 0.1 SEMANTICS MAY", [0.0, 0.3], stream) == 1
    assert count("u.id < v.id AND DISTANCE(u, v) < 0.1 SEMANTICS MAY", [0.0, 0.3], stream) == 0


def test_an_event_that_may_be_there_is_not_absent_for_sure() -> None:
    """Events at 0 and 4: they are at least 2 and at most 6 apart."""
    for bound, may, must in ((1, 2, 2), (3, 2, 0), (7, 0, 0)):
        where = f"DISTANCE(u, v) <= {bound} SEMANTICS"
        assert count(f"{where} MAY", [0.0, 4.0], names="u, NOT v") == may
        assert count(f"{where} MUST", [0.0, 4.0], names="u, NOT v") == must


def test_sets_of_any_size_have_errors_too() -> None:
    where = "DISTANCE(v, v) <= 2 AND SPAN(v, v) <= 1 SEMANTICS"
    assert count(f"{where} MAY", [0.0, 2.0, 4.0], names="AT LEAST 3 v") == 1
    assert count(f"{where} MUST", [0.0, 2.0, 4.0], names="AT LEAST 2 v") == 0


def test_a_fixed_point_has_no_error() -> None:
    where = "DISTANCE(u, 'POINT(0 0)') <= 2 SEMANTICS"
    assert count(f"{where} MAY", [1.0, 3.0, 3.5], names="u") == 2
    assert count(f"{where} MUST", [1.0, 3.0, 3.5], names="u") == 1


def test_on_the_globe_no_distance_is_more_than_half_the_circumference() -> None:
    stream = "CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE (x, y) GEODESIC ERROR 1000;"
    half = math.pi * RADIUS
    pair = "u.id < v.id AND DISTANCE(u, v)"
    assert count(f"{pair} <= {half + 1} SEMANTICS MUST", [0.0, 180.0], stream) == 1
    assert count(f"{pair} >= {half + 1} SEMANTICS MAY", [0.0, 180.0], stream) == 0
    assert count(f"{pair} <= 110000 SEMANTICS MAY", [0.0, 1.0], stream) == 1
    assert count(f"{pair} <= 109000 SEMANTICS MAY", [0.0, 1.0], stream) == 0


def test_the_bounds_of_readings_route_events() -> None:
    text = f"{STREAM} CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE DISTANCE(u, v) <= 5 AND SPAN(u, v) <= 3 SEMANTICS"
    extents = [analyse(bound_query(f"{text} {semantics};", "q")).extent for semantics in (MAY, MUST)]
    assert extents == [7.0, 3.0]
    plan = prepared_query(f"{text} MAY;", "q").plan
    assert "true locations of e are at most 1 from the readings, which are compared below" in plan.why
    assert "all of them can be true together (MAY)" in {step.id: step.does for step in plan.steps}["error"]


@pytest.mark.parametrize(
    ("names", "where", "text"),
    [
        ("u, v, w", "DISTANCE(u, v) < 5 AND DISTANCE(v, w) < 5", "all of them can be true together (MAY)"),
        ("v*3", "DISTANCE(v, v) < 5", "those of each event can be true together"),
        ("u, v", "DISTANCE(u, v) < 5 AND WITHIN(u, 'POINT(1 1)')", "those of each event can be true together"),
        ("u, NOT v", "DISTANCE(u, v) < 5", "each of them can be true, considered alone"),
        ("AT LEAST 2 v", "DISTANCE(v, v) < 5", "each of them can be true, considered alone"),
    ],
)
def test_the_plan_says_which_bounds_are_tested_together(names: str, where: str, text: str) -> None:
    plan = prepared_query(f"{STREAM} CREATE QUERY q AS CONSTRAIN {names} FROM e WHERE {where} SEMANTICS MAY;", "q").plan
    assert text in {step.id: step.does for step in plan.steps}["error"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{STREAM} {{}} WHERE DISTANCE(u, v) < 1;",
            "the locations of 'e' have an ERROR, but the query has no SEMANTICS",
        ),
        (f"{STREAM} {{}} WHERE DISTANCE(u, v) < 1 SEMANTICS LIKELY;", "there is no SEMANTICS option 'LIKELY'"),
        (
            f"{STREAM} {{}} WHERE DISTANCE(u, v) = 1 SEMANTICS MAY;",
            "a location with an ERROR can only be used in a bound",
        ),
        (f"{STREAM} {{}} WHERE (DISTANCE(u, v) < 1 OR u.t < v.t) SEMANTICS MAY;", "a location with an ERROR can only"),
        (f"{STREAM} {{}} WHERE NOT WITHIN(u, 'POLYGON((0 0, 1 0, 1 1, 0 0))') SEMANTICS MAY;", "a location with an"),
        (f"{STREAM} {{}} WHERE DISTANCE(u, 'POLYGON((0 0, 1 0, 1 1, 0 0))') < 1 SEMANTICS MAY;", "a location with an"),
        (
            f"{STREAM.replace('ERROR', 'GEODESIC ERROR')} {{}} WHERE WITHIN(u, 'POLYGON((0 0, 1 0, 1 1, 0 0))')"
            " SEMANTICS MAY;",
            "on the globe, an area is drawn on a map, but the ERROR of a location is in metres",
        ),
        (
            "CREATE STREAM e KEY (id) TIME t INTEGER SPACE (x, y); {} SEMANTICS MAY;",
            "SEMANTICS is about locations with an",
        ),
        (
            "CREATE STREAM e KEY (id) TIME t ERROR 1;",
            "ERROR is that of a location or of a prediction, and 'e' has none",
        ),
        ("CREATE STREAM e KEY (id) TIME t SPACE (x, y) ERROR 1 NORMAL 1;", "the ERROR of a location is the greatest"),
        ("CREATE STREAM e KEY (id) TIME t SPACE (x, y) ERROR -1;", "ERROR must be 0 or more, not -1"),
        ("CREATE STREAM e KEY (id) VALUE (a) TIME t SPACE (x, y) ERROR b;", "there is no column 'b' in VALUE"),
        (
            "CREATE STREAM e KEY (id) VALUE (a STRING) TIME t SPACE (x, y) ERROR a;",
            "an error must be a number, but 'a' is",
        ),
    ],
)
def test_what_cannot_be_decided_is_refused(text: str, message: str) -> None:
    findings = declare(parse(text.format("CREATE QUERY q AS CONSTRAIN u, v FROM e")), Catalog())
    assert any(message in finding.message for finding in findings), findings
