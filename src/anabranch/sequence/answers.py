"""From matches to rows: each choice of events once, the best of a trigger where that is asked, with their columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Numbers
from anabranch.columns.times import TimeKind
from anabranch.events.batch import Batch, lists_of_events, row_numbers
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.matching import Matches
from anabranch.sequence.spec import SequenceSpec

#: Scores that agree in so many bits differ by rounding alone.
_SAME = 40

#: The status of a match, and of what ran out of time.
MATCHED, EXPIRED = "matched", "expired"


class Answers:
    """The answers of a step."""

    def __init__(self, spec: SequenceSpec, batch: Batch) -> None:
        self._spec, self._batch = spec, batch
        self._t = batch.t
        self._row = row_numbers(batch.stream, len(batch.tables))
        self._tables: list[pa.Table] = []

    def table(self) -> pa.Table:
        """All answers so far."""
        return pa.concat_tables([self._spec.answer_schema.empty_table(), *self._tables])

    def add(self, query: int, parts: list[Matches], expired: bool) -> None:
        """Take what the searches of a query found, one for each of its disjuncts."""
        analysis = self._spec.analyses[query]
        events = np.concatenate([part.events for part in parts])
        scores = np.concatenate([part.scores for part in parts])
        if not len(events):
            return
        if len(parts) > 1:
            events, scores = _each_once(events, scores)
        forward = not (expired or analysis.query.ending_open)
        if "best" in analysis.query.emit:
            best = self._best(events, scores, events[:, -1 if forward else 0])
            events, scores = events[best], scores[best]
        first = np.argmax(events >= 0, axis=1)
        start = self._t[events[np.arange(len(events)), first]]
        decided = self._t[events[:, -1]] if forward else self._close(start, self._spec.window(query))
        status = EXPIRED if expired else MATCHED
        columns = [
            pa.repeat(pa.scalar(query, pa.int32()), len(events)), self._times(decided), self._times(start),
            pa.array(scores), pa.repeat(pa.scalar(status), len(events)),
        ]  # fmt: skip
        columns += [self._events(number, analysis, events) for number in range(len(self._spec.layouts))]
        self._tables.append(pa.table(columns, schema=self._spec.answer_schema))

    def _best(self, events: I64, scores: F64, trigger: I64) -> I64:
        """The most probable match of each trigger; of several the one with the fewest missing, then the latest."""
        whole, power = np.frexp(scores)
        alike = np.ldexp(np.round(np.ldexp(whole, _SAME)), power)
        latest = [self._rank(column) for column in events.T]
        order = np.lexsort([*latest, (events >= 0).sum(axis=1), alike, trigger])  # the last is the first to sort by
        is_last = np.ones(len(order), np.bool_)
        is_last[:-1] = trigger[order][1:] != trigger[order][:-1]
        return np.sort(order[is_last])

    def _rank(self, events: I64) -> I64:
        """The places of events of one component in their order; those that are missing come first."""
        present, place = np.unique(events, return_inverse=True)
        rank = np.full(len(present), -1, np.int64)
        known = present[present >= 0]
        if len(known):
            rank[present >= 0] = self._batch.tables[self._batch.stream[known[0]]].ranks(self._row[known])
        return rank[place]

    @staticmethod
    def _close(start: Numbers, window: float) -> Numbers:
        """When the windows close that begin at some times."""
        return start + (int(window) if start.dtype == np.int64 else window)

    def _times(self, times: Numbers) -> pa.Array:
        kind = self._spec.time_kind
        return pa.array(times).cast(kind.arrow_type) if kind is TimeKind.TIMESTAMP else pa.array(times, kind.arrow_type)

    def _events(self, stream: int, analysis: SequenceAnalysis, events: I64) -> pa.Array:
        """The events of one stream as a list for each match, NULL where one is missing."""
        components = [analysis.query.components[place] for place in analysis.positives]
        names = [self._spec.stream_number(each.stream.name) for each in components]
        own = events[:, [place for place, number in enumerate(names) if number == stream]]
        list_type = self._spec.answer_schema.field(f"events_{stream}").type
        return lists_of_events(self._batch, stream, np.where(own < 0, -1, self._row[own]), list_type)


def _each_once(events: I64, scores: F64) -> tuple[I64, F64]:
    """Each choice of events once, with its highest score."""
    order = np.lexsort([scores, *events.T])
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (events[order][1:] != events[order][:-1]).any(axis=1)
    return events[order[is_last]], scores[order[is_last]]
