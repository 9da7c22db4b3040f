"""The oracle itself, held against cases worked out by hand, instants on a grid, drawn truths, and given answers."""

from __future__ import annotations

import csv
import itertools
import json
import math
import operator
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from anabranch.language.binder import bind
from anabranch.language.typed import Constant, Operation, Reference, Typed, walk
from anabranch.monitor.question import BoundMonitor
from tests.drawn import drawn
from tests.language.workbooks import codes, declared
from tests.monitor.strategies import MAY, MUST, Case, monitor_cases
from tests.oracles.conditions import evaluate, holds
from tests.oracles.monitor import (
    SEARCH_ERROR,
    Point,
    Prediction,
    Region,
    answers,
    area,
    below,
    constraints,
    groups_of,
    matches,
    searched,
    together,
)

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "monitor"

Row = dict[str, Any]

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {error} PERIOD 4;
    CREATE STREAM f KEY (id STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 2;
    CREATE STREAM g KEY (id STRING) VALUE (x DOUBLE) TIME t TIMESTAMP MODEL PREDICTED ERROR 0 PERIOD 0.05 MINUTES;
    CREATE RELATION near (a STRING, b STRING);
"""


def bound(question: str, error: str = "0") -> BoundMonitor:
    """The question over the streams above; `error` is that of e."""
    return bound_query(f"{STREAMS.format(error=error)} CREATE QUERY q AS MONITOR {question};", "q")


def bound_query(workbook: str, name: str) -> BoundMonitor:
    catalog = declared(workbook)
    entry = catalog.query(name)
    assert entry is not None
    query = bind(entry, catalog)
    assert isinstance(query, BoundMonitor)
    return query


def row(id_: str, t: Any, x: Any = 0, x_rate: Any = 0, y: Any = 0, y_rate: Any = 0) -> Row:
    return {"id": id_, "t": t, "x": x, "x_rate": x_rate, "y": y, "y_rate": y_rate}


def asked(question: str, *rows: Row, error: str = "0", **others: Any) -> list[dict[str, Any]]:
    """The answers over the stream e; `others` are the rows of other streams."""
    return answers(bound(question, error), {"e": rows, **others}, {"near": {("a", "b")}})


def spans(found: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The keys and the validity of answers."""
    return [(*_keys(each), each["valid_from"], each["valid_to"]) for each in found]


def _keys(answer: Mapping[str, Any]) -> list[str]:
    return [each["id"] for each in answer.values() if isinstance(each, dict)]


def half(number: int) -> Fraction:
    return Fraction(number, 2)


# ---------------------------------------------------------------- predictions


def test_the_example_of_the_language() -> None:
    question = """a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 400 AND ABS(a.y - b.y) <= 400 AND a.id < b.id
        WITHIN 3 SECONDS SEMANTICS MAY THRESHOLD 0.5"""
    cars = [row("a", 0, 0, 100), row("b", 1, 900, -100, 100, 0)]
    (found,) = asked(question, *cars, error="(x = 25, y = 10)")
    assert list(found) == ["a", "b", "valid_from", "valid_to", "boundary", "probability"]
    assert (found["a"], found["b"]) == ({"id": "a", "t": 0}, {"id": "b", "t": 1})
    # The difference is 1000 - 100 (ta + tb), and may be 450 from ta + tb = 5.5 on: first when both are 2.75.
    assert (found["valid_from"], found["valid_to"], found["probability"]) == (Fraction("2.75"), 5, 1)
    assert found["boundary"] == ((Fraction("1.25"), Fraction("4.25")), (4, half(3)), (4, 5), (2, 5))


def test_a_prediction_applies_until_its_period_ends_or_the_next_one_begins() -> None:
    rows = [row("a", 0), row("a", 3), row("a", 20), row("b", 1)]
    assert spans(asked("a FROM e WHERE a.x = 0", *rows)) == [("a", 0, 3), ("a", 3, 7), ("a", 20, 24), ("b", 1, 5)]
    # Rows that WHERE does not let through, and rows without a value, end the one before too.
    assert spans(asked("a FROM e WHERE a.x = 0 AND a.t < 3", *rows))[0] == ("a", 0, 3)
    assert spans(asked("a FROM e WHERE a.x = 0", row("a", 0), row("a", 3, None))) == [("a", 0, 3)]


def test_an_answer_about_one_operand_has_no_boundary() -> None:
    (found,) = asked("Car FROM e WHERE car.x < 5", row("a", 1, 3, 1))
    assert found == {"Car": {"id": "a", "t": 1}, "valid_from": 1, "valid_to": 3, "probability": 1}


def test_a_row_given_twice_is_one_prediction_and_a_row_without_key_or_time_is_none() -> None:
    rows = [row("a", 0), row("a", 0), row("a", -0.0), {**row("a", 0), "note": 1}]
    rows += [row(None, 0), row("c", None), row("d", math.nan)]
    assert spans(asked("a FROM e WHERE a.x = 0", *rows)) == [("a", 0, 4)]


def test_two_predictions_of_one_key_and_time_both_apply() -> None:
    rows = [row("a", 0, 1), row("a", 0, 2), row("a", 1, 9)]
    assert spans(asked("a FROM e WHERE a.x < 5", *rows)) == [("a", 0, 1), ("a", 0, 1)]


def test_what_is_not_known_matches_nothing() -> None:
    rows = [row("a", 0, None), row("b", 0, 1, None), row("c", 0, math.nan), row("d", 0, 1, 1, None)]
    assert spans(asked("a FROM e WHERE a.x < 5", *rows)) == [("d", 0, 4)]
    assert asked("a FROM e WHERE a.x < NULL", row("a", 0)) == []


def test_pairs_are_of_different_keys_in_both_orders_unless_where_says_otherwise() -> None:
    rows = [row("a", 0), row("a", 1), row("b", 0)]
    question = "a, b FROM e WHERE ABS(a.x - b.x) <= 1"
    assert spans(asked(question, *rows)) == [("a", "b", 0, 1), ("a", "b", 1, 4), ("b", "a", 0, 1), ("b", "a", 1, 4)]
    assert spans(asked(f"{question} AND a.id < b.id AND a.t > 0", *rows)) == [("a", "b", 1, 4)]
    assert len(asked(f"{question} AND near(a.id, b.id)", *rows)) == 2
    assert len(asked(f"{question} AND (a.id = 'b' OR b.id IN ('c', NULL))", *rows)) == 2


def test_equal_keys_of_two_streams_are_different_things() -> None:
    question = "a, b FROM e AS a, f AS b WHERE ABS(a.x - b.x) <= 1"
    assert spans(asked(question, row("a", 0), f=[row("a", 1)])) == [("a", "a", 1, 3)]


def test_times_may_be_timestamps() -> None:
    start = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
    rows = [row("a", start, 0, 1), row("b", start + timedelta(seconds=1), 3, 0)]
    found = answers(bound("a, b FROM g WHERE ABS(a.x - b.x) <= 1 WITHIN 1"), {"g": rows})
    (first, _) = found
    epoch = int(start.timestamp())
    assert (first["valid_from"] - epoch, first["valid_to"] - epoch) == (2, 4)
    assert first["a"] == {"id": "a", "t": start}


# ---------------------------------------------------------------- instants


def test_contact_at_an_open_end_alone_is_no_match() -> None:
    # a applies on [0, 4), b from 4 on.
    rows = [row("a", 0), row("b", 4)]
    assert asked("a, b FROM e WHERE ABS(a.x - b.x) <= 1", *rows) == []
    assert spans(asked("a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.id < b.id WITHIN 1", *rows)) == [("a", "b", 4, 5)]
    # The value is 4 at the end, which is not part of it.
    assert asked("a FROM e WHERE a.x >= 4", row("a", 0, 0, 1)) == []
    assert asked("a FROM e WHERE a.x > 0", row("a", 0, 0, -1)) == []


def test_contact_at_a_closed_end_is_a_match_without_length() -> None:
    (found,) = asked("a FROM e WHERE a.x >= 0", row("a", 0, 0, -1))
    assert (found["valid_from"], found["valid_to"], found["probability"]) == (0, 0, 1)
    question = "a, b FROM e WHERE ABS(a.x - b.x) {} 2 AND a.id < b.id WITHIN 1"
    rows = [row("a", 0, 2, 1), row("b", 0, 0, -1)]
    (found,) = asked(question.format("<="), *rows)
    assert found["boundary"] == ((0, 0),)
    assert asked(question.format("<"), *rows) == []


def test_a_region_that_ends_at_an_open_end_is_valid_to_its_supremum() -> None:
    assert spans(asked("a FROM e WHERE a.x < 2", row("a", 0, 0, 1))) == [("a", 0, 2)]
    assert spans(asked("a FROM e WHERE a.x > 2", row("a", 0, 0, 1))) == [("a", 2, 4)]


def test_the_range_of_the_later_instant_minds_the_diagonal() -> None:
    # ta + tb >= 3: the earliest is when both are 1.5, in the middle of a side.
    question = "a, b FROM e WHERE ABS(a.x - b.x) >= 3 AND a.id < b.id WITHIN 4"
    (found,) = asked(question, row("a", 0, 0, 1), row("b", 0, 0, -1))
    assert (found["valid_from"], found["valid_to"]) == (half(3), 4)
    assert found["boundary"] == ((0, 3), (3, 0), (4, 0), (4, 4), (0, 4))


def test_within_0_compares_at_the_same_instant() -> None:
    question = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.id < b.id"
    (found,) = asked(question, row("a", 0, 0, 1), row("b", 1, 3, 0))
    assert found["boundary"] == ((2, 2), (4, 4))


@pytest.mark.parametrize(
    ("comparison", "found"),
    [
        ("<= 1", [(1, 3)]), ("< 1", [(1, 3)]), (">= 1", [(0, 1), (3, 4)]), ("> 1", [(0, 1), (3, 4)]),
        ("= 1", [(1, 1), (3, 3)]), ("<> 1", [(0, 1), (1, 3), (3, 4)]), ("= 0", [(2, 2)]), ("<> 0", [(0, 2), (2, 4)]),
        ("<= 0", [(2, 2)]), ("< 0", []), (">= 0", [(0, 4)]), ("> 0", [(0, 2), (2, 4)]), ("= 2", [(0, 0)]),
        ("> 2", []), (">= 2", [(0, 0)]), ("<= -1", []), ("> -1", [(0, 4)]), ("= -1", []), ("<> -1", [(0, 4)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("semantics", ["EXPECTED", "MAY", "MUST"])
def test_every_comparator_without_error(comparison: str, found: list[tuple[int, int]], semantics: str) -> None:
    # The difference goes from -2 at 0 to 2 at 4, an end that no longer counts.
    question = f"a, b FROM e WHERE ABS(a.x - b.x) {comparison} AND a.id < b.id SEMANTICS {semantics}"
    answered = asked(question, row("a", 0, 0, 1), row("b", 0, 2, 0))
    assert [(each["valid_from"], each["valid_to"]) for each in answered] == found
    assert {each["probability"] for each in answered} <= {1}


@pytest.mark.parametrize(
    ("constraint", "expected", "may", "must"),
    [
        ("a.x <= 2", (0, 2), (0, 3), (0, 1)), ("a.x < 2", (0, 2), (0, 3), (0, 1)), ("2 < a.x", (2, 4), (1, 4), (3, 4)),
        ("a.x >= 2", (2, 4), (1, 4), (3, 4)), ("a.x IN [1, 2]", (1, 2), (0, 3), None),
        ("a.x IN [1, 3.5]", (1, 3.5), (0, 4), (2, 2.5)), ("a.x >= 3 AND a.x <= 1", None, None, None),
    ],
)  # fmt: skip
def test_may_is_wider_by_the_error_and_must_narrower(constraint: str, expected: Any, may: Any, must: Any) -> None:
    for semantics, span in (("EXPECTED", expected), (MAY, may), (MUST, must)):
        found = asked(f"a FROM e WHERE {constraint} SEMANTICS {semantics}", row("a", 0, 0, 1), error="1")
        assert spans(found) == ([] if span is None else [("a", *span)]), semantics


def test_a_single_value_does_not_count_where_there_is_an_error() -> None:
    for semantics in (MAY, MUST):
        found = asked(f"a FROM e WHERE a.x <> 2 SEMANTICS {semantics}", row("a", 0, 0, 1), error="1")
        assert spans(found) == [("a", 0, 4)]
    assert spans(asked("a FROM e WHERE a.x <> 2", row("a", 0, 0, 1), error="1")) == [("a", 0, 2), ("a", 2, 4)]
    # Predicted to be equal, with probability 0.
    assert asked("a, b FROM e WHERE ABS(a.x - b.x) <= 0", row("a", 0), row("b", 0), error="1") == []


def test_may_is_not_met_at_the_very_end_of_the_error() -> None:
    assert asked("a FROM e WHERE a.x <= 2 SEMANTICS MAY", row("a", 0, 3, 0), error="1") == []
    # The difference goes from -2 to 2, and may be 2 or more in size but where it is predicted to be 0.
    question = "a, b FROM e WHERE ABS(a.x - b.x) >= 2 AND a.id < b.id SEMANTICS MAY"
    found = asked(question, row("a", 0, 0, 1), row("b", 0, 2, 0), error="1")
    assert [(each["valid_from"], each["valid_to"]) for each in found] == [(0, 2), (2, 4)]


def test_columns_leave_a_region_for_each_choice_of_sides() -> None:
    question = "a, b FROM e WHERE ABS(a.x - b.x) > 1 AND ABS(a.y - b.y) > 1 AND a.id < b.id WITHIN 9"
    found = asked(question, row("a", 0, 0, 1, 0, 0), row("b", 0, 2, 0, -2, -1))
    assert [(each["valid_from"], each["valid_to"]) for each in found] == [(0, 4), (3, 4)]
    question = "a, b FROM e WHERE ABS(a.x - b.x) > 1 AND ABS(a.y - b.y) > 1 AND a.id < b.id WITHIN 9"
    found = asked(question, row("a", 0, 0, 1, 2, 0), row("b", 0, 2, 0, 0, 1))
    assert [area(each["boundary"]) for each in found] == [1, 1, 1, 1]


# ---------------------------------------------------------------- probabilities


@pytest.mark.parametrize(
    ("distance", "errors", "probability"),
    [
        (0, (1,), 0.5), (-1, (1,), 0), (half(1), (1,), 0.75), (2, (1,), 1), (math.inf, (1,), 1), (-math.inf, (1, 2), 0),
        (0, (1, 2), 0.5), (-3, (1, 2), 0), (3, (1, 2), 1), (2, (1, 2), 1 - 1 / 16), (1, (1, 2), 0.75),
        (1, (0, 2), 0.75), (1, (1, 1), 0.875),
    ],
)  # fmt: skip
def test_the_distribution_of_errors(distance: Any, errors: tuple[int, ...], probability: float) -> None:
    assert below(distance, [Fraction(error) for error in errors]) == probability
    assert below(-distance, [Fraction(error) for error in errors]) == 1 - probability


def test_the_distribution_of_a_difference_is_an_integral() -> None:
    # Of the distribution of one error, over the values of the other: the mean of both of its ends in many small steps.
    for distance, one, other in itertools.product(np.linspace(-3, 3, 13), (0.5, 1.0, 1.5), (0.25, 2.0)):
        steps = np.linspace(-other, other, 4001)
        inner = np.clip((distance + steps + one) / (2 * one), 0, 1)
        integral = (inner[:-1] + inner[1:]).mean() / 2
        assert below(distance, [one, other]) == pytest.approx(integral, abs=1e-6)


def test_the_formula_of_the_paper() -> None:
    # Of its fifteen cases one where both bounds cut a slope: [l1, u1] = [-2, 2] and [l2, u2] = [-0.75, 1.25].
    streams = "".join(
        f"CREATE STREAM {name} KEY (id STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {error} PERIOD 4;"
        for name, error in (("e", 2), ("f", 1))
    )
    for limit in (2.5, 1.5):
        question = f"MONITOR a, b FROM e AS a, f AS b WHERE ABS(a.x - b.x) <= {limit} SEMANTICS MAY"
        query = bound_query(f"{streams} CREATE QUERY q AS {question};", "q")
        (found,) = answers(query, {"e": [row("a", 0)], "f": [row("b", 0, 0.25)]})
        above, under = 2 + 0.75 - limit, 2 + 1.25 - limit
        assert found["probability"] == 1 - (above**2 + under**2) / (2 * 4 * 2)


def test_the_highest_probability_is_where_the_difference_is_smallest() -> None:
    question = "a, b FROM e WHERE ABS(a.x - b.x) <= 2 AND a.id < b.id SEMANTICS MAY"
    # The difference falls from 6 to 2, at an end that is open: the supremum is not reached.
    (found,) = asked(question, row("a", 0, 6, -1), row("b", 0), error="1")
    assert (found["valid_from"], found["valid_to"], found["probability"]) == (2, 4, half(1))


def test_the_highest_probability_may_be_in_the_middle_of_two_bounds() -> None:
    (found,) = asked("a FROM e WHERE a.x IN [1, 2]", row("a", 0, 0, 1), error="1")
    assert found["probability"] == half(1)
    question = "a, b FROM e WHERE ABS(a.x - b.x) <= 4 AND ABS(a.x - b.x) >= 2 AND a.id < b.id"
    (found,) = asked(question, row("a", 0, 0, 1), row("b", 0), error="1")
    assert found["probability"] == Fraction(3, 4)


def test_different_columns_multiply() -> None:
    question = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND ABS(a.y - b.y) <= 1 AND a.id < b.id"
    (found,) = asked(question, row("a", 0), row("b", 0), error="1")
    assert found["probability"] == pytest.approx(9 / 16, abs=SEARCH_ERROR)
    # One of them is best at 1, the other at 3, and both together between them.
    (found,) = asked(f"{question} SEMANTICS MAY", row("a", 0, 1, -1, 3, -1), row("b", 0), error="2")
    best = max(_triangle(1 - t, 1, 4) * _triangle(3 - t, 1, 4) for t in np.linspace(0, 4, 4001))
    assert found["probability"] == pytest.approx(best, abs=SEARCH_ERROR)


def _triangle(center: float, limit: float, reach: float) -> float:
    """The probability that a triangular law on [center - reach, center + reach] is within the limit."""

    def upto(z: float) -> float:
        return 0.5 + z / reach - math.copysign(z * z, z) / (2 * reach**2)

    low, high = (min(max(end - center, -reach), reach) for end in (-limit, limit))
    return upto(high) - upto(low)


def test_constraints_that_share_a_value_are_taken_together() -> None:
    # A and B are uniform on [-1, 1]: A < 0 and |A - B| <= 1 hold on half of the 3/4 of the square.
    question = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.x {} AND a.id < b.id SEMANTICS MAY"
    (found,) = asked(question.format("< 0"), row("a", 0), row("b", 0), error="1")
    assert found["probability"] == pytest.approx(3 / 8, abs=SEARCH_ERROR)
    # A is above 0.5, and B at least A - 1: the integral of 2 - A.
    (found,) = asked(question.format("> 0.5"), row("a", 0), row("b", 0), error="1")
    assert found["probability"] == pytest.approx(0.625 / 4, abs=SEARCH_ERROR)
    # Each alone may be, but not both: a is above 5, b below 3.
    impossible = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.x > 5 AND b.x < 3 SEMANTICS MAY"
    assert asked(impossible, row("a", 0, 4.5), row("b", 0, 3.5), error="1") == []
    assert len(asked(impossible.replace("3 S", "4.5 S"), row("a", 0, 4.5), row("b", 0, 3.5), error="1")) == 1


def test_a_region_of_several_convex_sets_has_no_polygon() -> None:
    # The difference may be 1 or more on either side, and where a is above 0 the one reaches further than the other.
    question = "a, b FROM e WHERE ABS(a.x - b.x) >= 1 AND a.x >= 0 AND a.id < b.id WITHIN 9 SEMANTICS MAY"
    (found,) = asked(question, row("a", 0, -2, 1), row("b", 0, -2, 1), error="1")
    assert found["boundary"] is None
    assert (found["valid_from"], found["valid_to"], found["probability"]) == (1, 4, 1)


def test_the_threshold_keeps_what_reaches_it() -> None:
    question = "a FROM e WHERE a.x < 0 THRESHOLD {}"
    assert len(asked(question.format(0.5), row("a", 0, 0, -1 / 8), error="1")) == 1
    (found,) = asked(question.format(0.75), row("a", 0, 0, -1 / 8), error="1")
    assert found["probability"] == Fraction(3, 4)
    assert asked(question.format(0.76), row("a", 0, 0, -1 / 8), error="1") == []


@pytest.mark.parametrize(
    "condition",
    ["ABS(a.x) < 1", "a.x - b.x < 1", "a.x < b.x", "NOT a.x < 1", "ABS(a.x - a.y) < 1", "a.x + 1 < 2"],
)
def test_constraints_of_another_shape_are_refused(condition: str) -> None:
    with pytest.raises(NotImplementedError):
        asked(f"a, b FROM e WHERE {condition}", row("a", 0), row("b", 0))


@pytest.mark.parametrize("condition", ["(a.x < 1 OR a.x > 2)", "a.x IS NULL", "ABS(a.x - 1) < 1", "a.x NOT IN [0, 1]"])
def test_what_is_no_constraint_is_refused_by_the_binder(condition: str) -> None:
    workbook = f"{STREAMS.format(error='0')} CREATE QUERY q AS MONITOR a, b FROM e WHERE {condition};"
    assert codes(workbook) == ["not-a-constraint"]


def test_equality_with_an_error_is_refused_by_the_binder() -> None:
    workbook = f"{STREAMS.format(error='1')} CREATE QUERY q AS MONITOR a FROM e WHERE a.x = 1;"
    assert codes(workbook) == ["equality-of-uncertain"]


# ---------------------------------------------------------------- instants on a grid


class Literal:
    """WHERE and WITHIN as they stand, at one pair of instants; sharing with the oracle what a prediction is."""

    def __init__(self, query: BoundMonitor, case: Case, pair: tuple[Prediction, Prediction]) -> None:
        self.query = query
        self.pair = pair
        self.relations = {name: set(rows) for name, rows in case.relations.items()}
        self.atoms = [node for each in query.conditions for node in walk(each) if _is_atom(node)]

    def applies(self, point: Point) -> bool:
        """Whether both predictions apply, and the instants are near enough."""
        within = self.query.within if len(self.query.operands) == 2 else 0
        inside = all(each.time <= at < each.end for each, at in zip(self.pair, point, strict=True))
        return inside and abs(point[0] - point[1]) <= within

    def bindings(self, point: Point) -> dict[tuple[str, int], dict[str, Any]]:
        """The columns of the operands, values as predicted."""
        found = {}
        for operand, own, at in zip(self.query.operands, self.pair, point, strict=False):
            lines = {name: line.start + line.rate * at for name, line in own.lines.items() if line is not None}
            found[operand.name, 1] = {**own.columns, **dict.fromkeys(own.lines), **lines}
        return found

    def expected(self, point: Point) -> bool:
        """Whether the predictions meet WHERE."""
        bindings = self.bindings(point)
        return self.applies(point) and all(holds(each, bindings, self.relations) for each in self.query.conditions)

    def truths(self, point: Point, count: int, chance: np.random.Generator) -> Any:
        """Whether WHERE is true for each of so many drawn truths, as an array."""
        drawn_ = {}
        for (name, _), columns in self.bindings(point).items():
            own = self.pair[[operand.name for operand in self.query.operands].index(name)]
            for column, line in own.lines.items():
                if line is not None:
                    error = float(line.error)
                    drawn_[name, column] = float(columns[column]) + chance.uniform(-error, error, count)
        met = np.ones(count, dtype=bool)
        for condition in self.query.conditions:
            if any((node.owner, node.name) in drawn_ for node in walk(condition) if isinstance(node, Reference)):
                met &= _array(condition, drawn_)
        return met

    def is_true_between(self, start: Point, end: Point) -> bool:
        """Whether the predictions meet WHERE all the way from one point to another.

        It is asked where a constraint changes, and halfway between.
        """
        shares = {Fraction(0), Fraction(1)}
        for atom in self.atoms:
            (linear, limit) = sorted(atom.arguments, key=lambda each: isinstance(each, Constant))
            linear = linear.arguments[0] if isinstance(linear, Operation) and linear.op == "abs" else linear
            at, to = (evaluate(linear, self.bindings(point), {}) for point in (start, end))
            for level in (limit.value, -limit.value) if at != to else ():
                shares.add((Fraction(level) - at) / (to - at))
        inside = sorted(share for share in shares if 0 <= share <= 1)
        inside += [(one + other) / 2 for one, other in itertools.pairwise(inside)]
        return all(
            self.expected(tuple(a + share * (b - a) for a, b in zip(start, end, strict=True))) for share in inside
        )


def _is_atom(node: Typed) -> bool:
    """Whether this is a comparison of values with a number."""
    return (
        isinstance(node, Operation)
        and node.op in _ARRAYS
        and any(isinstance(each, Constant) and isinstance(each.value, int | float) for each in node.arguments)
        and any(isinstance(each, Reference) and each.name in ("x", "y", "z") for each in walk(node))
    )


_ARRAYS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


def _array(tree: Typed, values: Mapping[tuple[str, str], Any]) -> Any:
    """The value of a condition for arrays of values."""
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Reference):
        return values[tree.owner or "", tree.name]
    assert isinstance(tree, Operation)
    arguments = [_array(argument, values) for argument in tree.arguments]
    return {**_ARRAYS, "-": operator.sub, "abs": abs, "negate": operator.neg}[tree.op](*arguments)


def grid(pair: tuple[Prediction, Prediction], within: float, steps: int = 8) -> list[Point]:
    """Instants of both predictions, their ends too; on the diagonal alone where they must be the same."""
    first, second = (
        [each.time + (each.end - each.time) * Fraction(k, steps) for k in range(steps + 1)] for each in pair
    )
    if not within:
        return [(at, at) for at in sorted({*first, *second})]
    return list(itertools.product(first, second))


def literals(query: BoundMonitor, case: Case) -> Iterator[tuple[Literal, list[Region], list[Point]]]:
    """Each pair of predictions of a case that WHERE lets through, and points to look at."""
    for pair, regions in matches(query, case.rows, case.relations):
        yield Literal(query, case, pair), regions, grid(pair, query.within if len(query.operands) == 2 else 0)


def homes(regions: Sequence[Region], point: Point) -> list[int]:
    """The regions that a point is in."""
    return [place for place, region in enumerate(regions) if any(piece.has(point) for piece in region.pieces)]


@settings(max_examples=80)
@given(case=monitor_cases(semantics=["EXPECTED"]))
def test_the_regions_hold_the_instants_at_which_where_is_true(case: Case) -> None:
    for literal, regions, points in literals(bound_query(case.workbook, case.query), case):
        inside = []
        for point in points:
            found = homes(regions, point)
            assert len(found) == literal.expected(point)
            inside += [(point, found[0])] if found else []
            for place in found:
                assert regions[place].valid[0] <= max(point) <= regions[place].valid[1]
        # Two points are in one region if, and (here) only if, nothing between them is false.
        chosen = inside[:: max(1, len(inside) // 8)]
        for (one, home), (other, other_home) in itertools.combinations(chosen, 2):
            assert literal.is_true_between(one, other) == (home == other_home)


@settings(max_examples=80)
@given(case=monitor_cases(semantics=["EXPECTED"]))
def test_where_is_true_up_to_every_corner_and_validity_reaches_them(case: Case) -> None:
    for literal, regions, _ in literals(bound_query(case.workbook, case.query), case):
        for region in regions:
            corners = region.boundary
            assert corners is not None
            middle = tuple(sum(along) / len(corners) for along in zip(*corners, strict=True))
            assert literal.expected(middle)
            for corner in corners:
                near = tuple(c + (m - c) / 1024 for c, m in zip(corner, middle, strict=True))
                assert literal.expected(near)
            # The later instant takes its extremes at corners, or where a side crosses the diagonal.
            many = [
                _between(a, b, k) for a, b in itertools.combinations_with_replacement(corners, 2) for k in range(33)
            ]
            later = [max(point) for point in many]
            start, end = region.valid
            assert max(later) == end
            assert start <= min(later) <= start + (end - start) / 8


def _between(one: Point, other: Point, share: int) -> Point:
    return tuple(a + (b - a) * Fraction(share, 32) for a, b in zip(one, other, strict=True))


def test_regions_beside_each_other_are_not_connected_by_neighbours() -> None:
    # Every step from one region to the next passes what is forbidden, though it is a line without width.
    question = "a, b FROM e WHERE ABS(a.x - b.x) <> 1 AND a.y <> 2 AND a.id < b.id WITHIN 9"
    query = bound(question)
    case = Case("", "q", {"e": [row("a", 0, 0, 1, 0, 1), row("b", 0, 2, 0)]}, {})
    ((pair, regions),) = matches(query, case.rows)
    literal = Literal(query, case, pair)
    points = [point for point in grid(pair, 9, 10) if literal.expected(point)]
    linked = {point: {point} for point in points}
    for one, other in itertools.combinations(points, 2):
        near = max(abs(a - b) for a, b in zip(one, other, strict=True)) <= Fraction(4, 10)
        if near and linked[one] is not linked[other] and literal.is_true_between(one, other):
            linked[one] |= linked[other]
            linked |= dict.fromkeys(linked[other], linked[one])
    parts = {id(part): part for part in linked.values()}.values()
    assert len(parts) == len(regions) == 4
    assert all(len({homes(regions, point)[0] for point in part}) == 1 for part in parts)


# ---------------------------------------------------------------- drawn truths


def certain(literal: Literal, point: Point) -> bool:
    """Whether the constraints without errors are met: those are not part of a probability."""
    bindings = literal.bindings(point)
    streams = {operand.name: own for operand, own in zip(literal.query.operands, literal.pair, strict=False)}
    errors = {
        (name, column): line is None or line.error
        for name, own in streams.items()
        for column, line in own.lines.items()
    }
    return all(
        holds(each, bindings, literal.relations)
        for each in literal.query.conditions
        if not any(errors.get((node.owner, node.name)) for node in walk(each) if isinstance(node, Reference))
    )


def probability(region_groups: Sequence[Any], point: Point) -> Fraction:
    return math.prod((group.probability(point) for group in region_groups), start=Fraction(1))


@settings(max_examples=60)
@given(case=monitor_cases(semantics=["EXPECTED", "MAY"], thresholds=False))
def test_the_probability_at_an_instant_is_that_of_drawn_truths(case: Case) -> None:
    chance = np.random.default_rng(7)
    query = bound_query(case.workbook, case.query)
    for literal, regions, _ in itertools.islice(literals(query, case), 3):
        for region in regions:
            (piece, *_) = region.pieces
            middle = tuple(sum(along) / len(piece.corners) for along in zip(*piece.corners, strict=True))
            found = literal.truths(middle, 20_000, chance).mean()
            assert float(probability(region.groups, middle)) == pytest.approx(found, abs=0.016)


@settings(max_examples=60)
@given(case=monitor_cases(thresholds=False))
def test_no_instant_of_a_region_is_more_probable_than_the_region(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    chance = random.Random(7)
    for _, regions in itertools.islice(matches(query, case.rows, case.relations), 4):
        for region in regions:
            most = region.probability
            assert 0 <= most <= 1
            for piece, _ in itertools.product(region.pieces, range(60)):
                weights = [Fraction(chance.randrange(1, 100)) ** 3 for _ in piece.corners]
                total = sum(weights)
                point = tuple(
                    sum(w * at for w, at in zip(weights, along, strict=True)) / total
                    for along in zip(*piece.corners, strict=True)
                )
                assert probability(region.groups, point) <= most + (0 if isinstance(most, Fraction) else SEARCH_ERROR)


def test_the_search_finds_the_highest_point_of_a_polygon() -> None:
    corners = [(0.0, 0.0), (5.0, 1.0), (6.0, 4.0), (1.0, 3.0)]
    for x, y in ((2.3, 1.7), (5.0, 1.0), (0.5, 1.5), (3.5, 3.5)):
        value = searched(corners, lambda point, x=x, y=y: 1 / (1 + abs(point[0] - x) + (point[1] - y) ** 2))
        assert value == pytest.approx(1, abs=SEARCH_ERROR)
    # On one side of it, and on a segment and a point.
    assert searched(corners, lambda point: point[1] / 8 + point[0] / 100) == pytest.approx(0.56, abs=SEARCH_ERROR)
    assert searched(corners[:2], lambda point: 1 - abs(point[0] - math.pi) / 9) == pytest.approx(1, abs=SEARCH_ERROR)
    assert searched(corners[:1], lambda point: 0.25 + point[0]) == 0.25


@settings(max_examples=80)
@given(case=monitor_cases(thresholds=False))
def test_must_is_probability_1_and_may_is_probability_above_0(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    _, numbers = constraints(query)
    chance = np.random.default_rng(7)
    may, must = (list(literals(replace(query, semantics=semantics), case)) for semantics in (MAY, MUST))
    for (literal, may_be, points), (_, must_be, _) in zip(may, must, strict=True):
        groups = groups_of(literal.pair, numbers)
        assert groups is not None
        for point in points:
            if literal.applies(point):
                share = probability(groups, point) if certain(literal, point) else 0
                assert len(homes(may_be, point)) == (share > 0)
                assert len(homes(must_be, point)) == (share == 1)
                met = literal.truths(point, 50, chance)
                assert share > 0 or not met.any()
                assert share < 1 or met.all()


@settings(max_examples=60)
@given(case=monitor_cases(operands=[1]))
def test_one_operand_is_its_line_in_time(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    for answer in answers(query, case.rows, case.relations):
        assert list(answer) == ["a", "valid_from", "valid_to", "probability"]
        assert isinstance(answer["probability"], Fraction) or len(constraints(query)[1]) > 1


# ---------------------------------------------------------------- given answers


def read_rows(file: Path) -> list[Row]:
    """The rows of a CSV file, numbers where they are."""

    def value(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text or None

    with file.open(newline="") as lines:
        return [{name: value(text) for name, text in each.items()} for each in csv.DictReader(lines)]


def given_queries() -> dict[str, Any]:
    """The queries of the case folder and what is expected of each, where it is there."""
    return json.loads((CASES / "expected.json").read_text()) if CASES.is_dir() else {}


@pytest.mark.skipif(not CASES.is_dir(), reason="the case folder is not beside the project")
@pytest.mark.parametrize("name", given_queries())
def test_given_answers(name: str) -> None:
    expected = given_queries()[name]
    query = bound_query((CASES / "workbook.abq").read_text(), name)
    found = answers(query, {stream.name: read_rows(CASES / stream.source.path) for stream in query.streams})
    # A contact that lasts no time is left to the rounding of who computes it.
    lasting = [each for each in found if each["valid_to"] - each["valid_from"] >= expected["skip_small"]]
    structs = {"ta": "a", "tb": "b"}
    shown = [tuple(each[structs[on]]["t"] for on in expected["on"]) for each in lasting]
    assert sorted(shown) == sorted(tuple(each[on] for on in expected["on"]) for each in expected["rows"])
    by_times = dict(zip(shown, lasting, strict=True))
    for wanted in expected["rows"]:
        answer = by_times[tuple(wanted[on] for on in expected["on"])]
        for column, tolerance in (("valid_from", 1e-6), ("valid_to", 1e-6), ("probability", SEARCH_ERROR)):
            assert float(answer[column]) == pytest.approx(wanted[column], abs=tolerance), column


# ---------------------------------------------------------------- the strategies


def test_drawn_cases_are_of_every_kind_and_have_answers() -> None:
    cases = drawn(monitor_cases(), 200)
    seen = Counter[str]()
    for case in cases:
        rows = list(itertools.chain.from_iterable(case.rows.values()))
        assert len(rows) <= 10
        query = bound_query(case.workbook, case.query)
        found = answers(query, case.rows, case.relations)
        chosen = [tuple(str(each.get(operand.label)) for operand in query.operands) for each in found]
        seen.update(
            {
                "answered": bool(found),
                "several": len(found) > 1,
                "regions of one pair": len(set(chosen)) < len(chosen),
                "contact": any(each["valid_from"] == each["valid_to"] for each in found),
                "uncertain": any(each["probability"] < 1 for each in found),
                "searched": any(isinstance(each["probability"], float) for each in found),
                "repeated": any(rows.count(each) > 1 for each in rows),
                "one operand": len(query.operands) == 1,
                "two streams": len(case.rows) == 2,
                "three columns": "Z " in case.workbook,
                "window": query.within > 0,
                "shared": any(len(group) > 1 for group in together(constraints(query)[1])),
                "threshold": "THRESHOLD" in case.workbook,
                "near": "near(" in case.workbook,
                **{f"{op} ": f" {op} " in case.workbook.split("WHERE")[1] for op in _ARRAYS},
                **{semantics: query.semantics == semantics for semantics in ("EXPECTED", MAY, MUST)},
                **{kind: f" t {kind}" in case.workbook for kind in ("INTEGER", "DOUBLE", "TIMESTAMP")},
            }
        )
    assert seen["answered"] > len(cases) / 2
    assert seen["several"] > len(cases) / 4
    assert min(seen.values()) > 0, seen


@settings(max_examples=30)
@given(
    case=monitor_cases(
        time_types=["INTEGER"],
        values=[2],
        operands=[2],
        semantics=[MAY],
        comparators=["<="],
        windows=[1],
        errors=[1],
        shared=False,
        crossed=True,
        contradictions=True,
        unknown_values=True,
        watermark=3,
        max_delay=5,
        every=1,
    )  # fmt: skip
)
def test_cases_are_what_they_are_asked_to_be(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    assert (query.within, query.semantics, query.max_delay, query.every) == (1, MAY, 5, 1)
    assert [stream.lateness for stream in query.streams] == [3] * len(query.streams)
    assert {len(stream.values) for stream in query.streams} == {2}
    used = list(itertools.chain.from_iterable(constraints(query)[1]))
    assert len(used) == len(set(used))
    assert all(isinstance(each["t"], int) for rows in case.rows.values() for each in rows)


@settings(max_examples=40)
@given(case=monitor_cases(contradictions=True, unknown_values=True, decimals=True))
def test_decimals_contradictions_and_unknown_values_have_answers_too(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    for answer in answers(query, case.rows, case.relations):
        assert answer["valid_from"] <= answer["valid_to"]
        assert query.threshold <= answer["probability"] <= 1
