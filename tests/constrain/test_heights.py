"""Locations with three coordinates: the answers of the oracle, in batch and for every split."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import Case, seconds
from tests.constrain.local import ConstrainRun, answers_of, truth_of
from tests.constrain.strategies import constrain_cases
from tests.constrain.test_against_loops import is_possible
from tests.drawn import examples
from tests.local import local_job, prepared_query
from tests.splits import disordered_splits

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.columns.globe import RADIUS
from anabranch.constrain.analysis import STRATEGIES
from anabranch.language.parser import parse

SPACES = ["space", "air"]


@examples(40)
@given(constrain_cases(spaces=SPACES), st.sampled_from([1, 2, 7]), st.sampled_from(["", *STRATEGIES]))
def test_batch_gives_every_solution_once(case: Case, n_buckets: int, strategy: str) -> None:
    assume(is_possible(case))
    assert answers_of(case, [case.rows], n_buckets, strategy) == truth_of(case)


@examples(30)
@given(st.data(), st.sampled_from([0, 2]), st.booleans(), st.booleans())
def test_any_arrival_gives_the_answers_of_the_whole(
    data: st.DataObject, delay: int, growing: bool, negated: bool
) -> None:
    options = {"connected": True, "consistent": True, "watermark": delay, "growing": growing, "negated": negated}
    case = data.draw(constrain_cases(spaces=SPACES, **options))
    assume(is_possible(case))
    batches = data.draw(disordered_splits(case.rows, delay, clock=seconds))
    assert answers_of(case, batches, data.draw(st.sampled_from([1, 7]))) == truth_of(case)


def pairs(declaration: str, where: str, locations: list[tuple]) -> list[tuple[int, int]]:
    """The pairs of numbers of events that satisfy a condition on u and v."""
    stream = f"CREATE STREAM e KEY (id INTEGER) TIME t INTEGER SPACE {declaration};"
    job = local_job(f"{stream} CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE u.id < v.id AND {where};", "q")
    rows = [{"id": i, "t": 0, "a": a, "b": b, "c": c} for i, (a, b, c) in enumerate(locations)]
    run = ConstrainRun(job, 5)
    run.run([{"e": rows}])
    return sorted((answer["u"]["id"], answer["v"]["id"]) for answer in run.answers())


def test_a_distance_in_space_has_three_sides() -> None:
    locations = [(0.0, 0.0, 0.0), (3.0, 4.0, 12.0), (3.0, 4.0, 0.0), (0.0, 0.0, None)]
    assert pairs("(a, b, c)", "DISTANCE(u, v) <= 13", locations) == [(0, 1), (0, 2), (1, 2)]
    assert pairs("(a, b, c)", "DISTANCE(u, v) < 13", locations) == [(0, 2), (1, 2)]
    # Evaluated on complete configurations.
    assert pairs("(a, b, c)", "(DISTANCE(u, v) = 13 OR u.t > v.t)", locations) == [(0, 1)]
    assert pairs("(a, b, c)", "DISTANCE(u, v) > 4 AND DISTANCE(v, 'POINT Z (3 4 2)') <= 2", locations) == [
        (0, 2),
        (1, 2),
    ]


def test_a_distance_in_the_air_is_straight() -> None:
    quarter = [(0.0, 0.0, 1000.0), (90.0, 0.0, 1000.0), (0.0, 0.0, 11_000.0)]
    straight = math.hypot(RADIUS + 1000, RADIUS + 1000)
    assert pairs("(a, b, c) GEODESIC", f"DISTANCE(u, v) <= {straight + 0.01}", quarter) == [(0, 1), (0, 2)]
    assert pairs("(a, b, c) GEODESIC", f"DISTANCE(u, v) <= {straight - 0.01}", quarter) == [(0, 2)]
    assert pairs("(a, b, c) GEODESIC", "DISTANCE(u, v) <= 10000.01", quarter) == [(0, 2)]
    assert not pairs("(a, b, c) GEODESIC", "DISTANCE(u, v) <= 9999.99", quarter)


def test_within_is_about_the_first_two_coordinates() -> None:
    square = "'POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))'"
    locations = [(1.0, 1.0, 0.0), (2.0, 2.0, 500.0), (5.0, 1.0, 0.0)]
    assert pairs("(a, b, c)", f"WITHIN(u, {square}) AND WITHIN(v, {square})", locations) == [(0, 1)]


STREAMS = """
CREATE STREAM e KEY (id INTEGER) VALUE (area STRING) TIME t INTEGER SPACE (x, y, z);
CREATE STREAM f KEY (id INTEGER) TIME t INTEGER SPACE (x, y);
CREATE STREAM g KEY (id INTEGER) TIME t INTEGER SPACE (lon, lat, h) GEODESIC;
"""


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("e AS u, f AS v WHERE DISTANCE(u, v) < 1", "e has three coordinates, but f has two"),
        (
            "e AS u, e AS v WHERE DISTANCE(u, v.area) < 1",
            "a DISTANCE from an event with three coordinates is to an event",
        ),
        ("e AS u, e AS v WHERE DISTANCE(u, 'POINT(1 2)') < 1", "a DISTANCE from an event with three coordinates"),
        ("g AS u, g AS v WHERE DISTANCE(u, 'POINT(1 2)') < 1", "a DISTANCE from an event with three coordinates"),
        ("e AS u, g AS v WHERE DISTANCE(u, v) < 1", "there is no DISTANCE between g, which is on the globe, and e"),
    ],
)
def test_locations_of_different_dimensions_are_not_compared(query: str, message: str) -> None:
    findings = declare(parse(f"{STREAMS} CREATE QUERY q AS CONSTRAIN u, v FROM {query};"), Catalog())
    assert any(message in finding.message for finding in findings)


def test_streams_of_different_dimensions_are_refused_without_a_distance_between_them() -> None:
    text = f"{STREAMS} CREATE QUERY q AS CONSTRAIN u, v, w FROM e AS u, f AS v, f AS w WHERE DISTANCE(v, w) < 1;"
    refused = prepared_query(text, "q").plan.refused
    assert refused is not None
    assert refused.message == "stream e has three coordinates, but stream f has two"


def test_three_coordinates_are_not_projected() -> None:
    text = "CREATE STREAM e KEY (id) TIME t SPACE (lon, lat, h) GEODESIC ORIGIN (8, 46);"
    (finding,) = declare(parse(text), Catalog())
    assert finding.message == "ORIGIN projects a longitude and a latitude, but SPACE has three columns"
