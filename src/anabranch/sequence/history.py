"""Converts the rows of streams to passes through the components of a SEQUENCE: the history for `fit_delays`.

Events that satisfy the conditions on a component alone are grouped by the columns that WHERE equates. The events of
positive components in a group are read in order of time. An event continues the current *pass* if its component is
later in the sequence than that of the last event, and it is within WITHIN of the first. Any other event begins a new
pass. Of several events at one instant, one is used.

This is a heuristic. If a tag passes the same reader again before another reader, a new pass begins. If the end of one
pass and the beginning of the next are lost, the two become one pass, unless WITHIN separates them. Conditions on
several components are ignored, except equal columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.columns.conditions import Relations, holds
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.errors import DataError, Finding
from anabranch.sequence.analysis import SequenceAnalysis
from anabranch.sequence.groups import as_compared
from anabranch.sequence.query import BoundComponent

#: Special groups; the others are numbered from 0. Events without equated columns belong to every group; none.
EVERYWHERE, NOWHERE = -1, -2


@dataclass(frozen=True, slots=True)
class Watch:
    """The observations of a negative component between the positive components before and after it, over all passes.

    Attributes
    ----------
    seen : its delays in the passes in which it was read
    unseen : the length of the observed interval in the others
    lengths : the length of the interval in the passes in which it was read
    """

    seen: F64
    unseen: F64
    lengths: F64 = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class History:
    """Passes through the components of a SEQUENCE.

    Attributes
    ----------
    labels : the components, as written
    positives : the numbers of the positive components
    times : (passes, positives) array, NaN if a component was not read
    watches : by the number of a negative component; those before the first positive are not observed
    within : the longest duration of a pass, None if it is not bounded
    ending_open : whether the last component may be missing
    repeated : how many events were of the same component as the one before in their pass
    ambiguous : how many other events could have continued a pass in several ways, or came too early
    """

    labels: tuple[str, ...]
    positives: tuple[int, ...]
    times: F64
    watches: Mapping[int, Watch]
    within: float | None = None
    ending_open: bool = False
    repeated: int = 0
    ambiguous: int = 0


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of a component: the group and the time of each event."""

    group: I64
    time: F64


def objection(analysis: SequenceAnalysis) -> Finding | None:
    """Why delays cannot be learned from the history of a query; None if they can."""
    query = analysis.query
    if len(analysis.disjuncts) != 1:
        message = f"{query.name} has several alternatives (OR), but delays can be learned from one only"
        return Finding("alternatives", message, "learn from a query with one of them", query.span)
    run = next((component for component in query.components if component.run), None)
    if run is not None:
        message = f"{run.text} is a run of any number of events, but delays are learned between single events"
        return Finding("run-history", message, f"learn from a query with {run.label} instead of {run.text}", run.span)
    return analysis.objection()


def make_history(analysis: SequenceAnalysis, tables: Mapping[str, pa.Table], relations: Relations) -> History:
    """Find the passes in the rows of streams.

    Parameters
    ----------
    analysis : of a query with one disjunct
    tables : the rows of its streams, by lower-case name
    relations : the rows of the relations that its conditions name, by lower-case name

    Raises
    ------
    DataError
        If no event satisfies the conditions on a component.
    """
    query = analysis.query
    events = _events(analysis, tables, relations)
    positives = analysis.positives
    group, times, repeated, ambiguous = _passes([events[number] for number in positives], query.within)
    if not len(times):
        raise DataError(f"{query.name}: no event fits a component, so there is nothing to learn from")
    watches = {
        number: _watch(events[number], group, since, until)
        for number, since, until in _watched(
            analysis, times, max(component.time.max(initial=0.0) for component in events)
        )
    }
    labels = tuple(component.label for component in query.components)
    return History(labels, positives, times, watches, query.within, query.ending_open, repeated, ambiguous)


# ---------------------------------------------------------------- events


def _events(analysis: SequenceAnalysis, tables: Mapping[str, pa.Table], relations: Relations) -> list[_Events]:
    """The events of each component; events with equal keys are in the same group."""
    query = analysis.query
    times = _times({name: table[_time_column(query.components, name)] for name, table in tables.items()})
    streams = [component.stream.name.lower() for component in query.components]
    fitting = [
        _fitting(analysis, number, tables[stream], times[stream], relations) for number, stream in enumerate(streams)
    ]
    keyed = [
        number for number, component in enumerate(query.components) if analysis.key_columns(component.name) is not None
    ]
    columns = [
        pa.chunked_array([fitting[number][0][index] for number in keyed]) for index in range(len(analysis.key))
    ]  # fmt: skip
    codes, _ = encode_tuples(columns, sum(len(fitting[number][1]) for number in keyed))
    ends = np.cumsum([len(fitting[number][1]) for number in keyed])
    groups = dict(zip(keyed, np.split(codes.astype(np.int64), ends[:-1]), strict=True))
    return [_Events(groups.get(n, np.full(len(time), EVERYWHERE)), time) for n, (_, time) in enumerate(fitting)]


