"""The score of a gap: the probability of what happened unobserved between two observed events.

Between two observed events are missing positives 1..r, each a delay after the positive before it, and negatives, each
of which would have come a delay after the positive before it. The score is an integral over the times of the missing
positives, and depends only on the length of the gap. It is computed from the end, one missing positive at a time:

    B_r(u) = A_r(u)        B_(k-1)(u) = integral of A_(k-1)(s) B_k(u - s) dF_k(s) over s from 0 to u

F_k is the distribution of the delay of positive k. A_k(s) is the factor of the negatives after positive k if the next
positive is s later. Each B_k is tabulated before B_(k-1) is computed. The score is B_0 times the probabilities of all
losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64
from anabranch.errors import DataError
from anabranch.sequence.distributions import Distribution, distribution_of
from anabranch.sequence.kernel.tables import Pieces, Table, convolved, shifted
from anabranch.sequence.pieces import (
    MOST_PIECES,
    MOST_SUMS,
    TOLERANCE,
    TooManyPieces,
    fitted,
    highest,
    interpolated,
    jumps,
    steps,
    steps_of_sums,
    sums,
)
from anabranch.sequence.query import BoundDelay

Array = F64
Values = Callable[[Array], Array]

_ZERO = np.zeros(1)
_ONE = steps(_ZERO, np.ones(1))
#: The largest error of the table of a score, over all steps of its computation.
_ERROR = 10 * TOLERANCE


class Between(NamedTuple):
    """A component between two observed positives: a missing positive, or a negative, which may have been missed too."""

    negative: bool
    miss: float
    delay: BoundDelay | None


class Formula(NamedTuple):
    """A function that can be evaluated.

    Attributes
    ----------
    kinks : where it jumps or is not smooth, and 0
    are_steps : whether it is constant between the kinks
    is_one : whether it is 1 everywhere
    """

    value: Values
    kinks: Array
    are_steps: bool
    is_one: bool = False


class Curve(NamedTuple):
    """A tabulated function, its kinks, and from where on it is constant (`reach`)."""

    pieces: Pieces
    kinks: Array
    reach: float


class Hidden(NamedTuple):
    """A component that may have happened unobserved: its loss probability, and the distribution of its delay."""

    miss: float
    delay: Distribution


#: The factor of a negative, given F, 1 - F and its loss probability.
Factor = Callable[[Array, Array, float], Array]


def not_happened_if_unseen(below: Array, above: Array, miss: float) -> Array:
    """The probability that it has not happened, given that it was not observed."""
    return above / (miss * below + above)


def not_happened(below: Array, above: Array, miss: float) -> Array:
    """The probability that it has not happened."""
    return above


def not_seen(below: Array, above: Array, miss: float) -> Array:
    """The probability that it has not happened or was missed."""
    return miss * below + above


def gap_table(
    between: Sequence[Between | tuple[bool, float, BoundDelay | None]],
    horizon: float | None,
    posterior: bool,
    names: Sequence[str] = (),
) -> Table:
    """The score of a gap as a function of its length.

    Parameters
    ----------
    between
        The components between the two events, in order. A negative that is never missed did not happen if it was not
        observed, and has no effect.
    horizon
        The longest possible gap. With None, the table ends where the score no longer changes.
    posterior
        Whether the score is the posterior probability of the match, given that nothing was observed in the gap.
    names
        The names of the components, for the message if there are too many sums of EMPIRICAL delays.
    """
    gap = _Gap.of([Between(*part) for part in between], math.inf if horizon is None else horizon, posterior)
    try:
        curve = gap.posterior() if posterior and gap.missing else gap.joint()
    except TooManyPieces as refused:
        raise DataError(_refusal(between, names, refused.count)) from None
    has_negatives = any(gap.segments)
    most = min(highest(curve.pieces), 1.0 if posterior else gap.missed)
    return Table(curve.pieces, rising=not has_negatives, falling=not gap.missing, highest=min(1.0, most + _ERROR))


@dataclass(frozen=True)
class _Gap:
    """A kind of gap.

    Attributes
    ----------
    missing : the missing positives
    segments : the negatives before the first missing positive, and after each of them
    horizon : the longest possible gap
    floor : the smallest value that matters for the score; errors are relative to it
    tail : tails with less probability than this are ignored
    """

    missing: tuple[Hidden, ...]
    segments: tuple[tuple[Hidden, ...], ...]
    horizon: float
    floor: float
    tail: float

    @classmethod
    def of(cls, between: Sequence[Between], horizon: float, posterior: bool) -> _Gap:
        missing: list[Hidden] = []
        segments: list[list[Hidden]] = [[]]
        for part in between:
            if part.negative and part.miss == 0.0:
                continue
            if part.delay is None:
                raise ValueError("a component that can be missed needs a delay")
            (segments[-1] if part.negative else missing).append(Hidden(part.miss, distribution_of(part.delay)))
            if not part.negative:
                segments.append([])
        # The least probable case is that all components happened and were missed.
        least = max(math.prod(part.miss for part in between if part.miss > 0.0), 1e-250)
        floor = least if posterior else 1.0
        return cls(tuple(missing), tuple(map(tuple, segments)), horizon, floor, 1e-2 * TOLERANCE * least)

    @property
    def missed(self) -> float:
        """The probability that the readings of all missing positives were lost."""
        return math.prod(part.miss for part in self.missing)

    def limit(self, first: int = 0) -> float | None:
        """The limit of the score of the segments from `first` on for long gaps; None if it is not known exactly."""
        if self.segments[-1]:
            return 0.0
        return None if any(self.segments[first:]) else 1.0

    def joint(self) -> Curve:
        """The probability of the losses and that no negative happened: the score of the paper."""
        return self.scaled(self.chain(not_happened_if_unseen), self.missed)

    def posterior(self) -> Curve:
        """The probability of the match divided by that of all histories in which nothing is observed."""
        if self.missed == 0.0:
            return self.joint()
        happened, unseen = self.chain(not_happened), self.unseen()
        ratio = Formula(
            lambda x: self.missed * happened.pieces.at(x) / unseen.pieces.at(x),
            np.union1d(happened.kinks, unseen.kinks),
            happened.pieces.are_steps and unseen.pieces.are_steps,
        )
        return self.tabulated(ratio, max(happened.reach, unseen.reach), self.limit(), 1.0)

    def chain(self, of_negative: Factor) -> Curve:
        """B_0 with this factor of each negative."""
        last = len(self.missing)
        curve = self.ending(of_negative, self.limit(last))
        for k in reversed(range(last)):
            delay = self.missing[k].delay
            formula = self.convolution(delay, self.factor(k, of_negative), curve)
            curve = self.tabulated(formula, delay.beyond(self.tail) + curve.reach, self.limit(k))
        return curve

    def unseen(self) -> Curve:
        """The probability that nothing was observed: the next positive is still to come, or was missed, and so on."""
        curve = self.ending(not_seen, None)
        for k in reversed(range(len(self.missing))):
            miss, delay = self.missing[k]
            factor = self.factor(k, not_seen)
            onward = self.convolution(delay, factor, curve)
            formula = Formula(
                partial(_sum_of, factor.value, delay.above, miss, onward.value),
                _sorted(self.horizon, factor.kinks, delay.kinks, onward.kinks),
                onward.are_steps and factor.are_steps and delay.has_atoms,
            )
            curve = self.tabulated(formula, delay.beyond(self.tail) + curve.reach, None)
        return curve

    def ending(self, of_negative: Factor, limit: float | None) -> Curve:
        """B_r: the factor of the negatives after the last missing positive."""
        reach = max((negative.delay.beyond(self.tail) for negative in self.segments[-1]), default=0.0)
        return self.tabulated(self.factor(len(self.missing), of_negative), reach, limit)

    def factor(self, k: int, of_negative: Factor) -> Formula:
        """A_k: the product of the factors of the negatives of a segment."""
        negatives = self.segments[k]
        return Formula(
            partial(_product, negatives, of_negative),
            _sorted(self.horizon, *(negative.delay.kinks for negative in negatives)),
            all(negative.delay.has_atoms for negative in negatives),
            is_one=not negatives,
        )

    def convolution(self, delay: Distribution, factor: Formula, after: Curve) -> Formula:
        """The integral of A(s) B(u - s) dF(s): A is the factor, F the distribution of the delay, B the curve after."""
        if after.pieces.are_steps and self.may_subtract(delay, after):
            return self.with_steps(delay, factor, after)
        if delay.has_atoms:
            weights = factor.value(delay.atoms) * delay.counts
            return self.with_atoms(delay.atoms, weights, delay.counts.sum(), after)
        return self.with_density(delay, factor, after)

    def may_subtract(self, delay: Distribution, after: Curve) -> bool:
        """Whether downward steps may be subtracted: the difference must not be small compared with `floor`.

        They are also subtracted if the sums without subtraction would take too long.
        """
        if self.floor == 1.0 or delay.has_atoms and len(delay.atoms) ** 2 * len(after.kinks) > MOST_SUMS:
            return True
        return bool((jumps(after.pieces)[1] > 0.0).all())

    def with_steps(self, delay: Distribution, factor: Formula, after: Curve) -> Formula:
        """The convolution if B is a step function: each jump adds the integral of A dF, shifted to the jump."""
        breaks, by = jumps(after.pieces)
        integral = self.integral(delay, factor)
        if len(breaks) == 1 and breaks[0] == 0.0:
            return integral._replace(value=lambda x: by[0] * integral.value(x))
        curve = self.tabulated(integral, delay.beyond(self.tail), 1.0 if factor.is_one else None)
        if curve.pieces.are_steps:
            pieces = steps_of_sums(jumps(curve.pieces), (breaks, by), self.horizon)
            return Formula(pieces.at, pieces.breaks, True)
        return self.with_atoms(breaks, by, 1.0, curve)

    def with_atoms(self, atoms: Array, weights: Array, total: float, after: Curve) -> Formula:
        """The convolution if the delay is discrete."""
        kinks = sums(atoms, after.kinks, self.horizon)
        if len(kinks) * len(atoms) > MOST_SUMS:
            raise TooManyPieces(len(kinks) * len(atoms))
        return Formula(
            lambda x: shifted(atoms, weights, after.pieces, x) / total,
            np.union1d(_ZERO, kinks),
            after.pieces.are_steps,
        )

    def with_density(self, delay: Distribution, factor: Formula, after: Curve) -> Formula:
        """The convolution if both F and B are smooth between kinks."""
        ends, density = self.density(delay, factor)
        count = (density.shape[1] + after.pieces.coefficients.shape[1]) // 2
        nodes, weights = np.polynomial.legendre.leggauss(count)
        within = np.concatenate([[delay.start], delay.kinks, factor.kinks[factor.kinks > delay.start]])
        return Formula(
            lambda x: convolved(ends, density, after.pieces, 0.5 + 0.5 * nodes, 0.5 * weights, x),
            np.union1d(_ZERO, sums(np.unique(within), after.kinks, self.horizon)),
            False,
        )

    def integral(self, delay: Distribution, factor: Formula) -> Formula:
        """The integral of A dF from 0."""
        kinks = _sorted(self.horizon, delay.kinks, [delay.start])
        if factor.is_one:
            return Formula(delay.below, kinks, delay.has_atoms)
        if delay.has_atoms:
            heights = np.cumsum(factor.value(delay.atoms) * delay.counts) / delay.counts.sum()
            pieces = steps(np.concatenate([[-1.0], delay.atoms]), np.concatenate([[0.0], heights]))
            return Formula(pieces.at, kinks, True)
        return self.with_density(delay, factor, Curve(_ONE, _ZERO, 0.0))

    def density(self, delay: Distribution, factor: Formula) -> tuple[Array, Array]:
        """A dF as polynomials between `ends`, for `convolved`."""
        end = min(self.horizon, delay.beyond(self.tail))
        if end <= delay.start:
            return np.array([delay.start]), np.zeros((0, 1))
        knots = _sorted(end, delay.kinks, factor.kinks, [delay.start, end])
        knots = knots[knots >= delay.start]
        coarse = fitted(delay.increments, knots, 0.0, self.floor)
        fine = fitted(factor.value, coarse.breaks, 0.0, self.floor)
        increments, _, _ = interpolated(delay.increments, fine.breaks[:-1], fine.breaks[1:])
        slope = increments[:, 1:] * np.arange(1, increments.shape[1])
        if factor.is_one:
            return fine.breaks, slope
        return fine.breaks, _multiplied(slope, fine.coefficients[:-1])

    def tabulated(self, formula: Formula, reach: float, limit: float | None, floor: float | None = None) -> Curve:
        """Tabulate a formula that is constant from `reach` on; `limit` is its value there, if that is known."""
        end = min(self.horizon, reach)
        knots = formula.kinks if formula.are_steps else _sorted(end, formula.kinks, [end])
        last = float(formula.value(knots[-1:])[0]) if limit is None or reach > self.horizon else limit
        if formula.are_steps:
            heights = np.append(formula.value(knots[:-1]), last)
            return Curve(steps(knots, heights), knots, reach)
        return Curve(fitted(formula.value, knots, last, floor or self.floor), knots, reach)

    def scaled(self, curve: Curve, by: float) -> Curve:
        """The curve multiplied by a number."""
        return curve._replace(pieces=curve.pieces._replace(coefficients=by * curve.pieces.coefficients))


def _product(negatives: Sequence[Hidden], of_negative: Factor, x: Array) -> Array:
    product = np.ones(len(x))
    for miss, delay in negatives:
        product *= of_negative(delay.below(x), delay.above(x), miss)
    return product


def _sum_of(factor: Values, above: Values, miss: float, onward: Values, x: Array) -> Array:
    """The next positive is still to come, or it happened and was missed."""
    return factor(x) * above(x) + miss * onward(x)


def _multiplied(first: Array, second: Array) -> Array:
    """The products of polynomials, row by row."""
    product = np.zeros((len(first), first.shape[1] + second.shape[1] - 1))
    for k in range(first.shape[1]):
        product[:, k : k + second.shape[1]] += first[:, k, None] * second
    return product


def _sorted(end: float, *kinks: npt.ArrayLike) -> Array:
    """The distinct kinks up to `end`, and 0, ascending."""
    distinct = np.unique(np.concatenate([_ZERO, *map(np.asarray, kinks)]))
    return distinct[distinct <= end]


def _refusal(between: Sequence[Between | tuple[bool, float, BoundDelay | None]], names: Sequence[str], n: int) -> str:
    """The message for a gap that has no table."""
    parts = [Between(*part) for part in between]
    named = names or [part.delay.path or part.delay.law if part.delay else "" for part in parts]
    empirical = [
        f"{name} ({len(set(part.delay.atoms)):,} delays)"
        for name, part in zip(named, parts, strict=True)
        if part.delay and part.delay.atoms
    ]
    if not empirical:
        return f"the score of a gap with {', '.join(named)} needs {n:,} pieces, above {MOST_PIECES:,}; use wider delays"
    return (
        f"EMPIRICAL delays in one gap, {', '.join(empirical)}, make {n:,} sums, above {MOST_PIECES:,}; fit a named law"
    )
