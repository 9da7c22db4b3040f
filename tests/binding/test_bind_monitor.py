"""MONITOR: names and clauses, which conditions are constraints on values, and their normal form."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.language.workbooks import bound, declared, findings, wrong

from anabranch.binding.typed import Reference
from anabranch.catalog import Catalog
from anabranch.errors import WorkbookError
from anabranch.language.types import Type
from anabranch.monitor.query import BoundConstraint, Combination, error_of

WORKBOOK = """
    CREATE STREAM reads KEY (id) VALUE (tag STRING, reader) TIME t;
    CREATE STREAM cars KEY (car) VALUE (x, y) TIME t MODEL PREDICTED ERROR (x = 25, y = 0) PERIOD 5;
    CREATE STREAM typed KEY (car STRING) VALUE (x DOUBLE) TIME t TIMESTAMP MODEL PREDICTED ERROR 5 PERIOD 5;
    CREATE STREAM wide KEY (car) VALUE (x, y) TIME t MODEL PREDICTED ERROR spread NORMAL 2 PERIOD 5;
    CREATE STREAM taxis KEY (taxi) VALUE (x, y, z) TIME t SPACE (x, y)
      MODEL PREDICTED ERROR (x = 25, y = 25, z = 0) PERIOD 5;
    CREATE STREAM positions KEY (car) VALUE (x, y) TIME t;
    CREATE STREAM made KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR 5 PERIOD 5;
    CREATE RELATION hall (x);
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(WORKBOOK)


def test_a_monitor_with_all_clauses(catalog: Catalog) -> None:
    monitor = bound(
        "MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 400 AND a.car < b.car WITHIN 3 SECONDS "
        "SEMANTICS may EVERY 1 SECOND MAX DELAY 5 BUFFER 10 DISCARD OLDEST THRESHOLD 0.5",
        catalog,
    )
    assert [operand.name for operand in monitor.operands] == ["a", "b"]
    assert len(monitor.conditions) == 2
    assert len(monitor.constraints) == 1
    assert monitor.row_conditions == monitor.conditions[1:]
    assert (monitor.within, monitor.semantics, monitor.every, monitor.max_delay) == (3.0, "MAY", 1.0, 5.0)
    assert (monitor.buffer, monitor.discard, monitor.threshold) == (10, "OLDEST", 0.5)


def test_a_monitor_of_one_name(catalog: Catalog) -> None:
    monitor = bound("MONITOR a FROM cars WHERE a.y = 5 AND a.car = 'c'", catalog)
    assert (monitor.within, monitor.semantics, monitor.every, monitor.buffer) == (0.0, "EXPECTED", None, None)
    assert monitor.discard is None


def test_the_default_policy_of_a_buffer_is_least_contribution(catalog: Catalog) -> None:
    assert bound("MONITOR a FROM cars WHERE a.y < 5 BUFFER 3", catalog).discard == "LEAST CONTRIBUTION"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("a FROM reads WHERE a.tag = 'x'", "wrong-model"),
        ("a, b, c, d, e FROM cars WHERE a.x < b.x", "too-many"),
        ("a FROM cars", "no-condition"),
        ("a, b FROM cars WHERE a.car < b.car AND a.x_rate > b.x_rate AND a.t < 5", "no-condition"),
        ("a FROM cars WHERE a.x < 5 SEMANTICS PERHAPS", "unknown-semantics"),
        ("a FROM cars WHERE a.x < 5 BUFFER 0", "out-of-range"),
        ("a FROM cars WHERE a.x < 5 EVERY 0", "out-of-range"),
        ("a FROM cars WHERE a.x < 5 MAX DELAY -1", "out-of-range"),
        ("a FROM cars WHERE a.x['y'] < 5", "no-default"),
        ("a FROM cars WHERE a.z < 5", "unknown-column"),
        ("boundary FROM cars WHERE boundary.x < 5", "answer-column"),
        ("a, sample FROM cars WHERE a.x < 5", "answer-column"),
    ],
)
def test_invalid_monitors(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"MONITOR {query}", catalog) == [code]


NEAR = "a, b FROM taxis WHERE DISTANCE(a, b) <= 5"


