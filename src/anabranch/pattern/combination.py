"""The syntax of combinations of PATTERN queries: `a AND (b OR NOT c) GIVEN d`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from lark import Token

from anabranch.errors import Span
from anabranch.kinds import KINDS
from anabranch.language import nodes
from anabranch.language.build_clauses import Clause, QueryBuilder, QueryFields
from anabranch.language.names import quoted
from anabranch.language.unparse import clause, unparse


@dataclass(frozen=True, slots=True)
class NamedQuery(nodes.Node):
    """The name of an operand."""

    name: str


@dataclass(frozen=True, slots=True)
class Combined(nodes.Node):
    """Operands combined by `AND`, `OR` or `NOT`; `GIVEN` stands outermost only."""

    op: str
    parts: tuple[Formula, ...]


Formula = NamedQuery | Combined


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledBody(nodes.QueryBody):
    """A query that may be sampled: `METHOD m ACCURACY e CONFIDENCE c SEED n`; and `EMIT EARLY`."""

    kind: ClassVar[str] = "PATTERN"

    accuracy: int | float | None = None
    confidence: int | float | None = None
    seed: int | None = None
    method: str | None = None
    emit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Combination(SampledBody):
    """`formula GIVEN formula`."""

    formula: Formula
    given: Formula | None = None

    @property
    def stream_names(self) -> tuple[str, ...]:
        """No names: the streams are those of its operands."""
        return ()

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of its operands, as written."""
        formulas = [self.formula, *([] if self.given is None else [self.given])]
        return tuple(operand.name for formula in formulas for operand in operands_of(formula))


def operands_of(formula: Formula) -> Iterator[NamedQuery]:
    """The operands of a formula, from left to right; an operand that is named twice is given twice."""
    stack: list[Formula] = [formula]
    while stack:
        part = stack.pop()
        if isinstance(part, NamedQuery):
            yield part
        else:
            stack.extend(reversed(part.parts))


# ---------------------------------------------------------------- from the parse tree


class CombinationBuilder(QueryBuilder):
    """The grammar rules of combinations."""

    def combination(self, span: Span, formula: Formula, *clauses: Clause) -> tuple[Combination, QueryFields]:
        """The body of a query."""
        given = None
        if isinstance(formula, Combined) and formula.op == "GIVEN":
            formula, given = formula.parts
        return self.query_body(Combination, span, clauses, formula=formula, given=given)

    def given_query(self, span: Span, *parts: Formula) -> Combined:
        """`a GIVEN b`."""
        return self.combined("GIVEN", span, parts)

    def any_query(self, span: Span, *parts: Formula) -> Combined:
        """`a OR b`."""
        return self.combined("OR", span, parts)

    def all_queries(self, span: Span, *parts: Formula) -> Combined:
        """`a AND b`."""
        return self.combined("AND", span, parts)

    def no_query(self, span: Span, *parts: Formula) -> Combined:
        """`NOT a`."""
        return self.combined("NOT", span, parts)

    def combined(self, op: str, span: Span, parts: tuple[Formula, ...]) -> Combined:
        """The formula; report a GIVEN inside it."""
        for part in parts:
            if isinstance(part, Combined) and part.op == "GIVEN":
                message = f"GIVEN cannot be a part of {op}: it is no event, but a ratio of probabilities"
                hint = "write it outermost: (a AND b) GIVEN (c AND d)"
                self.findings.add("given-inside", message, part.span, hint)
        return Combined(op, parts, span=span)

    def named_query(self, span: Span, name: Token) -> NamedQuery:
        """The name of an operand."""
        return NamedQuery(name.value, span=span)


# ---------------------------------------------------------------- to text

#: How tightly each operator binds; a part that binds less tightly needs parentheses.
_PRECEDENCE = {"OR": 0, "AND": 1, "NOT": 2}


@unparse.register
def _named(node: NamedQuery) -> str:
    # At the beginning, the keyword of a kind is no name.
    return f"`{node.name}`" if node.name.upper() in KINDS else quoted(node.name)


@unparse.register
def _combined(node: Combined) -> str:
    parts = [
        f"({unparse(part)})"
        if isinstance(part, Combined) and (_PRECEDENCE[part.op] < _PRECEDENCE[node.op] or part.op == node.op != "NOT")
        else unparse(part)
        for part in node.parts
    ]
    return f"NOT {parts[0]}" if node.op == "NOT" else f" {node.op} ".join(parts)


@unparse.register
def _combination(node: Combination) -> str:
    given = f" GIVEN {unparse(node.given)}" if node.given is not None else ""
    return " ".join([unparse(node.formula) + given, *sampling_clauses(node)])


def sampling_clauses(node: Any) -> list[str]:
    """The clauses that say how a query is answered."""
    return [
        *clause("ACCURACY", node.accuracy, repr),
        *clause("CONFIDENCE", node.confidence, repr),
        *clause("SEED", node.seed, repr),
        *clause("METHOD", node.method, quoted),
        *clause("EMIT", node.emit, lambda names: ", ".join(map(quoted, names))),
    ]
