"""CONSTRAIN: rows go where they can meet, and a bucket keeps them until nothing that comes can need them.

One job serves many queries over the same streams: rows are read, asked and sent once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools
from anabranch.binding.typed import Typed
from anabranch.catalog import Stream
from anabranch.columns.times import TimeKind
from anabranch.constrain.analysis import ConstrainAnalysis, analyse, strategy_of
from anabranch.constrain.events import places
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.graph import Lowered, lower_queries
from anabranch.constrain.operator import ConstrainOperator
from anabranch.constrain.placement import Placement, placement_of, radius_of
from anabranch.constrain.query import BoundConstrain
from anabranch.events.batch import EventTable, pack_events
from anabranch.events.job import EventJob, ResultColumn
from anabranch.events.roles import roles_of
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Operator
from anabranch.transport.routing import Packets


@dataclass(frozen=True)
class ConstrainJob(EventJob):
    """CONSTRAIN queries over the same streams, as the workers need them."""

    analyses: tuple[ConstrainAnalysis, ...]

    @cached_property
    def lowered(self) -> Lowered:
        """The queries as numbers."""
        return lower_queries(self.analyses, self.time_kind)

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """How the roles of each query are spread."""
        scale = 1e6 if self.time_kind is TimeKind.TIMESTAMP else 1.0
        return tuple(placement_of(each, radius_of(each), scale) for each in self.analyses)

    @property
    def strategy(self) -> str:
        """How events are kept: as the queries say, or as the planner chooses."""
        return strategy_of(self.analyses)

    @property
    def answer_schema(self) -> pa.Schema:
        """One row a solution: its query, the latest time, that it is certain, and its events.

        Those of each stream are in a list.
        """
        facts = [("query", pa.int32()), ("t", self.time_kind.arrow_type), ("probability", pa.float64())]
        return pa.schema([*facts, *self.event_fields])

    # ------------------------------------------------------------ placement

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """A packet for each bucket: rows that can be some variable, and which."""
        layout = self.layouts[stream]
        events = EventTable.from_rows(rows, layout)
        demands, declared = self._demands(stream)
        if not len(events) or declared is None:
            return [], len(events)

        def ask(condition: Typed, columns: Mapping[str, pa.Array], n: int) -> Bools:
            return holds_of_events(condition, columns, {"": declared}, self.relations, n)

        first, variable = roles_of(events.columns, demands, ask)
        row = np.repeat(np.arange(len(events)), np.diff(first))
        role, bucket, home = self._copies(events, row, variable, n_buckets)
        own = _each_once(row[role], bucket, variable[role], home, len(events))
        role = role[own]
        roles = {"variable": variable[role].astype(np.int32), "home": home[own].astype(np.bool_)}
        return pack_events(events, row[role], bucket[own], roles, n_buckets)

    def _demands(self, stream: int) -> tuple[list[tuple[int, Typed | None]], Stream | None]:
        """What is asked of single events of a stream, for each variable of any query that is of it."""
        demands: list[tuple[int, Typed | None]] = []
        declared, number = None, 0
        name = self.layouts[stream].name.lower()
        for analysis in self.analyses:
            for variable, demand in zip(analysis.query.variables, analysis.unary, strict=True):
                if variable.stream.name.lower() == name:
                    demands.append((number, demand))
                    declared = variable.stream
                number += 1
        return demands, declared

    def _copies(self, events: EventTable, row: I64, variable: I64, n_buckets: int) -> tuple[I64, I64, I64]:
        """Where each role goes: (role, bucket, whether it is at home there)."""
        order = np.argsort(variable, kind="stable")
        present, starts = np.unique(variable[order], return_index=True)
        parts, at = [(np.zeros(0, np.int64),) * 3], places(events)
        for number, own in zip(present, np.split(order, starts[1:]), strict=False):
            query = int(self.lowered.graph.variables["query"][number])
            placement = self.placements[query]
            names = placement.equal[number - int(self.lowered.graph.first[query])]
            values = [events.columns[name].take(pa.array(row[own])) for name in names]
            role, bucket, home = placement.copies(values, at[row[own]], events.t[row[own]], n_buckets)
            parts.append((own[role], bucket, home))
        role, bucket, home = (np.concatenate(each) for each in zip(*parts, strict=True))
        return role, bucket, home

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return ConstrainOperator(self)

    # ------------------------------------------------------------ answers

    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The columns of the answers of one query."""
        bound = self.analyses[query].query
        place = [0] * len(self.layouts)
        columns = [ResultColumn("t", "t")]
        for variable in bound.variables:
            stream = self.stream_number(variable.stream.name)
            count = None if variable.count == 1 else variable.count
            columns.append(ResultColumn(variable.label, f"events_{stream}", place[stream], count))
            place[stream] += variable.count
        return [*columns, ResultColumn("probability", "probability")]


def make_job(queries: Sequence[BoundConstrain], context: JobContext) -> ConstrainJob:
    """Queries over the same streams made ready for the workers."""
    analyses = tuple(map(analyse, queries))
    return ConstrainJob(context, len(analyses), analyses)


def _each_once(row: I64, bucket: I64, variable: I64, home: I64, n_rows: int) -> I64:
    """Copies sorted by bucket, row and variable, each once; at home wins."""
    key = (bucket * n_rows + row) * (int(variable.max(initial=0)) + 1) + variable
    order = np.lexsort((1 - home, key))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = key[order][1:] != key[order][:-1]
    return order[fresh]
