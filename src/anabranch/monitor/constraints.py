"""The conditions of a MONITOR, sorted: some ask rows, and the others are constraints on predicted values.

A predicted value is known up to an error, so that it cannot be asked just anything. A constraint compares a value, or
the difference of two, or the absolute value of either, with a number: `ABS(a.x - b.x) <= 400`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from anabranch.binding.type_rules import a_type
from anabranch.binding.typed import MIRRORED, Constant, Member, Operation, Reference, Typed, walk
from anabranch.catalog import Stream
from anabranch.errors import Span
from anabranch.language.findings import Findings, shown
from anabranch.language.types import Type
from anabranch.monitor.query import BoundConstraint

#: The negation of each comparison.
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "%": math.fmod,
}

_ONE_BY_ONE = "ask each part in a query of its own"


class _Refused(Exception):
    """A condition on a value that is no constraint: where, why, and what would be right."""

    def __init__(self, reason: str, span: Span, hint: str, code: str = "not-a-constraint") -> None:
        super().__init__(reason)
        self.reason, self.span, self.hint, self.code = reason, span, hint, code


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conjuncts of a WHERE: those about values, as constraints, and those about rows.

    `refused` says that there were others, which are findings.
    """

    constraints: tuple[BoundConstraint, ...] = ()
    of_rows: tuple[Typed, ...] = ()
    refused: bool = False


def sort_conditions(
    conditions: Iterable[Typed], streams: Mapping[str, Stream | None], findings: Findings
) -> Conditions:
    """The conditions about values as constraints, and the others as they are; a wrong one is a finding."""
    constraints: list[BoundConstraint] = []
    of_rows: list[Typed] = []
    refused = False
    for condition in conditions:
        if not any(is_value(node, streams) for node in walk(condition)):
            of_rows.append(condition)
            continue
        try:
            constraints.append(_constraint(condition, streams))
        except _Refused as wrong:
            refused = True
            findings.add(wrong.code, wrong.reason, wrong.span, wrong.hint)
    return Conditions(tuple(constraints), tuple(of_rows), refused)


def is_value(node: Typed, streams: Mapping[str, Stream | None]) -> bool:
    """Whether the node is a value column of one of the streams, which are by the names of operands."""
    if not isinstance(node, Reference):
        return False
    stream = streams.get(node.owner or "")
    return stream is not None and any(value.name.lower() == node.name for value in stream.values)


def _constraint(condition: Typed, streams: Mapping[str, Stream | None]) -> BoundConstraint:
    op, first, second = _comparison(condition)
    left, right = _sum(first), _sum(second)
    if not left.terms:
        op, left, right = MIRRORED[op], right, left
    total = left.minus(right)
    others = [node for node in walk(condition) if isinstance(node, Reference) and not is_value(node, streams)]
    if others:
        name = f"{others[0].owner}.{others[0].name}"
        reason = f"a value is compared with a number, and {shown(name)} is a column that each row has anew"
        raise _Refused(reason, condition.span, "ask values and other columns in conditions of their own, with AND")
    if total.bound is not None and not math.isfinite(total.bound):
        raise _Refused("this bound is not a finite number", condition.span, "write a smaller one", "out-of-range")
    return _bounded(op, total, condition.span)


def _comparison(condition: Typed) -> tuple[str, Typed, Typed]:
    """The comparison that a condition is, perhaps under NOT."""
    if isinstance(condition, Member):
        reason = "a relation holds exact values, and a predicted one is known up to an error"
        raise _Refused(reason, condition.span, "compare the value with numbers")
    if isinstance(condition, Operation) and condition.op == "not":
        inner = condition.arguments[0]
        if isinstance(inner, Operation) and inner.op in ("and", "or"):
            reason = "NOT before several conditions on values is no constraint: constraints are joined by AND alone"
            raise _Refused(reason, condition.span, _ONE_BY_ONE)
        op, left, right = _comparison(inner)
        return _OPPOSITE[op], left, right
    if isinstance(condition, Operation) and condition.op in MIRRORED:
        left, right = condition.arguments
        return condition.op, left, right
    if isinstance(condition, Operation) and condition.op == "or":
        reason = "OR between conditions on values is no constraint: constraints are joined by AND alone"
        raise _Refused(reason, condition.span, _ONE_BY_ONE)
    if isinstance(condition, Operation) and condition.op == "is_null":
        raise _Refused("a predicted value is never NULL", condition.span, "leave this condition out")
    raise _Refused("a condition on a value compares it with a number", condition.span, "write a.x <= 5, or the like")


# ---------------------------------------------------------------- sums


