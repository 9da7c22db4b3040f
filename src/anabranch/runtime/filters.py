"""Typed conditions as Spark columns: filters that Spark applies before rows reach Python.

They are built node by node from the typed tree; no text of a workbook reaches Spark's parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch.binding.typed import Constant, Member, Reference, Typed
from anabranch.language.types import Type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Rows = Mapping[str, list[tuple[object, ...]]]


def lower(tree: Typed, columns: Mapping[str, Column], relations: Rows) -> Column:
    """A typed tree as a Spark column.

    Parameters
    ----------
    columns : the column of each reference, by lower-case name, or by `owner.name` if it has an owner
    relations : the rows of each relation, by lower-case name; they become a list of constants
    """
    if isinstance(tree, Constant):
        return _constant(tree)
    if isinstance(tree, Reference):
        return columns[tree.name if tree.owner is None else f"{tree.owner}.{tree.name}"]
    arguments = [lower(part, columns, relations) for part in tree.arguments]
    if isinstance(tree, Member):
        return _member(arguments, relations[tree.relation.name.lower()])
    if tree.op == "-" and any(part.type is Type.TIMESTAMP for part in tree.arguments):
        return _seconds_between(*arguments)
    return _OPERATORS[tree.op](*arguments)


def _constant(tree: Constant) -> Column:
    if tree.type is Type.TIMESTAMP and isinstance(tree.value, int):
        return F.lit(_EPOCH + timedelta(microseconds=tree.value))
    if tree.type is Type.DATE and isinstance(tree.value, int):
        return F.lit(_EPOCH.date() + timedelta(days=tree.value))
    return F.lit(tree.value)


def _member(arguments: list[Column], rows: list[tuple[object, ...]]) -> Column:
    """Membership; NULL for a tuple with a NULL."""
    known = reduce(lambda left, right: left & right, (argument.isNotNull() for argument in arguments))
    if not rows:
        found = F.lit(False)
    elif len(arguments) == 1:
        found = arguments[0].isin([row[0] for row in rows if row[0] is not None])
    else:
        pairs = [reduce(lambda a, b: a & b, map(_equals, arguments, row)) for row in rows]
        found = reduce(lambda left, right: left | right, pairs)
    return F.when(known, found)


def _equals(argument: Column, value: object) -> Column:
    return F.lit(False) if value is None else argument == F.lit(value)


def _seconds_between(left: Column, right: Column) -> Column:
    first, second = (F.unix_micros(time.cast("timestamp_ltz")) for time in (left, right))
    return (first - second) / F.lit(1e6)


def _negative(column: Column) -> Column:
    return F.coalesce(F.try_subtract(F.lit(0), column), -_double(column))


def _double(column: Column) -> Column:
    return column.cast("double")


_OPERATORS: dict[str, Callable[..., Column]] = {
    "+": lambda a, b: F.coalesce(F.try_add(a, b), _double(a) + _double(b)),
    "-": lambda a, b: F.coalesce(F.try_subtract(a, b), _double(a) - _double(b)),
    "*": lambda a, b: F.coalesce(F.try_multiply(a, b), _double(a) * _double(b)),
    "/": lambda a, b: F.try_divide(_double(a), _double(b)),
    "%": lambda a, b: F.try_mod(a, b),
    "negate": _negative,
    "abs": lambda a: F.when(a < 0, _negative(a)).otherwise(a),
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda *parts: reduce(lambda a, b: a & b, parts),
    "or": lambda *parts: reduce(lambda a, b: a | b, parts),
    "not": lambda a: ~a,
    "is_null": lambda a: a.isNull(),
}