def test_a_monitor_with_nearest(catalog: Catalog) -> None:
    monitor = bound(f"MONITOR {NEAR} AND a.taxi <> 'x' SEMANTICS EXPECTED WITHIN 0 EVERY 2 NEAREST 3", catalog)
    assert (monitor.nearest, monitor.every) == (3, 2.0)
    assert bound(f"MONITOR {NEAR}", catalog).nearest is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"{NEAR} NEAREST 0", "out-of-range"),
        (f"{NEAR} SEMANTICS MUST NEAREST 1", "not-supported"),
        (f"{NEAR} BUFFER 5 NEAREST 1", "not-supported"),
        (f"{NEAR} WITHIN 2 SECONDS NEAREST 1", "not-supported"),
        (f"{NEAR} WITHIN 2 AND a.z < 5 NEAREST 1", "not-supported"),
        (f"{NEAR} AND ABS(a.z - b.z) <= 4 WITHIN 2 AND a.z < 5 NEAREST 1", "not-supported"),
        (f"{NEAR} AND a.z = 5 NEAREST 1", "not-supported"),
        ("a FROM taxis WHERE DISTANCE(a, 'POINT(1 2)') <= 5 NEAREST 1", "not-supported"),
        ("a, b FROM taxis WHERE DISTANCE(a, 'POINT(1 2)') <= 5 NEAREST 1", "no-distance"),
        ("a, b FROM taxis WHERE ABS(a.x - b.x) <= 5 NEAREST 1", "no-distance"),
        ("a, b FROM taxis WHERE NOT DISTANCE(a, b) <= 5 NEAREST 1", "no-distance"),
    ],
)
def test_what_nearest_needs(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"MONITOR {query}", catalog) == [code]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("a FROM cars WHERE a.x = 5", "equality-of-uncertain"),
        ("a, b FROM cars WHERE ABS(a.x - b.x) = 5", "equality-of-uncertain"),
        ("a, b FROM cars WHERE a.y = b.x", "equality-of-uncertain"),
        ("a FROM cars WHERE NOT a.x <> 5", "equality-of-uncertain"),
        ("a FROM wide WHERE a.x = 5", "equality-of-uncertain"),
        ("a FROM made WHERE a.x IN (5)", "equality-of-uncertain"),
    ],
)
def test_equality_of_values_with_an_error_is_refused(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"MONITOR {query}", catalog) == [code]


def test_inequality_of_values_with_an_error_is_allowed(catalog: Catalog) -> None:
    assert wrong("MONITOR a, b FROM cars WHERE a.x <> 5 AND ABS(a.x - b.x) <> 3 AND a.y = b.y", catalog) == []


def test_an_error_column_has_an_unbounded_error(catalog: Catalog) -> None:
    cars, wide = catalog.stream("cars"), catalog.stream("wide")
    assert cars is not None and wide is not None
    assert [error_of(cars, name) for name in ("X", "y", "car")] == [25.0, 0.0, 0.0]
    assert error_of(wide, "x") == float("inf")


# ---------------------------------------------------------------- names


def test_three_or_four_names_must_be_connected_by_constraints(catalog: Catalog) -> None:
    assert wrong("MONITOR a, b, c FROM cars WHERE ABS(a.x - b.x) < 5 AND c.y < b.x", catalog) == []
    four = "MONITOR a, b, c, d FROM cars WHERE ABS(a.x - c.x) < 5 AND c.y < d.x AND ABS(b.x - d.x) > 3"
    assert wrong(four, catalog) == []
    assert wrong("MONITOR a, b FROM cars WHERE a.x < 5", catalog) == [], "two names need no constraint between them"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("a, b, c FROM cars WHERE a.x < b.x AND c.x < 5 AND b.car = c.car", "c with a or b"),
        ("a, b, c, d FROM cars WHERE a.x < b.x AND c.x < d.x", "c or d with a or b"),
        ("a, b, c FROM cars WHERE b.x < c.x AND a.x - a.y < 3", "b or c with a"),
    ],
)
def test_unconnected_names_are_reported(query: str, names: str, catalog: Catalog) -> None:
    (finding,) = findings(f"CREATE QUERY q AS MONITOR {query}", catalog)
    assert finding.code == "not-connected"
    assert finding.message == f"no constraint connects {names}"
    assert finding.hint.startswith("add a constraint such as ABS(")


# ---------------------------------------------------------------- constraints


def of(name: str) -> Reference:
    owner, column = name.split(".")
    return Reference(owner, column, Type.UNKNOWN)


def combination_text(combination: Combination) -> str:
    names = [(f"{value.owner}.{value.name}", factor) for value, factor in combination.terms]
    return " + ".join(name if factor == 1 else f"{factor:g} * {name}" for name, factor in names)


def constraints(where: str, catalog: Catalog) -> list[tuple[str, str | None, bool, str, float | None]]:
    found: tuple[BoundConstraint, ...] = bound(f"MONITOR a, b FROM cars WHERE {where}", catalog).constraints
    assert all(value == of(f"{value.owner}.{value.name}") for each in found for value in each.values)
    return [
        (
            combination_text(each.plus),
            None if each.minus is None else combination_text(each.minus),
            each.absolute,
            each.op,
            each.bound,
        )
        for each in found
    ]


