"""How likely delays are under the laws of the language, and the parameters that make weighted delays likeliest."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi, sqrt

import numpy as np
from scipy import optimize, special

from anabranch.arrays import F64

Parameters = tuple[float, ...]

#: Laws with two parameters are told from each other where delays have so many values.
FEWEST_VALUES = 3

#: A normal law with a mean of so many deviations has nothing below 0.
_FAR = 8.0


def log_density(law: str, parameters: Parameters, x: F64) -> F64:
    """The logarithm of the density of a law at delays above 0."""
    return _LOG_DENSITIES[law](x, *parameters)


def likeliest(law: str, x: F64, weights: F64) -> Parameters:
    """The parameters of a law under which weighted delays are likeliest; UNIFORM a little wider than what was seen."""
    return _LIKELIEST[law](x, weights)


def candidates(x: F64) -> tuple[str, ...]:
    """The laws that delays can be told from."""
    return tuple(_LIKELIEST) if len(np.unique(x)) >= FEWEST_VALUES else ("EXPONENTIAL",)


def n_parameters(law: str) -> int:
    """How many parameters a law has."""
    return 1 if law == "EXPONENTIAL" else 2


def criterion(law: str, log_likelihood: float, n: int) -> float:
    """Half of the Bayesian criterion, as a log likelihood less what its parameters cost: the highest is the best."""
    return log_likelihood - 0.5 * n_parameters(law) * log(max(n, 1))


# ---------------------------------------------------------------- densities


def _exponential_density(x: F64, mean: float) -> F64:
    return -x / mean - log(mean)


def _uniform_density(x: F64, low: float, high: float) -> F64:
    return np.where((x >= low) & (x <= high), -log(high - low), -inf)


def _gamma_density(x: F64, shape: float, scale: float) -> F64:
    return (shape - 1) * np.log(x) - x / scale - shape * log(scale) - special.gammaln(shape)


def _lognormal_density(x: F64, mu: float, sigma: float) -> F64:
    y = np.log(x)
    return -0.5 * ((y - mu) / sigma) ** 2 - y - log(sigma * sqrt(2 * pi))


def _normal_density(x: F64, mean: float, sd: float) -> F64:
    return -0.5 * ((x - mean) / sd) ** 2 - log(sd * sqrt(2 * pi)) - special.log_ndtr(mean / sd)


_LOG_DENSITIES: dict[str, Callable[..., F64]] = {
    "EXPONENTIAL": _exponential_density,
    "UNIFORM": _uniform_density,
    "GAMMA": _gamma_density,
    "LOGNORMAL": _lognormal_density,
    "NORMAL": _normal_density,
}


# ---------------------------------------------------------------- parameters


def _exponential(x: F64, weights: F64) -> Parameters:
    return (_mean(x, weights),)


def _uniform(x: F64, weights: F64) -> Parameters:
    """The ends as far beyond what was seen as they are on average, so that the next delay is not impossible."""
    seen = x[weights > 0]
    low, high = float(seen.min()), float(seen.max())
    beyond = (high - low) / max(len(seen) - 1, 1)
    return max(low - beyond, 0.0), high + beyond


def _gamma(x: F64, weights: F64) -> Parameters:
    """The shape at which log(shape) - digamma(shape) is what the two means say."""
    mean = _mean(x, weights)
    gap = max(log(mean) - _mean(np.log(x), weights), 1e-12)

    def excess(log_shape: float) -> float:
        shape = np.exp(log_shape)
        return float(log_shape - special.digamma(shape) - gap)

    # 1 / (2 shape) < log(shape) - digamma(shape) < 1 / shape, and the ends are a little beyond.
    shape = float(np.exp(optimize.brentq(excess, log(0.25 / gap), log(2.0 / gap), xtol=1e-13)))
    return shape, mean / shape


def _lognormal(x: F64, weights: F64) -> Parameters:
    y = np.log(x)
    mu = _mean(y, weights)
    return mu, sqrt(_mean((y - mu) ** 2, weights))


def _normal(x: F64, weights: F64) -> Parameters:
    """The normal law above 0: z, its mean in deviations, is searched for; the best deviation follows from it."""
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

    found = optimize.minimize_scalar(loss, bounds=(-20.0, mean / sd), method="bounded", options={"xatol": 1e-9})
    return found.x / inverse_sd(found.x), 1.0 / inverse_sd(found.x)


_LIKELIEST: dict[str, Callable[[F64, F64], Parameters]] = {
    "EXPONENTIAL": _exponential,
    "UNIFORM": _uniform,
    "GAMMA": _gamma,
    "LOGNORMAL": _lognormal,
    "NORMAL": _normal,
}


def _mean(x: F64, weights: F64) -> float:
    return float(np.dot(x, weights) / weights.sum())
