"""The score of a gap: what may have happened, unread, between two events that were observed.

Between them stand missing positives 1..r, each of which came a delay after the one before it, and negatives, each of
which would have come a delay after the positive before it. The score is an integral over the times of the missing, and
depends on the length of the gap alone. It is computed from the end, one missing positive after the other:

    B_r(u) = A_r(u)        B_(k-1)(u) = integral of A_(k-1)(s) B_k(u - s) dF_k(s) over s from 0 to u

where A_k is what the negatives after positive k make of the time to the next. Each B_k is tabulated before the next is
computed; the score is B_0 times the chances of all losses.
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
from anabranch.sequence.kernel.tables import Pieces, Table, convolved, shifted
from anabranch.sequence.laws import Law, law_of
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
#: What the table of a score may be wrong by, its steps added up.
_ERROR = 10 * TOLERANCE


class Between(NamedTuple):
    """What stands between two observed positives: a missing positive, or a negative, which may have been missed too."""

    negative: bool
    miss: float
    delay: BoundDelay | None


class Formula(NamedTuple):
    """A function that can be computed, where it jumps or bends (0 among it), and whether it is constant elsewhere.

    `is_one` says that it is 1 throughout.
    """

    value: Values
    kinks: Array
    are_steps: bool
    is_one: bool = False


class Curve(NamedTuple):
    """A function that is tabulated, where it jumps or bends, and from where on it is constant."""

    pieces: Pieces
    kinks: Array
    reach: float


class Hidden(NamedTuple):
    """What may have happened unseen: the chance that its reading is lost, and the law of its delay."""

    miss: float
    law: Law


#: What a negative makes of a stretch: given F, 1 - F and its chance of a loss.
Share = Callable[[Array, Array, float], Array]


def not_happened_if_unseen(below: Array, above: Array, miss: float) -> Array:
    """That it has not happened, given that it was not seen."""
    return above / (miss * below + above)


def not_happened(below: Array, above: Array, miss: float) -> Array:
    """That it has not happened."""
    return above


def not_seen(below: Array, above: Array, miss: float) -> Array:
    """That it has not happened or was missed."""
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
        What stands between the two events, in order. A negative that is never missed did not happen if it was not
        seen, and counts for nothing.
    horizon
        The longest gap that can be asked. With None the table goes on until nothing changes any more.
    posterior
        Whether the score is the probability of what is said to have happened among all that was not seen.
    names
        Those of the components between, for the message where there are too many sums of EMPIRICAL delays.
    """
    gap = _Gap.of([Between(*part) for part in between], math.inf if horizon is None else horizon, posterior)
    try:
        curve = gap.posterior() if posterior and gap.missing else gap.joint()
    except TooManyPieces as refused:
        raise DataError(_refusal(between, names, refused.count)) from None
    is_quiet = not any(gap.segments)
    most = min(highest(curve.pieces), 1.0 if posterior else gap.missed)
    return Table(curve.pieces, rising=is_quiet, falling=not gap.missing, highest=min(1.0, most + _ERROR))


