"""Typed conditions on Arrow arrays, with SQL's three-valued logic; one array operation per node of the tree.

Conditions are asked once per distinct (key, value), so that a row costs a table look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.language.typed import Constant, Member, Operation, Reference, Typed
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
Relations = Mapping[str, pa.Table]


def holds(condition: Typed | None, columns: Columns, relations: Relations, n_rows: int) -> npt.NDArray[np.bool_]:
    """Where a condition is TRUE (not FALSE and not NULL); None is true everywhere.

    Parameters
    ----------
    condition : Typed
    columns : lower-case column name to array
    relations : lower-case relation name to its rows
    n_rows : length of the arrays
    """
    if condition is None:
        return np.ones(n_rows, np.bool_)
    result = pc.fill_null(_array(evaluate(condition, columns, relations), n_rows), False)
    return result.cast(pa.bool_()).to_numpy(zero_copy_only=False)


def evaluate(tree: Typed, columns: Columns, relations: Relations) -> pa.Array | pa.Scalar:
    """The value of a typed tree over arrays; a tree without references gives a scalar."""
    if isinstance(tree, Constant):
        return pa.scalar(tree.value, ARROW_TYPES.get(tree.type))
    if isinstance(tree, Reference):
        return columns[tree.name]
    arguments = [evaluate(part, columns, relations) for part in tree.arguments]
    if isinstance(tree, Member):
        return _member(arguments, relations[tree.relation.name.lower()])
    return _OPERATORS[tree.op](*arguments)


def _array(value: pa.Array | pa.Scalar, n_rows: int) -> pa.Array:
    return pa.repeat(value, n_rows) if isinstance(value, pa.Scalar) else value


def _exact(checked: Callable) -> Callable:
    """Integer arithmetic that goes on in doubles where 64 bits overflow."""

    def operate(*arguments):
        try:
            return checked(*arguments)
        except pa.ArrowInvalid:
            return checked(*(pc.cast(argument, pa.float64()) for argument in arguments))

    return operate


def _divide(left, right):
    divisor = pc.cast(right, pa.float64())
    return pc.divide(pc.cast(left, pa.float64()), _null_for_zero(divisor))


def _null_for_zero(divisor):
    return pc.if_else(pc.equal(divisor, pa.scalar(0, divisor.type)), pa.scalar(None, divisor.type), divisor)


def _remainder(left, right):
    """The remainder with the sign of the dividend, as in Spark; Arrow has no such function."""
    if not isinstance(left, pa.Scalar) or not isinstance(right, pa.Scalar):
        n_rows = len(left) if not isinstance(left, pa.Scalar) else len(right)
        left, right = _array(left, n_rows), _array(right, n_rows)
    else:
        left, right = _array(left, 1), _array(right, 1)
    kind = pa.int64() if pa.types.is_integer(left.type) and pa.types.is_integer(right.type) else pa.float64()
    divisor = _null_for_zero(pc.cast(right, kind))
    missing = pc.or_(left.is_null(), divisor.is_null()).to_numpy(zero_copy_only=False)
    dividend = pc.fill_null(pc.cast(left, kind), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.fmod(dividend, pc.fill_null(divisor, 1).to_numpy(zero_copy_only=False)), kind, mask=missing)


def _fold(function: Callable) -> Callable:
    def operate(first, *others):
        for other in others:
            first = function(first, other)
        return first

    return operate


def _compare(function: Callable) -> Callable:
    def operate(left, right):
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return pa.scalar(None, pa.bool_())
        return function(left, right)

    return operate


def _member(arguments: list, relation: pa.Table) -> pa.Array | pa.Scalar:
    """Whether each tuple of arguments is a row of the relation; NULL in it gives NULL."""
    lengths = [len(argument) for argument in arguments if not isinstance(argument, pa.Scalar)]
    n_rows = lengths[0] if lengths else 1
    if pa.types.is_null(arguments[0].type):
        return pa.scalar(None, pa.bool_())
    if len(arguments) == 1:
        asked, known = _same_type(_array(arguments[0], n_rows), relation.column(0))
        return pc.if_else(asked.is_null(), pa.scalar(None, pa.bool_()), pc.is_in(asked, value_set=known))
    pairs = [
        _same_type(_array(argument, n_rows), column)
        for argument, column in zip(arguments, relation.columns, strict=True)
    ]
    rows = set(zip(*(known.to_pylist() for _, known in pairs), strict=True))
    asked_rows = zip(*(asked.to_pylist() for asked, _ in pairs), strict=True)
    return pa.array([None if None in row else row in rows for row in asked_rows], pa.bool_())


def _same_type(asked: pa.Array, column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    known = column.combine_chunks()
    if isinstance(known, pa.ChunkedArray):
        known = known.chunk(0) if known.num_chunks else pa.array([], column.type)
    if asked.type == known.type:
        return asked, known
    numeric = (pa.types.is_integer, pa.types.is_floating)
    if any(test(asked.type) for test in numeric) and any(test(known.type) for test in numeric):
        return asked.cast(pa.float64()), known.cast(pa.float64())
    return asked, known.cast(asked.type)


_OPERATORS: dict[str, Callable] = {
    "+": _exact(pc.add_checked),
    "-": _exact(pc.subtract_checked),
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
    "not": pc.invert,
    "is_null": lambda argument: pc.is_null(argument),
}
