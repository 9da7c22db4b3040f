"""The specification of a CONSTRAIN job: what the operators of its buckets need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from anabranch.constrain.analysis import ConstrainAnalysis, strategy_of
from anabranch.constrain.graph import Lowered, lower_queries
from anabranch.events.job import EventSpecification


@dataclass(frozen=True)
class ConstrainSpec(EventSpecification):
    """CONSTRAIN queries over the same streams."""

    analyses: tuple[ConstrainAnalysis, ...]

    @cached_property
    def lowered(self) -> Lowered:
        """The queries as arrays."""
        return lower_queries(self.analyses, self.time_kind)

    @property
    def strategy(self) -> str:
        """How events are stored: as a query states, or as the planner chooses."""
        return strategy_of(self.analyses)

    @property
    def answer_schema(self) -> pa.Schema:
        """One row per solution: its query, the latest time, probability 1, and one list of events per stream."""
        return self.answer_fields(("t", self.time_kind.arrow_type), ("probability", pa.float64()))
