"""Safe plans: the probability that a goal has matched since an instant."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled


@compiled
def true_since(match: F64, before: F64, start: int) -> F64:
    """P(true during [start, f]) for each f; `before[b]` is P(true at b), if the goal's last match is at b."""
    true = np.zeros(len(match))
    last = 0.0
    for f in range(start, len(match)):
        last = match[f] * before[f] + (1.0 - match[f]) * last
        true[f] = min(last, 1.0)
    return true
