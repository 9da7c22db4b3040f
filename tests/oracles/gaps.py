"""The score of a gap in a SEQUENCE: a convolution of delays, integrated numerically. Right to about 1e-11."""

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

#: In an integral, below it a mass is nothing.
NEGLIGIBLE = 1e-35


class Part(NamedTuple):
    """A component between two observed events: a negative, or a positive that is missing."""

    negative: bool
    miss: float
    delay: BoundDelay | None


def parts_of(components: Iterable[BoundComponent]) -> tuple[Part, ...]:
    """What lies in a gap, given its components."""
    return tuple(Part(each.negative, each.miss, each.delay) for each in components)


@cache
def gap_score(gap: tuple[Part, ...], length: float, scoring: str = JOINT) -> float:
    """The score of a gap.

    Parameters
    ----------
    gap : what lies in it, in order
    length : the time between the observed events around it, or to an end of the window
    scoring : 'joint' or 'posterior'
    """
    lost = [part for part in gap if not part.negative]
    segments = _segments(part for part in gap if not part.negative or part.miss > 0)
    if scoring == JOINT or not lost:
        quiet = [_negatives(own, _quiet) for own in segments]
        return _chain(lost, quiet[:-1], quiet[-1], length)
    unseen = [_negatives(own, _survival) for own in segments]
    everything = _chain(lost, unseen[:-1], unseen[-1], length)
    unread = [_negatives(own, _unread) for own in segments]
    so_far = [
        _chain(lost[:count], unread[:count], _product([unread[count], *_not_yet(lost[count:])]), length)
        for count in range(len(lost) + 1)
    ]
    return everything / sum(so_far) if everything > 0 else 0.0


def _segments(gap: Iterable[Part]) -> list[list[Part]]:
    """The negatives ahead of each missing positive, and those after the last."""
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
    """A function of a time span, with the points between which it is smooth and those that tell its scale.

    `value` None is 1 throughout. Below `low` and above `high` it is 0.
    """

    value: Function | None = None
    kinks: frozenset[float] = frozenset({0.0})
    scales: frozenset[float] = frozenset()
    low: float = 0.0
    high: float = math.inf

    def __call__(self, span: ArrayLike) -> NDArray[np.float64]:
        """Its values."""
        spans = np.asarray(span, dtype=float)
        return np.ones_like(spans) if self.value is None else self.value(spans)

    @property
    def points(self) -> frozenset[float]:
        """Where to begin a new panel."""
        return self.kinks | self.scales


def _product(curves: Sequence[Curve]) -> Curve:
    """The product of some curves."""
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
    """1 - F: it has not happened."""
    return Curve() if part.delay is None else _law(part.delay).survival


def _unread(part: Part) -> Curve:
    """eps F + 1 - F: it has not been read."""
    survival = _survival(part)
    if survival.value is None or part.miss == 0:
        return survival
    return replace(survival, value=lambda span: part.miss * (1 - survival(span)) + survival(span), high=math.inf)


def _quiet(part: Part) -> Curve:
    """S: it has not happened, since it has not been read."""
    if part.miss == 0:
        return Curve()
    survival, unread = _survival(part), _unread(part)
    return replace(survival, value=lambda span: survival(span) / unread(span))


def _not_yet(lost: Sequence[Part]) -> list[Curve]:
    """That the next of the missing ones has not happened."""
    return [_survival(part) for part in lost[:1]]


# ---------------------------------------------------------------- integrals


def _chain(lost: Sequence[Part], before: Sequence[Curve], after: Curve, length: float) -> float:
    """The integral over the times at which the lost ones happened, one after the other, within a length.

    Each factor depends on one delay alone, and the delays fill the length: this is a convolution. `before` are the
    factors of each delay, `after` is that of what is left after the last one. Atoms are summed over.
    """
    laws = [_law(part.delay) for part in lost if part.delay is not None]
    eps = math.prod(part.miss for part in lost)
    atoms = [
        [(atom, float(weight(atom)) / len(law.atoms)) for atom in law.atoms]
        for law, weight in zip(laws, before, strict=True) if law.atoms
    ]  # fmt: skip
    smooth = [(law, weight) for law, weight in zip(laws, before, strict=True) if not law.atoms]
    curve = _convolution(smooth, after)
    total = 0.0
    for way in itertools.product(*atoms):
        left = length - sum(atom for atom, _ in way)
        if left >= 0:
            total += math.prod(weight for _, weight in way) * float(curve(left))
    return eps * total