@pytest.mark.parametrize(
    ("where", "plus", "minus", "absolute", "op", "bound"),
    [
        ("a.x < 5", "a.x", None, False, "<", 5),
        ("5 <= a.x", "a.x", None, False, ">=", 5),
        ("-0.5 <> a.x", "a.x", None, False, "<>", -0.5),
        ("a.y = -(2 + 3) * 4 / 8", "a.y", None, False, "=", -2.5),
        ("a.x < -7 % 4", "a.x", None, False, "<", -3),
        ("a.x < ABS(2 - 7)", "a.x", None, False, "<", 5),
        ("ABS(a.x - b.y) <= 400", "a.x", "b.y", True, "<=", 400),
        ("3 > ABS(b.x - a.x)", "b.x", "a.x", True, "<", 3),
        ("a.x - b.x >= 4", "a.x", "b.x", False, ">=", 4),
        ("4 >= a.x - b.x", "a.x", "b.x", False, "<=", 4),
        ("a.x - b.x > -4", "a.x", "b.x", False, ">", -4),
        ("a.x < b.y", "a.x", "b.y", False, "<", 0),
        ("a.x - a.y < 3", "a.x", "a.y", False, "<", 3),
        ("ABS(a.x) > 3", "a.x", None, True, ">", 3),
        ("ABS(-a.x) > 3", "a.x", None, True, ">", 3),
        ("-ABS(a.x - b.x) - 1 > -3", "a.x", "b.x", True, "<", 2),
        ("NOT a.x < 5", "a.x", None, False, ">=", 5),
        ("NOT NOT 5 >= a.x", "a.x", None, False, "<=", 5),
        ("NOT ABS(a.x - b.x) > 5", "a.x", "b.x", True, "<=", 5),
        ("a.x + 5 < b.x - 3", "a.x", "b.x", False, "<", -8),
        ("-a.x < 5", "a.x", None, False, ">", -5),
        ("a.x < NULL", "a.x", None, False, "<", None),
        ("a.x < 1 / 0", "a.x", None, False, "<", None),
        ("ABS(a.x - b.x) <= NULL + 2", "a.x", "b.x", True, "<=", None),
        ("2 * a.x < 5", "a.x", None, False, "<", 2.5),
        ("ABS(a.x / 2) < 1", "a.x", None, True, "<", 2),
        ("a.x + b.x < 5", "a.x", "-1 * b.x", False, "<", 5),
        ("-a.x < b.x", "a.x", "-1 * b.x", False, ">", 0),
        ("ABS(a.x + b.x) < 5", "a.x", "-1 * b.x", True, "<", 5),
        ("a.x - b.x < a.y", "a.x + -1 * a.y", "b.x", False, "<", 0),
        ("2 * (b.y - 3 * a.x) / 4 >= 1 + a.y", "a.x + 0.666667 * a.y", "0.333333 * b.y", False, "<=", -2 / 3),
        ("-2 * ABS(a.x + a.y) > -6", "a.x + a.y", None, True, "<", 3),
        ("a.x * NULL < 5", "a.x", None, False, "<", None),
        ("a.x / 0 < 5", "a.x", None, False, "<", None),
    ],
)  # fmt: skip
def test_constraints(
    where: str, plus: str, minus: str | None, absolute: bool, op: str, bound: float | None, catalog: Catalog
) -> None:
    assert constraints(where, catalog) == [(plus, minus, absolute, op, bound)]


@pytest.mark.parametrize("where", ["ABS(a.x - b.x) IN [1, 2]", "ABS(a.x - b.x) BETWEEN 1 AND 2"])
def test_a_range_is_two_constraints(where: str, catalog: Catalog) -> None:
    assert constraints(where, catalog) == [("a.x", "b.x", True, ">=", 1), ("a.x", "b.x", True, "<=", 2)]


def test_row_conditions_may_have_any_form(catalog: Catalog) -> None:
    rows = "(a.car = 'c' OR hall(b.car)) AND a.x_rate * 2 > b.y_rate AND NOT a.t IN (1, 2) AND a.spread < b.spread"
    monitor = bound(f"MONITOR a, b FROM wide WHERE a.x < 5 AND {rows}", catalog)
    assert len(monitor.constraints) == 1
    assert monitor.row_conditions == monitor.conditions[1:]
    assert len(monitor.row_conditions) == 4


