"""Parts of keys: how any two keys, or any three, meet in one bucket, where no column says which keys must meet.

Keys are divided into parts by a hash. A bucket stands for as many parts as keys have to meet (a part may be repeated)
and gets all rows of their keys. So there is one bucket for every combination of keys.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.columns.hashing import hash_tuples


def parts_of_buckets(n_buckets: int, operands: int) -> list[tuple[int, ...]]:
    """For each bucket that is used, its parts in ascending order."""
    n_parts = 1
    while len(list(combinations_with_replacement(range(n_parts + 1), operands))) <= n_buckets:
        n_parts += 1
    return list(combinations_with_replacement(range(n_parts), operands))


def parts_of_keys(columns: list[pa.Array], n_keys: int, n_parts: int) -> I64:
    """The part of each key, by a hash of some of its columns."""
    return (hash_tuples(columns, n_keys) % np.uint64(n_parts)).astype(np.int64)
