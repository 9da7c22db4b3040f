"""The oracle of MONITOR, compared with cases solved by hand."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from anabranch.monitor.query import BoundMonitor
from tests.cases import Case
from tests.drawn import drawn, examples
from tests.language.workbooks import codes
from tests.local import bound_query
from tests.monitor.strategies import COMPARATORS, MAY, MUST, monitor_cases
from tests.oracles.monitor import answers, connected_forms, constraints
from tests.oracles.monitor_regions import SEARCH_ERROR, area, distribution_function

Row = dict[str, Any]

STREAMS = """
    CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {error} PERIOD 4;
    CREATE STREAM f KEY (id STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 2;
    CREATE STREAM g KEY (id STRING) VALUE (x DOUBLE) TIME t TIMESTAMP MODEL PREDICTED ERROR 0 PERIOD 0.05 MINUTES;
    CREATE RELATION near (a STRING, b STRING);
"""


def bound(query: str, error: str = "0") -> BoundMonitor:
    """The query over the streams above; `error` is that of e."""
    return bound_query(f"{STREAMS.format(error=error)} CREATE QUERY q AS MONITOR {query};", "q")


def row(id_: str, t: Any, x: Any = 0, x_rate: Any = 0, y: Any = 0, y_rate: Any = 0) -> Row:
    return {"id": id_, "t": t, "x": x, "x_rate": x_rate, "y": y, "y_rate": y_rate}


def answers_to(query: str, *rows: Row, error: str = "0", **others: Any) -> list[dict[str, Any]]:
    """The answers over the stream e; `others` are the rows of other streams."""
    return answers(bound(query, error), {"e": rows, **others}, {"near": {("a", "b")}})


def spans(found_answers: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The keys and the validity of answers."""
    return [(*_keys(answer), answer["valid_from"], answer["valid_to"]) for answer in found_answers]


def _keys(answer: Mapping[str, Any]) -> list[str]:
    return [column["id"] for column in answer.values() if isinstance(column, dict)]


def half(number: int) -> Fraction:
    return Fraction(number, 2)


# ---------------------------------------------------------------- predictions


def test_the_example_of_the_language() -> None:
    query = """a, b FROM e AS a, e AS b WHERE ABS(a.x - b.x) <= 400 AND ABS(a.y - b.y) <= 400 AND a.id < b.id
        WITHIN 3 SECONDS SEMANTICS MAY THRESHOLD 0.5"""
    cars = [row("a", 0, 0, 100), row("b", 1, 900, -100, 100, 0)]
    (answer,) = answers_to(query, *cars, error="(x = 25, y = 10)")
    assert list(answer) == ["a", "b", "valid_from", "valid_to", "boundary", "probability"]
    assert (answer["a"], answer["b"]) == ({"id": "a", "t": 0}, {"id": "b", "t": 1})
    # The difference is 1000 - 100 (ta + tb), and may be 450 from ta + tb = 5.5 on: first when both are 2.75.
    assert (answer["valid_from"], answer["valid_to"], answer["probability"]) == (Fraction("2.75"), 5, 1)
    assert answer["boundary"] == ((Fraction("1.25"), Fraction("4.25")), (4, half(3)), (4, 5), (2, 5))


def test_a_prediction_applies_until_its_period_ends_or_the_next_one_begins() -> None:
    rows = [row("a", 0), row("a", 3), row("a", 20), row("b", 1)]
    assert spans(answers_to("a FROM e WHERE a.x = 0", *rows)) == [("a", 0, 3), ("a", 3, 7), ("a", 20, 24), ("b", 1, 5)]
    # Rows that WHERE excludes, and rows without a value, end the previous prediction too.
    assert spans(answers_to("a FROM e WHERE a.x = 0 AND a.t < 3", *rows))[0] == ("a", 0, 3)
    assert spans(answers_to("a FROM e WHERE a.x = 0", row("a", 0), row("a", 3, None))) == [("a", 0, 3)]


def test_an_answer_about_one_operand_has_no_boundary() -> None:
    (answer,) = answers_to("Car FROM e WHERE car.x < 5", row("a", 1, 3, 1))
    assert answer == {"Car": {"id": "a", "t": 1}, "valid_from": 1, "valid_to": 3, "probability": 1}


def test_duplicates_are_one_prediction_and_rows_without_key_or_time_are_none() -> None:
    rows = [row("a", 0), row("a", 0), row("a", -0.0), {**row("a", 0), "note": 1}]
    rows += [row(None, 0), row("c", None), row("d", math.nan)]
    assert spans(answers_to("a FROM e WHERE a.x = 0", *rows)) == [("a", 0, 4)]


def test_two_predictions_of_one_key_and_time_both_apply() -> None:
    rows = [row("a", 0, 1), row("a", 0, 2), row("a", 1, 9)]
    assert spans(answers_to("a FROM e WHERE a.x < 5", *rows)) == [("a", 0, 1), ("a", 0, 1)]


def test_unknown_values_match_nothing() -> None:
    rows = [row("a", 0, None), row("b", 0, 1, None), row("c", 0, math.nan), row("d", 0, 1, 1, None)]
    assert spans(answers_to("a FROM e WHERE a.x < 5", *rows)) == [("d", 0, 4)]
    assert answers_to("a FROM e WHERE a.x < NULL", row("a", 0)) == []


def test_pairs_have_different_keys_in_both_orders() -> None:
    rows = [row("a", 0), row("a", 1), row("b", 0)]
    query = "a, b FROM e WHERE ABS(a.x - b.x) <= 1"
    assert spans(answers_to(query, *rows)) == [("a", "b", 0, 1), ("a", "b", 1, 4), ("b", "a", 0, 1), ("b", "a", 1, 4)]
    assert spans(answers_to(f"{query} AND a.id < b.id AND a.t > 0", *rows)) == [("a", "b", 1, 4)]
    assert len(answers_to(f"{query} AND near(a.id, b.id)", *rows)) == 2
    assert len(answers_to(f"{query} AND (a.id = 'b' OR b.id IN ('c', NULL))", *rows)) == 2


def test_equal_keys_of_two_streams_are_paired() -> None:
    query = "a, b FROM e AS a, f AS b WHERE ABS(a.x - b.x) <= 1"
    assert spans(answers_to(query, row("a", 0), f=[row("a", 1)])) == [("a", "a", 1, 3)]


def test_times_may_be_timestamps() -> None:
    start = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
    rows = [row("a", start, 0, 1), row("b", start + timedelta(seconds=1), 3, 0)]
    found_answers = answers(bound("a, b FROM g WHERE ABS(a.x - b.x) <= 1 WITHIN 1"), {"g": rows})
    (first, _) = found_answers
    epoch = int(start.timestamp())
    assert (first["valid_from"] - epoch, first["valid_to"] - epoch) == (2, 4)
    assert first["a"] == {"id": "a", "t": start}


# ---------------------------------------------------------------- instants


def test_a_contact_with_an_open_end_is_no_match() -> None:
    # a applies on [0, 4), b from 4 on.
    rows = [row("a", 0), row("b", 4)]
    assert answers_to("a, b FROM e WHERE ABS(a.x - b.x) <= 1", *rows) == []
    assert spans(answers_to("a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.id < b.id WITHIN 1", *rows)) == [
        ("a", "b", 4, 5)
    ]
    # The value is 4 at the end, which is excluded.
    assert answers_to("a FROM e WHERE a.x >= 4", row("a", 0, 0, 1)) == []
    assert answers_to("a FROM e WHERE a.x > 0", row("a", 0, 0, -1)) == []


def test_a_contact_with_a_closed_end_is_a_match_of_length_0() -> None:
    (answer,) = answers_to("a FROM e WHERE a.x >= 0", row("a", 0, 0, -1))
    assert (answer["valid_from"], answer["valid_to"], answer["probability"]) == (0, 0, 1)
    query = "a, b FROM e WHERE ABS(a.x - b.x) {} 2 AND a.id < b.id WITHIN 1"
    rows = [row("a", 0, 2, 1), row("b", 0, 0, -1)]
    (answer,) = answers_to(query.format("<="), *rows)
    assert answer["boundary"] == ((0, 0),)
    assert answers_to(query.format("<"), *rows) == []


def test_a_region_that_ends_at_an_open_end_is_valid_to_its_supremum() -> None:
    assert spans(answers_to("a FROM e WHERE a.x < 2", row("a", 0, 0, 1))) == [("a", 0, 2)]
    assert spans(answers_to("a FROM e WHERE a.x > 2", row("a", 0, 0, 1))) == [("a", 2, 4)]


def test_the_range_of_the_later_instant_includes_the_diagonal() -> None:
    # ta + tb >= 3: the earliest is when both are 1.5, in the middle of a side.
    query = "a, b FROM e WHERE ABS(a.x - b.x) >= 3 AND a.id < b.id WITHIN 4"
    (answer,) = answers_to(query, row("a", 0, 0, 1), row("b", 0, 0, -1))
    assert (answer["valid_from"], answer["valid_to"]) == (half(3), 4)
    assert answer["boundary"] == ((0, 3), (3, 0), (4, 0), (4, 4), (0, 4))


def test_within_0_compares_at_the_same_instant() -> None:
    query = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.id < b.id"
    (answer,) = answers_to(query, row("a", 0, 0, 1), row("b", 1, 3, 0))
    assert answer["boundary"] == ((2, 2), (4, 4))


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("<= 1", [(1, 3)]), ("< 1", [(1, 3)]), (">= 1", [(0, 1), (3, 4)]), ("> 1", [(0, 1), (3, 4)]),
        ("= 1", [(1, 1), (3, 3)]), ("<> 1", [(0, 1), (1, 3), (3, 4)]), ("= 0", [(2, 2)]), ("<> 0", [(0, 2), (2, 4)]),
        ("<= 0", [(2, 2)]), ("< 0", []), (">= 0", [(0, 4)]), ("> 0", [(0, 2), (2, 4)]), ("= 2", [(0, 0)]),
        ("> 2", []), (">= 2", [(0, 0)]), ("<= -1", []), ("> -1", [(0, 4)]), ("= -1", []), ("<> -1", [(0, 4)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("semantics", ["EXPECTED", "MAY", "MUST"])
def test_every_comparator_without_error(comparison: str, expected: list[tuple[int, int]], semantics: str) -> None:
    # The difference goes from -2 at time 0 to 2 at time 4, which is excluded.
    query = f"a, b FROM e WHERE ABS(a.x - b.x) {comparison} AND a.id < b.id SEMANTICS {semantics}"
    found_answers = answers_to(query, row("a", 0, 0, 1), row("b", 0, 2, 0))
    assert [(answer["valid_from"], answer["valid_to"]) for answer in found_answers] == expected
    assert {answer["probability"] for answer in found_answers} <= {1}


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
        found_answers = answers_to(f"a FROM e WHERE {constraint} SEMANTICS {semantics}", row("a", 0, 0, 1), error="1")
        assert spans(found_answers) == ([] if span is None else [("a", *span)]), semantics


def test_a_single_value_does_not_matter_if_there_is_an_error() -> None:
    for semantics in (MAY, MUST):
        found_answers = answers_to(f"a FROM e WHERE a.x <> 2 SEMANTICS {semantics}", row("a", 0, 0, 1), error="1")
        assert spans(found_answers) == [("a", 0, 4)]
    assert spans(answers_to("a FROM e WHERE a.x <> 2", row("a", 0, 0, 1), error="1")) == [("a", 0, 2), ("a", 2, 4)]
    # The predictions are equal, but the probability is 0.
    assert answers_to("a, b FROM e WHERE ABS(a.x - b.x) <= 0", row("a", 0), row("b", 0), error="1") == []


def test_may_excludes_the_end_of_the_error() -> None:
    assert answers_to("a FROM e WHERE a.x <= 2 SEMANTICS MAY", row("a", 0, 3, 0), error="1") == []
    # The difference goes from -2 to 2; its absolute value may be 2 or more except where its prediction is 0.
    query = "a, b FROM e WHERE ABS(a.x - b.x) >= 2 AND a.id < b.id SEMANTICS MAY"
    found_answers = answers_to(query, row("a", 0, 0, 1), row("b", 0, 2, 0), error="1")
    assert [(answer["valid_from"], answer["valid_to"]) for answer in found_answers] == [(0, 2), (2, 4)]


def test_two_columns_give_a_region_for_each_choice_of_sides() -> None:
    query = "a, b FROM e WHERE ABS(a.x - b.x) > 1 AND ABS(a.y - b.y) > 1 AND a.id < b.id WITHIN 9"
    found_answers = answers_to(query, row("a", 0, 0, 1, 0, 0), row("b", 0, 2, 0, -2, -1))
    assert [(answer["valid_from"], answer["valid_to"]) for answer in found_answers] == [(0, 4), (3, 4)]
    query = "a, b FROM e WHERE ABS(a.x - b.x) > 1 AND ABS(a.y - b.y) > 1 AND a.id < b.id WITHIN 9"
    found_answers = answers_to(query, row("a", 0, 0, 1, 2, 0), row("b", 0, 2, 0, 0, 1))
    assert [area(answer["boundary"]) for answer in found_answers] == [1, 1, 1, 1]


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
    assert distribution_function(distance, [Fraction(error) for error in errors]) == probability
    assert distribution_function(-distance, [Fraction(error) for error in errors]) == 1 - probability


def test_the_distribution_of_a_difference_is_an_integral() -> None:
    # The integral of the distribution of one error over the values of the other, by the trapezoidal rule.
    for distance, one, other in itertools.product(np.linspace(-3, 3, 13), (0.5, 1.0, 1.5), (0.25, 2.0)):
        steps = np.linspace(-other, other, 4001)
        inner = np.clip((distance + steps + one) / (2 * one), 0, 1)
        integral = (inner[:-1] + inner[1:]).mean() / 2
        assert distribution_function(distance, [one, other]) == pytest.approx(integral, abs=1e-6)


def test_the_formula_of_the_paper() -> None:
    # One of its fifteen cases, in which both bounds cut a slope: [l1, u1] = [-2, 2] and [l2, u2] = [-0.75, 1.25].
    streams = "".join(
        f"CREATE STREAM {name} KEY (id STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {error} PERIOD 4;"
        for name, error in (("e", 2), ("f", 1))
    )
    for limit in (2.5, 1.5):
        text = f"MONITOR a, b FROM e AS a, f AS b WHERE ABS(a.x - b.x) <= {limit} SEMANTICS MAY"
        query = bound_query(f"{streams} CREATE QUERY q AS {text};", "q")
        (answer,) = answers(query, {"e": [row("a", 0)], "f": [row("b", 0, 0.25)]})
        above, under = 2 + 0.75 - limit, 2 + 1.25 - limit
        assert answer["probability"] == 1 - (above**2 + under**2) / (2 * 4 * 2)


def test_the_highest_probability_is_where_the_difference_is_smallest() -> None:
    query = "a, b FROM e WHERE ABS(a.x - b.x) <= 2 AND a.id < b.id SEMANTICS MAY"
    # The difference falls from 6 to 2 at an open end: the supremum is not reached.
    (answer,) = answers_to(query, row("a", 0, 6, -1), row("b", 0), error="1")
    assert (answer["valid_from"], answer["valid_to"], answer["probability"]) == (2, 4, half(1))


def test_the_highest_probability_may_be_between_two_bounds() -> None:
    (answer,) = answers_to("a FROM e WHERE a.x IN [1, 2]", row("a", 0, 0, 1), error="1")
    assert answer["probability"] == half(1)
    query = "a, b FROM e WHERE ABS(a.x - b.x) <= 4 AND ABS(a.x - b.x) >= 2 AND a.id < b.id"
    (answer,) = answers_to(query, row("a", 0, 0, 1), row("b", 0), error="1")
    assert answer["probability"] == Fraction(3, 4)


def test_probabilities_of_different_columns_are_multiplied() -> None:
    query = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND ABS(a.y - b.y) <= 1 AND a.id < b.id"
    (answer,) = answers_to(query, row("a", 0), row("b", 0), error="1")
    assert answer["probability"] == pytest.approx(9 / 16, abs=SEARCH_ERROR)
    # One factor has its maximum at 1, the other at 3, and the product between them.
    (answer,) = answers_to(f"{query} SEMANTICS MAY", row("a", 0, 1, -1, 3, -1), row("b", 0), error="2")
    best = max(_triangle(1 - t, 1, 4) * _triangle(3 - t, 1, 4) for t in np.linspace(0, 4, 4001))
    assert answer["probability"] == pytest.approx(best, abs=SEARCH_ERROR)


def _triangle(center: float, limit: float, reach: float) -> float:
    """The probability that a triangular distribution on [center - reach, center + reach] is within the limit."""

    def upto(z: float) -> float:
        return 0.5 + z / reach - math.copysign(z * z, z) / (2 * reach**2)

    low, high = (min(max(end - center, -reach), reach) for end in (-limit, limit))
    return upto(high) - upto(low)


def test_constraints_that_share_a_value_have_a_joint_probability() -> None:
    # A and B are uniform on [-1, 1]: A < 0 and |A - B| <= 1 hold on half of the 3/4 of the square.
    query = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.x {} AND a.id < b.id SEMANTICS MAY"
    (answer,) = answers_to(query.format("< 0"), row("a", 0), row("b", 0), error="1")
    assert answer["probability"] == pytest.approx(3 / 8, abs=SEARCH_ERROR)
    # A is above 0.5, and B at least A - 1: the integral of 2 - A.
    (answer,) = answers_to(query.format("> 0.5"), row("a", 0), row("b", 0), error="1")
    assert answer["probability"] == pytest.approx(0.625 / 4, abs=SEARCH_ERROR)
    # Each constraint may hold, but not both: a is above 5, b below 3.
    impossible = "a, b FROM e WHERE ABS(a.x - b.x) <= 1 AND a.x > 5 AND b.x < 3 SEMANTICS MAY"
    assert answers_to(impossible, row("a", 0, 4.5), row("b", 0, 3.5), error="1") == []
    assert len(answers_to(impossible.replace("3 S", "4.5 S"), row("a", 0, 4.5), row("b", 0, 3.5), error="1")) == 1


def test_a_region_that_is_not_convex_has_no_boundary() -> None:
    # The difference may be 1 or more on either side; if a is above 0, one side extends further than the other.
    query = "a, b FROM e WHERE ABS(a.x - b.x) >= 1 AND a.x >= 0 AND a.id < b.id WITHIN 9 SEMANTICS MAY"
    (answer,) = answers_to(query, row("a", 0, -2, 1), row("b", 0, -2, 1), error="1")
    assert answer["boundary"] is None
    assert (answer["valid_from"], answer["valid_to"], answer["probability"]) == (1, 4, 1)


def test_the_threshold_is_inclusive() -> None:
    query = "a FROM e WHERE a.x < 0 THRESHOLD {}"
    assert len(answers_to(query.format(0.5), row("a", 0, 0, -1 / 8), error="1")) == 1
    (answer,) = answers_to(query.format(0.75), row("a", 0, 0, -1 / 8), error="1")
    assert answer["probability"] == Fraction(3, 4)
    assert answers_to(query.format(0.76), row("a", 0, 0, -1 / 8), error="1") == []


@pytest.mark.parametrize("condition", ["ABS(a.x) < 1", "a.x - b.x < 1", "ABS(a.x - a.y) < 1", "a.x + 1 < 2"])
def test_linear_expressions_are_answered(condition: str) -> None:
    answers = answers_to(f"a, b FROM e WHERE {condition}", row("a", 0), row("b", 0))
    assert answers
    assert all(answer["probability"] > 0 for answer in answers)


@pytest.mark.parametrize("condition", ["a.x < b.x", "NOT a.x < 1", "(a.x < 1 OR a.x > 2)", "a.x NOT IN [0, 1]"])
def test_constraints_of_another_shape_are_refused(condition: str) -> None:
    with pytest.raises(NotImplementedError):
        answers_to(f"a, b FROM e WHERE {condition}", row("a", 0), row("b", 0))


@pytest.mark.parametrize("condition", ["a.x IS NULL", "ABS(a.x - 1) < 1"])
def test_conditions_that_are_no_constraints_are_refused_by_the_binder(condition: str) -> None:
    workbook = f"{STREAMS.format(error='0')} CREATE QUERY q AS MONITOR a, b FROM e WHERE {condition};"
    assert codes(workbook) == ["not-a-constraint"]


def test_equality_with_an_error_is_refused_by_the_binder() -> None:
    workbook = f"{STREAMS.format(error='1')} CREATE QUERY q AS MONITOR a FROM e WHERE a.x = 1;"
    assert codes(workbook) == ["equality-of-uncertain"]


# ---------------------------------------------------------------- the strategies


def test_drawn_cases_cover_every_feature_and_have_answers() -> None:
    cases = drawn(monitor_cases(), 100)
    seen = Counter[str]()
    for case in cases:
        rows = list(itertools.chain.from_iterable(case.rows.values()))
        assert len(rows) <= 10
        query = bound_query(case.workbook, case.query)
        found_answers = answers(query, case.rows, case.relations)
        chosen = [tuple(str(answer.get(operand.label)) for operand in query.operands) for answer in found_answers]
        seen.update(
            {
                "answered": bool(found_answers),
                "several": len(found_answers) > 1,
                "regions of one pair": len(set(chosen)) < len(chosen),
                "contact": any(answer["valid_from"] == answer["valid_to"] for answer in found_answers),
                "uncertain": any(answer["probability"] < 1 for answer in found_answers),
                "searched": any(isinstance(answer["probability"], float) for answer in found_answers),
                "repeated": any(rows.count(other) > 1 for other in rows),
                "one operand": len(query.operands) == 1,
                "two streams": len(case.rows) == 2,
                "three columns": "Z " in case.workbook,
                "window": query.within > 0,
                "shared": any(len(group) > 1 for group in connected_forms(constraints(query)[1])),
                "threshold": "THRESHOLD" in case.workbook,
                "near": "near(" in case.workbook,
                **{f"{op} ": f" {op} " in case.workbook.split("WHERE")[1] for op in COMPARATORS},
                **{semantics: query.semantics == semantics for semantics in ("EXPECTED", MAY, MUST)},
                **{kind: f" t {kind}" in case.workbook for kind in ("INTEGER", "DOUBLE", "TIMESTAMP")},
            }
        )
    assert seen["answered"] > len(cases) / 2
    assert seen["several"] > len(cases) / 4
    assert min(seen.values()) > 0, seen


@examples(15)
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
def test_cases_follow_their_options(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    assert (query.within, query.semantics, query.max_delay, query.every) == (1, MAY, 5, 1)
    assert [stream.lateness for stream in query.streams] == [3] * len(query.streams)
    assert {len(stream.values) for stream in query.streams} == {2}
    used = list(itertools.chain.from_iterable(constraints(query)[1]))
    assert len(used) == len(set(used))
    assert all(isinstance(row_["t"], int) for rows in case.rows.values() for row_ in rows)


@examples(20)
@given(case=monitor_cases(contradictions=True, unknown_values=True, decimals=True))
def test_decimals_contradictions_and_unknown_values_have_answers(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    for answer in answers(query, case.rows, case.relations):
        assert answer["valid_from"] <= answer["valid_to"]
        assert query.threshold <= answer["probability"] <= 1
