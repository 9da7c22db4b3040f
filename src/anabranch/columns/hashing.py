"""Hashes of tuples that are the same in every process and every version."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import U64
from anabranch.columns.kernel import hash_bytes
from anabranch.columns.times import order_doubles

_FNV_START = np.uint64(0xCBF29CE484222325)


def hash_tuples(columns: Sequence[pa.Array], n_rows: int) -> U64:
    """A 64-bit hash of each tuple that is the same in every process and every version.

    Integers of any width, and strings of any encoding, hash by their value.
    """
    hashes = np.full(n_rows, _FNV_START, np.uint64)
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pa.array(order_doubles(column.to_numpy(zero_copy_only=False)))  # -0.0 and 0.0 are one key
        if not pa.types.is_binary(column.type):
            column = pc.cast(column, pa.large_string())
        text = pc.fill_null(pc.cast(column, pa.large_binary()), b"")
        offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + n_rows + 1]
        raw = text.buffers()[2]
        data = np.frombuffer(raw, np.uint8) if raw is not None and raw.size else np.zeros(1, np.uint8)
        hash_bytes(offsets, data, hashes)
    # The low bits of FNV distribute short keys badly over few buckets.
    return hashes ^ (hashes >> np.uint64(29))
