"""The jobs of queries about events: several over the same streams are one, and their answers are told apart again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.binding.typed import Typed
from anabranch.events.batch import arrow_type_of
from anabranch.transport.job import QueryJob


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result, and where the answers of all queries have it.

    Attributes
    ----------
    source : the column of the answers
    place : of the event in it, from 0, where it is a list; None where it is what is asked for
    count : of the events from there on, where they stay a list; None for one event by itself
    """

    name: str
    source: str
    place: int | None = None
    count: int | None = None

    def of_frame(self) -> Column:
        """The column of a frame of answers."""
        column = F.col(self.source)
        if self.place is not None:
            column = F.get(column, self.place) if self.count is None else F.slice(column, self.place + 1, self.count)
        return column.alias(self.name)

    def of_table(self, answers: pa.Table) -> pa.ChunkedArray:
        """The column of a table of answers."""
        column = answers[self.source]
        if self.place is None:
            return column
        if self.count is None:
            return pc.list_element(column, self.place)
        return pc.list_slice(column, self.place, self.place + self.count)


@dataclass(frozen=True)
class EventJob(QueryJob, ABC):
    """The job of one or several queries about events over the same streams: rows are read, asked and sent once."""

    n_queries: int

    @property
    @abstractmethod
    def answer_schema(self) -> pa.Schema:
        """The columns of an outcome's answers."""

    @property
    def event_fields(self) -> list[pa.Field]:
        """The columns of answers that hold events: those of each stream in a list."""
        return [pa.field(f"events_{number}", pa.list_(arrow_type_of(each))) for number, each in enumerate(self.layouts)]

    @abstractmethod
    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The columns of the answers of one query."""

    def needed(self, stream: int) -> Typed | None:
        """Every row is read: what is asked of it may be about more than its key."""
        return None

    def finish(self, answers: DataFrame) -> DataFrame:
        """The answers of the only query; those of several stay together, to be told apart by `answers_of`."""
        return self.answers_of(answers, 0) if self.n_queries == 1 else answers

    def finish_table(self, answers: pa.Table) -> pa.Table:
        """As `finish`, of a table; those of several are told apart by `answers_in`."""
        return self.answers_in(answers, 0) if self.n_queries == 1 else answers

    def answers_of(self, answers: DataFrame, query: int) -> DataFrame:
        """The answers of one query, in its own columns."""
        own = answers if self.n_queries == 1 else answers.where(F.col("query") == query)
        return own.select(*(column.of_frame() for column in self.result_columns(query)))

    def answers_in(self, answers: pa.Table, query: int) -> pa.Table:
        """As `answers_of`, of a table."""
        own = answers if self.n_queries == 1 else answers.filter(pc.equal(answers["query"], query))
        return pa.table({column.name: column.of_table(own) for column in self.result_columns(query)})
