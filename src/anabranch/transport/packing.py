"""Packs rows: one Arrow blob per bucket and batch crosses the shuffle, not one row per event.

A *packet* has the rows of one stream for one bucket as numbers (key code, value code, previous value code, time,
probability), and small tables of the distinct keys and values that the codes refer to.
"""

from __future__ import annotations

from collections.abc import Iterator

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
                {"rows": pa.table(part), "keys": keys.take(kept_keys), "values": value_table.take(kept_values)}
            ),
        )


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
