"""Probabilities of uniform values in the MONITOR oracle: all possible worlds are enumerated, in fractions.

Predictions, errors and bounds are multiples of a step. So the true value of each column is in one of a few cells of one
step, and somewhere in that cell. A *world* has the cell of each value, and says in which order the values are within
their cells. A value, or the difference of two, is between the same multiples of the step in all cases of one world, so
one case of a world stands for all of them. Within a cell all places are equally likely, and so are all orders.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction

from tests.untraced import untraced

World = dict[Hashable, Fraction]


@untraced
def probability(
    predicted: Mapping[Hashable, Fraction],
    errors: Mapping[Hashable, Fraction],
    step: Fraction,
    is_true: Callable[[World], bool],
) -> Fraction:
    """The probability that a condition on values and on differences of two values is true.

    Parameters
    ----------
    predicted, errors : the prediction and the error of each value
    step : all predictions, errors and bounds of the condition are multiples of it
    is_true : the condition
    """
    count = true = 0
    for world in worlds(predicted, errors, step):
        count += 1
        true += is_true(world)
    return Fraction(true, count)


def worlds(
    predicted: Mapping[Hashable, Fraction], errors: Mapping[Hashable, Fraction], step: Fraction
) -> Iterator[World]:
    """One case of each world; all worlds are equally likely."""
    exact = {value: number for value, number in predicted.items() if not errors[value]}
    uncertain = [value for value in predicted if errors[value]]
    orders = list(itertools.permutations(range(len(uncertain))))
    for cells in itertools.product(*(_cells(predicted[value], errors[value], step) for value in uncertain)):
        for order in orders:
            yield exact | {
                value: low + step * Fraction(2 * rank + 1, 2 * len(uncertain))
                for value, low, rank in zip(uncertain, cells, order, strict=True)
            }


def _cells(predicted: Fraction, error: Fraction, step: Fraction) -> Sequence[Fraction]:
    """The lower ends of the cells of a value."""
    count = 2 * error / step
    if count.denominator != 1 or (predicted / step).denominator != 1:
        raise ValueError(f"{predicted} and {error} are not multiples of {step}")
    return [predicted - error + step * cell for cell in range(math.floor(count))]
