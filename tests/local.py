"""Runs queries without a JVM, with the same routing, operators and state bytes as on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING
from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.kinds import load_kind_module
from anabranch.language.parser import parse
from anabranch.planning.layouts import layouts_for
from anabranch.planning.prepared import Prepared, prepare, with_job
from anabranch.transport.ahead import quarantine_ahead
from anabranch.transport.job import JobContext
from anabranch.transport.jumps import Run
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.pages import Paged
from anabranch.transport.per import Moment
from anabranch.transport.routing import Packets, route_runs
from anabranch.transport.watermark import Clock
from tests.transport.layouts import table_of
from tests.untraced import untraced

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
FINGERPRINT = "0123456789abcdef" * 2

#: Trees are immutable, and the text of a case is needed two or three times in a row: by the oracle, and by each job.
parsed = lru_cache(maxsize=16)(parse)


@untraced
def bound_query(workbook: str, name: str) -> Any:
    """The bound query of a workbook; its streams must state their types. Not traced: the language has its own tests."""
    catalog = declared(workbook)
    return bind(catalog.query(name), catalog)


def prepared_query(workbook: str, name: str) -> Prepared:
    """The prepared query of a workbook, for the types that its streams state."""
    catalog = declared(workbook)
    query = catalog.query(name)
    return prepare(query, bind(query, catalog))


def declared(workbook: str) -> Catalog:
    """The catalog of a workbook without errors."""
    catalog = Catalog()
    findings = declare(parsed(workbook), catalog)
    assert not findings, findings
    return catalog


def local_job(
    workbook: str, name: str, relations: Mapping[str, Iterable[tuple]] = MappingProxyType({}), live: bool = False
) -> Any:
    """The job of a query, as a session makes it."""
    prepared = prepared_query(workbook, name)
    tables = relation_tables(workbook, relations)
    layouts = layouts_for(prepared.bound.streams)
    _, job = with_job([prepared], JobContext(layouts, tables, FINGERPRINT, live, (".",)))
    return job


def make_job(bound: Sequence[Any], context: JobContext) -> Any:
    """The job of bound queries over the same streams."""
    kind = bound[0].kind
    analyses = [load_kind_module(kind, "analysis").analyse(query) for query in bound]
    return load_kind_module(kind, "job").make_job(analyses, context)


def in_context(job: Any, **changes: Any) -> Any:
    """The job in another context: live, or with another fingerprint."""
    return replace(job, spec=replace(job.spec, context=replace(job.spec.context, **changes)))


def relation_tables(workbook: str, relations: Mapping[str, Iterable[tuple]]) -> dict[str, pa.Table]:
    """The rows of relations, in the types that the workbook states."""
    catalog = declared(workbook)
    tables = {}
    for relation, rows in relations.items():
        columns = catalog.relation(relation).columns
        arrays = [
            pa.array([row[index] for row in rows], ARROW_TYPES[column.type]) for index, column in enumerate(columns)
        ]
        tables[relation.lower()] = pa.table(arrays, names=[column.name for column in columns])
    return tables


def to_table(job: Any, stream: int, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of one stream as the table that its source would return."""
    return table_of(job.layouts[stream], rows)


