"""DISTANCE between predicted locations, against the oracle: regions, probabilities, every split into micro-batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import shapely
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import assert_same
from tests.monitor.local import run_of
from tests.oracles.monitor_distance import Contact, Pair, answers_with_pairs
from tests.splits import splits

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.errors import Finding, WorkbookError
from anabranch.language.parser import parse
from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan

STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE, z DOUBLE) TIME t INTEGER SPACE (x, y) "
    "MODEL PREDICTED ERROR ({error}) PERIOD 4;"
)
#: How far the boundary may be from the curve.
BOUNDARY = 1e-6


@st.composite
def cases(draw: Draw, within: Sequence[str] = ("", "", " WITHIN 1", " WITHIN 20"), most_rows: int = 4) -> Case:
    """One or two operands, a distance, sometimes two, and sometimes a constraint on another value."""
    labels = draw(st.sampled_from(["ab", "ab", "ab", "a"]))
    window = draw(st.sampled_from(within)) if labels == "ab" else ""
    second = "b" if labels == "ab" else "'POINT(0.5 -1)'"
    radius = draw(st.sampled_from([2, 1, 0.5, 3.3, 6]))
    constraints = [f"DISTANCE(a, {second}) {draw(st.sampled_from(['<=', '<']))} {radius}"]
    if not window:
        far = f"DISTANCE(a, {second}) {draw(st.sampled_from(['>', '>=']))} {radius / 4}"
        constraints = draw(st.sampled_from([constraints, constraints, [far], [*constraints, far]]))
    constraints += draw(st.sampled_from([[], [], ["a.z <= 1"], ["a.z >= 0.7"]]))
    errors = {column: draw(st.sampled_from([1, 0, 0.5, 0.25])) for column in ("x", "y", "z")}
    rows: Rows = {"e": [draw(predictions(number)) for number in range(draw(st.integers(2, most_rows)))]}
    keys = " AND a.id < b.id" if labels == "ab" else ""
    clauses = draw(st.sampled_from(["", " SEMANTICS MAY", " SEMANTICS MAY", " SEMANTICS MUST"]))
    clauses += draw(st.sampled_from(["", " THRESHOLD 0.25"]))
    error = ", ".join(f"{column} = {amount}" for column, amount in errors.items())
    query = f"MONITOR {', '.join(labels)} FROM e WHERE {' AND '.join(constraints)}{keys}{window}{clauses};"
    return Case(STREAM.format(error=error) + f"CREATE QUERY q AS {query}", "q", rows, {})


@st.composite
def predictions(draw: Draw, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": "abab"[number], "t": draw(st.sampled_from([0, 1, 2, 3]))}
    for column in ("x", "y", "z"):
        row[column] = draw(st.sampled_from([0.0, 1.0, -1.3, 2.5]))
        row[f"{column}_rate"] = draw(st.sampled_from([0.0, 1.0, -1.1, 0.5]))
    return row


def expected_with_pairs(case: Case) -> list[tuple[dict[str, Any], Pair]]:
    """The answers of the oracle and their pairs; cases with contacts are rejected, and queries that are refused."""
    query = bound_query(case.workbook, case.query)
    assume(plan(analyse(query)).refused is None)
    try:
        return list(answers_with_pairs(query, case.rows))
    except Contact:
        assume(False)
        raise


def expected_of(case: Case) -> list[dict[str, Any]]:
    """The answers of the oracle."""
    return [answer for answer, _ in expected_with_pairs(case)]


def labels_of(case: Case) -> list[str]:
    return [operand.label for operand in bound_query(case.workbook, case.query).operands]


@examples(60)
@given(cases())
def test_batch_gives_the_answers_of_the_oracle(case: Case) -> None:
    expected = expected_of(case)
    event(f"{'some' if expected else 'no'} answers")
    assert_same(run_of(case, [case.rows]).rows(), expected, labels_of(case), several_maxima=">" in case.workbook)


@examples(30)
@given(st.data(), cases())
def test_any_split_gives_the_answers_of_the_oracle(data: st.DataObject, case: Case) -> None:
    expected = expected_of(case)
    run = run_of(case, data.draw(splits(case.rows)), live=True)
    assert_same(run.rows(), expected, labels_of(case), several_maxima=">" in case.workbook)


# ---------------------------------------------------------------- boundaries


@examples(25)
@given(cases(within=(" WITHIN 1", " WITHIN 20"), most_rows=2))
def test_the_boundary_is_a_polygon_near_the_curve(case: Case) -> None:
    """Its corners match, and the last match in any direction from its middle is near it."""
    pairs = [pair for _, pair in expected_with_pairs(case)]
    for answer, pair in zip(run_of(case, [case.rows]).rows(), pairs, strict=True):
        corners = answer.get("boundary") or []
        event(f"{'many' if len(corners) > 50 else 'few'} corners")
        assert all(excess_of(pair, corner) <= 1e-9 for corner in corners)
        if len(corners) > 2:
            assert corners[0] == min(corners)
            polygon = shapely.Polygon(corners)
            assert polygon.exterior.is_ccw
            ta, tb = np.mean(corners, axis=0)
            for angle in np.linspace(0, 2 * math.pi, 40):
                last = last_match(pair, (ta, tb), (math.cos(angle), math.sin(angle)))
                assert polygon.distance(shapely.Point(last)) <= BOUNDARY


def excess_of(pair: Pair, at: Sequence[float]) -> float:
    """By how much some instants violate the limits of the predictions, the window or the conditions."""
    ta, tb = at
    limits = [max(begin - own, own - end) for (begin, end), own in zip(pair.limits, at, strict=True)]
    return max(*limits, abs(ta - tb) - pair.within, pair.excess((ta, tb)))


def last_match(pair: Pair, start: tuple[float, float], direction: tuple[float, float]) -> tuple[float, float]:
    """The last matching instants in a direction."""
    inside, outside = 0.0, 100.0
    for _ in range(36):  # to 1e-9
        middle = (inside + outside) / 2
        matches = excess_of(pair, [at + middle * step for at, step in zip(start, direction, strict=True)]) <= 0
        inside, outside = (middle, outside) if matches else (inside, middle)
    return start[0] + inside * direction[0], start[1] + inside * direction[1]


# ---------------------------------------------------------------- by hand


def answers_to(
    where: str, clauses: str, places: dict[str, tuple[float, ...]], error: str = "0"
) -> list[dict[str, Any]]:
    """The answers about predictions (x, x_rate, y, y_rate) that apply from 0 to 4."""
    rows: Rows = {
        "e": [
            {"id": id, "t": 0, "x": x, "x_rate": vx, "y": y, "y_rate": vy, "z": 0.0, "z_rate": 0.0}
            for id, (x, vx, y, vy) in places.items()
        ]
    }
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE {where} AND a.id < b.id {clauses};"
    stream = STREAM.format(error=f"x = {error}, y = {error}, z = 0")
    return run_of(Case(stream + query, "q", rows, {}), [rows]).rows()


PASSING = {"a": (-3.0, 2.0, 3.0, 0.0), "b": (0.0, 0.0, 0.0, 0.0)}
STANDING = {"a": (3.0, 0.0, 4.0, 0.0), "b": (0.0, 0.0, 0.0, 0.0)}


@pytest.mark.parametrize(
    ("where", "clauses", "places", "ranges"),
    [
        # a passes b at a distance of 3, after 1.5
        ("DISTANCE(a, b) <= 3", "", PASSING, [(1.5, 1.5)]),
        ("DISTANCE(a, b) < 3", "", PASSING, []),
        ("DISTANCE(a, b) >= 3", "", PASSING, [(0, 4)]),
        ("DISTANCE(a, b) > 3", "", PASSING, [(0, 1.5), (1.5, 4)]),
        ("DISTANCE(a, b) <= 3", "WITHIN 1", PASSING, [(1.5, 2.5)]),
        ("DISTANCE(a, b) < 3", "WITHIN 1", PASSING, []),
        ("5 >= DISTANCE(b, a)", "", STANDING, [(0, 4)]),
        ("DISTANCE(a, b) < 5", "", STANDING, []),
        ("DISTANCE(a, b) >= 5", "", STANDING, [(0, 4)]),
        ("NOT DISTANCE(a, b) <= 5", "", STANDING, []),
        ("NOT DISTANCE(a, b) < 5", "", STANDING, [(0, 4)]),
        ("DISTANCE(a, b) <= 5", "WITHIN 1", STANDING, [(0, 4)]),
        ("DISTANCE(a, b) < 5", "WITHIN 1", STANDING, []),
        ("DISTANCE(a, b) <= NULL", "", STANDING, []),
        ("DISTANCE(a, b) IN [4, 5]", "", STANDING, [(0, 4)]),
        # OR over one expression allows it two intervals
        ("DISTANCE(a, b) <= 5 AND (a.x < -1 OR a.x > 1)", "", PASSING, [(0, 1), (2, 3.5)]),
        ("DISTANCE(a, b) <= 5 AND (a.id = 'a' OR a.x_rate = 7)", "", PASSING, [(0, 3.5)]),
    ],
)
def test_contacts(where: str, clauses: str, places: dict[str, Any], ranges: list[tuple[float, float]]) -> None:
    rows = answers_to(where, clauses, places)
    assert [(row["valid_from"], row["valid_to"]) for row in rows] == [pytest.approx(own) for own in ranges]
    assert all(row["probability"] == 1.0 for row in rows)


def test_contacts_with_errors() -> None:
    """The corners of the box of the difference are 5 from its middle, and touch the circles of 0 and of 10."""
    assert answers_to("DISTANCE(a, b) <= 10", "SEMANTICS MUST", STANDING, "2.5") == []
    (row,) = answers_to("DISTANCE(a, b) <= 10", "SEMANTICS MUST", {**STANDING, "a": (3.0, 0.0, 4.0, 0.0)}, "1.5")
    assert (row["valid_from"], row["valid_to"]) == (0, 4)
    # The box of the difference is [0, 6] x [1, 7], which is 1 from the center.
    assert answers_to("DISTANCE(a, b) <= 1", "SEMANTICS MAY", STANDING, "1.5") == []
    (row,) = answers_to("DISTANCE(a, b) >= 1", "SEMANTICS MUST", STANDING, "1.5")
    assert row["probability"] == 1.0


def test_the_probability_of_a_disk_inside_the_error() -> None:
    """The true x and y of a are within 2 of those of b, so the disk of 1 has the share pi / 16 of the square."""
    query = (
        STREAM.format(error="x = 2, y = 2, z = 0")
        + "CREATE QUERY q AS MONITOR a FROM e WHERE DISTANCE(a, 'POINT(1 1)') <= 1;"
    )
    rows: Rows = {"e": [{"id": "a", "t": 0, "x": 1.0, "x_rate": 0.0, "y": 1.0, "y_rate": 0.0, "z": 0.0, "z_rate": 0.0}]}
    (row,) = run_of(Case(query, "q", rows, {}), [rows]).rows()
    assert row["probability"] == pytest.approx(math.pi / 16, abs=1e-12)


def test_a_distance_in_which_two_axes_are_parallel_is_a_strip() -> None:
    """Both move along x: a at 1 + 2 ta, and b at tb. The distance is at most 5 if 1 + 2 ta - tb is."""
    places = {"a": (1.0, 2.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0, 0.0)}
    (row,) = answers_to("DISTANCE(a, b) <= 5", "WITHIN 4", places)
    assert sorted(row["boundary"]) == [pytest.approx(corner) for corner in [(0, 0), (0, 4), (2, 0), (4, 4)]]


@pytest.mark.parametrize("semantics", ["EXPECTED", "MAY", "MUST"])
def test_three_names_at_the_same_instant(semantics: str) -> None:
    """A convoy: each is near the next one, and the answer is where both distances are short."""
    rows: Rows = {
        "e": [
            {"id": id, "t": 0, "x": x, "x_rate": rate, "y": 0.0, "y_rate": 0.0, "z": 0.0, "z_rate": 0.0}
            for id, x, rate in (("a", 0.0, 1.0), ("b", 4.0, 0.0), ("c", 8.0, -1.0))
        ]
    }
    query = (
        STREAM.format(error="x = 0.5, y = 0, z = 0")
        + "CREATE QUERY q AS MONITOR a, b, c FROM e WHERE DISTANCE(a, b) <= 2 AND DISTANCE(b, c) <= 2 "
        + f"AND a.id < b.id AND b.id < c.id SEMANTICS {semantics};"
    )
    case = Case(query, "q", rows, {})
    if semantics != "MUST":
        refused = plan(analyse(bound_query(query, "q"))).refused
        assert refused is not None and "b.x has an error and is in two constraints" in refused.message
        return
    (row,) = run_of(case, [rows]).rows()
    assert (row["valid_from"], row["valid_to"]) == (3.0, 4.0)


# ---------------------------------------------------------------- normal errors


@pytest.mark.parametrize(
    ("place", "radius", "errors"),
    [
        ((1.0, 0.5), 2.0, "1.5 NORMAL 0.5"),
        ((3.0, -1.0), 2.5, "1 NORMAL 0.4"),
        ((0.0, 0.0), 1.0, "2 NORMAL 3"),
        ((6.0, 6.0), 8.0, "1 NORMAL 0.05"),
    ],
)
def test_normal_errors(place: tuple[float, float], radius: float, errors: str) -> None:
    """The same integral over the true location of a, for one operand, and the true x and y of both, for two."""
    error, spread = (float(word) for word in errors.split(" NORMAL "))
    law = scipy.stats.truncnorm(-error / spread, error / spread, scale=spread)
    x, y = place

    def strip(at: float) -> float:
        half = math.sqrt(max(0.0, radius * radius - at * at))
        return float(law.pdf(at - x) * (law.cdf(half - y) - law.cdf(-half - y)))

    low, high = max(-radius, x - error), min(radius, x + error)
    cuts = np.unique(np.clip([low, high, *(x + spread * np.arange(-6, 7))], low, high))
    expected = sum(scipy.integrate.quad(strip, one, two, epsabs=1e-12)[0] for one, two in itertools.pairwise(cuts))
    stream = STREAM.format(error=f"x = {errors}, y = {errors}, z = 0")
    row = {"id": "a", "t": 0, "x": x, "x_rate": 0.0, "y": y, "y_rate": 0.0, "z": 0.0, "z_rate": 0.0}
    case = Case(
        stream + f"CREATE QUERY q AS MONITOR a FROM e WHERE DISTANCE(a, 'POINT(0 0)') <= {radius} SEMANTICS MAY;",
        "q", {"e": [row]}, {},
    )  # fmt: skip
    (answer,) = run_of(case, [case.rows]).rows()
    assert answer["probability"] == pytest.approx(expected, abs=1e-9)


def test_normal_errors_of_two_locations() -> None:
    """The difference of two normal errors, in the limit of no truncation: the distance has a Rice distribution."""
    radius, spread = 3.0, 0.5
    stream = STREAM.format(error=f"x = 5 NORMAL {spread}, y = 5 NORMAL {spread}, z = 0")
    places = {"a": (2.0, 1.5), "b": (0.0, 0.0)}
    rows: Rows = {
        "e": [
            {"id": id, "t": 0, "x": x, "x_rate": 0.0, "y": y, "y_rate": 0.0, "z": 0.0, "z_rate": 0.0}
            for id, (x, y) in places.items()
        ]
    }
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE DISTANCE(a, b) <= {radius} AND a.id < b.id;"
    (answer,) = run_of(Case(stream + query, "q", rows, {}), [rows]).rows()
    total = spread * math.sqrt(2)
    expected = scipy.stats.rice(math.hypot(2.0, 1.5) / total, scale=total).cdf(radius)
    assert answer["probability"] == pytest.approx(expected, abs=1e-9)


# ---------------------------------------------------------------- what is refused

DECLARED = STREAM.format(error="x = 1, y = 1, z = 1")


@pytest.mark.parametrize(
    ("where", "clauses", "message"),
    [
        ("DISTANCE(a, b) = 5", "", "DISTANCE cannot be compared by ="),
        ("DISTANCE(a, b) <= a.x", "", "DISTANCE can only be compared with a number"),
        ("DISTANCE(a, b) + 1 <= 5", "", "DISTANCE can only be compared with a number"),
        ("(DISTANCE(a, b) <= 5 OR a.id = 'a')", "", "conditions on locations can only be joined by AND"),
        ("(DISTANCE(a, b) <= 5 OR a.z > 1)", "", "conditions on locations can only be joined by AND"),
        ("NOT (DISTANCE(a, b) <= 5 AND a.z > 1)", "", "conditions on locations can only be joined by AND"),
        ("DISTANCE(a, b) <= 5 AND (a.z > 1 OR b.z > 1)", "", "DISTANCE(a, b) cannot be combined with OR"),
        ("DISTANCE(a, b) <= 5 AND (a.z > 1 OR a.id = 'a')", "", "DISTANCE(a, b) cannot be combined with OR"),
        ("DISTANCE(a, a) <= 5", "", "the DISTANCE of a location from itself"),
        ("DISTANCE(a, 'POLYGON((0 0, 1 0, 0 1, 0 0))') <= 5", "", "is not the well-known text of a point"),
        ("DISTANCE(a, b) < -1", "", "no locations satisfy the conditions on DISTANCE(a, b)"),
        ("DISTANCE(a, b) < 1 AND DISTANCE(b, a) > 2", "", "no locations satisfy the conditions on DISTANCE(a, b)"),
        ("DISTANCE(a, b) <= 2", "SEMANTICS MUST", "DISTANCE(a, b) below 2 is never certain"),
        ("DISTANCE(a, b) > 2", "WITHIN 1", "leaves regions with holes"),
        ("DISTANCE(a, b) >= 0", "WITHIN 1", "leaves regions with holes"),
        ("DISTANCE(a, b) < 2 AND a.x < 5", "", "a.x has an error and is in two constraints, DISTANCE(a, b) and a.x"),
        ("DISTANCE(a, b) < 2 AND ABS(a.z - b.z) > 5", "WITHIN 1", "cannot be combined with constraints that allow two"),
    ],
)
def test_what_cannot_be_answered_is_refused_without_data(where: str, clauses: str, message: str) -> None:
    refused = refusals(f"{DECLARED}CREATE QUERY q AS MONITOR a, b FROM e WHERE {where} {clauses};")
    assert any(message in finding.message and finding.hint for finding in refused), refused


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("", "stream e has no SPACE"),
        ("SPACE (x, w)", "e does not predict 'w', which is a coordinate of its SPACE"),
        ("SPACE (x, y) GEODESIC", "e is GEODESIC, but it predicts degrees"),
    ],
)
def test_a_location_needs_predicted_coordinates(space: str, message: str) -> None:
    stream = DECLARED.replace("SPACE (x, y)", space)
    refused = refusals(f"{stream}CREATE QUERY q AS MONITOR a, b FROM e WHERE DISTANCE(a, b) <= 5;")
    assert refused and all(message in finding.message for finding in refused), refused


def refusals(workbook: str) -> Sequence[Finding]:
    """What `check` reports: the findings of the binder, or why the plan is refused."""
    catalog = Catalog()
    findings = declare(parse(workbook), catalog)
    if not findings:
        try:
            refused = plan(analyse(bind(catalog.query("q"), catalog))).refused
            findings = [] if refused is None else [refused]
        except WorkbookError as error:
            findings = error.findings
    return findings


def test_explain_names_the_distance() -> None:
    query = "CREATE QUERY q AS MONITOR a, b FROM e WHERE DISTANCE(a, b) <= 5 AND DISTANCE(a, b) > 1;"
    described = plan(analyse(bound_query(DECLARED + query, "q")))
    assert "bend" not in [step.id for step in described.steps]
    assert "DISTANCE(a, b) must be in (1, 5]" in described.why
    assert described.graph is not None and [edge.label for edge in described.graph.edges] == [
        "DISTANCE(a, b) in (1, 5]"
    ]
    curved = "CREATE QUERY q AS MONITOR a, b FROM e WHERE DISTANCE(a, b) <= 5 WITHIN 1;"
    assert "bend" in [step.id for step in plan(analyse(bound_query(DECLARED + curved, "q"))).steps]
