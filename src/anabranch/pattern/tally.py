"""The answers of one group of carried chains (`chain.py`): at instants, in windows (PER d), or in episodes.

Chains of a group are independent. Those that are exact are combined by their probabilities, the sampled ones by their
worlds. For PER, the exact state of a chain has the count of its span, and the worlds have the sum of their chains. If
some chain of a group is sampled and may be true, all chains of the group go on in worlds, so that counts can be added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from anabranch.arrays import BEGINNING, F64, I64
from anabranch.binding.per import PerEpisode, PerWindow
from anabranch.columns.counts import summed_counts
from anabranch.columns.intervals import interval
from anabranch.columns.times import TimeKind
from anabranch.pattern.chain import Chain, Truth
from anabranch.pattern.episodes import Touching, is_above
from anabranch.pattern.history import Earlier, History, Outcomes, Past
from anabranch.pattern.joint import JointState
from anabranch.pattern.kernel.words import count_bits
from anabranch.pattern.sampling import as_worlds
from anabranch.pattern.windows import window_of
from anabranch.transport.per import Moment

#: The number of worlds of a row that is exact.
EXACT = -1


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a group at an instant or in a span.

    Attributes
    ----------
    t_from, t_to : its times; of a window, both are its number
    log_none : the logarithm of the probability that no exact chain is true
    hits : the sampled worlds in which it is true, or `EXACT`
    expected, count : the columns of PER
    """

    t_from: int
    t_to: int
    log_none: float
    hits: int = EXACT
    expected: float = 0.0
    count: int = 0

    def united(self, other: Answer) -> Answer:
        """That of other chains of the group as well; only this one is exact."""
        return replace(other, log_none=self.log_none + other.log_none)


def by_instant(histories: Mapping[int, History]) -> Iterator[tuple[int, list[tuple[int, Sequence[Outcomes]]]]]:
    """The instants of the chains of a group, in order of time, each with the chains that have rows at it."""
    rows = [(t, number, keys) for number, history in histories.items() for t, keys in history]
    for t, instant in groupby(sorted(rows, key=itemgetter(0, 1)), key=itemgetter(0)):
        yield t, [(number, keys) for _, number, keys in instant]


def probabilities(answers: Sequence[Answer], worlds: int, error: float) -> tuple[F64, F64, F64]:
    """The probability of each answer, and its interval; equal where it is exact."""
    hits = np.array([answer.hits for answer in answers], np.int64)
    log_none = np.array([answer.log_none for answer in answers], np.float64)
    is_sampled = hits != EXACT
    seen = np.where(is_sampled, hits, 0)
    shares = (seen / worlds, *interval(seen, worlds, error))
    p, lower, upper = (_probability(log_none, np.where(is_sampled, share, 0.0)) for share in shares)
    return p, lower, upper


