"""A query with the rows that one of its answers depends on; it is run again and again with small changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from anabranch.arrays import BEGINNING
from anabranch.binding.binder import bind
from anabranch.binding.bound import BoundQuery
from anabranch.binding.per import PerWindow
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.columns.times import encode_times
from anabranch.errors import AnabranchError
from anabranch.planning.in_process import answers_in_process
from anabranch.planning.prepared import Prepared, prepare, with_job
from anabranch.transport.job import Job, JobContext
from anabranch.transport.layout import Layout

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A query, its declarations, and rows: one table for each layout of the context, in the columns of the stream.

    The query keeps every answer: it has neither THRESHOLD nor LIMIT. `newest` has the codes of the newest times of all
    rows of each stream, also of those that the tables do not have; empty if they do not matter.
    """

    query: Query
    catalog: Catalog
    context: JobContext
    tables: tuple[pa.Table, ...]
    newest: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        catalog: Catalog,
        context: JobContext,
        tables: tuple[pa.Table, ...],
        newest: Mapping[str, object] | None = None,
    ) -> Case:
        """The case of a query as it was prepared for its inputs; `tables` have rows of the streams.

        `newest` has the newest time of each stream, if the tables do not have all rows, and it matters.
        """
        bound = prepared.bound
        if bound.per is not None and not (bound.kind == "PATTERN" and isinstance(bound.per, PerWindow)):
            raise AnabranchError(
                f"{prepared.query.name} has rows of several answers (PER); remove PER and explain one of the answers"
            )
        used: list[Stream | Relation] = [*bound.streams, *bound.declared_relations]
        named = {entry.name.lower(): entry for entry in used}
        layouts = tuple(replace(layout, preparation=None) for layout in context.layouts)
        everything = replace(prepared.query.declaration, threshold=None, limit=None, calibrated=None, target=None)
        return cls(
            replace(prepared.query, declaration=everything),
            Catalog({**catalog.entries, **named}),
            replace(context, layouts=layouts, calibrations={}, limits={}),
            tables,
            () if newest is None else tuple(_code(newest.get(layout.name), layout) for layout in layouts),
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
        answers, _ = answers_in_process(self.job, self.tables, newest=self.newest)
        rows: list[Row] = answers.to_pylist()
        return rows

    def with_bound(self, bound: BoundQuery) -> Case:
        """A query that no text states, such as a prefix of this one."""
        changed = replace(self)
        changed.__dict__["bound"] = bound
        return changed

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
        body = replace(declaration.body, **changes)
        return replace(self, query=replace(self.query, declaration=replace(declaration, body=body)))


def _code(t: object, layout: Layout) -> int:
    """The code of a time; BEGINNING if there is none."""
    if t is None:
        return BEGINNING
    return int(encode_times(pa.array([t], layout.time_kind.arrow_type), layout.time_kind)[0])
