"""The jobs of SEQUENCE and CONSTRAIN: a group of queries over the same streams is one job."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools, Numbers
from anabranch.binding.bound import BoundOperand, BoundQuery
from anabranch.binding.per import Per
from anabranch.binding.typed import Typed
from anabranch.events.packets import pack_events
from anabranch.events.roles import roles_of
from anabranch.events.table import EventTable, arrow_type_of
from anabranch.transport.dependence import BoundsRule, EventColumn
from anabranch.transport.finishing import QUERY, Finishing, ResultColumn, StructColumn
from anabranch.transport.job import QueryJob, Specification
from anabranch.transport.per import KeyColumn, PerRule
from anabranch.transport.routing import Packets

#: The interval of a probability before it is bounded.
UNBOUNDED = (
    ResultColumn("lower", "probability"),
    ResultColumn("upper", "probability"),
    ResultColumn("method", constant="exact"),
)


class Analysed(Protocol):
    """An analysis of a query of a group."""

    @property
    def query(self) -> BoundQuery:
        """The bound query."""


@dataclass(frozen=True)
class EventSpecification(Specification):
    """What the operators of events need: the analyses of the queries, one per query.

    `remedy` says how to change a query of the kind that has too many answers.
    """

    remedy: ClassVar[str]

    analyses: tuple[Analysed, ...]

    @property
    @abstractmethod
    def first_role(self) -> Sequence[int] | I64:
        """The number of the first variable of each query among those of all queries, and the number of variables."""

    @property
    def event_fields(self) -> list[pa.Field]:
        """The answer columns with events: one list per stream."""
        return [
            pa.field(f"events_{number}", pa.list_(arrow_type_of(layout))) for number, layout in enumerate(self.layouts)
        ]

    def answer_fields(self, *fields: tuple[str, pa.DataType]) -> pa.Schema:
        """The schema of answers: the number of the query, the fields of the kind, and the events."""
        return pa.schema([(QUERY, pa.int32()), *fields, *self.event_fields])


S = TypeVar("S", bound=EventSpecification)


@dataclass(frozen=True)
class EventJob(QueryJob[S]):
    """The job of one or several queries over the same streams: rows are read, tested and sent once for all of them."""

    @property
    def n_queries(self) -> int:
        """How many queries the job serves."""
        return len(self.spec.analyses)

    @abstractmethod
    def conditions(self, stream: int) -> list[tuple[int, Typed | None]]:
        """For each variable of a stream, in all queries, the condition on its event alone; the variables ascend."""

    @abstractmethod
    def holds(self, stream: int, condition: Typed, columns: Mapping[str, pa.Array], n: int) -> Bools:
        """The rows of a stream, of which there are `n`, where a condition is TRUE."""

    @abstractmethod
    def copies(
        self, events: EventTable, row: I64, variable: I64, n_buckets: int
    ) -> tuple[I64, I64, Mapping[str, Numbers]]:
        """Route roles to buckets; a role may be copied to several.

        Parameters
        ----------
        row, variable : of each role

        Returns
        -------
        For each copy: its role, its bucket, and further role columns.
        """

    @abstractmethod
    def result_columns(self, query: int) -> Sequence[ResultColumn | StructColumn]:
        """The result columns of one query."""

    @abstractmethod
    def per_rule(self, query: int) -> PerRule | None:
        """How the answers of one query become rows of several; None without PER."""

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """One packet per bucket: the rows that can be a variable, and which variables."""
        events = EventTable.from_rows(rows, self.layouts[stream])
        conditions = self.conditions(stream)
        if not len(events) or not conditions:
            return [], len(events)
        first, variable = roles_of(events.columns, conditions, partial(self.holds, stream))
        row = np.repeat(np.arange(len(events)), np.diff(first))
        role, bucket, columns = self.copies(events, row, variable, n_buckets)
        role_columns = {"variable": variable[role].astype(np.int32), **columns}
        return pack_events(events, row[role], bucket, role_columns, n_buckets)

    def needed(self, stream: int) -> Typed | None:
        """Every row is read: conditions may use more than the key."""
        return None

    def rules(self, query: int) -> Finishing:
        """The answers of one query, in its own columns."""
        number = None if self.n_queries == 1 else query
        columns, bounds = tuple(self.result_columns(query)), self._bounds(query)
        return Finishing(query=number, columns=columns, bounds=bounds, per=self.per_rule(query))

    def _bounds(self, query: int) -> BoundsRule | None:
        """How the probabilities of one query are bounded; None if its events are independent."""
        bound = self.spec.analyses[query].query
        if bound.bounded is None:
            return None
        events = tuple(EventColumn(*event) for event in bound.bounded.events)
        return BoundsRule(events, self.spec.time_kind, bound.least_probability)

    def rule_of(self, query: int, per: Per | None, operands: Sequence[tuple[BoundOperand, bool]]) -> PerRule | None:
        """The rule of a query whose answers are about the instant `t`.

        Parameters
        ----------
        operands : those with events in answers, and whether they have several
        """
        if per is None:
            return None
        keys = tuple(
            KeyColumn(operand.label, self.layouts[self.spec.stream_number(operand.stream.name)].keys, several)
            for operand, several in operands
            if operand.stream.keys
        )
        return PerRule.of(per, keys, ("t", "t"), self.frontier(query))
