"""A query with the rows that one of its answers depends on; it is run again and again with small changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from anabranch.binding.binder import bind
from anabranch.binding.bound import BoundQuery
from anabranch.binding.per import PerWindow
from anabranch.catalog import Catalog, Query
from anabranch.errors import AnabranchError
from anabranch.planning.in_process import answers_in_process
from anabranch.planning.prepared import Prepared, prepare, with_job
from anabranch.transport.job import Job, JobContext

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A query, its declarations, and rows: one table for each layout of the context, in the columns of the stream.

    The query keeps every answer: it has neither THRESHOLD nor LIMIT.
    """

    query: Query
    catalog: Catalog
    context: JobContext
    tables: tuple[pa.Table, ...]

    @classmethod
    def of(cls, prepared: Prepared, catalog: Catalog, context: JobContext, tables: tuple[pa.Table, ...]) -> Case:
        """The case of a query as it was prepared for its inputs; `tables` have rows of the streams."""
        bound = prepared.bound
        if bound.per is not None and not (bound.kind == "PATTERN" and isinstance(bound.per, PerWindow)):
            raise AnabranchError(
                f"{prepared.query.name} has rows of several answers (PER); remove PER and explain one of the answers"
            )
        named = {entry.name.lower(): entry for entry in (*bound.streams, *bound.declared_relations)}
        layouts = tuple(replace(layout, preparation=None) for layout in context.layouts)
        everything = replace(prepared.query.declaration, threshold=None, limit=None, calibrated=None, target=None)
        return cls(
            replace(prepared.query, declaration=everything),
            Catalog({**catalog.entries, **named}),
            replace(context, layouts=layouts, calibrations={}, limits={}),
            tables,
        )

    @cached_property
    def bound(self) -> BoundQuery:
        """The bound query."""
        return bind(self.query, self.catalog)

    @cached_property
    def prepared(self) -> Prepared:
        """The query with its analysis."""
        return prepare(self.query, self.bound, self.catalog)

    @property
    def job(self) -> Job:
        """The job of the query."""
        return self._job

    @cached_property
    def _job(self) -> Job:
        _, job = with_job([self.prepared], self.context)
        return job

    def answers(self) -> list[Row]:
        """Every answer that is possible, as a row."""
        answers, _ = answers_in_process(self.job, self.tables)
        return answers.to_pylist()

    def with_tables(self, tables: tuple[pa.Table, ...]) -> Case:
        """The same query about other rows; its job is not made again."""
        changed = replace(self, tables=tables)
        changed.__dict__["_job"] = self.job
        return changed

    def with_relations(self, relations: Mapping[str, pa.Table]) -> Case:
        """The same rows with other rows of relations."""
        return replace(self, context=replace(self.context, relations={**self.context.relations, **relations}))

    def with_body(self, **changes: Any) -> Case:
        """Another query: fields of its body are replaced."""
        declaration = self.query.declaration
        body = replace(declaration.body, **changes)  # type: ignore[type-var]
        return replace(self, query=replace(self.query, declaration=replace(declaration, body=body)))
