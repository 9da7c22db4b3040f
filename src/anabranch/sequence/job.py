"""The jobs of SEQUENCE: rows are routed by the columns that are equal in all events of a match.

One job serves many queries over the same streams: rows are read, tested and sent once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.binding.typed import Typed
from anabranch.columns.conditions import holds
from anabranch.columns.hashing import hash_tuples
from anabranch.events.job import EventJob
from anabranch.events.packets import pack_events
from anabranch.events.roles import roles_of
from anabranch.events.table import EventTable
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.files import with_files
from anabranch.sequence.groups import as_compared
from anabranch.sequence.lowering import lower
from anabranch.sequence.operator import SequenceOperator
from anabranch.sequence.spec import SequenceSpec, scale_of
from anabranch.splitmix import mix_all
from anabranch.transport.finishing import ResultColumn
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Operator
from anabranch.transport.routing import Packets


@dataclass(frozen=True)
class SequenceJob(EventJob[SequenceSpec]):
    """SEQUENCE queries over the same streams."""

    @property
    def n_queries(self) -> int:
        """How many queries the job serves."""
        return len(self.spec.analyses)

    # ------------------------------------------------------------ routing

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """One packet per bucket: the rows that can be a component, and which components."""
        events = EventTable.from_rows(rows, self.layouts[stream])
        demands = self._demands(stream)
        if not len(events) or not demands:
            return [], len(events)
        first, variable = roles_of(
            events.columns, demands, lambda part, columns, n: holds(part, columns, self.relations, n)
        )
        row = np.repeat(np.arange(len(events)), np.diff(first))
        role, bucket = self._copies(events, row, variable, n_buckets)
        return pack_events(events, row[role], bucket, {"variable": variable[role].astype(np.int32)}, n_buckets)

    def _demands(self, stream: int) -> list[tuple[int, Typed | None]]:
        """For each role of a stream, the condition on its event alone."""
        name = self.layouts[stream].name.lower()
        return [
            (first + index * len(analysis.query.components) + number, own)
            for first, analysis in zip(self.spec.first_role, self.spec.analyses, strict=False)
            for index, disjunct in enumerate(analysis.disjuncts)
            for number, (component, own) in enumerate(zip(analysis.query.components, disjunct.own, strict=True))
            if component.stream.name.lower() == name
        ]

    def _copies(self, events: EventTable, row: I64, variable: I64, n_buckets: int) -> tuple[I64, I64]:
        """(role, bucket) of every copy that is sent, sorted by role."""
        bucket = np.zeros(len(row), np.int64)
        everywhere = np.zeros(len(row), np.bool_)
        buckets_by: dict[tuple[int, tuple[str, ...]], I64] = {}
        for number in np.unique(variable) if n_buckets > 1 else ():
            query = int(np.searchsorted(self.spec.first_role, number, side="right")) - 1
            analysis = self.spec.analyses[query]
            component = (number - self.spec.first_role[query]) % len(analysis.query.components)
            columns = analysis.key_columns(analysis.query.components[component].name)
            is_role = variable == number
            if columns is None:
                everywhere |= is_role
                continue
            if (query, columns) not in buckets_by:
                buckets_by[query, columns] = self._buckets(events, query, columns, n_buckets)
            bucket[is_role] = buckets_by[query, columns][row[is_role]]
        kept, copied = np.flatnonzero(~everywhere), np.flatnonzero(everywhere)
        role = np.concatenate([kept, np.tile(copied, n_buckets)])
        bucket = np.concatenate([bucket[kept], np.repeat(np.arange(n_buckets), len(copied))])
        order = np.argsort(role, kind="stable")
        return role[order], bucket[order]

    def _buckets(self, events: EventTable, query: int, columns: tuple[str, ...], n_buckets: int) -> I64:
        """The bucket of each row, by a hash of the columns that are equal in all events of a match."""
        analysis = self.spec.analyses[query]
        values = [
            as_compared(events.columns[name], analysis.is_compared_as_double(equal))
            for name, equal in zip(columns, analysis.key, strict=True)
        ]
        # A query without a key has one bucket; different queries get different ones.
        codes = hash_tuples(values, len(events)) ^ np.uint64(0 if columns else query)
        return (mix_all(codes) % np.uint64(n_buckets)).astype(np.int64)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return SequenceOperator(self.spec)

    # ------------------------------------------------------------ answers

    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The result columns of one query."""
        bound = self.spec.analyses[query].query
        index = [0] * len(self.layouts)
        columns = [ResultColumn(name, name) for name in ("t", "t_start", "probability")]
        for component in bound.components:
            if not component.negative:
                stream = self.spec.stream_number(component.stream.name)
                columns.append(ResultColumn(component.label, f"events_{stream}", index[stream]))
                index[stream] += 1
        if "expired" in bound.emit:
            columns.append(ResultColumn("status", "status"))
        return columns


def make_job(analyses: Sequence[SequenceAnalysis], context: JobContext) -> SequenceJob:
    """The job of queries over the same streams: reads the files of delays and losses, and makes the score tables."""
    with_laws = tuple(
        replace(analysis, query=with_files(analysis.query, folder))
        for analysis, folder in zip(analyses, context.folders, strict=True)
    )
    scale = scale_of(context.layouts[0].time_kind)
    searches = tuple(lower(analysis, context.relations, scale) for analysis in with_laws)
    return SequenceJob(SequenceSpec(context, with_laws, searches))
