"""Bound RELATE queries: names are resolved to catalog entries, and conditions are typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.answers import PROBABILITY, AnswerColumns, common_time, field_columns
from anabranch.binding.bound import BoundOperand, BoundQuery, Wanted, streams_of, wanted_in
from anabranch.binding.lineage import Origin, of_entity
from anabranch.binding.typed import Typed
from anabranch.catalog import Column, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE
from anabranch.language.types import Type

#: The field of an operand with the time of its last event, in the answers that a stream of answers reads. If that
#: event was lost, it is the latest instant at which it can have been.
END = "end"

#: The 13 simple relations: exactly one of them holds between two intervals.
SIMPLE = (
    "PRECEDES", "MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "EQUALS",
    "PRECEDED BY", "MET BY", "OVERLAPPED BY", "STARTED BY", "CONTAINS", "FINISHED BY",
)  # fmt: skip

#: Relations that are unions of simple ones.
COMPOSITE = {
    "INTERSECTS": tuple(relation for relation in SIMPLE if relation not in ("PRECEDES", "PRECEDED BY")),
    "STARTS BEFORE": ("PRECEDES", "MEETS", "OVERLAPS", "CONTAINS", "FINISHED BY"),
    "STARTS AFTER": ("DURING", "FINISHES", "PRECEDED BY", "MET BY", "OVERLAPPED BY"),
    "ENDS BEFORE": ("PRECEDES", "MEETS", "OVERLAPS", "STARTS", "DURING"),
    "ENDS AFTER": ("PRECEDED BY", "MET BY", "OVERLAPPED BY", "STARTED BY", "CONTAINS"),
}


@dataclass(frozen=True, slots=True)
class BoundQuantified(BoundOperand):
    """An operand of a RELATE with its quantifier: `at_least` to `at_most` of its segments.

    ALL has `at_least` None, SOME has 1; `at_most` is None if there is no limit.
    """

    at_least: int | None = 1
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class BoundRelate(BoundQuery):
    """A RELATE query.

    `relations` has the simple relations of the query, in the order of SIMPLE; composite relations are expanded.
    `timeout` is None without TIMEOUT. `complement` adds a column of that name to the answers, `count` adds `expected`
    and `distribution`.
    """

    kind: ClassVar[str] = "RELATE"

    name: str
    first: BoundQuantified
    relations: tuple[str, ...]
    second: BoundQuantified
    where: Typed | None = None
    timeout: float | None = None
    complement: bool = False
    threshold: float = 0.0
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    count: bool = False

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""
        return () if self.where is None else (self.where,)

    @property
    def operands(self) -> tuple[BoundQuantified, BoundQuantified]:
        """Both operands."""
        return self.first, self.second

    @property
    def answers(self) -> AnswerColumns:
        """The columns of its answers; the time is the end of the first operand."""
        keys = tuple(column for operand in self.operands for column in field_columns(operand, operand.stream.keys))
        end = Column(END, common_time(self.streams))
        time, *ends = (column for operand in self.operands for column in field_columns(operand, [end]))
        added = (("complement", self.complement), ("expected", self.count))
        numbers = (PROBABILITY, *(Column(name, Type.DOUBLE) for name, has in added if has))
        return AnswerColumns(keys, time, (*ends, *numbers)) if self.has_ends else AnswerColumns(keys, None, numbers)

    @property
    def has_ends(self) -> bool:
        """Whether its operands have ends; not if one has a key column of that name."""
        return all(key.name.lower() != END for operand in self.operands for key in operand.stream.keys)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on: those of both entities."""
        return tuple(of_entity(operand) for operand in self.operands)

    @property
    def wanted_values(self) -> tuple[Wanted, ...]:
        """The values that conditions need."""
        return wanted_in(self.operands, self.conditions)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""
        return streams_of(self.operands)
