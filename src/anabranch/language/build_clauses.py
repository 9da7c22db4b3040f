"""Parse tree to syntax tree: clauses, and the grammar rules shared by several kinds of query."""

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
    """One clause: its keyword, and the node fields it sets."""

    keyword: str
    values: dict[str, Any]
    span: Span


#: The fields that CREATE QUERY gets from the clauses of its body, by name.
QueryFields = dict[str, Any]

#: The clauses that belong to CREATE QUERY, whatever the kind of its query.
_OF_QUERY = ("per", "threshold", "calibrated", "limit")


def phrase(words: Iterable[Token]) -> str:
    """Join keywords into one upper-case text, such as PRECEDED BY."""
    return " ".join(word.value.upper() for word in words)


class QueryBuilder(ExpressionBuilder):
    """Base class of the builders in `syntax.py` of each kind."""

    def collect_clauses(self, clauses: tuple[Clause, ...]) -> tuple[dict[str, Any], dict[str, Span]]:
        """Return the node fields that the clauses set, and the span of each clause; report repeated clauses."""
        fields: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        for clause in clauses:
            if clause.keyword in spans:
                first = spans[clause.keyword]
                message = f"{clause.keyword} is written twice, first at {first.line}:{first.column}"
                self.findings.add("clause-twice", message, clause.span, "remove one of them")
            spans.setdefault(clause.keyword, clause.span)
            fields |= clause.values
        return fields, spans

    def query_body(
        self, body_class: type, span: Span, clauses: tuple[Clause, ...], **fields: Any
    ) -> tuple[Any, QueryFields]:
        """Return the body of a query, and the fields of the clauses that belong to CREATE QUERY."""
        written, clause_spans = self.collect_clauses(clauses)
        of_query = {name: written.pop(name) for name in _OF_QUERY if name in written}
        return body_class(**fields, **written, span=span, clause_spans=clause_spans), of_query

    def integer(self, what: str, number: int | float, span: Span) -> int:
        """Return the number as an integer; report a fraction, or a number of more than 64 bits."""
        if isinstance(number, int) and limits.MIN_INTEGER <= number <= limits.MAX_INTEGER:
            return number
        message = f"{what} takes a 64-bit integer, not {number}"
        self.findings.add("not-whole", message, span, "write an integer")
        return 1

    def where(self, span: Span, condition: nodes.Expr) -> Clause:
        return Clause("WHERE", {"where": condition}, span)

    def per_window(self, span: Span, length: nodes.Duration, times: Token | None) -> Clause:
        at_least = 1 if times is None else self.integer("AT LEAST", times.value, self.span_of(times))
        return Clause("PER", {"per": nodes.PerWindow(length, at_least, span=span)}, span)

    def per_episode(self, span: Span, above: int | float | None, gap: nodes.Duration | None) -> Clause:
        return Clause("PER", {"per": nodes.PerEpisode(above, gap, span=span)}, span)

    def per_keys(self, span: Span) -> Clause:
        return Clause("PER", {"per": nodes.PerKeys(span=span)}, span)

    def order_by(self, span: Span, number: Token) -> Clause:
        return Clause("ORDER BY", {"limit": self.integer("LIMIT", number.value, self.span_of(number))}, span)

    def threshold(self, span: Span, number: int | float) -> Clause:
        return Clause("THRESHOLD", {"threshold": number}, span)

    def calibrated(self, span: Span, path: Token) -> Clause:
        return Clause("CALIBRATED BY", {"calibrated": path.value}, span)

    def within(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("WITHIN", {"within": duration}, span)

    def emit(self, span: Span, *names: Token) -> Clause:
        return Clause("EMIT", {"emit": tuple(name.value.upper() for name in names)}, span)

    def semantics(self, span: Span, name: Token) -> Clause:
        return Clause("SEMANTICS", {"semantics": name.value.upper()}, span)

    def operands(self, span: Span, *operands: nodes.Operand) -> tuple[nodes.Operand, ...]:
        return operands

    def operand(self, span: Span, stream: Token, alias: Token | None) -> nodes.Operand:
        return nodes.Operand(stream.value, alias and alias.value, span=span)
