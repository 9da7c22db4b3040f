"""MONITOR with any condition, by its definition: WHERE is evaluated for every possible world at given instants.

The true values of a world are put into the rows, and WHERE is evaluated as it is written: constraints on values,
conditions on rows, AND, OR and NOT. The probability at some instants is the share of the worlds in which it is true
(`monitor_worlds.py`). MAY matches where this is above 0, MUST where it is 1, and EXPECTED where WHERE is true of the
predictions themselves and the probability is above 0.

A constraint between two names has a window: that of the innermost WITHIN around it, or that of the query. It is true
only at instants that are at most this far apart, also if it is negated. Two names are compared at instants that are at
most the largest window of the constraints between them apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

from anabranch.binding.typed import Constant, Operation, Reference, Typed, walk
from anabranch.language.types import Type
from anabranch.monitor.query import BoundMonitor
from tests.oracles.conditions import holds
from tests.oracles.monitor import is_value
from tests.oracles.monitor_predictions import Prediction
from tests.oracles.monitor_worlds import World, probability


def is_true(query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction], values: World) -> bool:
    """Whether WHERE is true of predictions whose values are those of a world, by operand and column."""
    bindings = {
        (operand.name, 1): prediction.columns
        | {column: float(number) for (owner, column), number in values.items() if owner == operand.name}
        for operand, prediction in zip(query.operands, chosen, strict=True)
    }
    at = {operand.name: instant for operand, instant in zip(query.operands, instants, strict=True)}

    def leaf(condition: Typed, window: float, negated: bool) -> bool:
        names = compared_names(query, condition)
        is_near = all(abs(at[one] - at[other]) <= window for one, other in itertools.combinations(names, 2))
        return is_near and holds(Operation("not", (condition,), Type.BOOLEAN) if negated else condition, bindings, {})

    return all(_evaluated(condition, query.within, False, leaf) for condition in query.conditions)


def _evaluated(condition: Typed, window: float, negated: bool, leaf: Callable[[Typed, float, bool], bool]) -> bool:
    """A condition or its negation, of the truths of its leaves, each with its window."""
    if isinstance(condition, Operation) and condition.op == "windowed":
        inner, own = condition.arguments
        assert isinstance(own, Constant)
        return _evaluated(inner, float(own.value or 0), negated, leaf)
    if isinstance(condition, Operation) and condition.op == "not":
        return _evaluated(condition.arguments[0], window, not negated, leaf)
    if isinstance(condition, Operation) and condition.op in ("and", "or"):
        truths = [_evaluated(part, window, negated, leaf) for part in condition.arguments]
        return all(truths) if (condition.op == "and") != negated else any(truths)
    return leaf(condition, window, negated)


def compared_names(query: BoundMonitor, condition: Typed) -> set[str]:
    """The names whose values a condition compares."""
    return {node.owner for node in walk(condition) if isinstance(node, Reference) and is_value(node, query.operands)}


def are_comparable(query: BoundMonitor, instants: Sequence[Fraction]) -> bool:
    """Whether two instants are within the largest window of the constraints between the two names."""
    windows: list[float] = []

    def leaf(condition: Typed, window: float, negated: bool) -> bool:
        windows.extend([window] if len(compared_names(query, condition)) == 2 else [])
        return negated

    for condition in query.conditions:
        _evaluated(condition, query.within, False, leaf)
    return abs(instants[0] - instants[1]) <= max(windows, default=query.within)


def predicted_at(
    query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction]
) -> tuple[World, World]:
    """The predictions of all values in WHERE at one instant for each operand, and their errors."""
    predicted, errors = {}, {}
    for operand, prediction, instant in zip(query.operands, chosen, instants, strict=True):
        for node in (node for condition in query.conditions for node in walk(condition)):
            if is_value(node, [operand]):
                line = prediction.lines[node.name]
                predicted[operand.name, node.name] = Fraction(line.at(instant))
                errors[operand.name, node.name] = Fraction(line.error)
    return predicted, errors


def probability_at(
    query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction], step: Fraction
) -> Fraction:
    """The probability that WHERE is true at some instants."""
    predicted, errors = predicted_at(query, chosen, instants)
    return probability(predicted, errors, step, lambda world: is_true(query, chosen, instants, world))


def matches_at(query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction], step: Fraction) -> bool:
    """Whether the predictions match at some instants, at which they apply and which are within the window."""
    if query.semantics == "EXPECTED":
        predicted, _ = predicted_at(query, chosen, instants)
        if not is_true(query, chosen, instants, predicted):
            return False
    chance = probability_at(query, chosen, instants, step)
    return chance == 1 if query.semantics == "MUST" else chance > 0
