"""Rules for the types of constants, arithmetic and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from anabranch.binding.typed import Constant, Reference, Typed
from anabranch.language.temporal import parse_date, parse_timestamp
from anabranch.language.types import Type

#: How a string constant is parsed if it is compared with a column of this type, and an example.
_PARSERS: dict[Type, tuple[Callable[[str], int | None], str]] = {
    Type.TIMESTAMP: (parse_timestamp, "'2026-01-31 12:00:00'"),
    Type.DATE: (parse_date, "'2026-01-31'"),
}

_TYPE_OF = {str: Type.STRING, bool: Type.BOOLEAN, int: Type.INTEGER, float: Type.DOUBLE, type(None): Type.NULL}


def type_of(value: str | int | float | bool | None) -> Type:
    """The type of a constant."""
    return _TYPE_OF[type(value)]


def coerce_string(typed: Typed, target: Type) -> Typed:
    """Convert a string constant to the time type `target`; anything else is returned unchanged."""
    if target in _PARSERS and isinstance(typed, Constant) and isinstance(typed.value, str):
        value = _PARSERS[target][0](typed.value)
        if value is not None:
            return Constant(value, target, typed.span)
    return typed


def arithmetic_type(op: str, left: Type, right: Type) -> Type:
    """The type of `left op right` for two numbers."""
    if Type.UNKNOWN in (left, right) or Type.NULL in (left, right):
        return Type.DOUBLE if op == "/" else Type.UNKNOWN
    return Type.INTEGER if left == right == Type.INTEGER and op != "/" else Type.DOUBLE


def comparison_hint(left: Typed, right: Typed) -> str:
    """How to fix a comparison of two values that cannot be compared."""
    types = (left.type, right.type)
    for kind, (_, example) in _PARSERS.items():
        if kind in types:
            return f"write the time as {example}, or compare a difference of times with a duration"
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Constant) and isinstance(other, Reference):
            # The variable of a PATTERN has no owner.
            return constant_hint(one, "its column" if other.owner is None else other.name, other.type)
    if Type.STRING in types:
        return "put strings in quotes, and write numbers without quotes"
    return "compare values of the same type"


def constant_hint(constant: Typed, column: str, kind: Type) -> str:
    """How to fix a constant that does not fit a column: write it as the column has it, or declare the column so."""
    if not isinstance(constant, Constant):
        return f"write {a_type(kind)}"
    value = constant.value
    if isinstance(value, str) and kind.is_numeric and _is_number(value):
        return f"write {value}, or declare {column} as a STRING"
    if kind is Type.STRING and constant.type.is_numeric:
        return f"write '{value}', or declare {column} as {a_type(constant.type)}"
    return f"write {a_type(kind)}"


def _is_number(text: str) -> bool:
    """Whether the text is a number, as a workbook would write it."""
    try:
        return isfinite(float(text)) and text == text.strip()
    except ValueError:
        return False


def a_type(kind: Type) -> str:
    """A type with its article, as in `a STRING`."""
    return f"{'an' if kind.value[0] in 'IU' else 'a'} {kind.value}"
