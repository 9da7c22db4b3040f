"""Compiled loops over columns: codes of numbers and of pairs, and hashes of text."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64, U8, U64
from anabranch.compiled import compiled

_FNV_PRIME = np.uint64(0x100000001B3)


@compiled
def dense_codes(numbers: I64) -> tuple[I32, I64]:
    """Number the distinct values of an int64 array in order of appearance.

    Returns the code of each entry and the first index of each code.
    """
    n = len(numbers)
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    codes = np.empty(n, np.int32)
    firsts = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        h = np.uint64(numbers[i]) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(size - 1))
        while True:
            known = table[slot]
            if known < 0:
                table[slot] = count
                firsts[count] = i
                codes[i] = count
                count += 1
                break
            if numbers[firsts[known]] == numbers[i]:
                codes[i] = known
                break
            slot = (slot + 1) & (size - 1)
    return codes, firsts[:count].copy()


@compiled
def pair_codes(first: I32, second: I32, n_first: int, n_second: int) -> tuple[I32, I64]:
    """`dense_codes` for pairs of codes, with a table of all possible pairs."""
    table = np.full(n_first * n_second, -1, np.int32)
    codes = np.empty(len(first), np.int32)
    firsts = np.empty(min(len(first), len(table)), np.int64)
    count = 0
    for i in range(len(first)):
        pair = np.int64(first[i]) * n_second + second[i]
        if table[pair] < 0:
            table[pair] = count
            firsts[count] = i
            count += 1
        codes[i] = table[pair]
    return codes, firsts[:count].copy()


@compiled
def hash_bytes(offsets: I64, data: U8, hashes: U64) -> None:
    """Update the FNV-1a hash of each row with a text column; `offsets` has one entry more than rows."""
    for i in range(len(hashes)):
        h = hashes[i]
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * _FNV_PRIME
        hashes[i] = (h ^ np.uint64(0xFF)) * _FNV_PRIME
