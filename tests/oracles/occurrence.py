"""The posterior of a gap with OCCURS: every choice of what happened is enumerated, and its delays are convolved.

Densities are those of SciPy. Sums of delays are integrated numerically (`tests/oracles/gaps.py`). EMPIRICAL delays are
smoothed by the definition: one log-normal kernel per delay, as wide as the distance to its k-th neighbour, and one that
is as wide as all delays together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import stats

from anabranch.sequence.query import BoundComponent, BoundDelay
from tests.oracles.gaps import Curve, _convolved, _distribution


def occurrence_score(between: Sequence[BoundComponent], end: BoundComponent, length: float) -> float:
    """The probability of the match, given a gap of this length in which nothing was read; 0 if it is impossible."""
    match = tuple(not component.negative for component in between)
    total = matched = 0.0
    for choice in itertools.product([True, False], repeat=len(between)):
        chance = 1.0
        for component, happened in zip(between, choice, strict=True):
            occurs = 1.0 if component.occurs is None else component.occurs
            chance *= occurs * component.miss if happened else 1 - occurs
        likelihood = chance * density(delays_of(between, choice, end), length) if chance > 0 else 0.0
        total += likelihood
        if choice == match:
            matched = likelihood
    return matched / total if total > 0 else 0.0


def delays_of(between: Sequence[BoundComponent], choice: Sequence[bool], end: BoundComponent) -> tuple[BoundDelay, ...]:
    """The delays that add up to the gap: of every component that happened, and of the end.

    `DELAY z WITH A` is the law of the whole gap if exactly A happened. `DELAY c WITHOUT N` is the law of c if, of the
    components of the gap before c, exactly N did not happen.
    """
    happened = {component.name for component, did in zip(between, choice, strict=True) if did}
    for law in end.given:
        if law.happened and law.components == happened:
            return (law.delay,)
    delays = []
    for number, component in enumerate([*between, end]):
        if component is not end and component.name not in happened:
            continue
        absent = {before.name for before in between[:number]} - happened
        without = [law.delay for law in component.given if not law.happened and law.components == absent]
        delays.append(without[0] if without else component.delay)
    return tuple(delays)


@cache
def density(delays: tuple[BoundDelay, ...], length: float) -> float:
    """The density of the sum of delays."""
    return float(_convolved([_density(delay) for delay in delays])(np.array([length]))[0])


@cache
def _density(delay: BoundDelay) -> Curve:
    return smoothed(delay.atoms) if delay.law == "EMPIRICAL" else _distribution(delay).density


def smoothed(atoms: Sequence[float]) -> Curve:
    """The kernel density of delays."""
    kernels = [(math.log(atom), width_of(number, atoms), 1.0) for number, atom in enumerate(atoms)]
    logs = np.log(atoms)
    kernels.append((float(logs.mean()), max(2 * float(logs.std()), 1.0), 1.0))

    def value(span: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [stats.lognorm(width, scale=math.exp(centre)).pdf(span) for centre, width, _ in kernels]
        return np.sum(parts, axis=0) / len(kernels)

    scales = {math.exp(centre + z * width) for centre, width, _ in kernels for z in (-6, -3, -1, 0, 1, 3, 6)}
    return Curve(value, frozenset({0.0}), frozenset(scales))


def width_of(number: int, atoms: Sequence[float]) -> float:
    """The width of the kernel of a delay."""
    others = sorted(abs(math.log(atom / atoms[number])) for index, atom in enumerate(atoms) if index != number)
    k = max(3, int(0.5 * math.sqrt(len(atoms))))
    reach = min(others[k - 1], 1.0) if len(others) >= k else 1.0
    distinct = sorted(set(atoms))
    resolution = min((b - a for a, b in itertools.pairwise(distinct)), default=0.0)
    return max(reach, 0.002, 0.3 * resolution / atoms[number])
