"""Learns a calibration map: isotonic regression of the truth on the probabilities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.columns.calibration import CalibrationMap

LEAST_ANSWERS = 20
"""A map is not learned from fewer answers: it would repeat their noise."""

SMALLEST_GROUP, MOST_GROUPS = 10, 100
"""Neighbouring probabilities are pooled into groups of at least so many answers, and into at most so many groups."""

FOLDS = 5


def learn_map(probabilities: F64, true: Bools) -> CalibrationMap:
    """Learn a monotone map from probabilities to shares of true answers.

    Answers of neighbouring probabilities are pooled into groups, and the shares of true answers are fitted by isotonic
    regression. Each block of it becomes one knot, at the mean probability of its answers (centred isotonic
    regression): between knots the map rises, so that answers keep their order. One true answer below all others and
    one false answer above all others are added, so that no finite number of answers gives a probability of 0 or 1.

    Parameters
    ----------
    probabilities, true : arrays
        Of each answer; there is at least one.
    """
    # Imported here, because SciPy's optimisers take long to load.
    from scipy.optimize import isotonic_regression

    groups = np.array(list(_groups(np.sort(probabilities), np.argsort(probabilities, kind="stable"), true)))
    counts, sums, trues = groups.T
    weights = np.concatenate([[1.0], counts, [1.0]])
    shares = np.concatenate([[1.0], trues / counts, [0.0]])
    fitted = isotonic_regression(shares, weights=weights)
    knots: list[tuple[float, float]] = []
    for start, end in zip(fitted.blocks[:-1], fitted.blocks[1:], strict=True):
        # The added answers are the first and the last; they have no probability of their own.
        inside = slice(max(start - 1, 0), min(end - 1, len(counts)))
        if counts[inside].size:
            knots.append((float(sums[inside].sum() / counts[inside].sum()), float(fitted.x[start])))
    return CalibrationMap(tuple(knots))


def _groups(ascending: F64, order: I64, true: Bools) -> Iterator[tuple[int, float, int]]:
    """Yield the number, the sum of probabilities and the number of true ones of each group of answers.

    Equal probabilities are in one group.
    """
    least = max(SMALLEST_GROUP, len(ascending) // MOST_GROUPS)
    firsts = np.flatnonzero(np.diff(ascending, prepend=-1.0) > 0)
    begin = 0
    for first in firsts.tolist():
        if first - begin >= least and len(ascending) - first >= least:
            yield first - begin, float(ascending[begin:first].sum()), int(true[order[begin:first]].sum())
            begin = first
    yield len(ascending) - begin, float(ascending[begin:].sum()), int(true[order[begin:]].sum())


def held_out(probabilities: F64, true: Bools, clusters: I64) -> F64:
    """Return probabilities calibrated by maps that were learned from other clusters: each fold by the other folds.

    With fewer clusters than folds, the folds are of answers, by probability. The order of the answers has no effect.
    """
    calibrated = np.empty_like(probabilities)
    if clusters.max() < FOLDS - 1:
        clusters = np.empty_like(clusters)
        clusters[np.lexsort((true, probabilities))] = np.arange(len(clusters))
    folds = clusters % FOLDS
    for fold in range(FOLDS):
        chosen = folds == fold
        calibrated[chosen] = learn_map(probabilities[~chosen], true[~chosen]).apply(probabilities[chosen])
    return calibrated
