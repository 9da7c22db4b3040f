"""Intervals of sampled probabilities."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from anabranch.arrays import F64, I64


def interval(hits: I64, worlds: int | I64, error: float) -> tuple[F64, F64]:
    """The Clopper-Pearson interval: it does not contain the true probability with probability at most `error`.

    Examples
    --------
    >>> lower, upper = interval(np.array([0, 5]), 10, 0.05)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0, 0.1871], [0.3085, 0.8129])
    """
    misses = worlds - hits
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, error / 2), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, 1), 1 - error / 2), 1.0)
    return lower, upper
