"""Compiled loops over the rows of a batch: a check of probabilities, and the order of rows by bucket."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled


@compiled
def in_unit_interval(values: F64) -> bool:
    """Whether all values are probabilities; NaN is not."""
    good = True
    for value in values:
        good &= (value >= 0.0) & (value <= 1.0)
    return good


@compiled
def rows_by_bucket(bucket_of_code: I64, codes: I32, n_buckets: int) -> tuple[I64, I64]:
    """A counting sort of rows by bucket; returns the order and the start of each bucket."""
    starts = np.zeros(n_buckets + 1, np.int64)
    for code in codes:
        if bucket_of_code[code] >= 0:
            starts[bucket_of_code[code] + 1] += 1
    for b in range(n_buckets):
        starts[b + 1] += starts[b]
    fill = starts[:-1].copy()
    order = np.empty(starts[n_buckets], np.int64)
    for i in range(len(codes)):
        b = bucket_of_code[codes[i]]
        if b >= 0:
            order[fill[b]] = i
            fill[b] += 1
    return order, starts


@compiled
def compact(codes: I32, scratch: I32) -> I32:
    """Renumber codes densely, in place; returns the old codes. `scratch` has an entry -1 for each dictionary entry."""
    kept = np.empty(min(len(codes), len(scratch)), np.int32)
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        if scratch[code] < 0:
            scratch[code] = count
            kept[count] = code
            count += 1
        codes[i] = scratch[code]
    for i in range(count):
        scratch[kept[i]] = -1
    return kept[:count].copy()
