"""Packs rows: one Arrow blob per bucket and batch crosses the shuffle, not one row per event.

A *packet* has the rows of one stream for one bucket as numbers (key code, value code, previous value code, time,
probability), and small tables of the distinct keys and values that the codes refer to. Most of what a shuffle costs is
per byte, so integers have as few bytes as they need: a column is sent as the differences to its lowest number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I32, I64, Numbers
from anabranch.columns.dictionary import encode_tuples
from anabranch.columns.times import encode_times
from anabranch.transport.interval_columns import interval_numbers
from anabranch.transport.kernel import compact, rows_by_bucket
from anabranch.transport.layout import Layout
from anabranch.transport.segments import SATISFIES
from anabranch.transport.state import write_tables

#: The types of differences, from narrow to wide.
_NARROW = tuple(np.dtype(kind) for kind in ("u1", "u2", "u4"))

#: In the metadata of a column: the number that differences are added to.
_LOWEST = b"lowest"

#: Columns of codes; the others are numbers of 64 bits.
CODES = ("key", "value", "prev")


def pack(
    table: pa.Table, layout: Layout, bucket_of_key: I64, key_codes: I32,
    keys: pa.Table, n_buckets: int,
) -> Iterator[tuple[int, bytes]]:  # fmt: skip
    """Pack checked rows, one packet per bucket; rows of a key whose bucket is -1 are not sent.

    Parameters
    ----------
    table : the rows
    bucket_of_key : for each distinct key, its bucket
    key_codes, keys : the code of each row's key, and the distinct keys (`encode_tuples`)
    """
    columns = _numbers(table, layout, key_codes)
    values, value_table = _encode_values(table, layout)
    columns |= values
    if n_buckets == 1 and bucket_of_key.min(initial=0) >= 0:
        # All rows as they are; but codes are renumbered in place.
        sorted_columns, starts = columns | {"key": key_codes.copy()}, np.array([0, len(key_codes)])
    else:
        order, starts = rows_by_bucket(bucket_of_key, key_codes, n_buckets)
        sorted_columns = {name: column[order] for name, column in columns.items()}
    key_scratch = np.full(max(1, keys.num_rows), -1, np.int32)
    value_scratch = np.full(max(1, value_table.num_rows), -1, np.int32)
    for bucket in range(n_buckets):
        lo, hi = starts[bucket], starts[bucket + 1]
        if lo == hi:
            continue
        part = {name: column[lo:hi] for name, column in sorted_columns.items()}
        kept_keys = compact(part["key"], key_scratch)
        coded = [name for name in ("value", "prev") if name in part]
        joined = np.concatenate([part[name] for name in coded])
        kept_values = compact(joined, value_scratch)
        for index, name in enumerate(coded):
            part[name] = joined[index * (hi - lo) : (index + 1) * (hi - lo)]
        yield (
            bucket,
            write_tables(
                {"rows": narrowed(part), "keys": keys.take(kept_keys), "values": value_table.take(kept_values)}
            ),
        )


def narrowed(columns: Mapping[str, Numbers]) -> pa.Table:
    """Columns as a table, with integers in as few bytes as possible."""
    arrays, fields = [], []
    for name, column in columns.items():
        numbers, lowest = _differences(column)
        arrays.append(pa.array(numbers))
        fields.append(pa.field(name, arrays[-1].type, metadata={_LOWEST: str(lowest)} if lowest else None))
    return pa.table(arrays, schema=pa.schema(fields))


def _differences(column: Numbers) -> tuple[Numbers, int]:
    """The differences of integers to the lowest one, and that one, if they need fewer bytes; else the column and 0."""
    if column.dtype.kind == "i" and len(column):
        lowest, highest = int(column.min()), int(column.max())
        for kind in _NARROW:
            if kind.itemsize < column.itemsize and highest - lowest <= np.iinfo(kind).max:
                return (column - lowest if lowest else column).astype(kind), lowest
    return column, 0


def numbers_of_rows(rows: pa.Table) -> dict[str, Numbers]:
    """The columns of the rows of a packet; codes may have fewer bytes than before."""
    columns = {}
    for field in rows.schema:
        column = rows[field.name].to_numpy()
        if field.metadata is not None:
            column = column.astype(np.int64) + int(field.metadata[_LOWEST])
        elif field.name not in CODES and column.dtype.kind == "u":
            column = column.astype(np.int64)
        columns[field.name] = column
    return columns


def _numbers(table: pa.Table, layout: Layout, key_codes: I32) -> dict[str, Numbers]:
    if layout.interval:
        return {"key": key_codes, **interval_numbers(table, layout)}
    if layout.runs:
        times = encode_times(table[layout.time], layout.time_kind)
        return {"key": key_codes, "t": times, "satisfies": table[SATISFIES].to_numpy()}
    columns: dict[str, Numbers] = {"key": key_codes, "t": encode_times(table[layout.time], layout.time_kind)}
    if layout.distribution:
        columns["p"] = pc.cast(table[layout.distribution.probability], pa.float64()).to_numpy()
    return columns


def _encode_values(table: pa.Table, layout: Layout) -> tuple[dict[str, Numbers], pa.Table]:
    """Value and previous-value codes, and the table of values that both refer to."""
    n = table.num_rows
    if not layout.previous:
        # The values of rows from which runs are made are not needed any more.
        values = () if layout.runs else layout.values
        codes, distinct = encode_tuples([table[name] for name in values], n)
        return {"value": codes}, distinct
    stacked = [_stack(table[name], table[before]) for name, before in zip(layout.values, layout.previous, strict=True)]
    codes, distinct = encode_tuples(stacked, 2 * n)
    return {"value": codes[:n], "prev": codes[n:]}, distinct


def _stack(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    if second.type != first.type:
        second = second.cast(first.type)
    return pa.chunked_array([*first.chunks, *second.chunks], type=first.type)
