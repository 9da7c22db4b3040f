"""The syntax of RELATE: its nodes, how they are built from the parse tree, and how they are written as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lark import Token

from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.build_clauses import Clause, QueryBuilder, QueryFields, phrase
from anabranch.language.names import quoted
from anabranch.language.unparse import clause, joined, unparse


@dataclass(frozen=True, slots=True)
class Quantified(nodes.Node):
    """`ALL a`, `SOME a`, `AT LEAST 2 a`, `AT MOST 2 a`, `EXACTLY 2 a`.

    `at_least` is None for ALL and 1 for SOME; `at_most` is None if there is no limit.
    """

    name: str
    at_least: int | None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Relate(nodes.OperandQueryBody):
    """`RELATE <quantified> <relation> <quantified>`; relations in upper case, with single spaces."""

    kind: ClassVar[str] = "RELATE"

    first: Quantified
    relations: tuple[str, ...]
    second: Quantified
    where: nodes.Expr | None = None
    timeout: nodes.Duration | None = None
    complement: bool = False
    count: bool = False


# ---------------------------------------------------------------- from the parse tree


class Builder(QueryBuilder):
    """The grammar rules of RELATE."""

    def relate(
        self,
        span: Span,
        first: Quantified,
        relations: tuple[str, ...],
        second: Quantified,
        operands: tuple[nodes.Operand, ...],
        *clauses: Clause,
    ) -> tuple[Relate, QueryFields]:
        return self.query_body(
            Relate, span, clauses, first=first, relations=relations, second=second, operands=operands
        )

    def all_of(self, span: Span, name: Token) -> Quantified:
        return Quantified(name.value, None, span=span)

    def some_of(self, span: Span, name: Token) -> Quantified:
        return Quantified(name.value, 1, span=span)

    def at_least(self, span: Span, number: Token, name: Token) -> Quantified:
        return Quantified(name.value, self.integer("AT LEAST", number.value, self.span_of(number)), span=span)

    def at_most(self, span: Span, number: Token, name: Token) -> Quantified:
        return Quantified(name.value, 0, self.integer("AT MOST", number.value, self.span_of(number)), span=span)

    def exactly(self, span: Span, number: Token, name: Token) -> Quantified:
        segments = self.integer("EXACTLY", number.value, self.span_of(number))
        return Quantified(name.value, segments, segments, span=span)

    def relations(self, span: Span, *relations: str) -> tuple[str, ...]:
        return relations

    def relation(self, span: Span, *words: Token) -> str:
        return phrase(words)

    def timeout(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("TIMEOUT", {"timeout": duration}, span)

    def complement(self, span: Span) -> Clause:
        return Clause("COMPLEMENT", {"complement": True}, span)

    def count(self, span: Span) -> Clause:
        return Clause("COUNT", {"count": True}, span)


# ---------------------------------------------------------------- to text


@unparse.register
def _quantified(node: Quantified) -> str:
    if node.at_most is None:
        quantifier = {None: "ALL", 1: "SOME"}.get(node.at_least, f"AT LEAST {node.at_least}")
    else:
        quantifier = f"{'EXACTLY' if node.at_least == node.at_most else 'AT MOST'} {node.at_most}"
    return f"{quantifier} {quoted(node.name)}"


@unparse.register
def _relate(node: Relate) -> str:
    relations = node.relations[0] if len(node.relations) == 1 else f"({' OR '.join(node.relations)})"
    query = f"RELATE {unparse(node.first)} {relations} {unparse(node.second)} FROM {joined(node.operands)}"
    clauses = [*clause("WHERE", node.where, unparse), *clause("TIMEOUT", node.timeout, unparse)]
    flags = [word for word, is_written in (("COMPLEMENT", node.complement), ("COUNT", node.count)) if is_written]
    return " ".join([query, *clauses, *flags])
