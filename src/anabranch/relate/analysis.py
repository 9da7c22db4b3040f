"""Analyses RELATE queries: relations and quantifiers as numbers, and the conditions that Spark can evaluate."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.binding.equalities import equated_columns
from anabranch.binding.typed import Reference, Typed, conjunction, conjuncts, disjunction, of_event, references
from anabranch.plan import Sampling, sampled_columns
from anabranch.relate.query import SIMPLE, BoundQuantified, BoundRelate

#: The quantifier ALL, instead of a number of segments.
ALL = 0


@dataclass(frozen=True, slots=True)
class RelateAnalysis:
    """The analysis of a RELATE query.

    Attributes
    ----------
    relations : int
        The simple relations of the query; bit i stands for SIMPLE[i].
    outer, inner : int
        The number of segments of the first and of the second operand, or ALL.
    equated : tuple of Typed
        The conjuncts of WHERE that equate a column of the first operand with one of the second.
    """

    query: BoundRelate
    relations: int
    outer: int
    inner: int
    equated: tuple[Typed, ...]

    @property
    def equalities(self) -> tuple[tuple[Reference, Reference], ...]:
        """The pairs (column of the first operand, column of the second) that must be equal."""
        return tuple(filter(None, (_equality(self.query, part) for part in self.equated)))

    @property
    def hits_needed(self) -> int:
        """The number of segments of the first operand that decide the query: enough hits, or one failure for ALL."""
        return self.outer or 1

    @property
    def sampling(self) -> Sampling:
        """An answer has two entities; they are sampled together where WHERE equates columns of both."""
        streams = [stream.name.lower() for stream in self.query.streams]
        owners = {operand.name: operand.stream.name.lower() for operand in self.query.operands}
        for pair in self.equalities:
            columns = sampled_columns(streams, ((owners[column.owner or ""], column.name) for column in pair))
            if columns is not None:
                return Sampling(columns)
        return Sampling(tuple(tuple(key.name for key in stream.keys) for stream in self.query.streams), power=2)

    @property
    def same_stream(self) -> bool:
        """Whether both operands have the same stream, so that a key could be paired with itself."""
        return self.query.first.stream.name.lower() == self.query.second.stream.name.lower()

    def has_relation(self, relation: str) -> bool:
        """Whether a simple relation is one of those of the query."""
        return relation in self.query.relations

    def pairs_with_later(self, stream: str) -> bool:
        """Whether an entity of a stream can satisfy the query with an entity that begins after its end."""
        first, second = (operand.stream.name.lower() == stream.lower() for operand in self.query.operands)
        return (first and self.has_relation("PRECEDES")) or (second and self.has_relation("PRECEDED BY"))

    def needed(self, stream: str) -> Typed | None:
        """The condition that a key of a stream must satisfy to be an operand; None if every key can."""
        operands = [operand for operand in self.query.operands if operand.stream.name.lower() == stream.lower()]
        return disjunction([self._own_conditions(operand) for operand in operands])

    def _own_conditions(self, operand: BoundQuantified) -> Typed | None:
        """The conjuncts of WHERE on one operand only, on its columns."""
        own = [
            of_event(part)
            for part in conjuncts(self.query.where)
            if {owner for owner, _ in references(part)} == {operand.name}
        ]
        return conjunction(tuple(own))


def analyse(query: BoundRelate) -> RelateAnalysis:
    """Analyse a bound query."""
    outer, inner = (ALL if operand.at_least is None else operand.at_least for operand in query.operands)
    relations = sum(1 << SIMPLE.index(relation) for relation in query.relations)
    equated = tuple(part for part in conjuncts(query.where) if _equality(query, part) is not None)
    return RelateAnalysis(query, relations, outer, inner, equated)


def _equality(query: BoundRelate, condition: Typed) -> tuple[Reference, Reference] | None:
    """The columns that a condition `a.x = b.y` equates, that of the first operand first."""
    equated = equated_columns(condition)
    if equated is None or equated[0].owner == equated[1].owner:
        return None
    left, right = equated
    return (left, right) if left.owner == query.first.name else (right, left)
