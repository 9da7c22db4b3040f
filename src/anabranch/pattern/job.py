"""The jobs of PATTERN: keys are routed by their chain; the answers of chains are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from anabranch.binding.typed import Typed
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.archive import ArchiveOperator
from anabranch.pattern.grouped import GroupedOperator
from anabranch.pattern.last_values import LastValuesOperator
from anabranch.pattern.operator import PatternOperator
from anabranch.pattern.spec import ArchiveSpec, PatternSpec
from anabranch.transport.finishing import AnyOf, Finishing, ResultColumn
from anabranch.transport.job import JobContext, QueryJob
from anabranch.transport.operator import Operator
from anabranch.transport.routing import KeyPlacement


@dataclass(frozen=True)
class PatternJob(QueryJob[PatternSpec], KeyPlacement):
    """A PATTERN query, over an archive or on live inputs."""

    def routing_columns(self, stream: int, keys: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The chain of each key."""
        columns, positions = list(keys.values()), self.spec.analysis.chain_positions[stream]
        types = self.spec.chain_types
        return [columns[positions[index]].cast(types[index]) for index in self.spec.routed_by]

    def needed(self, stream: int) -> Typed | None:
        """The condition on a key that can be part of an answer."""
        return self.spec.analysis.needed(stream)

    def operator(self) -> Operator:
        """The operator of one bucket."""
        if isinstance(self.spec, ArchiveSpec):
            return ArchiveOperator(self.spec)
        if self.spec.analysis.last_values:
            return LastValuesOperator(self.spec)
        return GroupedOperator(self.spec) if self.spec.analysis.bound else PatternOperator(self.spec)

    def rules(self, query: int) -> Finishing:
        """The result columns; without GROUP BY, the probability that some chain is true."""
        if isinstance(self.spec, ArchiveSpec):
            return Finishing()
        head = tuple(field.name for field in self.spec.head)
        numbers = (ResultColumn(name, "probability") for name in ("probability", "lower", "upper"))
        return Finishing(
            any_of=None if self.spec.direct else AnyOf(head, self.spec.analysis.query.least_probability),
            columns=(*(ResultColumn(name, name) for name in head), *numbers, ResultColumn("method", constant="exact")),
        )


def make_job(analyses: Sequence[PatternAnalysis], context: JobContext) -> PatternJob:
    """The job of a query: that of live inputs where it is surely exact, too."""
    (analysis,) = analyses
    exact = analysis.surely_exact and analysis.query.method != "SAMPLING"
    spec = PatternSpec if context.live or exact else ArchiveSpec
    return PatternJob(spec(context, analysis))
