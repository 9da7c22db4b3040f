"""Linear expressions of values: `a.x + 2 * a.y - b.x <= 5`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.cases import Case, Draw, Rows, seconds
from tests.drawn import examples
from tests.local import bound_query
from tests.monitor.compare import assert_same
from tests.monitor.local import run_of
from tests.oracles.monitor import answers
from tests.oracles.monitor_regions import distribution_function
from tests.splits import splits

from anabranch.errors import Finding
from anabranch.monitor.analysis import analyse
from anabranch.monitor.explain import plan

COLUMNS = ("x", "y", "z")
FACTORS = (1, 2, -1, 0.5, -2, 3)
#: The most columns of an expression: the errors of four values are integrated.
MOST = 4


def expression_text(factors: dict[str, float]) -> str:
    """An expression as a user may write it."""
    text = ""
    for column, factor in factors.items():
        sign = (" - " if factor < 0 else " + ") if text else ("-" if factor < 0 else "")
        text += sign + (f"{abs(factor)} * {column}" if abs(factor) != 1 else column)
    return text


@st.composite
def expressions(draw: Draw, labels: str) -> dict[str, float]:
    """The columns of an expression, at least one of each operand, with their factors."""
    columns = [f"{label}.{column}" for label in labels for column in COLUMNS]
    needed = [f"{label}.{draw(st.sampled_from(COLUMNS[:2]))}" for label in labels]
    more = draw(st.lists(st.sampled_from(columns), max_size=MOST - len(labels)))
    return {column: draw(st.sampled_from(FACTORS)) for column in dict.fromkeys([*needed, *more])}


@st.composite
def cases(draw: Draw) -> Case:
    """One or two operands, an expression, sometimes two bounds on it, and sometimes a constraint on another column."""
    labels = draw(st.sampled_from(["a", "ab", "ab"]))
    factors = draw(expressions(labels))
    text, bounds = expression_text(factors), st.sampled_from([0, 1, 3, -2, 0.5, 6])
    operators = st.sampled_from(["<=", "<", ">=", ">"])
    constraints = [f"{text} {draw(operators)} {draw(bounds)}"]
    constraints += draw(st.sampled_from([[], [], [f"{text} <= 4"], [f"ABS({text}) <= {draw(bounds) + 3}"]]))
    others = [f"{label}.{column}" for label in labels for column in COLUMNS if f"{label}.{column}" not in factors]
    constraints += draw(st.sampled_from([[], [f"{others[-1]} <= {draw(bounds)}"] if others else []]))
    errors = {column: draw(st.sampled_from([1, 0.5, 2, 0, 0.25])) for column in COLUMNS}
    rows: Rows = {"e": [draw(predictions(number)) for number in range(draw(st.integers(2, 4)))]}
    keys = " AND a.id < b.id" if labels == "ab" else ""
    within = draw(st.sampled_from(["", " WITHIN 1", " WITHIN 20"])) if labels == "ab" else ""
    clauses = draw(st.sampled_from(["", " SEMANTICS MAY", " SEMANTICS MAY", " SEMANTICS MUST"]))
    clauses += draw(st.sampled_from(["", " THRESHOLD 0.25"]))
    error = ", ".join(f"{column} = {amount}" for column, amount in errors.items())
    workbook = (
        f"CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE, z DOUBLE) TIME t INTEGER "
        f"MODEL PREDICTED ERROR ({error}) PERIOD 4;"
        f"CREATE QUERY q AS MONITOR {', '.join(labels)} FROM e "
        f"WHERE {' AND '.join(constraints)}{keys}{within}{clauses};"
    )
    return Case(workbook, "q", rows, {})


@st.composite
def predictions(draw: Draw, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": "abab"[number], "t": draw(st.sampled_from([0, 1, 2, 3]))}
    for column in COLUMNS:
        row[column] = draw(st.sampled_from([0.0, 1.0, -1.0, 2.5]))
        row[f"{column}_rate"] = draw(st.sampled_from([0.0, 1.0, -1.0, 0.5]))
    return row


@examples(60)
@given(cases())
def test_batch_gives_the_answers_of_the_oracle(case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    expected = answers(query, case.rows)
    event(f"{'some' if expected else 'no'} answers")
    assert_same(run_of(case, [case.rows]).rows(), expected, [operand.label for operand in query.operands])


@examples(30)
@given(st.data(), cases())
def test_any_split_gives_the_answers_of_the_oracle(data: st.DataObject, case: Case) -> None:
    query = bound_query(case.workbook, case.query)
    run = run_of(case, data.draw(splits(case.rows, clock=seconds)), live=True)
    assert_same(run.rows(), answers(query, case.rows), [operand.label for operand in query.operands])


STREAM = (
    "CREATE STREAM e KEY (id STRING) VALUE (x DOUBLE, y DOUBLE{more}) TIME t INTEGER "
    "MODEL PREDICTED ERROR {error} PERIOD 9;"
)
MOVING: Rows = {"e": [{"id": id, "t": 0, "x": 0.0, "x_rate": 1.0, "y": 0.0, "y_rate": 0.0} for id in "ab"]}


def answers_to(where: str, clauses: str = "SEMANTICS MAY THRESHOLD 0.1", error: str = "1") -> list[tuple[float, ...]]:
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE {where} AND a.id < b.id {clauses};"
    case = Case(STREAM.format(error=error, more="") + query, "q", MOVING, {})
    names = ("valid_from", "valid_to", "certain_from", "certain_to", "probability")
    return [tuple(row[name] for name in names) for row in run_of(case, [MOVING]).rows()]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.x + 2 * a.y - b.y <= 5", "5 + b.y >= 2 * a.y + a.x"),
        ("a.x + 2 * a.y - b.y <= 5", "a.x / 2 + a.y <= 2.5 + b.y / 2"),
        ("a.x + 2 * a.y - b.y <= 5", "-(a.x + 2 * (a.y + 1)) >= -7 - b.y"),
        ("ABS(a.x + b.y) <= 2", "6 >= 3 * ABS(-b.y - a.x)"),
        ("a.x - b.y <= 3", "3 * a.x - 3 * b.y <= 9"),
        ("a.x <= 3", "2 * a.x + b.y <= 6 + b.y"),
    ],
)
def test_equal_expressions_are_equal_constraints(one: str, other: str) -> None:
    assert answers_to(one) == answers_to(other) != []


def test_bounds_on_one_expression_have_one_probability() -> None:
    """The sum of two errors is within 1 / 2 of its middle with probability 7 / 16."""
    ((*_, probability),) = answers_to("a.x + a.y >= 1 AND 2 * a.y + 2 * a.x <= 4")
    assert probability == pytest.approx(7 / 16)


@pytest.mark.parametrize(
    ("expression", "level"),
    [
        ("a.x + a.y", 1 / 8),
        ("a.x + a.y - b.y", 1 / 48),
        ("a.x + 2 * a.y", 1 / 16),
        ("a.x + 2 * a.y - b.y", 1 / 96),
    ],
)
def test_sums_of_errors(expression: str, level: float) -> None:
    """The sum of n errors of 1 is within 1 of its end with probability 1 / n! / 2^n, and half that with a factor 2.

    The prediction goes from 0 on, by 1 per unit of time.
    """
    ((begin, end, _, certain_to, probability),) = answers_to(f"{expression} <= 0", f"THRESHOLD {level!r} SEMANTICS MAY")
    assert begin == 0.0
    assert probability == pytest.approx(0.5)
    assert certain_to == pytest.approx(end - 1.0, abs=1e-9)


def test_an_expression_and_a_value_that_share_a_value_are_integrated_together() -> None:
    """The integral over the true value of b, in steps, of the probability that the sum is at most the rest."""
    places = {"a": (0.3, -0.2), "b": (0.1, 0.0)}
    rows: Rows = {
        "e": [{"id": id, "t": 0, "x": x, "x_rate": 0.0, "y": y, "y_rate": 0.0} for id, (x, y) in places.items()]
    }
    where = "a.x + a.y - b.x <= 0.5 AND b.x >= -0.4 AND a.id < b.id"
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE {where} SEMANTICS MAY;"
    (answer,) = run_of(Case(STREAM.format(error="1", more="") + query, "q", rows, {}), [rows]).rows()
    low, high, steps = -0.4, 1.1, 2000
    middles = [low + (high - low) * (step + 0.5) / steps for step in range(steps)]
    below = sum(float(distribution_function(0.5 + middle - 0.1, [Fraction(1), Fraction(1)])) for middle in middles)
    assert answer["probability"] == pytest.approx(below * (high - low) / steps / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("a.x + a.y < 5 AND a.x < 3", "1", "a.x has an error and is in two different expressions, a.x + a.y and a.x"),
        ("a.x + a.y < 5 AND a.x - a.y < 3", "1", "is in two different expressions"),
        ("a.x + b.x < 5 AND a.x - b.x < 3", "1", "b.x has an error and is in two different expressions, -b.x and b.x"),
        ("a.x + a.y < 5", "2 NORMAL 1", "a.x + a.y has several errors, and some are normal or different in each row"),
        ("a.x + a.y < 5", "(x = spread, y = 1)", "a.x + a.y has several errors, and some are normal"),
        ("a.x + 2 * a.z < b.y", "(x = 1, y = 2 NORMAL 1, z = 1)", "a.x + 2 * a.z - b.y has several errors"),
    ],
)
def test_what_cannot_be_integrated_is_refused_without_data(where: str, error: str, message: str) -> None:
    query = f"CREATE QUERY q AS MONITOR a, b FROM e WHERE {where}"
    stream = STREAM.format(error=error, more=", z DOUBLE" if "z" in error else "")
    refused = refusal(stream + f"{query};")
    assert refused is not None and message in refused.message and refused.hint
    assert refusal(stream + f"{query} SEMANTICS MUST;") is None


def refusal(workbook: str) -> Finding | None:
    """Why a query is refused."""
    return plan(analyse(bound_query(workbook, "q"))).refused
