"""Answers by their score: the share of true ones in each bin, and its standard error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Answers of similar score.

    Attributes
    ----------
    answers : int
    predicted : float
        Their mean score.
    observed : float
        The share of them that is true.
    error : float
        The standard error of that share if the scores are probabilities.
    """

    answers: int
    predicted: float
    observed: float
    error: float

    @property
    def deviation(self) -> float:
        """The difference between predicted and observed, in standard errors."""
        return abs(self.observed - self.predicted) / self.error


def reliability_bins(scores: np.ndarray, true: np.ndarray, bins: int = 10, least: int = 30) -> list[ReliabilityBin]:
    """Return the answers in bins of equal width; bins with fewer than `least` answers are left out."""
    bin_of = np.clip((scores * bins).astype(np.int64), 0, bins - 1)
    result = []
    for number in range(bins):
        inside = bin_of == number
        count = int(inside.sum())
        variance = np.sum(scores[inside] * (1 - scores[inside]))
        if count >= least and variance > 0:
            error = float(np.sqrt(variance)) / count
            result.append(ReliabilityBin(count, float(scores[inside].mean()), float(true[inside].mean()), error))
    return result
