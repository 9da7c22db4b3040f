"""The oracle of accelerated predictions, an instant at a time, in fractions.

A row predicts x + x_rate (s - t) + x_accel / 2 (s - t)^2 at instant s. Whether predictions match at an instant, and
with which probability, depends on their values and errors at that instant alone. So each prediction is replaced by one
that has these values and stands still, and the oracles of linear predictions are asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import shapely

from anabranch.monitor.query import BoundMonitor
from tests.oracles.monitor import constraints, regions
from tests.oracles.monitor_distance import Pair, condition_of
from tests.oracles.monitor_polygon import Zone
from tests.oracles.monitor_predictions import Line, Prediction


def standing(prediction: Prediction, instant: Fraction) -> Prediction:
    """A prediction that has the values of another at an instant, from that instant on."""
    lines = {
        name: None if line is None else Line(line.at(instant), Fraction(0), line.error)
        for name, line in prediction.lines.items()
    }
    return replace(prediction, time=instant, end=instant + 1, lines=lines)


#: The least probability of a match; integrals may give 0 for it.
_LEAST = 1e-300


def comparisons(query: BoundMonitor, pair: tuple[Prediction, Prediction]) -> Callable[[Fraction], float]:
    """The probability of constraints on values, by instant; 0 at instants that do not match."""
    _, numbers = constraints(query)

    def probability(instant: Fraction) -> float:
        found = regions(query, (standing(pair[0], instant), standing(pair[1], instant)), numbers)
        if not found:
            return 0.0
        return max(_LEAST, math.prod(float(group.probability((instant, instant))) for group in found[0].groups))

    return probability


def distances(query: BoundMonitor, pair: tuple[Prediction, Prediction]) -> Callable[[Fraction], float]:
    """The same for distances, and constraints on other values."""
    operands = {operand.name: number for number, operand in enumerate(query.operands)}

    def probability(instant: Fraction) -> float:
        members = tuple(standing(prediction, instant) for prediction in pair)
        conditions = (condition_of(condition, operands, members, query) for condition in query.conditions)
        at = (float(instant), float(instant))
        compared = Pair((at, at), 0.0, tuple(own for own in conditions if own), query.semantics)
        return max(_LEAST, compared.probability(at)) if compared.excess(at) <= 0 else 0.0

    return probability


def polygon(
    area: shapely.Geometry, inside: bool, semantics: str, prediction: Prediction
) -> Callable[[Fraction], float]:
    """The same for a polygon."""

    def probability(instant: Fraction) -> float:
        lines = standing(prediction, instant).lines
        x, y = lines["x"], lines["y"]
        assert x is not None and y is not None
        zone = Zone(area, x, y, inside, semantics if x.error or y.error else "EXPECTED")
        return max(_LEAST, zone.share(instant)) if zone.matches(instant) else 0.0

    return probability
