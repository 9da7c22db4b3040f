"""Finds matches: events arrive in order of time, group by group, and each trigger starts a search through the queues.

The search goes back in time. It prunes an entry if its score times the bound of the entry is below the threshold, so it
loses no match that reaches the threshold. It visits entries that can be part of such a match, and others between them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.sequence.kernel.conditions import absence, chance_of, is_consistent, is_open
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.query import ALWAYS, NEVER, TABLE_ERROR, Chances, Conditions, Scores
from anabranch.sequence.kernel.queues import (
    Queues,
    bound_of,
    enqueue,
    first_at,
    first_within,
    gap_between,
    new_queues,
    next_arrival,
    open_group,
    rest_of_window,
)
from anabranch.sequence.kernel.tables import score

#: Two scores whose ratio is at least this may be equal apart from rounding.
_SAME = 1 - 1e-12

#: The initial capacity for matches.
_CAPACITY = 1024


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    events : (n, m) the event of each positive component of each match; -1 if it is missing
    scores : (n,) the score of each match
    queued : for each item, whether it can be part of a match, now or later
    stopped : the trigger at which the search was stopped, because there are too many matches; -1 if it was not
    """

    events: I64
    scores: F64
    queued: Bools
    stopped: int


class Firsts(NamedTuple):
    """The events that begin a match (EMIT NEXT); both arrays are empty if every match is reported.

    Attributes
    ----------
    answered : (m, events) whether a match of an earlier step begins with an event as a number
    triggers : (m, events) the trigger of the first match of this step that does; -1 if there is none
    """

    answered: Bools
    triggers: I64


class Path(NamedTuple):
    """The state of a search: one level per event that it has chosen, starting with the trigger.

    Attributes
    ----------
    bound : of each component, its event; -1 if it has none
    depth : (1,) the current level; -1 if the search is over
    number : of each level, the number of its component
    trying : of each level, the number that is searched next; -1, the head, is the last
    entry, low : of each level, the next and the last entry of that number's queue to visit
    score : of each level, the product of the scores of all gaps and the probabilities of all events so far
    extended : of each level, whether an event was chosen beyond it
    """

    bound: I64
    depth: I64
    number: I64
    trying: I64
    entry: I64
    low: I64
    score: F64
    extended: Bools


@compiled_inline
def _is_answered(firsts: Firsts, t: npt.NDArray[Any], number: int, event: int, now: float) -> bool:
    """Whether a match that ended before `now` begins with an event as a number."""
    if len(firsts.answered) == 0:
        return False
    trigger = firsts.triggers[number, event]
    return firsts.answered[number, event] or (trigger >= 0 and t[trigger] < now)


@compiled_inline
def _begin(path: Path, positives: I64, event: int, score: float) -> None:
    """Start a search with a trigger, given its probability."""
    path.depth[0] = -1
    _descend(path, positives, len(positives) - 1, event, score)


@compiled_inline
def _descend(path: Path, positives: I64, number: int, event: int, score: float) -> None:
    """Go one level down, with an event for a number."""
    level = path.depth[0] + 1
    path.depth[0] = level
    path.bound[positives[number]] = event
    path.number[level], path.trying[level], path.score[level], path.extended[level] = number, number, score, False
    path.entry[level], path.low[level] = -1, 0


@compiled_inline
def _ascend(path: Path, positives: I64) -> None:
    """Go one level up, when everything beyond the current level is done."""
    level = path.depth[0]
    path.bound[positives[path.number[level]]] = -1
    path.depth[0] = level - 1


@compiled_inline
def _open_queue(
    path: Path, queues: Queues, scores: Scores, lists: Lists, positives: I64, group: int, t: npt.NDArray[Any],
    least: float,
) -> None:  # fmt: skip
    """Set the range of entries to visit in the queue of the next number; it is empty if none can be part of a match."""
    level = path.depth[0]
    i, j = path.trying[level], path.number[level]
    path.entry[level], path.low[level] = -1, 0
    table = scores.gap[i, j]
    if table == NEVER or (table != ALWAYS and path.score[level] * scores.highest[table] < least):
        return
    begin, end = lists.start[positives[i], group], queues.end[i]
    now, here = t[path.bound[positives[len(positives) - 1]]], t[path.bound[positives[j]]]
    path.low[level] = first_within(queues.time, begin, end, now, scores.window)
    path.entry[level] = first_at(queues.time, path.low[level], end, here) - 1


@compiled_inline
def _advance(
    path: Path, queues: Queues, scores: Scores, conditions: Conditions, lists: Lists, times: npt.NDArray[Any],
    group: int, t: npt.NDArray[Any], chances: Chances, firsts: Firsts, least: float,
) -> None:  # fmt: skip
    """Visit one entry, and descend to it if it can be part of a match."""
    level = path.depth[0]
    positives = conditions.positives
    i, j, entry, total = path.trying[level], path.number[level], path.entry[level], path.score[level]
    path.entry[level] -= 1
    if i == 0 and _is_answered(firsts, t, 0, queues.event[entry], t[path.bound[positives[len(positives) - 1]]]):
        return
    table = scores.gap[i, j]
    if table != ALWAYS:
        total *= score(scores.tables, table, gap_between(scores, queues.time[entry], t[path.bound[positives[j]]]))
    if total == 0.0 or total * queues.bound[entry] < least:
        if table != ALWAYS and scores.falling[table] and total + path.score[level] * TABLE_ERROR < least:
            path.entry[level] = path.low[level] - 1  # older entries do not score higher
        return
    path.bound[positives[i]] = queues.event[entry]
    if is_consistent(conditions, lists, times, group, path.bound, t, scores.window, chances, i, j):
        path.extended[level] = True
        _descend(path, positives, i, queues.event[entry], total * chance_of(chances, queues.event[entry]))
    else:
        path.bound[positives[i]] = -1


