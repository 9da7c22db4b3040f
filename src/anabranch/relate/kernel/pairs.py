"""Finds candidate pairs of entities in ranges of sorted entities."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I64, Bools
from anabranch.compiled import compiled


@compiled
def upper_bounds(values: I64, begin: I64, end: I64, limit: I64) -> I64:
    """For each range of sorted values, the index of the first value above its limit."""
    result = np.empty_like(end)
    for k in range(len(begin)):
        result[k] = begin[k] + np.searchsorted(values[begin[k] : end[k]], limit[k], side="right")
    return result


@compiled
def candidate_pairs(
    begin: I64,
    end: I64,
    offset: int,
    order: I64,
    earliest: I64,
    latest: I64,
    changed_first: Bools,
    changed_second: Bools,
    must_reach: bool,
) -> I64:
    """The pairs in the ranges of which at least one entity changed.

    With `must_reach`, the second entity of a pair must not end before the first one begins.
    """
    total = 0
    for k in range(len(begin)):
        total += end[k] - begin[k]
    pairs = np.empty((total, 2), np.int64)
    count = 0
    for k in range(len(begin)):
        a = offset + k
        for index in range(begin[k], end[k]):
            b = order[index]
            if (changed_first[a] or changed_second[b]) and (not must_reach or latest[b] >= earliest[a]):
                pairs[count, 0], pairs[count, 1] = a, b
                count += 1
    return pairs[:count]
