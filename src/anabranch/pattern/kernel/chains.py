"""Functions of all three kernels: the rows of an instant and of a key, and the letters of several keys."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.compiled import compiled

# The status of a row after `clean_rows`.
USED, DUPLICATE, OVERFULL = 0, 1, 2

# The models of streams.
CERTAIN, INDEPENDENT, MARKOV = 0, 1, 2

#: If probabilities sum to 1 minus less than this, the rest is a rounding error, not the probability of *nothing*.
ROUNDING = 2.0**-50


@compiled
def answer_space(n: int) -> tuple[I32, I64, F64]:
    """Empty arrays for the chain, instant and probability of n answers."""
    return np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n)


@compiled
def age(tick: I32, weights: F64, spare: F64) -> None:
    """Move the weight of each state to the state after a tick: time passes before an instant (WITHIN)."""
    for q in range(len(tick)):
        spare[q] = weights[q]
        weights[q] = 0.0
    for q in range(len(tick)):
        weights[tick[q]] += spare[q]


@compiled
def end_of_instant(rows: I64, lo: int, end: int, t: I64) -> int:
    """The end of the rows of the instant that starts at `lo`."""
    hi = lo + 1
    while hi < end and t[rows[hi]] == t[rows[lo]]:
        hi += 1
    return hi


@compiled
def end_of_key(rows: I64, lo: int, end: int, key: I32) -> int:
    """The end of the rows of the key that starts at `lo`, within one instant."""
    hi = lo + 1
    while hi < end and key[rows[hi]] == key[rows[lo]]:
        hi += 1
    return hi


@compiled
def emit(rows: I64, lo: int, hi: int, model: I32, p: F64, letter: I32, union: I32, of_key: F64) -> None:
    """Add the distribution of the letter of one key, rows[lo:hi], at one instant to `of_key`.

    The alternatives of an INDEPENDENT key exclude each other; all rows of a CERTAIN key happen.
    """
    if model[rows[lo]] == CERTAIN:
        united = 0
        for j in range(lo, hi):
            united = union[united, letter[rows[j]]]
        of_key[united] += 1.0
    else:
        left = 1.0
        for j in range(lo, hi):
            of_key[letter[rows[j]]] += p[rows[j]]
            left -= p[rows[j]]
        if left > ROUNDING:
            of_key[0] += left


@compiled
def mix(
    rows: I64, lo: int, hi: int, key: I32, model: I32, p: F64, letter: I32, union: I32,
    mixed: F64, of_key: F64, spare: F64,
) -> None:  # fmt: skip
    """Compute the distribution of the union of the letters of all keys at one instant, rows[lo:hi], into `mixed`.

    Keys are independent, so their distributions are convolved; the first key needs no convolution. Markov keys are
    skipped.
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
                    of_key[a] = 0.0
                    spare[a] = 0.0
                emit(rows, start, end, model, p, letter, union, of_key)
                for a in range(n_letters):
                    if mixed[a] != 0.0:
                        for b in range(n_letters):
                            if of_key[b] != 0.0:
                                spare[union[a, b]] += mixed[a] * of_key[b]
                for a in range(n_letters):
                    mixed[a] = spare[a]
        start = end
    if n_keys == 0:
        mixed[0] = 1.0
