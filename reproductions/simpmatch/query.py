"""MATCHESQUERY: whether the segments of a can still be satisfied, by the order of events so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import I8
from anabranch.compiled import compiled
from reproductions.simpmatch.inputs import PairInput
from reproductions.simpmatch.relations import (
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

#: The relations that a segment of a that has not opened yet can have to a segment of b that is open now.
FUTURE_TO_OPEN = DURING | FINISHES | OVERLAPPED_BY | MET_BY | PRECEDED_BY

#: The outcome of a segment of a: not computed yet; none of its completions satisfies it, some may, all do.
UNKNOWN, NEVER, MAYBE, SURELY = 0, 1, 2, 3


# The rank of an event of a is 2j where j events of b came before it, 2j + 1 where it ties with event j of b. So event j
# of b has rank 2j + 1, and the order of all events is the order of ranks.


class Query(NamedTuple):
    """The query, and the outcomes of segments of a by the ranks of their ends.

    `closed` has the outcome of a segment by the ranks of its two ends, `opened` that of an open segment by the rank of
    its start and the number of events of b so far; both are filled on demand. `future` has the outcome of segments that
    have not opened yet by the number of events of b.
    """

    outer: int
    inner: int
    relations: int
    segments_a: int
    segments_b: int
    closed: I8
    opened: I8
    future: I8


@compiled
def make_query(pair: PairInput) -> Query:
    """Return the query; ALL is replaced by the number of segments."""
    size_b, relations = len(pair.times_b), pair.relations
    segments_a, segments_b = len(pair.times_a) // 2, size_b // 2
    closed = np.zeros((2 * size_b + 1, 2 * size_b + 1), np.int8)
    opened = np.zeros((2 * size_b + 1, size_b + 1), np.int8)
    future = np.zeros(size_b + 1, np.int8)
    outer = pair.outer if pair.outer > 0 else segments_a
    inner = pair.inner if pair.inner > 0 else segments_b
    for j in range(size_b + 1):
        future[j] = _future_outcome(inner, relations, segments_b, j)
    return Query(outer, inner, relations, segments_a, segments_b, closed, opened, future)


@compiled
def closed_outcome(inner: int, relations: int, segments_b: int, begin: int, end: int) -> int:
    """Return SURELY if a segment between these ranks is satisfied, else NEVER."""
    count = 0
    for y in range(segments_b):
        if relation(begin, end, 4 * y + 1, 4 * y + 3) & relations:
            count += 1
    return SURELY if count >= inner else NEVER


@compiled
def open_outcome(inner: int, relations: int, segments_b: int, begin: int, j: int) -> int:
    """Return the outcome of a segment open since rank `begin` when j events of b have happened."""
    may, must = 0, 0
    for y in range(segments_b):
        possible = _possible(begin, 2 * j, 4 * y + 1, 4 * y + 3)
        may += 1 if possible & relations else 0
        must += 1 if not possible & ~relations else 0
    return SURELY if must >= inner else (MAYBE if may >= inner else NEVER)


@compiled
def _possible(begin: int, now: int, y: int, y_end: int) -> int:
    """Return the relations that a segment open since `begin` can still have to one from y to y_end, at rank `now`."""
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
def _future_outcome(inner: int, relations: int, segments_b: int, j: int) -> int:
    """Return the outcome of a segment that has not opened yet when j events of b have happened."""
    past = min(j // 2, segments_b)
    now = j % 2 if past < segments_b else 0
    later = segments_b - past - now
    may, must = 0, 0
    if relations & PRECEDED_BY:
        may, must = past, past
    if relations & FUTURE_TO_OPEN:
        may += now
    if not FUTURE_TO_OPEN & ~relations:
        must += now
    if relations:
        may += later
    if relations == ANY:
        must += later
    return SURELY if must >= inner else (MAYBE if may >= inner else NEVER)
