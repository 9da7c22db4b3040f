"""History for `fit_delays`: from the rows of streams to the passes of things through the components of a SEQUENCE.

Events that fit a component by themselves are taken apart by the columns that WHERE equates. The positive ones of a part
are read in the order of time: one that stands later in the sequence than the last, within WITHIN of the first, goes on
with the same *pass*, and any other begins the next. Of several at one instant one goes on, or begins.

This is a guess. Where a thing passes the same reader again before it is read elsewhere, the pass begins anew; where the
end of one pass and the beginning of the next are lost, the two become one, unless WITHIN keeps them apart. What WHERE
asks of several components together, but for equal columns, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64
from anabranch.columns.conditions import Relations, holds
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.errors import DataError, Finding
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.query import BoundComponent

#: Parts of history besides those numbered from 0: that of what is equated with nothing, and none.
EVERYWHERE, NOWHERE = -1, -2


@dataclass(frozen=True, slots=True)
class Watch:
    """What was seen of a negative component while the passes went from the positive before it to the one after it.

    Attributes
    ----------
    seen : its delays, where it was read
    unseen : how long it was waited for, where it was not
    """

    seen: F64
    unseen: F64


@dataclass(frozen=True, slots=True)
class History:
    """Passes of things through the components of a SEQUENCE.

    Attributes
    ----------
    labels : the components, as they are written
    positives : the numbers of the positive ones
    times : (passes, positives) array, NaN where a component was not read
    watches : by the number of a negative component; those ahead of the first positive are not watched
    within : how long a pass lasts at most, None where that is not bounded
    ending_open : whether the last component may be missing
    """

    labels: tuple[str, ...]
    positives: tuple[int, ...]
    times: F64
    watches: Mapping[int, Watch]
    within: float | None = None
    ending_open: bool = False


@dataclass(frozen=True, slots=True)
class _Events:
    """Events that fit a component: the part of history that each belongs to, and its time."""

    part: I64
    time: F64


def objection(analysis: SequenceAnalysis) -> Finding | None:
    """What stands against learning from the history of a query."""
    query = analysis.query
    if len(analysis.disjuncts) != 1:
        message = f"{query.name} has several alternatives (OR), and delays are learned of one"
        return Finding("alternatives", message, "learn from a query with one of them", query.span)
    return analysis.objection()


def make_history(analysis: SequenceAnalysis, tables: Mapping[str, pa.Table], relations: Relations) -> History:
    """Read passes from the rows of streams.

    Parameters
    ----------
    analysis : of a query with one disjunct
    tables : the rows of its streams, by lower-case name
    relations : the rows of the relations that its conditions name, by lower-case name

    Raises
    ------
    DataError
        One line, where there is nothing to learn from.
    """
    query = analysis.query
    events = _events(analysis, tables, relations)
    positives = analysis.positives
    part, times = _passes([events[number] for number in positives], query.within)
    if not len(times):
        raise DataError(f"{query.name}: no event fits a component, so there is nothing to learn from")
    watches = {
        number: _watch(events[number], part, since, until)
        for number, since, until in _watched(analysis, times, max(each.time.max(initial=0.0) for each in events))
    }
    labels = tuple(component.label for component in query.components)
    return History(labels, positives, times, watches, query.within, query.ending_open)


# ---------------------------------------------------------------- events


def _events(analysis: SequenceAnalysis, tables: Mapping[str, pa.Table], relations: Relations) -> list[_Events]:
    """The events of each component; they belong to the same part where their keys are equal."""
    query = analysis.query
    times = _times({name: table[_time_column(query.components, name)] for name, table in tables.items()})
    found = [
        _fitting(analysis, number, tables[each.stream.name.lower()], times[each.stream.name.lower()], relations)
        for number, each in enumerate(query.components)
    ]
    keyed = [number for number, each in enumerate(query.components) if analysis.key_columns(each.name) is not None]
    columns = [
        pa.chunked_array([found[number][0][place] for number in keyed]) for place in range(len(analysis.key))
    ]  # fmt: skip
    codes, _ = encode_tuples(columns, sum(len(found[number][1]) for number in keyed))
    ends = np.cumsum([len(found[number][1]) for number in keyed])
    parts = dict(zip(keyed, np.split(codes.astype(np.int64), ends[:-1]), strict=True))
    return [_Events(parts.get(n, np.full(len(time), EVERYWHERE)), time) for n, (_, time) in enumerate(found)]


def _time_column(components: Sequence[BoundComponent], stream: str) -> str:
    return next(each.stream.time.name for each in components if each.stream.name.lower() == stream)


def _times(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, F64]:
    """Times as numbers since the first of all, in seconds where they are timestamps."""
    clocks = {pa.types.is_timestamp(column.type) for column in columns.values()}
    if len(clocks) > 1:
        raise DataError("the times of some streams are timestamps, and those of others are numbers")
    clock = clocks.pop()
    numbers = {
        name: flat(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()) if clock else column).to_numpy()
        for name, column in columns.items()
    }
    first = min((values.min() for values in numbers.values() if len(values)), default=0)
    return {name: (values - first) / (1e6 if clock else 1.0) for name, values in numbers.items()}


def _fitting(
    analysis: SequenceAnalysis, number: int, table: pa.Table, times: F64, relations: Relations
) -> tuple[list[pa.Array], F64]:
    """The key columns and times of the events that fit a component by themselves; a NULL equals nothing."""
    component = analysis.query.components[number]
    columns = {name.lower(): flat(column) for name, column in zip(table.column_names, table.columns, strict=True)}
    fits = holds(analysis.disjuncts[0].own[number], columns, relations, table.num_rows)
    names = analysis.key_columns(component.name) or ()
    for name in names:
        fits &= columns[name].is_valid().to_numpy(zero_copy_only=False)
    keys = []
    for name, place in zip(names, analysis.key, strict=False):
        column = columns[name].filter(pa.array(fits))
        wide = analysis.is_compared_as_double(place)
        keys.append(pc.cast(column, pa.float64(), safe=False) if wide else column)
    return keys, times[fits]


# ---------------------------------------------------------------- passes


def _passes(events: Sequence[_Events], within: float | None) -> tuple[I64, F64]:
    """The part of each pass, and the times of its events: NaN where a component was not read."""
    part = np.concatenate([each.part for each in events])
    time = np.concatenate([each.time for each in events])
    number = np.repeat(np.arange(len(events)), [len(each.time) for each in events])
    order = np.lexsort((number, time, part))
    longest = np.inf if within is None else within
    parts: list[int] = []
    rows: list[list[float]] = []
    at = (NOWHERE, 0.0, 0.0, 0)
    for own, t, numbers in _instants(part[order], time[order], number[order]):
        last_part, first, last, before = at
        further = [each for each in numbers if each > before]
        if own == last_part and further and t > last and t - first <= longest:
            rows[-1][further[0]] = t
            at = (own, first, t, further[0])
        else:
            parts.append(own)
            rows.append([np.nan] * len(events))
            rows[-1][numbers[0]] = t
            at = (own, t, t, numbers[0])
    return np.array(parts, np.int64), np.array(rows, np.float64).reshape(-1, len(events))


def _instants(part: I64, time: F64, number: I64) -> Iterator[tuple[int, float, list[int]]]:
    """The components of which there are events at an instant, in their order; events are sorted."""
    begins = np.flatnonzero((np.diff(part, prepend=NOWHERE) != 0) | (np.diff(time, prepend=-1.0) != 0))
    for begin, end in pairwise([*begins.tolist(), len(part)]):
        yield int(part[begin]), float(time[begin]), number[begin:end].tolist()


# ---------------------------------------------------------------- negatives


def _watched(analysis: SequenceAnalysis, times: F64, end: float) -> Iterator[tuple[int, F64, F64]]:
    """Each negative that can be watched, and from when until when in each pass; NaN where it cannot be told."""
    query, positives = analysis.query, analysis.positives
    for number, component in enumerate(query.components):
        before = sum(each < number for each in positives)
        if not component.negative or before == 0:
            continue
        if before < len(positives):
            yield number, times[:, before - 1], times[:, before]
        elif query.within is not None:
            # The window closes at a time of its own, or history ends before.
            yield number, times[:, before - 1], np.minimum(times[:, 0] + query.within, end)


def _watch(events: _Events, part: I64, since: F64, until: F64) -> Watch:
    """The first event of each pass between two instants, or how long there was none."""
    known = (until > since).nonzero()[0]
    everywhere = len(events.part) > 0 and events.part[0] == EVERYWHERE
    own = np.full(len(known), EVERYWHERE) if everywhere else part[known]
    n = len(known)
    # Events and queries in one line: what follows a query is the first event after it.
    line_part, line_time = np.concatenate([own, events.part]), np.concatenate([since[known], events.time])
    order = np.lexsort((np.arange(len(line_part)) < n, line_time, line_part))
    at = np.where(order >= n, np.arange(len(order)), len(order))
    following = np.append(np.minimum.accumulate(at[::-1])[::-1], len(order))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    found = following[place[:n]]
    event = np.append(order, 0)[found]
    delay = np.where((found < len(order)) & (line_part[event] == own), line_time[event] - since[known], np.inf)
    length = until[known] - since[known]
    return Watch(delay[delay < length], length[delay >= length])
