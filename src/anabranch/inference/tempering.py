"""Fits the exponent of a model's likelihoods on held-out history.

A hidden Markov model takes the readings of different steps as independent, given the locations. Consecutive readings of
real sensors are not: if one of them is misleading, so is the next. The model then counts the same evidence several
times, and its probabilities are too close to 0 and 1. Raising the likelihood of each step to a power below 1 counts it
less. The power is the one that predicts held-out locations best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from anabranch.arrays import F64, Bools
from anabranch.inference.hmm import Hmm
from anabranch.inference.infer import Inference, advance_keys
from anabranch.inference.labels import Labelled, truth_indexes

#: The exponents that are tried: from 1 to 1/32, closer near 1. Scores are flat around their minimum.
EXPONENTS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.125, 0.0625, 0.03125)

FOLDS = 4

#: The methods that are scored: one that uses all readings, and one that uses those so far.
METHODS = ("MARGINALS", "FILTER")

Fit = Callable[[Labelled, Labelled], Hmm]
"""Fits a model to true locations and readings."""


@dataclass(frozen=True, slots=True)
class Tempering:
    """The exponents that were tried, and the Brier score of each in each held-out part, (METHODS, exponents, parts)."""

    exponents: tuple[float, ...]
    scores: F64

    def temper(self, hmm: Hmm) -> Hmm:
        """The model with the highest exponents whose scores are as good as the best, as far as the parts can tell.

        An exponent is as good if the mean of its differences to the best one is at most their standard error. Lower
        exponents than needed make inference slower to react.
        """
        everything, so_far = (self._chosen(scores) for scores in self.scores)
        return replace(hmm, exponent=everything, exponent_so_far=None if so_far == everything else so_far)

    def _chosen(self, scores: F64) -> float:
        parts = scores.shape[1]
        if parts < 2:
            return 1.0
        worse = scores - scores[scores.mean(axis=1).argmin()]
        errors = worse.std(axis=1, ddof=1) / np.sqrt(parts)
        return self.exponents[int(np.argmax(worse.mean(axis=1) <= errors))]


def fit_tempering(truth: Labelled, readings: Labelled, fit: Fit) -> Tempering:
    """Compare exponents by cross-validation.

    Parameters
    ----------
    truth : Labelled
        The true locations, sorted by key and step. Keys are held out together; the steps of a single key in blocks.
    readings : Labelled
        The readings at these steps.
    fit : callable
        Fits a model to a part of both.

    Notes
    -----
    The score is the Brier score of the location: the mean of the squared difference between the probabilities of all
    locations and the truth. Other than the logarithm, it is finite if a model excludes what happened. There is one
    given all readings (MARGINALS) and one given those so far (FILTER), where a lower weight of the readings also means
    a later reaction.
    """
    index = truth_indexes(truth, readings)
    parts = []
    for held_out in _folds(truth):
        hmm = fit(truth.where(~held_out), readings.where(~held_out[index]))
        part, read = truth.where(held_out), readings.where(held_out[index])
        parts.append([_scores(replace(hmm, exponent=exponent), part, read) for exponent in EXPONENTS])
    return Tempering(EXPONENTS, np.array(parts).reshape(len(parts), len(EXPONENTS), len(METHODS)).T)


def _folds(truth: Labelled) -> Iterator[Bools]:
    """Which rows each fold holds out."""
    keys, number = np.unique(truth.key, return_inverse=True)
    fold = number.reshape(-1) % FOLDS if len(keys) > 1 else np.arange(len(truth.key)) * FOLDS // len(truth.key)
    used = np.unique(fold)
    if len(used) > 1:
        yield from (fold == number for number in used)


def _scores(hmm: Hmm, truth: Labelled, readings: Labelled) -> list[float]:
    """For each method the Brier score of the steps; each run of consecutive steps is inferred by itself."""
    joined = (np.diff(truth.key) == 0) & (np.diff(truth.step) == 1)
    run_starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    index = truth_indexes(truth, readings)
    order = np.argsort(index, kind="stable")
    reading_starts = np.searchsorted(index[order], np.arange(len(truth.key) + 1)).astype(np.int64)
    quantities = None if readings.quantities is None else readings.quantities[order]
    scores = []
    for method in METHODS:
        inference = Inference(hmm, method)
        states = [inference.start() for _ in run_starts]
        inferred = advance_keys(
            repeat(inference),
            states,
            np.append(run_starts, len(truth.key)),
            reading_starts,
            readings.code[order],
            quantities,
        )
        # The sum over the locations of a step is 1 - 2 p(truth) + the sum of p².
        true = inferred.location == truth.code[inferred.step]
        scores.append(1 + float((inferred.p**2).sum() - 2 * inferred.p[true].sum()) / len(truth.key))
    return scores
