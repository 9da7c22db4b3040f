"""Splits the conditions of a MONITOR query into row conditions and constraints on predicted values.

A predicted value has an error, so only some conditions on it are allowed. A constraint compares a sum of values, each
times a number, or its absolute value, with a number: `ABS(a.x - b.x) <= 400`, `a.x + 2 * a.y - b.x <= 5`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from anabranch.binding.type_rules import a_type
from anabranch.binding.typed import MIRRORED, Constant, Member, Operation, Reference, Typed, walk
from anabranch.catalog import Stream
from anabranch.errors import Span
from anabranch.language.findings import Findings, shown
from anabranch.language.types import Type
from anabranch.monitor.query import BoundConstraint, Combination, Junction

#: The negation of each comparison.
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "%": math.fmod,
}

_EXAMPLE = "write, for example, ABS(a.x - b.x) <= 5"


class _InvalidCondition(Exception):
    """A condition on a predicted value that is not a constraint: the reason, the position and a hint."""

    def __init__(self, reason: str, span: Span, hint: str, code: str = "not-a-constraint") -> None:
        super().__init__(reason)
        self.reason, self.span, self.hint, self.code = reason, span, hint, code


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conjuncts of WHERE: the constraints on values, the conditions on rows, and those of either joined by OR.

    `refused` says whether others were reported as findings.
    """

    constraints: tuple[BoundConstraint, ...] = ()
    of_rows: tuple[Typed, ...] = ()
    junctions: tuple[Junction, ...] = ()
    refused: bool = False

    @property
    def all_constraints(self) -> tuple[BoundConstraint, ...]:
        """The constraints, also those within OR."""
        return (*self.constraints, *(part for junction in self.junctions for part in junction.constraints))


def split_conditions(
    conditions: Iterable[Typed], streams: Mapping[str, Stream | None], findings: Findings
) -> Conditions:
    """Split conditions into constraints and row conditions; an invalid constraint is added to the findings."""
    constraints: list[BoundConstraint] = []
    of_rows: list[Typed] = []
    junctions: list[Junction] = []
    refused = False
    for condition in conditions:
        try:
            part = _part(condition, streams)
        except _InvalidCondition as error:
            refused = True
            findings.add(error.code, error.reason, error.span, error.hint)
            continue
        for conjunct in part.parts if isinstance(part, Junction) and part.op == "and" else (part,):
            if isinstance(conjunct, BoundConstraint):
                constraints.append(conjunct)
            elif isinstance(conjunct, Junction):
                junctions.append(conjunct)
            else:
                of_rows.append(conjunct)
    return Conditions(tuple(constraints), tuple(of_rows), tuple(junctions), refused)


def _part(
    condition: Typed, streams: Mapping[str, Stream | None], is_negated: bool = False
) -> BoundConstraint | Junction | Typed:
    """A condition, or its negation, as a constraint, a condition on rows, or a junction of both without NOT."""
    if isinstance(condition, Operation) and condition.op == "windowed":
        compared, window = condition.arguments
        constraint = _part(compared, streams, is_negated)
        if not (isinstance(constraint, BoundConstraint) and isinstance(window, Constant)):
            raise TypeError(condition)  # impossible: windows were moved to constraints
        return replace(constraint, window=_number(window))
    if isinstance(condition, Operation) and condition.op in ("and", "or", "not") and _has_values(condition, streams):
        if condition.op == "not":
            return _part(condition.arguments[0], streams, not is_negated)
        op = condition.op if not is_negated else "or" if condition.op == "and" else "and"
        parts = [_part(argument, streams, is_negated) for argument in condition.arguments]
        nested = (part.parts if isinstance(part, Junction) and part.op == op else (part,) for part in parts)
        return Junction(op, tuple(part for group in nested for part in group))
    if is_negated:
        condition = Operation("not", (condition,), Type.BOOLEAN, condition.span)
    return _constraint(condition, streams) if _has_values(condition, streams) else condition


def _has_values(condition: Typed, streams: Mapping[str, Stream | None]) -> bool:
    return any(is_value(node, streams) for node in walk(condition))


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
    constraint = _bound_constraint(op, total, condition.span)
    factors = [factor for side in (constraint.plus, constraint.minus) if side is not None for _, factor in side.terms]
    if not all(map(math.isfinite, [constraint.bound or 0.0, *factors])):
        hint = "use a smaller number"
        raise _InvalidCondition("this bound is not a finite number", condition.span, hint, "out-of-range")
    return constraint


def _comparison(condition: Typed) -> tuple[str, Typed, Typed]:
    """A condition as a comparison (op, left, right); NOT is resolved."""
    if isinstance(condition, Member):
        reason = "a predicted value cannot be looked up in a relation, because it has an error"
        raise _InvalidCondition(reason, condition.span, "compare the value with numbers")
    if isinstance(condition, Operation) and condition.op == "not":
        op, left, right = _comparison(condition.arguments[0])
        return _OPPOSITE[op], left, right
    if isinstance(condition, Operation) and condition.op in MIRRORED:
        left, right = condition.arguments
        return condition.op, left, right
    if isinstance(condition, Operation) and condition.op == "is_null":
        raise _InvalidCondition("a predicted value is never NULL", condition.span, "remove this condition")
    reason = "a condition on a predicted value must compare it with a number"
    raise _InvalidCondition(reason, condition.span, "write, for example, a.x <= 5")


# ---------------------------------------------------------------- sums

