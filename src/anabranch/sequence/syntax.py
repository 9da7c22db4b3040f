"""The syntax of SEQUENCE: its nodes, how they are built from the parse tree, and how they are written as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lark import Token

from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.build_clauses import Clause, QueryBuilder, QueryFields
from anabranch.language.names import quoted
from anabranch.language.unparse import clause, joined, string, unparse


@dataclass(frozen=True, slots=True)
class Component(nodes.Node):
    """`x`, `!y` or `y+` of a SEQUENCE."""

    name: str
    negative: bool = False
    run: bool = False


@dataclass(frozen=True, slots=True)
class Miss(nodes.Node):
    """`MISS y 0.1`, one item."""

    component: str
    probability: int | float


@dataclass(frozen=True, slots=True)
class MissBy(nodes.Node):
    """`MISS BY reader FROM rates`: the relation has the probability of a loss for each reader."""

    column: str
    relation: str


@dataclass(frozen=True, slots=True)
class Occurs(nodes.Node):
    """`OCCURS y 0.87`, one item."""

    component: str
    probability: int | float


@dataclass(frozen=True, slots=True)
class Given(nodes.Node):
    """`WITH y` or `WITHOUT (y1, y2)`: which unread components happened, or did not happen, before the delay ended."""

    happened: bool
    components: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delay(nodes.Node):
    """`DELAY x UNIFORM(0, 10 HOURS)`, or a law read from the file `path` (`EMPIRICAL 'file'`).

    `given` is the condition of a law that holds in some gaps only: `DELAY z WITHOUT y EXPONENTIAL(5)`.
    """

    component: str
    law: str
    arguments: tuple[nodes.Duration, ...] = ()
    path: str | None = None
    given: Given | None = None


@dataclass(frozen=True, slots=True)
class Sequence(nodes.OperandQueryBody):
    """`SEQUENCE (x, !y, z) FROM ...`."""

    kind: ClassVar[str] = "SEQUENCE"

    components: tuple[Component, ...]
    where: nodes.Expr | None = None
    miss: tuple[Miss | MissBy, ...] = ()
    occurs: tuple[Occurs, ...] = ()
    delay: tuple[Delay, ...] = ()
    within: nodes.Duration | None = None
    ending: str | None = None
    emit: tuple[str, ...] = ()
    scoring: str | None = None


# ---------------------------------------------------------------- from the parse tree


class Builder(QueryBuilder):
    """The grammar rules of SEQUENCE."""

    def sequence(self, span: Span, *parts: Any) -> tuple[Sequence, QueryFields]:
        components = tuple(part for part in parts if isinstance(part, Component))
        return self.query_body(
            Sequence, span, parts[len(components) + 1 :], components=components, operands=parts[len(components)]
        )

    def component(self, span: Span, bang: Token | None, name: Token, plus: Token | None) -> Component:
        return Component(name.value, bang is not None, plus is not None, span=span)

    def miss(self, span: Span, *items: Miss | MissBy) -> Clause:
        return Clause("MISS", {"miss": items}, span)

    def miss_of(self, span: Span, component: Token, probability: int | float) -> Miss:
        return Miss(component.value, probability, span=span)

    def miss_by(self, span: Span, column: Token, relation: Token) -> MissBy:
        return MissBy(column.value, relation.value, span=span)

    def occurs(self, span: Span, *items: Occurs) -> Clause:
        return Clause("OCCURS", {"occurs": items}, span)

    def occurs_of(self, span: Span, component: Token, probability: int | float) -> Occurs:
        return Occurs(component.value, probability, span=span)

    def delay(self, span: Span, *items: Delay) -> Clause:
        return Clause("DELAY", {"delay": items}, span)

    def delay_of(self, span: Span, component: Token, given: Given | None, law: Token, *arguments: Any) -> Delay:
        if isinstance(arguments[0], Token):
            return Delay(component.value, law.value.upper(), (), arguments[0].value, given, span=span)
        return Delay(component.value, law.value.upper(), arguments, None, given, span=span)

    def given_with(self, span: Span, *names: Token) -> Given:
        return Given(True, tuple(name.value for name in names), span=span)

    def given_without(self, span: Span, *names: Token) -> Given:
        return Given(False, tuple(name.value for name in names), span=span)

    def ending(self, span: Span, name: Token) -> Clause:
        return Clause("ENDING", {"ending": name.value.upper()}, span)

    def scoring(self, span: Span, name: Token) -> Clause:
        return Clause("SCORING", {"scoring": name.value.upper()}, span)


# ---------------------------------------------------------------- to text


@unparse.register
def _component(node: Component) -> str:
    return ("!" if node.negative else "") + quoted(node.name) + ("+" if node.run else "")


@unparse.register
def _miss(node: Miss | Occurs) -> str:
    return f"{quoted(node.component)} {node.probability!r}"


@unparse.register
def _miss_by(node: MissBy) -> str:
    return f"BY {quoted(node.column)} FROM {quoted(node.relation)}"


@unparse.register
def _given(node: Given) -> str:
    names = ", ".join(map(quoted, node.components))
    return ("WITH " if node.happened else "WITHOUT ") + (names if len(node.components) == 1 else f"({names})")


@unparse.register
def _delay(node: Delay) -> str:
    component = quoted(node.component) + ("" if node.given is None else f" {unparse(node.given)}")
    arguments = f" {string(node.path)}" if node.path is not None else f"({joined(node.arguments)})"
    return f"{component} {quoted(node.law)}{arguments}"


@unparse.register
def _sequence(node: Sequence) -> str:
    clauses = [
        *clause("WHERE", node.where, unparse),
        *clause("MISS", node.miss, joined),
        *clause("OCCURS", node.occurs, joined),
        *clause("DELAY", node.delay, joined),
        *clause("WITHIN", node.within, unparse),
        *clause("ENDING", node.ending, quoted),
        *clause("EMIT", node.emit, lambda names: ", ".join(map(quoted, names))),
        *clause("SCORING", node.scoring, quoted),
    ]
    return " ".join([f"SEQUENCE ({joined(node.components)}) FROM {joined(node.operands)}", *clauses])