def _probability(log_none: float | F64, share: float | F64) -> F64:
    """The probability that some chain is true, given that of no exact chain, and the share of the worlds."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(log_none + np.log1p(-np.asarray(share))))


@dataclass(slots=True)
class Instants:
    """The answers of a group at instants.

    Attributes
    ----------
    chains : the chains of the group
    now : what they were at the instant that was processed last
    """

    chains: dict[int, Chain]
    now: dict[int, Truth] = field(default_factory=dict)

    def advance(self, histories: Mapping[int, History], earlier: Earlier | None = None) -> Iterator[Answer]:
        """Process the instants of the chains of a group, given by the numbers of the chains, in order of time.

        `earlier` gives the distribution of Markov keys before these instants (`Past`).
        """
        pasts = {number: Past(earlier) for number in histories}
        for t, instant in by_instant(histories):
            yield from self._process(t, instant, pasts)

    def _process(
        self, t: int, instant: Sequence[tuple[int, Sequence[Outcomes]]], pasts: Mapping[int, Past]
    ) -> Iterator[Answer]:
        self.now = {number: self.chains[number].advance(t, keys, pasts[number]) for number, keys in instant}
        log_none, hits = self._combined()
        if log_none < 0.0 or hits != EXACT:
            yield Answer(t, t, log_none, hits)

    def complete(self, now: Moment) -> Iterator[Answer]:
        """The open span, if it is over; an instant is complete when it was processed."""
        return iter(())

    def _combined(self) -> tuple[float, int]:
        """The logarithm of the probability that no exact chain is true, and the worlds in which a sampled one is."""
        possible = [truth for truth in self.now.values() if truth.possible]
        with np.errstate(divide="ignore"):
            log_none = float(np.log1p([-min(truth.p, 1.0) for truth in possible if truth.worlds is None]).sum())
        masks = [truth.worlds for truth in possible if truth.worlds is not None]
        return log_none, int(count_bits(np.bitwise_or.reduce(masks))) if masks else EXACT


@dataclass(slots=True)
class _Spans(Instants):
    """The answers of a group in spans.

    Attributes
    ----------
    times : how often the query must be true in a span
    t_from, t_to : the open span; BEGINNING if there is none
    counts : how often it was true in each world; None if everything is exact
    """

    times: int = 1
    t_from: int = BEGINNING
    t_to: int = BEGINNING
    expected: float = 0.0
    count: int = 0
    counts: I64 | None = None

    def _count(self, t: int, fresh: bool) -> None:
        """Count the instant; it is the first of a span if `fresh`."""
        for truth in self.now.values():
            if truth.drawn is not None and truth.drawn.any():
                self._add(truth.drawn)
        if fresh:
            self.counts = None if self.counts is None else np.zeros_like(self.counts)
        for number in self.chains if fresh else self.now:
            state = self.chains[number].state
            if isinstance(state, JointState):
                state.settle(fresh)
        for truth in self.now.values():
            if truth.worlds is not None and truth.possible:
                self._add(as_worlds(truth.worlds))
        if self.counts is not None:
            for chain in self.chains.values():
                self._add(chain.draw_worlds(t))

    def _add(self, counts: I64) -> None:
        before = 0 if self.counts is None else self.counts
        self.counts = np.minimum(before + counts, self.times)

    def _reached(self) -> tuple[float, int]:
        """Whether the open span is true, in the form of `_combined`."""
        if self.counts is not None:
            return 0.0, int((self.counts >= self.times).sum())
        exact = [chain.state.counts() for chain in self.chains.values() if isinstance(chain.state, JointState)]
        if not exact:
            return 0.0, EXACT
        (p,) = summed_counts(np.stack(exact), np.zeros(len(exact), np.int64), 1)[:, -1]
        with np.errstate(divide="ignore"):
            return float(np.log1p(-min(p, 1.0))), EXACT


@dataclass(slots=True)
class Windows(_Spans):
    """The answers of a group in windows; `t_from` is the number of the open one."""

    per: PerWindow = PerWindow(1.0)
    kind: TimeKind = TimeKind.INTEGER

    def _process(
        self, t: int, instant: Sequence[tuple[int, Sequence[Outcomes]]], pasts: Mapping[int, Past]
    ) -> Iterator[Answer]:
        window = self._window(t)
        fresh = window != self.t_from
        if fresh:
            yield from self._close()
        self.now = {number: self.chains[number].advance(t, keys, pasts[number]) for number, keys in instant}
        self.t_from = self.t_to = window
        self._count(t, fresh)
        self.expected += sum(self._chance(truth) for truth in self.now.values())

    def _window(self, t: int) -> int:
        return int(window_of(np.array([t]), self.per, self.kind)[0])

    @staticmethod
    def _chance(truth: Truth) -> float:
        """The probability that a chain is true at the instant, exact or as sampled."""
        return truth.p if truth.worlds is None else float(count_bits(truth.worlds)) / (64 * len(truth.worlds))

    def complete(self, now: Moment) -> Iterator[Answer]:
        """The open window, if it is over."""
        if now.ended or (now.watermark > BEGINNING and self._window(now.watermark) > self.t_from):
            yield from self._close()

    def _close(self) -> Iterator[Answer]:
        if self.t_from > BEGINNING and self.expected > 0.0:
            yield Answer(self.t_from, self.t_to, *self._reached(), self.expected)
        self.t_from, self.expected = BEGINNING, 0.0


@dataclass(slots=True)
class Episodes(_Spans):
    """The answers of a group in episodes.

    Attributes
    ----------
    instants : the instants of all streams in this step, and the last one before it
    reached : whether the open episode is true until `t_to`
    """

    above: float = 0.0
    touching: Touching = field(default_factory=lambda: Touching(0.0, TimeKind.INTEGER))
    instants: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    reached: tuple[float, int] = (0.0, EXACT)

    def _process(
        self, t: int, instant: Sequence[tuple[int, Sequence[Outcomes]]], pasts: Mapping[int, Past]
    ) -> Iterator[Answer]:
        self.now = {number: self.chains[number].advance(t, keys, pasts[number]) for number, keys in instant}
        log_none, hits = self._combined()
        p = float(_probability(log_none, 0.0 if hits == EXACT else hits / self._n_worlds()))
        is_true = bool(is_above(np.array([p]), self.above)[0])
        fresh = is_true and not self._touches(t)
        if fresh:
            yield from self._close()
            self.t_from = t
        self._count(t, fresh)
        if is_true:
            self.t_to, self.count, self.expected = t, self.count + 1, self.expected + p
            self.reached = self._reached()

    def _n_worlds(self) -> int:
        return next(64 * len(truth.worlds) for truth in self.now.values() if truth.worlds is not None)

    def _touches(self, t: int) -> bool:
        """Whether an instant belongs to the open episode."""
        return bool(self.touching.holds(np.array([self.t_to]), np.array([t]), self.instants)[0])

    def complete(self, now: Moment) -> Iterator[Answer]:
        """The open episode, if it is over."""
        is_past = self.instants[-1] > self.t_to and now.watermark > self.touching.reach(np.array([self.t_to]))[0]
        if now.ended or is_past:
            yield from self._close()

    def _close(self) -> Iterator[Answer]:
        if self.t_to > BEGINNING:
            yield Answer(self.t_from, self.t_to, *self.reached, self.expected, self.count)
        self.t_from = self.t_to = BEGINNING
        self.count, self.expected = 0, 0.0


Tally = Instants | Windows | Episodes


def tally_of(per: PerWindow | PerEpisode | None, kind: TimeKind, chains: dict[int, Chain]) -> Tally:
    """The answers of a group, as PER asks for them."""
    if isinstance(per, PerWindow):
        return Windows(chains, times=per.at_least, per=per, kind=kind)
    if isinstance(per, PerEpisode):
        return Episodes(chains, above=per.above, touching=Touching(per.gap, kind))
    return Instants(chains)
