"""Learns the delays and loss probabilities of the components of a SEQUENCE from the passes of its history.

A delay is observed if two adjacent components were read. If the components between two others were missed, only the sum
of several delays is observed: expectation-maximisation weighs the ways to divide it. The integral over all divisions is
a sum over fixed points, so no round makes the history less likely.

The loss probability of a positive component is the share of misses in the passes that have a later reading; how far the
other passes went is unknown. A negative component that was not read may have been missed, or may not have had time to
happen: the distribution of its delay gives the probability of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np
from scipy import optimize, special
from scipy.stats import qmc

from anabranch.arrays import F64
from anabranch.sequence.densities import Parameters, log_density
from anabranch.sequence.distributions import distribution_of
from anabranch.sequence.history import History, Watch
from anabranch.sequence.likelihood import FittedDistribution, best_first, candidates, likeliest, ranked
from anabranch.sequence.occurrence_fit import Occurrence, Stated, estimate, gaps_around
from anabranch.sequence.query import BoundDelay

#: The most rounds of expectation-maximisation, and the relative gain at which they end.
MOST_ROUNDS, SMALLEST_GAIN = 200, 1e-6

#: Loss probabilities outside of this range are reported with a warning.
_PLAUSIBLE = (0.001, 0.9)

NOTHING_STATED = Stated()

#: The share of gaps that are not the sum of their delays. It makes every gap possible under every distribution.
OUTLIERS = 1e-6

#: The most points of all gaps of a kind. If there are too many gaps, gaps of similar length are merged.
_POINTS_PER_KIND = 1 << 15


@dataclass(frozen=True, slots=True)
class ComponentFit:
    """The fit of a component.

    Attributes
    ----------
    label : str
    delays : array
        The observed delays.
    opportunities : float
        The number of passes in which it happened and could have been read; the expected number if it is negative.
    miss : float or None
        The share of them in which it was not read; None if that is unknown.
    distributions : tuple of FittedDistribution
        The fitted distributions of its delay, the best first (see `criterion`).
    miss_error : float or None
        The standard error of `miss`.
    occurrence : Occurrence or None
        Whether it happens at all; None for the first and the last component, and for a negative one if nothing is
        stated.
    notes : tuple of str
        Warnings.
    """

    label: str
    delays: F64
    opportunities: float
    miss: float | None
    distributions: tuple[FittedDistribution, ...]
    miss_error: float | None = None
    occurrence: Occurrence | None = None
    notes: tuple[str, ...] = ()


def fit_delays(history: History, stated: Stated = NOTHING_STATED) -> list[ComponentFit]:
    """Fit the delays, loss probabilities and occurrences of all components, in the order of the sequence.

    Examples
    --------
    >>> times = np.array([[0.0, 2.0, 5.0], [1.0, np.nan, 7.0], [2.0, 3.0, 9.0], [np.nan, 5.0, 8.0]])
    >>> fits = fit_delays(History(("x", "y", "z"), (0, 1, 2), times, {}))
    >>> [(fit.label, fit.delays.tolist(), fit.miss) for fit in fits]
    [('x', [], 0.25), ('y', [2.0, 1.0], 0.25), ('z', [3.0, 6.0, 3.0], None)]
    """
    occurrences = _occurrences(history, stated)
    distributions = _positive_distributions(history, _doubtful(history, occurrences))
    fits = {
        number: _positive(history, index, distributions.get(index, ()), occurrences.get(number))
        for index, number in enumerate(history.positives)
    } | {
        number: _negative(history.labels[number], watch, occurrences.get(number))
        for number, watch in history.watches.items()
    }
    unknown = (np.empty(0), 0.0, None, ())
    return [_checked(fits.get(number, ComponentFit(label, *unknown))) for number, label in enumerate(history.labels)]


def _occurrences(history: History, stated: Stated) -> dict[int, Occurrence]:
    """The occurrences of the components between the first and the last; of negatives, only if something is stated."""
    occurrences = {}
    for number, label in enumerate(history.labels):
        gaps = gaps_around(history, number)
        is_stated = label.lower() in stated.miss or label.lower() in stated.occurs
        if gaps is not None and (number in history.positives or is_stated):
            occurrences[number] = estimate(label, gaps, stated)
    return occurrences


def _doubtful(history: History, occurrences: Mapping[int, Occurrence]) -> frozenset[int]:
    """The indices of the positive components that may not have happened: gaps without them are no sums of delays."""
    return frozenset(
        index
        for index, number in enumerate(history.positives)
        if number in occurrences and not occurrences[number].always
    )


def _checked(fit: ComponentFit) -> ComponentFit:
    """The fit with warnings about estimates that are not plausible."""
    notes = list(fit.notes if fit.occurrence is None else (*fit.notes, *fit.occurrence.notes))
    if fit.miss is not None and fit.opportunities and not _PLAUSIBLE[0] <= fit.miss <= _PLAUSIBLE[1]:
        is_stated = fit.miss_error == 0.0
        if not is_stated and fit.miss > 0.0:
            notes.append(f"{fit.label}: MISS {fit.miss:.2g} is hardly plausible; state it with --miss {fit.label}=...")
    best = fit.distributions[:1]
    if any(law.law == "NORMAL" and law.parameters[0] < 0 for law in best):
        notes.append(f"{fit.label}: the best law is a NORMAL with a negative mean; EMPIRICAL may fit the delays better")
    return replace(fit, notes=tuple(notes))


# ---------------------------------------------------------------- positive components


# A positive component is identified by its index among the positive components.


def _positive(
    history: History, index: int, distributions: tuple[FittedDistribution, ...], occurrence: Occurrence | None
) -> ComponentFit:
    read = ~np.isnan(history.times)
    passes = read[:, index + 1 :].any(axis=1)
    opportunities = int(passes.sum())
    missed = int((passes & ~read[:, index]).sum())
    label = history.labels[history.positives[index]]
    delays = _observed(history, index)
    if occurrence is not None and (occurrence.is_stated or not occurrence.always):
        n = len(occurrence.happened) / (1 - occurrence.miss) if occurrence.miss not in (None, 1.0) else 0.0
        return ComponentFit(label, delays, n, occurrence.miss, distributions, occurrence.miss_error, occurrence)
    is_unknown = not opportunities or (occurrence is not None and occurrence.miss is None)
    miss = None if is_unknown else missed / opportunities
    unnoticed = 0.0 if occurrence is None else occurrence.unnoticed
    error = None if miss is None else hypot(sqrt(miss * (1 - miss) / opportunities), unnoticed)
    return ComponentFit(label, delays, opportunities, miss, distributions, error, occurrence)


def _observed(history: History, index: int) -> F64:
    """The observed delays of a component.

    The delay of the first component starts with the window, which ends with the last component: a missing first
    component is scored in the same way.
    """
    if index > 0:
        delays = history.times[:, index] - history.times[:, index - 1]
    elif history.within is None or history.ending_open:
        return np.empty(0)
    else:
        delays = history.within - (history.times[:, -1] - history.times[:, 0])
    return delays[delays > 0]


def _positive_distributions(
    history: History, doubtful: frozenset[int]
) -> dict[int, tuple[FittedDistribution, ...]]:  # fmt: skip
    """The fitted distributions of the delay of each positive component, the best first.

    Gaps without a component of `doubtful` are not used.
    """
    observed = {index: _observed(history, index) for index in range(len(history.positives))}
    kinds = [kind for kind in _kinds(len(observed)) if doubtful.isdisjoint(range(kind[0] + 1, kind[1]))]
    sums = {kind: _sums(history.times, *kind) for kind in kinds}
    sums = {kind: lengths for kind, lengths in sums.items() if len(lengths)}
    means = {index: _typical_delay(index, delays, sums) for index, delays in observed.items()}
    known = {index: mean for index, mean in means.items() if mean is not None}
    ranked = {index: _ranked_by_observed(observed[index], mean) for index, mean in known.items()}
    gaps = [points_of(kind, lengths, observed, known) for kind, lengths in sums.items()]
    return _ranked_by_all(observed, gaps, ranked) if gaps else ranked


def _kinds(n: int) -> list[tuple[int, int]]:
    """The kinds of gaps with missed components: the components read before and after."""
    return [(before, after) for before in range(n) for after in range(before + 2, n)]


def _sums(times: F64, before: int, after: int) -> F64:
    """The lengths of the gaps between two components in which all components between them were missed."""
    all_missed = np.isnan(times[:, before + 1 : after]).all(axis=1)
    lengths = times[all_missed, after] - times[all_missed, before]
    return lengths[~np.isnan(lengths)]


def _typical_delay(index: int, observed: F64, sums: Mapping[tuple[int, int], F64]) -> float | None:
    """The mean observed delay, else the mean of equal shares of the sums; None if there are none."""
    shares = [lengths / (after - before) for (before, after), lengths in sums.items() if before < index <= after]
    delays = observed if len(observed) else np.concatenate([np.empty(0), *shares])
    return float(delays.mean()) if len(delays) else None


def _ranked_by_observed(observed: F64, mean: float) -> tuple[FittedDistribution, ...]:
    """The distributions fitted to the observed delays, the best first; from sums alone, only a mean is estimated."""
    if not len(observed):
        return (FittedDistribution("EXPONENTIAL", (mean,)),)
    return ranked(observed)


# ---------------------------------------------------------------- sums of delays


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps of one kind, with points that represent the divisions of each gap into delays.

    Attributes
    ----------
    indices : tuple of int
        The components whose delays sum to the gap.
    lengths, counts : (gaps,) arrays
        The lengths, and the number of gaps of (about) each length.
    delays : (indices, gaps, points) array
        The delays at each point.
    log_weights : (gaps, points) array
        The logarithm of the weight of each point: the integral is the sum of weight times density.
    """

    indices: tuple[int, ...]
    lengths: F64
    counts: F64
    delays: F64
    log_weights: F64


