"""What it means that predictions match at some instants: by the definition, for many instants at once.

Nothing here knows of half-planes or corners: an instant is put into the predictions, and the constraints are asked one
by one. MAY asks whether there are truths within the errors that satisfy all of them: differences that are bounded from
above contradict each other just where a ring of them adds up to less than nothing.

`slack` is by how much everything must hold, and below 0 by how much it may fail: what touches is in doubt.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

EXPECTED, MAY, MUST = "EXPECTED", "MAY", "MUST"

F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: A value: the number of its operand, and its column.
Value = tuple[int, str]
#: That the first is at most so much above the second, None being the number 0; and whether that is exact.
Bound = tuple[Value | None, Value | None, float, bool]

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}


@dataclass(frozen=True)
class Constraint:
    """A value, or the difference of two, or the absolute value of either, compared with a number."""

    plus: Value
    minus: Value | None
    is_absolute: bool
    op: str
    bound: float

    @property
    def values(self) -> tuple[Value, ...]:
        return (self.plus,) if self.minus is None else (self.plus, self.minus)

    def is_true(self, truth: Mapping[Value, F64]) -> Bools:
        """Whether it is true, the truths being what they are."""
        number = truth[self.plus] - (truth[self.minus] if self.minus is not None else 0.0)
        return _compared(np.abs(number) if self.is_absolute else number, self.op, self.bound, 0.0)


@dataclass(frozen=True)
class Told:
    """A prediction: from when to when it applies, the values and rates of its columns, their errors and spreads."""

    key: Any
    time: float
    end: float
    values: Mapping[str, float]
    rates: Mapping[str, float]
    errors: Mapping[str, float]
    spreads: Mapping[str, float]

    def at(self, column: str, instants: F64) -> F64:
        """What a column is predicted to be."""
        return self.values[column] + self.rates[column] * (instants - self.time)


@dataclass(frozen=True)
class QueryShape:
    """What is asked of a choice of predictions, one for each operand."""

    operands: int
    constraints: tuple[Constraint, ...]
    within: float
    semantics: str

    @property
    def values(self) -> list[Value]:
        """The values that it names."""
        return sorted({value for each in self.constraints for value in each.values})

    @property
    def links(self) -> set[tuple[int, int]]:
        """The operands between which the window holds."""
        if self.operands == 2:
            return {(0, 1)}
        pairs = [sorted({operand for operand, _ in each.values}) for each in self.constraints]
        return {(pair[0], pair[1]) for pair in pairs if len(pair) == 2}

    def centers(self, chosen: Sequence[Told], points: F64) -> dict[Value, F64]:
        """What each value is predicted to be at points (n, operands)."""
        return {(j, column): chosen[j].at(column, points[:, j]) for j, column in self.values}

    def error(self, chosen: Sequence[Told], values: Sequence[Value]) -> float:
        """By how much some values can be off together."""
        return sum(chosen[j].errors[column] for j, column in values)

    # ------------------------------------------------------------ instants

    def lattice(self, chosen: Sequence[Told], step: float, own_step: float) -> F64:
        """Points at which the predictions apply and may be compared, `own_step` apart where there is one instant."""
        if self.operands == 1 or self.within == 0:
            low, high = max(each.time for each in chosen), min(each.end for each in chosen)
            instants = np.arange(low, high, own_step)
            return np.repeat(instants.reshape(-1, 1), self.operands, axis=1)
        axes = [np.arange(each.time, each.end, step) for each in chosen]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        return points[self.applies(chosen, points, 0.0)]

    def applies(self, chosen: Sequence[Told], points: F64, slack: float) -> Bools:
        """Whether the predictions apply at points, and these are within the window."""
        found = np.ones(len(points), np.bool_)
        for j, each in enumerate(chosen):
            before_end = points[:, j] < each.end if slack >= 0 else points[:, j] <= each.end - slack
            found &= (points[:, j] >= each.time + min(slack, 0.0)) & before_end
        for i, j in self.links:
            found &= np.abs(points[:, i] - points[:, j]) <= self.within - min(slack, 0.0)
        return found

    def matches(self, chosen: Sequence[Told], points: F64, slack: float) -> Bools:
        """Whether all constraints are met at points at which the predictions apply."""
        centers = self.centers(chosen, points)
        if self.semantics == MAY:
            return self._may(chosen, centers, len(points), slack)
        found = np.ones(len(points), np.bool_)
        for each in self.constraints:
            number = centers[each.plus] - (centers[each.minus] if each.minus is not None else 0.0)
            error = self.error(chosen, each.values) if self.semantics == MUST else 0.0
            found &= _all_within(number, error, each, slack)
        return found

    # ------------------------------------------------------------ MAY

    def _may(self, chosen: Sequence[Told], centers: Mapping[Value, F64], n: int, slack: float) -> Bools:
        nodes: list[Value | None] = [None, *self.values]
        known = np.full((n, len(nodes), len(nodes)), np.inf)
        for place, value in enumerate(nodes):
            known[:, place, place] = 0.0
            if value is not None:
                error = chosen[value[0]].errors[value[1]]
                room = error - slack if error > 0 else 0.0
                known[:, place, 0], known[:, 0, place] = centers[value] + room, room - centers[value]
        found = np.zeros(n, np.bool_)
        for choice in itertools.product(*(list(self._alternatives(chosen, each)) for each in self.constraints)):
            bounds = known.copy()
            for first, second, most, is_exact in itertools.chain.from_iterable(choice):
                i, j = nodes.index(first), nodes.index(second)
                bounds[:, i, j] = np.minimum(bounds[:, i, j], most - (min(slack, 0.0) if is_exact else slack))
            found |= ~_contradict(bounds)
        return found

    def _alternatives(self, chosen: Sequence[Told], each: Constraint) -> Iterator[list[Bound]]:
        """The ways in which a constraint can be true, each as bounds that all hold."""
        plus, minus, bound = each.plus, each.minus, each.bound
        at_most, at_least = (plus, minus, bound, False), (minus, plus, -bound, False)
        if each.op == "<>" and self.error(chosen, each.values) > 0:
            yield []
        elif not each.is_absolute:
            exact: list[Bound] = [(plus, minus, bound, True), (minus, plus, -bound, True)]
            yield from {
                "<": [[at_most]], "<=": [[at_most]], ">": [[at_least]], ">=": [[at_least]], "=": [exact],
                "<>": [[at_most], [at_least]],
            }[each.op]  # fmt: skip
        else:
            below, beyond = [at_most, (minus, plus, bound, False)], [[at_least], [(plus, minus, -bound, False)]]
            exactly: list[list[Bound]] = [
                [(plus, minus, sign * bound, True), (minus, plus, -sign * bound, True)] for sign in (1.0, -1.0)
            ]
            yield from {
                "<": [below], "<=": [below], ">": beyond, ">=": beyond, "=": exactly if bound >= 0 else [],
                "<>": [below, *beyond],
            }[each.op]  # fmt: skip


def _contradict(bounds: npt.NDArray[np.float64]) -> Bools:
    """Whether some ring of bounds adds up to less than nothing: by the shortest ways between all of them."""
    for k in range(bounds.shape[1]):
        bounds = np.minimum(bounds, bounds[:, :, k, None] + bounds[:, None, k, :])
    return np.einsum("nii->ni", bounds).min(axis=1) < -1e-12


def _compared(number: F64, op: str, bound: float, slack: float) -> Bools:
    if op == "=":
        return np.abs(number - bound) <= max(-slack, 0.0)
    if op == "<>":
        return np.abs(number - bound) > slack
    if slack == 0:
        return {"<": number < bound, "<=": number <= bound, ">": number > bound, ">=": number >= bound}[op]
    return number <= bound - slack if op in ("<", "<=") else number >= bound + slack


def _all_within(number: F64, error: float, each: Constraint, slack: float) -> Bools:
    """Whether a constraint is true of all numbers within an error, but for some without any probability."""
    if error == 0:
        return _compared(np.abs(number) if each.is_absolute else number, each.op, each.bound, slack)
    low, high = number - error, number + error
    if each.op == "<>":
        return np.ones(len(number), np.bool_)
    if each.op in ("<", "<="):
        return (high <= each.bound - slack) & ((low >= slack - each.bound) | (not each.is_absolute))
    beyond = low >= each.bound + slack
    if not each.is_absolute:
        return beyond
    return beyond | (high <= -each.bound - slack) | (each.bound <= 0)


# ---------------------------------------------------------------- truths


def draws(told: Told, column: str, n: int, random: np.random.Generator) -> F64:
    """Errors of a column by its law: uniform, or normal and drawn again where it is cut off."""
    error, spread = told.errors[column], told.spreads[column]
    if error == 0 or spread == 0:
        return random.uniform(-error, error, n)
    found = np.empty(0)
    if spread > 2 * error:  # few would be kept: drawn evenly, and kept as often as the density says
        while len(found) < n:
            tried = random.uniform(-error, error, n)
            found = np.concatenate([found, tried[random.random(n) < np.exp(-0.5 * (tried / spread) ** 2)]])
    while len(found) < n:
        tried = random.normal(0.0, spread, n)
        found = np.concatenate([found, tried[np.abs(tried) <= error]])
    return found[:n]


def share(query: QueryShape, chosen: Sequence[Told], point: Sequence[float], n: int, seed: int) -> float:
    """The share of drawn truths at a point that satisfy all constraints on values with an error.

    What has no error is true or not, and at a corner that a double has rounded nobody knows: it is left out.
    """
    random = np.random.default_rng(seed)
    centers = query.centers(chosen, np.array([point], np.float64))
    truth = {(j, column): centers[j, column][0] + draws(chosen[j], column, n, random) for j, column in query.values}
    found = np.ones(n, np.bool_)
    for each in query.constraints:
        if query.error(chosen, each.values) > 0:
            found &= each.is_true(truth)
    return float(found.mean())
