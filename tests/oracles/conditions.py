"""The value of a typed condition for one set of bindings, in SQL's three-valued logic, one scalar at a time.

NULL is None. A condition holds if its value is True, not if it is False or NULL. There is no short-circuit evaluation,
and no values of a row raise an error: a division by zero is NULL. Times that are DOUBLE are decimals, as they were
written, and so is every number that is compared with them or added to them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from anabranch.binding.typed import Constant, Member, Reference, Typed
from anabranch.language.types import Type

Value = Any
Bindings = Mapping[Any, Value]
Relations = Mapping[str, Collection[tuple[Value, ...]]]
Functions = Mapping[str, Callable[..., Value]]

NO_FUNCTIONS: Functions = MappingProxyType({})


def holds(
    condition: Typed | None, bindings: Bindings, relations: Relations, functions: Functions = NO_FUNCTIONS
) -> bool:
    """Whether the condition is true for the bindings; None is TRUE."""
    return condition is None or evaluate(condition, bindings, relations, functions) is True


def evaluate(tree: Typed, bindings: Bindings, relations: Relations, functions: Functions = NO_FUNCTIONS) -> Value:
    """The value of the tree, with the values of names in `bindings`.

    Parameters
    ----------
    tree : Typed
    bindings : mapping from PATTERN variable (lower case) to value, or from (owner, mention) to the columns of an event
        The column `*` is the complete event.
    relations : mapping from the name of a relation, as declared, to its rows
    functions : mapping from an operator of one kind of query to its function, which is not called with NULL
    """
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Reference):
        return bindings[tree.name] if tree.owner is None else bindings[tree.owner, tree.mention][tree.name]
    arguments = [evaluate(argument, bindings, relations, functions) for argument in tree.arguments]
    if isinstance(tree, Member):
        return _member(arguments, relations[tree.relation.name])
    if tree.op in _LOGICAL:
        return _LOGICAL[tree.op](*arguments)
    # Arithmetic, comparisons and functions of NULL are NULL.
    if None in arguments:
        return None
    if any(isinstance(argument, Decimal) for argument in arguments):
        arguments = [Decimal(repr(value)) if isinstance(value, float) else value for value in arguments]
    value = _STRICT[tree.op](*arguments) if tree.op in _STRICT else functions[tree.op](*arguments)
    # Timestamps are microseconds here, and their difference is in seconds.
    return value / 1e6 if tree.op == "-" and tree.arguments[0].type is Type.TIMESTAMP else value


def _member(arguments: list[Value], rows: Collection[tuple[Value, ...]]) -> bool | None:
    """Whether the arguments are a row of the relation; NULL if one of them is NULL."""
    return None if None in arguments else tuple(arguments) in rows


def _and(*arguments: bool | None) -> bool | None:
    """False if one is False, else NULL if one is NULL, else True."""
    if False in arguments:
        return False
    return None if None in arguments else True


def _or(*arguments: bool | None) -> bool | None:
    """True if one is True, else NULL if one is NULL, else False."""
    if True in arguments:
        return True
    return None if None in arguments else False


def _not(argument: bool | None) -> bool | None:
    """NULL stays NULL."""
    return None if argument is None else not argument


def _is_null(argument: Value) -> bool:
    """The only operator on NULL whose value is not NULL."""
    return argument is None


def _divide(left: float, right: float) -> float | None:
    """The quotient as a real number, also of integers; NULL for a division by zero."""
    return None if right == 0 else float(left) / float(right)


def _remainder(left: float, right: float) -> float | None:
    """The remainder of a division that rounds towards zero, with the sign of `left`; NULL for a division by zero."""
    if right == 0:
        return None
    size = abs(left) % abs(right)
    return -size if left < 0 else size


_LOGICAL: dict[str, Callable[..., bool | None]] = {
    "and": _and, "or": _or, "not": _not, "is_null": _is_null,
}  # fmt: skip

_STRICT: dict[str, Callable[..., Value]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "%": _remainder,
    "negate": operator.neg, "abs": abs,
    "=": operator.eq, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
