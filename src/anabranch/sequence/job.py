"""SEQUENCE: rows go where their keys are equal, and a bucket keeps them as long as a window.

One job serves many queries over the same streams: rows are read, asked and sent once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.binding.typed import Typed
from anabranch.columns.conditions import holds
from anabranch.columns.times import TimeKind
from anabranch.events.batch import EventTable, pack_events
from anabranch.events.job import EventJob, ResultColumn
from anabranch.events.roles import roles_of
from anabranch.sequence.analysis import SequenceAnalysis, analyse
from anabranch.sequence.files import with_files
from anabranch.sequence.groups import as_compared
from anabranch.sequence.lowering import Search, lower, window_of
from anabranch.sequence.operator import SequenceOperator
from anabranch.sequence.query import BoundSequence
from anabranch.splitmix import mix_all
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Operator
from anabranch.transport.packing import hash_tuples
from anabranch.transport.routing import Packets


@dataclass(frozen=True)
class SequenceJob(EventJob):
    """SEQUENCE queries over the same streams, as the workers need them."""

    analyses: tuple[SequenceAnalysis, ...]
    searches: tuple[tuple[Search, ...], ...]

    @cached_property
    def first_role(self) -> tuple[int, ...]:
        """The number of the first role of each query; a role is a component of a disjunct."""
        sizes = [len(each.disjuncts) * len(each.query.components) for each in self.analyses]
        return tuple(int(place) for place in np.cumsum([0, *sizes]))

    def window(self, query: int) -> float:
        """WITHIN in the unit of times."""
        return window_of(self.analyses[query].query.within, scale_of(self.time_kind))

    @property
    def answer_schema(self) -> pa.Schema:
        """One row a match: its query, and its events, those of each stream in a list, NULL where one is missing."""
        time = self.time_kind.arrow_type
        facts = [("t", time), ("t_start", time), ("probability", pa.float64()), ("status", pa.string())]
        return pa.schema([("query", pa.int32()), *facts, *self.event_fields])

    # ------------------------------------------------------------ placement

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """A packet for each bucket: rows that can be some component, and which."""
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
        """What is asked of single events of a stream, for each role that is of it."""
        name = self.layouts[stream].name.lower()
        return [
            (first + place * len(analysis.query.components) + number, own)
            for first, analysis in zip(self.first_role, self.analyses, strict=False)
            for place, disjunct in enumerate(analysis.disjuncts)
            for number, (component, own) in enumerate(zip(analysis.query.components, disjunct.own, strict=True))
            if component.stream.name.lower() == name
        ]

    def _copies(self, events: EventTable, row: I64, variable: I64, n_buckets: int) -> tuple[I64, I64]:
        """Where each role goes: (role, bucket), the rows of each bucket in order."""
        bucket = np.zeros(len(row), np.int64)
        everywhere = np.zeros(len(row), np.bool_)
        placed: dict[tuple[int, tuple[str, ...]], I64] = {}
        for number in np.unique(variable) if n_buckets > 1 else ():
            query = int(np.searchsorted(self.first_role, number, side="right")) - 1
            analysis = self.analyses[query]
            place = (number - self.first_role[query]) % len(analysis.query.components)
            columns = analysis.key_columns(analysis.query.components[place].name)
            own = variable == number
            if columns is None:
                everywhere |= own
                continue
            if (query, columns) not in placed:
                placed[query, columns] = self._buckets(events, query, columns, n_buckets)
            bucket[own] = placed[query, columns][row[own]]
        kept, copied = np.flatnonzero(~everywhere), np.flatnonzero(everywhere)
        role = np.concatenate([kept, np.tile(copied, n_buckets)])
        bucket = np.concatenate([bucket[kept], np.repeat(np.arange(n_buckets), len(copied))])
        order = np.argsort(role, kind="stable")
        return role[order], bucket[order]

    def _buckets(self, events: EventTable, query: int, columns: tuple[str, ...], n_buckets: int) -> I64:
        """The bucket of each row, by the columns that are equal in all events of a match."""
        analysis = self.analyses[query]
        values = [
            as_compared(events.columns[name], analysis.is_compared_as_double(place))
            for name, place in zip(columns, analysis.key, strict=True)
        ]
        # Queries without a key have one bucket each, and not all the same.
        codes = hash_tuples(values, len(events)) ^ np.uint64(0 if columns else query)
        return (mix_all(codes) % np.uint64(n_buckets)).astype(np.int64)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return SequenceOperator(self)

    # ------------------------------------------------------------ answers

    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The columns of the answers of one query."""
        bound = self.analyses[query].query
        place = [0] * len(self.layouts)
        columns = [ResultColumn(name, name) for name in ("t", "t_start", "probability")]
        for component in bound.components:
            if not component.negative:
                stream = self.stream_number(component.stream.name)
                columns.append(ResultColumn(component.label, f"events_{stream}", place[stream]))
                place[stream] += 1
        if "expired" in bound.emit:
            columns.append(ResultColumn("status", "status"))
        return columns


def scale_of(kind: TimeKind) -> float:
    """How many units of a time make one of a delay."""
    return 1e6 if kind is TimeKind.TIMESTAMP else 1.0


def make_job(queries: Sequence[BoundSequence], context: JobContext) -> SequenceJob:
    """Queries over the same streams made ready for the workers: files of laws are read, tables of scores made."""
    with_laws = map(with_files, queries, context.folders)
    analyses = tuple(map(analyse, with_laws))
    scale = scale_of(context.layouts[0].time_kind)
    searches = tuple(lower(analysis, context.relations, scale) for analysis in analyses)
    return SequenceJob(context, len(analyses), analyses, searches)