def _time_column(components: Sequence[BoundComponent], stream: str) -> str:
    return next(component.stream.time.name for component in components if component.stream.name.lower() == stream)


def _times(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, F64]:
    """Times as numbers since the earliest time of all streams, in seconds for timestamps."""
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
    """The key columns and times of the events that satisfy the conditions on a component, without NULL in the key."""
    component = analysis.query.components[number]
    columns = {name.lower(): flat(column) for name, column in zip(table.column_names, table.columns, strict=True)}
    fits = holds(analysis.disjuncts[0].own[number], columns, relations, table.num_rows)
    names = analysis.key_columns(component.name) or ()
    for name in names:
        fits &= columns[name].is_valid().to_numpy(zero_copy_only=False)
    keys = []
    for name, equal_columns in zip(names, analysis.key, strict=False):
        column = columns[name].filter(pa.array(fits))
        keys.append(as_compared(column, analysis.is_compared_as_double(equal_columns)))
    return keys, times[fits]


# ---------------------------------------------------------------- passes


def _passes(events: Sequence[_Events], within: float | None) -> tuple[I64, F64, int, int]:
    """The group of each pass, the times of its events (NaN if a component was not read), and counts of doubtful events.

    The counts are `repeated` and `ambiguous` of the history.
    """
    group = np.concatenate([component.group for component in events])
    time = np.concatenate([component.time for component in events])
    number = np.repeat(np.arange(len(events)), [len(component.time) for component in events])
    order = np.lexsort((number, time, group))
    longest = np.inf if within is None else within
    groups: list[int] = []
    rows: list[list[float]] = []
    # The current pass: its group, the times of its first and last event, and the component of the last.
    current = (NOWHERE, 0.0, 0.0, 0)
    repeated = ambiguous = 0
    for instant_group, t, numbers in _instants(group[order], time[order], number[order]):
        current_group, first, last, last_number = current
        further = [candidate for candidate in numbers if candidate > last_number]
        continues = instant_group == current_group and t > last and t - first <= longest
        repeated += continues and not further and last_number in numbers
        is_early = not further and last_number not in numbers and last_number < len(events) - 1
        ambiguous += continues and (len(set(further)) > 1 or is_early)
        if continues and further:
            rows[-1][further[0]] = t
            current = (instant_group, first, t, further[0])
        else:
            groups.append(instant_group)
            rows.append([np.nan] * len(events))
            rows[-1][numbers[0]] = t
            current = (instant_group, t, t, numbers[0])
    times = np.array(rows, np.float64).reshape(-1, len(events))
    return np.array(groups, np.int64), times, repeated, ambiguous


def _instants(group: I64, time: F64, number: I64) -> Iterator[tuple[int, float, list[int]]]:
    """The group, the time and the components of the events at each instant; the events are sorted by these."""
    begins = np.flatnonzero((np.diff(group, prepend=NOWHERE) != 0) | (np.diff(time, prepend=-1.0) != 0))
    for begin, end in pairwise([*begins.tolist(), len(group)]):
        yield int(group[begin]), float(time[begin]), number[begin:end].tolist()


# ---------------------------------------------------------------- negatives


def _watched(analysis: SequenceAnalysis, times: F64, end: float) -> Iterator[tuple[int, F64, F64]]:
    """Each negative component that is observed, and the start and end of its interval in each pass; NaN if unknown."""
    query, positives = analysis.query, analysis.positives
    for number, component in enumerate(query.components):
        before = sum(positive < number for positive in positives)
        if not component.negative or before == 0:
            continue
        if before < len(positives):
            yield number, times[:, before - 1], times[:, before]
        elif query.within is not None:
            # The interval ends when the window closes, or at the end of the history.
            yield number, times[:, before - 1], np.minimum(times[:, 0] + query.within, end)


def _watch(events: _Events, group: I64, since: F64, until: F64) -> Watch:
    """The delay to the first event in the interval of each pass, or the length of the interval if there is none."""
    known = (until > since).nonzero()[0]
    everywhere = len(events.group) > 0 and events.group[0] == EVERYWHERE
    interval_group = np.full(len(known), EVERYWHERE) if everywhere else group[known]
    n = len(known)
    # Starts of intervals and events are sorted together: the first event after a start is the next event in that order.
    all_groups, all_times = np.concatenate([interval_group, events.group]), np.concatenate([since[known], events.time])
    order = np.lexsort((np.arange(len(all_groups)) < n, all_times, all_groups))
    event_rank = np.where(order >= n, np.arange(len(order)), len(order))
    next_event_rank = np.append(np.minimum.accumulate(event_rank[::-1])[::-1], len(order))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    next_rank = next_event_rank[rank[:n]]
    event = np.append(order, 0)[next_rank]
    is_same_group = (next_rank < len(order)) & (all_groups[event] == interval_group)
    delay = np.where(is_same_group, all_times[event] - since[known], np.inf)
    length = until[known] - since[known]
    seen = delay < length
    return Watch(delay[seen], length[~seen], length[seen])
