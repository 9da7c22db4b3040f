"""The answers of one step of a job: tables in the schema of the job, with the events of each answer."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from anabranch.arrays import I64
from anabranch.events.batch import Batch, lists_of_events, row_numbers
from anabranch.events.job import EventSpecification
from anabranch.transport.limits import AnswerLimit


class EventAnswers:
    """The answers among the events of a batch, in the schema of their job; each kind adds its columns."""

    def __init__(self, spec: EventSpecification, batch: Batch) -> None:
        self._batch = batch
        self._schema = spec.answer_schema
        self._row = row_numbers(batch.stream, len(batch.tables))
        self._tables: list[pa.Table] = []
        self._specification = spec
        self._limits: dict[int, AnswerLimit] = {}

    def table(self) -> pa.Table:
        """All answers that were added."""
        return pa.concat_tables([self._schema.empty_table(), *self._tables])

    def limit(self, query: int) -> AnswerLimit:
        """Counts the answers of a query."""
        if query not in self._limits:
            spec = self._specification
            self._limits[query] = AnswerLimit(spec.analyses[query].query.name, spec.max_answers, spec.remedy)
        return self._limits[query]

    def _append(self, query: int, columns: Sequence[pa.Array], events: Sequence[pa.Array]) -> None:
        """Add answers of a query: the columns of the kind, then one column of events per stream."""
        number = pa.repeat(pa.scalar(query, pa.int32()), len(columns[0]))
        self._tables.append(pa.table([number, *columns, *events], schema=self._schema))

    def _lists(self, stream: int, rows: I64) -> pa.Array:
        """Row numbers (n, k) of a stream as one list of k events per answer; -1 is a missing event, NULL."""
        return lists_of_events(self._batch, stream, rows, self._schema.field(f"events_{stream}").type)
