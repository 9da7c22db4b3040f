"""Sampling of worlds, for queries whose exact state would be too large.

Complete worlds are sampled, 64 per machine word (`words.py`), and the general machine runs on the words (`machine.py`).
Worlds are sampled until the interval of every row is as narrow as ACCURACY requires. Intervals are Clopper-Pearson
intervals. They are checked several times, so each check gets a share of the error that CONFIDENCE allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from scipy.special import betaincinv, ndtri

from anabranch.arrays import F64, I32, I64, U64
from anabranch.pattern import kernel
from anabranch.pattern.counting import OUTSIDE
from anabranch.pattern.history import History
from anabranch.pattern.kernel.words import count_bits, draw_values
from anabranch.pattern.machine import Machine, Partial, Signature

#: The words that are sampled before the first check of the intervals.
FIRST_WORDS = 16
#: The most words that are sampled together: 256 KiB for each value of a key.
MOST_WORDS = 1 << 15
_EVERYWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The share of sampled worlds in which the query is true, and its interval, for each time.

    With `spans`, `t` has their numbers, the probability is that of being true often enough in a span, and `expected` is
    the mean count. `unseen` is the upper end of the interval of a time at which the query is true in no sampled world.
    """

    t: I64
    probability: F64
    lower: F64
    upper: F64
    unseen: float
    worlds: int
    expected: F64


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of time in which the instants and chains are counted for which the query is true.

    `of` gives the number of the span of a time, or `OUTSIDE`; a span is true if the count is at least `times`.
    """

    of: Callable[[int], int]
    times: int


#: For each time or span, the worlds in which it is true, and the sum of the counts of all worlds.
_Tally = dict[int, tuple[U64, int]]


class WorldMachine(Protocol):
    """What runs in many worlds; see `Machine.advance`."""

    def reaches(self, times: Sequence[int]) -> Sequence[Any]:
        """For each instant, how many earlier ones are not too long ago; an array for several queries."""

    def advance(
        self, partials: Mapping[Partial, U64], events: Mapping[Signature, U64], everywhere: U64, now: int, oldest: Any
    ) -> tuple[dict[Partial, U64], U64]:
        """The partial results after an instant, and the worlds in which the query is true at it."""


def estimate(
    machine: Machine, histories: Sequence[History], accuracy: float, confidence: float, spans: Spans | None = None
) -> Estimate:
    """Estimate the probability that the query is true for some chain, at each time at which a sampled world has it.

    With `spans`, it is the probability that the query is true often enough in a span.
    """
    hits: dict[int, int] = {}
    totals: dict[int, int] = {}
    words, target, checks = 0, FIRST_WORDS, 0
    while True:
        while words < target:
            n_words = min(target - words, MOST_WORDS)
            for t, (worlds, total) in _true_worlds(machine, histories, words, n_words, spans).items():
                hits[t] = hits.get(t, 0) + int(count_bits(worlds))
                totals[t] = totals.get(t, 0) + total
            words += n_words
        checks += 1
        times = np.array(sorted(t for t in hits if hits[t]), np.int64)
        counts = np.array([hits[int(t)] for t in times], np.int64)
        error = (1.0 - confidence) / (checks * (checks + 1))
        # A time without hits gives no row, but its interval must be narrow enough as well.
        lower, upper = interval(np.append(counts, 0), 64 * words, error)
        if ((upper - lower) / 2 <= accuracy).all():
            probability = counts / (64 * words)
            expected = np.array([totals[int(t)] for t in times]) / (64 * words)
            return Estimate(times, probability, lower[:-1], upper[:-1], float(upper[-1]), 64 * words, expected)
        target = _next_target(words, counts, accuracy, error)


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


def interval(hits: I64, worlds: int | I64, error: float) -> tuple[F64, F64]:
    """The Clopper-Pearson interval: it does not contain the true probability with probability at most `error`.

    Examples
    --------
    >>> lower, upper = interval(np.array([0, 5]), 10, 0.05)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0, 0.1871], [0.3085, 0.8129])
    """
    misses = worlds - hits
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, error / 2), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, 1), 1 - error / 2), 1.0)
    return lower, upper


def _next_target(words: int, counts: I64, accuracy: float, error: float) -> int:
    """How many words are probably enough: the normal approximation plus 5 %, but 1.25 to 16 times as many as now."""
    share = counts / (64 * words)
    variance = float((share * (1 - share)).max(initial=0.0))
    enough = 1.05 * variance * (ndtri(1 - error / 4) / accuracy) ** 2 / 64
    return int(min(max(1.25 * words + 1, enough + 1), 16 * words))


def _true_worlds(
    machine: Machine, histories: Sequence[History], first_word: int, n_words: int, spans: Spans | None
) -> _Tally:
    """The worlds in which the query is true for some chain, by time; with `spans`, often enough, by span."""
    if spans is not None:
        return _counted_worlds(machine, histories, first_word, n_words, spans)
    true_worlds: dict[int, U64] = {}
    for history in histories:
        for t, worlds in run_chain(machine, history, first_word, n_words):
            true_worlds[t] = true_worlds[t] | worlds if t in true_worlds else worlds
    return {t: (worlds, 0) for t, worlds in true_worlds.items()}


def _counted_worlds(
    machine: Machine, histories: Sequence[History], first_word: int, n_words: int, spans: Spans
) -> _Tally:
    """The worlds in which the query is true often enough, and the sum of the counts, by span.

    A count is a list of masks: the j-th has the worlds that have counted more than j.
    """
    counts: dict[int, list[U64]] = {}
    totals: dict[int, int] = {}
    for history in histories:
        for t, worlds in run_chain(machine, history, first_word, n_words):
            span = spans.of(t)
            if span == OUTSIDE:
                continue
            masks = counts.setdefault(span, [np.zeros(n_words, np.uint64) for _ in range(spans.times)])
            for count in range(spans.times - 1, 0, -1):
                masks[count] |= masks[count - 1] & worlds
            masks[0] |= worlds
            totals[span] = totals.get(span, 0) + int(count_bits(worlds))
    return {span: (masks[-1], totals[span]) for span, masks in counts.items()}


def run_chain(machine: WorldMachine, history: History, first_word: int, n_words: int) -> Iterator[tuple[int, U64]]:
    """The times at which the query is true for one chain, with the worlds."""
    everywhere = np.full(n_words, _EVERYWHERE)
    all_at_nothing = np.zeros(1, np.int32), everywhere.reshape(1, -1)
    values_of_key: dict[int, tuple[I32, U64]] = {}
    partials: dict[Partial, U64] = {}
    reaches = machine.reaches([t for t, _ in history])
    for number, (t, keys) in enumerate(history):
        events: dict[Signature, U64] = {}
        for outcomes in keys:
            if outcomes.model == kernel.CERTAIN:
                codes, masks = outcomes.value, np.broadcast_to(everywhere, (len(outcomes.value), n_words))
            else:
                before = all_at_nothing
                if outcomes.model == kernel.MARKOV:
                    before = values_of_key.get(outcomes.key, all_at_nothing)
                codes, masks = draw_values(
                    outcomes.prev, outcomes.value, outcomes.p, *before, outcomes.hashes, np.uint64(outcomes.seed),
                    first_word,
                )  # fmt: skip
                values_of_key[outcomes.key] = codes, masks
            for code, mask in zip(codes.tolist(), masks, strict=True):
                signature = outcomes.signatures.get(code)
                if signature is not None:
                    events[signature] = events[signature] | mask if signature in events else mask
        if events:
            partials, true = machine.advance(partials, events, everywhere, number, number - reaches[number])
            partials = {partial: worlds for partial, worlds in partials.items() if worlds.any()}
            if true.any():
                yield t, true
