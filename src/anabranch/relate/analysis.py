"""What a RELATE query asks, as numbers, and what of it Spark can decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.binding.typed import (
    Operation,
    Reference,
    Typed,
    conjunction,
    conjuncts,
    disjunction,
    references,
    with_references,
)
from anabranch.relate.query import SIMPLE, BoundQuantified, BoundRelate

#: ALL, in the place of the number of segments that a quantifier asks for.
ALL = 0


@dataclass(frozen=True, slots=True)
class RelateAnalysis:
    """A RELATE query taken apart.

    Attributes
    ----------
    relations : the simple relations asked for; bit i stands for SIMPLE[i]
    outer, inner : how many segments of the first and of the second operand, or ALL
    equated : the conjuncts of WHERE that ask a column of the first operand to equal one of the second
    """

    query: BoundRelate
    relations: int
    outer: int
    inner: int
    equated: tuple[Typed, ...]

    @property
    def equalities(self) -> tuple[tuple[Reference, Reference], ...]:
        """(column of the first, column of the second) that must be equal."""
        return tuple(filter(None, (_equality(self.query, part) for part in self.equated)))

    @property
    def hits_needed(self) -> int:
        """How many segments of the first operand decide the query: enough hits, or one failure for ALL."""
        return self.outer or 1

    @property
    def same_stream(self) -> bool:
        """Whether both operands are of one stream, so that a key could meet itself."""
        return self.query.first.stream.name.lower() == self.query.second.stream.name.lower()

    def asks(self, relation: str) -> bool:
        """Whether a simple relation is among those asked for."""
        return relation in self.query.relations

    def lasts(self, stream: str) -> bool:
        """Whether an entity of a stream can satisfy the query together with one that comes wholly after it."""
        first, second = (operand.stream.name.lower() == stream.lower() for operand in self.query.operands)
        return (first and self.asks("PRECEDES")) or (second and self.asks("PRECEDED BY"))

    def needed(self, stream: str) -> Typed | None:
        """What a key of a stream must meet to be any operand; None where every key may."""
        own = [operand for operand in self.query.operands if operand.stream.name.lower() == stream.lower()]
        return disjunction([self._demands(operand) for operand in own])

    def _demands(self, operand: BoundQuantified) -> Typed | None:
        """The conjuncts of WHERE that speak of one operand alone, on its columns."""
        own = [
            with_references(part, lambda reference: replace(reference, owner=None))
            for part in conjuncts(self.query.where)
            if {owner for owner, _ in references(part)} == {operand.name}
        ]
        return conjunction(tuple(own))


def analyse(query: BoundRelate) -> RelateAnalysis:
    """Take a query apart."""
    outer, inner = (ALL if operand.at_least is None else operand.at_least for operand in query.operands)
    relations = sum(1 << SIMPLE.index(relation) for relation in query.relations)
    equated = tuple(part for part in conjuncts(query.where) if _equality(query, part) is not None)
    return RelateAnalysis(query, relations, outer, inner, equated)


def _equality(query: BoundRelate, condition: Typed) -> tuple[Reference, Reference] | None:
    """The columns that a condition `a.x = b.y` equates, the first operand's first."""
    if not isinstance(condition, Operation) or condition.op != "=":
        return None
    left, right = condition.arguments
    if not isinstance(left, Reference) or not isinstance(right, Reference) or left.owner == right.owner:
        return None
    return (left, right) if left.owner == query.first.name else (right, left)
