"""The specification of a CONSTRAIN job: what the operators of its buckets need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import ClassVar

import pyarrow as pa

from anabranch.arrays import I64
from anabranch.columns.times import TimeKind
from anabranch.constrain.analysis import ConstrainAnalysis, strategy_of
from anabranch.constrain.graph import Lowered, lower_queries
from anabranch.events.job import EventSpecification


@dataclass(frozen=True)
class ConstrainSpec(EventSpecification):
    """CONSTRAIN queries over the same streams."""

    remedy: ClassVar[str] = "tighten the bounds on times and distances in WHERE"

    analyses: tuple[ConstrainAnalysis, ...]

    @cached_property
    def lowered(self) -> Lowered:
        """The queries as arrays."""
        return lower_queries(self.analyses, self.time_kind)

    @property
    def first_role(self) -> I64:
        """The number of the first variable of each query, and the number of variables."""
        return self.lowered.graph.first

    @property
    def has_early(self) -> bool:
        """Whether live queries report solutions when their last event arrives."""
        return self.live and any(analysis.query.is_early for analysis in self.analyses)

    @property
    def has_expected(self) -> bool:
        """Whether answers have an interval: probabilities of true locations may be sampled."""
        return any(analysis.query.is_expected for analysis in self.analyses)

    @cached_property
    def longest_span(self) -> int | float:
        """The longest time between two events of a solution of any query, in the unit of event times.

        Live queries have one.
        """
        span = max(analysis.span for analysis in self.analyses) * self.time_kind.per_unit
        return span if self.time_kind is TimeKind.DOUBLE else ceil(span)

    @property
    def strategy(self) -> str:
        """How events are stored: as a query states, or as the planner chooses."""
        return strategy_of(self.analyses)

    @property
    def answer_schema(self) -> pa.Schema:
        """One row per solution: its query, the latest time, its probability, and one list of events per stream."""
        probability = [("probability", pa.float64())]
        if self.has_expected:
            probability += [("lower", pa.float64()), ("upper", pa.float64()), ("method", pa.string())]
        return self.answer_fields(("t", self.time_kind.arrow_type), *probability)
