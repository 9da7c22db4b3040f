"""Analyses RELATE queries: relations as numbers, and the conditions on pairs of entities and on segments."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.binding.equalities import equated_columns
from anabranch.binding.typed import Reference, Typed, conjunction, conjuncts, disjunction, of_event, references
from anabranch.plan import Sampling, sampled_columns
from anabranch.relate.query import SIMPLE, BoundQuantified, BoundRelate


@dataclass(frozen=True, slots=True)
class RelateAnalysis:
    """The analysis of a RELATE query.

    Attributes
    ----------
    relations : int
        The simple relations of the query; bit i stands for SIMPLE[i].
    equated : tuple of Typed
        The conjuncts of WHERE that equate a key of the first operand with one of the second.
    joined : tuple of Typed
        The other conjuncts of WHERE that use no attributes: conditions on pairs of entities.
    counted : pair of (Typed or None)
        For each operand, the condition on the segments that count: the conjuncts that use only its attributes.
    compared : Typed or None
        The condition on pairs of segments: the conjuncts that use attributes of both operands.
    """

    query: BoundRelate
    relations: int
    equated: tuple[Typed, ...] = ()
    joined: tuple[Typed, ...] = ()
    counted: tuple[Typed | None, Typed | None] = (None, None)
    compared: Typed | None = None

    @property
    def equalities(self) -> tuple[tuple[Reference, Reference], ...]:
        """The pairs (column of the first operand, column of the second) that must be equal."""
        return tuple(filter(None, (_equality(self.query, part) for part in self.equated)))

    @property
    def has_segment_conditions(self) -> bool:
        """Whether a condition uses attributes of segments."""
        return self.compared is not None or any(condition is not None for condition in self.counted)

    def attributes(self, stream: str) -> tuple[str, ...]:
        """The lower-case names of the VALUE columns of a stream that conditions use."""
        owners = {operand.name for operand in self.query.operands if operand.stream.name.lower() == stream.lower()}
        used = {name for part in conjuncts(self.query.where) for owner, name in references(part) if owner in owners}
        operand = next(operand for operand in self.query.operands if operand.name in owners)
        return tuple(name for name in _values(operand) if name in used)

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

    @property
    def holds_unrelated(self) -> bool:
        """Whether the query can hold although no segments are related: a quantifier admits that no segment does."""
        return any(
            operand.at_least == 0 or (operand.at_least is None and condition is not None)
            for operand, condition in zip(self.query.operands, self.counted, strict=True)
        )

    def holds_apart(self, relation: str) -> bool:
        """Whether the query can hold for entities that are apart in time, with PRECEDES or PRECEDED BY between them."""
        return self.has_relation(relation) or self.holds_unrelated

    def pairs_with_later(self, stream: str) -> bool:
        """Whether an entity of a stream can satisfy the query with an entity that begins after its end."""
        first, second = (operand.stream.name.lower() == stream.lower() for operand in self.query.operands)
        return (first and self.holds_apart("PRECEDES")) or (second and self.holds_apart("PRECEDED BY"))

    def needed(self, stream: str) -> Typed | None:
        """The condition that a key of a stream must satisfy to be an operand; None if every key can."""
        operands = [operand for operand in self.query.operands if operand.stream.name.lower() == stream.lower()]
        return disjunction([self._own_conditions(operand) for operand in operands])

    def _own_conditions(self, operand: BoundQuantified) -> Typed | None:
        """The conjuncts of WHERE on one operand only, on its columns."""
        own = [of_event(part) for part in self.joined if {owner for owner, _ in references(part)} == {operand.name}]
        return conjunction(tuple(own))


def analyse(query: BoundRelate) -> RelateAnalysis:
    """Analyse a bound query."""
    relations = sum(1 << SIMPLE.index(relation) for relation in query.relations)
    by_operands: dict[frozenset[str], list[Typed]] = {}
    for part in conjuncts(query.where):
        by_operands.setdefault(_with_attributes(query, part), []).append(part)
    on_entities = by_operands.get(frozenset(), [])
    equated = tuple(part for part in on_entities if _equality(query, part) is not None)
    joined = tuple(part for part in on_entities if part not in equated)
    first, second = (conjunction(tuple(by_operands.get(frozenset({operand.name}), ()))) for operand in query.operands)
    compared = conjunction(tuple(by_operands.get(frozenset(operand.name for operand in query.operands), ())))
    return RelateAnalysis(query, relations, equated, joined, (first, second), compared)


def _with_attributes(query: BoundRelate, condition: Typed) -> frozenset[str]:
    """The operands whose attributes a condition uses."""
    used = references(condition)
    return frozenset(
        operand.name for operand in query.operands if any((operand.name, name) in used for name in _values(operand))
    )


def _values(operand: BoundQuantified) -> list[str]:
    """The lower-case names of the VALUE columns of an operand that are no keys."""
    keys = {column.name.lower() for column in operand.stream.keys}
    return [column.name.lower() for column in operand.stream.values if column.name.lower() not in keys]


def _equality(query: BoundRelate, condition: Typed) -> tuple[Reference, Reference] | None:
    """The columns that a condition `a.x = b.y` equates, that of the first operand first."""
    equated = equated_columns(condition)
    if equated is None or equated[0].owner == equated[1].owner:
        return None
    left, right = equated
    return (left, right) if left.owner == query.first.name else (right, left)
