"""The jobs of CONSTRAIN: rows are routed to the buckets where they can meet.

One job serves many queries over the same streams: rows are read, tested and sent once for all of them.
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
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.events import places
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.operator import ConstrainOperator
from anabranch.constrain.placement import Placement, placement_of, radius_of
from anabranch.constrain.spec import ConstrainSpec
from anabranch.events.job import EventJob
from anabranch.events.packets import pack_events
from anabranch.events.roles import roles_of
from anabranch.events.table import EventTable
from anabranch.transport.finishing import ResultColumn
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Operator
from anabranch.transport.routing import Packets


@dataclass(frozen=True)
class ConstrainJob(EventJob[ConstrainSpec]):
    """CONSTRAIN queries over the same streams."""

    @property
    def n_queries(self) -> int:
        """How many queries the job serves."""
        return len(self.spec.analyses)

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """How the roles of each query are routed."""
        scale = 1e6 if self.spec.time_kind is TimeKind.TIMESTAMP else 1.0
        return tuple(placement_of(analysis, radius_of(analysis), scale) for analysis in self.spec.analyses)

    # ------------------------------------------------------------ routing

    def pack(self, stream: int, rows: pa.Table, n_buckets: int) -> tuple[Packets, int]:
        """One packet per bucket: the rows that can be a variable, and which variables."""
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
        """For each variable of a stream, in all queries, the condition on its event alone; and the stream."""
        demands: list[tuple[int, Typed | None]] = []
        declared, number = None, 0
        name = self.layouts[stream].name.lower()
        for analysis in self.spec.analyses:
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
            query = int(self.spec.lowered.graph.variables["query"][number])
            placement = self.placements[query]
            names = placement.equal[number - int(self.spec.lowered.graph.first[query])]
            values = [events.columns[name].take(pa.array(row[own])) for name in names]
            role, bucket, home = placement.copies(values, at[row[own]], events.t[row[own]], n_buckets)
            parts.append((own[role], bucket, home))
        role, bucket, home = (np.concatenate(each) for each in zip(*parts, strict=True))
        return role, bucket, home

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return ConstrainOperator(self.spec)

    # ------------------------------------------------------------ answers

    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The result columns of one query."""
        index = [0] * len(self.layouts)
        columns = [ResultColumn("t", "t")]
        for variable in self.spec.analyses[query].query.variables:
            stream = self.spec.stream_number(variable.stream.name)
            count = None if variable.count == 1 else variable.count
            columns.append(ResultColumn(variable.label, f"events_{stream}", index[stream], count))
            index[stream] += variable.count
        return [*columns, ResultColumn("probability", "probability")]


def make_job(analyses: Sequence[ConstrainAnalysis], context: JobContext) -> ConstrainJob:
    """The job of queries over the same streams."""
    return ConstrainJob(ConstrainSpec(context, tuple(analyses)))


def _each_once(row: I64, bucket: I64, variable: I64, home: I64, n_rows: int) -> I64:
    """Copies sorted by bucket, row and variable, each once; at home wins."""
    key = (bucket * n_rows + row) * (int(variable.max(initial=0)) + 1) + variable
    order = np.lexsort((1 - home, key))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = key[order][1:] != key[order][:-1]
    return order[fresh]