#: Terms of a sum, columns or absolute values, with their factors.
_Terms = tuple[tuple[Typed, float], ...]


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of terms, each times a factor, and a number, which is None for NULL."""

    terms: _Terms = ()
    number: float | None = 0.0

    def plus(self, other: _Sum) -> _Sum:
        """The sum of both; terms that cancel out are left out."""
        factors: dict[Typed, float] = {}
        for term, factor in (*self.terms, *other.terms):
            factors[term] = factors.get(term, 0.0) + factor
        terms = tuple((term, factor) for term, factor in factors.items() if factor)
        return _Sum(terms, _calculate("+", self.number, other.number))

    def times(self, factor: float | None) -> _Sum:
        """The sum times a number; NULL makes it NULL."""
        if factor is None:
            return _Sum(self.terms, None)
        terms = tuple((term, factor * own) for term, own in self.terms if factor)
        return _Sum(terms, _calculate("*", self.number, factor))

    def minus(self, other: _Sum) -> _Sum:
        """The difference of both."""
        return self.plus(other.times(-1.0))


def _sum(tree: Typed) -> _Sum:
    """An expression as a sum of columns, absolute values and a number."""
    if isinstance(tree, Constant):
        return _Sum(number=_number(tree))
    if isinstance(tree, Operation) and not any(isinstance(node, Reference) for node in walk(tree)):
        return _Sum(number=_constant(tree))
    if isinstance(tree, Operation) and tree.op in ("+", "-", "negate"):
        *first, last = (_sum(argument) for argument in tree.arguments)
        start = first[0] if first else _Sum()
        return start.plus(last) if tree.op == "+" else start.minus(last)
    if isinstance(tree, Operation) and tree.op in ("*", "/", "%"):
        return _product(tree)
    if isinstance(tree, Reference) or (isinstance(tree, Operation) and tree.op == "abs"):
        return _Sum(((tree, 1.0),))
    reason = "a predicted value can only be compared with a number, and this is a condition"
    raise _InvalidCondition(reason, tree.span, "join conditions with AND")


def _product(tree: Operation) -> _Sum:
    """A sum times a number, or divided by one."""
    left, right = (_sum(argument) for argument in tree.arguments)
    if tree.op == "*" and not left.terms:
        left, right = right, left
    if right.terms or tree.op == "%":
        reason = "a predicted value can only be multiplied with a number, or divided by one"
        raise _InvalidCondition(reason, tree.span, "write, for example, a.x + 2 * a.y <= 5")
    return left.times(right.number if tree.op == "*" else _calculate("/", 1.0, right.number))


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
    absolutes = [(term, factor) for term, factor in total.terms if isinstance(term, Operation)]
    if not absolutes:
        return _linear_constraint(op, total, span, is_absolute=False)
    if len(total.terms) > 1:
        raise _InvalidCondition("ABS of a predicted value can only be compared with a number", span, _EXAMPLE)
    ((term, factor),) = absolutes
    inner = _sum(term.arguments[0])
    if inner.number != 0:
        reason = "ABS of a predicted value cannot contain a number"
        hint = "write a range: a.x IN [lo, hi], or a.x - b.x IN [lo, hi]"
        raise _InvalidCondition(reason, term.arguments[0].span, hint)
    if any(isinstance(inner_term, Operation) for inner_term, _ in inner.terms):
        raise _InvalidCondition("ABS of a predicted value can only be compared with a number", span, _EXAMPLE)
    # factor * ABS(inner) + number is compared with 0, and so is ABS(inner) + number / factor.
    outer = _Sum(inner.terms, _calculate("/", total.number, factor))
    return _linear_constraint(op if factor > 0 else MIRRORED[op], outer, span, is_absolute=True)


def _linear_constraint(op: str, total: _Sum, span: Span, *, is_absolute: bool) -> BoundConstraint:
    """The constraint that compares a sum of columns with 0; the factor of its first column becomes 1."""
    if not total.terms:
        hint = "compare it with another value, or remove this condition"
        raise _InvalidCondition("this value is compared with itself, or multiplied by 0", span, hint)
    columns = sorted(((term, factor) for term, factor in total.terms if isinstance(term, Reference)), key=_by_name)
    if len(columns) == 2 and columns[0][1] == -columns[1][1]:
        # A difference is written with the added value first: 5 < b.x - a.x is b.x - a.x > 5.
        columns.sort(key=lambda column: -column[1])
    # Otherwise equal expressions are written equally, because they have one probability together.
    scale = abs(columns[0][1]) if is_absolute else columns[0][1]
    bound = None if total.number is None else 0.0 - total.number / scale
    plus, minus = _difference([(column, factor / columns[0][1]) for column, factor in columns], span)
    return BoundConstraint(plus, minus, is_absolute, op if scale > 0 else MIRRORED[op], bound, span)


def _by_name(term: tuple[Reference, float]) -> tuple[str, str]:
    return term[0].owner or "", term[0].name


def _difference(terms: list[tuple[Reference, float]], span: Span) -> tuple[Combination, Combination | None]:
    """A sum of columns as that of one operand, minus that of another; or as the difference of two columns."""
    owners = list(dict.fromkeys(reference.owner for reference, _ in terms))
    if len(owners) > 2:
        reason = "an expression can have predicted values of at most two names"
        raise _InvalidCondition(reason, span, "split it with AND, or write a query for each pair")
    if [factor for _, factor in terms] == [1.0, -1.0]:
        (first, _), (second, _) = terms
        return Combination(((first, 1.0),)), Combination(((second, 1.0),))
    plus = tuple((column, factor) for column, factor in terms if column.owner == owners[0])
    minus = tuple((column, -factor) for column, factor in terms if column.owner != owners[0])
    return Combination(plus), Combination(minus) if minus else None
