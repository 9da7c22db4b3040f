"""Splits the conditions of a MONITOR query into row conditions and constraints on predicted values.

A predicted value has an error, so only some conditions on it are allowed. A constraint compares a value, or the
difference of two, or the absolute value of either, with a number: `ABS(a.x - b.x) <= 400`.
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

_SPLIT = "write a query for each part"
_EXAMPLE = "write, for example, ABS(a.x - b.x) <= 5"


class _InvalidCondition(Exception):
    """A condition on a predicted value that is not a constraint: the reason, the position and a hint."""

    def __init__(self, reason: str, span: Span, hint: str, code: str = "not-a-constraint") -> None:
        super().__init__(reason)
        self.reason, self.span, self.hint, self.code = reason, span, hint, code


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conjuncts of WHERE: the constraints on values, and the conditions on rows.

    `refused` says whether others were reported as findings.
    """

    constraints: tuple[BoundConstraint, ...] = ()
    of_rows: tuple[Typed, ...] = ()
    refused: bool = False


def split_conditions(
    conditions: Iterable[Typed], streams: Mapping[str, Stream | None], findings: Findings
) -> Conditions:
    """Split conditions into constraints and row conditions; an invalid constraint is added to the findings."""
    constraints: list[BoundConstraint] = []
    of_rows: list[Typed] = []
    refused = False
    for condition in conditions:
        if not any(is_value(node, streams) for node in walk(condition)):
            of_rows.append(condition)
            continue
        try:
            constraints.append(_constraint(condition, streams))
        except _InvalidCondition as error:
            refused = True
            findings.add(error.code, error.reason, error.span, error.hint)
    return Conditions(tuple(constraints), tuple(of_rows), refused)


def is_value(node: Typed, streams: Mapping[str, Stream | None]) -> bool:
    """Whether the node is a value column; `streams` is by the names of operands."""
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
    row_columns = [node for node in walk(condition) if isinstance(node, Reference) and not is_value(node, streams)]
    if row_columns:
        name = f"{row_columns[0].owner}.{row_columns[0].name}"
        reason = (
            f"a predicted value can only be compared with numbers and other predicted values, not with {shown(name)}"
        )
        hint = "write separate conditions on values and on other columns, joined by AND"
        raise _InvalidCondition(reason, condition.span, hint)
    if total.bound is not None and not math.isfinite(total.bound):
        hint = "use a smaller number"
        raise _InvalidCondition("this bound is not a finite number", condition.span, hint, "out-of-range")
    return _bound_constraint(op, total, condition.span)


def _comparison(condition: Typed) -> tuple[str, Typed, Typed]:
    """A condition as a comparison (op, left, right); NOT is resolved."""
    if isinstance(condition, Member):
        reason = "a predicted value cannot be looked up in a relation, because it has an error"
        raise _InvalidCondition(reason, condition.span, "compare the value with numbers")
    if isinstance(condition, Operation) and condition.op == "not":
        inner = condition.arguments[0]
        if isinstance(inner, Operation) and inner.op in ("and", "or"):
            reason = "NOT cannot negate several conditions on predicted values"
            raise _InvalidCondition(reason, condition.span, _SPLIT)
        op, left, right = _comparison(inner)
        return _OPPOSITE[op], left, right
    if isinstance(condition, Operation) and condition.op in MIRRORED:
        left, right = condition.arguments
        return condition.op, left, right
    if isinstance(condition, Operation) and condition.op == "or":
        reason = "OR cannot join conditions on predicted values, only AND can"
        raise _InvalidCondition(reason, condition.span, _SPLIT)
    if isinstance(condition, Operation) and condition.op == "is_null":
        raise _InvalidCondition("a predicted value is never NULL", condition.span, "remove this condition")
    reason = "a condition on a predicted value must compare it with a number"
    raise _InvalidCondition(reason, condition.span, "write, for example, a.x <= 5")


