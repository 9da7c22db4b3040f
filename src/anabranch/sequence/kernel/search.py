"""Matches: events arrive in order of time, group by group, and each trigger begins a search back along the queues.

The search gives up wherever its score times the bound of an entry is below the threshold, so that no match at or above
it is lost. It looks at entries that can be part of such a match, and at others between them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.sequence.kernel.demands import agree, is_open
from anabranch.sequence.kernel.lists import Lists
from anabranch.sequence.kernel.query import ALWAYS, NEVER, TABLE_ERROR, Demands, Scores
from anabranch.sequence.kernel.queues import (
    Queues,
    bound_of,
    enqueue,
    first_at,
    first_within,
    new_queues,
    next_arrival,
    open_group,
)
from anabranch.sequence.kernel.tables import score

#: A score that is no less than this share of another may be the same, but for rounding.
_SAME = 1 - 1e-12

#: Room for so many matches to begin with.
_ROOM = 1024


class Found(NamedTuple):
    """What a search gives.

    Attributes
    ----------
    events : (n, m) of each match, the event of each positive component; -1 where it is missing
    scores : (n,)
    queued : of each item, whether it can be part of a match, now or later
    """

    events: I64
    scores: F64
    queued: Bools


class Path(NamedTuple):
    """How far a search has come: a level for each event that it has found, from the trigger on.

    Attributes
    ----------
    bound : of each component, its event; -1 where there is none
    depth : (1,) the level; -1 where the search is over
    number : of each level, which positive component was found
    trying : of each level, which is looked for next; the head, -1, is the last
    entry, low : of each level, the entry of its queue to look at next, and the last one to look at
    score : of each level, that of all gaps so far
    extended : of each level, whether anything was found beyond it
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
def _begin(path: Path, positives: I64, event: int) -> None:
    path.depth[0] = -1
    _descend(path, positives, len(positives) - 1, event, 1.0)


@compiled_inline
def _descend(path: Path, positives: I64, number: int, event: int, score: float) -> None:
    """Go one level down: the event of a number is found."""
    level = path.depth[0] + 1
    path.depth[0] = level
    path.bound[positives[number]] = event
    path.number[level], path.trying[level], path.score[level], path.extended[level] = number, number, score, False
    path.entry[level], path.low[level] = -1, 0


@compiled_inline
def _ascend(path: Path, positives: I64) -> None:
    """Go one level up: all that lies beyond it is done."""
    level = path.depth[0]
    path.bound[positives[path.number[level]]] = -1
    path.depth[0] = level - 1


@compiled_inline
def _open_queue(
    path: Path, queues: Queues, scores: Scores, lists: Lists, positives: I64, group: int, t: npt.NDArray[Any],
    least: float,
) -> None:  # fmt: skip
    """Turn to the entries of the number that is tried, if any of them can be part of a match."""
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
    path: Path, queues: Queues, scores: Scores, demands: Demands, lists: Lists, times: npt.NDArray[Any], group: int,
    t: npt.NDArray[Any], least: float,
) -> None:  # fmt: skip
    """Look at one entry: go down to it, if it can be part of a match."""
    level = path.depth[0]
    positives = demands.positives
    i, j, entry, total = path.trying[level], path.number[level], path.entry[level], path.score[level]
    path.entry[level] -= 1
    table = scores.gap[i, j]
    if table != ALWAYS:
        total *= score(scores.tables, table, (t[path.bound[positives[j]]] - queues.time[entry]) * scores.unit)
    if total == 0.0 or total * queues.bound[entry] < least:
        if table != ALWAYS and scores.falling[table] and total + path.score[level] * TABLE_ERROR < least:
            path.entry[level] = path.low[level] - 1  # older entries score no more
        return
    path.bound[positives[i]] = queues.event[entry]
    if agree(demands, lists, times, group, path.bound, t, scores.window, i, j):
        path.extended[level] = True
        _descend(path, positives, i, queues.event[entry], total)
    else:
        path.bound[positives[i]] = -1


