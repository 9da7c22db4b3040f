"""The inputs of the kernels: a model as arrays, and the readings of each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.compiled import compiled

#: The smallest positive probability of a model: a weight times two of them is still a normal double.
SMALLEST = 1e-60


class Chain(NamedTuple):
    """The initial distribution, and the transitions, by source and also by target.

    The transitions of source x are the entries starts[x]:starts[x + 1] of `targets` (ascending), `p` and `cumulative`
    (cumulative sums of p, per source). `back_starts`, `sources` and `back_p` are the same by target.
    """

    initial: F64
    starts: I64
    targets: I32
    p: F64
    cumulative: F64
    back_starts: I64
    sources: I32
    back_p: F64


class Sensors(NamedTuple):
    """The likelihoods of the readings of a step.

    Without readings the likelihood in x is quiet(x). Otherwise it is base(x) times the factors of the readers that saw
    the key. It is 0 if one of these does not list x, or if another reader is certain to see a key in x. Both `quiet`
    and `base` have levels, as weights do. Reader r lists locations[starts[r]:starts[r + 1]], with its factors. `sure`
    marks the locations where it is certain to see a key, and `n_sure` counts such readers by location.
    """

    starts: I64
    locations: I32
    factors: F64
    sure: Bools
    n_sure: I32
    base: F64
    base_levels: I32
    quiet: F64
    quiet_levels: I32


@compiled
def distinct_readings(reading_starts: I64, readings: I32, n_readers: int) -> tuple[I64, I32]:
    """The readings without duplicates within a step; codes of unknown readers become -1."""
    n_steps = len(reading_starts) - 1
    last_seen = np.full(n_readers + 1, -1, np.int64)
    starts = np.zeros(n_steps + 1, np.int64)
    out = np.empty(reading_starts[n_steps] - reading_starts[0], np.int32)
    n = 0
    for t in range(n_steps):
        for j in range(reading_starts[t], reading_starts[t + 1]):
            r = readings[j] if 0 <= readings[j] < n_readers else -1
            if last_seen[r] != t:
                last_seen[r] = t
                out[n] = r
                n += 1
        starts[t + 1] = n
    return starts, out[:n]
