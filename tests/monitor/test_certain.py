"""`certain_from` and `certain_to`: when the probability of an answer reaches the THRESHOLD."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Rows, seconds
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import INSTANT, is_same
from tests.monitor.local import run_of
from tests.monitor.strategies import monitor_cases
from tests.oracles.monitor import Answer, answers_with_regions
from tests.oracles.monitor_certain import certain_range, highest_at
from tests.oracles.monitor_regions import Region
from tests.splits import splits

LEVELS = (0.5, 0.9, 0.2, 1)
ERRORS = (1, 0.5, 2, 0, 4, 0.25)
#: The error of a probability that is found by search. The range of an answer whose highest probability is that near to
#: the level is not determined.
SEARCHED = 1e-6


def answers_and_regions(case: Case, rows: list[Answer]) -> Iterator[tuple[Answer, Region]]:
    """Each answer with its region of the oracle, if it has only one."""
    query = bound_query(case.workbook, case.query)
    labels = [operand.label for operand in query.operands]
    for expected, region in answers_with_regions(query, case.rows, case.relations):
        if not query.threshold or abs(expected["probability"] - query.threshold) > SEARCHED or query.threshold == 1:
            same = [row for row in rows if is_same(row, expected, labels)]
            if len(same) == 1:
                yield same[0], region


def assert_certain(answer: Answer, region: Region, level: float) -> None:
    """The range of the answer is that of the oracle, or ends where the highest probability is the level."""
    expected = certain_range(region, level)
    if expected is None:  # the region reaches the level between the steps of the oracle, or at an end
        assert highest_at(region, answer["certain_from"]) >= level - SEARCHED
        return
    begin, end = map(float, expected)
    assert answer["certain_from"] <= begin + INSTANT, (answer, expected)
    assert answer["certain_to"] >= end - INSTANT, (answer, expected)
    for name, limit in (("certain_from", begin), ("certain_to", end)):
        at = min(max(answer[name], answer["valid_from"]), answer["valid_to"])
        if abs(answer[name] - limit) > INSTANT and level < 1:
            assert highest_at(region, at) >= level - SEARCHED, (name, answer, expected)


def assert_all_certain(case: Case, rows: list[Answer]) -> None:
    level = bound_query(case.workbook, case.query).threshold
    for answer, region in answers_and_regions(case, rows):
        assert answer["valid_from"] <= answer["certain_from"] <= answer["certain_to"] <= answer["valid_to"]
        narrower = answer["certain_to"] - answer["certain_from"] < answer["valid_to"] - answer["valid_from"]
        event("part of the region is certain" if narrower else "all of the region is certain")
        assert_certain(answer, region, level)


@examples(60)
@given(monitor_cases(levels=LEVELS, tables=False, comparators=("<=", "<"), errors=ERRORS, crossed=True))
def test_the_range_is_that_of_the_oracle(case: Case) -> None:
    assert_all_certain(case, run_of(case, [case.rows]).rows())


@examples(30)
@given(monitor_cases(levels=LEVELS, tables=False, errors=ERRORS))
def test_several_intervals(case: Case) -> None:
    assert_all_certain(case, run_of(case, [case.rows]).rows())


@examples(30)
@given(monitor_cases(levels=LEVELS, tables=False, equalities=True, decimals=True, windows=[1, 0, 0.7, 20]))
def test_segments_and_points(case: Case) -> None:
    assert_all_certain(case, run_of(case, [case.rows]).rows())


@examples(30)
@given(st.data(), monitor_cases(levels=LEVELS, tables=False))
def test_any_split_gives_the_same_ranges(data: st.DataObject, case: Case) -> None:
    batches = data.draw(splits(case.rows, clock=seconds))
    assert_all_certain(case, run_of(case, batches, live=True).rows())


CARS = "CREATE STREAM cars KEY (car STRING) VALUE (x DOUBLE) TIME t INTEGER MODEL PREDICTED ERROR 5 PERIOD 30;"
TWO_CARS: Rows = {
    "cars": [{"car": "a", "t": 0, "x": 0.0, "x_rate": 10.0}, {"car": "b", "t": 0, "x": 100.0, "x_rate": 0.0}]
}


def two_cars(clauses: str) -> Answer:
    query = f"CREATE QUERY q AS MONITOR a, b FROM cars WHERE ABS(a.x - b.x) <= 20 AND a.car < b.car {clauses};"
    (answer,) = run_of(Case(CARS + query, "q", TWO_CARS, {}), [TWO_CARS]).rows()
    return answer


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("SEMANTICS MAY THRESHOLD 1", (9.0, 11.0)),
        ("SEMANTICS MAY THRESHOLD 0.5", (8.0, 12.0)),
        ("SEMANTICS MAY THRESHOLD 0.125", (7.5, 12.5)),
        ("THRESHOLD 0.125", (8.0, 12.0)),
        ("SEMANTICS MUST THRESHOLD 0.5", (9.0, 11.0)),
    ],
)
def test_by_hand(clauses: str, expected: tuple[float, float]) -> None:
    """The difference of two errors of 5 has a triangular density, and an error beyond 5 has probability 1/8."""
    answer = two_cars(clauses)
    assert (answer["certain_from"], answer["certain_to"]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("clauses", ["", "SEMANTICS MAY", "SEMANTICS MUST"])
def test_without_a_threshold_there_is_no_range(clauses: str) -> None:
    answer = two_cars(clauses)
    assert answer["certain_from"] is None
    assert answer["certain_to"] is None


@pytest.mark.parametrize(
    ("directions", "expected"),
    [((1, -1, -1), (1.0, 4.0)), ((1, 1, 1), (0.0, 1.5)), ((-1, -1, -1, -1), (2 * 0.25**0.25, 4.0))],
)
def test_three_and_four_names(directions: tuple[int, ...], expected: tuple[float, float]) -> None:
    """A value that goes from -1 to 1 is below 0 with probability 1 - t / 2, and the opposite one with t / 2.

    All instants vary independently, so the range follows from a product of such probabilities.
    """
    names = "abcd"[: len(directions)]
    linked = " AND ".join(f"ABS({one}.y - {other}.y) < 9" for one, other in pairwise(names))
    ordered = " AND ".join(f"{one}.id < {other}.id" for one, other in pairwise(names))
    below = " AND ".join(f"{name}.x <= 0" for name in names)
    workbook = (
        "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t INTEGER MODEL PREDICTED "
        "ERROR (x = 1, y = 0) PERIOD 4;"
        f"CREATE QUERY q AS MONITOR {', '.join(names)} FROM e WHERE {linked} AND {ordered} AND {below} "
        "WITHIN 4 SEMANTICS MAY THRESHOLD 0.25;"
    )
    rows: Rows = {
        "e": [
            {"id": name, "t": 0, "x": -direction, "x_rate": direction, "y": 0.0, "y_rate": 0.0}
            for name, direction in zip(names, directions, strict=True)
        ]
    }
    (answer,) = run_of(Case(workbook, "q", rows, {}), [rows]).rows()
    assert (answer["certain_from"], answer["certain_to"]) == pytest.approx(expected, abs=1e-7)
