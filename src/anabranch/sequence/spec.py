"""The specification of a SEQUENCE job: what the operators of its buckets need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.events.job import EventSpecification
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.lowering import Search, window_of

#: The answer column with the number of events of each run.
COUNTS = "counts"


#: A key column in lower case, and whether it is compared as a double.
ColdKey = tuple[str, bool]


@dataclass(frozen=True)
class SequenceSpec(EventSpecification):
    """SEQUENCE queries over the same streams, and the searches of each query."""

    remedy: ClassVar[str] = "shorten WITHIN, compare more columns in WHERE, or set a THRESHOLD"

    analyses: tuple[SequenceAnalysis, ...]
    searches: tuple[tuple[Search, ...], ...]

    @cached_property
    def first_role(self) -> tuple[int, ...]:
        """The number of the first role of each query; each component of each disjunct has one role."""
        sizes = [len(analysis.disjuncts) * len(analysis.query.components) for analysis in self.analyses]
        return tuple(int(number) for number in np.cumsum([0, *sizes]))

    @property
    def marks_firsts(self) -> bool:
        """Whether the state marks events that begin no match any more, although later matches may need them."""
        queries = [analysis.query for analysis in self.analyses]
        return any("next" in query.emit or query.has_open_start for query in queries)

    @cached_property
    def cold_keys(self) -> tuple[tuple[ColdKey, ...], ...] | None:
        """The key columns of each stream, if the events of idle keys can be cold; else None.

        Every query must group all its events by the same columns, and give answers only when an event arrives.
        """
        keys: dict[int, set[tuple[ColdKey, ...]]] = {stream: set() for stream in range(len(self.layouts))}
        for analysis, searches in zip(self.analyses, self.searches, strict=True):
            if analysis.query.has_open_start or any(search.reverse for search in searches):
                return None
            as_doubles = [analysis.is_compared_as_double(columns) for columns in analysis.key]
            for component in analysis.query.components:
                columns = analysis.key_columns(component.name)
                if not columns:
                    return None
                key = tuple(zip(columns, as_doubles, strict=True))
                keys[self.stream_number(component.stream.name)].add(key)
        if any(len(of_stream) != 1 for of_stream in keys.values()):
            return None
        of_streams = tuple(of_stream.pop() for of_stream in keys.values())
        same_types = len({tuple(as_double for _, as_double in key) for key in of_streams}) == 1
        return of_streams if same_types else None

    @property
    def early(self) -> tuple[int, ...]:
        """The numbers of the live queries that also give matches before the watermark has passed."""
        queries = enumerate(analysis.query for analysis in self.analyses)
        return tuple(number for number, query in queries if self.live and "early" in query.emit)

    @property
    def has_runs(self) -> bool:
        """Whether matches may have runs: then answers have a column with the counts of their events."""
        return any(analysis.query.has_runs for analysis in self.analyses)

    def window(self, query: int) -> float:
        """WITHIN in the unit of event times."""
        return window_of(self.analyses[query].query.within, self.time_kind)

    @property
    def answer_schema(self) -> pa.Schema:
        """One row per match: its query, and one list of events per stream, NULL for a missing event."""
        time = self.time_kind.arrow_type
        fields = [("t", time), ("t_start", time), ("probability", pa.float64()), ("status", pa.string())]
        return self.answer_fields(*fields, *([(COUNTS, pa.list_(pa.int64()))] if self.has_runs else []))
