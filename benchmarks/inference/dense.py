"""The baselines of inference: scaled dense NumPy and hmmlearn; and checks that all methods agree."""

from __future__ import annotations

import numpy as np

from anabranch.inference.infer import Inferred
from benchmarks.inference.buildings import Building


def dense_filter(building: Building) -> np.ndarray:
    """Return P[x_t | readings up to t], (T, N)."""
    filtered = building.likelihoods.copy()
    ahead = building.hmm.initial
    for t in range(len(filtered)):
        filtered[t] *= ahead
        filtered[t] /= filtered[t].sum()
        ahead = filtered[t] @ building.transition
    return filtered


def dense_marginals(building: Building) -> np.ndarray:
    """Return P[x_t | all readings], (T, N); the transition tables would be T N^2 numbers and are not written."""
    marginals, likelihoods = dense_filter(building), building.likelihoods
    back = np.ones(len(building.transition))
    for t in range(len(marginals) - 2, -1, -1):
        back = building.transition @ (likelihoods[t + 1] * back)
        back /= back.max()
        marginals[t] *= back
        marginals[t] /= marginals[t].sum()
    return marginals


def dense_viterbi(building: Building) -> np.ndarray:
    """Return the most likely path."""
    with np.errstate(divide="ignore"):
        log_transition, log_likelihoods = np.log(building.transition), np.log(building.likelihoods)
    best = np.log(building.hmm.initial) + log_likelihoods[0]
    came_from = np.empty(log_likelihoods.shape, np.int64)
    locations = np.arange(len(best))
    for t in range(1, len(log_likelihoods)):
        weights = best[:, np.newaxis] + log_transition
        came_from[t] = weights.argmax(axis=0)
        best = weights[came_from[t], locations] + log_likelihoods[t]
    path = np.empty(len(log_likelihoods), np.int64)
    path[-1] = best.argmax()
    for t in range(len(path) - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path


def make_hmmlearn_model(building: Building):
    """Return the same model for hmmlearn."""
    # Not a module-level import: hmmlearn is missing on some platforms, where the other families should still run.
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(n_components=len(building.transition))
    model.startprob_, model.transmat_, model.emissionprob_ = (
        building.hmm.initial,
        building.transition,
        building.emission,
    )
    return model


# ------------------------------------------------------------ agreement


def distributions(building: Building, inferred: Inferred) -> np.ndarray:
    """Return rows (step, location, p) as an array (T, N)."""
    dense = np.zeros((building.steps, len(building.transition)))
    dense[inferred.step, inferred.location] = inferred.p
    return dense


def log_weight(building: Building, path: np.ndarray) -> float:
    """Return the logarithm of P[path, all readings]."""
    moves = np.log(building.transition[path[:-1], path[1:]]).sum()
    read = np.log(building.likelihoods[np.arange(len(path)), path]).sum()
    return float(np.log(building.hmm.initial[path[0]]) + moves + read)


def check_answers(building: Building) -> None:
    """Raise AssertionError unless every method agrees with the dense one; different paths must be equally likely."""
    _check(distributions(building, building.infer("FILTER")), dense_filter(building), 1e-9)
    _check(distributions(building, building.infer("MARGINALS")), dense_marginals(building), 1e-9)
    paths = building.infer("VITERBI").location, dense_viterbi(building)
    _check(*(np.array([log_weight(building, path)]) for path in paths), 1e-6)


def _check(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    difference = float(abs(actual - expected).max())
    if not difference <= tolerance:
        raise AssertionError(f"answers differ by {difference}")


def particle_error(building: Building) -> float:
    """Return the mean total variation distance between the distributions of PARTICLE and FILTER."""
    estimate = distributions(building, building.infer("PARTICLE"))
    return float(0.5 * abs(estimate - distributions(building, building.infer("FILTER"))).sum(axis=1).mean())
