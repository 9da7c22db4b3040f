"""Tasks of clustered files, which have all rows of their values of some columns.

*Statistics* show whether Parquet files are clustered by a column. A task has an interval of values. It reads every row
group that can have such values, and drops the other rows. So a row belongs to exactly one task, whatever the files are.
If the values of the row groups hardly overlap, hardly any of them is read twice; otherwise the files are not clustered.

*CLUSTERED BY* declares that no value is in two files. Then tasks are files, and `value_hashes` and `in_two_files` check
the declaration.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.arrays import U64, Bools
from anabranch.columns.dictionary import encode_tuples, flat
from anabranch.columns.hashing import hash_tuples
from anabranch.files.reader import UnreadableFile, readable

#: Files whose tasks would read more than this many times their rows are not clustered.
_MOST_READ = 1.25


@dataclass(frozen=True, slots=True)
class Interval:
    """The values of a column that are above `above` and at most `last`; None is no bound."""

    column: str
    above: Any
    last: Any

    def rows_of(self, table: pa.Table) -> pa.Table:
        """The rows of a table with such values."""
        inside = np.concatenate([np.zeros(0, np.bool_), *map(self._holds, table[self.column].chunks)])
        if inside.all():
            return table
        chosen = np.flatnonzero(inside)
        # The rows of clustered files are mostly sorted: then no row is copied.
        if len(chosen) and chosen[-1] - chosen[0] + 1 == len(chosen):
            return table.slice(int(chosen[0]), len(chosen))
        return table.take(pa.array(chosen))

    def _holds(self, chunk: pa.Array) -> Bools:
        """Which values of an array are in the interval; each distinct value of codes is compared once."""
        if pa.types.is_dictionary(chunk.type):
            of_rows: Bools = self._holds(chunk.dictionary)[chunk.indices.to_numpy()]
            return of_rows
        inside = np.ones(len(chunk), np.bool_)
        if self.above is not None:
            inside &= pc.greater(chunk, pa.scalar(self.above, chunk.type)).to_numpy(zero_copy_only=False)
        if self.last is not None:
            inside &= pc.less_equal(chunk, pa.scalar(self.last, chunk.type)).to_numpy(zero_copy_only=False)
        return inside


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group, and the bounds of its values."""

    path: str
    number: int
    n_rows: int
    low: Any
    high: Any

    def meets(self, above: Any, last: Any) -> bool:
        """Whether it can have values above a value and at most another; None is no bound."""
        return (above is None or self.high > above) and (last is None or self.low <= last)


def clustered_tasks(paths: Sequence[str], column: str, n_tasks: int) -> list[pa.Table] | None:
    """At most `n_tasks` tasks with about the same number of rows, and all rows of their values of a column.

    None if the files are not clustered by the column, or if their statistics do not show it.
    """
    groups: list[_RowGroup] = []
    for path in paths:
        found = _row_groups(path, column)
        if found is None:
            return None
        groups += found
    if len({type(bound) for group in groups for bound in (group.low, group.high)}) != 1:
        return None
    bounds = [None, *_cuts(groups, n_tasks), None]
    chosen = [[group for group in groups if group.meets(*interval)] for interval in pairwise(bounds)]
    n_read = sum(group.n_rows for of_task in chosen for group in of_task)
    if len(chosen) < 2 or n_read > _MOST_READ * sum(group.n_rows for group in groups):
        return None
    return [_task(of_task, column, *interval) for of_task, interval in zip(chosen, pairwise(bounds), strict=True)]


def tasks_of_files(paths: Sequence[str], n_tasks: int) -> list[pa.Table]:
    """At most `n_tasks` tasks of whole files, with about the same number of bytes."""
    sizes = np.cumsum([os.path.getsize(path) for path in paths])
    last = (sizes - 1) * n_tasks // max(1, sizes[-1])
    groups = ([path for path, of_task in zip(paths, last, strict=True) if of_task == task] for task in range(n_tasks))
    return [pa.table({"path": pa.array(group, pa.string())}) for group in groups if group]


def value_hashes(table: pa.Table, columns: Sequence[str]) -> U64:
    """The hashes of the distinct values of some columns, without NULL."""
    _, distinct = encode_tuples([table[name] for name in columns], table.num_rows)
    distinct = distinct.drop_null()
    return np.unique(hash_tuples([flat(column) for column in distinct.columns], distinct.num_rows))


def in_two_files(hashes: Sequence[U64]) -> tuple[int, int] | None:
    """Two files that have a hash in common, by their numbers; None if there are none."""
    everything = np.concatenate([np.zeros(0, np.uint64), *hashes])
    file = np.repeat(np.arange(len(hashes)), [len(of_file) for of_file in hashes])
    order = np.argsort(everything, kind="stable")
    again = np.flatnonzero(everything[order[1:]] == everything[order[:-1]])
    return (int(file[order[again[0]]]), int(file[order[again[0] + 1]])) if len(again) else None


def _cuts(groups: Sequence[_RowGroup], n_tasks: int) -> list[Any]:
    """The last values of all tasks but the last one."""
    in_order = sorted(groups, key=lambda group: group.high)
    n_before = np.cumsum([group.n_rows for group in in_order])
    wanted = n_before[-1] * np.arange(1, n_tasks) / n_tasks
    cuts = dict.fromkeys(in_order[index].high for index in np.searchsorted(n_before, wanted))
    return [cut for cut in cuts if cut < in_order[-1].high]


def _row_groups(path: str, column: str) -> list[_RowGroup] | None:
    """The row groups of a file that have rows; None if statistics do not bound their values, or some are NULL."""
    try:
        with readable():
            metadata = pq.read_metadata(path)
            index = _column_index(metadata, column)
            if index is None:
                return None
            groups = []
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                statistics = group.column(index).statistics
                if not group.num_rows:
                    continue
                if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
                    return None
                groups.append(_RowGroup(path, number, group.num_rows, statistics.min, statistics.max))
            return groups
    except UnreadableFile:  # the run names the file
        return None


def _column_index(metadata: pq.FileMetaData, column: str) -> int | None:
    """The index of a column of integers or texts, whose order is the same everywhere; None if it is another one."""
    for index in range(metadata.num_columns):
        found = metadata.schema.column(index)
        if found.path.lower() == column.lower():
            kind = metadata.schema.to_arrow_schema().field(found.path).type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            return index if pa.types.is_string(kind) or pa.types.is_signed_integer(kind) else None
    return None


def _task(groups: Sequence[_RowGroup], column: str, above: Any, last: Any) -> pa.Table:
    """A task: the row groups of each file, and the interval."""
    paths = list(dict.fromkeys(group.path for group in groups))
    numbers = [[group.number for group in groups if group.path == path] for path in paths]
    kind = pa.string() if isinstance(groups[0].low, str) else pa.int64()
    return pa.table(
        {
            "path": pa.array(paths, pa.string()),
            "groups": pa.array(numbers, pa.list_(pa.int32())),
            "column": pa.array([column] * len(paths), pa.string()),
            "above": pa.array([above] * len(paths), kind),
            "last": pa.array([last] * len(paths), kind),
        }
    )
