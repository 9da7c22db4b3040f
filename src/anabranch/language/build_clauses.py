"""Parse tree to syntax tree: clauses, and the grammar rules that several kinds of query share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lark import Token

from anabranch.errors import Span
from anabranch.language import limits, nodes
from anabranch.language.build_expressions import ExpressionBuilder


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: its keywords, and the fields of the node it gives."""

    word: str
    values: dict[str, Any]
    span: Span


def phrase(words: Iterable[Token]) -> str:
    """Keywords as one text, in upper case, such as PRECEDED BY."""
    return " ".join(word.value.upper() for word in words)


class QueryBuilder(ExpressionBuilder):
    """The base of the builders of the kinds (`syntax.py` in their folders)."""

    def gathered(self, clauses: tuple[Clause, ...]) -> tuple[dict[str, Any], dict[str, Span]]:
        """The fields that clauses give, and the clauses' places; a clause written twice is a finding."""
        fields: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        for clause in clauses:
            if clause.word in spans:
                first = spans[clause.word]
                message = f"{clause.word} is written twice, first at {first.line}:{first.column}"
                self.findings.add("clause-twice", message, clause.span, "keep one of them")
            spans.setdefault(clause.word, clause.span)
            fields |= clause.values
        return fields, spans

    def asked(
        self, kind: type, span: Span, clauses: tuple[Clause, ...], **fields: Any
    ) -> tuple[Any, int | float | None]:
        """A query, and the threshold that belongs to its query."""
        given, places = self.gathered(clauses)
        threshold = given.pop("threshold", None)
        return kind(**fields, **given, span=span, places=places), threshold

    def whole(self, what: str, number: int | float, span: Span) -> int:
        """The number as an integer; one with a fraction is a finding."""
        if isinstance(number, int) and limits.MIN_INTEGER <= number <= limits.MAX_INTEGER:
            return number
        self.findings.add(
            "not-whole",
            f"{what} takes a whole number of 64 bits, and found {number}",
            span,
            "write it without a fraction",
        )
        return 1

    def where(self, span: Span, condition: nodes.Expr) -> Clause:
        return Clause("WHERE", {"where": condition}, span)

    def threshold(self, span: Span, number: int | float) -> Clause:
        return Clause("THRESHOLD", {"threshold": number}, span)

    def within(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("WITHIN", {"within": duration}, span)

    def operands(self, span: Span, *operands: nodes.Operand) -> tuple[nodes.Operand, ...]:
        return operands

    def operand(self, span: Span, stream: Token, alias: Token | None) -> nodes.Operand:
        return nodes.Operand(stream.value, alias and alias.value, span=span)
