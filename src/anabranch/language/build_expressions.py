"""Parse tree to syntax tree: the grammar rules of conditions, constants and durations."""

from __future__ import annotations

from typing import Any

from lark import Token

from anabranch.errors import Span
from anabranch.language import limits, nodes
from anabranch.language.findings import Findings
from anabranch.language.names import SECONDS_OF
from anabranch.language.scanner import LineIndex


class ExpressionBuilder:
    """One method per grammar rule; its arguments are the span and the parts (None for an omitted optional part)."""

    def __init__(self, lines: LineIndex, findings: Findings) -> None:
        self.lines = lines
        self.findings = findings

    def span_of(self, token: Token) -> Span:
        """The span of a token."""
        return self.lines.span(token.start_pos or 0, token.end_pos or 0)

    # ------------------------------------------------------------ constants

    def number(self, span: Span, minus: Token | None, digits: Token) -> int | float:
        value: int | float = -digits.value if minus else digits.value
        self.check_integer(value, span)
        return value

    def duration(self, span: Span, minus: Token | None, digits: Token, unit: Token | None) -> nodes.Duration:
        return self.with_unit(span, self.number(span, minus, digits), unit)

    def literal_number(self, span: Span, digits: Token, unit: Token | None = None) -> nodes.Literal | nodes.Duration:
        return self.amount(span, digits.value, unit)

    def negative_number(self, span: Span, digits: Token, unit: Token | None = None) -> nodes.Literal | nodes.Duration:
        return self.amount(span, -digits.value, unit)

    def amount(self, span: Span, value: int | float, unit: Token | None) -> nodes.Literal | nodes.Duration:
        """A number, or a duration if it has a unit."""
        self.check_integer(value, span)
        return self.with_unit(span, value, unit) if unit else nodes.Literal(value, span=span)

    def with_unit(self, span: Span, value: int | float, unit: Token | None) -> nodes.Duration:
        """A duration; with a unit, it must fit into a time column."""
        name = unit.value.upper().removesuffix("S") if unit else None
        if name and abs(value) * SECONDS_OF[name] > limits.MAX_SECONDS:
            message = "this duration does not fit into a time column"
            self.findings.add("number-too-large", message, span, "write a shorter duration")
        return nodes.Duration(value, name, span=span)

    def check_integer(self, value: int | float, span: Span) -> None:
        """Report 2**63, which the scanner accepts because -2**63 is allowed."""
        if isinstance(value, int) and value > limits.MAX_INTEGER:
            message = f"the integer {value} does not fit in 64 bits"
            self.findings.add("number-too-large", message, span, f"write it as a double: {value}.0")

    def string(self, span: Span, text: Token) -> nodes.Literal:
        return nodes.Literal(text.value, span=span)

    def true(self, span: Span, _word: Token) -> nodes.Literal:
        return nodes.Literal(True, span=span)

    def false(self, span: Span, _word: Token) -> nodes.Literal:
        return nodes.Literal(False, span=span)

    def null(self, span: Span, _word: Token) -> nodes.Literal:
        return nodes.Literal(None, span=span)

    # ------------------------------------------------------------ names and calls

    def variable(self, span: Span, name: Token) -> nodes.Variable:
        return nodes.Variable(name.value, span=span)

    def attribute(
        self, span: Span, owner: Token, name: Token, default: nodes.Literal | nodes.Attribute | None
    ) -> nodes.Attribute:
        return nodes.Attribute(owner.value, name.value, default, span=span)

    def call(self, span: Span, name: Token, *arguments: nodes.Expr) -> nodes.Call:
        return nodes.Call(name.value, arguments, span=span)

    # ------------------------------------------------------------ operators

    def negate(self, span: Span, operand: nodes.Expr) -> nodes.Negate:
        return nodes.Negate(operand, span=span)

    def arithmetic(self, span: Span, left: nodes.Expr, op: Token, right: nodes.Expr) -> nodes.Arithmetic:
        return nodes.Arithmetic(op.value, left, right, span=span)

    def compare(self, span: Span, left: nodes.Expr, op: Token, right: nodes.Expr) -> nodes.Compare:
        return nodes.Compare(op.value, left, right, span=span)

    def in_range(
        self, span: Span, operand: nodes.Expr, negated: Token | None, low: nodes.Expr, high: nodes.Expr
    ) -> nodes.InRange:
        return nodes.InRange(operand, low, high, negated is not None, span=span)

    def in_list(self, span: Span, operand: nodes.Expr, negated: Token | None, *items: nodes.Expr) -> nodes.InList:
        return nodes.InList(operand, items, negated is not None, span=span)

    def is_null(self, span: Span, operand: nodes.Expr, negated: Token | None) -> nodes.IsNull:
        return nodes.IsNull(operand, negated is not None, span=span)

    def windowed(self, span: Span, operand: nodes.Expr, _word: Token, window: nodes.Duration) -> nodes.Windowed:
        return nodes.Windowed(operand, window, span=span)

    def not_(self, span: Span, operand: nodes.Expr) -> nodes.Not:
        return nodes.Not(operand, span=span)

    def and_(self, span: Span, *items: nodes.Expr) -> nodes.And:
        return nodes.And(_flattened(nodes.And, items), span=span)

    def or_(self, span: Span, *items: nodes.Expr) -> nodes.Or:
        return nodes.Or(_flattened(nodes.Or, items), span=span)


def _flattened(kind: type[nodes.And] | type[nodes.Or], items: tuple[nodes.Expr, ...]) -> tuple[nodes.Expr, ...]:
    """The items, with nested items of the same kind spliced in: parentheses around them change nothing."""
    flat: list[Any] = []
    for item in items:
        flat.extend(item.items if isinstance(item, kind) else (item,))
    return tuple(flat)
