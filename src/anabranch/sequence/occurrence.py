"""The posterior of a gap with OCCURS: what happened unread in it, given its whole length.

Each component between two observed events happened or did not. An *alternative* is one choice for all of them. Its
likelihood is the probability of the choice, and that no reading was made, times the density of the length of the gap:
the delays of the components that happened, and of the event at the end, add up to it. The score of a match is the
likelihood of its own alternative, divided by the sum over all alternatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, ROUNDING
from anabranch.errors import DataError
from anabranch.sequence.densities import log_density
from anabranch.sequence.distributions import distribution_of
from anabranch.sequence.kernel.tables import Pieces, Table, convolved
from anabranch.sequence.pieces import TooManyPieces, fitted, highest, steps
from anabranch.sequence.query import BoundComponent, BoundDelay
from anabranch.sequence.smoothing import kernels_of

Values = Callable[[F64], F64]

#: A gap is impossible if its density is below this under every alternative. Densities end further out.
LEAST, _FAR = 1e-60, 1e-70
#: The mass of the shortest delays that is ignored, and the shortest gap, relative to a median, that is resolved.
_SHORT, _SHORTEST = 1e-10, 1e-12
#: The relative error allowed in a density, and the error allowed in a score.
_OF_DENSITY, _OF_SCORE = 1e-9, 5e-8
#: Without WITHIN, gaps of up to this many times the longest median are distinguished.
_LONGEST = 1e6
#: The most components of a gap: there are two alternatives for each.
MOST_COMPONENTS = 8
#: How many points indicate where the mass of a sum of delays is.
_GUIDES = 6


# ---------------------------------------------------------------- alternatives


class Alternative(NamedTuple):
    """What happened in a gap.

    Attributes
    ----------
    weight : the probability that this happened, and that nothing was read
    delays : the delays that add up to the gap
    is_match : whether all positive components happened, and no negative one
    """

    weight: float
    delays: tuple[BoundDelay, ...]
    is_match: bool


def alternatives(between: Sequence[BoundComponent], end: BoundComponent) -> Iterator[Alternative]:
    """The alternatives of a gap with a probability above 0; `end` is the component observed at its end."""
    for choice in itertools.product((True, False), repeat=len(between)):
        weight = math.prod(
            _occurs(component) * (component.miss or 0.0) if happened else 1.0 - _occurs(component)
            for component, happened in zip(between, choice, strict=True)
        )
        if weight > 0.0:
            is_match = all(happened != component.negative for component, happened in zip(between, choice, strict=True))
            yield Alternative(weight, tuple(_delays(between, choice, end)), is_match)


def _occurs(component: BoundComponent) -> float:
    return 1.0 if component.occurs is None else component.occurs


def _delays(between: Sequence[BoundComponent], choice: Sequence[bool], end: BoundComponent) -> Iterator[BoundDelay]:
    """The delays of the components that happened, and of the end; or the one law of the whole gap."""
    whole = _given(end, True, frozenset(component.name for component in itertools.compress(between, choice)))
    if whole is not None:
        yield whole
        return
    absent: set[str] = set()
    for component, happened in zip((*between, end), (*choice, True), strict=True):
        if not happened:
            absent.add(component.name)
            continue
        delay = _given(component, False, frozenset(absent)) or component.delay
        if delay is None:
            raise ValueError("with OCCURS, every component after the first needs a delay")
        yield delay


def _given(component: BoundComponent, happened: bool, names: frozenset[str]) -> BoundDelay | None:
    laws = (law.delay for law in component.given if (law.happened, law.components) == (happened, names))
    return next(laws, None)


# ---------------------------------------------------------------- densities


class _Density:
    """The density of a delay, or of a sum of delays.

    Attributes
    ----------
    value : the density at times above 0
    first : the shortest possible delay
    is_sum : a sum of delays has density 0 at the ends of its range, one delay has not
    is_bounded : whether no delay is longer than `end`
    start, end : where `value` is evaluated; before and after, there is too little mass to matter
    kinks : where it is not smooth
    guides : points that indicate where its mass is
    """

    def __init__(
        self, value: Values, first: float, start: float, end: float, kinks: F64, guides: F64, *,
        is_sum: bool = False, is_bounded: bool = False,
    ) -> None:  # fmt: skip
        self.value, self.first, self.start, self.end = value, first, start, end
        self.kinks, self.guides, self.is_sum, self.is_bounded = kinks, guides, is_sum, is_bounded

    @cached_property
    def pieces(self) -> Pieces:
        """The density as polynomials, each with full relative precision."""
        inner = np.concatenate([self.kinks, self.guides])
        inner = inner[(inner > self.start) & (inner < self.end)]
        # The last polynomial includes the end: a gap may be as long as the window.
        knots = np.unique([self.start, *inner, _including(self.end)])
        return fitted(lambda x: self.value(np.minimum(x, self.end)), knots, 0.0, LEAST, _OF_DENSITY)

    def at(self, x: F64) -> F64:
        """The density at times of 0 or more."""
        is_open = self.is_sum and self.is_bounded
        inside = (x > self.first) & (x < self.end) if is_open else (x >= self.first) & (x < _including(self.end))
        return np.where(inside, self.value(np.clip(x, self.start, self.end)), 0.0)


def _including(end: float) -> float:
    """An end behind all gaps of the length `end`, which the kernel rounds up."""
    return end * (1.0 + 4.0 * ROUNDING)


def _density_of(delay: BoundDelay, horizon: float) -> _Density:
    """The density of one delay; EMPIRICAL delays are smoothed."""
    if delay.law == "EMPIRICAL":
        return _smoothed(delay, horizon)
    distribution = distribution_of(delay)
    median = float(distribution.kinks[-1])
    start = distribution.start or _start(median, lambda x: float(distribution.below(np.array([x]))[0]))
    end = max(min(float(distribution.beyond(_FAR)), horizon), np.nextafter(start, np.inf))
    return _Density(
        lambda x: np.exp(log_density(delay.law, delay.parameters, x)),
        distribution.start,
        start,
        end,
        distribution.kinks[:-1],
        np.array([median]),
        is_bounded=delay.law == "UNIFORM" and distribution.beyond(0.0) <= horizon,
    )


def _smoothed(delay: BoundDelay, horizon: float) -> _Density:
    if min(delay.atoms) <= 0.0:
        reason = "with OCCURS, delays must be above 0; remove its rows with 0"
        raise DataError(f"{delay.path}: a delay is {min(delay.atoms):g}, but {reason}")
    kernels = kernels_of(np.array(delay.atoms))
    # Further than this from all kernels, the density is below _FAR.
    reach = np.exp(np.clip(kernels.centres + 38.0 * kernels.widths, -600.0, 600.0)).max()
    first = float(np.exp(kernels.centres - 9.0 * kernels.widths).min())
    start = min(first, 0.5 * horizon)
    end = max(min(float(reach), horizon), np.nextafter(start, np.inf))
    exact = _Density(kernels.density, 0.0, start, end, np.empty(0), np.exp(kernels.centres))
    return _Density(exact.pieces.at, 0.0, start, end, np.empty(0), exact.guides)


def _start(median: float, below: Callable[[float], float]) -> float:
    """A time before which a delay that can be arbitrarily short is negligible."""
    start = _SHORTEST * median
    while below(start) > _SHORT and start > 1e-280:
        start /= 16.0
    return max(start, 1e-280)


def _sum_of(first: _Density, second: _Density, horizon: float) -> _Density:
    """The density of the sum of two independent delays: the convolution of their densities."""
    ends, rows = first.pieces.breaks, first.pieces.coefficients[:-1] * np.diff(first.pieces.breaks)[:, None]
    pieces = second.pieces
    nodes, weights = np.polynomial.legendre.leggauss((rows.shape[1] + pieces.coefficients.shape[1]) // 2)
    start = first.start + second.start
    end = max(min(first.end + second.end, horizon), np.nextafter(start, np.inf))
    kinks = np.add.outer(_edges(first), _edges(second)).ravel()
    return _Density(
        lambda x: convolved(ends, rows, pieces, 0.5 + 0.5 * nodes, 0.5 * weights, x),
        first.first + second.first,
        start,
        end,
        np.unique(kinks[(kinks > start) & (kinks < end)]),
        np.unique(np.add.outer(_few(first.guides), _few(second.guides))),
        is_sum=True,
        is_bounded=first.is_bounded and second.is_bounded and first.end + second.end <= horizon,
    )


def _edges(density: _Density) -> F64:
    return np.unique([density.start, *density.kinks, density.end])


def _few(guides: F64) -> F64:
    return np.quantile(guides, np.linspace(0.0, 1.0, _GUIDES)) if len(guides) > _GUIDES else guides


# ---------------------------------------------------------------- tables


def occurrence_table(between: Sequence[BoundComponent], end: BoundComponent, horizon: float | None) -> Table:
    """The score of a gap as a function of its length.

    Parameters
    ----------
    between : the components between the two observed events, in order
    end : the component that is observed at the end of the gap
    horizon : the longest possible gap; None if there is none
    """
    labels = ", ".join(component.label for component in between)
    if len(between) > MOST_COMPONENTS:
        reason = f"above {MOST_COMPONENTS} that OCCURS can weigh; split the query"
        raise DataError(f"a gap has {len(between)} components ({labels}), {reason}")
    try:
        choices = list(alternatives(between, end))
        pieces = _Score(choices, _longest(choices) if horizon is None else horizon).tabulated()
    except TooManyPieces as refused:
        raise DataError(
            f"the score of a gap with {labels} needs {refused.count:,} pieces; use wider delays, or fewer in EMPIRICAL"
        ) from None
    return Table(pieces, rising=False, falling=False, highest=min(1.0, highest(pieces) + _OF_SCORE))


def _longest(choices: Sequence[Alternative]) -> float:
    """The longest gap that is resolved if there is no longest possible gap."""
    medians = [float(distribution_of(delay).kinks[-1]) for choice in choices for delay in choice.delays]
    return _LONGEST * max(medians, default=1.0)


class _Score:
    """The score of a gap: the likelihood of the match, divided by that of all alternatives."""

    def __init__(self, choices: Sequence[Alternative], horizon: float) -> None:
        self._horizon = horizon
        self._densities: dict[tuple[BoundDelay, ...], _Density] = {}
        # Delays can be added in any order, so alternatives with the same delays are one.
        self._weights: dict[tuple[BoundDelay, ...], tuple[float, float]] = {}
        for weight, delays, is_match in choices:
            key = tuple(sorted(delays, key=repr))
            total, matched = self._weights.get(key, (0.0, 0.0))
            self._weights[key] = total + weight, matched + weight * is_match
        self._terms = [(self._density(key), *weights) for key, weights in self._weights.items()]

    def _density(self, delays: tuple[BoundDelay, ...]) -> _Density:
        """The density of a sum of delays; sums of the last of them are shared."""
        if delays not in self._densities:
            if len(delays) == 1:
                density = _density_of(delays[0], self._horizon)
            else:
                density = _sum_of(self._density(delays[:1]), self._density(delays[1:]), self._horizon)
            self._densities[delays] = density
        return self._densities[delays]

    def tabulated(self) -> Pieces:
        """The score as polynomials."""
        if not any(matched for _, _, matched in self._terms):
            return steps(np.zeros(1), np.zeros(1))
        first = min(density.first for density, _, _ in self._terms)
        last, after = self._last()
        if len(self._terms) == 1:
            _, total, matched = self._terms[0]
            pieces = steps(np.array([first, last]), np.array([matched / total, after]))
            return pieces if first == 0.0 else _after(0.0, 0.0, pieces)
        knots = np.concatenate([_knots(density) for density, _, _ in self._terms])
        # Shorter gaps have the score of the shortest that is resolved.
        least = max(first, _SHORTEST * min(float(density.guides.min()) for density, _, _ in self._terms))
        knots = np.unique([least, *knots[(knots > least) & (knots < last)], last])
        pieces = fitted(self.value, knots, after, 1.0, _OF_SCORE)
        return _after(0.0, 0.0 if first > 0.0 else float(self.value(knots[:1])[0]), pieces)

    def _last(self) -> tuple[float, float]:
        """The length from which on the score does not change, and the score from there on.

        Gaps may be longer than their densities can be computed. These have the score of the longest for which they can.
        """
        densities = [density for density, _, _ in self._terms]
        end = max(density.end for density in densities)
        if all(density.is_bounded for density in densities):
            closed = any(density.end == end and not density.is_sum for density in densities)
            return _including(end) if closed else end, 0.0
        possible, last = max(float(density.guides.max()) for density in densities), end
        if self._total(np.array([end]))[0] <= LEAST:
            while last - possible > 1e-6 * last:
                middle = 0.5 * (last + possible)
                is_possible = self._total(np.array([middle]))[0] > LEAST
                last, possible = (last, middle) if is_possible else (middle, possible)
            last = possible
        return last, float(self.value(np.array([last]))[0])

    def _total(self, x: F64) -> F64:
        """The likelihood of gaps of these lengths under all alternatives."""
        return np.sum([weight * density.at(x) for density, weight, _ in self._terms], axis=0)

    def value(self, x: F64) -> F64:
        """The score of gaps of these lengths; 0 if no alternative makes such a gap."""
        total, matched = np.zeros(len(x)), np.zeros(len(x))
        for density, weight, weight_matched in self._terms:
            likelihood = density.at(x)
            total += weight * likelihood
            matched += weight_matched * likelihood
        return np.where(total > LEAST, matched / np.maximum(total, LEAST), 0.0)


def _knots(density: _Density) -> F64:
    """The points at which a polynomial must end."""
    is_open = density.is_sum and density.is_bounded
    ends = [density.start, density.end if is_open else _including(density.end)]
    return np.concatenate([ends, density.kinks, density.guides])


def _after(start: float, height: float, pieces: Pieces) -> Pieces:
    """A function that is a constant from `start` to the first piece."""
    constant = np.zeros((1, pieces.coefficients.shape[1]))
    constant[0, 0] = height
    return Pieces(
        np.concatenate([[start], pieces.breaks]),
        np.concatenate([[0.0], pieces.scale]),
        np.concatenate([constant, pieces.coefficients]),
    )
