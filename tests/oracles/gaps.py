"""The score of a gap in a SEQUENCE: a convolution of delays, integrated numerically. Accurate to about 1e-11."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from anabranch.sequence.query import BoundComponent, BoundDelay

JOINT, POSTERIOR = "joint", "posterior"

#: Masses below this are ignored in an integral.
NEGLIGIBLE = 1e-35


class Part(NamedTuple):
    """A component between two observed events: a negative, or a positive that is missing."""

    negative: bool
    miss: float
    delay: BoundDelay | None


def parts_of(components: Iterable[BoundComponent]) -> tuple[Part, ...]:
    """The parts of a gap with these components."""
    return tuple(Part(component.negative, component.miss, component.delay) for component in components)


@cache
def gap_score(gap: tuple[Part, ...], length: float, scoring: str = JOINT) -> float:
    """The score of a gap.

    Parameters
    ----------
    gap : its components, in order
    length : the time between the observed events around it, or to an end of the window
    scoring : 'joint' or 'posterior'
    """
    lost = [part for part in gap if not part.negative]
    segments = _segments(part for part in gap if not part.negative or part.miss > 0)
    if scoring == JOINT or not lost:
        factors = [_negatives(negatives, _survival_if_unread) for negatives in segments]
        return _chain(lost, factors[:-1], factors[-1], length)
    survivals = [_negatives(negatives, _survival) for negatives in segments]
    all_lost = _chain(lost, survivals[:-1], survivals[-1], length)
    unread = [_negatives(negatives, _unread) for negatives in segments]
    by_count = [
        _chain(lost[:count], unread[:count], _product([unread[count], *_not_yet(lost[count:])]), length)
        for count in range(len(lost) + 1)
    ]
    return all_lost / sum(by_count) if all_lost > 0 else 0.0


def _segments(gap: Iterable[Part]) -> list[list[Part]]:
    """The negatives before each missing positive, and those after the last."""
    segments: list[list[Part]] = [[]]
    for part in gap:
        if part.negative:
            segments[-1].append(part)
        else:
            segments.append([])
    return segments


Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of a time span.

    Attributes
    ----------
    value : None for the constant 1
    kinks : the points between which it is smooth
    scales : points that indicate its scale
    low, high : outside of them it is 0
    """

    value: Function | None = None
    kinks: frozenset[float] = frozenset({0.0})
    scales: frozenset[float] = frozenset()
    low: float = 0.0
    high: float = math.inf

    def __call__(self, span: ArrayLike) -> NDArray[np.float64]:
        """The values of the function."""
        spans = np.asarray(span, dtype=float)
        return np.ones_like(spans) if self.value is None else self.value(spans)

    @property
    def points(self) -> frozenset[float]:
        """The points at which a new panel begins."""
        return self.kinks | self.scales


def _product(curves: Sequence[Curve]) -> Curve:
    """The product of curves."""
    curves = [curve for curve in curves if curve.value is not None]
    if not curves:
        return Curve()
    low, high = max(curve.low for curve in curves), min(curve.high for curve in curves)
    return Curve(
        lambda span: math.prod((curve(span) for curve in curves[1:]), start=curves[0](span)),
        frozenset().union(*(curve.kinks for curve in curves)),
        frozenset().union(*(curve.scales for curve in curves)),
        low if low < high else math.inf,
        high,
    )


def _negatives(parts: Iterable[Part], of_part: Callable[[Part], Curve]) -> Curve:
    return _product([of_part(part) for part in parts])


def _survival(part: Part) -> Curve:
    """1 - F: the probability that it has not happened."""
    return Curve() if part.delay is None else _distribution(part.delay).survival


def _unread(part: Part) -> Curve:
    """eps F + 1 - F: the probability that it has not been read."""
    survival = _survival(part)
    if survival.value is None or part.miss == 0:
        return survival
    return replace(survival, value=lambda span: part.miss * (1 - survival(span)) + survival(span), high=math.inf)


def _survival_if_unread(part: Part) -> Curve:
    """The probability that it has not happened, given that it has not been read."""
    if part.miss == 0:
        return Curve()
    survival, unread = _survival(part), _unread(part)
    return replace(survival, value=lambda span: survival(span) / unread(span))


def _not_yet(lost: Sequence[Part]) -> list[Curve]:
    """The probability that the next missing positive has not happened."""
    return [_survival(part) for part in lost[:1]]


# ---------------------------------------------------------------- integrals


def _chain(lost: Sequence[Part], before: Sequence[Curve], after: Curve, length: float) -> float:
    """The integral over the times of the lost events, one after the other, within a length.

    Each factor depends on one delay only, and the delays and the rest sum to the length: this is a convolution.
    `before` are the factors of the delays, `after` is the factor of the rest. Atoms are summed.
    """
    distributions = [_distribution(part.delay) for part in lost if part.delay is not None]
    eps = math.prod(part.miss for part in lost)
    atoms = [
        [(atom, float(weight(atom)) / len(distribution.atoms)) for atom in distribution.atoms]
        for distribution, weight in zip(distributions, before, strict=True) if distribution.atoms
    ]  # fmt: skip
    smooth = [
        (distribution, weight)
        for distribution, weight in zip(distributions, before, strict=True)
        if not distribution.atoms
    ]
    curve = _convolution(smooth, after)
    total = 0.0
    for choice in itertools.product(*atoms):
        rest = length - sum(atom for atom, _ in choice)
        if rest >= 0:
            total += math.prod(weight for _, weight in choice) * float(curve(rest))
    return eps * total


