"""The specification of a PATTERN job: what the operators of its buckets need."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from anabranch.pattern.analysis import PatternAnalysis
from anabranch.transport.job import Specification


@dataclass(frozen=True)
class PatternSpec(Specification):
    """A PATTERN query that can stream."""

    analysis: PatternAnalysis

    @property
    def direct(self) -> bool:
        """Whether the answers of a chain are answers of the query: nothing is combined over chains."""
        return len(self.analysis.group_by) == len(self.analysis.chain)

    @property
    def chain_types(self) -> list[pa.DataType]:
        """The types of the chain variables: DOUBLE where streams have different numeric types for one variable."""
        of_streams = [
            [layout.key_types[position] for position in positions]
            for layout, positions in zip(self.layouts, self.analysis.chain_positions, strict=True)
        ]
        return [pa.float64() if pa.float64() in types else types[0] for types in zip(*of_streams, strict=True)]

    @property
    def head(self) -> list[pa.Field]:
        """The columns that identify an answer: the time and the grouping columns."""
        groups = [pa.field(name, self.chain_types[index]) for name, index in self.analysis.group_by]
        return [pa.field("t", self.time_kind.arrow_type), *groups]

    @property
    def answer_schema(self) -> pa.Schema:
        """The head, and the probability; `log_none` (see `AnyOf`) where chains are combined over buckets."""
        return pa.schema([*self.head, pa.field("probability" if self.direct else "log_none", pa.float64())])

    @property
    def routed_by(self) -> tuple[int, ...]:
        """The indexes of the chain variables whose values assign keys to buckets."""
        return tuple(range(len(self.analysis.chain)))


@dataclass(frozen=True)
class ArchiveSpec(PatternSpec):
    """A PATTERN query over an archive: a bucket has complete groups."""

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the result."""
        numbers = [pa.field(name, pa.float64()) for name in ("probability", "lower", "upper")]
        return pa.schema([*self.head, *numbers, pa.field("method", pa.string())])

    @property
    def routed_by(self) -> tuple[int, ...]:
        """The grouping variables: the chains of a group may have to be sampled together."""
        return tuple(index for _, index in self.analysis.group_by)
