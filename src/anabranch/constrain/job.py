"""The jobs of CONSTRAIN: rows are routed to all buckets in which they can be part of a solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools, Numbers
from anabranch.binding.typed import Typed
from anabranch.catalog import Stream
from anabranch.columns.times import TimeKind
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.events import locations_of
from anabranch.constrain.functions import holds_of_events
from anabranch.constrain.operator import ConstrainOperator, EarlyOperator
from anabranch.constrain.placement import Placement, placement_of, radius_of
from anabranch.constrain.solutions import in_lists
from anabranch.constrain.spec import ConstrainSpec
from anabranch.events.job import UNBOUNDED, EventJob
from anabranch.events.table import EventTable
from anabranch.thresholds import least_reaching
from anabranch.transport.finishing import REST, ResultColumn
from anabranch.transport.frontier import Frontier
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Operator
from anabranch.transport.per import PerRule

#: The share by which a delay is widened, because bounds are rounded.
_MARGIN = 1e-9


@dataclass(frozen=True)
class ConstrainJob(EventJob[ConstrainSpec]):
    """CONSTRAIN queries over the same streams."""

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """How the roles of each query are routed."""
        scale = 1e6 if self.spec.time_kind is TimeKind.TIMESTAMP else 1.0
        return tuple(placement_of(analysis, radius_of(analysis), scale) for analysis in self.spec.analyses)

    # ------------------------------------------------------------ routing

    def conditions(self, stream: int) -> list[tuple[int, Typed | None]]:
        """For each variable of a stream, in all queries, the condition on its event alone."""
        name = self.layouts[stream].name.lower()
        variables = [
            (variable, condition)
            for analysis in self.spec.analyses
            for variable, condition in zip(analysis.query.variables, analysis.unary, strict=True)
        ]
        return [
            (number, condition)
            for number, (variable, condition) in enumerate(variables)
            if variable.stream.name.lower() == name
        ]

    @cached_property
    def _streams(self) -> dict[str, Stream]:
        """The streams of the queries, by lower-case name."""
        return {stream.name.lower(): stream for analysis in self.spec.analyses for stream in analysis.query.streams}

    def holds(self, stream: int, condition: Typed, columns: Mapping[str, pa.Array], n: int) -> Bools:
        """The rows of a stream, of which there are `n`, where a condition is TRUE."""
        declared = self._streams[self.layouts[stream].name.lower()]
        return holds_of_events(condition, columns, {"": declared}, self.relations, n)

    def copies(
        self, events: EventTable, row: I64, variable: I64, n_buckets: int
    ) -> tuple[I64, I64, Mapping[str, Numbers]]:
        """Route roles to all buckets in which they can be part of a solution; one of the copies is primary."""
        order = np.argsort(variable, kind="stable")
        if events.layout.distribution is not None:
            order = order[self._is_possible(events.probability[row], variable)[order]]
        present, starts = np.unique(variable[order], return_index=True)
        parts, locations = [(np.zeros(0, np.int64),) * 3], locations_of(events)
        for number, roles in zip(present, np.split(order, starts[1:]), strict=False):
            query = int(self.spec.lowered.graph.variables["query"][number])
            placement = self.placements[query]
            names = placement.equal[number - int(self.spec.lowered.graph.first[query])]
            values = [events.columns[name].take(pa.array(row[roles])) for name in names]
            is_awaited = bool(self.spec.lowered.graph.awaited[number])
            role, bucket, is_primary = placement.copies(
                values, locations[row[roles]], events.t[row[roles]], n_buckets, is_awaited
            )
            parts.append((roles[role], bucket, is_primary))
        role, bucket, is_primary = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        kept = _without_duplicates(row[role], bucket, variable[role], is_primary, len(events))
        return role[kept], bucket[kept], {"is_primary": is_primary[kept].astype(np.bool_)}

    def _is_possible(self, p: F64, variable: I64) -> Bools:
        """Which roles, with these probabilities, can be in an answer, or prevent one.

        The probability of an answer is at most that of each of its events.
        """
        least = [
            0.0 if operand.is_awaited else least_reaching(analysis.query.threshold)
            for analysis in self.spec.analyses
            for operand in analysis.query.variables
        ]
        return (p > 0) & (p >= np.array(least)[variable])

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return EarlyOperator(self.spec) if self.spec.has_early else ConstrainOperator(self.spec)

    # ------------------------------------------------------------ answers

    def result_columns(self, query: int) -> Sequence[ResultColumn]:
        """The result columns of one query."""
        index = [0] * len(self.layouts)
        of_events: dict[str, ResultColumn] = {}
        present = self.spec.analyses[query].query.present
        for variable in in_lists(present):
            stream = self.spec.stream_number(variable.stream.name)
            count = REST if variable.grows else variable.count if variable.is_set else None
            of_events[variable.name] = ResultColumn(variable.label, f"events_{stream}", index[stream], count)
            index[stream] += variable.count
        events = (of_events[variable.name] for variable in present)
        bound = self.spec.analyses[query].query
        interval: Sequence[ResultColumn] = () if bound.bounded is None else UNBOUNDED
        if bound.is_expected:
            interval = [ResultColumn(name, name) for name in ("lower", "upper", "method")]
        return [ResultColumn("t", "t"), *events, ResultColumn("probability", "probability"), *interval]

    def per_rule(self, query: int) -> PerRule | None:
        """How the answers of one query become rows of several; None without PER."""
        bound = self.spec.analyses[query].query
        return self.rule_of(query, bound.per, [(variable, variable.is_set) for variable in bound.present])

    def frontier(self, query: int = 0) -> Frontier:
        """An answer waits for the events that could still change it."""
        delay = self.spec.analyses[query].delay
        return replace(super().frontier(query), delay=delay * (1 + _MARGIN))


def make_job(analyses: Sequence[ConstrainAnalysis], context: JobContext) -> ConstrainJob:
    """The job of queries over the same streams."""
    return ConstrainJob(ConstrainSpec(context, tuple(analyses)))


def _without_duplicates(row: I64, bucket: I64, variable: I64, is_primary: I64, n_rows: int) -> I64:
    """The indices of the distinct copies, sorted by bucket, row and variable; a primary copy is preferred."""
    key = (bucket * n_rows + row) * (int(variable.max(initial=0)) + 1) + variable
    order = np.lexsort((1 - is_primary, key))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = key[order][1:] != key[order][:-1]
    return order[is_first]
