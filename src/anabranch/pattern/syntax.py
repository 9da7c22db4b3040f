"""The syntax of PATTERN: its nodes, how they are built from the parse tree, and how they are written as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lark import Token

from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.build_clauses import Clause, QueryFields
from anabranch.language.names import quoted
from anabranch.language.unparse import clause, joined, unparse
from anabranch.pattern.combination import CombinationBuilder, SampledBody, sampling_clauses

Term = nodes.Variable | nodes.Literal | nodes.Wildcard


@dataclass(frozen=True, slots=True)
class Goal(nodes.Node):
    """`stream(term, ...)[filter]`."""

    stream: str
    terms: tuple[Term, ...]
    filter: nodes.Expr | None = None


@dataclass(frozen=True, slots=True)
class Kleene(nodes.Node):
    """`+<p, q | cond>`; plain `+` has no shared variables and no condition (TRUE)."""

    shared: tuple[nodes.Variable, ...] = ()
    condition: nodes.Expr | None = None


@dataclass(frozen=True, slots=True)
class Step(nodes.Node):
    """One goal of a pattern, and the WHERE of the parenthesised prefix that ends with it.

    `others` has the further alternatives of `(g1 OR g2)`. A goal that is `absent` is that of a NOT.
    """

    goal: Goal
    kleene: Kleene | None = None
    where: nodes.Expr | None = None
    others: tuple[Goal, ...] = ()
    absent: bool = False

    @property
    def alternatives(self) -> tuple[Goal, ...]:
        """The goal, and those after OR."""
        return (self.goal, *self.others)


@dataclass(frozen=True, slots=True)
class Pattern(SampledBody):
    """`PATTERN step THEN step ... WHERE ... GROUP BY ...`."""

    steps: tuple[Step, ...]
    where: nodes.Expr | None = None
    group_by: tuple[nodes.Variable, ...] = ()
    within: nodes.Duration | None = None

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of its streams, as written."""
        return tuple(goal.stream for step in self.steps for goal in step.alternatives)


# ---------------------------------------------------------------- from the parse tree


@dataclass(frozen=True, slots=True)
class _Steps:
    """Several steps: a parenthesised prefix, whose WHERE is already in its last step, or those of a NOT."""

    steps: tuple[Step, ...]


class Builder(CombinationBuilder):
    """The grammar rules of PATTERN, and of combinations of its queries."""

    def pattern(self, span: Span, *parts: Any) -> tuple[Pattern, QueryFields]:
        clauses = tuple(part for part in parts if isinstance(part, Clause))
        return self.query_body(Pattern, span, clauses, steps=self.steps(parts))

    def steps(self, parts: tuple[Any, ...]) -> tuple[Step, ...]:
        """The steps of a pattern, whose first part may be a parenthesised prefix."""
        steps: list[Step] = []
        for part in parts:
            if isinstance(part, _Steps):
                steps += part.steps
            elif isinstance(part, Step):
                steps.append(part)
        return tuple(steps)

    def prefix(self, span: Span, *parts: Any) -> _Steps:
        *steps, last = self.steps(parts)
        where = parts[-1]
        if where is not None:
            conditions = [condition for condition in (last.where, where.values["where"]) if condition is not None]
            condition = self.and_(where.span, *conditions) if len(conditions) > 1 else conditions[0]
            last = replace(last, where=condition)
        return _Steps((*steps, last))

    def step(self, span: Span, goals: Goal | tuple[Goal, ...], kleene: Kleene | None) -> Step:
        goal, *others = goals if isinstance(goals, tuple) else (goals,)
        return Step(goal, kleene, others=tuple(others), span=span)

    def absent(self, span: Span, goals: Goal | tuple[Goal, ...]) -> _Steps:
        # No event of either kind: neither one nor the other.
        alternatives = goals if isinstance(goals, tuple) else (goals,)
        return _Steps(tuple(Step(goal, absent=True, span=span) for goal in alternatives))

    def either(self, span: Span, *goals: Goal) -> tuple[Goal, ...]:
        return goals

    def goal(self, span: Span, stream: Token, *rest: Any) -> Goal:
        *terms, condition = rest
        return Goal(stream.value, tuple(terms), condition, span=span)

    def wildcard(self, span: Span, _token: Token) -> nodes.Wildcard:
        return nodes.Wildcard(span=span)

    def kleene(self, span: Span, *parts: Any) -> Kleene:
        if len(parts) == 1:
            return Kleene(span=span)
        _plus, _open, shared, condition, _close = parts
        return Kleene(shared or (), condition, span=span)

    def shared(self, span: Span, *variables: nodes.Variable) -> tuple[nodes.Variable, ...]:
        return variables

    def group_by(self, span: Span, *variables: nodes.Variable) -> Clause:
        return Clause("GROUP BY", {"group_by": variables}, span)

    def accuracy(self, span: Span, number: int | float) -> Clause:
        return Clause("ACCURACY", {"accuracy": number}, span)

    def confidence(self, span: Span, number: int | float) -> Clause:
        return Clause("CONFIDENCE", {"confidence": number}, span)

    def seed(self, span: Span, number: int | float) -> Clause:
        return Clause("SEED", {"seed": self.integer("SEED", number, span)}, span)

    def method(self, span: Span, name: Token) -> Clause:
        return Clause("METHOD", {"method": name.value.upper()}, span)


# ---------------------------------------------------------------- to text


@unparse.register
def _goal(node: Goal) -> str:
    condition = f"[{unparse(node.filter)}]" if node.filter else ""
    return f"{quoted(node.stream)}({joined(node.terms)}){condition}"


@unparse.register
def _kleene(node: Kleene) -> str:
    if not node.shared and node.condition is None:
        return "+"
    condition = f" | {unparse(node.condition)}" if node.condition is not None else ""
    return f"+<{joined(node.shared)}{condition}>"


@unparse.register
def _step(node: Step) -> str:
    goal = f"({' OR '.join(map(unparse, node.alternatives))})" if node.others else unparse(node.goal)
    goal = f"{'NOT ' if node.absent else ''}{goal}{unparse(node.kleene) if node.kleene else ''}"
    return f"({goal} WHERE {unparse(node.where)})" if node.where else goal


@unparse.register
def _pattern(node: Pattern) -> str:
    text = ""
    for step in node.steps:
        goal = unparse(replace(step, where=None))
        text = f"{text} THEN {goal}" if text else goal
        # A WHERE in the middle applies to the whole prefix, so the parentheses enclose all of it.
        text = f"({text} WHERE {unparse(step.where)})" if step.where else text
    clauses = [
        *clause("WHERE", node.where, unparse),
        *clause("GROUP BY", node.group_by, joined),
        *clause("WITHIN", node.within, unparse),
        *sampling_clauses(node),
    ]
    return " ".join([f"PATTERN {text}", *clauses])
