"""The classes of open segments: segments with the same possible outcomes are one class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anabranch.arrays import I8, I32, I64
from anabranch.compiled import assign, compiled

_PRECEDES, _MEETS, _OVERLAPS, _STARTS, _DURING, _FINISHES, _EQUALS = range(7)
_PRECEDED_BY, _MET_BY, _OVERLAPPED_BY, _STARTED_BY, _CONTAINS, _FINISHED_BY = range(7, 13)


class Classes(NamedTuple):
    """The classes of open segments, as tables.

    A table is for the segments of one entity that are compared with the same segments of another one. Row x of it is
    for open segments after x events of the other entity.

    Attributes
    ----------
    first_row : the first row of the table of each segment of the first entity, one pair after the other
    of_pair : for each pair, the index in `first_row` of its first segment
    step : 1; or 0 if all segments of a pair have the same table, and `first_row` has one entry for each pair
    count : the number of classes of each row
    after : for each class, the class in the next row
    hit, hit_tie : whether the segment is a hit if it closes now, or together with the next event
    begun, begun_tie : the class of a segment that opens now, or together with the next event
    """

    first_row: Any
    of_pair: Any
    step: Any
    count: Any
    after: Any
    hit: Any
    hit_tie: Any
    begun: Any
    begun_tie: Any


@compiled
def relation_of(start: int, end: int, other_start: int, other_end: int) -> int:
    """The number of the simple relation that holds between an interval and another one."""
    if end <= other_start:
        return _PRECEDES if end < other_start else _MEETS
    if start >= other_end:
        return _PRECEDED_BY if start > other_end else _MET_BY
    if start < other_start:
        return _OVERLAPS if end < other_end else _FINISHED_BY if end == other_end else _CONTAINS
    if start == other_start:
        return _STARTS if end < other_end else _EQUALS if end == other_end else _STARTED_BY
    return _DURING if end < other_end else _FINISHES if end == other_end else _OVERLAPPED_BY


@compiled
def _is_related(start: int, end: int, partners: I64, least: int, most: int, relations: int) -> bool:
    """Whether one of the relations holds between a segment and `least` to `most` of its partners.

    Positions are relative to the other entity's events: 2x is after x of them, 2x - 1 is at the same time as the x-th.
    """
    n_segments = len(partners) - 1
    before, after = min(n_segments, start // 4), max(0, n_segments - (end + 3) // 4)
    first, last = before, n_segments - after - 1
    count = partners[before] * ((relations >> _PRECEDED_BY) & 1)
    count += (partners[n_segments] - partners[last + 1]) * ((relations >> _PRECEDES) & 1)
    if first <= last and partners[first] < partners[first + 1]:
        count += (relations >> relation_of(start, end, 4 * first + 1, 4 * first + 3)) & 1
    if first < last:  # the segments between the first and the last one lie inside
        count += (partners[last] - partners[first + 1]) * ((relations >> _CONTAINS) & 1)
        if partners[last] < partners[last + 1]:
            count += (relations >> relation_of(start, end, 4 * last + 1, 4 * last + 3)) & 1
    return least <= count <= most


@compiled
def segment_classes(
    partners: I64, least: int, most: int, relations: int, hit_is_failure: bool
) -> tuple[I32, I32, I8, I8, I32, I32]:
    """The classes of open segments, for each number of events of the other entity that have happened.

    The start of a segment matters only for its possible outcomes. Starts with the same outcomes are one class. Two
    classes suffice for most relations, for any number of events. They are computed from the last event backwards.

    Parameters
    ----------
    partners : how many of the first x segments of the other entity are compared with the segment; for x from 0 on
    least, most : the numbers of these segments to which a relation must hold
    relations : a bit for each simple relation
    hit_is_failure : whether segments that do not satisfy this are the hits (for ALL)

    Returns
    -------
    The columns of `Classes` from `count` on.
    """
    n_events = 2 * (len(partners) - 1)
    n_starts = 2 * n_events + 1
    classes = np.zeros(n_starts, np.int64)
    later = np.zeros(n_starts, np.int64)
    width = 4  # most queries need no more classes
    after = np.zeros((n_events + 1, width), np.int32)
    hit = np.zeros((n_events + 1, width), np.int8)
    hit_tie = np.zeros((n_events + 1, width), np.int8)
    begun = np.zeros(n_events + 1, np.int32)
    begun_tie = np.zeros(n_events + 1, np.int32)
    counts = np.zeros(n_events + 1, np.int32)
    n_later = 1
    for happened in range(n_events, -1, -1):
        is_last = happened == n_events
        class_numbers = np.full(4 * n_later, -1, np.int64)
        count = 0
        for start in range(2 * happened + 1):
            hits_now = _is_related(start, 2 * happened, partners, least, most, relations) != hit_is_failure
            hits_tied = (
                not is_last and _is_related(start, 2 * happened + 1, partners, least, most, relations) != hit_is_failure
            )
            next_class = 0 if is_last else later[start]
            signature = (2 * hits_now + hits_tied) * n_later + next_class
            if class_numbers[signature] < 0:
                if count == width:
                    after, hit, hit_tie = _widened(after), _widened(hit), _widened(hit_tie)
                    width *= 2
                class_numbers[signature] = count
                after[happened, count] = next_class
                hit[happened, count] = hits_now
                hit_tie[happened, count] = hits_tied
                count += 1
            classes[start] = class_numbers[signature]
        begun[happened] = classes[2 * happened]
        if happened > 0:
            begun_tie[happened - 1] = classes[2 * happened - 1]
        assign(later, classes)
        n_later = counts[happened] = count
    widest = counts.max()
    return counts, after[:, :widest].copy(), hit[:, :widest].copy(), hit_tie[:, :widest].copy(), begun, begun_tie


@compiled
def _widened(table: Any) -> Any:
    """A copy of the table with twice as many columns."""
    wide = np.zeros((table.shape[0], 2 * table.shape[1]), table.dtype)
    assign(wide, table)
    return wide
