"""Learns the distributions of the lengths of segments, and of the gaps between them, from recorded events.

If both ends of a segment or gap are recorded, its length is known. If a single event is lost between two recorded ones,
only the sum of two lengths is known. If the first or the last event of an entity is lost, only limits of a length are
known. Such lengths are *censored*. Expectation-maximisation weighs all times of each lost event by the distributions of
the lengths before and after it, as RELATE does. Runs of several lost events say little, and are not used.

In each round, the mean of a class is the average of its known and expected lengths, and the k of ERLANG is the one with
the highest expected likelihood. All k have the same number of parameters, so the likelihood alone decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from anabranch.arrays import F64, I64, Bools
from anabranch.columns.times import TimeKind, restore_doubles
from anabranch.relate.windows import Windows

CLAUSES = ("DURATION", "GAP")

#: The largest k that is tried by default: the time of a query grows with it.
MOST_K = 10

#: With fewer recorded lengths only the mean is learned, because any two numbers are close to some mean.
FEWEST_FOR_K = 5

#: The recorded lengths without which a class has no distribution of its own.
FEWEST = 2

#: The most rounds, and the relative change of all means at which they end.
MOST_ROUNDS, SMALLEST_CHANGE = 50, 1e-4

#: The most lost events that are used; if there are more, evenly spaced ones are.
MOST_LOST = 20_000

#: Rounding of times makes lengths equal to 0; they count as this share of the mean.
_SHORTEST = 1e-3

#: Where a lost event is tried, as shares of its window. Most points are near the ends, because a length may be short.
_LOGITS = np.linspace(-16.0, 16.0, 161)
_SHARES = special.expit(_LOGITS)
_LOG_WEIGHTS = special.log_expit(_LOGITS) + special.log_expit(-_LOGITS)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Recorded lengths, and lost events between recorded ones.

    A *state* is a segment of some class (its number), or the gap after it (its number plus that of all classes). The
    last class of each is for segments whose class is unknown.

    Attributes
    ----------
    state, length : of each recorded length
    low, high : the window of each lost event
    before, after : the recorded events next to it; the event itself has neither if it is the first or the last
    state_before, state_after : the states that it ends and begins; -1 before the first and after the last event
    """

    state: I64
    length: F64
    low: F64
    high: F64
    before: F64
    after: F64
    state_before: I64
    state_after: I64

    def merged(self, n_classes: int) -> Lengths:
        """The same with one class."""
        states = (np.where(s < 0, -1, s // n_classes) for s in (self.state, self.state_before, self.state_after))
        state, before, after = states
        return Lengths(state, self.length, self.low, self.high, self.before, self.after, before, after)


@dataclass(frozen=True, slots=True)
class SegmentFit:
    """The distribution of one class of segments (`clause` DURATION) or gaps (GAP); `name` is '' for all classes.

    `log_likelihood` is that of the recorded lengths; `n_censored` is the number of lost events that limit others.
    """

    clause: str
    name: str
    k: int
    mean: float
    log_likelihood: float
    recorded: F64
    n_censored: int

    @property
    def law(self) -> str:
        """The distribution in the language."""
        return "EXPONENTIAL" if self.k == 1 else "ERLANG"

    def density(self, length: F64) -> F64:
        """The density at a length."""
        return np.exp(_log_density(self.k, self.mean, np.log(length), length))


def lengths_of(windows: Windows, kind: TimeKind, classes: I64, n_classes: int) -> Lengths:
    """The lengths and the lost events of entities.

    Parameters
    ----------
    windows : the entities
    kind : of their times; lengths are in seconds for timestamps
    classes : the class of the segment that each event opens or closes; -1 if it is unknown
    n_classes : the number of classes
    """
    low, high = (
        restore_doubles(ends) if kind is TimeKind.DOUBLE else ends / kind.per_unit for ends in (windows.lo, windows.hi)
    )
    lost, n = windows.lo < windows.hi, len(low)
    first, last = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    first[windows.events[:-1][windows.lengths > 0]] = last[windows.events[1:][windows.lengths > 0] - 1] = True
    position = np.arange(n) - np.repeat(windows.events[:-1], windows.lengths)
    # The state that each event begins, and the one that it ends.
    begun = np.where(classes < 0, n_classes, classes) + (n_classes + 1) * (position % 2)
    state_after = np.where(last, -1, begun)
    state_before = np.where(first, -1, np.roll(begun, 1))
    known = np.flatnonzero(~last & ~lost & ~np.roll(lost, -1))
    alone = lost & (first | ~np.roll(lost, 1)) & (last | ~np.roll(lost, -1)) & ~(first & last)
    chosen = np.flatnonzero(alone)
    chosen = chosen[:: 1 + len(chosen) // MOST_LOST]
    return Lengths(
        begun[known], low[(known + 1) % n] - low[known], low[chosen], high[chosen],
        np.roll(low, 1)[chosen], np.roll(low, -1)[chosen], state_before[chosen], state_after[chosen],
    )  # fmt: skip


def fit_durations(lengths: Lengths, names: Sequence[str], most_k: int = MOST_K) -> list[SegmentFit]:
    """Fit the distributions of segments and of gaps: of all of them, then of each class with enough recorded lengths.

    Examples
    --------
    >>> recorded, none, nothing = np.array([3.0, 4.0, 5.0]), np.zeros(0), np.zeros(0, np.int64)
    >>> lengths = Lengths(np.zeros(3, np.int64), recorded, none, none, none, none, nothing, nothing)
    >>> [(fit.clause, fit.name, fit.k, fit.mean) for fit in fit_durations(lengths, ["visit"])]
    [('DURATION', '', 1, 4.0), ('DURATION', 'visit', 1, 4.0)]
    """
    n_classes = len(names) + 1
    overall = lengths.merged(n_classes)
    fits = _fitted(overall, [(clause, "") for clause in CLAUSES], [None, None], most_k)
    if not names:
        return [fit for fit in fits if fit is not None]
    states = [(clause, name) for clause in CLAUSES for name in (*names, None)]
    defaults = [fits[CLAUSES.index(clause)] for clause, _ in states]
    by_class = _fitted(lengths, states, defaults, most_k)
    return [
        fit
        for clause, default in zip(CLAUSES, fits, strict=True)
        for fit in (default, *(fit for fit in by_class if fit is not None and fit.clause == clause))
        if fit is not None
    ]


def _fitted(
    lengths: Lengths,
    states: Sequence[tuple[str, str | None]],
    defaults: Sequence[SegmentFit | None],
    most_k: int,
) -> list[SegmentFit | None]:
    """The distribution of each state, None if it has too few recorded lengths; it then is as its default."""
    n = len(states)
    counts = np.bincount(lengths.state, minlength=n)
    own = (counts >= FEWEST) & np.array([name is not None for _, name in states])
    sums = np.bincount(lengths.state, lengths.length, n)
    typical = np.array([sums[s] / counts[s] if own[s] else getattr(defaults[s], "mean", 0.0) for s in range(n)])
    shortest = np.maximum(_SHORTEST * typical, 1e-300)
    exact = np.maximum(lengths.length, shortest[lengths.state])
    # Of the known and the expected lengths of each state: their number, sum, and sum of logarithms.
    known = np.stack([counts, np.bincount(lengths.state, exact, n), np.bincount(lengths.state, np.log(exact), n)])
    k = np.array([1 if default is None else default.k for default in defaults])
    mean = typical.copy()
    for _ in range(MOST_ROUNDS):
        k[own], new = _maximised((known + _expected(lengths, k, mean, shortest))[:, own], counts[own], most_k)
        change = np.max(np.abs(new / mean[own] - 1), initial=0.0)
        mean[own] = new
        if change < SMALLEST_CHANGE or not len(lengths.low):
            break
    fits: list[SegmentFit | None] = []
    for s, (clause, name) in enumerate(states):
        recorded, is_exact = lengths.length[lengths.state == s], exact[lengths.state == s]
        censored = int(((lengths.state_before == s) | (lengths.state_after == s)).sum())
        likelihood = float(_log_density(k[s], mean[s], np.log(is_exact), is_exact).sum()) if own[s] else 0.0
        fit = SegmentFit(clause, name or "", int(k[s]), float(mean[s]), likelihood, recorded, censored)
        fits.append(fit if own[s] else None)
    return fits


def _expected(lengths: Lengths, k: I64, mean: F64, shortest: F64) -> F64:
    """The expected number, sum, and sum of logarithms of the lengths next to lost events, for each state."""
    times = lengths.low[:, None] + (lengths.high - lengths.low)[:, None] * _SHARES
    sides = [
        (lengths.state_before, times - lengths.before[:, None]),
        (lengths.state_after, lengths.after[:, None] - times),
    ]
    log_posterior, logs = np.tile(_LOG_WEIGHTS, (len(times), 1)), []
    for state, side in sides:
        side_logs = np.log(np.maximum(side, shortest[state][:, None]))
        has_law = (state >= 0) & (mean[state] > 0)
        log_posterior[has_law] += _log_density(
            k[state[has_law], None], mean[state[has_law], None], side_logs[has_law], side[has_law]
        )
        logs.append(side_logs)
    posterior = np.exp(log_posterior - log_posterior.max(axis=1, initial=-np.inf, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    totals = np.zeros((3, len(k)))
    for (state, side), side_logs in zip(sides, logs, strict=True):
        known: Bools = state >= 0
        for row, values in enumerate((np.ones_like(side), side, side_logs)):
            totals[row] += np.bincount(state[known], (posterior * values).sum(axis=1)[known], len(k))
    return totals


def _maximised(totals: F64, recorded: I64, most_k: int) -> tuple[I64, F64]:
    """The k and the mean of each state with the highest expected likelihood; `totals` as in `_expected`."""
    number, total, logs = totals
    mean = total / number
    ks = np.arange(1, most_k + 1)
    likelihood = ks * np.log(ks / mean[:, None]) + (ks - 1) * (logs / number)[:, None] - ks - special.gammaln(ks)
    likelihood[recorded < FEWEST_FOR_K, 1:] = -np.inf
    return ks[likelihood.argmax(axis=1)], mean


def _log_density(k: int | I64, mean: float | F64, log_length: F64, length: F64) -> F64:
    density: F64 = k * np.log(k / mean) + (k - 1) * log_length - k * length / mean - special.gammaln(k)
    return density
