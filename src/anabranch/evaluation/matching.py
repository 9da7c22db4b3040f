"""Which answers and true events are about the same group and close in time, and which answers form one episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import F64, I64, Bools

WITHIN = 30.0
"""The default tolerance between an answer and an event, as in the experiments of Lahar (section 4.2).

In the unit of the times; seconds for timestamps.
"""


class Spans(NamedTuple):
    """What answers or events are about: the code of a group, and the first and last instant."""

    groups: I64
    starts: F64
    ends: F64

    def take(self, rows: I64 | Bools) -> Spans:
        """The chosen ones."""
        return Spans(self.groups[rows], self.starts[rows], self.ends[rows])


def at_instants(groups: I64, times: F64) -> Spans:
    """The spans of rows about single instants."""
    return Spans(groups, times, times)


# ---------------------------------------------------------------- groups


def table_groups(answers: pa.Table, truth: pa.Table, by: str | Sequence[str]) -> tuple[I64, I64]:
    """Return the groups of answers and of events as numbers, by columns that both tables have."""
    names = [by] if isinstance(by, str) else by
    ours, theirs = ({name: table[name] for name in names} for table in (answers, truth))
    return group_codes(ours, theirs, answers.num_rows, truth.num_rows)


def group_codes(
    ours: Mapping[str, pa.ChunkedArray], theirs: Mapping[str, pa.ChunkedArray], n_ours: int, n_theirs: int
) -> tuple[I64, I64]:
    """Return the groups of rows of two tables as numbers; equal groups have equal numbers.

    Both have the same columns; without any, all rows are one group.
    """
    codes = np.zeros(n_ours + n_theirs, dtype=np.int64)
    for name in ours:
        column = _codes(ours[name], theirs[name])
        # Numbered again after each column, so that codes stay small.
        codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)[1].astype(np.int64)
    return codes[:n_ours], codes[n_ours:]


def _codes(one: pa.ChunkedArray, other: pa.ChunkedArray) -> I64:
    """Return the values of two columns, one after the other, as codes; different types are compared as text.

    Codes follow the order of the values, so that episodes and folds do not depend on the order of the rows.
    """
    one, other = (_decoded(column) for column in (one, other))
    if one.type != other.type:
        common = _common_type(one.type, other.type)
        one, other = (pc.cast(column, common, safe=False) for column in (one, other))
    whole = pa.chunked_array([*one.chunks, *other.chunks], one.type)
    encoded = pc.dictionary_encode(whole, null_encoding="encode").combine_chunks()
    ranks = np.empty(len(encoded.dictionary), dtype=np.int64)
    ranks[np.asarray(pc.array_sort_indices(encoded.dictionary))] = np.arange(len(ranks))
    return ranks[np.asarray(encoded.indices)]


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared; files of different formats have different ones."""
    types = pa.types
    for accepted, common in (
        (types.is_integer, pa.int64()),
        (lambda kind: types.is_integer(kind) or types.is_floating(kind), pa.float64()),
        (types.is_timestamp, pa.timestamp("us", "UTC")),
    ):
        if accepted(one) and accepted(other):
            return common
    return pa.string()


# ---------------------------------------------------------------- time


def have_near(rows: Spans, others: Spans, within: float) -> Bools:
    """Return which rows have another one of the same group that overlaps or is at most `within` away."""
    if not len(others.groups):
        return np.zeros(len(rows.groups), dtype=np.bool_)
    others = by_start(others)
    latest = _latest_ends(others)
    # The last of the others that begins before the row ends; of all up to it, the latest end decides.
    last = _count_up_to(others, rows.groups, rows.ends + within) - 1
    same = (last >= 0) & (others.groups[last] == rows.groups)
    near: Bools = same & (latest[last] >= rows.starts - within)
    return near


def episodes(rows: Spans, gap: float) -> I64:
    """Return the number of the episode of each row: rows of a group that overlap, or follow within `gap`, share one."""
    order = np.lexsort((rows.starts, rows.groups))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(_begins(rows.take(order), gap)) - 1
    return numbers


def merged(rows: Spans, gap: float) -> Spans:
    """Return the episodes of rows, each from its first to its last instant."""
    rows = by_start(rows)
    begins = np.flatnonzero(_begins(rows, gap))
    ends = np.append(begins[1:], len(rows.groups)) - 1
    return Spans(rows.groups[begins], rows.starts[begins], _latest_ends(rows)[ends[: len(begins)]])


def by_start(rows: Spans) -> Spans:
    """Return the rows by group and start; as they are, if they are in this order."""
    groups, starts = rows.groups, rows.starts
    later = groups[1:] > groups[:-1]
    if (later | ((groups[1:] == groups[:-1]) & (starts[1:] >= starts[:-1]))).all():
        return rows
    return rows.take(np.lexsort((starts, groups)))


def _begins(rows: Spans, gap: float) -> Bools:
    """Return which rows, by group and start, begin an episode."""
    begins = np.ones(len(rows.groups), dtype=np.bool_)
    same_group = rows.groups[1:] == rows.groups[:-1]
    begins[1:] = ~(same_group & (rows.starts[1:] <= _latest_ends(rows)[:-1] + gap))
    return begins


def _latest_ends(rows: Spans) -> F64:
    """Return, for each of the rows by group and start, the latest end of its group so far."""
    if ((rows.ends[1:] >= rows.ends[:-1]) | (rows.groups[1:] > rows.groups[:-1])).all():
        return rows.ends
    by_end = np.lexsort((rows.ends, rows.groups))
    rank = np.empty(len(by_end), dtype=np.int64)
    rank[by_end] = np.arange(len(by_end))
    # All ranks of a group are above those of the groups before it, so the maximum starts anew with each group.
    latest: F64 = rows.ends[by_end[np.maximum.accumulate(rank)]]
    return latest


def _count_up_to(rows: Spans, groups: I64, values: F64) -> I64:
    """Return how many of the rows, by group and start, are at most each (group, value)."""
    distinct = np.unique(rows.starts)
    # Ranks instead of values, so that a group and a value are one exact number.
    ranks, row_ranks = (np.searchsorted(distinct, column, side="right") for column in (values, rows.starts))
    width = len(distinct) + 1
    return np.searchsorted(rows.groups * width + row_ranks, groups * width + ranks, side="right")
