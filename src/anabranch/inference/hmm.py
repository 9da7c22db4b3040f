"""Hidden Markov models: from what the sensors saw to where somebody was, and how sure that is.

Stands at the head of the data's path: sensor readings come in, the rows of a MARKOV or INDEPENDENT
stream go out. Arrays in, arrays out; the module knows neither files nor Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_SUM_TOLERANCE = 1e-6
"""How far the probabilities of a distribution may be from 1 in total."""


@dataclass(frozen=True, slots=True)
class Smoothed:
    """What all readings together say of the hidden states; T steps, N states.

    Attributes
    ----------
    marginals : (T, N) array
        `marginals[t, x]` is P[x_t = x | all readings].
    tables : (T - 1, N, N) array
        `tables[t, x, y]` is P[x_{t+1} = y | x_t = x, all readings]. The row of an `x` that is impossible
        at t has no meaning and is all zeros; every other row sums to 1.
    log_likelihood : float
        log P[all readings].
    """

    marginals: Floats
    tables: Floats
    log_likelihood: float


def smooth(initial: ArrayLike, transition: ArrayLike, likelihoods: ArrayLike) -> Smoothed:
    """Forward-backward smoothing, with the posterior conditional tables.

    With A the transition matrix, b the likelihoods and beta the backward weights, the table is
    P[y at t + 1 | x at t, all readings] = A(x, y) b(t + 1, y) beta(t + 1, y) / (the sum over y).
    Together with the first marginal it is the posterior over whole paths: given all readings, the hidden
    states are again a Markov chain, though one whose tables change from step to step.

    Both passes are scaled, the weights of each step to a total (forward) or a maximum (backward) of 1, and
    they carry logarithms. Scaling alone keeps likely states from underflow; the logarithms also keep a state
    that fell to 1e-400 of the others and is the only one left when the next reading rules them out.

    Parameters
    ----------
    initial : (N,) array
        P[x_0 = x].
    transition : (N, N) array
        `transition[x, y]` is P[x_{t+1} = y | x_t = x].
    likelihoods : (T, N) array
        `likelihoods[t, x]` is P[what was read at t | x_t = x], up to a factor for each t.

    Returns
    -------
    Smoothed
        In O(T N^2) time and space.

    Raises
    ------
    ValueError
        Where the arguments are no model, or the readings are impossible in it.

    Examples
    --------
    Somebody who starts in room 0 and changes rooms one time in ten, and whom the last reading saw in room 1:

    >>> smoothed = smooth([1, 0], [[0.9, 0.1], [0.1, 0.9]], [[1, 1], [1, 1], [0, 1]])
    >>> smoothed.marginals.round(3).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    >>> smoothed.tables[0].round(3).tolist()
    [[0.5, 0.5], [0.0, 0.0]]
    """
    pi, a, b = _checked(initial, transition, likelihoods)
    with np.errstate(divide="ignore"):  # The logarithm of 0 is -inf, and is meant.
        log_pi, log_a, log_b = np.log(pi), np.log(a), np.log(b)
        log_alpha, log_likelihood = _forward(log_pi, log_a, log_b)
        log_beta, tables = _backward(log_a, log_b)
        log_marginals = log_alpha + log_beta
        log_marginals -= _log_sum(log_marginals, axis=1)[:, np.newaxis]
    tables[np.isneginf(log_marginals[:-1])] = 0.0
    return Smoothed(np.exp(log_marginals), tables, log_likelihood)


def detection_likelihoods(detection: ArrayLike, seen: ArrayLike) -> Floats:
    """The likelihood of each step's reading set, where readers see a state independently of each other.

    The likelihood of the set R in state x is the product over r in R of d(r, x) times the product over r
    not in R of 1 - d(r, x). It is worked out once for each distinct set: there are few, and most are empty.

    Parameters
    ----------
    detection : (R, N) array
        `detection[r, x]` is the chance that reader r sees a tag in state x in one step.
    seen : (T, R) boolean array
        Whether reader r saw the tag at step t.

    Returns
    -------
    (T, N) array
        The likelihoods, as `smooth` takes them.

    Examples
    --------
    >>> detection_likelihoods([[0.75, 0.0], [0.5, 0.25]], [[True, False], [False, False]]).tolist()
    [[0.375, 0.0], [0.125, 0.75]]
    """
    d = np.asarray(detection, dtype=np.float64)
    was_seen = np.asarray(seen, dtype=bool)
    if d.ndim != 2 or was_seen.ndim != 2 or was_seen.shape[1] != d.shape[0]:
        raise ValueError(f"detection {d.shape} and seen {was_seen.shape} do not share their readers")
    if not ((d >= 0) & (d <= 1)).all():
        raise ValueError("a detection probability is outside [0, 1]")
    sets, which = np.unique(was_seen, axis=0, return_inverse=True)
    of_set = np.where(sets[:, :, np.newaxis], d, 1.0 - d).prod(axis=1)
    likelihoods: Floats = of_set[which.reshape(-1)]
    return likelihoods


def _checked(initial: ArrayLike, transition: ArrayLike, likelihoods: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The arguments of `smooth` as arrays, or a ValueError that says which is wrong."""
    pi, a, b = (np.asarray(given, dtype=np.float64) for given in (initial, transition, likelihoods))
    if pi.ndim != 1 or pi.size == 0 or a.shape != (pi.size, pi.size) or b.ndim != 2 or b.shape[1] != pi.size:
        raise ValueError(f"shapes {pi.shape}, {a.shape}, {b.shape} are not (N,), (N, N), (T, N)")
    if b.shape[0] == 0:
        raise ValueError("there is no step to smooth")
    for name, array in (("initial", pi), ("transition", a), ("likelihoods", b)):
        if not np.isfinite(array).all() or (array < 0).any():
            raise ValueError(f"{name} has an entry that is negative or not finite")
    if abs(pi.sum() - 1) > _SUM_TOLERANCE or (abs(a.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
        raise ValueError("initial and each row of transition must sum to 1")
    return pi, a, b


def _forward(log_pi: Floats, log_a: Floats, log_b: Floats) -> tuple[Floats, float]:
    """Logarithms of P[x_t | readings up to t], and of P[all readings]."""
    log_alpha = np.empty_like(log_b)
    log_likelihood = 0.0
    ahead = log_pi
    for t in range(len(log_b)):
        weights = ahead + log_b[t]
        total = float(_log_sum(weights, axis=0))
        if total == -np.inf:
            raise ValueError(f"the readings are impossible in this model from step {t} on")
        log_alpha[t] = weights - total
        log_likelihood += total
        ahead = _log_sum(log_alpha[t][:, np.newaxis] + log_a, axis=0)
    return log_alpha, log_likelihood


def _backward(log_a: Floats, log_b: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the backward weights (each step's highest is 0), and the posterior tables."""
    steps, states = log_b.shape
    log_beta = np.zeros((steps, states))
    tables = np.empty((steps - 1, states, states))
    for t in range(steps - 2, -1, -1):
        onward = log_a + (log_b[t + 1] + log_beta[t + 1])
        totals = _log_sum(onward, axis=1)
        log_beta[t] = totals - totals.max()
        # A dead end has a total of -inf: its row of zeros is what exp(-inf - 0) gives.
        tables[t] = np.exp(onward - np.where(np.isneginf(totals), 0.0, totals)[:, np.newaxis])
    return log_beta, tables


def _log_sum(logs: Floats, axis: int) -> Floats:
    """Logarithm of the sum of exponentials; -inf where every term is 0."""
    highest = logs.max(axis=axis, keepdims=True)
    highest[np.isneginf(highest)] = 0.0
    sums: Floats = np.log(np.exp(logs - highest).sum(axis=axis)) + highest.squeeze(axis)
    return sums
