"""Conditions on Arrow arrays, compared with their evaluation row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.drawn import examples
from tests.oracles import conditions as oracle
from tests.typed_trees import COLUMNS, RELATIONS, as_python, conditions, rows

from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed
from anabranch.catalog import Relation
from anabranch.columns.conditions import ARROW_TYPES, evaluate, holds
from anabranch.language.types import Type

TABLES = {
    relation.name.lower(): pa.table(
        [
            pa.array([as_python(row[index], column.type) for row in known], ARROW_TYPES[column.type])
            for index, column in enumerate(relation.columns)
        ],
        names=[column.name for column in relation.columns],
    )
    for relation, known in RELATIONS.items()
}
SETS = {relation.name: set(known) for relation, known in RELATIONS.items()}


def columns_of(given_rows: list[dict[str, Any]]) -> dict[str, pa.Array]:
    return {
        name: pa.array([as_python(row[name], kind) for row in given_rows], ARROW_TYPES[kind])
        for name, kind in COLUMNS.items()
    }


@examples(80)
@given(conditions(), rows)
def test_a_condition_has_the_value_it_has_row_by_row(tree: Typed, given_rows: list[dict[str, Any]]) -> None:
    columns = columns_of(given_rows)
    wanted = [oracle.evaluate(tree, row, SETS) for row in given_rows]
    assert evaluate(tree, columns, TABLES, len(given_rows)).to_pylist() == wanted
    assert holds(tree, columns, TABLES, len(given_rows)).tolist() == [value is True for value in wanted]


def test_a_missing_condition_holds_for_every_row() -> None:
    assert holds(None, {}, {}, 3).tolist() == [True, True, True]


def test_a_condition_on_no_rows_gives_no_values() -> None:
    less = Operation("<", (Reference(None, "integer1", Type.INTEGER), Constant(1, Type.INTEGER)), Type.BOOLEAN)
    pairs = next(relation for relation in RELATIONS if relation.name == "pairs")
    member = Member(pairs, (Reference(None, "string1", Type.STRING), Reference(None, "integer1", Type.INTEGER)))
    for tree in (less, member):
        assert holds(tree, columns_of([]), TABLES, 0).tolist() == []


@pytest.mark.parametrize(
    ("op", "left", "right", "wanted"),
    [
        ("+", 2**63 - 1, 1, 2.0**63),
        ("-", -(2**63), 1, -(2.0**63)),
        ("*", 2**40, 2**40, 2.0**80),
        ("%", -(2**63), -1, 0),
    ],
)
def test_integers_that_overflow_become_doubles(op: str, left: int, right: int, wanted: float) -> None:
    tree = Operation(op, (Constant(left, Type.INTEGER), Constant(right, Type.INTEGER)), Type.INTEGER)
    assert evaluate(tree, {}, {}, 1).to_pylist() == [wanted]


def test_large_integers_are_compared_exactly() -> None:
    columns = {"a": pa.array([2**60 + 1]), "b": pa.array([2**60])}
    names = [Reference(None, name, Type.INTEGER) for name in ("a", "b")]
    for op, wanted in (("=", False), (">", True)):
        assert holds(Operation(op, tuple(names), Type.BOOLEAN), columns, {}, 1).tolist() == [wanted]


def test_the_least_integer_has_an_absolute_value() -> None:
    for op in ("abs", "negate"):
        tree = Operation(op, (Constant(-(2**63), Type.INTEGER),), Type.INTEGER)
        assert evaluate(tree, {}, {}, 1).to_pylist() == [2.0**63]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_membership_of_null_is_null(relation: Relation) -> None:
    unknown = tuple(Constant(None, Type.UNKNOWN) for _ in relation.columns)
    assert evaluate(Member(relation, unknown), {}, TABLES, 2).to_pylist() == [None, None]


def test_membership_can_be_tested_for_every_arrow_string_type() -> None:
    """Arrow has several string types; the columns of a relation have one of them."""
    relation = next(known for known in RELATIONS if [column.type for column in known.columns] == [Type.STRING])
    ((member,), *_) = RELATIONS[relation]
    column = {"x": pa.array([member, "elsewhere", None], pa.large_string())}
    condition = Member(relation, (Reference(None, "x", Type.STRING),))
    assert evaluate(condition, column, TABLES, 3).to_pylist() == [True, False, None]
