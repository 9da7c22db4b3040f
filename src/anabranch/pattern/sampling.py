"""Sampled worlds, for chains whose exact state is too large.

A world has a value for each key, and a set of partial results. As many worlds are kept as ACCURACY and CONFIDENCE
require, 64 per machine word (`words.py`), and the general machine runs on the words (`machine.py`). Random numbers are
hashes of the seed, the chain or key, the instant and the world, so worlds depend on the rows of the chain alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.columns.intervals import interval
from anabranch.pattern import kernel
from anabranch.pattern.history import Outcomes, Past
from anabranch.pattern.joint import JointState
from anabranch.pattern.kernel.words import draw_values
from anabranch.pattern.machine import Partial, Signature, Transitions
from anabranch.splitmix import GOLDEN, mix_all

_EVERYWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Makes the random numbers of a key's value before an instant differ from those of its value at it.
_BEFORE = np.uint64(0x5DEECE66D)


@cache
def words_for(accuracy: float, confidence: float) -> int:
    """How many words of worlds make every interval as narrow as ACCURACY requires; it is widest in the middle.

    Examples
    --------
    >>> 64 * words_for(0.01, 0.99)
    16704
    """

    def is_enough(words: int) -> bool:
        lower, upper = interval(np.array([32 * words]), 64 * words, 1.0 - confidence)
        return bool(upper[0] - lower[0] <= 2 * accuracy)

    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@dataclass(slots=True)
class Worlds:
    """The sampled worlds of a chain between two instants.

    Attributes
    ----------
    n_words : how many words a mask of worlds has
    values : the values of each Markov key that has had an effect on the chain, and the worlds of each
    results : the worlds of each partial result
    """

    n_words: int
    values: dict[int, tuple[I32, U64]] = field(default_factory=dict)
    results: dict[Partial, U64] = field(default_factory=dict)

    def copy(self) -> Worlds:
        """Worlds that are moved on separately."""
        return replace(self, values=dict(self.values))

    @property
    def keys(self) -> Iterable[int]:
        """The Markov keys that have had an effect on the chain."""
        return self.values.keys()

    def partials(self) -> set[Partial]:
        """Every partial result that the chain has in some world."""
        return set(self.results)

    def forget(self, is_recent: Callable[[Partial], bool]) -> None:
        """Drop the partial results that began too long ago (WITHIN)."""
        self.results = {partial: worlds for partial, worlds in self.results.items() if is_recent(partial)}

    def advance(self, machine: Transitions, keys: Sequence[Outcomes], past: Past, now: int = 0) -> U64:
        """Process one instant, with WITHIN at the time `now`; returns the worlds in which the query is true at it.

        Of several queries, one row for each.
        """
        everywhere = np.full(self.n_words, _EVERYWHERE)
        events: dict[Signature, U64] = {}
        for outcomes in keys:
            codes, masks = self._draw(outcomes, past, everywhere)
            for code, mask in zip(codes.tolist(), masks, strict=True):
                signature = outcomes.signatures.get(code)
                if signature is not None:
                    events[signature] = events[signature] | mask if signature in events else mask
        oldest = min((partial.began for partial in self.results), default=now)
        results, true = machine.advance(self.results, events, everywhere, now, oldest)
        self.results = {partial: worlds for partial, worlds in results.items() if worlds.any()}
        return np.asarray(true)

    def _draw(self, outcomes: Outcomes, past: Past, everywhere: U64) -> tuple[I32, U64]:
        """The values of a key at an instant, and the worlds of each."""
        if outcomes.model == kernel.CERTAIN:
            return outcomes.value, np.broadcast_to(everywhere, (len(outcomes.value), self.n_words))
        before = np.zeros(1, np.int32), everywhere.reshape(1, -1)
        if outcomes.model == kernel.MARKOV:
            before = self.values.get(outcomes.key) or self._first_values(outcomes, past.of(outcomes.key))
        after = draw_values(
            outcomes.prev, outcomes.value, outcomes.p, *before, outcomes.hashes, np.uint64(outcomes.seed), 0
        )
        if outcomes.model == kernel.MARKOV:
            occurs = after[1].any(axis=1)
            self.values[outcomes.key] = after[0][occurs], after[1][occurs]
        return after

    def _first_values(self, outcomes: Outcomes, distribution: Mapping[int, float]) -> tuple[I32, U64]:
        """The values of a key that has had no effect so far."""
        codes = np.array(sorted(distribution, key=lambda code: (code == 0, outcomes.hashes[code])), np.int32)
        drawn = draw(np.array([distribution[code] for code in codes.tolist()]), self.n_words, outcomes.seed ^ _BEFORE)
        return codes, np.stack([as_words(drawn == index) for index in range(len(codes))])


def sample(state: JointState, n_words: int, seed: int) -> tuple[Worlds, I64]:
    """Worlds with the distribution of an exact state, and the count of PER in each; 0 without PER."""
    states = list(state.states)
    weights = np.stack([np.atleast_1d(weight) for weight in state.states.values()])
    number, count = np.divmod(draw(weights.reshape(-1), n_words, seed), weights.shape[1])
    worlds = Worlds(n_words)
    for key, axis in state.axes.items():
        codes, code = np.unique([values[axis] for values, _ in states], return_inverse=True)
        masks = np.stack([as_words((code == index)[number]) for index in range(len(codes))])
        worlds.values[key] = codes.astype(np.int32), masks
    for partial in state.partials():
        mask = as_words(np.array([partial in partials for _, partials in states])[number])
        if mask.any():
            worlds.results[partial] = mask
    return worlds, count


def draw(weights: F64, n_words: int, seed: int | np.uint64) -> I64:
    """The index of one of the weights for each world, with these probabilities."""
    with np.errstate(over="ignore"):
        numbers = np.uint64(seed) + np.arange(64 * n_words, dtype=np.uint64) * GOLDEN
    uniform = (mix_all(numbers) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    reached = np.cumsum(weights)
    index = np.searchsorted(reached, uniform * reached[-1], side="right")
    return np.minimum(index, np.flatnonzero(weights)[-1])


def as_words(worlds: np.ndarray) -> U64:
    """A mask of worlds as machine words."""
    return np.packbits(worlds, bitorder="little").view("<u8").astype(np.uint64)


def as_worlds(words: U64) -> I64:
    """For each world, whether it is in a mask: 1 or 0."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(np.int64)
