"""Typed conditions on Arrow arrays, with SQL's three-valued logic: one array operation per node of the tree.

Conditions are evaluated once per distinct (key, value), so a row costs one table look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import Bools
from anabranch.binding.typed import Constant, Member, Reference, Typed
from anabranch.columns.dictionary import flat
from anabranch.language.types import Type

ARROW_TYPES = {
    Type.STRING: pa.string(),
    Type.INTEGER: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.DATE: pa.date32(),
    Type.BINARY: pa.binary(),
    Type.NULL: pa.null(),
}

Columns = Mapping[str, pa.Array]
Operator = Callable[..., pa.Array]
Relations = Mapping[str, pa.Table]


def holds(condition: Typed | None, columns: Columns, relations: Relations, n_rows: int) -> Bools:
    """Where a condition is TRUE (not FALSE and not NULL); None is true everywhere.

    Parameters
    ----------
    condition : Typed
    columns : lower-case column name to array, `owner.name` where a reference has an owner
    relations : lower-case relation name to its rows
    n_rows : length of the arrays
    """
    if condition is None:
        return np.ones(n_rows, np.bool_)
    result = evaluate(condition, columns, relations, n_rows).cast(pa.bool_())
    return pc.fill_null(result, False).to_numpy(zero_copy_only=False)


def evaluate(tree: Typed, columns: Columns, relations: Relations, n_rows: int) -> pa.Array:
    """The value of a typed tree over arrays; a constant is repeated, so that every node is an array."""
    if isinstance(tree, Constant):
        return pa.repeat(pa.scalar(tree.value, ARROW_TYPES.get(tree.type)), n_rows)
    if isinstance(tree, Reference):
        return columns[tree.name if tree.owner is None else f"{tree.owner}.{tree.name}"]
    arguments = [evaluate(part, columns, relations, n_rows) for part in tree.arguments]
    if isinstance(tree, Member):
        return _member(arguments, relations[tree.relation.name.lower()])
    return _OPERATORS[tree.op](*arguments)


def _exact(checked: Operator) -> Operator:
    """Integer arithmetic that continues in doubles if 64 bits overflow."""

    def operate(*arguments: pa.Array) -> pa.Array:
        try:
            return checked(*arguments)
        except pa.ArrowInvalid:
            return checked(*map(_doubles, arguments))

    return operate


def _doubles(column: pa.Array) -> pa.Array:
    """The column as doubles; integers beyond 2^53 are rounded, as in Spark."""
    return pc.cast(column, pa.float64(), safe=False)


_minus = _exact(pc.subtract_checked)


def _subtract(left: pa.Array, right: pa.Array) -> pa.Array:
    """The difference of numbers, or the seconds between two times."""
    if pa.types.is_timestamp(left.type) or pa.types.is_timestamp(right.type):
        microseconds = (pc.cast(time, ARROW_TYPES[Type.TIMESTAMP]).cast(pa.int64()) for time in (left, right))
        return pc.divide(_doubles(_minus(*microseconds)), 1e6)
    return _minus(left, right)


def _divide(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.divide(_doubles(left), _null_for_zero(_doubles(right)))


def _null_for_zero(divisor: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(divisor, pa.scalar(0, divisor.type)), pa.scalar(None, divisor.type), divisor)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder with the sign of the dividend, as in Spark; Arrow has no such function."""
    kind = pa.int64() if pa.types.is_integer(left.type) and pa.types.is_integer(right.type) else pa.float64()
    divisor = _null_for_zero(pc.cast(right, kind, safe=False))
    missing = pc.or_(left.is_null(), divisor.is_null()).to_numpy(zero_copy_only=False)
    dividend = pc.fill_null(pc.cast(left, kind, safe=False), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.fmod(dividend, pc.fill_null(divisor, 1).to_numpy(zero_copy_only=False)), kind, mask=missing)


def _fold(function: Operator) -> Operator:
    def operate(first: pa.Array, *rest: pa.Array) -> pa.Array:
        result = first.cast(pa.bool_())
        for operand in rest:
            result = function(result, operand.cast(pa.bool_()))
        return result

    return operate


def _compare(function: Operator) -> Operator:
    def operate(left: pa.Array, right: pa.Array) -> pa.Array:
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return pa.nulls(len(left), pa.bool_())
        if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
            left, right = _doubles(left), _doubles(right)
        return function(left, right)

    return operate


def _member(arguments: list[pa.Array], relation: pa.Table) -> pa.Array:
    """Whether each tuple of arguments is a row of the relation; NULL if the tuple has a NULL."""
    if any(pa.types.is_null(argument.type) for argument in arguments):
        return pa.nulls(len(arguments[0]), pa.bool_())
    pairs = [same_type(argument, column) for argument, column in zip(arguments, relation.columns, strict=True)]
    if len(pairs) == 1:
        argument, known = pairs[0]
        return pc.if_else(argument.is_null(), pa.scalar(None, pa.bool_()), pc.is_in(argument, value_set=known))
    rows = set(zip(*(known.to_pylist() for _, known in pairs), strict=True))
    tuples = zip(*(argument.to_pylist() for argument, _ in pairs), strict=True)
    return pa.array([None if None in row else row in rows for row in tuples], pa.bool_())


def same_type(argument: pa.Array, column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """An argument and a column of a relation, both in a type in which they can be compared."""
    known = flat(column)
    if argument.type == known.type:
        return argument, known
    numeric = (pa.types.is_integer, pa.types.is_floating)
    if any(test(argument.type) for test in numeric) and any(test(known.type) for test in numeric):
        return _doubles(argument), _doubles(known)
    return argument, known.cast(argument.type)


_OPERATORS: dict[str, Operator] = {
    "+": _exact(pc.add_checked),
    "-": _subtract,
    "*": _exact(pc.multiply_checked),
    "/": _divide,
    "%": _remainder,
    "negate": _exact(pc.negate_checked),
    "abs": _exact(pc.abs_checked),
    "=": _compare(pc.equal),
    "<>": _compare(pc.not_equal),
    "<": _compare(pc.less),
    "<=": _compare(pc.less_equal),
    ">": _compare(pc.greater),
    ">=": _compare(pc.greater_equal),
    "and": _fold(pc.and_kleene),
    "or": _fold(pc.or_kleene),
    "not": lambda argument: pc.invert(argument.cast(pa.bool_())),
    "is_null": lambda argument: pc.is_null(argument),
}
