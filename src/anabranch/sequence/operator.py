"""The operator of SEQUENCE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pyarrow as pa

from anabranch.arrays import BEGINNING, U64, Bools
from anabranch.columns.hashing import hash_tuples
from anabranch.columns.statuses import PROVISIONAL
from anabranch.columns.times import earlier
from anabranch.events.batch import Batch
from anabranch.events.cold import ColdEvents
from anabranch.events.members import Renumbering
from anabranch.events.operator import EventOperator
from anabranch.events.table import EventTable
from anabranch.sequence.answers import EXPIRED, MATCHED, Answers
from anabranch.sequence.groups import as_compared
from anabranch.sequence.lowering import Search
from anabranch.sequence.matching import SPENT, Matcher, Matches
from anabranch.sequence.spec import ColdKey, SequenceSpec
from anabranch.splitmix import mix_all
from anabranch.transport.limits import AnswerLimit
from anabranch.transport.operator import Counts, Outcome
from anabranch.transport.pages import Pages, PageStore
from anabranch.transport.watermark import Progress

#: The role columns: the component of a disjunct of a query, and whether the event was kept from an earlier step.
_ROLE_TYPES: Mapping[str, type] = {"variable": np.int64, "old": np.bool_}
#: A further one: whether the event has begun a match and begins no other.
_MARKS: Mapping[str, type] = {SPENT: np.bool_}
#: A further one, with EMIT EARLY: whether the event arrived in an earlier step.
SEEN = "seen"
_ARRIVALS: Mapping[str, type] = {SEEN: np.bool_}


class SequenceOperator(EventOperator):
    """The operator of one bucket of SEQUENCE queries."""

    def __init__(self, spec: SequenceSpec) -> None:
        self._spec = spec
        marks, arrivals = _MARKS if spec.marks_firsts else {}, _ARRIVALS if spec.early else {}
        super().__init__(spec, {**_ROLE_TYPES, **marks, **arrivals})

    def open(self, state: bytes | None) -> None:
        """Start with an empty state, or resume from saved bytes."""
        self._cold: ColdEvents | None = None
        self._directory: pa.Table | None = None
        self._renumbering: Renumbering | None = None
        super().open(state)

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        """Set the state to that of saved tables; `use_pages` adds what is in pages."""
        self._directory = tables.get("pages")
        super().load(tables)

    def renumber(self, new: Renumbering) -> Bools:
        """Convert loaded state of another set of queries; returns which of the kept events are still kept."""
        self._renumbering = new
        return super().renumber(new)

    def use_pages(self, store: PageStore) -> None:
        """Keep the events of idle keys in a store, if the queries allow it."""
        keys = self._spec.cold_keys
        pages = Pages.open(store, self._fingerprint, self._directory)
        cold = ColdEvents(pages, self._layouts, self._role_types, partial(_key_hashes, keys or ()))
        if len(pages) and (keys is None or self._renumbering is not None):
            # The queries have changed since the events became cold.
            events = cold.take_all()
            events = events if self._renumbering is None else events.renumbered(self._renumbering.variables)
            self.kept = Batch.concat([self.kept, events.where(events.has_role)])
        self._cold = None if keys is None else cold

    def tables(self) -> dict[str, pa.Table]:
        """The state as tables, for `load`."""
        return super().tables() | ({} if self._cold is None else {"pages": self._cold.pages.save()})

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Process packets; return all answers that are decided before the watermark."""
        outcome = super().step(packets, watermark, ended)
        if self._cold is not None:
            self.kept = self._cold.cool(self.kept, [self._newly_arrived, self._buffer.held], self._forgotten)
            outcome.counts.kept += len(self._cold.pages)
        return outcome

    def _arrived(self, packets: Sequence[tuple[int, bytes]], watermark: Progress) -> Batch:
        """The events of packets; the cold events of their keys are kept in memory again."""
        arrived = super()._arrived(packets, watermark)
        if self._cold is not None:
            self._newly_arrived, self.kept = arrived, self._cold.warm(arrived, self.kept)
        return arrived

    @property
    def _forgotten(self) -> int:
        """The time before which the windows of all events have closed; somewhat earlier, for rounding errors."""
        windows = [analysis.query.within for analysis in self._spec.analyses]
        if None in windows:
            return BEGINNING
        longest = max(window for window in windows if window is not None) * (1 + 1e-6)
        return earlier(self._watermark.at, longest, self._spec.time_kind)

    def answers_of(self, batch: Batch, ended: bool, counts: Counts) -> pa.Table:
        """Every match that is decided before the watermark; at the end of the input, all windows close."""
        spec = self._spec
        answers = Answers(spec, batch)
        matcher = Matcher(batch, spec.relations, inf if ended else self.now)
        alive = np.zeros(len(matcher.roles), np.bool_)
        marks = {SPENT: batch.roles[SPENT].copy()} if spec.marks_firsts else {}
        for query, analysis in enumerate(spec.analyses):
            first, end = spec.first_role[query], spec.first_role[query + 1]
            roles = matcher.roles.between(first, end)
            answered = matcher.answered(analysis, roles, first)
            for status in (MATCHED, EXPIRED):
                searches = [search for search in spec.searches[query] if search.expired is (status == EXPIRED)]
                if searches:
                    limit = answers.limit(query)
                    matches = [self._matches(matcher, query, search, alive, answered, limit) for search in searches]
                    answers.add(query, matches, status, answered)
            if len(answered) or analysis.query.has_open_start:
                window = spec.searches[query][0].scores.window
                marks[SPENT][roles] |= matcher.spent(analysis, roles, first, answered, window)
        counts.kept = matcher.most_kept(max(spec.window(query) for query in range(len(spec.analyses))))
        self.kept = batch.with_roles(alive, old=np.ones(len(alive), np.bool_), **marks)
        return answers.table()

    def _matches(
        self, matcher: Matcher, query: int, search: Search, alive: Bools, answered: Bools, limit: AnswerLimit
    ) -> Matches:
        """The matches of one search among the events that can be its components; marks roles in `alive`."""
        analysis = self._spec.analyses[query]
        size = len(analysis.query.components)
        first = self._spec.first_role[query] + search.disjunct * size
        roles = matcher.roles.between(first, first + size)
        return matcher.matches(analysis, search, roles, first, alive, answered, limit)


