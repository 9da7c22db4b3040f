"""The specification of a MONITOR job: what the operators of its buckets need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.answers import schema_of
from anabranch.transport.job import Specification


@dataclass(frozen=True)
class MonitorSpec(Specification):
    """A MONITOR query."""

    analysis: MonitorAnalysis

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """The number of the stream of each operand."""
        names = [stream.name.lower() for stream in self.analysis.query.streams]
        return tuple(names.index(operand.stream.name.lower()) for operand in self.analysis.operands)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The column of each value of the query: its index among the values of its stream."""
        return tuple(
            [name.lower() for name in self.layouts[self.streams[operand]].values].index(column)
            for operand, column in self.analysis.values
        )

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers."""
        return schema_of(self.analysis, self.layouts, self.streams)

    @property
    def is_buffered(self) -> bool:
        """Whether a buffer of fixed size limits which predictions are compared; only on live inputs."""
        return self.live and self.analysis.query.buffer is not None and len(self.analysis.operands) > 1
