"""What the three kernels share: a chain's rows instant by instant and key by key, and letters of several keys."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled

# How a row fared in `clean_rows`.
USED, DUPLICATE, OVERFULL = 0, 1, 2

# How a stream is uncertain, as the kernels see it.
CERTAIN, INDEPENDENT, MARKOV = 0, 1, 2

#: Left-over mass below this is rounding of a sum of probabilities, not nothing's.
ROUNDING = 2.0**-50


@compiled
def answer_space(n: int) -> tuple[I32, I64, F64]:
    """Room for the chain, instant and probability of n answers."""
    return np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)


@compiled
def end_of_instant(rows: I64, lo: int, end: int, t: I64) -> int:
    """Where the rows of the instant that begins at `lo` end."""
    hi = lo + 1
    while hi < end and t[rows[hi]] == t[rows[lo]]:
        hi += 1
    return hi


@compiled
def end_of_key(rows: I64, lo: int, end: int, key: I32) -> int:
    """Where, within one instant, the rows of the key that begins at `lo` end."""
    hi = lo + 1
    while hi < end and key[rows[hi]] == key[rows[lo]]:
        hi += 1
    return hi


@compiled
def emit(rows: I64, lo: int, hi: int, model: I32, p: F64, letter: I32, union: I32, own: F64) -> None:
    """The distribution of the letter that one key, rows[lo:hi], emits at one instant, added to `own`.

    The alternatives of an INDEPENDENT key exclude each other; the rows of a CERTAIN key all happen.
    """
    if model[rows[lo]] == CERTAIN:
        together = 0
        for j in range(lo, hi):
            together = union[together, letter[rows[j]]]
        own[together] += 1.0
    else:
        left = 1.0
        for j in range(lo, hi):
            own[letter[rows[j]]] += p[rows[j]]
            left -= p[rows[j]]
        if left > ROUNDING:
            own[0] += left


@compiled
def mix(
    rows: I64, lo: int, hi: int, key: I32, model: I32, p: F64, letter: I32, union: I32,
    mixed: F64, own: F64, spare: F64,
) -> None:  # fmt: skip
    """The distribution of the letter that the keys of one instant, rows[lo:hi], emit together, in `mixed`.

    Keys are independent, so letters unite by convolution; the first key needs none. Markov keys are passed over.
    """
    n_letters = len(mixed)
    for a in range(n_letters):
        mixed[a] = 0.0
    n_keys = 0
    start = lo
    while start < hi:
        end = end_of_key(rows, start, hi, key)
        if model[rows[start]] != MARKOV:
            n_keys += 1
            if n_keys == 1:
                emit(rows, start, end, model, p, letter, union, mixed)
            else:
                for a in range(n_letters):
                    own[a] = 0.0
                    spare[a] = 0.0
                emit(rows, start, end, model, p, letter, union, own)
                for a in range(n_letters):
                    if mixed[a] != 0.0:
                        for b in range(n_letters):
                            if own[b] != 0.0:
                                spare[union[a, b]] += mixed[a] * own[b]
                for a in range(n_letters):
                    mixed[a] = spare[a]
        start = end
    if n_keys == 0:
        mixed[0] = 1.0
