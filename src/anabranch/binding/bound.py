"""Queries after binding: names resolved to catalogue entries, conditions typed.

This is what the families' analyses see of the language; the queries of each kind are in its folder (`query.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.typed import Member, Typed, walk
from anabranch.catalog import Relation, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE


class BoundQuery:
    """What all bound queries have: see `query.py` of each kind.

    Attributes
    ----------
    kind : the keyword
    shares_pass : whether several queries over the same streams can be answered in one pass
    name : of the query
    streams : that it names, each once, in order of appearance
    conditions : all of them
    """

    __slots__ = ()

    kind: ClassVar[str]
    shares_pass: ClassVar[bool] = False

    name: str
    span: Span

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams the query names, each once, in order of appearance."""
        raise NotImplementedError

    @property
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""
        raise NotImplementedError

    @property
    def declared_relations(self) -> tuple[Relation, ...]:
        """The relations of the catalogue that it asks."""
        return relations_in(self.conditions)


@dataclass(frozen=True, slots=True)
class BoundOperand:
    """A name of the query and the stream its events come from.

    `label` is the name as written, which becomes a result column; `name` is lower case, as in typed conditions.
    """

    label: str
    name: str
    stream: Stream
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


def relations_in(conditions: Iterable[Typed]) -> tuple[Relation, ...]:
    """The relations that conditions ask."""
    nodes = (node for condition in conditions for node in walk(condition))
    return tuple(node.relation for node in nodes if isinstance(node, Member))


def streams_of(operands: Iterable[BoundOperand]) -> tuple[Stream, ...]:
    """The streams of operands, each once."""
    return tuple({operand.stream.name.lower(): operand.stream for operand in operands}.values())
