"""Learns the distributions of the lengths of segments, and of the gaps between them, from recorded events.

If both ends are recorded, the length is known. If one is lost, the length is *censored*: it lies between two limits,
which follow from the window of the lost event. If both are lost, little is known, and the length is not used.

The likelihood of a known length is the density of the distribution, that of a censored one is the probability between
its limits. For each k, the mean is the one with the highest likelihood. The best k is chosen by likelihood too, because
all have the same number of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from anabranch.arrays import F64, Bools
from anabranch.columns.times import TimeKind, restore_doubles
from anabranch.relate.windows import Windows

#: The largest k that is tried by default: the time of a query grows with it.
MOST_K = 10

#: With fewer recorded lengths only the mean is learned, because any two numbers are close to some mean.
FEWEST_FOR_K = 5

#: The recorded lengths without which a class has no distribution of its own.
FEWEST = 2

#: Rounding of times makes lengths equal to 0; they count as this share of the mean.
_SHORTEST = 1e-3


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of segments or gaps: the limits of each, and the number of its class, -1 if it is unknown."""

    low: F64
    high: F64
    of_class: npt.NDArray[np.int64]

    def where(self, chosen: Bools) -> Lengths:
        """The chosen lengths."""
        return Lengths(self.low[chosen], self.high[chosen], self.of_class[chosen])


@dataclass(frozen=True, slots=True)
class SegmentFit:
    """The distribution of one class of segments (`clause` DURATION) or gaps (GAP); `name` is '' for all classes."""

    clause: str
    name: str
    k: int
    mean: float
    log_likelihood: float
    recorded: F64
    n_censored: int

    @property
    def law(self) -> str:
        """The distribution in the language."""
        return "EXPONENTIAL" if self.k == 1 else "ERLANG"

    def density(self, length: F64) -> F64:
        """The density at a length."""
        return np.exp(_log_density(self.k, self.mean, length))


def lengths_of(windows: Windows, kind: TimeKind, classes: npt.NDArray[np.int64]) -> dict[str, Lengths]:
    """The lengths of segments and gaps with at least one recorded end, by clause.

    Parameters
    ----------
    windows : the entities
    kind : of their times; lengths are in seconds for timestamps
    classes : the class of the segment that each event opens, or that it closes
    """
    low, high = (
        restore_doubles(ends) if kind is TimeKind.DOUBLE else ends / kind.per_unit for ends in (windows.lo, windows.hi)
    )
    lost = windows.lo < windows.hi
    last = np.zeros(len(low), np.bool_)
    last[windows.events[1:][windows.lengths > 0] - 1] = True
    position = np.arange(len(low)) - np.repeat(windows.events[:-1], windows.lengths)
    begins = np.flatnonzero(~last & ~(lost & np.append(lost[1:], False)))
    lengths = Lengths(np.maximum(low[begins + 1] - high[begins], 0.0), high[begins + 1] - low[begins], classes[begins])
    is_segment = position[begins] % 2 == 0
    return {"DURATION": lengths.where(is_segment), "GAP": lengths.where(~is_segment)}


def fit_durations(lengths: Lengths, clause: str, names: Sequence[str], most_k: int = MOST_K) -> Iterator[SegmentFit]:
    """Fit the distribution of all lengths, then that of each class with enough of them.

    Examples
    --------
    >>> lengths = Lengths(np.array([3.0, 4.0, 5.0, 2.0]), np.array([3.0, 4.0, 5.0, 9.0]), np.zeros(4, np.int64))
    >>> [(fit.name, fit.k, round(fit.mean, 1)) for fit in fit_durations(lengths, "DURATION", ["visit"])]
    [('', 1, 4.2), ('visit', 1, 4.2)]
    """
    known = lengths.low == lengths.high
    if known.sum() >= FEWEST:
        yield _fit(lengths, clause, "", most_k)
    for number, name in enumerate(names):
        members = lengths.of_class == number
        if (known & members).sum() >= FEWEST:
            yield _fit(lengths.where(members), clause, name, most_k)


def _fit(lengths: Lengths, clause: str, name: str, most_k: int) -> SegmentFit:
    known = lengths.low == lengths.high
    recorded, censored = lengths.low[known], lengths.where(~known)
    exact = np.maximum(recorded, _SHORTEST * recorded.mean())
    best_k, best_mean, best = 0, 0.0, -np.inf
    for k in range(1, (most_k if len(recorded) >= FEWEST_FOR_K else 1) + 1):
        mean, log_likelihood = _best_mean(k, exact, censored)
        if log_likelihood <= best:
            break  # the likelihood has one maximum in k
        best_k, best_mean, best = k, mean, log_likelihood
    return SegmentFit(clause, name, best_k, best_mean, best, recorded, len(censored.low))


def _best_mean(k: int, exact: F64, censored: Lengths) -> tuple[float, float]:
    """The mean with the highest likelihood, and its logarithm."""
    start = float(exact.mean())
    if len(censored.low):
        bounds = (np.log(start) - 3.0, np.log(start) + 3.0)
        found = optimize.minimize_scalar(
            lambda x: -_log_likelihood(k, float(np.exp(x)), exact, censored), bounds=bounds, method="bounded"
        )
        start = float(np.exp(found.x))
    return start, _log_likelihood(k, start, exact, censored)


def _log_likelihood(k: int, mean: float, exact: F64, censored: Lengths) -> float:
    between = special.gammainc(k, k * censored.high / mean) - special.gammainc(k, k * censored.low / mean)
    return float(_log_density(k, mean, exact).sum() + np.log(np.maximum(between, 1e-300)).sum())


def _log_density(k: int, mean: float, length: F64) -> F64:
    return k * np.log(k / mean) + (k - 1) * np.log(length) - k * length / mean - special.gammaln(k)
