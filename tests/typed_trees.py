"""Hypothesis strategies for typed conditions and rows, for the tests of all code that evaluates such trees.

Values come from small domains, so that comparisons often hold and products never overflow. A TIMESTAMP is an
integer here, microseconds since 1970, and a DATE the days, as in the constants of a tree; `as_python` returns
the value of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed
from anabranch.catalog import Column, Relation
from anabranch.language import nodes
from anabranch.language.types import Type

_DAY = 86_400_000_000

DOMAIN: dict[Type, Sequence[Any]] = {
    Type.STRING: ("", "a", "b", "é", "𝄞"),
    Type.INTEGER: (-3, -1, 0, 1, 2, 7),
    Type.DOUBLE: (-1.5, -0.5, 0.0, 0.25, 2.0, 3.0),
    Type.BOOLEAN: (False, True),
    Type.TIMESTAMP: (-_DAY, 0, 1_500_000, 20_000 * _DAY),
    Type.DATE: (-1, 0, 20_000),
}
NUMBERS = (Type.INTEGER, Type.DOUBLE)

#: Two columns of each type, so that columns are compared with each other.
COLUMNS = {f"{kind.value.lower()}{number}": kind for kind in DOMAIN for number in (1, 2)}


def _relation(name: str, *kinds: Type) -> Relation:
    columns = tuple(Column(f"c{index}", kind, True) for index, kind in enumerate(kinds))
    source = nodes.CreateRelation(name, tuple(nodes.ColumnName(column.name, column.type.value) for column in columns))
    return Relation(name, columns, source)


#: Relations with their rows; a NULL in a row equals no value.
RELATIONS: dict[Relation, list[tuple[Any, ...]]] = {
    _relation("Words", Type.STRING): [("a",), ("é",), (None,)],
    _relation("pairs", Type.STRING, Type.INTEGER): [("a", 1), ("b", -3), ("", 0), (None, 2), ("a", None)],
    _relation("sizes", Type.DOUBLE): [(2.0,), (-0.5,), (7.0,)],
    _relation("days", Type.DATE, Type.BOOLEAN): [(0, True), (20_000, False)],
    _relation("empty", Type.INTEGER): [],
}

rows = st.lists(
    st.fixed_dictionaries({name: st.none() | st.sampled_from(DOMAIN[kind]) for name, kind in COLUMNS.items()}),
    min_size=1,
    max_size=12,
)


def as_python(value: Any, kind: Type) -> Any:
    """The value as it is in a table."""
    if value is None:
        return None
    if kind is Type.TIMESTAMP:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    return date(1970, 1, 1) + timedelta(days=value) if kind is Type.DATE else value


def _leaves(kind: Type) -> st.SearchStrategy[Typed]:
    """A column twice as often as a constant, and seldom NULL."""
    named = [Reference(None, name, column_kind) for name, column_kind in COLUMNS.items() if column_kind is kind]
    constants = [Constant(value, kind) for value in DOMAIN[kind]]
    return st.sampled_from(named * 6 + constants * 2 + [Constant(None, Type.NULL)])


def _numbers(depth: int) -> st.SearchStrategy[Typed]:
    leaves = st.sampled_from(NUMBERS).flatmap(_leaves)
    if depth == 0:
        return leaves
    parts = _numbers(depth - 1)
    times = _leaves(Type.TIMESTAMP).filter(lambda leaf: leaf.type is Type.TIMESTAMP)
    return st.one_of(
        leaves,
        st.builds(_arithmetic, st.sampled_from("+-*/%"), parts, parts),
        st.builds(_unary, st.sampled_from(["negate", "abs"]), parts),
        st.builds(lambda a, b: Operation("-", (a, b), Type.DOUBLE), times, times),
    )


def _arithmetic(op: str, left: Typed, right: Typed) -> Typed:
    whole = left.type is right.type is Type.INTEGER and op != "/"
    return Operation(op, (left, right), Type.INTEGER if whole else Type.DOUBLE)


def _unary(op: str, part: Typed) -> Typed:
    return Operation(op, (part,), part.type)


def _values(kind: Type, depth: int) -> st.SearchStrategy[Typed]:
    return _numbers(depth) if kind in NUMBERS else _leaves(kind)


def _comparisons(depth: int) -> st.SearchStrategy[Typed]:
    ops = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    kinds = st.sampled_from(list(DOMAIN))
    pairs = kinds.flatmap(lambda kind: st.tuples(_values(kind, depth), _values(kind, depth)))
    return st.builds(lambda op, pair: Operation(op, pair, Type.BOOLEAN), ops, pairs)


def _members(depth: int) -> st.SearchStrategy[Typed]:
    def of(relation: Relation) -> st.SearchStrategy[Typed]:
        arguments = st.tuples(*(_values(column.type, depth) for column in relation.columns))
        return arguments.map(lambda chosen: Member(relation, chosen))

    return st.sampled_from(list(RELATIONS)).flatmap(of)


def conditions(depth: int = 3) -> st.SearchStrategy[Typed]:
    """Conditions of at most this depth, not counting the arithmetic in them."""
    small = st.one_of(_comparisons(2), _members(1), _leaves(Type.BOOLEAN), _null_tests(1))
    if depth == 0:
        return small
    parts = conditions(depth - 1)
    return st.one_of(
        small,
        st.builds(_logical("and"), st.lists(parts, min_size=2, max_size=3)),
        st.builds(_logical("or"), st.lists(parts, min_size=2, max_size=3)),
        st.builds(lambda part: Operation("not", (part,), Type.BOOLEAN), parts),
        st.builds(lambda part: Operation("is_null", (part,), Type.BOOLEAN), parts),
    )


def _null_tests(depth: int) -> st.SearchStrategy[Typed]:
    parts = st.sampled_from(list(DOMAIN)).flatmap(lambda kind: _values(kind, depth))
    return parts.map(lambda part: Operation("is_null", (part,), Type.BOOLEAN))


def _logical(op: str) -> Callable[[list[Typed]], Typed]:
    return lambda parts: Operation(op, tuple(parts), Type.BOOLEAN)
