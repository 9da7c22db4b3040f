"""Runs the searches of a step: sorts roles into lists by group and time, and calls the kernel."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools, Numbers
from anabranch.columns.conditions import Relations
from anabranch.events.batch import Batch, row_numbers
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.groups import Groups
from anabranch.sequence.kernel.lists import Lists, make_lists
from anabranch.sequence.kernel.query import Chances, Runs, Scores, Window
from anabranch.sequence.kernel.runs import find_runs
from anabranch.sequence.kernel.search import SearchResult
from anabranch.sequence.kernel.search import search as find
from anabranch.sequence.lowering import Search
from anabranch.sequence.programs import matrix_of
from anabranch.transport.limits import AnswerLimit

#: The role column that marks events that begin no match any more: they have begun one (EMIT NEXT), or their window has
#: closed, but they are kept because they may exclude a match that begins later (both ends open).
SPENT = "spent"


class Roles:
    """The roles of the events of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.event = np.repeat(np.arange(len(batch)), np.diff(batch.first))
        self.variable = batch.roles["variable"]
        self._order = np.argsort(self.variable, kind="stable")
        self._sorted = self.variable[self._order]

    def __len__(self) -> int:
        return len(self.event)

    def between(self, first: int, last: int) -> I64:
        """The roles with variables in [first, last), in order of their events."""
        low, high = np.searchsorted(self._sorted, [first, last])
        chosen = self._order[low:high]
        return np.arange(len(self)) if len(chosen) == len(self) else np.sort(chosen)


class Matches(NamedTuple):
    """The matches of a search.

    Attributes
    ----------
    events : (n, slots) the events of each match, -1 if a component is missing; `SequenceAnalysis.slots` has their
        components
    scores : (n,) their scores
    counts : (n, runs) the number of events of each run
    """

    events: I64
    scores: F64
    counts: I64


