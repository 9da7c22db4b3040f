"""Maximum-likelihood estimates of the parameters of distributions from weighted delays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy import optimize, special

from anabranch.arrays import F64
from anabranch.sequence.densities import Parameters, log_density

#: Delays need this many distinct values before distributions with two parameters are fitted.
FEWEST_VALUES = 3

#: From this ratio of mean to standard deviation on, the truncation of a normal distribution at 0 is ignored.
_FAR = 8.0


@dataclass(frozen=True, slots=True)
class FittedDistribution:
    """A distribution of a delay: its name in the language (`law`), and its parameters in the order of the language.

    `log_likelihood` is that of all observations that depend on this delay, with the best distributions of the others.
    """

    law: str
    parameters: Parameters
    log_likelihood: float = 0.0


def ranked(x: F64) -> tuple[FittedDistribution, ...]:
    """The distributions fitted to delays, the best first."""
    fits = []
    for law in candidates(x):
        parameters = likeliest(law, x, np.ones(len(x)))
        fits.append(FittedDistribution(law, parameters, float(log_density(law, parameters, x).sum())))
    return best_first(fits, len(x))


def best_first(fits: Sequence[FittedDistribution], n: int) -> tuple[FittedDistribution, ...]:
    """The distributions in the order of their `criterion` for n delays."""
    return tuple(sorted(fits, key=lambda fitted: -criterion(fitted.law, fitted.log_likelihood, n)))


def likeliest(law: str, x: F64, weights: F64) -> Parameters:
    """The maximum-likelihood parameters for weighted delays; the range of UNIFORM is a little wider than the data."""
    return _LIKELIEST[law](x, weights)


def candidates(x: F64) -> tuple[str, ...]:
    """The laws that can be fitted to delays."""
    return tuple(_LIKELIEST) if len(np.unique(x)) >= FEWEST_VALUES else ("EXPONENTIAL",)


def n_parameters(law: str) -> int:
    """How many parameters a law has."""
    return 1 if law == "EXPONENTIAL" else 2


def criterion(law: str, log_likelihood: float, n: int) -> float:
    """The log likelihood minus the penalty of the Bayesian information criterion; higher is better."""
    return log_likelihood - 0.5 * n_parameters(law) * log(max(n, 1))


# ---------------------------------------------------------------- parameters


def _exponential(x: F64, weights: F64) -> Parameters:
    return (_mean(x, weights),)


def _uniform(x: F64, weights: F64) -> Parameters:
    """The range of the data, widened on both sides by the mean spacing, so that the next delay is not impossible."""
    observed = x[weights > 0]
    low, high = float(observed.min()), float(observed.max())
    spacing = (high - low) / max(len(observed) - 1, 1)
    return max(low - spacing, 0.0), high + spacing


def _gamma(x: F64, weights: F64) -> Parameters:
    """The shape at which log(shape) - digamma(shape) equals log(mean(x)) - mean(log(x))."""
    mean = _mean(x, weights)
    gap = max(log(mean) - _mean(np.log(x), weights), 1e-12)

    def excess(log_shape: float) -> float:
        shape = np.exp(log_shape)
        return float(log_shape - special.digamma(shape) - gap)

    # 1 / (2 shape) < log(shape) - digamma(shape) < 1 / shape; the bracket is a little wider.
    shape = float(np.exp(optimize.brentq(excess, log(0.25 / gap), log(2.0 / gap), xtol=1e-13)))
    return shape, mean / shape


def _lognormal(x: F64, weights: F64) -> Parameters:
    y = np.log(x)
    mu = _mean(y, weights)
    return mu, sqrt(_mean((y - mu) ** 2, weights))


def _normal(x: F64, weights: F64) -> Parameters:
    """The normal distribution truncated at 0: minimise over z = mean / sd; the best sd for a z is known."""
    mean = _mean(x, weights)
    sd = sqrt(_mean((x - mean) ** 2, weights))
    if mean / sd > _FAR:
        return mean, sd
    square = mean**2 + sd**2

    def inverse_sd(z: float) -> float:
        return (z * mean + sqrt((z * mean) ** 2 + 4 * square)) / (2 * square)

    def loss(z: float) -> float:
        inverse = inverse_sd(z)
        quadratic = 0.5 * (square * inverse**2 - 2 * z * mean * inverse + z * z)
        return float(quadratic - log(inverse) + special.log_ndtr(z))

    best = optimize.minimize_scalar(loss, bounds=(-20.0, mean / sd), method="bounded", options={"xatol": 1e-9})
    return best.x / inverse_sd(best.x), 1.0 / inverse_sd(best.x)


_LIKELIEST: dict[str, Callable[[F64, F64], Parameters]] = {
    "EXPONENTIAL": _exponential,
    "UNIFORM": _uniform,
    "GAMMA": _gamma,
    "LOGNORMAL": _lognormal,
    "NORMAL": _normal,
}


def _mean(x: F64, weights: F64) -> float:
    return float(np.dot(x, weights) / weights.sum())
