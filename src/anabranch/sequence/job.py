"""The jobs of SEQUENCE: rows are routed by the columns that are equal in all events of a match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, Bools, Numbers
from anabranch.binding.typed import Operation, Reference, Typed, conjunction, conjuncts
from anabranch.catalog import Model
from anabranch.columns.conditions import holds
from anabranch.columns.hashing import hash_tuples
from anabranch.events.job import UNBOUNDED, EventJob
from anabranch.events.table import EventTable
from anabranch.language.types import Type
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.files import with_files
from anabranch.sequence.groups import as_compared
from anabranch.sequence.lowering import lower
from anabranch.sequence.operator import EarlyOperator, SequenceOperator
from anabranch.sequence.query import BoundComponent
from anabranch.sequence.spec import COUNTS, SequenceSpec
from anabranch.splitmix import mix_all
from anabranch.transport.finishing import ResultColumn, StructColumn
from anabranch.transport.job import JobContext
from anabranch.transport.operator import Operator
from anabranch.transport.per import PerRule

#: The field of a run with its first event, whose keys are those of the run.
FIRST = "first"


@dataclass(frozen=True)
class SequenceJob(EventJob[SequenceSpec]):
    """SEQUENCE queries over the same streams."""

    # ------------------------------------------------------------ routing

    def conditions(self, stream: int) -> list[tuple[int, Typed | None]]:
        """For each component of a stream, in all disjuncts and queries, the condition on its event alone."""
        name = self.layouts[stream].name.lower()
        return [
            (first + index * len(analysis.query.components) + number, _of_events(component, condition))
            for first, analysis in zip(self.spec.first_role, self.spec.analyses, strict=False)
            for index, disjunct in enumerate(analysis.disjuncts)
            for number, (component, condition) in enumerate(zip(analysis.query.components, disjunct.own, strict=True))
            if component.stream.name.lower() == name
        ]

    def holds(self, stream: int, condition: Typed, columns: Mapping[str, pa.Array], n: int) -> Bools:
        """The rows of a stream, of which there are `n`, where a condition is TRUE."""
        return holds(condition, columns, self.relations, n)

    def copies(
        self, events: EventTable, row: I64, variable: I64, n_buckets: int
    ) -> tuple[I64, I64, Mapping[str, Numbers]]:
        """Route roles to the bucket of their key, or to all buckets if their component has no key; sorted by role."""
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
        return role[order], bucket[order], {}

    def together(self, stream: int) -> tuple[str, ...]:
        """The columns that are equal in all events of a match, of any query; of one stream."""
        of_queries = [set(_shared_columns(analysis)) for analysis in self.spec.analyses]
        return tuple(sorted(set.intersection(*of_queries))) if len(self.layouts) == 1 else ()

    def _buckets(self, events: EventTable, query: int, columns: tuple[str, ...], n_buckets: int) -> I64:
        """The bucket of each row: a hash of the columns that are equal in all events of a match."""
        analysis = self.spec.analyses[query]
        values = [
            as_compared(events.columns[name], analysis.is_compared_as_double(equal_columns))
            for name, equal_columns in zip(columns, analysis.key, strict=True)
        ]
        # A query without a key has one bucket, which depends on the query, but not on the others of its group.
        codes = hash_tuples(values, len(events)) ^ np.uint64(0 if columns else int(self.spec.query_id(query), 16))
        return (mix_all(codes) % np.uint64(n_buckets)).astype(np.int64)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return EarlyOperator(self.spec) if self.spec.early else SequenceOperator(self.spec)

    # ------------------------------------------------------------ answers

    def result_columns(self, query: int) -> Sequence[ResultColumn | StructColumn]:
        """The result columns of one query."""
        bound = self.spec.analyses[query].query
        index = [0] * len(self.layouts)
        columns: list[ResultColumn | StructColumn] = [
            ResultColumn(name, name) for name in ("t", "t_start", "probability")
        ]
        columns += [] if bound.bounded is None else UNBOUNDED
        runs = 0
        for component in bound.components:
            if component.negative:
                continue
            stream = self.spec.stream_number(component.stream.name)
            event = ResultColumn(component.label, f"events_{stream}", index[stream])
            index[stream] += 1
            if component.run:
                last = replace(event, name="last", index=index[stream])
                fields = (ResultColumn("count", COUNTS, runs), replace(event, name=FIRST), last)
                index[stream] += 1
                runs += 1
                columns.append(StructColumn(component.label, fields))
            else:
                columns.append(event)
        if {"expired", "early"} & bound.emit:
            columns.append(ResultColumn("status", "status"))
        return columns

    def per_rule(self, query: int) -> PerRule | None:
        """How the answers of one query become rows of several; None without PER."""
        bound = self.spec.analyses[query].query
        operands = [(component, False) for component in bound.components if not component.negative]
        rule = self.rule_of(query, bound.per, operands)
        runs = {component.label for component in bound.components if component.run}
        if rule is None or not runs:
            return rule
        return replace(rule, keys=tuple(replace(key, event=FIRST) if key.name in runs else key for key in rule.keys))


def _of_events(component: BoundComponent, condition: Typed | None) -> Typed | None:
    """The condition on a row to be an event of a component: with probabilities, a row of NULLs means no event."""
    if component.stream.model is not Model.INDEPENDENT or not component.stream.values:
        return condition
    columns = [Reference(None, column.name.lower(), column.type) for column in component.stream.values]
    nothing = conjunction(tuple(Operation("is_null", (column,), Type.BOOLEAN) for column in columns))
    something = () if nothing is None else (Operation("not", (nothing,), Type.BOOLEAN),)
    return conjunction((*conjuncts(condition), *something))


def _shared_columns(analysis: SequenceAnalysis) -> list[str]:
    """The columns of a query over one stream that have one value in all events of a match."""
    n_components = len(analysis.query.components)
    return [
        equal_columns[0][1]
        for equal_columns in analysis.key
        if len(dict(equal_columns)) == n_components and len({column for _, column in equal_columns}) == 1
    ]


def check_tables(analysis: SequenceAnalysis, context: JobContext) -> None:
    """Read the files of a query and make its score tables, as far as this needs no rows of relations.

    Raises
    ------
    DataError
        If a file cannot be used, or a table would be too large.
    """
    # Losses by reader are rows of a relation; without them, they count as 0.
    query = with_files(replace(analysis.query, rates=None), context.folders[0])
    lower(replace(analysis, query=query), context.relations, context.layouts[0].time_kind)


def make_job(analyses: Sequence[SequenceAnalysis], context: JobContext) -> SequenceJob:
    """The job of queries over the same streams: reads the files of their delays, and makes the score tables."""
    with_delays = tuple(
        replace(analysis, query=with_files(analysis.query, folder))
        for analysis, folder in zip(analyses, context.folders, strict=True)
    )
    kind = context.layouts[0].time_kind
    searches = tuple(lower(analysis, context.relations, kind) for analysis in with_delays)
    return SequenceJob(SequenceSpec(context, with_delays, searches))
