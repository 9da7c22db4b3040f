"""Oracles of hidden Markov models: enumeration of all paths, and dense forward-backward in logarithms.

Models are dense arrays: `initial` (N,), `transition` (N, N) from row to column, and `likelihoods` (T, N).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.untraced import untraced

Path = tuple[int, ...]


def detection_likelihoods(detection: Any, readings: Sequence[set[int]]) -> Any:
    """The product over the readers of d if they saw the key and 1 - d if not; `detection` is (R, N).

    A reading of an unknown reader, one without a row in `detection`, has likelihood 0.
    """
    n_readers, n = detection.shape
    likelihoods = np.ones((len(readings), n))
    for t, seen in enumerate(readings):
        for r in range(n_readers):
            likelihoods[t] *= detection[r] if r in seen else 1 - detection[r]
        if not seen <= set(range(n_readers)):
            likelihoods[t] = 0.0
    return likelihoods


def emission_likelihoods(emission: Any, silence: Any, readings: Sequence[set[int]]) -> Any:
    """The product of e(r, x) over the readings of a step; without readings, `silence`, or 1 if that is None."""
    n_readers, n = emission.shape
    likelihoods = np.ones((len(readings), n))
    for t, seen in enumerate(readings):
        for r in seen:
            likelihoods[t] *= emission[r] if 0 <= r < n_readers else 0.0
        if not seen and silence is not None:
            likelihoods[t] = silence
    return likelihoods


def without_impossible(initial: Any, transition: Any, likelihoods: Any) -> tuple[Any, list[int]]:
    """The likelihoods with 1 at the steps that are impossible after the previous ones, and these steps."""
    corrected, impossible = likelihoods.copy(), []
    reachable = initial > 0
    for t in range(len(likelihoods)):
        if t > 0:
            reachable = (transition[reachable] > 0).any(axis=0)
        if not (reachable & (likelihoods[t] > 0)).any():
            corrected[t] = 1.0
            impossible.append(t)
        reachable = reachable & (corrected[t] > 0)
    return corrected, impossible


@untraced
def paths(initial: Any, transition: Any, likelihoods: Any) -> dict[Path, float]:
    """P[path, all readings] of every possible path."""
    steps, n = likelihoods.shape
    weights = {}
    for path in itertools.product(range(n), repeat=steps):
        weight = initial[path[0]] * likelihoods[0, path[0]]
        for t in range(1, steps):
            weight *= transition[path[t - 1], path[t]] * likelihoods[t, path[t]]
        if weight > 0:
            weights[path] = float(weight)
    return weights


class Stay:
    """The number of steps of a stay: 1 + the failures before the k-th success, with the mean 1 / (1 - staying).

    At a random moment of a stay, r steps of it are left (with the current one) with probability P[D >= r] / E[D].
    """

    def __init__(self, stages: int, staying: float) -> None:
        self.stages, self.leaving = stages, 1 - staying
        self.success = stages / (stages + 1 / self.leaving - 1) if self.leaving > 0 else 0.0

    def lasts(self, d: int) -> float:
        """P[D = d]."""
        k, a = self.stages, self.success
        return float(math.comb(d + k - 2, k - 1) * a**k * (1 - a) ** (d - 1))

    def lasts_at_least(self, d: int) -> float:
        """P[D >= d]."""
        return 1 - sum(self.lasts(shorter) for shorter in range(1, d))

    def left(self, r: int) -> float:
        """P[r steps are left] at a random moment."""
        return self.lasts_at_least(r) * self.leaving

    def left_at_least(self, r: int) -> float:
        """P[r steps or more are left] at a random moment."""
        return 1 - sum(self.left(fewer) for fewer in range(1, r))


@untraced
def stay_paths(initial: Any, transition: Any, stages: Sequence[int], likelihoods: Any) -> dict[Path, float]:
    """P[path, all readings] of every possible path, where stays have explicit durations (a hidden semi-Markov model).

    A path is cut into stays. The first one is under way, the last one is not over at the last step.
    """
    steps, n = likelihoods.shape
    stays = [Stay(stages[x], transition[x, x]) for x in range(n)]
    weights = {}
    for path in itertools.product(range(n), repeat=steps):
        runs = [(x, len(list(run))) for x, run in itertools.groupby(path)]
        weight = initial[path[0]] * math.prod(likelihoods[t, x] for t, x in enumerate(path))
        for i, (x, d) in enumerate(runs):
            if i > 0:
                before = runs[i - 1][0]
                weight *= transition[before, x] / (1 - transition[before, before])
            law: list[Callable[[int], float]] = [stays[x].lasts, stays[x].lasts_at_least]
            if i == 0:
                law = [stays[x].left, stays[x].left_at_least]
            weight *= law[i == len(runs) - 1](d)
            if weight <= 0:
                break
        if weight > 0:
            weights[path] = float(weight)
    return weights


def normal_density(value: float, mean: float, deviation: float) -> float:
    """The density of a normal distribution."""
    return math.exp(-((value - mean) ** 2) / (2 * deviation**2)) / (deviation * math.sqrt(2 * math.pi))


def posterior(weights: dict[Path, float]) -> dict[Path, float]:
    """P[path | all readings]."""
    evidence = sum(weights.values())
    return {path: weight / evidence for path, weight in weights.items()}


@untraced
def marginals(distribution: dict[Path, float], n: int) -> Any:
    """P[x_t = x], (T, N), of a distribution over paths."""
    result = np.zeros((len(next(iter(distribution))), n))
    for path, p in distribution.items():
        for t, x in enumerate(path):
            result[t, x] += p
    return result


def filtered(initial: Any, transition: Any, likelihoods: Any) -> Any:
    """P[x_t = x | readings up to t], (T, N)."""
    prefixes = (likelihoods[: t + 1] for t in range(len(likelihoods)))
    return np.array([marginals(posterior(paths(initial, transition, prefix)), len(initial))[-1] for prefix in prefixes])


def paths_of_rows(step: Any, previous: Any, location: Any, p: Any) -> dict[Path, float]:
    """The distribution over paths of the rows of a MARKOV stream; a row from an impossible location is an error."""
    distribution: dict[Path, float] = {(): 1.0}
    for t in range(int(step.max()) + 1):
        rows = [(int(x), int(y), float(q)) for at, x, y, q in zip(step, previous, location, p, strict=True) if at == t]
        ends = {path[-1] if path else -1 for path in distribution}
        assert {x for x, _, _ in rows} == ends, "the rows of a step start at the locations of the step before"
        longer: dict[Path, float] = {}
        for path, weight in distribution.items():
            for x, y, q in rows:
                if x == (path[-1] if path else -1):
                    longer[(*path, y)] = weight * q
        distribution = longer
    return distribution


def distance(one: dict[Path, float], other: dict[Path, float]) -> float:
    """The total variation distance: the largest difference between the probabilities of an event."""
    return 0.5 * sum(abs(one.get(path, 0.0) - other.get(path, 0.0)) for path in one.keys() | other.keys())


# ------------------------------------------------------------ dense, for longer streams


@dataclass(frozen=True, slots=True)
class Smoothed:
    """The posterior given all readings; the rows of an impossible x in the tables are all zeros.

    `filtered` and `marginals` are (T, N), `tables` is (T - 1, N, N): P[y at t + 1 | x at t, all readings].
    """

    filtered: Any
    marginals: Any
    tables: Any
    log_likelihood: float


def smooth(initial: Any, transition: Any, likelihoods: Any) -> Smoothed:
    """Forward-backward in logarithms, in O(T N^2)."""
    with np.errstate(divide="ignore"):  # The logarithm of 0 is -inf on purpose.
        log_a, log_b = np.log(transition), np.log(likelihoods)
        log_alpha, log_likelihood = _forward(np.log(initial), log_a, log_b)
        log_beta, tables = _backward(log_a, log_b)
        log_marginals = log_alpha + log_beta
        log_marginals -= _log_sum(log_marginals, axis=1)[:, np.newaxis]
    tables[np.isneginf(log_marginals[:-1])] = 0.0
    return Smoothed(np.exp(log_alpha), np.exp(log_marginals), tables, log_likelihood)


def _forward(log_pi: Any, log_a: Any, log_b: Any) -> tuple[Any, float]:
    """Logarithms of P[x_t | readings up to t], and of P[all readings]."""
    log_alpha = np.empty_like(log_b)
    log_likelihood = 0.0
    ahead = log_pi
    for t in range(len(log_b)):
        weights = ahead + log_b[t]
        total = float(_log_sum(weights, axis=0))
        log_alpha[t] = weights - total
        log_likelihood += total
        ahead = _log_sum(log_alpha[t][:, np.newaxis] + log_a, axis=0)
    return log_alpha, log_likelihood


def _backward(log_a: Any, log_b: Any) -> tuple[Any, Any]:
    """Logarithms of the backward weights (the highest of each step is 0), and the posterior tables."""
    steps, states = log_b.shape
    log_beta = np.zeros((steps, states))
    tables = np.empty((steps - 1, states, states))
    for t in range(steps - 2, -1, -1):
        onward = log_a + (log_b[t + 1] + log_beta[t + 1])
        totals = _log_sum(onward, axis=1)
        log_beta[t] = totals - totals.max()
        # A dead end has a total of -inf; exp(-inf - 0) gives its row of zeros.
        tables[t] = np.exp(onward - np.where(np.isneginf(totals), 0.0, totals)[:, np.newaxis])
    return log_beta, tables


def _log_sum(logs: Any, axis: int) -> Any:
    """Logarithm of the sum of exponentials; -inf if every term is 0."""
    highest = logs.max(axis=axis, keepdims=True)
    highest[np.isneginf(highest)] = 0.0
    return np.log(np.exp(logs - highest).sum(axis=axis)) + highest.squeeze(axis)
