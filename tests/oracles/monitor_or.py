"""MONITOR with any condition, by its definition: WHERE is evaluated for every possible world at given instants.

The true values of a world are put into the rows, and WHERE is evaluated as it is written: constraints on values,
conditions on rows, AND, OR and NOT. The probability at some instants is the share of the worlds in which it is true
(`monitor_worlds.py`). MAY matches where this is above 0, MUST where it is 1, and EXPECTED where WHERE is true of the
predictions themselves and the probability is above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anabranch.binding.typed import walk
from anabranch.monitor.query import BoundMonitor
from tests.oracles.conditions import holds
from tests.oracles.monitor import is_value
from tests.oracles.monitor_predictions import Prediction
from tests.oracles.monitor_worlds import World, probability


def is_true(query: BoundMonitor, chosen: Sequence[Prediction], values: World) -> bool:
    """Whether WHERE is true of predictions whose values are those of a world, by operand and column."""
    bindings = {
        (operand.name, 1): prediction.columns
        | {column: float(number) for (owner, column), number in values.items() if owner == operand.name}
        for operand, prediction in zip(query.operands, chosen, strict=True)
    }
    return all(holds(condition, bindings, {}) for condition in query.conditions)


def predicted_at(
    query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction]
) -> tuple[World, World]:
    """The predictions of all values in WHERE at one instant for each operand, and their errors."""
    predicted, errors = {}, {}
    for operand, prediction, instant in zip(query.operands, chosen, instants, strict=True):
        for node in (node for condition in query.conditions for node in walk(condition)):
            if is_value(node, [operand]):
                line = prediction.lines[node.name]
                predicted[operand.name, node.name] = Fraction(line.start + line.rate * instant)
                errors[operand.name, node.name] = Fraction(line.error)
    return predicted, errors


def probability_at(
    query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction], step: Fraction
) -> Fraction:
    """The probability that WHERE is true at some instants."""
    predicted, errors = predicted_at(query, chosen, instants)
    return probability(predicted, errors, step, lambda world: is_true(query, chosen, world))


def matches_at(query: BoundMonitor, chosen: Sequence[Prediction], instants: Sequence[Fraction], step: Fraction) -> bool:
    """Whether the predictions match at some instants, at which they apply and which are within the window."""
    if query.semantics == "EXPECTED" and not is_true(query, chosen, predicted_at(query, chosen, instants)[0]):
        return False
    chance = probability_at(query, chosen, instants, step)
    return chance == 1 if query.semantics == "MUST" else chance > 0
