"""What conditions say without data: the value of a condition on constants, and whether conditions contradict."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anabranch.binding.typed import Constant, Operation, Reference, Typed, conjuncts

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class _Unknown:
    """The value of a tree that depends on data."""


UNKNOWN = _Unknown()


def contradictory(conditions: Sequence[Typed]) -> bool:
    """Whether no row can satisfy all conditions; False if that is not certain without data.

    Conditions are on columns: `Reference(None, <column>)`.
    """
    parts = [part for condition in conditions for part in conjuncts(condition)]
    values: dict[str, object] = {}
    for part in parts:
        column, value = _equality(part)
        if column is not None:
            if column in values and values[column] != value:
                return True
            values[column] = value
    known = set(parts)
    return any(value_of(part, values) in (False, None) or _negation(part) in known for part in parts)


def _equality(condition: Typed) -> tuple[str | None, object]:
    """The column and the value of a condition `column = constant`."""
    if isinstance(condition, Operation) and condition.op == "=":
        for one, other in (condition.arguments, condition.arguments[::-1]):
            if isinstance(one, Reference) and isinstance(other, Constant) and other.value is not None:
                return one.name, other.value
    return None, None


def _negation(condition: Typed) -> Typed | None:
    """The opposite of a condition; None if it has no simple form."""
    if not isinstance(condition, Operation):
        return Operation("not", (condition,), condition.type)
    if condition.op == "not":
        return condition.arguments[0]
    if condition.op in _OPPOSITE:
        return Operation(_OPPOSITE[condition.op], condition.arguments, condition.type)
    return None


def value_of(tree: Typed, values: Mapping[str, object]) -> object:
    """The value of a condition for these values of columns (None is NULL), or UNKNOWN.

    Examples
    --------
    >>> from anabranch.language.types import Type
    >>> place = Reference(None, "place", Type.STRING)
    >>> value_of(Operation("<>", (place, Constant("hall", Type.STRING)), Type.BOOLEAN), {"place": "hall"})
    False
    """
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Reference):
        return values.get(tree.name, UNKNOWN)
    arguments = [value_of(part, values) for part in tree.arguments]
    if not isinstance(tree, Operation):
        return UNKNOWN
    if tree.op in ("and", "or"):
        decisive = tree.op == "or"
        if decisive in arguments:
            return decisive
        return next((value for value in (UNKNOWN, None) if value in arguments), not decisive)
    if UNKNOWN in arguments:
        return UNKNOWN
    if tree.op == "is_null":
        return arguments[0] is None
    if tree.op == "not":
        return None if arguments[0] is None else not arguments[0]
    if tree.op in _COMPARISONS:
        return None if None in arguments else _COMPARISONS[tree.op](*arguments)
    return UNKNOWN
