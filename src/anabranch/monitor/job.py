"""MONITOR: predictions go where they can meet; a bucket compares each new one with those it holds.

Answers about what was compared are *tentative* until nothing can change them any more: a later prediction of a key ends
the one before, and with it what was said of its future. What is then left is *validated*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch.binding.typed import Typed, conjunction, conjuncts, disjunction, references
from anabranch.columns.conditions import holds
from anabranch.columns.dictionary import flat
from anabranch.columns.times import encode_times
from anabranch.monitor.analysis import MonitorAnalysis, analyse
from anabranch.monitor.answers import schema_of
from anabranch.monitor.operator import MonitorOperator
from anabranch.monitor.placement import homes_of, packets, parts_of
from anabranch.monitor.query import BoundMonitor
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.routing import Packets, distinct_keys


@dataclass(frozen=True)
class MonitorJob(QueryJob):
    """A MONITOR query as the workers need it."""

    analysis: MonitorAnalysis

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """The number of the stream of each operand."""
        names = [stream.name.lower() for stream in self.analysis.query.streams]
        return tuple(names.index(operand.stream.name.lower()) for operand in self.analysis.operands)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The place of each value of the query among those of its stream."""
        return tuple(
            [name.lower() for name in self.layouts[self.streams[operand]].values].index(column)
            for operand, column in self.analysis.values
        )

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of an outcome's answers."""
        return schema_of(self.analysis, self.layouts, self.streams)

    @property
    def is_buffered(self) -> bool:
        """Whether a buffer of fixed size decides what new predictions are compared with: not over an archive."""
        return self.live and self.analysis.query.buffer is not None and len(self.analysis.operands) > 1

    # ------------------------------------------------------------ placement

    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to be any operand; None where every key may."""
        keys = {name.lower() for name in self.layouts[stream].keys}
        choices = []
        for operand, own in enumerate(self.streams):
            if own == stream:
                asked = conjuncts(self.analysis.own_conditions(operand))
                choices.append(
                    conjunction(tuple(part for part in asked if {name for _, name in references(part)} <= keys))
                )
        return disjunction(choices)

    def buckets(self, n_buckets: int) -> list[tuple[int, ...]]:
        """The buckets that are used: for each, the parts of all keys that it takes."""
        if self.is_buffered:  # what a buffer holds is decided in one place
            return [(0,)]
        return parts_of(n_buckets, 1 if self.analysis.equated else len(self.analysis.operands))

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """The packets of good rows, and how many rows can take no part in any answer, and are not sent."""
        if not rows.num_rows:
            return [], 0
        layout = self.layouts[stream]
        codes, keys = distinct_keys(rows, layout)
        names = [name.lower() for name in layout.keys]
        columns = dict(zip(names, map(flat, keys.columns), strict=False))
        buckets = self.buckets(n_buckets)
        equated = self.analysis.equated
        spread = list(columns.values()) if equated is None else [columns[equated[self.streams.index(stream)]]]
        homes = homes_of(spread, keys.num_rows, 1 + max(max(parts) for parts in buckets))
        homes[~holds(self.needed(stream), columns, self.relations, keys.num_rows)] = -1
        numbers: dict[str, npt.NDArray[np.generic]] = {"t": encode_times(rows[layout.time], layout.time_kind)}
        for name in (*layout.values, *layout.rates, *layout.error_columns):
            numbers[f"#{name}"] = rows[name].cast(pa.float64()).to_numpy()
        return packets(numbers, codes, keys, homes, buckets), int((homes[codes] < 0).sum())

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return MonitorOperator(self)

    def finish(self, answers: DataFrame) -> DataFrame:
        """The result columns: over an archive nothing is tentative."""
        return answers if self.live else answers.drop("status")

    def finish_table(self, answers: pa.Table) -> pa.Table:
        """The answers of a stream as they are."""
        return answers


def make_job(queries: Sequence[BoundMonitor], context: JobContext) -> MonitorJob:
    """A query made ready for the workers.

    MAX DELAY is how late a prediction may come, where the stream itself allows less.
    """
    (query,) = queries
    delay = query.max_delay or 0.0
    patient = tuple(replace(layout, lateness=max(layout.lateness, delay)) for layout in context.layouts)
    return MonitorJob(replace(context, layouts=patient), analyse(query))
