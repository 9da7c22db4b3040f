"""SplitMix64: a counter-based random number generator.

The n-th number of a seed is a function of the seed and n only, so it depends neither on earlier draws nor on the
worker that draws it. Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from anabranch.arrays import U64
from anabranch.compiled import compiled

#: The increment of the state per number: 2^64 divided by the golden ratio, made odd.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def mix(x: np.uint64) -> np.uint64:
    """Hash 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@compiled
def mix_all(values: U64) -> U64:
    """Hash each number of an array; 0 is not mapped to 0."""
    mixed = np.empty(len(values), np.uint64)
    for index in range(len(values)):
        mixed[index] = mix(values[index] + GOLDEN)
    return mixed


@compiled
def uniform(seed: np.uint64, number: int) -> float:
    """The random number in [0, 1) with this 0-based number in the sequence of a seed."""
    return float(mix(seed + np.uint64(number + 1) * GOLDEN) >> np.uint64(11)) * 2.0**-53
