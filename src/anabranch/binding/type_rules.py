"""Rules for the types of constants, arithmetic and comparisons."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.binding.typed import Constant, Typed
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


def comparison_hint(left: Type, right: Type) -> str:
    """How to fix a comparison of two types that cannot be compared."""
    for kind, (_, example) in _PARSERS.items():
        if kind in (left, right):
            return f"write the time as {example}, or compare a difference of times with a duration"
    if Type.STRING in (left, right):
        return "put strings in quotes, and write numbers without quotes"
    return "compare values of the same type"


def a_type(kind: Type) -> str:
    """A type with its article, as in `a STRING`."""
    return f"{'an' if kind.value[0] in 'IU' else 'a'} {kind.value}"