class MemoryPages(dict[int, bytes]):
    """The pages of a bucket, with the numbers of those that were read and written."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def read(self, page: int) -> bytes:
        """The bytes of a page."""
        self.calls.append(("read", page))
        return self[page]

    def write(self, page: int, data: bytes) -> None:
        """Write a page."""
        self.calls.append(("write", page))
        self[page] = data

    def remove(self, page: int) -> None:
        """Remove a page."""
        self.calls.append(("remove", page))
        del self[page]


class Part(NamedTuple):
    """A run of one stream in a micro-batch."""

    stream: int
    run: Run
    packets: Packets
    instants: bytes


def _packets(parts: Sequence[Part], bucket: int) -> list[tuple[int, bytes]]:
    """The packets of a bucket."""
    return [(part.stream, blob) for part in parts for to, blob in part.packets if to == bucket]


class LocalRun:
    """The buckets of one query in one process; their state is saved and loaded at every step, as in streaming."""

    def __init__(self, job: Any, n_buckets: int = 3) -> None:
        self.job = job
        self.n_buckets = n_buckets
        self.states: list[bytes | None] = [None] * n_buckets
        self.pages = [MemoryPages() for _ in range(n_buckets)]
        self.clock = Clock(job.layouts)
        self.outcomes: list[Outcome] = []
        self.rejected: list[dict[str, str]] = []
        self.counts = Counts()

    def step(self, rows: Rows, end: bool = False) -> None:
        """Process one micro-batch: rows by stream name."""
        parts = [part for stream in range(len(self.job.layouts)) for part in self._routed(stream, rows)]
        limits = self.clock.limits([[part.run for part in parts if part.stream == stream] for stream in self._streams])
        ahead = [part for part in parts if part.run.oldest > limits[part.stream]]
        accepted = [part for part in parts if part.run.oldest <= limits[part.stream]]
        watermark = self.clock.advance(self._newest(accepted), ended=end)
        self.now = Moment(watermark, end, np.frombuffer(b"".join(part.instants for part in accepted), "<i8"))
        for bucket in range(self.n_buckets):
            operator = self.opened(bucket)
            outcome = operator.step(_packets(accepted, bucket), watermark, ended=end)
            self.states[bucket] = operator.save()
            rows_ahead = quarantine_ahead(self.job, _packets(ahead, bucket), self._newest(ahead))
            self.counts += outcome.counts
            self.counts += Counts(quarantined=rows_ahead.num_rows)
            self.rejected += [*outcome.rejected.to_pylist(), *rows_ahead.to_pylist()]
            self.outcomes.append(outcome)

    @property
    def _streams(self) -> range:
        return range(len(self.job.layouts))

    def _routed(self, stream: int, rows: Rows) -> list[Part]:
        """The packets of one stream, by run."""
        name = self.job.layouts[stream].name.lower()
        table = to_table(self.job, stream, next((part for other, part in rows.items() if other.lower() == name), ()))
        parts = []
        for routed in route_runs(table, stream, self.job, self.n_buckets, instants=True):
            self.counts += Counts(
                read=routed.read, used=routed.ignored, quarantined=routed.rejected.num_rows, excluded=routed.excluded
            )
            self.rejected += routed.rejected.to_pylist()
            parts.append(Part(stream, routed.run, routed.packets, routed.instants or b""))
        return parts

    def _newest(self, parts: Sequence[Part]) -> list[int]:
        """The newest time of each stream."""
        of_streams = [[part.run.newest for part in parts if part.stream == stream] for stream in self._streams]
        return [max(times, default=BEGINNING) for times in of_streams]

    def opened(self, bucket: int) -> Any:
        """An operator with the state of a bucket."""
        operator = self.job.operator()
        operator.open(self.states[bucket])
        if isinstance(operator, Paged):
            operator.use_pages(self.pages[bucket])
        return operator

    def run(self, batches: Iterable[Rows]) -> None:
        """Process all micro-batches and the end of the input, and check that the counts add up."""
        for batch in batches:
            self.step(batch)
        self.step({}, end=True)
        counts = self.counts
        assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined + counts.excluded

    def rows_of(self, query: int) -> list[dict[str, Any]]:
        """The answers of one of several queries."""
        rows = [row for outcome in self.outcomes for row in outcome.answers.to_pylist()]
        return [row for row in rows if row["query"] == query]

    def events_of(self, row: Mapping[str, Any]) -> list[list[Any]]:
        """The events of an answer of `rows_of`, by stream."""
        return [list(row[f"events_{stream}"]) for stream in range(len(self.job.layouts))]
