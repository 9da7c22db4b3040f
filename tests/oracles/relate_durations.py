"""The oracle of RELATE with DURATION and GAP: integrates the density of the lost events, or draws them.

The times of an entity's events have a density: the product of the densities of the lengths of its segments and of the
gaps between them. A length without a distribution has the density 1. What is before the first event and after the last
one has no length. Of lost events, only times within their windows and in order are possible. The density is normalised
over these. The two entities are independent.

`probability` integrates over the times of at most two lost events of a pair. It cuts time at all recorded times and
ends of windows. If the lost events are in different gaps between cuts, or in one gap in a given order, then the order
of all events is fixed, and the query holds everywhere or nowhere. There the density is smooth, and a Gauss rule
integrates it.

`sampled` draws uniform times, and rejects each draw with the probability that its density demands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.oracles.relate import (
    RELATIONS,
    Conditions,
    Entity,
    Quantifier,
    Window,
    enough,
    sample_times,
    satisfied_segments,
    segments,
)
from tests.untraced import untraced

F64 = npt.NDArray[np.float64]

#: The nodes of the Gauss rule in each direction.
NODES = 40


@dataclass(frozen=True, slots=True)
class Law:
    """An ERLANG distribution; k = 1 is EXPONENTIAL."""

    k: int
    mean: float

    def log_density(self, length: F64) -> F64:
        """The logarithm of the density of a length, up to a constant."""
        with np.errstate(divide="ignore"):
            powers = (self.k - 1) * np.log(length) if self.k > 1 else 0.0
        return powers - self.k * length / self.mean

    @property
    def highest(self) -> float:
        """The highest value of `log_density`."""
        mode = (self.k - 1) / self.k * self.mean
        return float(self.log_density(np.array(mode))) if self.k > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Timed:
    """An entity, and the distribution of the time from each event to the next; None if there is none."""

    entity: Entity
    laws: tuple[Law | None, ...]

    @property
    def lost(self) -> list[int]:
        """The positions of the lost events."""
        return [i for i, event in enumerate(self.entity.events) if isinstance(event, Window)]

    def log_density(self, times: Sequence[F64]) -> F64:
        """The logarithm of the density of the times of all events."""
        lengths = [later - earlier for earlier, later in itertools.pairwise(times)]
        parts = [law.log_density(length) for law, length in zip(self.laws, lengths, strict=True) if law is not None]
        return sum(parts, start=np.zeros(()))

    @property
    def highest(self) -> float:
        """An upper bound of `log_density`."""
        return sum(law.highest for law in self.laws if law is not None)


# ---------------------------------------------------------------- quadrature


@untraced
def probability(
    a: Timed,
    b: Timed,
    outer: Quantifier,
    inner: Quantifier,
    relations: frozenset[str],
    conditions: Conditions | None = None,
) -> float:
    """P[for `outer` segments of a there are `inner` segments of b to which one of the relations holds]."""
    weighed = distribution(a, b, inner, relations, conditions)
    return sum(weight for n, weight in enumerate(weighed) if enough(n, outer, len(weighed) - 1))


@untraced
def distribution(
    a: Timed, b: Timed, inner: Quantifier, relations: frozenset[str], conditions: Conditions | None = None
) -> list[float]:
    """P[exactly n segments of a have `inner` segments of b to which a relation holds], for n from 0 on."""
    masses: dict[int, float] = {}
    shift = _highest_found(a, b)
    for times_a, times_b, weights in _regions(a, b):
        densities = np.exp(a.log_density(times_a) + b.log_density(times_b) - shift)
        inside = [[float(np.ravel(t)[0]) for t in times] for times in (times_a, times_b)]
        satisfied, n_counted = satisfied_segments(*inside, inner, relations, conditions)
        masses[satisfied] = masses.get(satisfied, 0.0) + float(np.sum(weights * densities))
    return [masses.get(n, 0.0) / sum(masses.values()) for n in range(n_counted + 1)]


def _highest_found(a: Timed, b: Timed) -> float:
    """The highest density at any node: a common factor, so that no exponential underflows."""
    return max(float(np.max(a.log_density(x) + b.log_density(y))) for x, y, _ in _regions(a, b))


def _regions(a: Timed, b: Timed) -> Iterator[tuple[list[F64], list[F64], F64]]:
    """The regions in which the order of all events is fixed: times of both entities at the nodes, and their weights."""
    lost = [(0, i) for i in a.lost] + [(1, i) for i in b.lost]
    assert len(lost) <= 2, "the oracle integrates over one or two lost events"
    cuts = sorted(a.entity.cuts | b.entity.cuts)
    gaps = [(float(low), float(high)) for low, high in itertools.pairwise(cuts)]
    operands = (a.entity, b.entity)
    possible = [[gap for gap in gaps if _fits(operands[side].events[i], gap)] for side, i in lost]
    for chosen in itertools.product(*possible):
        for nodes, weights in _nodes(chosen):
            times: list[list[F64]] = [
                [np.array(float("nan")) if isinstance(event, Window) else np.array(float(event)) for event in o.events]
                for o in operands
            ]
            for (side, i), node in zip(lost, nodes, strict=True):
                times[side][i] = node
            if all(_in_order(side) for side in times):
                yield times[0], times[1], weights


def _fits(event: object, gap: tuple[float, float]) -> bool:
    return isinstance(event, Window) and float(event.lo) <= gap[0] and gap[1] <= float(event.hi)


def _in_order(times: list[F64]) -> bool:
    return all(bool(np.all(earlier < later)) for earlier, later in itertools.pairwise(times))


def _nodes(gaps: Sequence[tuple[float, float]]) -> Iterator[tuple[list[F64], F64]]:
    """Nodes and weights for events in these gaps; two events in one gap have one region for each order."""
    x, weight = np.polynomial.legendre.leggauss(NODES)
    x, weight = (x + 1) / 2, weight / 2
    if not gaps:
        yield [], np.ones(())
    elif len(gaps) == 1:
        (low, high) = gaps[0]
        yield [low + (high - low) * x], (high - low) * weight
    elif gaps[0] != gaps[1]:
        (low, high), (low_2, high_2) = gaps
        grid = np.outer(weight, weight) * (high - low) * (high_2 - low_2)
        yield [low + (high - low) * x[:, None] + 0 * x, low_2 + (high_2 - low_2) * x + 0 * x[:, None]], grid
    else:
        low, high = gaps[0]
        later = low + (high - low) * x[:, None] + 0 * x
        earlier = low + (later - low) * x
        grid = np.outer(weight, weight) * (high - low) * (later - low)
        yield [earlier, later], grid
        yield [later, earlier], grid


# ---------------------------------------------------------------- sampling


@untraced
def sampled(
    a: Timed, b: Timed, outer: Quantifier, inner: Quantifier, relations: frozenset[str], draws: int, seed: int = 0
) -> tuple[float, int]:
    """An estimate of the probability from draws that are not rejected, and their number."""
    random = np.random.default_rng(seed)
    times_a, times_b = (sample_times(timed.entity, draws, random) for timed in (a, b))
    log_density = a.log_density(list(times_a)) + b.log_density(list(times_b)) - a.highest - b.highest
    kept = np.log(random.uniform(size=draws)) < log_density
    satisfied = np.zeros(int(kept.sum()), dtype=int)
    for x in segments(list(times_a[:, kept])):
        count = np.zeros(len(satisfied), dtype=int)
        for y in segments(list(times_b[:, kept])):
            count += np.any([RELATIONS[relation](*x, *y) for relation in sorted(relations)], axis=0)
        satisfied += enough(count, inner, b.entity.segments)
    holds = enough(satisfied, outer, a.entity.segments)
    return float(np.mean(holds)) if len(satisfied) else math.nan, len(satisfied)
