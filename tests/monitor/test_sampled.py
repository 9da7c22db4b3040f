"""MONITOR compared with the definition: answers cover the matching instants of a lattice, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import shapely
from hypothesis import event, given
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.cases import Case
from tests.drawn import drawn, examples
from tests.monitor.definitions import MAY, MUST, Prediction, QueryShape
from tests.monitor.local import run_of
from tests.monitor.shapes import ShapedCase, shaped_cases
from tests.oracles.monitor import Answer
from tests.splits import splits

#: The margin by which a lattice point must match, and the tolerance for points of answers.
SLACK = 1e-7
LOOSE = -1e-6
#: The most points per combination for three operands, where each test is a linear program.
MOST_POINTS = 10


def assert_sampled(shaped: ShapedCase, answers: Sequence[Answer], step: float = 0.5, line_step: float = 0.125) -> None:
    """The answers agree with the definition on a lattice."""
    query = shaped.query
    for chosen in shaped.combinations():
        own_answers = [candidate for candidate in answers if shaped.chosen(candidate) == chosen]
        points = query.lattice(chosen, step, line_step)
        points = points[query.matches(chosen, points, SLACK)]
        if query.operands > 2:
            points = points[:: len(points) // MOST_POINTS + 1]
        for point in points:
            assert any(covers(candidate, point) for candidate in own_answers), (chosen, point, own_answers)
    for answer in answers:
        chosen = shaped.chosen(answer)
        assert chosen in all_combinations(shaped), answer
        assert all_match(query, chosen, [answer["sample"]]), (chosen, answer)
        assert not np.isnan(answer["probability"])
        assert 0 < answer["probability"] <= 1
        if query.operands > 1:
            assert all_match(query, chosen, answer["boundary"]), (chosen, answer)
        assert_interval(query, answer)


def all_combinations(shaped: ShapedCase) -> list[tuple[Prediction, ...]]:
    return list(shaped.combinations())


def all_match(query: QueryShape, chosen: Sequence[Prediction], points: Sequence[Sequence[float]]) -> bool:
    """Whether all points match, within a tolerance."""
    array = np.array(points, np.float64)
    return bool((query.applies(chosen, array, LOOSE) & query.matches(chosen, array, LOOSE)).all())


def covers(answer: Answer, point: np.ndarray) -> bool:
    """Whether a point is in the region of an answer."""
    if not answer["valid_from"] - 1e-6 <= point.max() <= answer["valid_to"] + 1e-6:
        return False
    if len(point) == 1:
        return True
    corners = np.array(answer["boundary"])
    if len(point) == 2:
        return shapely.Point(point).distance(outline(corners)) <= 1e-6
    return is_inside(corners, point)


def outline(corners: np.ndarray) -> shapely.Geometry:
    """The polygon of some corners; it may be a segment or a point."""
    polygon = shapely.Polygon(corners) if len(corners) > 2 else None
    return polygon if polygon is not None and polygon.area > 0 else shapely.MultiPoint(corners).convex_hull


def is_inside(corners: np.ndarray, point: np.ndarray) -> bool:
    """Whether a point is a convex combination of corners, within a tolerance, by linear programming."""
    n, dims = corners.shape
    rows = np.concatenate([np.c_[corners.T, -np.ones(dims)], np.c_[-corners.T, -np.ones(dims)]])
    solution = linprog(
        np.r_[np.zeros(n), 1.0], rows, np.r_[point, -point], np.r_[np.ones(n), 0.0].reshape(1, -1), [1.0]
    )
    return solution.status == 0 and solution.fun <= 1e-6


def assert_interval(query: QueryShape, answer: Answer) -> None:
    """valid_from and valid_to are the range of the latest instant over a convex boundary."""
    assert answer["valid_from"] - 1e-6 <= max(answer["sample"]) <= answer["valid_to"] + 1e-6
    if query.operands == 1:
        return
    corners = np.array(answer["boundary"])
    assert abs(corners.max() - answer["valid_to"]) <= 1e-6
    n, dims = corners.shape
    if dims == 2 and len(corners) > 2 and shapely.convex_hull(outline(corners)).area > outline(corners).area + 1e-9:
        assert query.semantics == MAY
        return
    solution = linprog(
        np.r_[np.zeros(n), 1.0], np.c_[corners.T, -np.ones(dims)], np.zeros(dims),
        np.r_[np.ones(n), 0.0].reshape(1, -1), [1.0], bounds=[*[(0, 1)] * n, (None, None)],
    )  # fmt: skip
    assert abs(solution.fun - answer["valid_from"]) <= 1e-6, (answer, solution.fun)


@examples(40)
@given(shaped_cases(operands=(1,)))
def test_one_operand(shaped: ShapedCase) -> None:
    answers = run_of(shaped.case, [shaped.case.rows]).rows()
    event(f"{'some' if answers else 'no'} answers")
    assert_sampled(shaped, answers)


@examples(40)
@given(shaped_cases(operands=(2,)), st.sampled_from([1, 3]))
def test_two_operands(shaped: ShapedCase, n_buckets: int) -> None:
    answers = run_of(shaped.case, [shaped.case.rows], n_buckets).rows()
    event(f"{'some' if answers else 'no'} answers")
    assert_sampled(shaped, answers)


@examples(20)
@given(shaped_cases(operands=(3,), normals=(0,)), st.sampled_from([1, 4, 10]))
def test_three_operands(shaped: ShapedCase, n_buckets: int) -> None:
    answers = run_of(shaped.case, [shaped.case.rows], n_buckets).rows()
    event(f"{'some' if answers else 'no'} answers")
    assert_sampled(shaped, answers)


@examples(15)
@given(st.data(), shaped_cases(operands=(2, 1)))
def test_streaming_validates_answers_by_the_definition(data: st.DataObject, shaped: ShapedCase) -> None:
    batches = data.draw(splits(shaped.case.rows))
    assert_sampled(shaped, run_of(shaped.case, batches, data.draw(st.sampled_from([1, 4])), live=True).rows())


@pytest.mark.parametrize("semantics", [MAY, MUST])
def test_drawn_cases_have_matches(semantics: str) -> None:
    """The strategies draw cases with matches, for all semantics."""
    cases = drawn(shaped_cases(semantics=(semantics,)), 40)
    assert sum(bool(run_of(shaped.case, [shaped.case.rows]).rows()) for shaped in cases) > 10


# ---------------------------------------------------------------- MAY with comparisons that allow two intervals

STREAM = (
    "CREATE STREAM e KEY (id INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {} PERIOD {};\n"
)


def two_operands(errors: str, period: int, query: str, rows: Sequence[dict]) -> list[Answer]:
    query_text = f"CREATE QUERY q AS MONITOR a, b FROM e AS a, e AS b WHERE a.id < b.id AND {query};\n"
    case = Case(STREAM.format(errors, period) + query_text, "q", {"e": list(rows)}, {})
    return run_of(case, [case.rows], 1).rows()


@pytest.mark.parametrize("threshold", ["", " THRESHOLD 0.5", " THRESHOLD 1"])
def test_a_region_does_not_depend_on_the_threshold(threshold: str) -> None:
    """Regions that errors connect stay one region, even if the probability in a part of it is below the threshold."""
    rows = [
        {"id": 1, "t": 0.0, "x": -1.5, "x_rate": 1.0, "y": 0.0, "y_rate": 0.0},
        {"id": 2, "t": 0.0, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0},
    ]
    (answer,) = two_operands("2", 20, f"ABS(a.x - b.x) >= 3 SEMANTICS MAY{threshold}", rows)
    assert (answer["valid_from"], answer["valid_to"], answer["probability"]) == (0, 20, 1)


def test_overlapping_regions_without_area_are_merged() -> None:
    """An equality of exact values leaves a line of instants, on which both sides of ABS(...) >= may be true."""
    rows = [
        {"id": 1, "t": 0.0, "x": -2.0, "x_rate": 0.5, "y": 0.0, "y_rate": 1.0},
        {"id": 2, "t": 0.0, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 2.0},
    ]
    (answer,) = two_operands("(x = 2, y = 0)", 10, "ABS(a.x - b.x) >= 3 AND a.y = b.y WITHIN 20 SEMANTICS MAY", rows)
    assert (answer["valid_from"], answer["valid_to"]) == (0, 10)


@pytest.mark.parametrize(
    ("query", "later", "answers"),
    [
        ("a.x - b.x > 5 WITHIN 1", 0.0, 0), ("a.x - b.x >= 5 WITHIN 1", 0.0, 1),
        ("a.x - b.x < 3 AND a.x - b.x > 2 WITHIN 1", 0.0, 0), ("a.x > b.x WITHIN 1", 3.0, 0),
        ("a.x > b.x WITHIN 1.5", 3.0, 1),
    ],
)  # fmt: skip
def test_a_contact_with_an_open_side_is_no_answer(query: str, later: float, answers: int) -> None:
    """The first value falls from 5 to 3 in the two units of time in which it applies; the end is excluded."""
    rows = [
        {"id": 1, "t": 0.0, "x": 5.0, "x_rate": -1.0, "y": 0.0, "y_rate": 0.0},
        {"id": 2, "t": later, "x": 0.0, "x_rate": 0.0, "y": 0.0, "y_rate": 0.0},
    ]
    assert len(two_operands("0", 2, query, rows)) == answers
