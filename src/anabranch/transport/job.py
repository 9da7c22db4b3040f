"""The protocol between runtimes and kinds of query: a job is what the workers, and Spark, need of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from anabranch.binding.typed import Typed
from anabranch.columns.times import TimeKind
from anabranch.transport.operator import Operator
from anabranch.transport.packing import Layout
from anabranch.transport.routing import Placement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job needs besides its queries.

    Attributes
    ----------
    layouts : which columns of each stream are what, in the order of the queries' streams
    relations : the rows of the relations that they ask, by lower-case name
    fingerprint : tells their saved state from that of any other
    live : whether the inputs go on
    folders : of the workbook of each query, for the files that it names
    """

    layouts: tuple[Layout, ...]
    relations: Mapping[str, pa.Table]
    fingerprint: str
    live: bool = False
    folders: tuple[str, ...] = ()


class Job(Placement, Protocol):
    """A query ready to run on workers: picklable, without Spark. Makes the operators of its buckets."""

    @property
    def fingerprint(self) -> str:
        """Tells saved state of this query from that of any other."""

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of an outcome's answers."""

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions ask, by lower-case name."""

    def needed(self, stream: int) -> Typed | None:
        """What a row's key must meet to take part in any answer, on lower-case columns; None where every row may."""

    def operator(self) -> Operator:
        """A new operator."""

    def finish(self, answers: DataFrame) -> DataFrame:
        """From the operators' answers to the query's: what is left to combine over buckets, and the result columns."""

    def finish_table(self, answers: pa.Table) -> pa.Table | None:
        """As `finish`, of the answers of a micro-batch, without Spark; None where that is too much for one process."""


@dataclass(frozen=True)
class QueryJob:
    """What the jobs of all kinds have; each adds where rows go, the operator of a bucket, and its answers."""

    context: JobContext

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The streams of the query, in order."""
        return self.context.layouts

    @property
    def relations(self) -> Mapping[str, pa.Table]:
        """The rows of the relations that conditions ask, by lower-case name."""
        return self.context.relations

    @property
    def fingerprint(self) -> str:
        """Tells saved state of this query from that of any other."""
        return self.context.fingerprint

    @property
    def live(self) -> bool:
        """Whether the inputs go on."""
        return self.context.live

    @property
    def time_kind(self) -> TimeKind:
        """The kind of all times."""
        return self.layouts[0].time_kind

    def stream_number(self, name: str) -> int:
        """The number of a stream, by its name."""
        return [layout.name.lower() for layout in self.layouts].index(name.lower())