@pytest.mark.parametrize(
    ("where", "ops"),
    [
        ("a.x < 5 OR a.car = 'c'", ["<"]),
        ("NOT (a.x < 1 AND NOT b.x >= 2)", [">=", ">="]),
        ("a.x NOT BETWEEN 1 AND 2", ["<", ">"]),
        ("a.x < 1 OR (b.x < 2 AND (a.y > 3 OR a.car = 'c'))", ["<", "<", ">"]),
    ],
)
def test_or_joins_constraints_and_row_conditions(where: str, ops: list[str], catalog: Catalog) -> None:
    monitor = bound(f"MONITOR a, b FROM wide WHERE {where}", catalog)
    (junction,) = monitor.junctions
    assert junction.op == "or"
    assert [constraint.op for constraint in junction.constraints] == ops
    assert not monitor.constraints and not monitor.row_conditions


def test_not_over_or_is_a_conjunction(catalog: Catalog) -> None:
    monitor = bound("MONITOR a, b FROM wide WHERE NOT (a.x < 1 OR b.x < 2 OR a.car = 'c')", catalog)
    assert [constraint.op for constraint in monitor.constraints] == [">=", ">="]
    assert len(monitor.row_conditions) == 1
    assert not monitor.junctions


def test_a_stream_predicted_from_positions_has_rate_columns(catalog: Catalog) -> None:
    assert len(bound("MONITOR a FROM made WHERE a.x < 5 AND a.x_rate > 0", catalog).row_conditions) == 1


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("a.x < a.x_rate", "not with 'a.x_rate'"),
        ("a.x - b.t < 5", "not with 'b.t'"),
        ("a.x IS NULL", "never NULL"),
        ("a.x IS NOT NULL", "never NULL"),
        ("hall(a.x)", "looked up in a relation"),
        ("a.x", "must compare it with a number"),
        ("(a.x < 5) = TRUE", "this is a condition"),
        ("a.x < hall(a.car)", "this is a condition"),
        ("a.x % 2 <> 1", "multiplied with a number"),
        ("a.x * b.x < 5", "multiplied with a number"),
        ("5 / a.x < 5", "multiplied with a number"),
        ("0 * a.x < 5", "multiplied by 0"),
        ("a.x - a.x < 5", "compared with itself"),
        ("ABS(a.x - 3) < 5", "ABS of a predicted value cannot contain"),
        ("ABS(a.x - NULL) < 5", "ABS of a predicted value cannot contain"),
        ("ABS(a.x) < ABS(b.x)", "ABS of a predicted value can only be compared"),
        ("ABS(ABS(a.x)) < 5", "ABS of a predicted value can only be compared"),
        ("ABS(a.x) < b.x", "ABS of a predicted value can only be compared"),
    ],
)
def test_other_conditions_on_values_are_refused_with_the_reason(where: str, reason: str, catalog: Catalog) -> None:
    (finding,) = findings(f"CREATE QUERY q AS MONITOR a, b FROM cars WHERE {where}", catalog)
    assert finding.code == "not-a-constraint"
    assert reason in finding.message
    assert finding.hint


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("a FROM cars WHERE a.x < 'five'", "type-mismatch"),
        ("a FROM cars WHERE a.x < TRUE", "type-mismatch"),
        ("a FROM typed WHERE a.x < 'five'", "type-mismatch"),
        ("a FROM typed WHERE a.x < a.t", "type-mismatch"),
        ("a FROM cars WHERE ABS(a.x) < 'five' + 1", "not-a-number"),
        ("a FROM cars WHERE a.x < 1e308 * 10", "out-of-range"),
        ("a FROM cars WHERE a.x * 1e308 * 10 < 1", "out-of-range"),
        ("a, b, c FROM cars WHERE a.x + b.x < 2 * c.x", "not-a-constraint"),
        ("a FROM cars WHERE a.x < 1e308 * 10 - 1e308 * 10", "out-of-range"),
    ],
)
def test_values_are_compared_with_numbers(query: str, code: str, catalog: Catalog) -> None:
    assert wrong(f"MONITOR {query}", catalog) == [code]


def test_values_that_are_strings_in_the_source_are_refused(catalog: Catalog) -> None:
    """A query is bound again with the types of its sources before it is run."""
    cars = catalog.stream("cars")
    assert cars is not None
    entries = {**catalog.entries, "cars": cars.with_types({"x": Type.INTEGER, "y": Type.STRING})}
    with pytest.raises(WorkbookError, match="a predicted value must be a number, but 'y' is a STRING"):
        bound("MONITOR a FROM cars WHERE a.x < 5", Catalog(entries))
    keyed = replace(cars, declaration=replace(cars.declaration, error=catalog.stream("wide").declaration.error))
    keyed = replace(keyed, keys=(replace(keyed.keys[0], name="spread", type=Type.STRING),))
    with pytest.raises(WorkbookError, match="an error must be a number, but 'spread' is a STRING"):
        bound("MONITOR a FROM cars WHERE a.x < 5", Catalog({**catalog.entries, "cars": keyed}))
