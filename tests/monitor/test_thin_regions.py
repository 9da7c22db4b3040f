"""Regions without a volume: equalities and touching bounds leave planes, segments and points of matching instants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case
from tests.drawn import examples
from tests.monitor.local import run_of
from tests.oracles.monitor import Answer
from tests.oracles.monitor_bodies import HalfSpace, corners, earliest, is_empty

Draw = Callable[[st.SearchStrategy[Any]], Any]
#: The numbers of an operand, and of the one whose value is subtracted.
Form = tuple[int, int | None]

STREAM = "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE{}) TIME t DOUBLE MODEL PREDICTED ERROR {} PERIOD {};\n"


def answers_of(
    query: str, rows: Sequence[tuple], error: str = "0", period: float = 30, kind: str = "DOUBLE"
) -> list[Answer]:
    """The answers over rows (id, t, x, rate), or (id, t, x, rate, y, rate) for a second column."""
    names = ("id", "t", "x", "x_rate", "y", "y_rate")
    stream = STREAM.format(", y DOUBLE" if len(rows[0]) > 4 else "", error, period)
    case = Case(
        f"{stream}CREATE QUERY q AS MONITOR {query};\n",
        "q",
        {"e": [dict(zip(names, row, strict=False)) for row in rows]},
        {},
    )
    return run_of(case, [case.rows], 1).rows()


PAIR = "a, b FROM e AS a, e AS b WHERE a.id < b.id AND "


def test_two_equalities_leave_a_point() -> None:
    """When does one bus follow another at the same stop?"""
    (answer,) = answers_of(f"{PAIR} a.x = 5 AND b.x = 5 WITHIN 10", [("b1", 0.0, 0.0, 0.3), ("b2", 0.0, 1.0, 0.3)])
    assert answer["boundary"] == [pytest.approx((50 / 3, 40 / 3))]
    assert (answer["valid_from"], answer["valid_to"]) == pytest.approx((50 / 3, 50 / 3))
    assert answer["sample"] == pytest.approx((50 / 3, 40 / 3))


def test_an_equality_leaves_a_segment() -> None:
    (answer,) = answers_of(f"{PAIR} a.x = b.x WITHIN 3", [("a", 0.0, -3.0, -2.0), ("b", 2.0, -5.0, 1.0)])
    assert (answer["valid_from"], answer["valid_to"]) == pytest.approx((2, 10 / 3))
    assert len(answer["boundary"]) == 2


@pytest.mark.parametrize("window", ["", " WITHIN 3"])
@pytest.mark.parametrize(("errors", "bound", "n"), [("0.1", 0.2, 1), ("0.35", 0.7, 1), ("0.1", 0.19, 0)])
def test_predictions_that_must_be_as_near_as_the_errors_are_equal(
    errors: str, bound: float, n: int, window: str
) -> None:
    rows = [("a", 0.0, -3.0, 0.7), ("b", 0.0, -1.9, 0.2)]
    answers = answers_of(f"{PAIR} ABS(a.x - b.x) <= {bound}{window} SEMANTICS MUST", rows, errors)
    assert len(answers) == n
    if n and not window:
        assert (answers[0]["valid_from"], answers[0]["valid_to"]) == pytest.approx((2.2, 2.2))


def test_two_equalities_at_the_same_instant_leave_an_instant() -> None:
    """Both reach 1 after 7 tenths of a second; neither 0.3 / 0.7 nor 0.7 is a double."""
    rows = [("a", 0.1, 0.3, 1.0), ("b", 0.1, 0.51, 0.7)]
    (answer,) = answers_of(f"{PAIR} a.x = 1 AND b.x = 1", rows)
    assert (answer["valid_from"], answer["valid_to"]) == pytest.approx((0.8, 0.8))


@pytest.mark.parametrize("time", [0.0, 0.3, 1700000000.3])
def test_a_value_that_is_reached_when_the_prediction_ends_is_no_answer(time: float) -> None:
    assert answers_of("a FROM e WHERE a.x = 10", [("a", time, 9.7, 0.1)], period=3) == []
    assert answers_of("a FROM e WHERE a.x = 10", [("a", time, 9.8, 0.1)], period=3) != []


def test_large_numbers_cancel_out() -> None:
    """Coordinates of a map projection, and the error of their difference."""
    rows = [("a", 0.0, 4100000.1, 0.3), ("b", 0.0, 4100000.4, 0.2)]
    (answer,) = answers_of(f"{PAIR} a.x = b.x AND b.x = 4100001 WITHIN 2", rows)
    assert answer["boundary"] == [pytest.approx((3, 3), abs=1e-7)]
    (answer,) = answers_of(f"{PAIR} a.x - b.x = 4100000 WITHIN 2", [("a", 0.0, 4100000.1, 0.3), ("b", 0.0, 0.1, 0.3)])
    assert (answer["valid_from"], answer["valid_to"]) == pytest.approx((0, 30), abs=1e-7)


def test_the_highest_probability_on_a_segment() -> None:
    """Only where y is equal, which is where ta = 3 tb; x has an error of 1."""
    rows = [("a", 0.0, 0.0, 0.7, 0.0, 0.1), ("b", 0.0, 1.0, 0.3, 0.0, 0.3)]
    query = f"{PAIR} a.y = b.y AND a.x IN [2, 3] AND ABS(a.x - b.x) <= 2 WITHIN 20"
    (answer,) = answers_of(query, rows, "(x = 1, y = 0)")
    predictions = [(0.7 * 3 * tb, 1 + 0.3 * tb) for tb in (k / 2000 for k in range(20000))]
    expected = [both_hold(a, b) for a, b in predictions if 2 <= a <= 3 and abs(a - b) <= 2]
    assert answer["probability"] == pytest.approx(max(expected), abs=1e-4)
    assert answer["sample"][0] == pytest.approx(3 * answer["sample"][1])


def both_hold(a: float, b: float) -> float:
    """The probability of a + u in [2, 3] and |a + u - b - v| <= 2 for independent u and v in [-1, 1]."""
    low, high, steps, total = max(2.0, a - 1), min(3.0, a + 1), 400, 0.0
    for k in range(steps):
        true = low + (high - low) * (k + 0.5) / steps
        total += max(0.0, min(b + 1, true + 2) - max(b - 1, true - 2)) / 2
    return total / steps * (high - low) / 2


# ---------------------------------------------------------------- any number of operands


class Drawn:
    """One prediction per operand, and constraints that hold, or touch, at drawn instants."""

    def __init__(self, draw: Draw, operands: int) -> None:
        tenths = st.integers(-20, 20).map(lambda number: Fraction(number, 10))
        self.labels = "abcd"[:operands]
        self.period, self.within = Fraction(2), draw(st.sampled_from([Fraction(1, 2), Fraction(7, 10), Fraction(3)]))
        self.semantics = draw(st.sampled_from(["EXPECTED", "MUST", "MAY"]))
        self.error = Fraction(0) if self.semantics == "MAY" else draw(st.sampled_from([Fraction(0), Fraction(3, 10)]))
        self.times = [Fraction(draw(st.integers(0, 8)), 10) for _ in self.labels]
        self.values, self.rates = ([draw(tenths) for _ in self.labels] for _ in range(2))
        instants = [time + Fraction(draw(st.integers(0, 20)), 10) for time in self.times]
        lines = zip(self.values, self.rates, instants, self.times, strict=True)
        at = [value + rate * (instant - time) for value, rate, instant, time in lines]
        forms: list[Form] = list(itertools.pairwise(range(operands)))
        forms += draw(st.sampled_from([[], [(0, None)], [(1, None), (0, None)]]))
        self.constraints = []
        for u, v in forms:
            predicted = at[u] if v is None else at[u] - at[v]
            self.constraints.append(((u, v), *self._constraint(draw, predicted, self.error * (1 if v is None else 2))))

    def _constraint(self, draw: Draw, at: Fraction, error: Fraction) -> tuple[str, Fraction]:
        """A comparison that holds for the predicted value, or touches it."""
        op = draw(st.sampled_from(["<=", ">=", "<", ">"] if error else ["=", "=", "<=", ">=", "<", ">"]))
        slack = draw(st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 2)]))
        slack += error if self.semantics == "MUST" else 0
        return op, at if op == "=" else at + slack if "<" in op else at - slack

    def answers(self) -> list[Answer]:
        texts = [
            f"{self.labels[u]}.x{'' if v is None else f' - {self.labels[v]}.x'} {op} {float(bound)!r}"
            for (u, v), op, bound in self.constraints
        ]
        texts += [f"{label}.id = '{label}'" for label in self.labels]
        query = f"{', '.join(self.labels)} FROM {', '.join(f'e AS {label}' for label in self.labels)}"
        query += f" WHERE {' AND '.join(texts)} WITHIN {float(self.within)} SEMANTICS {self.semantics}"
        rows = zip(self.labels, map(float, self.times), map(float, self.values), map(float, self.rates), strict=True)
        return answers_of(query, list(rows), str(float(self.error)), float(self.period))

    def sides(self) -> list[HalfSpace]:
        dims = len(self.labels)
        unit = [tuple(Fraction(i == j) for i in range(dims)) for j in range(dims)]
        sides = []
        for j, time in enumerate(self.times):
            sides += [HalfSpace(unit[j], time + self.period, True), HalfSpace(_minus(unit[j]), -time)]
        for i, j in itertools.pairwise(range(dims)):
            apart = tuple(a - b for a, b in zip(unit[i], unit[j], strict=True))
            sides += [HalfSpace(apart, self.within), HalfSpace(_minus(apart), self.within)]
        for (u, v), op, bound in self.constraints:
            signs = [(u, 1)] + ([] if v is None else [(v, -1)])
            error = self.error * len(signs) if self.semantics == "MUST" else Fraction(0)
            a = tuple(sum((sign * self.rates[k] for k, sign in signs if k == j), Fraction(0)) for j in range(dims))
            base = sum(sign * (self.values[k] - self.rates[k] * self.times[k]) for k, sign in signs)
            is_open = op in "<>" and not error
            if op in ("<", "<=", "="):
                sides.append(HalfSpace(a, bound - error - base, is_open))
            if op in (">", ">=", "="):
                sides.append(HalfSpace(_minus(a), base - bound - error, is_open))
        return sides


def _minus(numbers: Sequence[Fraction]) -> tuple[Fraction, ...]:
    return tuple(-number for number in numbers)


def assert_exact(drawn: Drawn) -> None:
    sides = drawn.sides()
    points = corners(sides)
    answers = drawn.answers()
    if is_empty(sides, points):
        assert answers == []
        return
    (answer,) = answers
    event(f"{min(len(points), 4)} corners")
    assert answer["valid_to"] == pytest.approx(float(max(map(max, points))), abs=1e-9)
    if len(drawn.labels) < 4:  # takes seconds
        assert answer["valid_from"] == pytest.approx(float(earliest(sides)), abs=1e-9)
    boundary, expected = answer["boundary"], [tuple(map(float, point)) for point in points]
    for one, other in ((boundary, expected), (expected, boundary)):
        for corner in one:
            assert any(corner == pytest.approx(near, abs=1e-9) for near in other), (corner, other)


@examples(12)
@given(st.data())
def test_three_operands_have_the_exact_corners(data: st.DataObject) -> None:
    assert_exact(Drawn(data.draw, 3))


@examples(2)
@given(st.data())
def test_four_operands_have_the_exact_corners(data: st.DataObject) -> None:
    assert_exact(Drawn(data.draw, 4))


@examples(20)
@given(st.data())
def test_two_operands_have_the_exact_corners(data: st.DataObject) -> None:
    assert_exact(Drawn(data.draw, 2))