def _convolution(smooth: Sequence[tuple[Law, Curve]], after: Curve) -> Curve:
    """The convolution of weighted densities and of what comes after them."""
    factors = [_product([law.density, weight]) for law, weight in smooth]
    plain = [number for number, (_, weight) in enumerate(smooth) if weight.value is None]
    if after.value is None and plain:
        # The integral of a density is known.
        factors.pop(plain[-1])
        after = smooth[plain[-1]][0].distribution
    factors.append(after)
    return _convolved(factors)


def _convolved(factors: Sequence[Curve]) -> Curve:
    """From both ends to the middle, so that integrals of two delays are the deepest that three need."""
    if len(factors) == 1:
        return factors[0]
    half = len(factors) // 2
    left, right = _convolved(factors[:half]), _convolved(factors[half:])
    kinks = frozenset(a + b for a in left.kinks for b in right.kinks)
    scales = frozenset(a + b for one, other in ((left, right), (right, left)) for a in one.kinks for b in other.scales)
    along = frozenset(a + b for a, b in zip(sorted(left.scales), sorted(right.scales), strict=False))
    return Curve(
        lambda span: _integral(left, right, span), kinks, scales | along, left.low + right.low, left.high + right.high
    )


#: Nodes of the tanh-sinh rule on [0, 1], as distances from both ends, and their weights. It does not mind what a
#: function does at the ends, as the density of GAMMA(0.5, 1) at 0.
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
    # What has no mass need not be multiplied.
    panel, node = np.nonzero(masses > NEGLIGIBLE)
    rest = (flat[rows] - ends)[panel, 0] + (ends - begins)[panel, 0] * _FROM_RIGHT[node]
    values = masses[panel, node] * right(rest)
    sums = np.bincount(rows[panel], values, len(flat)).reshape(spans.shape)
    # Where it is 0, nodes that were rounded to the wrong side of a kink would say otherwise.
    return np.where((left.low + right.low < spans) & (spans < left.high + right.high), sums, 0.0)


# ---------------------------------------------------------------- laws

#: The quantiles that tell the scale of a law. What is below a 25th of the last is left out: nodes are dense at 0.
_QUANTILES = (1e-9, 0.01, 0.5, 0.99, 1 - 1e-4, 1 - 1e-9)


@dataclass(frozen=True, eq=False)
class Law:
    """The law of a delay. `atoms` are the delays of an EMPIRICAL one, alike in weight; it has no density."""

    density: Curve
    survival: Curve
    atoms: tuple[float, ...] = ()

    @property
    def distribution(self) -> Curve:
        """The chance that the delay is at most so long."""
        return replace(self.survival, value=lambda span: 1 - self.survival(span), low=self.density.low, high=math.inf)


@cache
def _law(delay: BoundDelay) -> Law:
    if delay.law == "EMPIRICAL":
        atoms = tuple(delay.atoms)
        sorted_ = np.sort(np.array(atoms))
        survival = Curve(
            lambda span: 1 - np.searchsorted(sorted_, span, side="right") / len(atoms),
            frozenset({0.0, *atoms}),
            high=max(atoms),
        )
        return Law(Curve(), survival, atoms)
    law, kinks = _distribution(delay.law, *delay.parameters)
    # All but one of them are on the positive side, and the rest of that one is cut off.
    mass = law.sf(0.0)
    quantiles = [float(law.isf(mass * (1 - quantile))) for quantile in _QUANTILES]
    scales = frozenset(quantile for quantile in quantiles if quantile > quantiles[-1] / 25)
    high = law.support()[1]
    return Law(
        Curve(lambda span: law.pdf(span) / mass, kinks, scales, min(kinks), high),
        # What it is multiplied with begins at 0.
        Curve(lambda span: law.sf(span) / mass, kinks | {0.0}, scales, 0.0, high),
    )


def _distribution(name: str, *parameters: float) -> tuple[Any, frozenset[float]]:
    """A law as SciPy has it, and where it is not smooth."""
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
