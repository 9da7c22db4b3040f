"""The jobs of SEQUENCE and CONSTRAIN: a group of queries over the same streams is one job."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from anabranch.binding.typed import Typed
from anabranch.events.table import arrow_type_of
from anabranch.transport.finishing import QUERY, Finishing, ResultColumn
from anabranch.transport.job import QueryJob, Specification


@dataclass(frozen=True)
class EventSpecification(Specification):
    """What the operators of events need."""

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
    """The job of one or several queries over the same streams: rows are read, tested and sent once."""

    @abstractmethod
    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The result columns of one query."""

    def needed(self, stream: int) -> Typed | None:
        """Every row is read: conditions may use more than the key."""
        return None

    def finishing(self, query: int = 0) -> Finishing:
        """The answers of one query, in its own columns."""
        number = None if self.n_queries == 1 else query
        return Finishing(query=number, columns=tuple(self.result_columns(query)))