# ---------------------------------------------------------------- sums


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum: the terms that are added (`plus`) and subtracted (`less`), and a number, which is None for NULL.

    A term is a column or an absolute value.
    """

    plus: tuple[Typed, ...] = ()
    less: tuple[Typed, ...] = ()
    number: float | None = 0.0

    def minus(self, other: _Sum) -> _Sum:
        """The difference of both."""
        return _Sum((*self.plus, *other.less), (*self.less, *other.plus), _calculate("-", self.number, other.number))

    @property
    def terms(self) -> tuple[Typed, ...]:
        """The added terms, then the subtracted ones."""
        return (*self.plus, *self.less)

    @property
    def bound(self) -> float | None:
        """The bound of the terms, if the sum is compared with 0."""
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
        return _Sum(number=_constant(tree))
    if isinstance(tree, Operation) and tree.op in ("*", "/", "%"):
        reason = "a predicted value cannot be multiplied or divided, because its error would be too"
        raise _InvalidCondition(reason, tree.span, "multiply or divide the number on the other side")
    if isinstance(tree, Reference) or (isinstance(tree, Operation) and tree.op == "abs"):
        return _Sum(plus=(tree,))
    reason = "a predicted value can only be compared with a number, and this is a condition"
    raise _InvalidCondition(reason, tree.span, "join conditions with AND")


def _number(constant: Constant) -> float | None:
    if constant.value is None or constant.type is Type.NULL:
        return None
    if isinstance(constant.value, str | bool) or not constant.type.is_numeric:
        reason = f"a predicted value can only be compared with a number, and this is {a_type(constant.type)}"
        raise _InvalidCondition(reason, constant.span, "write a number, without quotes", "type-mismatch")
    return float(constant.value)


def _constant(tree: Typed) -> float | None:
    """The value of an expression without columns; None for NULL."""
    if isinstance(tree, Constant):
        return _number(tree)
    if isinstance(tree, Operation) and tree.op in ("negate", "abs"):
        number = _constant(tree.arguments[0])
        return None if number is None else -number if tree.op == "negate" else abs(number)
    if isinstance(tree, Operation) and tree.op in _ARITHMETIC:
        left, right = (_constant(argument) for argument in tree.arguments)
        return _calculate(tree.op, left, right)
    reason = "a predicted value can only be compared with a number, and this is a condition"
    raise _InvalidCondition(reason, tree.span, "join conditions with AND")


def _calculate(op: str, left: float | None, right: float | None) -> float | None:
    """Arithmetic as in conditions: a NULL operand gives NULL, and so does a division by zero."""
    if left is None or right is None or (op in "/%" and right == 0):
        return None
    return _ARITHMETIC[op](left, right) if math.isfinite(left) and math.isfinite(right) else math.nan


# ---------------------------------------------------------------- constraints


def _bound_constraint(op: str, total: _Sum, span: Span) -> BoundConstraint:
    """The constraint that compares a sum of values with 0."""
    single_term = total.terms[0] if len(total.terms) == 1 else None
    inner = single_term.arguments[0] if isinstance(single_term, Operation) else None
    if inner is None:
        flipped = not total.plus
        plus, minus = _difference(total.less if flipped else total.plus, () if flipped else total.less, span)
        bound = total.number if flipped else total.bound
        return BoundConstraint(plus, minus, False, MIRRORED[op] if flipped else op, bound, span)
    inner_sum = _sum(inner)
    if inner_sum.number != 0:
        reason = "ABS of a predicted value cannot contain a number"
        raise _InvalidCondition(reason, inner.span, "write a range: a.x IN [lo, hi], or a.x - b.x IN [lo, hi]")
    plus, minus = _difference(inner_sum.plus or inner_sum.less, inner_sum.less if inner_sum.plus else (), span)
    is_positive = bool(total.plus)
    bound = total.bound if is_positive else total.number
    return BoundConstraint(plus, minus, True, op if is_positive else MIRRORED[op], bound, span)


def _difference(plus: tuple[Typed, ...], less: tuple[Typed, ...], span: Span) -> tuple[Reference, Reference | None]:
    """One value, or the difference of two (value, subtracted value)."""
    added, subtracted = ([term for term in terms if isinstance(term, Reference)] for terms in (plus, less))
    if len(added) + len(subtracted) < len(plus) + len(less):
        raise _InvalidCondition("ABS of a predicted value can only be compared with a number", span, _EXAMPLE)
    if len(added) + len(subtracted) > 2:
        reason = "a constraint can have one predicted value, or the difference of two"
        raise _InvalidCondition(reason, span, "split it with AND")
    if len(added) == 2:
        reason = "a constraint can have the difference of two predicted values, but not their sum"
        raise _InvalidCondition(reason, span, _EXAMPLE)
    first, second = added[0], subtracted[0] if subtracted else None
    if first == second:
        hint = "compare it with another value, or remove this condition"
        raise _InvalidCondition("this value is compared with itself", span, hint)
    return first, second
