"""MATCHESQUERY: what can still become of the segments of a, by the order of events so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.compiled import compiled
from benchmarks.relate_paper.asked import Asked
from benchmarks.relate_paper.relations import (
    ANY,
    CONTAINS,
    DURING,
    EQUALS,
    FINISHED_BY,
    FINISHES,
    MEETS,
    MET_BY,
    OVERLAPPED_BY,
    OVERLAPS,
    PRECEDED_BY,
    PRECEDES,
    STARTED_BY,
    STARTS,
    relation,
)

I8 = npt.NDArray[np.int8]

#: What may hold of a segment that has yet to open, by what the other one is now.
TO_AN_OPEN_ONE = DURING | FINISHES | OVERLAPPED_BY | MET_BY | PRECEDED_BY

#: What can become of a segment of a: none of its completions satisfies it, some may, all do.
UNKNOWN, NEVER, MAYBE, SURELY = 0, 1, 2, 3


# The rank of an event of a is 2j where j events of b came before it, 2j + 1 where it ties with event j of b. So event j
# of b has rank 2j + 1, and the order of all events is the order of ranks.


class Query(NamedTuple):
    """The query, and what becomes of segments of a by the ranks of their ends.

    `closed` has the fate of a segment by the ranks of its two ends, `opened` that of an open one by the rank of its
    beginning and the number of events of b by now; both are filled as they are asked for. `to_come` has the fate of
    segments that have yet to open by the number of events of b.
    """

    outer: int
    inner: int
    relations: int
    segments_a: int
    segments_b: int
    closed: I8
    opened: I8
    to_come: I8


@compiled
def make_query(asked: Asked) -> Query:
    """The query, ALL replaced by the numbers of segments."""
    size_b, relations = len(asked.times_b), asked.relations
    segments_a, segments_b = len(asked.times_a) // 2, size_b // 2
    closed = np.zeros((2 * size_b + 1, 2 * size_b + 1), np.int8)
    opened = np.zeros((2 * size_b + 1, size_b + 1), np.int8)
    to_come = np.zeros(size_b + 1, np.int8)
    outer = asked.outer if asked.outer > 0 else segments_a
    inner = asked.inner if asked.inner > 0 else segments_b
    for j in range(size_b + 1):
        to_come[j] = _fate_to_come(inner, relations, segments_b, j)
    return Query(outer, inner, relations, segments_a, segments_b, closed, opened, to_come)


@compiled
def fate_closed(inner: int, relations: int, segments_b: int, begin: int, end: int) -> int:
    """SURELY where a segment between these ranks is satisfied, NEVER where it is not."""
    count = 0
    for y in range(segments_b):
        if relation(begin, end, 4 * y + 1, 4 * y + 3) & relations:
            count += 1
    return SURELY if count >= inner else NEVER


@compiled
def fate_open(inner: int, relations: int, segments_b: int, begin: int, j: int) -> int:
    """What can become of a segment open since rank `begin` when j events of b have happened."""
    may, must = 0, 0
    for y in range(segments_b):
        possible = _possible(begin, 2 * j, 4 * y + 1, 4 * y + 3)
        may += 1 if possible & relations else 0
        must += 1 if not possible & ~relations else 0
    return SURELY if must >= inner else (MAYBE if may >= inner else NEVER)


@compiled
def _possible(begin: int, now: int, y: int, y_end: int) -> int:
    """The relations that a segment open since `begin` can still have to one from y to y_end, at rank `now`."""
    if y_end <= begin:
        return PRECEDED_BY if y_end < begin else MET_BY
    if y_end < now:
        return CONTAINS if begin < y else (STARTED_BY if begin == y else OVERLAPPED_BY)
    if y < begin:
        return DURING | FINISHES | OVERLAPPED_BY
    if y == begin:
        return STARTS | EQUALS | STARTED_BY
    if y < now:
        return OVERLAPS | FINISHED_BY | CONTAINS
    return PRECEDES | MEETS | OVERLAPS | FINISHED_BY | CONTAINS


@compiled
def _fate_to_come(inner: int, relations: int, segments_b: int, j: int) -> int:
    """What can become of a segment that has yet to open when j events of b have happened."""
    past = min(j // 2, segments_b)
    now = j % 2 if past < segments_b else 0
    later = segments_b - past - now
    may, must = 0, 0
    if relations & PRECEDED_BY:
        may, must = past, past
    if relations & TO_AN_OPEN_ONE:
        may += now
    if not TO_AN_OPEN_ONE & ~relations:
        must += now
    if relations:
        may += later
    if relations == ANY:
        must += later
    return SURELY if must >= inner else (MAYBE if may >= inner else NEVER)