@dataclass(frozen=True, slots=True)
class _Sum:
    """A number that is known (None where it is NULL), and what is added to it or subtracted from it.

    The terms are columns, and absolute values.
    """

    plus: tuple[Typed, ...] = ()
    less: tuple[Typed, ...] = ()
    number: float | None = 0.0

    def minus(self, other: _Sum) -> _Sum:
        """The difference of both."""
        return _Sum((*self.plus, *other.less), (*self.less, *other.plus), _calculated("-", self.number, other.number))

    @property
    def terms(self) -> tuple[Typed, ...]:
        """What is added, then what is subtracted."""
        return (*self.plus, *self.less)

    @property
    def bound(self) -> float | None:
        """What the terms are compared with, once the number has gone to the other side."""
        return None if self.number is None else 0.0 - self.number


def _sum(tree: Typed) -> _Sum:
    """An expression as a sum of columns, absolute values and a number."""
    if isinstance(tree, Constant):
        return _Sum(number=_number(tree))
    if isinstance(tree, Operation) and tree.op in ("+", "-", "negate"):
        *first, last = (_sum(argument) for argument in tree.arguments)
        start = first[0] if first else _Sum()
        return start.minus(last) if tree.op != "+" else start.minus(_Sum().minus(last))
    if isinstance(tree, Operation) and not any(isinstance(node, Reference) for node in walk(tree)):
        return _Sum(number=_folded(tree))
    if isinstance(tree, Operation) and tree.op in ("*", "/", "%"):
        reason = "a value that is multiplied or divided is no constraint: its error would be too"
        raise _Refused(reason, tree.span, "multiply or divide the number on the other side")
    if isinstance(tree, Reference) or (isinstance(tree, Operation) and tree.op == "abs"):
        return _Sum(plus=(tree,))
    raise _Refused("a value is compared with a number, and this is a condition", tree.span, "join conditions with AND")


def _number(constant: Constant) -> float | None:
    if constant.value is None or constant.type is Type.NULL:
        return None
    if isinstance(constant.value, str | bool) or not constant.type.is_numeric:
        message = f"a predicted value is a number, and this is {a_type(constant.type)}"
        raise _Refused(message, constant.span, "write a number, without quotes", "type-mismatch")
    return float(constant.value)


def _folded(tree: Typed) -> float | None:
    """The number that an expression without columns is; None for NULL."""
    if isinstance(tree, Constant):
        return _number(tree)
    if isinstance(tree, Operation) and tree.op in ("negate", "abs"):
        number = _folded(tree.arguments[0])
        return None if number is None else -number if tree.op == "negate" else abs(number)
    if isinstance(tree, Operation) and tree.op in _ARITHMETIC:
        left, right = (_folded(argument) for argument in tree.arguments)
        return _calculated(tree.op, left, right)
    raise _Refused("a value is compared with a number, and this is a condition", tree.span, "join conditions with AND")


def _calculated(op: str, left: float | None, right: float | None) -> float | None:
    """As conditions calculate: NULL with anything is NULL, and so is a division by zero."""
    if left is None or right is None or (op in "/%" and right == 0):
        return None
    return _ARITHMETIC[op](left, right) if math.isfinite(left) and math.isfinite(right) else math.nan


# ---------------------------------------------------------------- shapes


def _bounded(op: str, total: _Sum, span: Span) -> BoundConstraint:
    """The constraint that a sum of values is below, above or at 0."""
    only = total.terms[0] if len(total.terms) == 1 else None
    inner = only.arguments[0] if isinstance(only, Operation) else None
    if inner is None:
        flipped = not total.plus
        plus, minus = _difference(total.less if flipped else total.plus, () if flipped else total.less, span)
        bound = total.number if flipped else total.bound
        return BoundConstraint(plus, minus, False, MIRRORED[op] if flipped else op, bound, span)
    within = _sum(inner)
    if within.number != 0:
        reason = "a number inside ABS is no constraint"
        raise _Refused(reason, inner.span, "write a range: a.x IN [lo, hi], or a.x - b.x IN [lo, hi]")
    plus, minus = _difference(within.plus or within.less, within.less if within.plus else (), span)
    outside = bool(total.plus)
    bound = total.bound if outside else total.number
    return BoundConstraint(plus, minus, True, op if outside else MIRRORED[op], bound, span)


def _difference(plus: tuple[Typed, ...], less: tuple[Typed, ...], span: Span) -> tuple[Reference, Reference | None]:
    """One value, or one less another."""
    added, subtracted = ([term for term in terms if isinstance(term, Reference)] for terms in (plus, less))
    if len(added) + len(subtracted) < len(plus) + len(less):
        raise _Refused("ABS stands by itself, beside numbers alone", span, "write ABS(a.x - b.x) <= 5, or the like")
    if len(added) + len(subtracted) > 2:
        raise _Refused("a constraint is on one value, or on the difference of two", span, "split it with AND")
    if len(added) == 2:
        reason = "a sum of two values is no constraint, but their difference is"
        raise _Refused(reason, span, "write ABS(a.x - b.x) <= 5, or the like")
    first, second = added[0], subtracted[0] if subtracted else None
    if first == second:
        raise _Refused("this value is compared with itself", span, "compare it with another, or leave this out")
    return first, second
