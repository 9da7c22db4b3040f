"""Fits normal distributions to what readings measure, by reader and location."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.inference.hmm import Gaussians, Hmm

#: The deviation is at least this part of the deviation of all measurements: sensors round what they measure.
LEAST_DEVIATION = 0.01


def fit_gaussians(hmm: Hmm, quantities: Sequence[str], reader: I32, location: I32, measured: F64) -> Gaussians:
    """The mean and the deviation of each quantity, for each reader and location of the model.

    Parameters
    ----------
    reader, location : (n,) array
        Of each reading.
    measured : (n, Q) array
        What it measured; NaN if that is unknown.

    Notes
    -----
    Rare pairs are drawn to what all readers measure at the location, with the weight of one measurement; and rare
    locations to what is measured anywhere.
    """
    n = len(hmm.locations)
    at = hmm.reader_locations.astype(np.int64)
    entry = np.repeat(np.arange(len(hmm.readers)), np.diff(hmm.reader_starts)) * n + at
    pair = reader.astype(np.int64) * n + location
    parameters = []
    for values in measured.T:
        known = np.isfinite(values)
        overall = _moments(np.zeros(known.sum(), np.int64), values[known], 1, np.array([[0.0], [1.0]]), 0.0)
        by_location = _moments(location[known], values[known], n, overall[:, np.zeros(n, np.int64)], 1.0)
        pairs = len(hmm.readers) * n
        prior = by_location[:, np.arange(pairs) % n]
        mean, variance = _moments(pair[known], values[known], pairs, prior, 1.0)[:, entry]
        least = LEAST_DEVIATION**2 * overall[1, 0]
        parameters.append((mean, np.sqrt(np.maximum(variance, least if least > 0 else 1.0))))
    means, deviations = zip(*parameters, strict=True)
    return Gaussians(tuple(quantities), np.array(means), np.array(deviations))


def _moments(group: I64 | I32, values: F64, n: int, prior: F64, weight: float) -> F64:
    """The mean and the variance of each group, (2, n), with prior ones that count as `weight` measurements."""
    counts = np.bincount(group, minlength=n)
    total = counts + weight
    empty = total == 0
    total = np.where(empty, 1.0, total)
    mean = np.where(empty, prior[0], (np.bincount(group, weights=values, minlength=n) + weight * prior[0]) / total)
    squares = np.bincount(group, weights=(values - mean[group]) ** 2, minlength=n)
    spread = weight * (prior[1] + (prior[0] - mean) ** 2)
    return np.stack([mean, np.where(empty, prior[1], (squares + spread) / total)])