def _key_hashes(keys: Sequence[tuple[ColdKey, ...]], stream: int, events: EventTable) -> U64:
    """The hash of the key of each event of a stream; equal keys of several streams have one hash."""
    columns = [as_compared(events.columns[name], as_doubles) for name, as_doubles in keys[stream]]
    return mix_all(hash_tuples(columns, len(events)))


class EarlyOperator(SequenceOperator):
    """The operator of live queries of which some have EMIT EARLY: these also give provisional matches.

    Each step gives the final matches, as without EMIT EARLY. Then the events that are held are searched as if the
    watermark had passed them, among the events that are kept, and nothing of this search is kept. A match is
    provisional in the step in which the last of its events arrives, and in no other.
    """

    def step(self, packets: Sequence[tuple[int, bytes]], watermark: Progress, ended: bool) -> Outcome:
        """Process packets; return all answers that are decided before the watermark, and new provisional ones."""
        outcome = super().step(packets, watermark, ended)
        early = self._provisional()
        for events in (self.kept, self._buffer.held):
            events.roles[SEEN] = np.ones(len(events.roles[SEEN]), np.bool_)
        return replace(outcome, answers=pa.concat_tables([outcome.answers, early]))

    def _provisional(self) -> pa.Table:
        """The matches with a new event whose last event is held."""
        spec = self._spec
        held, _ = self._buffer.held.without_duplicates()
        batch = self.in_order(Batch.concat([self.kept, held]))
        if not len(held) or batch.roles[SEEN].all():
            return self._no_answers
        # No window has closed at the first event: the watermark decides on final answers only.
        matcher = Matcher(batch, spec.relations, batch.t[0])
        is_new = np.zeros(len(batch), np.bool_)
        is_new[matcher.roles.event[~batch.roles[SEEN]]] = True
        matcher.only_near(is_new, max(spec.window(query) for query in spec.early))
        answers, alive = Answers(spec, batch), np.zeros(len(matcher.roles), np.bool_)
        for query in spec.early:
            first, end = spec.first_role[query], spec.first_role[query + 1]
            answered = matcher.answered(spec.analyses[query], matcher.roles.between(first, end), first)
            limit = answers.limit(query)
            matches = [
                self._matches(matcher, query, search, alive, answered, limit)
                for search in spec.searches[query]
                if not search.expired
            ]
            answers.add(query, matches, PROVISIONAL, answered, is_new)
        return answers.table()
