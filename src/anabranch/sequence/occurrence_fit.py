"""Learns whether a component happens at all (OCCURS) and how often its reading is lost (MISS), from its history.

The passes in which the components around it were read have a gap. In some gaps it was read. In the others it happened
unread, or did not happen. With o for OCCURS and e for MISS, the share of gaps with a reading is o (1 - e): one number
for two unknowns. So one of them must be stated, or known to be 1 (it always happens). The lengths of the gaps give an
upper bound of MISS, and show that a component does not always happen.

The law of a gap in which it happened is that of the gaps with a reading, because readings are lost at random. The law
of a gap in which it did not happen is what remains of the gaps without a reading: expectation-maximisation weighs each
of them by the probability that it did not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import hypot, sqrt

import numpy as np
from scipy import stats

from anabranch.arrays import F64
from anabranch.sequence.history import History
from anabranch.sequence.likelihood import FittedDistribution, ranked
from anabranch.sequence.smoothing import kernels_of

#: With fewer gaps than this, an estimate is reported with a warning.
FEW_GAPS = 100
#: GapLengths with and without a reading differ if a test says so with this error.
_SIGNIFICANT = 0.01
#: A component that is read in a smaller share of the passes is not taken to happen always.
_MOST_LOST = 0.5
#: The rounds of expectation-maximisation.
_ROUNDS = 30
#: The parts of equal size into which gaps with a reading are divided for the upper bound of MISS.
_PARTS = 10


@dataclass(frozen=True, slots=True)
class Stated:
    """What is known from another source: MISS and OCCURS by component, in lower case, each with a standard error."""

    miss: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    occurs: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GapLengths:
    """The gaps around a component: between the positive components before and after it.

    Attributes
    ----------
    end : the component at the end, as written
    read, unread : the lengths of the gaps with and without a reading
    """

    end: str
    read: F64
    unread: F64


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The estimates of a component.

    Attributes
    ----------
    miss, occurs : None if the history cannot separate them
    miss_error, occurs_error : their standard errors
    most_miss : an upper bound of MISS
    end : the component at the end of the gaps
    happened, absent : the lengths of the gaps in which it happened, and in which it did not
    is_stated : whether one of them was stated
    unnoticed : the part of `miss_error` for passes in which it did not happen
    notes : warnings
    """

    miss: float | None
    occurs: float | None
    miss_error: float
    occurs_error: float
    most_miss: float
    end: str
    happened: F64
    absent: F64
    is_stated: bool
    unnoticed: float
    notes: tuple[str, ...]

    @property
    def always(self) -> bool:
        """Whether it always happens, so that a gap without a reading is the sum of two delays."""
        return self.occurs == 1.0

    def laws(self) -> Iterator[tuple[bool, F64, FittedDistribution]]:
        """The gaps in which it happened and in which it did not, if there are any, with the best distribution."""
        for happened, lengths in ((True, self.happened), (False, self.absent)):
            if len(lengths) and self.occurs is not None and not self.always:
                yield happened, lengths, ranked(lengths)[0]


def gaps_around(history: History, number: int) -> GapLengths | None:
    """The gaps around a component; None for the first and the last."""
    after = [index for index, positive in enumerate(history.positives) if positive > number]
    before = [index for index, positive in enumerate(history.positives) if positive < number]
    if not after or not before:
        return None
    end = history.labels[history.positives[after[0]]]
    if number in history.watches:
        watch = history.watches[number]
        return GapLengths(end, watch.lengths, watch.unseen)
    length = history.times[:, after[0]] - history.times[:, before[-1]]
    was_read = ~np.isnan(history.times[:, history.positives.index(number)])
    return GapLengths(end, length[was_read & (length > 0)], length[~was_read & (length > 0)])


def estimate(label: str, gaps: GapLengths, stated: Stated) -> Occurrence:
    """Estimate MISS and OCCURS of a component, and the laws of its gaps.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> unread = np.concatenate([rng.gamma(8.0, 2.0, 1000), rng.exponential(2.0, 5000)])
    >>> gaps = GapLengths("z", rng.gamma(8.0, 2.0, 4000), unread)
    >>> fit = estimate("y", gaps, Stated(miss={"y": (0.2, 0.0)}))
    >>> round(fit.occurs, 3), round(fit.occurs_error, 4), len(fit.absent)
    (0.5, 0.0061, 4983)
    >>> estimate("y", gaps, Stated()).miss is None
    True
    """
    n = len(gaps.read) + len(gaps.unread)
    share = len(gaps.read) / n if n else 0.0
    error = sqrt(share * (1 - share) / n) if n else 0.0
    miss, miss_error = stated.miss.get(label.lower(), (None, 0.0))
    occurs, occurs_error = stated.occurs.get(label.lower(), (None, 0.0))
    is_stated = miss is not None or occurs is not None
    notes = _notes(label, gaps, share, error, miss, occurs)
    if miss is not None:
        occurs, occurs_error = min(share / (1 - miss), 1.0), hypot(error, share * miss_error / (1 - miss)) / (1 - miss)
    elif occurs:
        miss, miss_error = max(1 - share / occurs, 0.0), hypot(error, share * occurs_error / occurs) / occurs
    elif not is_stated and not _differ(gaps):
        # Gaps without a reading are sums of two delays, but the share of losses is not claimed if it is implausible.
        occurs = 1.0
        if share >= 1 - _MOST_LOST:
            miss, miss_error = 1 - share, hypot(error, unnoticed(gaps))
    absent = _absent(gaps, miss, occurs) if miss is not None and occurs is not None and occurs < 1 else np.empty(0)
    return Occurrence(
        miss, occurs, miss_error, occurs_error, most_miss(gaps), gaps.end, gaps.read, absent, is_stated,
        0.0 if is_stated else unnoticed(gaps), notes,
    )  # fmt: skip