@dataclass(frozen=True)
class _Gap:
    """A kind of gap: the chances and laws of what is missing, the negatives after each of these and ahead of the first.

    `floor` is the smallest value that counts for the score: errors are relative to it. What is less probable than
    `tail` is left out.
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
                raise ValueError("what can be missed needs a law of its delay")
            (segments[-1] if part.negative else missing).append(Hidden(part.miss, law_of(part.delay)))
            if not part.negative:
                segments.append([])
        # Nothing is less probable than that all of it happened and was missed.
        least = max(math.prod(part.miss for part in between if part.miss > 0.0), 1e-250)
        floor = least if posterior else 1.0
        return cls(tuple(missing), tuple(map(tuple, segments)), horizon, floor, 1e-2 * TOLERANCE * least)

    @property
    def missed(self) -> float:
        """The chance that all that is missing was missed."""
        return math.prod(part.miss for part in self.missing)

    def limit(self, first: int = 0) -> float | None:
        """What remains in the end of the segments from the `first` on, where that is known exactly."""
        if self.segments[-1]:
            return 0.0
        return None if any(self.segments[first:]) else 1.0

    def joint(self) -> Curve:
        """The chance of the losses, and that no negative happened."""
        return self.scaled(self.chain(not_happened_if_unseen), self.missed)

    def posterior(self) -> Curve:
        """What is said to have happened, among all that was not seen."""
        if self.missed == 0.0:
            return self.joint()
        happened, unseen = self.chain(not_happened), self.unseen()
        ratio = Formula(
            lambda x: self.missed * happened.pieces.at(x) / unseen.pieces.at(x),
            np.union1d(happened.kinks, unseen.kinks),
            happened.pieces.are_steps and unseen.pieces.are_steps,
        )
        return self.tabulated(ratio, max(happened.reach, unseen.reach), self.limit(), 1.0)

    def chain(self, share: Share) -> Curve:
        """B_0, where `share` is what negatives count."""
        last = len(self.missing)
        curve = self.ending(share, self.limit(last))
        for k in reversed(range(last)):
            law = self.missing[k].law
            formula = self.convolution(law, self.factor(k, share), curve)
            curve = self.tabulated(formula, law.beyond(self.tail) + curve.reach, self.limit(k))
        return curve

    def unseen(self) -> Curve:
        """The chance that nothing was seen: the next is still to come, or it happened, was missed, and so on."""
        curve = self.ending(not_seen, None)
        for k in reversed(range(len(self.missing))):
            miss, law = self.missing[k]
            factor = self.factor(k, not_seen)
            onward = self.convolution(law, factor, curve)
            formula = Formula(
                partial(_sum_of, factor.value, law.above, miss, onward.value),
                _sorted(self.horizon, factor.kinks, law.kinks, onward.kinks),
                onward.are_steps and factor.are_steps and law.has_atoms,
            )
            curve = self.tabulated(formula, law.beyond(self.tail) + curve.reach, None)
        return curve

    def ending(self, share: Share, limit: float | None) -> Curve:
        """B_r: what the negatives after the last missing positive count."""
        reach = max((negative.law.beyond(self.tail) for negative in self.segments[-1]), default=0.0)
        return self.tabulated(self.factor(len(self.missing), share), reach, limit)

    def factor(self, k: int, share: Share) -> Formula:
        """A_k: the product of what the negatives of a segment count."""
        negatives = self.segments[k]
        return Formula(
            partial(_product, negatives, share),
            _sorted(self.horizon, *(negative.law.kinks for negative in negatives)),
            all(negative.law.has_atoms for negative in negatives),
            is_one=not negatives,
        )

    def convolution(self, law: Law, factor: Formula, after: Curve) -> Formula:
        """The integral of A(s) B(u - s) dF(s), A being the factor, F the law and B what comes after."""
        if after.pieces.are_steps and self.may_subtract(law, after):
            return self.with_steps(law, factor, after)
        if law.has_atoms:
            weights = factor.value(law.atoms) * law.counts
            return self.with_atoms(law.atoms, weights, law.counts.sum(), after)
        return self.with_density(law, factor, after)

    def may_subtract(self, law: Law, after: Curve) -> bool:
        """Whether steps down can be subtracted: what is left must not be small beside what counts.

        It may where the sums without subtraction would take too long.
        """
        if self.floor == 1.0 or law.has_atoms and len(law.atoms) ** 2 * len(after.kinks) > MOST_SUMS:
            return True
        return bool((jumps(after.pieces)[1] > 0.0).all())

    def with_steps(self, law: Law, factor: Formula, after: Curve) -> Formula:
        """The same where B goes in steps: each is a distribution of A dF that begins there."""
        places, by = jumps(after.pieces)
        distribution = self.distribution(law, factor)
        if len(places) == 1 and places[0] == 0.0:
            return distribution._replace(value=lambda x: by[0] * distribution.value(x))
        curve = self.tabulated(distribution, law.beyond(self.tail), 1.0 if factor.is_one else None)
        if curve.pieces.are_steps:
            pieces = steps_of_sums(jumps(curve.pieces), (places, by), self.horizon)
            return Formula(pieces.at, pieces.breaks, True)
        return self.with_atoms(places, by, 1.0, curve)

    def with_atoms(self, atoms: Array, weights: Array, total: float, after: Curve) -> Formula:
        """The same where delays are some of a few values."""
        kinks = sums(atoms, after.kinks, self.horizon)
        if len(kinks) * len(atoms) > MOST_SUMS:
            raise TooManyPieces(len(kinks) * len(atoms))
        return Formula(
            lambda x: shifted(atoms, weights, after.pieces, x) / total,
            np.union1d(_ZERO, kinks),
            after.pieces.are_steps,
        )

    def with_density(self, law: Law, factor: Formula, after: Curve) -> Formula:
        """The same where both F and B are smooth between kinks."""
        ends, density = self.density(law, factor)
        count = (density.shape[1] + after.pieces.coefficients.shape[1]) // 2
        nodes, weights = np.polynomial.legendre.leggauss(count)
        within = np.concatenate([[law.start], law.kinks, factor.kinks[factor.kinks > law.start]])
        return Formula(
            lambda x: convolved(ends, density, after.pieces, 0.5 + 0.5 * nodes, 0.5 * weights, x),
            np.union1d(_ZERO, sums(np.unique(within), after.kinks, self.horizon)),
            False,
        )

    def distribution(self, law: Law, factor: Formula) -> Formula:
        """The integral of A dF from 0 on."""
        kinks = _sorted(self.horizon, law.kinks, [law.start])
        if factor.is_one:
            return Formula(law.below, kinks, law.has_atoms)
        if law.has_atoms:
            heights = np.cumsum(factor.value(law.atoms) * law.counts) / law.counts.sum()
            pieces = steps(np.concatenate([[-1.0], law.atoms]), np.concatenate([[0.0], heights]))
            return Formula(pieces.at, kinks, True)
        return self.with_density(law, factor, Curve(_ONE, _ZERO, 0.0))

    def density(self, law: Law, factor: Formula) -> tuple[Array, Array]:
        """A dF as polynomials between `ends`, as `convolved` takes them."""
        end = min(self.horizon, law.beyond(self.tail))
        if end <= law.start:
            return np.array([law.start]), np.zeros((0, 1))
        knots = _sorted(end, law.kinks, factor.kinks, [law.start, end])
        knots = knots[knots >= law.start]
        rough = fitted(law.increments, knots, 0.0, self.floor)
        fine = fitted(factor.value, rough.breaks, 0.0, self.floor)
        rising, _, _ = interpolated(law.increments, fine.breaks[:-1], fine.breaks[1:])
        slope = rising[:, 1:] * np.arange(1, rising.shape[1])
        if factor.is_one:
            return fine.breaks, slope
        return fine.breaks, _multiplied(slope, fine.coefficients[:-1])

    def tabulated(self, formula: Formula, reach: float, limit: float | None, floor: float | None = None) -> Curve:
        """The table of a formula that is constant from `reach` on; `limit` is what it is there, where that is known."""
        end = min(self.horizon, reach)
        knots = formula.kinks if formula.are_steps else _sorted(end, formula.kinks, [end])
        last = float(formula.value(knots[-1:])[0]) if limit is None or reach > self.horizon else limit
        if formula.are_steps:
            heights = np.append(formula.value(knots[:-1]), last)
            return Curve(steps(knots, heights), knots, reach)
        return Curve(fitted(formula.value, knots, last, floor or self.floor), knots, reach)

    def scaled(self, curve: Curve, by: float) -> Curve:
        """A multiple of a curve."""
        return curve._replace(pieces=curve.pieces._replace(coefficients=by * curve.pieces.coefficients))


def _product(negatives: Sequence[Hidden], share: Share, x: Array) -> Array:
    found = np.ones(len(x))
    for miss, law in negatives:
        found *= share(law.below(x), law.above(x), miss)
    return found


def _sum_of(factor: Values, above: Values, miss: float, onward: Values, x: Array) -> Array:
    """The next is still to come, or it happened and was missed."""
    return factor(x) * above(x) + miss * onward(x)


def _multiplied(first: Array, second: Array) -> Array:
    """The products of polynomials, row by row."""
    found = np.zeros((len(first), first.shape[1] + second.shape[1] - 1))
    for k in range(first.shape[1]):
        found[:, k : k + second.shape[1]] += first[:, k, None] * second
    return found


def _sorted(end: float, *kinks: npt.ArrayLike) -> Array:
    """The kinks up to an end, in order, and 0."""
    found = np.unique(np.concatenate([_ZERO, *map(np.asarray, kinks)]))
    return found[found <= end]


def _refusal(between: Sequence[Between | tuple[bool, float, BoundDelay | None]], names: Sequence[str], n: int) -> str:
    """Why a gap has no table, in one line."""
    parts = [Between(*part) for part in between]
    named = names or [part.delay.path or part.delay.law if part.delay else "" for part in parts]
    seen = [
        f"{name} ({len(set(part.delay.atoms)):,} delays)"
        for name, part in zip(named, parts, strict=True)
        if part.delay and part.delay.atoms
    ]
    if not seen:
        return f"the score of a gap with {', '.join(named)} needs {n:,} pieces, above {MOST_PIECES:,}; use wider delays"
    return f"EMPIRICAL delays in one gap, {', '.join(seen)}, make {n:,} sums, above {MOST_PIECES:,}; fit a named law"
