"""The laws of delays: how probably a delay is over by some time, and how probably it is not.

Both are given, since 1 - F loses in the tail what a ratio of tails needs.
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
#: No delay is longer. The quantiles of a wide LOGNORMAL would be infinite.
_LONGEST = 1e300
_NONE = np.empty(0)


class Law(NamedTuple):
    """The law of a delay.

    Attributes
    ----------
    below, above : callable
        F and 1 - F at times of 0 or more, each to its own last digits.
    beyond : callable
        The time that a delay exceeds with a given probability, or a later one.
    start : float
        No delay is shorter.
    kinks : array
        Where F has a bend, and its median, so that no narrow law is overlooked.
    atoms, counts : array
        The distinct delays of an EMPIRICAL law and how often each was seen; empty for the others, which have no atoms.
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
        """Whether delays are some of a few values."""
        return len(self.atoms) > 0

    def increments(self, x: Array) -> Array:
        """F, less 1 from the median on: what is small in a tail stays small, and its slope exact."""
        return np.where(x < self.kinks[-1], self.below(x), -self.above(x))


def law_of(delay: BoundDelay) -> Law:
    """The law of a delay as it is bound, its file read."""
    law: Law = _LAWS[delay.law](*(delay.parameters or (delay.atoms,)))
    return law


def _exponential(mean: float) -> Law:
    return _smooth(
        lambda x: -np.expm1(-x / mean),
        lambda x: np.exp(-x / mean),
        lambda q: -mean * np.log(q),
    )


def _uniform(low: float, high: float) -> Law:
    width = high - low
    return Law(
        lambda x: np.clip((x - low) / width, 0.0, 1.0),
        lambda x: np.clip((high - x) / width, 0.0, 1.0),
        lambda q: high,
        start=low,
        kinks=np.array([low, high, low + 0.5 * width]),
    )


def _gamma(shape: float, scale: float) -> Law:
    return _smooth(
        lambda x: special.gammainc(shape, x / scale),
        lambda x: special.gammaincc(shape, x / scale),
        lambda q: scale * special.gammainccinv(shape, q),
    )


def _lognormal(mu: float, sigma: float) -> Law:
    middle = np.exp(np.clip(mu, -np.log(_LONGEST), np.log(_LONGEST)))

    def standard(x: Array) -> Array:
        # Near the middle, log(x) - mu would be a difference of rounded numbers: too rough for a small sigma.
        away = (x - middle) / middle
        with np.errstate(divide="ignore"):
            return np.where(np.abs(away) < 0.5, np.log1p(np.clip(away, -0.5, 0.5)), np.log(x / middle)) / sigma

    return _smooth(
        lambda x: special.ndtr(standard(x)),
        lambda x: special.ndtr(-standard(x)),
        lambda q: np.exp(min(mu - sigma * special.ndtri(q), np.log(_LONGEST))),
    )


def _normal(mean: float, sd: float) -> Law:
    """The normal law above 0.

    The ratio of two tails is exp(log_above): by `log_ndtr` where 0 is left of the mean, and else, where tails may be
    too small for a number, by the scaled complement of the error function.
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
        # At least half of the law is above 0 where the mean is, and with a mean below 0 it ends earlier than with 0.
        lambda q: max(mean, 0.0) - sd * special.ndtri(0.5 * q),
        median=_normal_median(mean, sd),
    )


def _normal_median(mean: float, sd: float) -> float:
    """The median of the normal law above 0; far below, that is an exponential law."""
    above = special.ndtr(mean / sd)
    return float(mean - sd * special.ndtri(0.5 * above)) if above > 1e-300 else float(np.log(2.0) * sd * sd / -mean)


def _empirical(delays: tuple[float, ...]) -> Law:
    atoms, counts = np.unique(np.array(delays, dtype=np.float64), return_counts=True)
    n = len(delays)
    reached = np.concatenate([[0], np.cumsum(counts)])

    def below(x: Array) -> Array:
        return reached[np.searchsorted(atoms, x, side="right")] / n

    def above(x: Array) -> Array:
        return (n - reached[np.searchsorted(atoms, x, side="right")]) / n

    return Law(below, above, lambda q: float(atoms[-1]), float(atoms[0]), atoms, atoms, counts.astype(np.float64))


def _smooth(below: Values, above: Values, beyond: Callable[[float], float], median: float | None = None) -> Law:
    middle = float(beyond(0.5)) if median is None else median
    return Law(below, above, beyond, kinks=np.array([middle]))


_LAWS: dict[str, Callable[..., Law]] = {
    "EXPONENTIAL": _exponential,
    "UNIFORM": _uniform,
    "GAMMA": _gamma,
    "LOGNORMAL": _lognormal,
    "NORMAL": _normal,
    "EMPIRICAL": _empirical,
}
