"""Whether predictions match at given instants, by the definition, for many instants at once.

This module has no half-planes or corners: the constraints are evaluated one by one at each instant. MAY means that some
true values within the errors satisfy all constraints. Upper bounds of differences contradict each other if and only if
a cycle of them has a negative sum.

`slack` is the margin by which everything must hold; a negative one is a tolerance. Contacts are undecided in doubles.
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
#: An upper bound of the first value minus the second (None is the number 0), and whether the bound is exact.
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
        """Whether the constraint is satisfied by true values."""
        number = truth[self.plus] - (truth[self.minus] if self.minus is not None else 0.0)
        return _compare(np.abs(number) if self.is_absolute else number, self.op, self.bound, 0.0)


@dataclass(frozen=True)
class Prediction:
    """A prediction: when it applies, and the values, rates, errors and spreads of its columns."""

    key: Any
    time: float
    end: float
    values: Mapping[str, float]
    rates: Mapping[str, float]
    errors: Mapping[str, float]
    spreads: Mapping[str, float]

    def at(self, column: str, instants: F64) -> F64:
        """The predicted values of a column."""
        return self.values[column] + self.rates[column] * (instants - self.time)


@dataclass(frozen=True)
class QueryShape:
    """The constraints on a combination of predictions, one for each operand."""

    operands: int
    constraints: tuple[Constraint, ...]
    within: float
    semantics: str

    @property
    def values(self) -> list[Value]:
        """The values in constraints."""
        return sorted({value for constraint in self.constraints for value in constraint.values})

    @property
    def links(self) -> set[tuple[int, int]]:
        """The pairs of operands to which the window applies."""
        if self.operands == 2:
            return {(0, 1)}
        pairs = [sorted({operand for operand, _ in constraint.values}) for constraint in self.constraints]
        return {(pair[0], pair[1]) for pair in pairs if len(pair) == 2}

    def centers(self, chosen: Sequence[Prediction], points: F64) -> dict[Value, F64]:
        """The prediction of each value at points (n, operands)."""
        return {(j, column): chosen[j].at(column, points[:, j]) for j, column in self.values}

    def error(self, chosen: Sequence[Prediction], values: Sequence[Value]) -> float:
        """The sum of the errors of some values."""
        return sum(chosen[j].errors[column] for j, column in values)

    # ------------------------------------------------------------ instants

    def lattice(self, chosen: Sequence[Prediction], step: float, line_step: float) -> F64:
        """Points at which the predictions can be compared; `line_step` apart if all operands have the same instant."""
        if self.operands == 1 or self.within == 0:
            low, high = max(prediction.time for prediction in chosen), min(prediction.end for prediction in chosen)
            instants = np.arange(low, high, line_step)
            return np.repeat(instants.reshape(-1, 1), self.operands, axis=1)
        axes = [np.arange(prediction.time, prediction.end, step) for prediction in chosen]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        return points[self.applies(chosen, points, 0.0)]

    def applies(self, chosen: Sequence[Prediction], points: F64, slack: float) -> Bools:
        """Whether the predictions apply at points that are within the window."""
        result = np.ones(len(points), np.bool_)
        for j, prediction in enumerate(chosen):
            before_end = points[:, j] < prediction.end if slack >= 0 else points[:, j] <= prediction.end - slack
            result &= (points[:, j] >= prediction.time + min(slack, 0.0)) & before_end
        for i, j in self.links:
            result &= np.abs(points[:, i] - points[:, j]) <= self.within - min(slack, 0.0)
        return result

    def matches(self, chosen: Sequence[Prediction], points: F64, slack: float) -> Bools:
        """Whether all constraints are satisfied at points at which the predictions apply."""
        centers = self.centers(chosen, points)
        if self.semantics == MAY:
            return self._may(chosen, centers, len(points), slack)
        result = np.ones(len(points), np.bool_)
        for constraint in self.constraints:
            number = centers[constraint.plus] - (centers[constraint.minus] if constraint.minus is not None else 0.0)
            error = self.error(chosen, constraint.values) if self.semantics == MUST else 0.0
            result &= _all_within(number, error, constraint, slack)
        return result

    # ------------------------------------------------------------ MAY

    def _may(self, chosen: Sequence[Prediction], centers: Mapping[Value, F64], n: int, slack: float) -> Bools:
        nodes: list[Value | None] = [None, *self.values]
        known = np.full((n, len(nodes), len(nodes)), np.inf)
        for node, value in enumerate(nodes):
            known[:, node, node] = 0.0
            if value is not None:
                error = chosen[value[0]].errors[value[1]]
                margin = error - slack if error > 0 else 0.0
                known[:, node, 0], known[:, 0, node] = centers[value] + margin, margin - centers[value]
        result = np.zeros(n, np.bool_)
        for choice in itertools.product(
            *(list(self._alternatives(chosen, constraint)) for constraint in self.constraints)
        ):
            bounds = known.copy()
            for first, second, most, is_exact in itertools.chain.from_iterable(choice):
                i, j = nodes.index(first), nodes.index(second)
                bounds[:, i, j] = np.minimum(bounds[:, i, j], most - (min(slack, 0.0) if is_exact else slack))
            result |= ~_is_contradictory(bounds)
        return result

    def _alternatives(self, chosen: Sequence[Prediction], constraint: Constraint) -> Iterator[list[Bound]]:
        """The alternatives in which a constraint is true, each as a conjunction of bounds."""
        plus, minus, bound = constraint.plus, constraint.minus, constraint.bound
        at_most, at_least = (plus, minus, bound, False), (minus, plus, -bound, False)
        if constraint.op == "<>" and self.error(chosen, constraint.values) > 0:
            yield []
        elif not constraint.is_absolute:
            exact: list[Bound] = [(plus, minus, bound, True), (minus, plus, -bound, True)]
            yield from {
                "<": [[at_most]], "<=": [[at_most]], ">": [[at_least]], ">=": [[at_least]], "=": [exact],
                "<>": [[at_most], [at_least]],
            }[constraint.op]  # fmt: skip
        else:
            below, beyond = [at_most, (minus, plus, bound, False)], [[at_least], [(plus, minus, -bound, False)]]
            exactly: list[list[Bound]] = [
                [(plus, minus, sign * bound, True), (minus, plus, -sign * bound, True)] for sign in (1.0, -1.0)
            ]
            yield from {
                "<": [below], "<=": [below], ">": beyond, ">=": beyond, "=": exactly if bound >= 0 else [],
                "<>": [below, *beyond],
            }[constraint.op]  # fmt: skip


def _is_contradictory(bounds: npt.NDArray[np.float64]) -> Bools:
    """Whether some cycle of bounds has a negative sum, by shortest paths."""
    for k in range(bounds.shape[1]):
        bounds = np.minimum(bounds, bounds[:, :, k, None] + bounds[:, None, k, :])
    return np.einsum("nii->ni", bounds).min(axis=1) < -1e-12


def _compare(number: F64, op: str, bound: float, slack: float) -> Bools:
    if op == "=":
        return np.abs(number - bound) <= max(-slack, 0.0)
    if op == "<>":
        return np.abs(number - bound) > slack
    if slack == 0:
        return {"<": number < bound, "<=": number <= bound, ">": number > bound, ">=": number >= bound}[op]
    return number <= bound - slack if op in ("<", "<=") else number >= bound + slack


def _all_within(number: F64, error: float, constraint: Constraint, slack: float) -> Bools:
    """Whether a constraint is true of all numbers within an error, except a set of probability 0."""
    if error == 0:
        return _compare(np.abs(number) if constraint.is_absolute else number, constraint.op, constraint.bound, slack)
    low, high = number - error, number + error
    if constraint.op == "<>":
        return np.ones(len(number), np.bool_)
    if constraint.op in ("<", "<="):
        return (high <= constraint.bound - slack) & ((low >= slack - constraint.bound) | (not constraint.is_absolute))
    beyond = low >= constraint.bound + slack
    if not constraint.is_absolute:
        return beyond
    return beyond | (high <= -constraint.bound - slack) | (constraint.bound <= 0)


# ---------------------------------------------------------------- true values


def draws(prediction: Prediction, column: str, n: int, random: np.random.Generator) -> F64:
    """Random errors of a column: uniform, or truncated normal by rejection."""
    error, spread = prediction.errors[column], prediction.spreads[column]
    if error == 0 or spread == 0:
        return random.uniform(-error, error, n)
    errors = np.empty(0)
    if spread > 2 * error:  # most normal draws would be rejected: reject uniform draws by the density instead
        while len(errors) < n:
            drawn = random.uniform(-error, error, n)
            errors = np.concatenate([errors, drawn[random.random(n) < np.exp(-0.5 * (drawn / spread) ** 2)]])
    while len(errors) < n:
        drawn = random.normal(0.0, spread, n)
        errors = np.concatenate([errors, drawn[np.abs(drawn) <= error]])
    return errors[:n]


def satisfied_share(
    query: QueryShape, chosen: Sequence[Prediction], point: Sequence[float], n: int, seed: int
) -> float:
    """The share of random true values at a point that satisfy all constraints on values with an error.

    Constraints on exact values are left out: at a rounded corner they may be true or false.
    """
    random = np.random.default_rng(seed)
    centers = query.centers(chosen, np.array([point], np.float64))
    truth = {(j, column): centers[j, column][0] + draws(chosen[j], column, n, random) for j, column in query.values}
    satisfied = np.ones(n, np.bool_)
    for constraint in query.constraints:
        if query.error(chosen, constraint.values) > 0:
            satisfied &= constraint.is_true(truth)
    return float(satisfied.mean())
