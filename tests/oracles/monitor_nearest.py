"""The oracle of MONITOR with NEAREST: what the definition says, at one instant between any two at which it may change.

Interpretation of the definitions
---------------------------------
- At an instant, the *candidates* of a prediction of a are the predictions of b that satisfy WHERE together with it. All
  predictions are taken as true.
- A candidate is kept if fewer than k other keys have a candidate that is strictly nearer. So all of a tie are kept.
- An answer is a connected set of instants at which a pair is kept. Single instants are neither answers nor gaps.
- What is kept changes only where a prediction begins or ends, where a condition begins or ceases to hold, and where two
  candidates are equally near. These instants are roots of polynomials, and are found to 40 digits. Between two of them
  that follow each other, one instant is tested in fractions, without rounding errors.

Instants at which something changes may be almost equal. `Contact` is raised then, because doubles may confuse them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.monitor.query import BoundMonitor
from tests.oracles.events import Rows
from tests.oracles.monitor import Answer
from tests.oracles.monitor_distance import Condition, Contact, Pair, Region, answer_of, compared_pairs
from tests.oracles.monitor_predictions import Prediction, written

#: Instants that are nearer than the first are equal, and doubles may confuse those that are nearer than the second.
_EQUAL, _NEAR = Fraction(1, 10**30), Fraction(1, 10**6)
_DIGITS = 10**40

#: The coefficients of a polynomial of degree two, the constant one first.
Polynomial = tuple[Fraction, Fraction, Fraction]


@dataclass(frozen=True)
class Candidate:
    """A pair of predictions, and what WHERE compares of them."""

    members: tuple[Prediction, Prediction]
    pair: Pair

    @property
    def limits(self) -> tuple[Fraction, Fraction]:
        """From when to when both predictions apply."""
        return max(own.time for own in self.members), min(own.end for own in self.members)

    def matches(self, at: Fraction) -> bool:
        """Whether the predictions satisfy WHERE at an instant."""
        begin, end = self.limits
        return begin <= at < end and all(_holds(condition, at) for condition in self.pair.conditions)

    @property
    def squared_distance(self) -> Polynomial:
        """The squared distance of the two predictions, as a function of time."""
        return next(_square(own) for own in self.pair.conditions if len({term[0] for term in own.coordinates[0]}) == 2)

    def changes(self) -> Iterator[Fraction]:
        """The instants at which the pair may begin or cease to match."""
        yield from self.limits
        for condition in self.pair.conditions:
            bound = written(condition.bound)
            constant, *others = _square(condition) if len(condition.coordinates) == 2 else _lines(condition)[0]
            yield from _roots((constant - (bound**2 if len(condition.coordinates) == 2 else bound), *others))


def answers(query: BoundMonitor, rows: Rows) -> list[Answer]:
    """The answers of a query."""
    by_first: dict[int, list[Candidate]] = {}
    # The objects of `kept` stay, so that their ids do.
    kept = list(compared_pairs(query, rows))
    for members, pair in kept:
        by_first.setdefault(id(members[0]), []).append(Candidate(members, pair))
    return [answer for candidates in by_first.values() for answer in _answers(query, candidates)]


def _answers(query: BoundMonitor, candidates: Sequence[Candidate]) -> Iterator[Answer]:
    """The answers about one prediction of the first operand."""
    steps = list(itertools.pairwise(_instants(candidates)))
    kept = [_nearest(query.nearest or 0, candidates, (low + high) / 2) for low, high in steps]
    for number, candidate in enumerate(candidates):
        for is_kept, run in itertools.groupby(range(len(steps)), key=lambda step: number in kept[step]):
            if is_kept:
                numbers = list(run)
                valid = float(steps[numbers[0]][0]), float(steps[numbers[-1]][1])
                region = Region(valid, candidate.pair.highest_on_diagonal(*valid))
                if region.probability > 0 and region.probability >= query.threshold:
                    yield answer_of(query, candidate.members, region)


def _nearest(k: int, candidates: Sequence[Candidate], at: Fraction) -> set[int]:
    """The numbers of the candidates that are kept at an instant."""
    matching = {
        number: (candidate.members[1].key, _value(candidate.squared_distance, at))
        for number, candidate in enumerate(candidates)
        if candidate.matches(at)
    }
    return {
        number
        for number, (key, distance) in matching.items()
        if len({other for other, its in matching.values() if other != key and its < distance}) < k
    }


def _instants(candidates: Sequence[Candidate]) -> list[Fraction]:
    """The instants at which what is kept may change, in order."""
    instants = [instant for candidate in candidates for instant in candidate.changes()]
    for one, other in itertools.combinations(candidates, 2):
        difference = zip(one.squared_distance, other.squared_distance, strict=True)
        constant, linear, square = (mine - its for mine, its in difference)
        instants += _roots((constant, linear, square))
    low, high = (pick(limit for own in candidates for limit in own.limits) for pick in (min, max))
    ordered = sorted(instant for instant in instants if low <= instant <= high)
    distinct = ordered[:1]
    for instant in ordered[1:]:
        if instant - distinct[-1] > _EQUAL:
            if instant - distinct[-1] < _NEAR:
                raise Contact
            distinct.append(instant)
    return distinct


# ---------------------------------------------------------------- polynomials


def _lines(condition: Condition) -> list[Polynomial]:
    """The predicted coordinates of a condition, as functions of time."""
    return [
        (
            sum((sign * Fraction(line.start) for _, line, sign in terms), -written(center)),
            sum((sign * Fraction(line.rate) for _, line, sign in terms), Fraction(0)),
            Fraction(0),
        )
        for terms, center in zip(condition.coordinates, condition.point, strict=True)
    ]


def _square(condition: Condition) -> Polynomial:
    """The squared length of the predicted coordinates of a condition."""
    lines = _lines(condition)
    constant = sum((at * at for at, _, _ in lines), Fraction(0))
    linear = sum((2 * at * rate for at, rate, _ in lines), Fraction(0))
    return constant, linear, sum((rate * rate for _, rate, _ in lines), Fraction(0))


def _holds(condition: Condition, at: Fraction) -> bool:
    """Whether a condition holds for the predictions at an instant."""
    bound = written(condition.bound)
    if len(condition.coordinates) == 2:
        value, bound = _value(_square(condition), at), bound**2
    else:
        value = _value(_lines(condition)[0], at)
    return {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[condition.op]


def _value(polynomial: Polynomial, at: Fraction) -> Fraction:
    constant, linear, square = polynomial
    return constant + at * (linear + at * square)


def _roots(polynomial: Polynomial) -> list[Fraction]:
    """The roots of a polynomial, to 40 digits; none if it is constant."""
    constant, linear, square = polynomial
    if square == 0:
        return [-constant / linear] if linear else []
    within = linear * linear - 4 * square * constant
    if within < 0:
        return []
    scaled = within.numerator * within.denominator * _DIGITS**2
    root = Fraction(math.isqrt(scaled), within.denominator * _DIGITS)
    return [(-linear - root) / (2 * square), (-linear + root) / (2 * square)]
