"""Entities as the sweep reads them: the instants at which something is known, and what happens there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anabranch.arrays import I8, I32, I64, Bools
from anabranch.compiled import compiled

#: What happens at a mark of an entity, in this order.
CLOSES, EVENT, OPENS = 1, 2, 4


class Entities(NamedTuple):
    """Many entities, their events and marks end to end.

    Attributes
    ----------
    events, marks : where those of each entity begin; one entry more than entities
    lo, hi : the window of each event, where it is lost
    t, what : the instant of each mark, and what happens there
    lost : how many events are lost in the run that a mark opens
    longest : the most lost events in one run of each entity
    """

    events: Any
    marks: Any
    lo: Any
    hi: Any
    t: Any
    what: Any
    lost: Any
    longest: Any


@compiled
def mark_entities(events: I64, lo: I64, hi: I64, lost: Bools, wanted: Bools) -> tuple[I64, I64, I8, I32, I64]:
    """What happens when: the marks of entities whose events lie end to end, and the longest run of each.

    Parameters
    ----------
    events : where the events of each entity begin; one entry more than entities
    lo, hi : the window of each event; they do not decrease along an entity
    lost : whether an event is lost; else its window has no length
    wanted : of which entities marks are wanted; others get none
    """
    n_entities = len(events) - 1
    marks = np.zeros(n_entities + 1, np.int64)
    longest = np.zeros(n_entities, np.int64)
    when = np.empty(2 * len(lo), np.int64)
    what = np.zeros(2 * len(lo), np.int8)
    opens = np.zeros(2 * len(lo), np.int32)
    n_marks = 0
    for entity in range(n_entities):
        begin, end = events[entity], events[entity + 1]
        marks[entity] = n_marks
        x = begin if wanted[entity] else end
        while x < end:
            if not lost[x]:
                n_marks = _mark(when, what, marks[entity], n_marks, lo[x], EVENT)
                x += 1
                continue
            y = x + 1
            while y < end and lost[y] and lo[y] < hi[y - 1]:
                y += 1
            n_marks = _mark(when, what, marks[entity], n_marks, lo[x], OPENS)
            opens[n_marks - 1] = y - x
            longest[entity] = max(longest[entity], y - x)
            early, late = x, x  # where windows begin or end inside the run
            while early < y or late < y:
                if early < y and lo[early] <= hi[late]:
                    n_marks = _mark(when, what, marks[entity], n_marks, lo[early], 0)
                    early += 1
                else:
                    n_marks = _mark(when, what, marks[entity], n_marks, hi[late], 0)
                    late += 1
            what[n_marks - 1] |= CLOSES
            x = y
    marks[n_entities] = n_marks
    return marks, when[:n_marks].copy(), what[:n_marks].copy(), opens[:n_marks].copy(), longest


@compiled
def _mark(when: I64, what: I8, first: int, n_marks: int, instant: int, happens: int) -> int:
    """Note that something happens at an instant, which is not before the last mark's."""
    if n_marks == first or when[n_marks - 1] < instant:
        when[n_marks] = instant
        what[n_marks] = 0
        n_marks += 1
    what[n_marks - 1] |= happens
    return n_marks
