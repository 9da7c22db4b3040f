"""Converts matches to answers: drops duplicates across disjuncts, keeps the best match of a trigger, adds columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools, Numbers
from anabranch.columns.times import TimeKind
from anabranch.events.answers import EventAnswers
from anabranch.events.batch import Batch
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.matching import Matches
from anabranch.sequence.spec import SequenceSpec

#: Scores that are equal in this many bits differ only by rounding.
_SAME = 40

#: The status of a match, and of a sequence that was not continued in time.
MATCHED, EXPIRED = "matched", "expired"


class Answers(EventAnswers):
    """The answers of a step."""

    def __init__(self, spec: SequenceSpec, batch: Batch) -> None:
        super().__init__(spec, batch)
        self._spec, self._t = spec, batch.t

    def add(
        self, query: int, parts: Sequence[Matches], status: str, answered: Bools, is_new: Bools | None = None
    ) -> None:
        """Add the matches of a query, one part per disjunct; if `is_new` events are given, those that have one of them.

        With EMIT NEXT, `answered` is (slots, events) the first events of the matches so far; new ones are added.
        """
        analysis = self._spec.analyses[query]
        events, scores, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if not len(events):
            return
        if len(parts) > 1:
            distinct = _distinct(events, scores, counts)
            events, scores, counts = events[distinct], scores[distinct], counts[distinct]
        forward = not (status == EXPIRED or analysis.query.ending_open)
        first = np.argmax(events >= 0, axis=1)
        if "best" in analysis.query.emit:
            begin = events[np.arange(len(events)), first] * events.shape[1] + first
            best = self._best(events, scores, events[:, -1] if forward else begin)
            events, scores, counts, first = events[best], scores[best], counts[best], first[best]
        if "next" in analysis.query.emit:
            following = self._next(events, first, forward, answered)
            events, scores, counts = events[following], scores[following], counts[following]
            first = first[following]
        if is_new is not None:
            early = ((events >= 0) & is_new[events]).any(axis=1)
            events, scores, counts, first = events[early], scores[early], counts[early], first[early]
        start = self._t[events[np.arange(len(events)), first]]
        decided = self._t[events[:, -1]] if forward else self._close(start, self._spec.window(query))
        statuses = pa.repeat(pa.scalar(status), len(events))
        columns = [self._times(decided), self._times(start), pa.array(scores), statuses]
        if self._spec.has_runs:
            ends = np.arange(len(counts) + 1, dtype=np.int32) * counts.shape[1]
            columns.append(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(counts.ravel())))
        streams = range(len(self._spec.layouts))
        self._append(query, columns, [self._events(stream, analysis, events) for stream in streams])

    def _best(self, events: I64, scores: F64, trigger: I64) -> I64:
        """The most probable match of each trigger; of equal ones, that with the fewest missing events, then the latest.

        Returns
        -------
        The indices of the chosen matches, ascending.
        """
        mantissa, exponent = np.frexp(scores)
        rounded = np.ldexp(np.round(np.ldexp(mantissa, _SAME)), exponent)
        latest = [self._rank(column) for column in events.T]
        # lexsort sorts by its last key first.
        order = np.lexsort([*latest, (events >= 0).sum(axis=1), rounded, trigger])
        is_last = np.ones(len(order), np.bool_)
        is_last[:-1] = trigger[order][1:] != trigger[order][:-1]
        return np.sort(order[is_last])

    def _next(self, events: I64, first: I64, forward: bool, answered: Bools) -> I64:
        """The first match of each first event that has none; added to `answered`.

        It is the one that ends first; then that with the fewest missing events; then with the earliest events, from the
        first component on.

        Returns
        -------
        The indices of the chosen matches, ascending.
        """
        begin = events[np.arange(len(events)), first]
        candidates = np.flatnonzero(~answered[first, begin])
        earliest = [np.where(column < 0, len(events), self._rank(column)) for column in events.T]
        end = [self._t[events[:, -1]]] if forward else []
        keys = [*earliest[::-1], (events < 0).sum(axis=1), *end, begin, first]
        order = candidates[np.lexsort([key[candidates] for key in keys])]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (begin[order][1:] != begin[order][:-1]) | (first[order][1:] != first[order][:-1])
        answered[first[order], begin[order]] = True
        return np.sort(order[is_first])

    def _rank(self, events: I64) -> I64:
        """The rank of events of one component; missing events come first."""
        present, index = np.unique(events, return_inverse=True)
        rank = np.full(len(present), -1, np.int64)
        known = present[present >= 0]
        if len(known):
            rank[present >= 0] = self._batch.tables[self._batch.stream[known[0]]].ranks(self._row[known])
        return rank[index]

    @staticmethod
    def _close(start: Numbers, window: float) -> Numbers:
        """The times at which windows close that begin at `start`."""
        return start + (int(window) if start.dtype == np.int64 else window)

    def _times(self, times: Numbers) -> pa.Array:
        kind = self._spec.time_kind
        return pa.array(times).cast(kind.arrow_type) if kind is TimeKind.TIMESTAMP else pa.array(times, kind.arrow_type)

    def _events(self, stream: int, analysis: SequenceAnalysis, events: I64) -> pa.Array:
        """The events of one stream as one list per match, NULL for a missing event."""
        components = [analysis.query.components[number] for number in analysis.slots]
        streams = [self._spec.stream_number(component.stream.name) for component in components]
        of_stream = events[:, [index for index, number in enumerate(streams) if number == stream]]
        return self._lists(stream, np.where(of_stream < 0, -1, self._row[of_stream]))


def _distinct(events: I64, scores: F64, counts: I64) -> I64:
    """The index of each choice of events once, where it has its highest score."""
    choices = np.hstack([counts, events])
    order = np.lexsort([scores, *choices.T])
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (choices[order][1:] != choices[order][:-1]).any(axis=1)
    return order[is_last]
