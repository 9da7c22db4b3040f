"""Runs (`y+`): the events between the single events of a match, found after the search for the single events.

A run is every event that fits between its neighbours. So the single events of a match determine its runs, and there is
one match for each choice of single events. The gaps next to a run end at its first event and begin at its last one:
they are scored here, and the components in them that must have no event are tested here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64
from anabranch.compiled import compiled, compiled_inline
from anabranch.sequence.kernel.conditions import chance_of, fits, list_fitting, none_happened
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.query import ALWAYS, Chances, Runs, Scores, Window
from anabranch.sequence.kernel.queues import (
    first_after,
    first_at,
    first_past,
    first_within,
    gap_between,
    rest_of_window,
)
from anabranch.sequence.kernel.tables import score


class FoundRuns(NamedTuple):
    """The runs of matches.

    Attributes
    ----------
    scores : (n,) the scores of the matches with their runs; 0 if one has no event, or the threshold is not reached
    first, last : (n, r) the first and the last event of each run
    counts : (n, r) the number of its events
    """

    scores: F64
    first: I64
    last: I64
    counts: I64


class Match(NamedTuple):
    """One match.

    Attributes
    ----------
    group : (1,) its group
    bound : of each component, its single event; -1 if it has none
    first, last : of each component, its event, or the first and the last event of a run; -1 if it has none
    """

    group: I64
    bound: I64
    first: I64
    last: I64


@compiled_inline
def _observed(events: I64, component: int, step: int) -> int:
    """The next component with an event, in the direction of `step`; beyond the ends if there is none."""
    other = component + step
    while 0 <= other < len(events) and events[other] < 0:
        other += step
    return other


@compiled_inline
def _between(
    match: Match, component: int, lists: Lists, times: npt.NDArray[Any], t: npt.NDArray[Any], window: Window
) -> tuple[int, int]:
    """The range of the items of a component strictly between the events around it, or until an end of the window."""
    low, high = _observed(match.last, component, -1), _observed(match.first, component, 1)
    begin, end = lists.start[component, match.group[0]], lists.stop[component, match.group[0]]
    if low < 0:
        final = match.last[_observed(match.last, len(match.last), -1)]
        begin = first_within(times, begin, end, t[final], window)
    else:
        begin = first_after(times, begin, end, t[match.last[low]])
    if high == len(match.first):
        opening = match.first[_observed(match.first, -1, 1)]
        return begin, first_past(times, begin, end, t[opening], window)
    return begin, first_at(times, begin, end, t[match.first[high]])


@compiled_inline
def _find(match: Match, run: int, runs: Runs, lists: Lists, begin: int, end: int, chances: Chances) -> int:
    """Find the first and the last event of a run among some items; returns the number of its events."""
    conditions, component, count = runs.conditions, runs.components[run], 0
    has_programs = conditions.guard_program_starts[run] < conditions.guard_program_starts[run + 1]
    if begin < end and not has_programs and len(chances.p) == 0:
        match.first[component], match.last[component] = lists.events[begin], lists.events[end - 1]
        return end - begin
    for item in range(begin, end):
        event = lists.events[item]
        if chance_of(chances, event) > 0.0 and fits(conditions, match.bound, run, event):
            if count == 0:
                match.first[component] = event
            match.last[component] = event
            count += 1
    return count


@compiled_inline
def _gap_scores(match: Match, run: int, runs: Runs, scores: Scores, t: npt.NDArray[Any]) -> float:
    """The product of the scores of the gaps before and after a run."""
    component = runs.components[run]
    low, high = _observed(match.last, component, -1), _observed(match.first, component, 1)
    total, first, last = 1.0, t[match.first[component]], t[match.last[component]]
    table = runs.before[run, low + 1]
    if table != ALWAYS:
        if low < 0:
            gap = rest_of_window(scores, first, t[match.last[_observed(match.last, len(match.last), -1)]])
        else:
            gap = gap_between(scores, t[match.last[low]], first)
        total *= score(scores.tables, table, gap)
    table = runs.after[run, high]
    if table != ALWAYS:
        if high == len(match.first):
            gap = rest_of_window(scores, t[match.first[_observed(match.first, -1, 1)]], last)
        else:
            gap = gap_between(scores, last, t[match.first[high]])
        total *= score(scores.tables, table, gap)
    return total


@compiled_inline
def _absence(
    match: Match, runs: Runs, lists: Lists, times: npt.NDArray[Any], t: npt.NDArray[Any], window: Window,
    chances: Chances,
) -> float:  # fmt: skip
    """The probability that no event happened that must not exist next to a run."""
    conditions, listed = runs.conditions, 0
    for guard in range(len(runs.components), len(conditions.guards)):
        component = conditions.guards[guard, 0]
        if match.bound[component] >= 0:
            continue
        begin, end = _between(match, component, lists, times, t, window)
        if len(chances.p):
            listed = list_fitting(conditions, lists, match.bound, chances, guard, begin, end, listed)
            continue
        for item in range(begin, end):
            if fits(conditions, match.bound, guard, lists.events[item]):
                return 0.0
    return none_happened(chances, listed)


@compiled
def find_runs(
    runs: Runs, scores: Scores, lists: Lists, t: npt.NDArray[Any], chances: Chances, singles: I64, matches: I64,
    groups: I64, match_scores: F64,
) -> FoundRuns:  # fmt: skip
    """Find the runs of matches, and score the gaps next to them.

    Parameters
    ----------
    lists : in order of time; equal times are in the order in which events are reported
    t : times of the events
    singles : the components of the columns of `matches`
    matches : (n, m) the single events of each match; -1 if it is missing
    groups, match_scores : of each match
    """
    n, r, c = len(matches), len(runs.components), len(lists.start)
    times = t[lists.events]
    found = FoundRuns(
        match_scores.copy(), np.full((n, r), -1, np.int64), np.full((n, r), -1, np.int64), np.zeros((n, r), np.int64)
    )
    match = Match(np.zeros(1, np.int64), np.empty(c, np.int64), np.empty(c, np.int64), np.empty(c, np.int64))
    for k in range(n):
        match.group[0] = groups[k]
        for events in (match.bound, match.first, match.last):
            events[:] = -1
            for i in range(len(singles)):
                events[singles[i]] = matches[k, i]
        total = match_scores[k]
        for run in range(r):
            component = runs.components[run]
            begin, end = _between(match, component, lists, times, t, scores.window)
            found.counts[k, run] = _find(match, run, runs, lists, begin, end, chances)
            if found.counts[k, run] == 0:
                total = 0.0
                break
            found.first[k, run], found.last[k, run] = match.first[component], match.last[component]
            total *= _gap_scores(match, run, runs, scores, t)
            if len(chances.p):
                listed = list_fitting(runs.conditions, lists, match.bound, chances, run, begin, end, 0)
                total *= 1.0 - none_happened(chances, listed)
        if total >= scores.threshold and len(runs.conditions.guards) > r:
            total *= _absence(match, runs, lists, times, t, scores.window, chances)
        found.scores[k] = total if total >= scores.threshold else 0.0
    return found
