"""Sampling of worlds, for queries whose exact state would be too large.

Whole worlds are drawn, 64 to a machine word (`words.py`), and the general machine runs on the words (`machine.py`).
Worlds are drawn until every row's interval is as narrow as ACCURACY asks. Intervals are Clopper and Pearson's; since
they are looked at several times, each look is given a part of what CONFIDENCE leaves for error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from anabranch.arrays import F64, I32, I64, U64
from anabranch.pattern import kernel
from anabranch.pattern.history import History
from anabranch.pattern.machine import Machine, Partial, Signature
from anabranch.pattern.words import count_bits, draw_values

WORDS_AT_FIRST = 16
#: The most words that are drawn together: 256 KiB for each value of a key.
WORDS_AT_ONCE = 1 << 15
_EVERYWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The share of worlds in which the query is true at each time, and the interval around it.

    `unseen` is the upper end of the interval of a time at which it was true in no world.
    """

    t: I64
    probability: F64
    lower: F64
    upper: F64
    unseen: float
    worlds: int


def estimate(machine: Machine, histories: Sequence[History], accuracy: float, confidence: float) -> Estimate:
    """The probability that the query is true of some of these chains, at each time; times never true are left out."""
    hits: dict[int, int] = {}
    words, target, look = 0, WORDS_AT_FIRST, 0
    while True:
        while words < target:
            n_words = min(target - words, WORDS_AT_ONCE)
            for t, worlds in _true_worlds(machine, histories, words, n_words).items():
                hits[t] = hits.get(t, 0) + int(count_bits(worlds))
            words += n_words
        look += 1
        times = np.array(sorted(t for t in hits if hits[t]), np.int64)
        counts = np.array([hits[int(t)] for t in times], np.int64)
        share = (1.0 - confidence) / (look * (look + 1))
        # A time that was never hit is no row, but its interval decides whether enough worlds were seen.
        lower, upper = interval(np.append(counts, 0), 64 * words, share)
        if ((upper - lower) / 2 <= accuracy).all():
            probability = counts / (64 * words)
            return Estimate(times, probability, lower[:-1], upper[:-1], float(upper[-1]), 64 * words)
        target = _next_target(words, counts, accuracy, share)


def interval(hits: I64, worlds: int, error: float) -> tuple[F64, F64]:
    """Clopper and Pearson's interval: it fails to hold the truth with probability at most `error`.

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
    """How many words should do, by the normal approximation and a little more; never much beyond what is needed."""
    share = counts / (64 * words)
    spread = float((share * (1 - share)).max(initial=0.0))
    enough = 1.05 * spread * (ndtri(1 - error / 4) / accuracy) ** 2 / 64
    return int(min(max(1.25 * words + 1, enough + 1), 16 * words))


def _true_worlds(machine: Machine, histories: Sequence[History], first_word: int, n_words: int) -> dict[int, U64]:
    """The worlds in which some chain makes the query true, by time."""
    found: dict[int, U64] = {}
    for history in histories:
        for t, worlds in _run_chain(machine, history, first_word, n_words):
            found[t] = found[t] | worlds if t in found else worlds
    return found


def _run_chain(machine: Machine, history: History, first_word: int, n_words: int) -> Iterator[tuple[int, U64]]:
    everywhere = np.full(n_words, _EVERYWHERE)
    nowhere = np.zeros(1, np.int32), everywhere.reshape(1, -1)
    at: dict[int, tuple[I32, U64]] = {}
    partials: dict[Partial, U64] = {}
    for t, keys in history:
        events: dict[Signature, U64] = {}
        for each in keys:
            if each.model == kernel.CERTAIN:
                codes, masks = each.value, np.broadcast_to(everywhere, (len(each.value), n_words))
            else:
                before = at.get(each.key, nowhere) if each.model == kernel.MARKOV else nowhere
                codes, masks = draw_values(
                    each.prev, each.value, each.p, *before, each.hashes, np.uint64(each.seed), first_word
                )
                at[each.key] = codes, masks
            for code, mask in zip(codes.tolist(), masks, strict=True):
                signature = each.signatures.get(code)
                if signature is not None:
                    events[signature] = events[signature] | mask if signature in events else mask
        if events:
            partials, true = machine.advance(partials, events, everywhere)
            partials = {partial: worlds for partial, worlds in partials.items() if worlds.any()}
            if true.any():
                yield t, true