@compiled_inline
def _completed(
    path: Path, scores: Scores, demands: Demands, lists: Lists, times: npt.NDArray[Any], group: int,
    t: npt.NDArray[Any], least: float, expired: bool,
) -> float:  # fmt: skip
    """The score of what is bound, with what lies before it; 0 where it is not to be reported.

    Where `expired` is asked for, that is what nothing continues, and which still could be.
    """
    level = path.depth[0]
    j, total = path.number[level], path.score[level]
    table = scores.head[j]
    if table == NEVER or (expired and (path.extended[level] or j == 0)):
        return 0.0
    if table != ALWAYS:
        now, here = t[path.bound[demands.positives[len(demands.positives) - 1]]], t[path.bound[demands.positives[j]]]
        total *= score(scores.tables, table, (scores.window - (now - here)) * scores.unit)
    if total < least:
        return 0.0
    if expired:
        good = is_open(demands, lists, times, group, path.bound, t, scores.window, j)
    else:
        good = agree(demands, lists, times, group, path.bound, t, scores.window, -1, j)
    return total if good else 0.0


@compiled_inline
def next_match(
    path: Path, queues: Queues, scores: Scores, demands: Demands, lists: Lists, times: npt.NDArray[Any], group: int,
    t: npt.NDArray[Any], least: float, expired: bool,
) -> float:  # fmt: skip
    """Go on with a search to its next match, which is then bound, and give its score; 0 where there is none left.

    What was found last is left first: its level has been reported.
    """
    while path.depth[0] >= 0:
        level = path.depth[0]
        if path.trying[level] < 0:
            _ascend(path, demands.positives)
        elif path.entry[level] >= path.low[level]:
            _advance(path, queues, scores, demands, lists, times, group, t, least)
        else:
            path.trying[level] -= 1
            if path.trying[level] >= 0:
                _open_queue(path, queues, scores, lists, demands.positives, group, t, least)
            else:
                total = _completed(path, scores, demands, lists, times, group, t, least, expired)
                if total > 0.0:
                    return total
    return 0.0


@compiled
def search(
    scores: Scores, demands: Demands, lists: Lists, t: npt.NDArray[Any], fresh: Bools, bounded: bool, best: bool,
    expired: bool,
) -> Found:  # fmt: skip
    """Every match whose trigger is fresh, with a score at the threshold or above.

    Parameters
    ----------
    t : times of the events
    fresh : of each event, whether matches that it triggers are wanted
    bounded : whether arrivals are bounded; without it all of them are queued
    best : whether matches of a trigger are left out that score less than one that was found before
    expired : whether what is wanted are not matches, but what nothing continues
    """
    positives = demands.positives
    m, times = len(positives), t[lists.events]
    queues, queued = new_queues(times, m), np.zeros(len(times), np.bool_)
    path = Path(
        np.full(len(lists.start), -1, np.int64), np.empty(1, np.int64), np.empty(m, np.int64), np.empty(m, np.int64),
        np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m), np.empty(m, np.bool_),
    )  # fmt: skip
    found, found_scores, count = np.empty((_ROOM, m), np.int64), np.empty(_ROOM), 0
    for group in range(lists.start.shape[1]):
        open_group(queues, lists, positives, group)
        while True:
            s = next_arrival(queues, lists, times, positives, group)
            if s < 0:
                break
            item = queues.coming[s]
            queues.coming[s] += 1
            event, now = lists.events[item], times[item]
            bound = bound_of(queues, scores, s, now) if bounded else 1.0
            if bound < scores.threshold:
                continue
            queued[item] = True
            if s < m - 1:
                enqueue(queues, s, event, now, bound)
            elif fresh[event]:
                least = scores.threshold
                _begin(path, positives, event)
                while True:
                    total = next_match(path, queues, scores, demands, lists, times, group, t, least, expired)
                    if total == 0.0:
                        break
                    if count == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                        found_scores = np.concatenate((found_scores, np.empty_like(found_scores)))
                    for i in range(m):
                        found[count, i] = path.bound[positives[i]]
                    found_scores[count] = total
                    count += 1
                    least = max(least, total * _SAME) if best else least
    return Found(found[:count].copy(), found_scores[:count].copy(), queued)
