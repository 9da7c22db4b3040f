"""PATTERN without a JVM: cases through the same routing, operators and state bytes that Spark runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from anabranch.catalog import Catalog
from anabranch.language.binder import bind, declare
from anabranch.language.bound import BoundPattern
from anabranch.language.parser import parse
from anabranch.pattern.job import make_job
from anabranch.pattern.operator import PatternJob
from anabranch.rows.clock import Clock
from anabranch.rows.conditions import ARROW_TYPES
from anabranch.rows.operator import Counts, Outcome
from anabranch.rows.routing import route
from anabranch.runtime.sources.schema import layouts_for

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
FINGERPRINT = "0123456789abcdef" * 2


def bound_query(workbook: str, name: str) -> BoundPattern:
    """The bound query of a workbook; its streams must state their types."""
    catalog = Catalog()
    findings = declare(parse(workbook), catalog)
    assert not findings, findings
    return bind(catalog.query(name), catalog)


def local_job(
    workbook: str, name: str, relations: Mapping[str, Iterable[tuple]] = MappingProxyType({}), live: bool = False
) -> PatternJob:
    """A job as the session makes it."""
    query = bound_query(workbook, name)
    catalog = Catalog()
    declare(parse(workbook), catalog)
    tables = {}
    for relation, rows in relations.items():
        columns = catalog.relation(relation).columns
        arrays = [
            pa.array([row[place] for row in rows], ARROW_TYPES[column.type]) for place, column in enumerate(columns)
        ]
        tables[relation.lower()] = pa.table(arrays, names=[column.name for column in columns])
    return make_job(query, layouts_for(query.streams), tables, FINGERPRINT, live)


def to_table(job: PatternJob, stream: int, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of one stream as its source would have them."""
    layout = job.layouts[stream]
    types = dict(zip(layout.keys, layout.key_types, strict=True))
    types |= zip(layout.values, layout.value_types, strict=True)
    types |= zip(layout.previous, layout.value_types, strict=False)
    types[layout.time] = layout.time_kind.arrow_type
    if layout.probability:
        types[layout.probability] = pa.float64()
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})


class LocalRun:
    """The buckets of one query in one process; every step goes through saved bytes, as in streaming."""

    def __init__(self, job: PatternJob, n_buckets: int = 3) -> None:
        self.job = job
        self.n_buckets = n_buckets
        self.states: list[bytes | None] = [None] * n_buckets
        self.clock = Clock(job.layouts)
        self.outcomes: list[Outcome] = []
        self.counts = Counts()

    def step(self, rows: Rows, end: bool = False) -> None:
        """One micro-batch, given as rows by stream name."""
        newest = []
        packets: list[list[tuple[int, bytes]]] = [[] for _ in range(self.n_buckets)]
        for stream, layout in enumerate(self.job.layouts):
            given = next((part for name, part in rows.items() if name.lower() == layout.name.lower()), ())
            routed = route(to_table(self.job, stream, given), stream, self.job, self.n_buckets)
            newest.append(routed.newest)
            self.counts += Counts(read=routed.read, used=routed.ignored, quarantined=routed.rejected.num_rows)
            for bucket, blob in routed.packets:
                packets[bucket].append((stream, blob))
        watermark = self.clock.advance(newest, ended=end)
        for bucket in range(self.n_buckets):
            operator = self.job.operator()
            operator.open(self.states[bucket])
            outcome = operator.step(packets[bucket], watermark, ended=end)
            self.states[bucket] = operator.save()
            self.counts += outcome.counts
            self.outcomes.append(outcome)

    @property
    def complete(self) -> bool:
        """Whether the operators' answers are the query's own."""
        return "probability" in self.job.answer_schema.names

    def answers(self) -> dict[tuple, float]:
        """Probability by (t, grouping values...), as `PatternJob.finish` combines it."""
        combined: dict[tuple, float] = {}
        for outcome in self.outcomes:
            for row in outcome.answers.to_pylist():
                place = len(self.job.analysis.group_by) + 1
                key, number = list(row.values())[:place], list(row.values())[place]
                if self.complete:
                    assert tuple(key) not in combined, "an answer was given twice"
                    combined[tuple(key)] = number
                else:
                    combined[tuple(key)] = combined.get(tuple(key), 0.0) + number
        if not self.complete:
            combined = {key: -math.expm1(number) for key, number in combined.items()}
        threshold = self.job.analysis.query.threshold
        return {key: p for key, p in combined.items() if p > 0 and p >= threshold}


def run_whole(job: PatternJob, rows: Rows, n_buckets: int = 3) -> dict[tuple, float]:
    """The answers of a batch run."""
    run = LocalRun(job, n_buckets)
    run.step(rows, end=True)
    return run.answers()