@compiled_inline
def _completed(
    path: Path, scores: Scores, conditions: Conditions, lists: Lists, times: npt.NDArray[Any], group: int,
    t: npt.NDArray[Any], chances: Chances, firsts: Firsts, least: float, expired: bool,
) -> float:  # fmt: skip
    """The score of the bound events with the components before them; 0 if they are not to be reported.

    With `expired`, sequences are reported that no event continues but that could have been continued.
    """
    level = path.depth[0]
    j, total = path.number[level], path.score[level]
    if scores.head[j] == NEVER or scores.lead == NEVER or (expired and (path.extended[level] or j == 0)):
        return 0.0
    first, now = path.bound[conditions.positives[j]], t[path.bound[conditions.positives[len(conditions.positives) - 1]]]
    if _is_answered(firsts, t, j, first, now):
        return 0.0
    if scores.head[j] != ALWAYS or scores.lead != ALWAYS:
        rest = rest_of_window(scores, t[first], now)
        for table in (scores.head[j], scores.lead):
            total *= 1.0 if table == ALWAYS else score(scores.tables, table, rest)
    if total < least:
        return 0.0
    if expired:
        holds = is_open(conditions, lists, times, group, path.bound, t, scores.window, chances, j)
    else:
        holds = is_consistent(conditions, lists, times, group, path.bound, t, scores.window, chances, -1, j)
    if holds and len(chances.p) and len(conditions.guards):
        total *= absence(conditions, lists, times, group, path.bound, t, scores.window, chances)
    return total if holds and total >= least else 0.0


@compiled_inline
def next_match(
    path: Path, queues: Queues, scores: Scores, conditions: Conditions, lists: Lists, times: npt.NDArray[Any],
    group: int, t: npt.NDArray[Any], chances: Chances, firsts: Firsts, least: float, expired: bool,
) -> float:  # fmt: skip
    """Continue a search until its next match, which is then bound; returns its score, or 0 if there are no more.

    The search resumes at the level of the match that was returned last.
    """
    while path.depth[0] >= 0:
        level = path.depth[0]
        if path.trying[level] < 0:
            _ascend(path, conditions.positives)
        elif path.entry[level] >= path.low[level]:
            _advance(path, queues, scores, conditions, lists, times, group, t, chances, firsts, least)
        else:
            path.trying[level] -= 1
            if path.trying[level] >= 0:
                _open_queue(path, queues, scores, lists, conditions.positives, group, t, least)
            else:
                total = _completed(path, scores, conditions, lists, times, group, t, chances, firsts, least, expired)
                if total > 0.0:
                    return total
    return 0.0


@compiled
def search(
    scores: Scores, conditions: Conditions, lists: Lists, t: npt.NDArray[Any], chances: Chances, fresh: Bools,
    answered: Bools, bounded: bool, best: bool, expired: bool, most: int,
) -> SearchResult:  # fmt: skip
    """Every match whose trigger is fresh and whose score reaches the threshold.

    Parameters
    ----------
    t : times of the events
    chances : the probabilities of events
    fresh : for each event, whether to search for matches that it triggers
    answered : (m, events) whether an earlier match begins with an event as a number, so that no other match is wanted
        that begins with it and ends later than the first one; empty if all matches are wanted
    bounded : whether arrivals are pruned by their bounds; otherwise all of them are queued
    best : whether to skip matches that score less than an earlier match of the same trigger
    expired : whether to search for sequences that no event continues instead of matches
    most : how many matches there may be; the search stops at the next one
    """
    positives = conditions.positives
    m, times = len(positives), t[lists.events]
    queues, queued = new_queues(times, m), np.zeros(len(times), np.bool_)
    path = Path(
        np.full(len(lists.start), -1, np.int64), np.empty(1, np.int64), np.empty(m, np.int64), np.empty(m, np.int64),
        np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m), np.empty(m, np.bool_),
    )  # fmt: skip
    firsts = Firsts(answered, np.full(answered.shape, -1, np.int64))
    matches, match_scores, count = np.empty((_CAPACITY, m), np.int64), np.empty(_CAPACITY), 0
    stopped = -1
    for group in range(lists.start.shape[1]):
        open_group(queues, lists, positives, group)
        while stopped < 0:
            s = next_arrival(queues, lists, times, positives, group)
            if s < 0:
                break
            item = queues.coming[s]
            queues.coming[s] += 1
            event, now = lists.events[item], times[item]
            chance = chance_of(chances, event)
            bound = bound_of(queues, scores, s, now) * chance if bounded else 1.0
            if bound < scores.threshold:
                continue
            queued[item] = True
            if s < m - 1:
                enqueue(queues, s, event, now, bound)
            elif fresh[event]:
                least = scores.threshold
                _begin(path, positives, event, chance)
                while True:
                    total = next_match(
                        path, queues, scores, conditions, lists, times, group, t, chances, firsts, least, expired
                    )
                    if total == 0.0:
                        break
                    if count == most:
                        stopped = event
                        break
                    if count == len(matches):
                        larger, larger_scores = np.empty((min(2 * count, most), m), np.int64), np.empty(2 * count)
                        assign(larger, matches)
                        assign(larger_scores, match_scores)
                        matches, match_scores = larger, larger_scores
                    for i in range(m):
                        matches[count, i] = path.bound[positives[i]]
                    if len(answered):
                        first = path.number[path.depth[0]]
                        firsts.triggers[first, path.bound[positives[first]]] = event
                    match_scores[count] = total
                    count += 1
                    least = max(least, total * _SAME) if best else least
    return SearchResult(matches[:count].copy(), match_scores[:count].copy(), queued, stopped)