def points_of(
    kind: tuple[int, int], lengths: F64, observed: Mapping[int, F64], means: Mapping[int, float]
) -> Gaps:  # fmt: skip
    """Choose the points: delays are drawn one after the other; the delay with the widest distribution is the rest."""
    indices = range(kind[0] + 1, kind[1] + 1)
    proposals = {index: _proposal(observed[index], means[index]) for index in indices}
    widest = max(indices, key=lambda index: proposals[index][0] * proposals[index][1] ** 2)
    drawn = [index for index in indices if index != widest]
    n_points = min(128 * 4 ** (len(drawn) - 1), 2048)
    lengths, counts = _merged(lengths, _POINTS_PER_KIND // n_points)
    rest = np.repeat(lengths[:, None], n_points, axis=1)
    log_weights = np.full(rest.shape, -np.log(n_points))
    delays = {}
    for index, u in zip(drawn, _spread(len(drawn), n_points), strict=True):
        delays[index], log_inverse_density = _within(rest, u, *proposals[index])
        log_weights += log_inverse_density
        rest = rest - delays[index]
    delays[widest] = rest
    return Gaps(tuple(indices), lengths, counts, np.stack([delays[index] for index in indices]), log_weights)


def _proposal(observed: F64, mean: float) -> Parameters:
    """The shape and scale of a gamma distribution from which delays are drawn; it makes every delay possible."""
    return likeliest("GAMMA", observed, np.ones(len(observed))) if len(candidates(observed)) > 1 else (1.0, mean)


def _merged(lengths: F64, most: int) -> tuple[F64, F64]:
    """At most this many lengths, and their counts: similar lengths are replaced by their mean."""
    parts = np.array_split(np.sort(lengths), min(most, len(lengths)))
    return np.array([part.mean() for part in parts]), np.array([len(part) for part in parts], np.float64)


def _spread(dimensions: int, n_points: int) -> F64:
    """(dimensions, points): points that fill the unit cube evenly, at the midpoints of equal parts in each dimension.

    A point at an end could have an infinite density, which would dominate all others.
    """
    order = qmc.Halton(dimensions, scramble=False).random(n_points).argsort(axis=0).argsort(axis=0)
    return (order.T + 0.5) / n_points


def _within(rest: F64, u: F64, shape: float, scale: float) -> tuple[F64, F64]:
    """Draw delays between 0 and `rest` from uniform numbers u; returns them and the logarithm of 1 / density.

    Half of them are quantiles of the gamma distribution, the others are spread evenly, so that no part of the range is
    left out. Both are denser towards their ends, where densities may be steep: that makes sums over the points far more
    exact.
    """
    v = (2 * u) % 1.0
    dense, log_slope = v * v * (3 - 2 * v), np.log(6 * v * (1 - v))
    probability = np.maximum(special.gammainc(shape, rest / scale), np.finfo(np.float64).tiny)
    delay = np.where(u < 0.5, scale * special.gammaincinv(shape, dense * probability), dense * rest)
    # The ends are only reached by rounding.
    delay = np.clip(delay, 1e-12 * rest, (1 - 1e-12) * rest)
    by_gamma = log_density("GAMMA", (shape, scale), delay) - np.log(probability)
    return delay, log_slope + np.log(2.0) - np.logaddexp(by_gamma, -np.log(rest))


# ---------------------------------------------------------------- expectation-maximisation


@dataclass(frozen=True, slots=True)
class Estimate:
    """The result of expectation-maximisation: a distribution per component, and the log likelihood after each round."""

    distributions: Mapping[int, FittedDistribution]
    rounds: tuple[float, ...]


def maximise(
    observed: Mapping[int, F64], gaps: Sequence[Gaps], distributions: Mapping[int, FittedDistribution]
) -> Estimate:
    """Increase the likelihood of the history, round by round, starting from these distributions.

    The laws do not change, and UNIFORM keeps its range: sums of delays do not determine it.
    """
    rounds: list[float] = []
    while True:
        shares = [_shares(gaps_of_kind, distributions) for gaps_of_kind in gaps]
        distributions, total = _with_likelihoods(
            observed, gaps, distributions, [likelihood for _, likelihood in shares]
        )
        done = bool(rounds) and total - rounds[-1] < SMALLEST_GAIN * max(1.0, abs(total))
        rounds.append(total)
        if done or len(rounds) == MOST_ROUNDS:
            return Estimate(distributions, tuple(rounds))
        distributions = {
            index: _refined(index, distribution, observed[index], gaps, shares)
            for index, distribution in distributions.items()
        }


def _with_likelihoods(
    observed: Mapping[int, F64],
    gaps: Sequence[Gaps],
    distributions: Mapping[int, FittedDistribution],
    of_gaps: Sequence[float],
) -> tuple[dict[int, FittedDistribution], float]:
    """The distributions with the log likelihood of the observations that depend on each, and the total."""
    of_observed = {
        index: _log_likelihood(distribution, observed[index]) for index, distribution in distributions.items()
    }
    updated = {}
    for index, distribution in distributions.items():
        dependent = (
            likelihood for gaps_of_kind, likelihood in zip(gaps, of_gaps, strict=True) if index in gaps_of_kind.indices
        )
        updated[index] = replace(distribution, log_likelihood=of_observed[index] + sum(dependent))
    return updated, sum(of_observed.values()) + sum(of_gaps)


def _log_likelihood(distribution: FittedDistribution, delays: F64) -> float:
    return float(log_density(distribution.law, distribution.parameters, delays).sum())


def _shares(gaps: Gaps, distributions: Mapping[int, FittedDistribution]) -> tuple[F64, float]:
    """The expectation step: the expected number of gaps per point, and the log likelihood of the gaps."""
    joint = gaps.log_weights.copy()
    for index, delays in zip(gaps.indices, gaps.delays, strict=True):
        joint += log_density(distributions[index].law, distributions[index].parameters, delays)
    highest = np.maximum(joint.max(axis=1), -1e300)
    shares = np.exp(joint - highest[:, None])
    with np.errstate(divide="ignore"):
        as_sum = highest + np.log(shares.sum(axis=1)) + np.log1p(-OUTLIERS)
    total = np.logaddexp(as_sum, np.log(OUTLIERS / gaps.lengths))
    shares *= (gaps.counts * np.exp(highest + np.log1p(-OUTLIERS) - total))[:, None]
    return shares, float(np.dot(gaps.counts, total))


def _refined(
    index: int,
    distribution: FittedDistribution,
    observed: F64,
    gaps: Sequence[Gaps],
    shares: Sequence[tuple[F64, float]],
) -> FittedDistribution:
    """The maximisation step: the likeliest parameters for the observed delays and the weighted divisions of sums."""
    delays, weights = [observed], [np.ones(len(observed))]
    for gaps_of_kind, (share, _) in zip(gaps, shares, strict=True):
        if index in gaps_of_kind.indices:
            delays.append(gaps_of_kind.delays[gaps_of_kind.indices.index(index)].ravel())
            weights.append(share.ravel())
    if len(delays) == 1 or distribution.law == "UNIFORM":
        return distribution
    parameters = likeliest(distribution.law, np.concatenate(delays), np.concatenate(weights))
    return replace(distribution, parameters=parameters)


def _ranked_by_all(
    observed: Mapping[int, F64], gaps: Sequence[Gaps], ranked: Mapping[int, tuple[FittedDistribution, ...]]
) -> dict[int, tuple[FittedDistribution, ...]]:
    """Rank the distributions of each component by all observations, with the best distributions of the others."""
    n_gaps = {
        index: sum(gaps_of_kind.counts.sum() for gaps_of_kind in gaps if index in gaps_of_kind.indices)
        for index in ranked
    }
    best = maximise(observed, gaps, {index: fitted[0] for index, fitted in ranked.items()}).distributions
    result = dict(ranked)
    for index in [index for index in ranked if n_gaps[index]]:
        trials = [maximise(observed, gaps, {**best, index: start}).distributions for start in ranked[index]]
        result[index] = best_first([trial[index] for trial in trials], len(observed[index]) + int(n_gaps[index]))
        best = next(trial for trial in trials if trial[index] == result[index][0])
    # The choices for later components have changed the best distributions of earlier ones a little.
    return {index: (best[index], *fitted[1:]) if n_gaps[index] else fitted for index, fitted in result.items()}


# ---------------------------------------------------------------- negative components


def _negative(label: str, watch: Watch, occurrence: Occurrence | None) -> ComponentFit:
    """Fit a negative component: if it was not read in the interval, it was missed or would have come later.

    With an `occurrence`, it was missed or did not happen, and its delay is that of its readings.
    """
    seen = watch.seen
    if occurrence is not None:
        n = len(seen) / (1 - occurrence.miss) if occurrence.miss not in (None, 1.0) else 0.0
        laws = ranked(seen) if len(seen) else ()
        return ComponentFit(label, seen, n, occurrence.miss, laws, occurrence.miss_error, occurrence)
    if not len(seen):
        return ComponentFit(label, seen, 0.0, None, ())
    unseen, counts = _merged(watch.unseen, 1024) if len(watch.unseen) else (np.empty(0), np.empty(0))
    fits = [_likeliest_negative(law, seen, unseen, counts) for law in candidates(seen)]
    distributions = best_first([distribution for distribution, _ in fits], len(seen) + len(watch.unseen))
    miss = next(miss for distribution, miss in fits if distribution is distributions[0])
    note = (
        f"{label}: MISS supposes that {label} always happens if there is time for it; "
        f"if it does not, state --miss {label}=... or --occurs {label}=..."
    )
    return ComponentFit(label, seen, len(seen) / (1 - miss), miss, distributions, notes=(note,))


def _likeliest_negative(law: str, seen: F64, unseen: F64, counts: F64) -> tuple[FittedDistribution, float]:
    """The likeliest distribution of this name, and the loss probability of the component."""

    def decoded(free: F64) -> tuple[Parameters, float]:
        return _bounded(law, free[:-1], start), float(special.expit(free[-1]))

    def loss(free: F64) -> float:
        parameters, miss = decoded(free)
        with np.errstate(all="ignore"):
            happened = log_density(law, parameters, seen).sum() + len(seen) * np.log1p(-miss)
            delay = distribution_of(BoundDelay(law, parameters))
            value = happened + np.dot(counts, np.log(miss * delay.below(unseen) + delay.above(unseen)))
        return float(-value) if np.isfinite(value) else np.inf

    start = likeliest(law, seen, np.ones(len(seen)))
    initial = np.append(_free(law, start), special.logit(0.1))
    options = {"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-6, "adaptive": True}
    best = optimize.minimize(loss, initial, method="Nelder-Mead", options=options)
    parameters, miss = decoded(best.x)
    return FittedDistribution(law, parameters, -float(best.fun)), miss


def _free(law: str, parameters: Parameters) -> F64:
    """Parameters mapped to unconstrained numbers; for UNIFORM only the upper end is free."""
    if law == "UNIFORM":
        return np.zeros(1)
    first = parameters[0] if law in ("LOGNORMAL", "NORMAL") else np.log(parameters[0])
    return np.array([first, *np.log(parameters[1:])])


def _bounded(law: str, free: F64, start: Parameters) -> Parameters:
    """The parameters for unconstrained numbers: the inverse of `_free`."""
    if law == "UNIFORM":
        low, high = start
        return low, low + (high - low) * float(np.exp(abs(free[0])))
    first = free[0] if law in ("LOGNORMAL", "NORMAL") else np.exp(free[0])
    return (float(first), *np.exp(free[1:]).tolist())
