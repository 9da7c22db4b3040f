"""The syntax of MONITOR: its nodes, how they are built from the parse tree, and how they are written as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lark import Token

from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.build_clauses import Clause, QueryBuilder, QueryFields, phrase
from anabranch.language.names import quoted
from anabranch.language.unparse import clause, joined, unparse


@dataclass(frozen=True, slots=True)
class Monitor(nodes.OperandQueryBody):
    """`MONITOR a, b FROM cars AS a, cars AS b WHERE ...`."""

    kind: ClassVar[str] = "MONITOR"

    names: tuple[nodes.Variable, ...]
    where: nodes.Expr | None = None
    within: nodes.Duration | None = None
    semantics: str | None = None
    every: nodes.Duration | None = None
    max_delay: nodes.Duration | None = None
    buffer: int | None = None
    discard: str | None = None
    nearest: int | None = None


# ---------------------------------------------------------------- from the parse tree


class Builder(QueryBuilder):
    """The grammar rules of MONITOR."""

    def monitor(self, span: Span, *parts: Any) -> tuple[Monitor, QueryFields]:
        names = tuple(part for part in parts if isinstance(part, nodes.Variable))
        return self.query_body(Monitor, span, parts[len(names) + 1 :], names=names, operands=parts[len(names)])

    def nearest(self, span: Span, count: Token) -> Clause:
        return Clause("NEAREST", {"nearest": self.integer("NEAREST", count.value, span)}, span)

    def every(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("EVERY", {"every": duration}, span)

    def max_delay(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("MAX DELAY", {"max_delay": duration}, span)

    def buffer(self, span: Span, size: Token, discard: str | None) -> Clause:
        return Clause("BUFFER", {"buffer": self.integer("BUFFER", size.value, span), "discard": discard}, span)

    def discard(self, span: Span, *words: Token) -> str:
        return phrase(words)


# ---------------------------------------------------------------- to text


@unparse.register
def _monitor(node: Monitor) -> str:
    discard = f" DISCARD {node.discard}" if node.discard else ""
    clauses = [
        *clause("WHERE", node.where, unparse),
        *clause("WITHIN", node.within, unparse),
        *clause("SEMANTICS", node.semantics, quoted),
        *clause("NEAREST", node.nearest, str),
        *clause("EVERY", node.every, unparse),
        *clause("MAX DELAY", node.max_delay, unparse),
        *clause("BUFFER", node.buffer, lambda size: f"{size}{discard}"),
    ]
    return " ".join([f"MONITOR {joined(node.names)} FROM {joined(node.operands)}", *clauses])
