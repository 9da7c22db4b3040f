"""How keys are assigned to buckets, so that every combination of keys meets in one bucket.

Keys are divided into parts, and a bucket gets all predictions of the keys of its parts. If WHERE equates key columns,
keys are divided by these columns and a bucket has one part. Otherwise a bucket has as many parts as the query has
operands (a part may be repeated), so there is one bucket for every combination of keys, and it gives the answers about
it. A bucket that has a key has all predictions of the key, so it knows when each of them applies.

With NEAREST, a bucket has one part, and all predictions: it answers for the keys of its part as the first operand.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import I32, I64, Bools
from anabranch.transport.state import write_tables


def counts_rows(parts: tuple[int, ...], is_broadcast: bool) -> bool:
    """Whether a bucket counts its rows: of the buckets that a row goes to, only one has no other part.

    If rows go to all buckets, the first one counts them.
    """
    return parts == (0,) if is_broadcast else len(set(parts)) == 1


def is_answered_here(key_parts: I32, parts: tuple[int, ...]) -> Bools:
    """Whether a bucket with these parts answers combinations of keys; `key_parts` is (n, operands)."""
    return (np.sort(key_parts, axis=1) == np.array(sorted(parts))).all(axis=1)


def packets(
    columns: dict[str, npt.NDArray[np.generic]], codes: I32, keys: pa.Table, key_parts: I64,
    buckets: list[tuple[int, ...]], is_broadcast: bool,
) -> list[tuple[int, bytes]]:  # fmt: skip
    """One packet per bucket: the rows and keys of its parts, or of all if `is_broadcast`. Part -1 is not sent."""
    bucket_packets = []
    for number, parts in enumerate(buckets):
        is_sent = key_parts >= 0 if is_broadcast else np.isin(key_parts, parts)
        chosen = np.flatnonzero(is_sent[codes])
        if not len(chosen):
            continue
        present, key_index = np.unique(codes[chosen], return_inverse=True)
        rows = {name: column[chosen] for name, column in columns.items()} | {"key": key_index.astype(np.int32)}
        tables = {
            "rows": pa.table(rows),
            "keys": keys.take(pa.array(present)),
            "key parts": pa.table({"part": key_parts[present]}),
            "parts": pa.table({"part": pa.array(parts, pa.int64())}),
        }
        bucket_packets.append((number, write_tables(tables)))
    return bucket_packets
