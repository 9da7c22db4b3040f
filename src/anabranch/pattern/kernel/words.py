"""Sampled worlds as bits: a machine word has 64 worlds, and each value of a key has a mask of the worlds that have it.

The value of a key at an instant is sampled for all worlds at once: the table rows of a previous value take their shares
of its worlds, one row after the other. Whether a world is taken with probability q is decided bit by bit of q, for 64
worlds together; after about eight random words all of them are decided.

Random numbers come from a counter, not from a generator with state: they depend only on the seed of a key, the instant
and the index of the word. The worlds are thus the same for any distribution of the keys and any order of sampling.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, U64
from anabranch.compiled import compiled
from anabranch.splitmix import GOLDEN, mix

_NONE = np.uint64(0)


@compiled
def draw_values(
    prev: I32, value: I32, p: F64, before_codes: I32, before: U64, hashes: U64, seed: np.uint64, first_word: int
) -> tuple[I32, U64]:
    """Sample the value of a key at one instant, in all worlds.

    Parameters
    ----------
    prev, value, p : the rows of the key at the instant; rows with the same `prev` are consecutive
    before_codes, before : the previous values of the key, and the worlds of each; every world has one of them
    hashes : for each value code, a hash of the value, which does not depend on the code
    seed : the seed of this key and instant
    first_word : the index of the first word among all words that are sampled for the query

    Returns
    -------
    The values that the key may have now, and the worlds of each. Worlds that no row takes have value 0, *nothing*.
    """
    n_words = before.shape[1]
    index_of = np.full(len(hashes), -1, np.int64)
    codes = np.empty(len(value) + 1, np.int32)
    codes[0] = 0
    index_of[0] = 0
    count = 1
    for row in range(len(value)):
        if index_of[value[row]] < 0:
            index_of[value[row]] = count
            codes[count] = value[row]
            count += 1
    after = np.zeros((count, n_words), np.uint64)
    for b in range(len(before_codes)):
        lo = 0
        while lo < len(prev) and prev[lo] != before_codes[b]:
            lo += 1
        hi = lo
        while hi < len(prev) and prev[hi] == before_codes[b]:
            hi += 1
        for w in range(n_words):
            left = before[b, w]
            state = mix(seed ^ mix(np.uint64(first_word + w + 1) * GOLDEN + hashes[before_codes[b]]))
            rest = 1.0
            for row in range(lo, hi):
                if left == _NONE:
                    break
                share = p[row] / rest if p[row] < rest else 1.0
                rest -= p[row]
                taken = _NONE
                if share >= 1.0 - 1e-15:
                    taken = left
                elif share > 0.0:
                    undecided = left
                    while undecided != _NONE and share > 0.0:
                        state += GOLDEN
                        bits = mix(state)
                        share *= 2.0
                        if share >= 1.0:
                            share -= 1.0
                            taken |= undecided & ~bits
                            undecided &= bits
                        else:
                            undecided &= ~bits
                after[index_of[value[row]], w] |= taken
                left &= ~taken
            after[0, w] |= left
    return codes[:count].copy(), after


@compiled
def count_bits(words: U64) -> np.int64:
    """The number of worlds in a mask."""
    total = np.int64(0)
    for w in range(len(words)):
        x = words[w]
        x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return total