def _convolution(smooth: Sequence[tuple[Distribution, Curve]], after: Curve) -> Curve:
    """The convolution of weighted densities with the factor of the rest."""
    factors = [_product([distribution.density, weight]) for distribution, weight in smooth]
    unweighted = [number for number, (_, weight) in enumerate(smooth) if weight.value is None]
    if after.value is None and unweighted:
        # The integral of a density is its cumulative distribution.
        factors.pop(unweighted[-1])
        after = smooth[unweighted[-1]][0].cumulative
    factors.append(after)
    return _convolved(factors)


def _convolved(factors: Sequence[Curve]) -> Curve:
    """The convolution of all factors, by halves: three delays then need nested integrals of at most two."""
    if len(factors) == 1:
        return factors[0]
    half = len(factors) // 2
    left, right = _convolved(factors[:half]), _convolved(factors[half:])
    kinks = frozenset(a + b for a in left.kinks for b in right.kinks)
    scales = frozenset(a + b for one, other in ((left, right), (right, left)) for a in one.kinks for b in other.scales)
    sums = frozenset(a + b for a, b in zip(sorted(left.scales), sorted(right.scales), strict=False))
    return Curve(
        lambda span: _integral(left, right, span), kinks, scales | sums, left.low + right.low, left.high + right.high
    )


#: Nodes of the tanh-sinh rule on [0, 1], as distances from both ends, and their weights. It works for functions with a
#: singularity at an end, such as the density of GAMMA(0.5, 1) at 0.
_STEP = 0.12
_STEPS = np.arange(-34, 35) * _STEP
_FROM_LEFT = 1 / (1 + np.exp(-np.pi * np.sinh(_STEPS)))
_FROM_RIGHT = _FROM_LEFT[::-1]
_WEIGHTS = _STEP * np.pi * np.cosh(_STEPS) * _FROM_LEFT * _FROM_RIGHT


def _integral(left: Curve, right: Curve, spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral of left(u) right(span - u) over u from 0 to each span."""
    flat = spans.reshape(-1, 1)
    starts = [np.full_like(flat, point) for point in left.points]
    ends = [flat - point for point in right.points]
    edges = np.sort(np.clip(np.hstack([*starts, *ends, np.zeros_like(flat), flat]), 0, flat), axis=1)
    rows, panels = np.nonzero(np.diff(edges, axis=1))
    begins, ends = edges[rows, panels, None], edges[rows, panels + 1, None]
    masses = left(begins + (ends - begins) * _FROM_LEFT) * (ends - begins) * _WEIGHTS
    # Nodes without mass are skipped.
    panel, node = np.nonzero(masses > NEGLIGIBLE)
    rest = (flat[rows] - ends)[panel, 0] + (ends - begins)[panel, 0] * _FROM_RIGHT[node]
    values = masses[panel, node] * right(rest)
    sums = np.bincount(rows[panel], values, len(flat)).reshape(spans.shape)
    # Outside these bounds the integral is exactly 0; nodes rounded to the wrong side of a kink could make it positive.
    return np.where((left.low + right.low < spans) & (spans < left.high + right.high), sums, 0.0)


# ---------------------------------------------------------------- distributions

#: Quantiles that indicate the scale of a distribution. Those below 1/25 of the last are ignored: nodes are dense at 0.
_QUANTILES = (1e-9, 0.01, 0.5, 0.99, 1 - 1e-4, 1 - 1e-9)


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of a delay. An EMPIRICAL distribution has equally weighted `atoms` and no density."""

    density: Curve
    survival: Curve
    atoms: tuple[float, ...] = ()

    @property
    def cumulative(self) -> Curve:
        """The cumulative distribution function."""
        return replace(self.survival, value=lambda span: 1 - self.survival(span), low=self.density.low, high=math.inf)


@cache
def _distribution(delay: BoundDelay) -> Distribution:
    if delay.law == "EMPIRICAL":
        atoms = tuple(delay.atoms)
        sorted_ = np.sort(np.array(atoms))
        survival = Curve(
            lambda span: 1 - np.searchsorted(sorted_, span, side="right") / len(atoms),
            frozenset({0.0, *atoms}),
            high=max(atoms),
        )
        return Distribution(Curve(), survival, atoms)
    continuous, kinks = _scipy_distribution(delay.law, *delay.parameters)
    # NORMAL is truncated at 0; the other distributions have no mass below 0.
    mass = continuous.sf(0.0)
    quantiles = [float(continuous.isf(mass * (1 - quantile))) for quantile in _QUANTILES]
    scales = frozenset(quantile for quantile in quantiles if quantile > quantiles[-1] / 25)
    high = continuous.support()[1]
    return Distribution(
        Curve(lambda span: continuous.pdf(span) / mass, kinks, scales, min(kinks), high),
        # The functions that it is multiplied with begin at 0.
        Curve(lambda span: continuous.sf(span) / mass, kinks | {0.0}, scales, 0.0, high),
    )


def _scipy_distribution(name: str, *parameters: float) -> tuple[Any, frozenset[float]]:
    """A distribution of SciPy, and where it is not smooth."""
    start = frozenset({0.0})
    match name, parameters:
        case "EXPONENTIAL", (mean,):
            return stats.expon(scale=mean), start
        case "UNIFORM", (lo, hi):
            return stats.uniform(lo, hi - lo), frozenset({lo, hi})
        case "GAMMA", (shape, scale):
            return stats.gamma(shape, scale=scale), start
        case "LOGNORMAL", (mu, sigma):
            return stats.lognorm(sigma, scale=math.exp(mu)), start
        case "NORMAL", (mean, sd):
            return stats.norm(mean, sd), start
    message = f"no law {name}{parameters}"
    raise ValueError(message)
