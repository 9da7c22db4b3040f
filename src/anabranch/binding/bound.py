"""Bound queries: names are resolved to catalog entries, and conditions are typed.

The analyses of the kinds work on bound queries; each kind has its own subclass in `query.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.binding.typed import Member, Typed, walk
from anabranch.catalog import Relation, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE


class BoundQuery(ABC):
    """Base class of the bound queries in `query.py` of each kind.

    Attributes
    ----------
    kind : str
        The keyword of the kind.
    shares_pass : bool
        Whether several queries over the same streams can be answered in one pass.
    name : str
        The name of the query.
    streams : tuple of Stream
        Its distinct streams, in order of appearance.
    conditions : tuple of Typed
        All its conditions.
    """

    __slots__ = ()

    kind: ClassVar[str]
    shares_pass: ClassVar[bool] = False

    name: str
    span: Span

    @property
    @abstractmethod
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""

    @property
    @abstractmethod
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""

    @property
    def declared_relations(self) -> tuple[Relation, ...]:
        """The relations that the query looks up."""
        return relations_in(self.conditions)


@dataclass(frozen=True, slots=True)
class BoundOperand:
    """A name of the query and its stream.

    `label` is the name as written, and becomes a column of answers; `name` is in lower case, as in typed conditions.
    """

    label: str
    name: str
    stream: Stream
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


def relations_in(conditions: Iterable[Typed]) -> tuple[Relation, ...]:
    """The relations that conditions look up."""
    nodes = (node for condition in conditions for node in walk(condition))
    return tuple(node.relation for node in nodes if isinstance(node, Member))


def streams_of(operands: Iterable[BoundOperand]) -> tuple[Stream, ...]:
    """The distinct streams of operands, in order of appearance."""
    return tuple({operand.stream.name.lower(): operand.stream for operand in operands}.values())