def _notes(
    label: str, gaps: GapLengths, share: float, error: float, miss: float | None, occurs: float | None
) -> tuple[str, ...]:
    """Warnings about what the history cannot tell."""
    notes = []
    n = len(gaps.read) + len(gaps.unread)
    if n < FEW_GAPS:
        notes.append(f"{label}: only {n} passes have a reading before and after it; the estimates are rough")
    if miss is None and occurs is None and len(gaps.read):
        if _differ(gaps) or share < 1 - _MOST_LOST:
            reason = "and the other gaps differ" if _differ(gaps) else "which is less than half"
            notes.append(
                f"{label} was read in {share:.1%} of the passes, {reason}: it may not always happen. "
                f"MISS and OCCURS cannot be separated; MISS is at most {most_miss(gaps):.2f}. "
                f"State one of them: --miss {label}=... (from known losses, or a second reader) or --occurs {label}=..."
            )
        elif share < 1:
            notes.append(
                f"{label}: MISS supposes that {label} always happens (OCCURS 1), which the gaps do not contradict; "
                f"if it does not, state --miss {label}=... or --occurs {label}=..."
            )
    if miss is not None and share > 1 - miss + 3 * error:
        notes.append(
            f"{label} was read in {share:.1%} of the passes, more than MISS {miss:g} allows; state a lower one"
        )
    if miss is None and occurs is not None and share > occurs + 3 * error:
        notes.append(f"{label} was read in {share:.1%} of the passes, more than OCCURS {occurs:g}; state a higher one")
    return tuple(notes)


def _differ(gaps: GapLengths) -> bool:
    """Whether gaps without a reading have another law than those with one (Kolmogorov-Smirnov test)."""
    if not len(gaps.read) or not len(gaps.unread):
        return False
    return bool(stats.ks_2samp(gaps.read, gaps.unread, method="asymp").pvalue < _SIGNIFICANT)


def unnoticed(gaps: GapLengths) -> float:
    """The standard error of MISS that comes from passes in which a component did not happen, without being noticed.

    `_differ` notices a part of the gaps without a reading that have another law if it is larger than the critical
    value of its test. The true part may be anything up to that: half of it is taken as the standard error.
    """
    n_read, n_unread = max(len(gaps.read), 1), max(len(gaps.unread), 1)
    critical = stats.kstwobign.isf(_SIGNIFICANT) * sqrt(1 / n_read + 1 / n_unread)
    return float(0.5 * min(critical, 1.0) * len(gaps.unread) / max(len(gaps.read) + len(gaps.unread), 1))


def most_miss(gaps: GapLengths) -> float:
    """An upper bound of MISS: no length of a gap may have more unread events than gaps without a reading."""
    if not len(gaps.read):
        return 1.0
    edges = np.quantile(gaps.read, np.linspace(0.0, 1.0, _PARTS + 1)[1:-1])
    read, unread = (np.bincount(np.searchsorted(edges, part), minlength=_PARTS) for part in (gaps.read, gaps.unread))
    # Two standard errors more, because the smallest of several ratios is likely to be too small.
    ratios = (unread + 2 * np.sqrt(unread + 1)) / np.maximum(read, 1)
    lost = float(ratios[read > 0].min())
    return min(lost / (1 + lost), len(gaps.unread) / max(len(gaps.unread) + len(gaps.read), 1))


def _absent(gaps: GapLengths, miss: float, occurs: float) -> F64:
    """Of the gaps without a reading, as many as the component did not happen in, with the law of those.

    The gaps are weighed by the probability that it did not happen. Every time the weights of the ascending gaps have
    added up to 1, a gap is taken.
    """
    unread = np.sort(gaps.unread)
    lost = occurs * miss
    if lost == 0.0 or not len(gaps.read) or not len(unread):
        return unread
    happened = lost * kernels_of(gaps.read).density(unread)
    weights = np.full(len(unread), (1 - occurs) / (1 - occurs + lost))
    absent = unread
    for _ in range(_ROUNDS):
        absent = _thinned(unread, weights)
        if not len(absent):
            return absent
        likelihood = (1 - occurs) * kernels_of(absent).density(unread)
        weights = likelihood / (likelihood + happened)
    return absent


def _thinned(ascending: F64, weights: F64) -> F64:
    """Take a number whenever the sum of the weights reaches another half-integer."""
    reached = np.floor(np.cumsum(weights) + 0.5)
    return ascending[np.diff(reached, prepend=0.0) > 0]
