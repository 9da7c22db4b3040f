"""Scores of probabilities against what happened: the Brier score and its parts, and the calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.evaluation.reliability import bin_numbers


@dataclass(frozen=True, slots=True)
class Scores:
    """How good a set of probabilities is.

    Attributes
    ----------
    count : int
        The number of answers.
    share : float
        The share of true answers.
    brier : float
        The mean of (probability - truth)²; 0 is best.
    constant : float
        The Brier score of the best constant, which is `share`.
    calibration_error : float
        The expected calibration error: |mean probability - share of true answers| of each bin, weighted by its answers.
    standard_error : float
        The standard error of `calibration_error` that comes from the number of answers.
    resolution : float
        The variance of the share of true answers between the bins: 0 if the probabilities tell nothing.
    """

    count: int
    share: float
    brier: float
    constant: float
    calibration_error: float
    standard_error: float
    resolution: float


def scores(probabilities: F64, true: Bools, bins: int = 10, clusters: I64 | None = None) -> Scores:
    """Score probabilities against the truth, with bins of equal width from 0 to 1.

    Parameters
    ----------
    probabilities, true : arrays
        Of each answer.
    bins : int
    clusters : array, optional
        The number of the cluster of each answer. Answers of a cluster are about one event, so the standard error takes
        them as fully dependent. By default, all answers are independent.

    Examples
    --------
    >>> result = scores(np.array([0.8, 0.8, 0.8, 0.8, 0.8]), np.array([True, True, True, True, False]))
    >>> round(result.brier, 3), round(result.constant, 3), round(result.calibration_error, 3), result.resolution
    (0.16, 0.16, 0.0, 0.0)
    """
    count = len(probabilities)
    if not count:
        return Scores(0, *[float("nan")] * 6)
    truth = true.astype(np.float64)
    share = float(truth.mean())
    bin_of = bin_numbers(probabilities, bins)
    answers, predicted, observed = (
        np.bincount(bin_of, weights, minlength=bins) for weights in (np.ones(count), probabilities, truth)
    )
    deviations = np.sqrt(np.clip(probabilities * (1 - probabilities), 0, None))
    if clusters is not None:
        # The standard deviation of a sum of fully dependent terms is the sum of theirs.
        deviations = np.bincount(clusters, deviations)
    used = answers > 0
    answers, predicted, observed = answers[used], predicted[used], observed[used]
    return Scores(
        count=count,
        share=share,
        brier=float(np.mean((probabilities - truth) ** 2)),
        constant=share * (1 - share),
        calibration_error=float(abs(predicted - observed).sum() / count),
        standard_error=float(np.sqrt((deviations**2).sum()) / count),
        resolution=float((answers * (observed / answers - share) ** 2).sum() / count),
    )
