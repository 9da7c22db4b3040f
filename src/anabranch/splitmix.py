"""SplitMix64: random numbers that are counted, not carried along.

The n-th number of a seed is a function of the seed and n alone, so what is drawn does not depend on what was drawn
before, nor where. Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from anabranch.compiled import compiled

#: What the state grows by from one number to the next: 2^64 divided by the golden ratio, made odd.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True, inline="always")
def mix(x: np.uint64) -> np.uint64:
    """A well mixed function of 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@compiled
def mix_all(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each of many numbers mixed; 0 too becomes something else."""
    mixed = np.empty(len(values), np.uint64)
    for place in range(len(values)):
        mixed[place] = mix(values[place] + GOLDEN)
    return mixed


@compiled
def uniform(seed: np.uint64, number: int) -> float:
    """The number-th random number of a seed, from 0 on, in [0, 1)."""
    return float(mix(seed + np.uint64(number + 1) * GOLDEN) >> np.uint64(11)) * 2.0**-53
