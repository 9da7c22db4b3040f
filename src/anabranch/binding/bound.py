"""Bound queries: names are resolved to catalog entries, and conditions are typed.

The analyses of the kinds work on bound queries; each kind has its own subclass in `query.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from anabranch.binding.answers import AnswerColumns
from anabranch.binding.lineage import Bounded, Origin
from anabranch.binding.per import Per
from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed, conjuncts, walk
from anabranch.catalog import Relation, Stream
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE
from anabranch.thresholds import least_reaching

#: The column that CALIBRATED BY adds to answers.
CALIBRATED = "calibrated"


class Wanted(NamedTuple):
    """A value that some row of a stream must have in a column."""

    stream: Stream
    column: str
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """How answers become the rows of the result."""

    per: Per | None = None
    limit: int | None = None
    bounded: Bounded | None = None


class BoundQuery(_Rows, ABC):
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
    threshold : float
        The lowest probability of an answer: the THRESHOLD clause, 0 without it. With PER, it is 0 or the number of
        ABOVE, and THRESHOLD applies to the rows (`per.threshold`).
    per : PerWindow, PerEpisode, PerKeys or None
        Which answers become one row; None without PER.
    limit : int or None
        How many rows are kept, the most probable ones; None without ORDER BY ... LIMIT.
    bounded : Bounded or None
        Why the probabilities of its answers can only be bounded; None if they are computed.
    """

    __slots__ = ()

    kind: ClassVar[str]
    shares_pass: ClassVar[bool] = False

    name: str
    span: Span
    threshold: float

    @property
    def least_probability(self) -> float:
        """The least probability that reaches THRESHOLD."""
        return least_reaching(self.threshold)

    @property
    @abstractmethod
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams of the query, in order of appearance."""

    @property
    @abstractmethod
    def conditions(self) -> tuple[Typed, ...]:
        """Every condition of the query."""

    @property
    @abstractmethod
    def answers(self) -> AnswerColumns:
        """The columns of its answers, without PER."""

    @property
    @abstractmethod
    def origins(self) -> tuple[Origin, ...]:
        """The uncertain rows that an answer depends on, in terms of its columns."""

    @property
    def combines_rows(self) -> bool:
        """Whether an answer can depend on several rows of its streams; its probability is that of a row otherwise."""
        return True

    @property
    def operands_of_events(self) -> tuple[BoundOperand, ...]:
        """The operands that are events, if answers have the events that they combine."""
        return ()

    @property
    def combined_events(self) -> tuple[BoundOperand, ...]:
        """Those of them with exactly one event in each answer, or none if it is missing."""
        return ()

    @property
    def unread(self) -> frozenset[str]:
        """The streams, in lower case, of which something is uncertain that is no event: readings, or true locations."""
        return frozenset()

    @property
    def wanted_values(self) -> tuple[Wanted, ...]:
        """Values that some row must have, because conditions compare a column with a constant."""
        return ()

    @property
    def combined_definitions(self) -> tuple[str, ...]:
        """The queries that this one combines, as text."""
        return ()

    @property
    def has_tables(self) -> bool:
        """Whether tables are computed from the query and its files before any row is read."""
        return False

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


def wanted_in(operands: Iterable[BoundOperand], conditions: Iterable[Typed]) -> tuple[Wanted, ...]:
    """The values that rows of the operands must have: `u.kind = 'A'`, alone or joined by AND."""
    streams = {operand.name: operand.stream for operand in operands}
    wanted = []
    for part in (part for condition in conditions for part in conjuncts(condition)):
        if isinstance(part, Operation) and part.op == "=" and len(part.arguments) == 2:
            one, other = part.arguments
            column, constant = (other, one) if isinstance(one, Constant) else (one, other)
            if isinstance(column, Reference) and isinstance(constant, Constant) and column.owner in streams:
                wanted.append(Wanted(streams[column.owner], column.name, constant.value))
    return tuple(wanted)


def relations_in(conditions: Iterable[Typed]) -> tuple[Relation, ...]:
    """The relations that conditions look up."""
    nodes = (node for condition in conditions for node in walk(condition))
    return tuple(node.relation for node in nodes if isinstance(node, Member))


def streams_of(operands: Iterable[BoundOperand]) -> tuple[Stream, ...]:
    """The distinct streams of operands, in order of appearance."""
    return tuple({operand.stream.name.lower(): operand.stream for operand in operands}.values())
