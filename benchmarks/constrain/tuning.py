"""How the selectivity of queries is tuned to a verbosity: the number of alerts divided by the number of events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.constrain.analysis import NOINDEX
from benchmarks.constrain.data import Measurements
from benchmarks.constrain.queries import ANY_SHAPE, Configuration, Query, Shape, draw_configuration, draw_configurations
from benchmarks.constrain.run import InProcess

RELATIVE_ERROR = 0.03
"""How far the verbosity may be from its target, relative to it."""

MAX_SHARE = 0.1
"""A variable that accepts a larger share of the values of its property is not considered selective."""

TRIES = 40
"""How often a configuration is drawn again at most."""

RULE = f"drawn again if more than {MAX_SHARE:.0%} of a property's values would have to be accepted"

_ROUNDS = 20


def tune(
    measurements: Measurements, configurations: Sequence[Configuration], verbosity: float, max_share: float = 1.0
) -> list[Query]:
    """Find, for each configuration, the share of accepted values that gives the verbosity.

    Shares above `max_share` are not tried: if a larger one would be needed, `max_share` is returned.

    The number of alerts grows with the share, so the share is bracketed; within a bracket the number is assumed to be a
    power of the share. Values have few digits, so the verbosity cannot always be met; then the nearest one is used.
    """
    target = verbosity * len(measurements)
    searches = [_Search(target, len(configuration.ranges), max_share) for configuration in configurations]
    for _ in range(_ROUNDS):
        open_searches = [number for number, search in enumerate(searches) if not search.done]
        if not open_searches:
            break
        queries = [Query(configurations[number], searches[number].share) for number in open_searches]
        counts = InProcess(measurements, queries, NOINDEX).alert_counts()
        for number, count in zip(open_searches, counts, strict=True):
            searches[number].update(int(count))
    return [Query(configuration, search.best) for configuration, search in zip(configurations, searches, strict=True)]


class _Search:
    """The search for the share that gives a number of alerts."""

    def __init__(self, target: float, variables: int, max_share: float) -> None:
        self._target, self._power, self._max_share = target, variables, max_share
        self._low, self._high = (0.0, 0), (1.0, 0)
        self._nearest = np.inf
        # Start with few alerts: too many would take long.
        self.share = self.best = 0.005
        self.done = False

    def update(self, count: int) -> None:
        """Use the number of alerts of the current share to choose the next one."""
        difference = abs(np.log(max(count, 0.5) / self._target))
        # Of several shares without alerts the last is best: it shows how far the search went.
        if difference <= self._nearest:
            self._nearest, self.best = difference, self.share
        if count < self._target:
            self._low = (self.share, count)
        else:
            self._high = (self.share, count)
        following = self._next()
        self.done = difference < RELATIVE_ERROR or np.isclose(following, self.share, rtol=1e-5)
        self.share = following

    def _next(self) -> float:
        (low, below), (high, above) = self._low, self._high
        if above == 0:
            return min(low * min(2.0, (self._target / max(below, 0.5)) ** (1 / self._power)), self._max_share)
        if below == 0:
            return (low + high) / 2 if low else high * max(0.5, (self._target / above) ** (1 / self._power))
        power = np.log(above / below) / np.log(high / low)
        guess = low * (self._target / below) ** (1 / power)
        # Away from the ends, so that both of them move.
        margin = 0.05 * (high - low)
        return float(np.clip(guess, low + margin, high - margin))


def selective(
    measurements: Measurements,
    count: int,
    seed: int,
    verbosity: float,
    shape: Shape = ANY_SHAPE,
    first: Sequence[Query] = (),
) -> list[Query]:
    """Return tuned queries that accept at most MAX_SHARE; other configurations are drawn again from the next seed.

    Parameters
    ----------
    first : queries of the first seed, if they are already tuned

    Raises
    ------
    ValueError
        If TRIES seeds are not enough: the data do not have enough matching events.
    """
    last_seed = seed + TRIES
    queries = list(first) or tune(measurements, draw_configurations(count, seed, shape), verbosity, MAX_SHARE)
    while redrawn := [number for number, query in enumerate(queries) if query.share >= MAX_SHARE]:
        seed += 1
        if seed == last_seed:
            raise ValueError(f"{len(redrawn)} of {count} configurations cannot have a verbosity of {verbosity:.1%}")
        configurations = [draw_configuration(number, seed, shape) for number in redrawn]
        for number, query in zip(redrawn, tune(measurements, configurations, verbosity, MAX_SHARE), strict=True):
            queries[number] = query
    return queries
