"""The specification of a MONITOR job: what the operators of its buckets need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from anabranch.monitor.analysis import MonitorAnalysis
from anabranch.monitor.answers import schema_of
from anabranch.monitor.kernel.regions import INSTANT
from anabranch.monitor.predictions import Terms
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
    def values(self) -> tuple[Terms, ...]:
        """For each value of the query its columns, by their index among the values of the stream, and their factors."""
        names = [[name.lower() for name in self.layouts[stream].values] for stream in self.streams]
        return tuple(
            tuple((names[operand].index(name), factor) for name, factor in columns)
            for operand, columns in self.analysis.values
        )

    @cached_property
    def sums(self) -> tuple[Terms, ...]:
        """The values that are not a column of a stream."""
        return tuple(dict.fromkeys(terms for terms in self.values if terms and not _is_column(terms)))

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The column of each value of the query: of the stream, or, behind the columns of all streams, its sum.

        The instant of an operand is no column.
        """
        width = max(len(layout.values) for layout in self.layouts)
        columns = {terms: width + number for number, terms in enumerate(self.sums)} | {(): INSTANT}
        return tuple(terms[0][0] if _is_column(terms) else columns[terms] for terms in self.values)

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the operators' answers."""
        return schema_of(self.analysis, self.layouts, self.streams)

    @property
    def is_buffered(self) -> bool:
        """Whether a buffer of fixed size limits which predictions are compared; only on live inputs."""
        return self.live and self.analysis.query.buffer is not None and len(self.analysis.operands) > 1

    @property
    def is_broadcast(self) -> bool:
        """Whether all predictions go to all buckets: for NEAREST, all candidates of a first prediction must meet.

        If WHERE equates key columns, they have the same part anyway.
        """
        return self.analysis.query.nearest is not None and self.analysis.equated is None


def _is_column(terms: Terms) -> bool:
    return len(terms) == 1 and terms[0][1] == 1
