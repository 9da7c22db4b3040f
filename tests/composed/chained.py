"""Chains of live queries without a JVM: the same operators, relays, clocks and bytes as on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from tests.local import FINGERPRINT, LocalRun, Part, local_job, prepared_query

from anabranch.arrays import BEGINNING
from anabranch.language import nodes
from anabranch.runtime.inputs import Input
from anabranch.runtime.sources.answers import relay_rule
from anabranch.transport.finishing import finish_table
from anabranch.transport.jumps import Run
from anabranch.transport.relay import (
    Relayed,
    RelayedRows,
    plain_columns,
    read_held,
    read_rows,
    relay,
    write_held,
    write_rows,
)
from anabranch.transport.watermark import Clock

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class ChainedRun(LocalRun):
    """A query that reads streams of answers, by number; their promises move its watermark."""

    def __init__(self, job: Any, relayed: Sequence[int]) -> None:
        super().__init__(job, n_buckets=2)
        self._relayed = relayed
        self.clock = Clock(job.layouts, relayed=relayed)
        self.promises: dict[int, int] = {}

    def _routed(self, stream: int, rows: Rows) -> list[Part]:
        parts = super()._routed(stream, rows)
        if stream not in self._relayed:
            return parts
        promise = self.promises.pop(stream, BEGINNING)
        return [part._replace(run=Run(promise, promise, 1) if promise > BEGINNING else Run()) for part in parts]

    def reload_clock(self) -> None:
        """Save and load the clock, as between two micro-batches on Spark."""
        self.clock = Clock(self.job.layouts, self.clock.save(), relayed=self._relayed)


class Link:
    """A query of a chain with those that it reads, each for every stream that reads it."""

    def __init__(self, workbook: str, name: str) -> None:
        self.job = local_job(workbook, name, live=True)
        self.bound = prepared_query(workbook, name).bound
        by_name = {stream.name.lower(): stream for stream in self.bound.streams}
        streams = [by_name[layout.name.lower()] for layout in self.job.layouts]
        self.read = {
            number: Relayer(Link(workbook, stream.source.name), stream)
            for number, stream in enumerate(streams)
            if isinstance(stream.source, nodes.QuerySource)
        }
        self.run = ChainedRun(self.job, tuple(self.read))
        self.answers: list[dict[str, Any]] = []

    def step(self, rows: Rows, end: bool, waits: Sequence[bool]) -> pa.Table:
        """One micro-batch of each query. Where `waits` is true, by level, a query has none, and catches up later."""
        arrived: dict[str, list[Any]] = {name: list(part) for name, part in rows.items()}
        ended = set() if not end else {number for number in range(len(self.job.layouts)) if number not in self.read}
        for number, relayer in self.read.items():
            relayer.step(rows, end, waits[1:])
            if waits[0]:
                continue
            for part in relayer.take(self.job.layouts[number].time_kind):
                arrived.setdefault(self.job.layouts[number].name, []).extend(part.rows.to_pylist())
                self.run.promises[number] = max(self.run.promises.get(number, BEGINNING), part.promise)
                ended |= {number} if part.ended else set()
        before = len(self.run.outcomes)
        self.run.step(arrived, end=self.run.clock.have_ended(ended))
        self.run.reload_clock()
        table = pa.concat_tables(outcome.answers for outcome in self.run.outcomes[before:])
        finished = finish_table(self.job.finishing().of_answers(), table)
        self.answers += finished.to_pylist()
        return finished


class Relayer:
    """Passes the answers of a query on to a stream."""

    def __init__(self, link: Link, stream: Any) -> None:
        self.link = link
        empty = finish_table(link.job.finishing().of_answers(), link.job.answer_schema.empty_table())
        source = Input(stream, from_arrow_schema(plain_columns(empty).schema))
        self.rule = relay_rule(source, link.bound, link.job.frontier())
        self._held: bytes | None = None
        self._files: list[bytes] = []

    def step(self, rows: Rows, end: bool, waits: Sequence[bool]) -> None:
        """One micro-batch, which writes a file."""
        answers = self.link.step(rows, end, waits)
        before = None if self._held is None else read_held(self._held, FINGERPRINT)
        relayed: Relayed = relay(self.rule, before, answers, self.link.run.now)
        self._held = write_held(relayed, FINGERPRINT)
        kind = self.rule.frontier.time_kind
        self._files.append(write_rows(relayed, kind, self.link.run.now.ended, FINGERPRINT))

    def take(self, kind: Any) -> list[RelayedRows]:
        """The files that have not been read."""
        files, self._files = self._files, []
        return [read_rows(file, kind) for file in files]