class Matcher:
    """Searches among the events of one step.

    Parameters
    ----------
    batch : events in order of time
    now : the watermark; windows that closed before it are decided
    """

    def __init__(self, batch: Batch, relations: Relations, now: float) -> None:
        self.roles = Roles(batch)
        self._batch, self._relations, self._now = batch, relations, now
        # A copy, because a read-only array would make numba compile the kernel a second time.
        self._t = batch.t.copy()
        self._groups = Groups(batch)
        self._is_fresh = np.ones(len(batch), np.bool_)
        self._is_fresh[self.roles.event[batch.roles["old"]]] = False
        self._chances = _chances(batch)
        self._useful = np.zeros(len(batch), np.bool_)

    def only_near(self, is_new: Bools, window: float) -> None:
        """Search only for matches of events that can be in one window with a new event, if they are the last ones."""
        # Longer by more than the rounding errors.
        end = self._t[is_new].max() + window * (1 + 1e-9)
        self._is_fresh &= (self._t >= self._t[is_new].min()) & (self._t <= end + 1e-9 * abs(end))

    def matches(
        self, analysis: SequenceAnalysis, search: Search, roles: I64, first: int, alive: Bools, answered: Bools,
        limit: AnswerLimit, bounded: bool = True,
    ) -> Matches:  # fmt: skip
        """The matches of a search among the given roles; marks the roles that may be needed later in `alive`.

        Parameters
        ----------
        roles : the roles that can be components of the search
        first : the variable of the first component
        answered : (slots, events) the first events of earlier matches, as `Matcher.answered`
        limit : how many matches there may be
        bounded : whether arrivals are pruned by their bounds
        """
        component, event = self.roles.variable[roles] - first, self.roles.event[roles]
        group, n_groups = self._groups.of(analysis, component, event)
        components = analysis.query.components
        keyed = np.array([analysis.key_columns(component.name) is not None for component in components])
        closes = self._has_closed(search.scores.window)
        t, fresh = (-self._t, closes & ~self._spent(roles)) if search.reverse else (self._t, self._is_fresh)
        chosen = np.arange(len(roles))
        if search.reverse:
            chosen = np.ascontiguousarray(chosen[::-1])
        lists = make_lists(component[chosen], event[chosen], group[chosen], chosen, keyed, n_groups)
        matrix = matrix_of(self._batch, search.columns, self._relations)
        conditions = search.conditions._replace(matrix=matrix)
        # The score of a match with runs, and the event that it begins with, are not known in the search.
        best = "best" in analysis.query.emit and search.runs is None
        bounded = bounded and not search.expired
        # A search that starts with the first event finds all its matches at once.
        firsts = answered[:0] if search.reverse or search.runs is not None else answered
        result = find(
            search.scores, conditions, lists, t, self._chances, fresh, firsts, bounded, best, search.expired,
            limit.rest,
        )  # fmt: skip
        if result.stopped >= 0:
            raise limit.exceeded(self._batch.described(result.stopped))
        limit.count += len(result.events)
        needed = self._needed(analysis, search, roles, first, lists, result)
        self._useful[self.roles.event[roles[needed]]] = True
        alive[roles[needed & ~closes[event]]] = True
        if analysis.query.has_open_start:
            length, rounding = search.scores.window
            alive[roles[~self._has_closed(Window(2 * length, rounding))[event]]] = True
        missing = np.full((len(result.events), search.skipped), -1, np.int64)
        singles = np.hstack([missing, result.events[:, ::-1]]) if search.reverse else result.events
        if search.runs is None:
            return Matches(singles, result.scores, np.zeros((len(singles), 0), np.int64))
        runs = search.runs._replace(conditions=search.runs.conditions._replace(matrix=matrix))
        ordered = self._in_report_order(analysis, component, event)
        lists = make_lists(component[ordered], event[ordered], group[ordered], ordered, keyed, n_groups)
        trigger = 0 if search.reverse else -1
        is_trigger = component == analysis.singles[trigger]
        group_of = np.zeros(len(self._t), np.int64)
        group_of[event[is_trigger]] = group[is_trigger]
        groups = group_of[singles[:, trigger]]
        return self._with_runs(analysis, runs, search.scores, lists, singles, groups, result.scores)

    def _in_report_order(self, analysis: SequenceAnalysis, component: I64, event: I64) -> I64:
        """The roles in order of time; those of runs at the same time are ordered by key, then by the other columns."""
        ordered = np.arange(len(event))
        rows = row_numbers(self._batch.stream, len(self._batch.tables))
        for run in analysis.runs:
            at = np.flatnonzero(component == run)
            if len(at):
                table = self._batch.tables[self._batch.stream[event[at[0]]]]
                ordered[at] = at[np.argsort(table.ranks(rows[event[at]]))]
        return ordered

    def _with_runs(
        self, analysis: SequenceAnalysis, runs: Runs, tables: Scores, lists: Lists, singles: I64, groups: I64,
        scores: F64,
    ) -> Matches:  # fmt: skip
        """The matches that have an event of every run, with their runs, given their single events."""
        components, singles = np.array(analysis.singles, np.int64), np.ascontiguousarray(singles)
        found = find_runs(runs, tables, lists, self._t, self._chances, components, singles, groups, scores)
        # Each run has two slots: the first and the last event.
        order = np.argsort([*analysis.singles, *analysis.runs, *analysis.runs], kind="stable")
        events = np.hstack([singles, found.first, found.last])[:, order]
        kept = found.scores > 0
        return Matches(events[kept], found.scores[kept], found.counts[kept])

    def _spent(self, roles: I64) -> Bools:
        """The events of roles that begin no match any more."""
        events = np.zeros(len(self._t), np.bool_)
        if SPENT in self._batch.roles:
            events[self.roles.event[roles[self._batch.roles[SPENT][roles]]]] = True
        return events

    def answered(self, analysis: SequenceAnalysis, roles: I64, first: int) -> Bools:
        """(slots, events): whether a match of an earlier step begins with an event; empty without EMIT NEXT.

        Parameters
        ----------
        roles : of the query
        first : the variable of its first role
        """
        if "next" not in analysis.query.emit:
            return np.zeros((0, 0), np.bool_)
        spent = roles[self._batch.roles[SPENT][roles]]
        number = self._numbers(analysis, spent, first)
        answered = np.zeros((len(analysis.slots), len(self._t)), np.bool_)
        answered[number[number >= 0], self.roles.event[spent[number >= 0]]] = True
        return answered

    def _numbers(self, analysis: SequenceAnalysis, roles: I64, first: int) -> I64:
        """The slot of each role in matches, the first one of a run; -1 for negatives."""
        components = analysis.query.components
        numbers = np.full(len(components), -1, np.int64)
        numbers[list(analysis.positives)] = np.searchsorted(analysis.slots, analysis.positives)
        return numbers[(self.roles.variable[roles] - first) % len(components)]

    def spent(self, analysis: SequenceAnalysis, roles: I64, first: int, answered: Bools, window: Window) -> Bools:
        """Which roles of a query are those of events that begin no match any more, in any disjunct."""
        if analysis.query.has_open_start:
            return self._has_closed(window)[self.roles.event[roles]]
        number = self._numbers(analysis, roles, first)
        return (number >= 0) & answered[number, self.roles.event[roles]]

    def _needed(
        self, analysis: SequenceAnalysis, search: Search, roles: I64, first: int, lists: Lists, result: SearchResult
    ) -> Bools:
        """Which roles later events may need, until their windows close."""
        if search.reverse:
            return np.ones(len(roles), np.bool_)
        queued = np.zeros(len(roles), np.bool_)
        queued[lists.roles] = result.queued
        component = self.roles.variable[roles] - first
        queued[component == analysis.singles[-1]] = False
        return queued | np.isin(component, search.guarded)

    def _has_closed(self, window: Window) -> Bools:
        """Whether the window that begins at each event closed before the watermark; as `is_past` of the kernel."""
        largest = np.abs(self._t) if self._now == inf else np.maximum(np.abs(self._t), abs(self._now))
        return self._now - self._t > window.length + window.rounding * largest

    def most_kept(self, window: float) -> int:
        """The largest number of events that were needed by later ones at the same time."""
        t: Numbers = self._t[self._useful]
        if not len(t):
            return 0
        gone = np.zeros(len(t), np.int64) if window == inf else np.searchsorted(t, t - window, side="left")
        return int((np.arange(1, len(t) + 1) - gone).max())


def _chances(batch: Batch) -> Chances:
    """The probabilities of the events of a batch."""
    if all(table.layout.distribution is None for table in batch.tables):
        none = np.zeros(0)
        return Chances(none, np.zeros(0, np.int64), none, np.zeros(0, np.int64), np.zeros(0, np.bool_))
    codes = [table.instances for table in batch.tables]
    sizes = [int(part.max(initial=-1)) + 1 for part in codes]
    firsts = np.cumsum([0, *sizes])
    instance = batch.gathered([first + part for first, part in zip(firsts, codes, strict=False)], np.int64)
    p = batch.gathered([table.probability for table in batch.tables], np.float64)
    n = len(batch)
    # A copy, because a read-only array would make numba compile the kernel a second time.
    return Chances(p.copy(), instance, np.zeros(firsts[-1]), np.empty(n, np.int64), np.zeros(n, np.bool_))
