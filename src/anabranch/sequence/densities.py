"""The logarithms of the densities of delays.

A *law* is the name of a distribution in the language: EXPONENTIAL, UNIFORM, GAMMA, LOGNORMAL or NORMAL.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi, sqrt

import numpy as np
from scipy import special

from anabranch.arrays import F64

Parameters = tuple[float, ...]


def log_density(law: str, parameters: Parameters, x: F64) -> F64:
    """The logarithm of the density of a distribution at delays above 0."""
    return _LOG_DENSITIES[law](x, *parameters)


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
    if mean >= 0.0:
        return -0.5 * ((x - mean) / sd) ** 2 - log(sd * sqrt(2 * pi)) - special.log_ndtr(mean / sd)
    # Far below 0, both the square and the logarithm of the mass above 0 are huge, and nearly equal.
    return -0.5 * (x / sd) * ((x - 2.0 * mean) / sd) - log(sd * sqrt(pi / 2)) - log(special.erfcx(-mean / sd / sqrt(2)))


_LOG_DENSITIES: dict[str, Callable[..., F64]] = {
    "EXPONENTIAL": _exponential_density,
    "UNIFORM": _uniform_density,
    "GAMMA": _gamma_density,
    "LOGNORMAL": _lognormal_density,
    "NORMAL": _normal_density,
}
