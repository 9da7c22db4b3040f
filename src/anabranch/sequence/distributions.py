"""The distributions of delays: the probability F that a delay is over by a time, and 1 - F that it is not.

Both are computed separately, because 1 - F loses precision in the tail that a ratio of tails needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from anabranch.arrays import F64
from anabranch.sequence.query import BoundDelay

Array = F64
Values = Callable[[Array], Array]

_ROOT_2 = np.sqrt(2.0)
#: The longest delay. Without it, quantiles of a wide LOGNORMAL would be infinite.
_LONGEST = 1e300
_NONE = np.empty(0)


class Distribution(NamedTuple):
    """The distribution of a delay.

    Attributes
    ----------
    below, above : callable
        F and 1 - F at times of 0 or more, each with full relative precision.
    beyond : callable
        The time that a delay exceeds with at most the given probability.
    start : float
        The shortest delay.
    kinks : array
        Where F is not smooth, then its median: without the median, a narrow distribution could be overlooked.
    atoms, counts : array
        The distinct delays of an EMPIRICAL distribution and their frequencies; empty for the others.
    """

    below: Values
    above: Values
    beyond: Callable[[float], float]
    start: float = 0.0
    kinks: Array = _NONE
    atoms: Array = _NONE
    counts: Array = _NONE

    @property
    def has_atoms(self) -> bool:
        """Whether the distribution is discrete."""
        return len(self.atoms) > 0

    def increments(self, x: Array) -> Array:
        """F below the median and F - 1 from there on: small in both tails, and with an exact slope."""
        return np.where(x < self.kinks[-1], self.below(x), -self.above(x))


def distribution_of(delay: BoundDelay) -> Distribution:
    """The distribution of a bound delay whose file has been read."""
    distribution: Distribution = _BY_LAW[delay.law](*(delay.parameters or (delay.atoms,)))
    return distribution


def _exponential(mean: float) -> Distribution:
    return _smooth(
        lambda x: -np.expm1(-x / mean),
        lambda x: np.exp(-x / mean),
        lambda q: -mean * np.log(q),
    )


def _uniform(low: float, high: float) -> Distribution:
    width = high - low
    return Distribution(
        lambda x: np.clip((x - low) / width, 0.0, 1.0),
        lambda x: np.clip((high - x) / width, 0.0, 1.0),
        lambda q: high,
        start=low,
        kinks=np.array([low, high, low + 0.5 * width]),
    )


def _gamma(shape: float, scale: float) -> Distribution:
    return _smooth(
        lambda x: special.gammainc(shape, x / scale),
        lambda x: special.gammaincc(shape, x / scale),
        lambda q: scale * special.gammainccinv(shape, q),
    )


def _lognormal(mu: float, sigma: float) -> Distribution:
    middle = np.exp(np.clip(mu, -np.log(_LONGEST), np.log(_LONGEST)))

    def standard(x: Array) -> Array:
        # Near the middle, log(x) - mu would be a difference of rounded numbers: too inaccurate for a small sigma.
        away = (x - middle) / middle
        with np.errstate(divide="ignore"):
            return np.where(np.abs(away) < 0.5, np.log1p(np.clip(away, -0.5, 0.5)), np.log(x / middle)) / sigma

    return _smooth(
        lambda x: special.ndtr(standard(x)),
        lambda x: special.ndtr(-standard(x)),
        lambda q: np.exp(min(mu - sigma * special.ndtri(q), np.log(_LONGEST))),
    )


def _normal(mean: float, sd: float) -> Distribution:
    """The normal distribution truncated at 0.

    The ratio of two tails is exp(log_above). It is computed by `log_ndtr` if the mean is above 0. Otherwise tails may
    underflow, and it is computed by the scaled complementary error function.
    """
    zero = -mean / sd

    def log_above(x: Array) -> Array:
        z = (x - mean) / sd
        if zero < 0.0:
            return special.log_ndtr(-z) - special.log_ndtr(-zero)
        scaled = special.erfcx(z / _ROOT_2) / special.erfcx(zero / _ROOT_2)
        return np.log(scaled) - 0.5 * (x / sd) * (z + zero)

    return _smooth(
        lambda x: -np.expm1(log_above(x)),
        lambda x: np.exp(log_above(x)),
        # If the mean is above 0, so is at least half of the mass; if it is below 0, the tail is shorter than with 0.
        lambda q: max(mean, 0.0) - sd * special.ndtri(0.5 * q),
        median=_normal_median(mean, sd),
    )


def _normal_median(mean: float, sd: float) -> float:
    """The median of the normal distribution truncated at 0; for a mean far below 0 it is almost exponential."""
    above = special.ndtr(mean / sd)
    return float(mean - sd * special.ndtri(0.5 * above)) if above > 1e-300 else float(np.log(2.0) * sd * sd / -mean)


def _empirical(delays: tuple[float, ...]) -> Distribution:
    atoms, counts = np.unique(np.array(delays, dtype=np.float64), return_counts=True)
    n = len(delays)
    reached = np.concatenate([[0], np.cumsum(counts)])

    def below(x: Array) -> Array:
        return reached[np.searchsorted(atoms, x, side="right")] / n

    def above(x: Array) -> Array:
        return (n - reached[np.searchsorted(atoms, x, side="right")]) / n

    return Distribution(
        below, above, lambda q: float(atoms[-1]), float(atoms[0]), atoms, atoms, counts.astype(np.float64)
    )


def _smooth(
    below: Values, above: Values, beyond: Callable[[float], float], median: float | None = None
) -> Distribution:
    middle = float(beyond(0.5)) if median is None else median
    return Distribution(below, above, beyond, kinks=np.array([middle]))


_BY_LAW: dict[str, Callable[..., Distribution]] = {
    "EXPONENTIAL": _exponential,
    "UNIFORM": _uniform,
    "GAMMA": _gamma,
    "LOGNORMAL": _lognormal,
    "NORMAL": _normal,
    "EMPIRICAL": _empirical,
}
