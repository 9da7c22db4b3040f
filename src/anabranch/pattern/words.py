"""Sampled worlds as bits: every machine word holds 64 of them, and every value of a key a bit for each world it is in.

A key's value at an instant is drawn for all worlds at once: from the worlds that are at a previous value, its table
rows take their shares one after the other. Whether a world is taken with probability q is decided bit by bit of q,
for 64 worlds together; after some eight random words all of them are decided.

Random numbers are counted, not carried along: they depend on the seed of a key, the instant and the word alone, so
the same worlds come out however keys are spread and whatever was drawn before.
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
    """Draw a key's value at one instant.

    Parameters
    ----------
    prev, value, p : the key's rows at the instant, those of one `prev` together
    before_codes, before : the values that the key was at, and for each the worlds; every world is at one of them
    hashes : for each value code, a number that depends on the value alone
    seed : of this key at this instant
    first_word : the number of the first word among all that are drawn for the query

    Returns
    -------
    The values that some world is at now, and their worlds. Worlds that no row takes are at nothing, value 0.
    """
    n_words = before.shape[1]
    place = np.full(len(hashes), -1, np.int64)
    codes = np.empty(len(value) + 1, np.int32)
    codes[0] = 0
    place[0] = 0
    count = 1
    for row in range(len(value)):
        if place[value[row]] < 0:
            place[value[row]] = count
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
                after[place[value[row]], w] |= taken
                left &= ~taken
            after[0, w] |= left
    return codes[:count].copy(), after


@compiled
def count_bits(words: U64) -> np.int64:
    """How many worlds a mask holds."""
    total = np.int64(0)
    for w in range(len(words)):
        x = words[w]
        x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return total
