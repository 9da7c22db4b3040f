"""The syntax of CONSTRAIN: its nodes, how they are built from the parse tree, and how they are written as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lark import Token

from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.build_clauses import Clause, QueryBuilder, QueryFields
from anabranch.language.names import quoted
from anabranch.language.unparse import clause, joined, unparse


@dataclass(frozen=True, slots=True)
class Counted(nodes.Node):
    """`v`, `v*5`, `NOT u` or `AT LEAST 5 v` of a CONSTRAIN; `count` is the least number of events if it `grows`."""

    name: str
    count: int = 1
    negated: bool = False
    grows: bool = False


@dataclass(frozen=True, slots=True)
class Constrain(nodes.OperandQueryBody):
    """`CONSTRAIN v1, v2 FROM e WHERE ... SEMANTICS MAY STRATEGY TIGHT EMIT EARLY`; the options are in upper case."""

    kind: ClassVar[str] = "CONSTRAIN"

    names: tuple[Counted, ...]
    where: nodes.Expr | None = None
    strategy: str | None = None
    emit: tuple[str, ...] = ()
    semantics: str | None = None


# ---------------------------------------------------------------- from the parse tree


class Builder(QueryBuilder):
    """The grammar rules of CONSTRAIN."""

    def constrain(self, span: Span, *parts: Any) -> tuple[Constrain, QueryFields]:
        names = tuple(part for part in parts if isinstance(part, Counted))
        return self.query_body(Constrain, span, parts[len(names) + 1 :], names=names, operands=parts[len(names)])

    def strategy(self, span: Span, name: Token) -> Clause:
        return Clause("STRATEGY", {"strategy": name.value.upper()}, span)

    def counted(self, span: Span, name: Token, _star: Token | None, count: Token | None) -> Counted:
        number = 1 if count is None else self.integer(f"{name.value}*n", count.value, self.span_of(count))
        return Counted(name.value, number, span=span)

    def negated(self, span: Span, name: Token) -> Counted:
        return Counted(name.value, negated=True, span=span)

    def growing(self, span: Span, count: Token, name: Token) -> Counted:
        number = self.integer(f"AT LEAST n {name.value}", count.value, self.span_of(count))
        return Counted(name.value, number, grows=True, span=span)


# ---------------------------------------------------------------- to text


@unparse.register
def _counted(node: Counted) -> str:
    if node.grows:
        return f"AT LEAST {node.count} {quoted(node.name)}"
    prefix = "NOT " if node.negated else ""
    return prefix + quoted(node.name) + (f"*{node.count}" if node.count != 1 else "")


@unparse.register
def _constrain(node: Constrain) -> str:
    query = f"CONSTRAIN {joined(node.names)} FROM {joined(node.operands)}"
    clauses = [
        *clause("WHERE", node.where, unparse),
        *clause("SEMANTICS", node.semantics, quoted),
        *clause("STRATEGY", node.strategy, quoted),
        *clause("EMIT", node.emit, lambda names: ", ".join(map(quoted, names))),
    ]
    return " ".join([query, *clauses])
