"""Where predictions meet: by equal columns where WHERE has such, else by parts of all keys.

Keys are spread over parts; a bucket stands for as many parts as there are operands (one may be there several times),
and takes all predictions of their keys. So every choice of keys has all its predictions in one bucket, which is the one
that answers about it, and each key has all its predictions wherever it has any: when one applies is known there.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import I32, I64, Bools
from anabranch.columns.hashing import hash_tuples
from anabranch.transport.state import write_tables


def parts_of(n_buckets: int, operands: int) -> list[tuple[int, ...]]:
    """For each bucket that is used, its parts in order."""
    n_parts = 1
    while len(list(combinations_with_replacement(range(n_parts + 1), operands))) <= n_buckets:
        n_parts += 1
    return list(combinations_with_replacement(range(n_parts), operands))


def is_own(parts: tuple[int, ...]) -> bool:
    """Whether a bucket is the one of its keys' own: there each key is counted."""
    return len(set(parts)) == 1


def homes_of(columns: list[pa.Array], n_keys: int, n_parts: int) -> I64:
    """The part of each key, by some of its columns."""
    return (hash_tuples(columns, n_keys) % np.uint64(n_parts)).astype(np.int64)


def belongs(homes: I32, parts: tuple[int, ...]) -> Bools:
    """Whether a choice of predictions, (n, operands) by their homes, is the bucket's to answer."""
    return (np.sort(homes, axis=1) == np.array(sorted(parts))).all(axis=1)


def packets(
    columns: dict[str, npt.NDArray[np.generic]], codes: I32, keys: pa.Table, homes: I64,
    buckets: list[tuple[int, ...]],
) -> list[tuple[int, bytes]]:  # fmt: skip
    """One packet a bucket: the rows of the keys of its parts, and those keys; a home of -1 goes nowhere."""
    found = []
    for number, parts in enumerate(buckets):
        chosen = np.flatnonzero(np.isin(homes, parts)[codes])
        if not len(chosen):
            continue
        present, place = np.unique(codes[chosen], return_inverse=True)
        rows = {name: column[chosen] for name, column in columns.items()} | {"key": place.astype(np.int32)}
        tables = {
            "rows": pa.table(rows),
            "keys": keys.take(pa.array(present)),
            "homes": pa.table({"home": homes[present]}),
            "parts": pa.table({"part": pa.array(parts, pa.int64())}),
        }
        found.append((number, write_tables(tables)))
    return found
