"""The specification of a PATTERN job: what the operators of its buckets need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.columns.conditions import ARROW_TYPES
from anabranch.language import nodes
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.query import BoundGoal
from anabranch.thresholds import least_reaching
from anabranch.transport.job import Specification


@dataclass(frozen=True)
class PatternSpec(Specification):
    """A PATTERN query that an automaton answers."""

    analysis: PatternAnalysis

    @property
    def spans(self) -> PerWindow | PerEpisode | None:
        """The PER d or PER EPISODE of the query; rows of other queries are made of answers at instants."""
        per = self.analysis.query.per
        return per if isinstance(per, PerWindow | PerEpisode) else None

    @property
    def least(self) -> float:
        """The lowest probability of a row of the result."""
        query = self.analysis.query
        return query.least_probability if self.spans is None else least_reaching(self.spans.threshold)

    @property
    def direct(self) -> bool:
        """Whether the answers of a chain are answers of the query: nothing is combined over chains."""
        return len(self.routed_by_groups) == len(self.analysis.chain)

    @property
    def routed_by_groups(self) -> tuple[int, ...]:
        """The indexes of the chain variables that are grouping variables."""
        return tuple(index for _, index in self.analysis.group_by if index < len(self.analysis.chain))

    @property
    def chain_types(self) -> list[pa.DataType]:
        """The types of the chain variables: DOUBLE where streams have different numeric types for one variable."""
        of_streams = [
            [layout.key_types[position] for position in positions]
            for layout, positions in zip(self.layouts, self.analysis.chain_positions, strict=True)
        ]
        return [_common_type(types) for types in zip(*of_streams, strict=True)]

    @property
    def bound_types(self) -> list[pa.DataType]:
        """The types of the grouping variables that are not chain variables."""
        return [
            _common_type([kind for goal in self.analysis.query.alternatives for kind in self._types_in(goal, name)])
            for name in self.analysis.bound
        ]

    @property
    def is_early(self) -> bool:
        """Whether there are also provisional answers (EMIT EARLY)."""
        return self.analysis.query.early

    @property
    def is_timed(self) -> bool:
        """Whether partial results have a time at which they began."""
        return self.analysis.query.within is not None

    @property
    def kept_values(self) -> list[tuple[list[str], list[str]]]:
        """For each goal, the columns of saved state with what its results keep while they wait, and to repeat it."""
        return self._kept_values(self.analysis, "value ")

    @property
    def value_types(self) -> dict[str, pa.DataType]:
        """The types of these columns."""
        return self._value_types(self.analysis, "value ")

    @staticmethod
    def _kept_values(analysis: PatternAnalysis, prefix: str) -> list[tuple[list[str], list[str]]]:
        return [
            ([prefix + name for name in kept.waiting], [prefix + name for name in kept.repeating])
            for kept in analysis.kept
        ]

    def _value_types(self, analysis: PatternAnalysis, prefix: str) -> dict[str, pa.DataType]:
        goals = analysis.query.alternatives
        names = sorted({name for kept in analysis.kept for name in (*kept.waiting, *kept.repeating)})
        types = {name: [kind for goal in goals for kind in self._types_in(goal, name)] for name in names}
        return {prefix + name: _common_type(kinds) for name, kinds in types.items()}

    def _types_in(self, goal: BoundGoal, name: str) -> list[pa.DataType]:
        """The types of the columns of a goal that have a variable, if the goal exports it."""
        # The layout of a derived stream has the name of its source.
        layout = self.layouts[[stream.name for stream in self.analysis.streams].index(goal.stream.name)]
        columns = (*goal.stream.keys, *goal.stream.values)
        # The values of a derived stream are not columns of its source.
        kinds = (*layout.key_types, *(layout.value_types if layout.derivation is None else ()))
        types = [*kinds, *(ARROW_TYPES[column.type] for column in columns[len(kinds) :])]
        return [
            kind
            for term, kind in zip(goal.terms, types, strict=True)
            if isinstance(term, nodes.Variable) and term.name == name and name in goal.exported
        ]

    @property
    def head(self) -> list[pa.Field]:
        """The columns that identify a row: its time, or where it begins and ends, and the grouping columns."""
        times = ["t"] if self.spans is None else ["t_from", "t_to"]
        types = [*self.chain_types, *self.bound_types]
        groups = [pa.field(name, types[index]) for name, index in self.analysis.group_by]
        return [*(pa.field(name, self.time_kind.arrow_type) for name in times), *groups]

    @property
    def span_columns(self) -> list[pa.Field]:
        """The columns of a row of several answers after its head."""
        counts = [] if isinstance(self.spans, PerWindow) else [pa.field("count", pa.int64())]
        return [*counts, *(pa.field(name, pa.float64()) for name in ("probability", "expected"))]

    @property
    def answer_schema(self) -> pa.Schema:
        """The head, and the probability.

        Where chains are combined over buckets: `log_none` (see `AnyOf`), or `counts` (see `SumOf`).
        """
        if self.spans is None:
            return pa.schema([*self.head, pa.field("probability" if self.direct else "log_none", pa.float64())])
        if self.direct or not isinstance(self.spans, PerWindow):
            return pa.schema([*self.head, *self.span_columns])
        return pa.schema([*self.head, pa.field("counts", pa.list_(pa.float64())), pa.field("expected", pa.float64())])

    @property
    def routed_by(self) -> tuple[int, ...]:
        """The indexes of the chain variables whose values assign keys to buckets.

        Where an episode begins depends on all chains of its group, so these are in one bucket.
        """
        if self.spans is None or isinstance(self.spans, PerWindow):
            return tuple(range(len(self.analysis.chain)))
        return self.routed_by_groups

    @property
    def needs_instants(self) -> bool:
        """Whether every bucket needs the instants of all rows: whether two are consecutive decides on episodes."""
        return isinstance(self.spans, PerEpisode)


@dataclass(frozen=True)
class GroupSpec(PatternSpec):
    """A PATTERN query that may be sampled: a bucket has complete groups."""

    @property
    def times(self) -> int:
        """Where the count of PER stops; 0 without PER d or PER EPISODE."""
        if self.spans is None:
            return 0
        return self.spans.at_least if isinstance(self.spans, PerWindow) else 1

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the result."""
        numbers = [pa.field("probability", pa.float64())] if self.spans is None else self.span_columns
        bounds = [pa.field(name, pa.float64()) for name in ("lower", "upper")]
        return pa.schema([*self.head, *numbers, *bounds, pa.field("method", pa.string())])

    @property
    def routed_by(self) -> tuple[int, ...]:
        """The grouping variables: the chains of a group may have to be sampled together."""
        return self.routed_by_groups


def _common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a variable that is used for columns of these types."""
    return pa.float64() if pa.float64() in types else types[0]
