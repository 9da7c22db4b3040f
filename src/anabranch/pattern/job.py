"""PATTERN where it can stream: keys placed in buckets by chain, values turned into letters, weights carried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.binding.typed import Typed
from anabranch.pattern.analysis import PatternAnalysis, analyse
from anabranch.pattern.archive import ArchiveOperator
from anabranch.pattern.intake import Intake
from anabranch.pattern.operator import PatternOperator
from anabranch.pattern.query import BoundPattern
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.routing import KeyPlacement


@dataclass(frozen=True)
class PatternJob(QueryJob, KeyPlacement):
    """A PATTERN query that can stream, as the workers need it."""

    analysis: PatternAnalysis

    @property
    def direct(self) -> bool:
        """Whether each chain's answers are the query's own: nothing is left to combine over chains."""
        return len(self.analysis.group_by) == len(self.analysis.chain)

    @property
    def chain_types(self) -> list[pa.DataType]:
        """The types of the chain variables: DOUBLE where it is a key of streams that differ in their numbers."""
        of_streams = [
            [layout.key_types[position] for position in positions]
            for layout, positions in zip(self.layouts, self.analysis.chain_positions, strict=True)
        ]
        return [pa.float64() if pa.float64() in kinds else kinds[0] for kinds in zip(*of_streams, strict=True)]

    @property
    def answer_schema(self) -> pa.Schema:
        """t, the grouping columns, and the probability.

        Where chains are still to be combined: the logarithm of the probability that none is true.
        """
        return pa.schema([*self._head, pa.field("probability" if self.direct else "log_none", pa.float64())])

    @property
    def _head(self) -> list[pa.Field]:
        """The columns that tell one answer from another."""
        groups = [pa.field(name, self.chain_types[place]) for name, place in self.analysis.group_by]
        return [pa.field("t", self.time_kind.arrow_type), *groups]

    @property
    def spread_by(self) -> tuple[int, ...]:
        """The places in the chain of those variables by which keys are spread over buckets."""
        return tuple(range(len(self.analysis.chain)))

    def spread(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The chain of each key."""
        columns, positions = list(keys.values()), self.analysis.chain_positions[stream]
        return [columns[positions[place]].cast(self.chain_types[place]) for place in self.spread_by]

    def needed(self, stream: int) -> Typed | None:
        """What a key must meet to take part in any answer."""
        return self.analysis.needed(stream)

    def intake(self) -> Intake:
        """What reads the packets of one bucket."""
        return Intake(self.analysis, self.layouts, self.chain_types, self.relations)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        return PatternOperator(self)

    def finish(self, answers: DataFrame) -> DataFrame:
        """The result columns; without GROUP BY, P(some chain is true) = 1 - prod(1 - p), summed as logarithms."""
        groups = [f"`{name}`" for name, _ in self.analysis.group_by]
        if not self.direct:
            combined = answers.groupBy("t", *groups).agg(F.expr("sum(log_none) AS log_none"))
            answers = combined.selectExpr("t", *groups, "-expm1(log_none) AS probability")
            answers = answers.where(
                (F.col("probability") > 0) & (F.col("probability") >= self.analysis.query.threshold)
            )
        numbers = ("probability", "probability AS lower", "probability AS upper")
        return answers.selectExpr("t", *groups, *numbers, "'exact' AS method")

    def finish_table(self, answers: pa.Table) -> pa.Table:
        """As `finish`, of the answers of a micro-batch."""
        head = [field.name for field in self._head]
        if not self.direct:
            combined = answers.group_by(head).aggregate([("log_none", "sum")])
            probability = -np.expm1(combined["log_none_sum"].to_numpy())
            held = (probability > 0) & (probability >= self.analysis.query.threshold)
            answers = combined.append_column("probability", pa.array(probability)).filter(pa.array(held))
        columns = answers.select([*head, "probability", "probability", "probability"])
        columns = columns.append_column("method", pa.repeat("exact", answers.num_rows))
        return columns.rename_columns([*head, "probability", "lower", "upper", "method"])


class ArchiveJob(PatternJob):
    """A PATTERN query over an archive, as the workers need it."""

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the result: groups are whole within a bucket."""
        numbers = [pa.field(name, pa.float64()) for name in ("probability", "lower", "upper")]
        return pa.schema([*self._head, *numbers, pa.field("method", pa.string())])

    @property
    def spread_by(self) -> tuple[int, ...]:
        """The grouping variables: the chains of a group may have to be sampled together."""
        return tuple(place for _, place in self.analysis.group_by)

    def operator(self) -> ArchiveOperator:
        """The operator of one bucket."""
        return ArchiveOperator(self)

    def finish(self, answers: DataFrame) -> DataFrame:
        """Nothing is left to combine."""
        return answers


def make_job(queries: Sequence[BoundPattern], context: JobContext) -> PatternJob:
    """A query made ready for the workers."""
    (query,) = queries
    analysis = analyse(query)
    kind = PatternJob if context.live or analysis.surely_exact else ArchiveJob
    return kind(context, analysis)
