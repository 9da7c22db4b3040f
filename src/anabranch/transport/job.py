"""Jobs: the protocol between the runtimes and the kinds. A job is a query prepared for the workers.

A job is picklable and has no Spark objects. It has two parts: the *specification*, which the operators of its buckets
need, and the routing of rows and the finishing rules of answers, which only the runtimes need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, Self, TypeVar

import pyarrow as pa

from anabranch.binding.typed import Typed
from anabranch.columns.calibration import CalibrationMap
from anabranch.columns.times import TimeKind
from anabranch.transport.finishing import Finishing
from anabranch.transport.frontier import Frontier
from anabranch.transport.layout import Layout
from anabranch.transport.limits import MAX_ANSWERS
from anabranch.transport.operator import Operator
from anabranch.transport.routing import Placement


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job needs besides its queries.

    Attributes
    ----------
    layouts : of the streams of the queries, in order
    relations : the rows of the relations that conditions use, by lower-case name
    fingerprint : identifies the queries; state with another fingerprint is refused. That of queries which share a pass
        on a stream identifies their streams only: these queries may change between two starts
    live : whether the inputs are live
    folders : the folder of each query's workbook, for the files that it names
    calibrations : the calibration map of each query that has one, by its number
    limits : how many rows are kept, for each query with ORDER BY ... LIMIT, by its number
    queries : identifies each query, in hexadecimal digits; empty if there is no state
    max_answers : how many answers a query may have in one step of a bucket
    ends : whether the answers of a RELATE have the ends of its operands, for a stream of the answers
    """

    layouts: tuple[Layout, ...]
    relations: Mapping[str, pa.Table]
    fingerprint: str
    live: bool = False
    folders: tuple[str, ...] = ()
    calibrations: Mapping[int, CalibrationMap] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    queries: tuple[str, ...] = ()
    max_answers: int = MAX_ANSWERS
    ends: bool = False

    def query_id(self, number: int) -> str:
        """Identifies a query of the group in saved state."""
        return self.queries[number] if self.queries else f"{number:x}"


@dataclass(frozen=True)
class Specification(ABC):
    """What the operators of all kinds need; each kind adds its analyses."""

    context: JobContext

    @property
    @abstractmethod
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers."""

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts of the streams, in order."""
        return self.context.layouts

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions use, by lower-case name."""
        return self.context.relations

    @property
    def fingerprint(self) -> str:
        """Identifies the queries; state with another fingerprint is refused."""
        return self.context.fingerprint

    def query_id(self, number: int) -> str:
        """Identifies a query of the group in saved state."""
        return self.context.query_id(number)

    @property
    def live(self) -> bool:
        """Whether the inputs are live."""
        return self.context.live

    @property
    def max_answers(self) -> int:
        """How many answers a query may have in one step of a bucket."""
        return self.context.max_answers

    @property
    def time_kind(self) -> TimeKind:
        """The type of all event times."""
        return self.layouts[0].time_kind

    def stream_number(self, name: str) -> int:
        """The number of a stream, by its name."""
        return [layout.name.lower() for layout in self.layouts].index(name.lower())


class Job(Placement, Protocol):
    """A query, or a group of queries that share a pass, prepared for the workers."""

    @property
    def fingerprint(self) -> str:
        """Identifies the queries; state with another fingerprint is refused."""

    def query_id(self, number: int) -> str:
        """Identifies a query of the group in saved state."""

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers."""

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions use, by lower-case name."""

    @property
    def n_queries(self) -> int:
        """How many queries the job serves."""

    def needed(self, stream: int) -> Typed | None:
        """The condition on the key of a row that can be part of an answer; None if every row can."""

    def operator(self) -> Operator:
        """A new operator for one bucket."""

    def finishing(self, query: int = 0) -> Finishing:
        """How the operators' answers become the result of a query."""


class SingleJob(Job, Protocol):
    """The job of one query, or of several of which the operators themselves share a pass."""

    def with_layouts(self, layouts: tuple[Layout, ...]) -> Self:
        """The same job with other layouts of its streams."""

    def frontier(self, query: int = 0) -> Frontier:
        """Which answers of a live query can still be given, by their times."""


S = TypeVar("S", bound=Specification)


@dataclass(frozen=True)
class QueryJob(ABC, Generic[S]):
    """The base of the jobs of all kinds. A kind adds `pack`, `operator` and `rules`."""

    spec: S

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts of the streams, in order."""
        return self.spec.layouts

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions use, by lower-case name."""
        return self.spec.relations

    @property
    def fingerprint(self) -> str:
        """Identifies the queries; state with another fingerprint is refused."""
        return self.spec.fingerprint

    def query_id(self, number: int) -> str:
        """Identifies a query of the group in saved state."""
        return self.spec.query_id(number)

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers."""
        return self.spec.answer_schema

    @property
    def n_queries(self) -> int:
        """How many queries the job serves."""
        return 1

    def with_layouts(self, layouts: tuple[Layout, ...]) -> Self:
        """The same job with other layouts of its streams."""
        context = replace(self.spec.context, layouts=layouts)
        return replace(self, spec=replace(self.spec, context=context))

    def frontier(self, query: int = 0) -> Frontier:
        """Which answers of a live query can still be given, by their times; answers of RELATE have none."""
        return Frontier(self.spec.time_kind, self.spec.time_kind)

    def together(self, stream: int) -> tuple[str, ...]:
        """The columns in which rows that must meet are equal; none, unless a kind knows some."""
        return ()

    @abstractmethod
    def rules(self, query: int) -> Finishing:
        """How the operators' answers become the result of a query, before calibration and LIMIT."""

    def finishing(self, query: int = 0) -> Finishing:
        """How the operators' answers become the result of a query."""
        context = self.spec.context
        return replace(self.rules(query), calibration=context.calibrations.get(query), limit=context.limits.get(query))
