"""Marks of entities, the input of the sweep: the instants at which something is known, and what happens there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anabranch.arrays import I8, I32, I64, Bools
from anabranch.compiled import compiled, compiled_inline

#: The flags of a mark, in the order in which they apply: a run closes, a recorded event happens, a run opens.
CLOSES, EVENT, OPENS = 1, 2, 4


class Entities(NamedTuple):
    """The events and marks of many entities, one entity after the other.

    Attributes
    ----------
    events, marks : the index of each entity's first event and first mark; one entry more than entities
    lo, hi : the window of each event
    t, flags : the instant and the flags of each mark
    lost : the number of lost events of the run that a mark opens
    longest : the length of the longest run of each entity
    """

    events: Any
    marks: Any
    lo: Any
    hi: Any
    t: Any
    flags: Any
    lost: Any
    longest: Any


@compiled
def mark_entities(
    events: I64, lo: I64, hi: I64, lost: Bools, selected: Bools, phases: I64
) -> tuple[I64, I64, I8, I32, I64]:
    """The marks of entities, and the length of the longest run of each.

    With `phases`, a run is a chain: it reaches from a recorded event to the next one, because the state between two
    events depends on how long ago it began.

    Parameters
    ----------
    events : the index of each entity's first event; one entry more than entities
    lo, hi : the window of each event; neither decreases along an entity
    lost : whether an event is lost; the window of a recorded event has length 0
    selected : the entities that get marks
    phases : the number of phases of the state that each event begins; empty if runs are no chains

    Returns
    -------
    The columns `marks`, `t`, `flags`, `lost` and `longest` of `Entities`, or of `Chains`
    """
    n_entities = len(events) - 1
    marks = np.zeros(n_entities + 1, np.int64)
    longest = np.zeros(n_entities, np.int64)
    instants = np.empty(2 * len(lo), np.int64)
    flags = np.zeros(2 * len(lo), np.int8)
    run_lengths = np.zeros(2 * len(lo), np.int32)
    n_marks = 0
    for entity in range(n_entities):
        begin, end = events[entity], events[entity + 1]
        marks[entity] = n_marks
        x = begin if selected[entity] else end
        while x < end:
            if not lost[x]:
                n_marks = _mark(instants, flags, marks[entity], n_marks, lo[x], EVENT)
                x += 1
                continue
            y = x + 1
            while y < end and lost[y] and (len(phases) > 0 or lo[y] < hi[y - 1]):
                y += 1
            moves = y - x
            if len(phases) > 0:
                moves = np.sum(phases[max(x - 1, begin) : y]) - (0 if x == begin else 1)
            opens = lo[x] if len(phases) == 0 or x == begin else lo[x - 1]
            n_marks = _mark(instants, flags, marks[entity], n_marks, opens, OPENS)
            run_lengths[n_marks - 1] = y - x
            longest[entity] = max(longest[entity], moves)
            early, late = x, x  # marks where windows begin or end inside the run
            while early < y or late < y:
                if early < y and lo[early] <= hi[late]:
                    n_marks = _mark(instants, flags, marks[entity], n_marks, lo[early], 0)
                    early += 1
                else:
                    n_marks = _mark(instants, flags, marks[entity], n_marks, hi[late], 0)
                    late += 1
            if len(phases) > 0 and y < end:
                n_marks = _mark(instants, flags, marks[entity], n_marks, lo[y], 0)
            flags[n_marks - 1] |= CLOSES
            x = y
    marks[n_entities] = n_marks
    return marks, instants[:n_marks].copy(), flags[:n_marks].copy(), run_lengths[:n_marks].copy(), longest


@compiled_inline
def _mark(instants: I64, flags: I8, first: int, n_marks: int, instant: int, flag: int) -> int:
    """Add a flag at an instant that is not before the last mark; returns the number of marks."""
    if n_marks == first or instants[n_marks - 1] < instant:
        instants[n_marks] = instant
        flags[n_marks] = 0
        n_marks += 1
    flags[n_marks - 1] |= flag
    return n_marks


@compiled_inline
def next_instant(mark_a: int, end_a: int, t_a: I64, mark_b: int, end_b: int, t_b: I64) -> int:
    """The instant of the next mark of two entities."""
    if mark_b == end_b or (mark_a < end_a and t_a[mark_a] <= t_b[mark_b]):
        return t_a[mark_a]
    return t_b[mark_b]
