"""Delays and misses of the components of a SEQUENCE, learned from the passes of its history.

A delay is seen where two neighbouring components were read. Where those between two were missed, only the sum of
several delays is: expectation-maximisation weighs how it may have been divided. The integral over all divisions is a
sum over fixed points, so that no round makes the history less likely.

How often a positive component is missed is counted in the passes that were read again later: of others nobody knows how
far they went. A negative may have been missed, or have had no time to happen, and its law says how likely each is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special
from scipy.stats import qmc

from anabranch.arrays import F64
from anabranch.sequence.history import History, Watch
from anabranch.sequence.laws import law_of
from anabranch.sequence.likelihood import Parameters, candidates, criterion, likeliest, log_density
from anabranch.sequence.query import BoundDelay

#: Rounds of expectation-maximisation, and the relative gain at which they end.
MOST_ROUNDS, SMALLEST_GAIN = 200, 1e-6

#: How often a gap is something else than the sum of its delays: none is impossible, whatever the laws.
ASTRAY = 1e-6

#: Points of all gaps of a kind together; more gaps than that allows are taken together with their neighbours.
_POINTS_OF_A_KIND = 1 << 15


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law with its parameters, as the language takes them.

    `log_likelihood` is that of everything that depends on this delay, with the other delays at their best.
    """

    law: str
    parameters: Parameters
    log_likelihood: float = 0.0


@dataclass(frozen=True, slots=True)
class ComponentFit:
    """What was learned of a component.

    Attributes
    ----------
    label : str
    delays : array
        Those that were seen.
    opportunities : float
        In how many passes it happened and could have been read; expected, for a negative one.
    miss : float or None
        The share of them in which it was not; None where there is no telling.
    laws : tuple of FittedLaw
        The best first, by their likelihood less what their parameters cost.
    """

    label: str
    delays: F64
    opportunities: float
    miss: float | None
    laws: tuple[FittedLaw, ...]


def fit_delays(history: History) -> list[ComponentFit]:
    """Learn the delays and misses of all components, in their order.

    Examples
    --------
    >>> times = np.array([[0.0, 2.0, 5.0], [1.0, np.nan, 7.0], [2.0, 3.0, 9.0], [np.nan, 5.0, 8.0]])
    >>> fits = fit_delays(History(("x", "y", "z"), (0, 1, 2), times, {}))
    >>> [(each.label, each.delays.tolist(), each.miss) for each in fits]
    [('x', [], 0.25), ('y', [2.0, 1.0], 0.25), ('z', [3.0, 6.0, 3.0], None)]
    """
    laws = _positive_laws(history)
    fits = {
        number: _positive(history, place, laws.get(place, ())) for place, number in enumerate(history.positives)
    } | {number: _negative(history.labels[number], watch) for number, watch in history.watches.items()}
    unknown = (np.empty(0), 0.0, None, ())
    return [fits.get(number, ComponentFit(label, *unknown)) for number, label in enumerate(history.labels)]


# ---------------------------------------------------------------- positive components


def _positive(history: History, place: int, laws: tuple[FittedLaw, ...]) -> ComponentFit:
    read = ~np.isnan(history.times)
    passes = read[:, place + 1 :].any(axis=1)
    opportunities = int(passes.sum())
    missed = int((passes & ~read[:, place]).sum())
    label = history.labels[history.positives[place]]
    miss = missed / opportunities if opportunities else None
    return ComponentFit(label, _seen(history, place), opportunities, miss, laws)


def _seen(history: History, place: int) -> F64:
    """The delays of a component that were seen.

    That of the first begins with the window, which ends with the last component: so it is scored where it is missing.
    """
    if place > 0:
        delays = history.times[:, place] - history.times[:, place - 1]
    elif history.within is None or history.ending_open:
        return np.empty(0)
    else:
        delays = history.within - (history.times[:, -1] - history.times[:, 0])
    return delays[delays > 0]


def _positive_laws(history: History) -> dict[int, tuple[FittedLaw, ...]]:
    """The laws of the delays of each positive component, the best first."""
    seen = {place: _seen(history, place) for place in range(len(history.positives))}
    sums = {kind: _sums(history.times, *kind) for kind in _kinds(len(seen))}
    sums = {kind: lengths for kind, lengths in sums.items() if len(lengths)}
    means = {place: _typical_delay(place, delays, sums) for place, delays in seen.items()}
    known = {place: mean for place, mean in means.items() if mean is not None}
    ranked = {place: _ranked_by_seen(seen[place], mean) for place, mean in known.items()}
    gaps = [points_of(kind, lengths, seen, known) for kind, lengths in sums.items()]
    return _ranked_by_all(seen, gaps, ranked) if gaps else ranked


def _kinds(n: int) -> list[tuple[int, int]]:
    """The gaps in which something was missed, by the components read before and after."""
    return [(before, after) for before in range(n) for after in range(before + 2, n)]


def _sums(times: F64, before: int, after: int) -> F64:
    """How long the gaps between two components are in which nothing was read."""
    silent = np.isnan(times[:, before + 1 : after]).all(axis=1)
    lengths = times[silent, after] - times[silent, before]
    return lengths[~np.isnan(lengths)]


def _typical_delay(place: int, seen: F64, sums: Mapping[tuple[int, int], F64]) -> float | None:
    """The mean delay that was seen, or an even share of the sums; None where nothing is known."""
    shares = [lengths / (after - before) for (before, after), lengths in sums.items() if before < place <= after]
    told = seen if len(seen) else np.concatenate([np.empty(0), *shares])
    return float(told.mean()) if len(told) else None


def _ranked_by_seen(seen: F64, mean: float) -> tuple[FittedLaw, ...]:
    """The laws that the delays seen can have; of sums alone nobody tells more than a mean."""
    if not len(seen):
        return (FittedLaw("EXPONENTIAL", (mean,)),)
    laws = []
    for law in candidates(seen):
        parameters = likeliest(law, seen, np.ones(len(seen)))
        laws.append(FittedLaw(law, parameters, float(log_density(law, parameters, seen).sum())))
    return _best_first(laws, len(seen))


def _best_first(laws: Sequence[FittedLaw], n: int) -> tuple[FittedLaw, ...]:
    return tuple(sorted(laws, key=lambda each: -criterion(each.law, each.log_likelihood, n)))


# ---------------------------------------------------------------- sums of delays


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps of one kind, each with the ways in which it may be divided.

    Attributes
    ----------
    places : tuple of int
        The components whose delays make up the gap.
    lengths, counts : (gaps,) arrays
        How long, and how many of (about) this length.
    delays : (places, gaps, points) array
        The delays, at each point.
    log_weights : (gaps, points) array
        The logarithm of what a point stands for: the integral is the sum of weight times density.
    """

    places: tuple[int, ...]
    lengths: F64
    counts: F64
    delays: F64
    log_weights: F64


def points_of(
    kind: tuple[int, int], lengths: F64, seen: Mapping[int, F64], means: Mapping[int, float]
) -> Gaps:  # fmt: skip
    """Choose the points: one delay after the other, and the one of the widest law is what remains."""
    places = range(kind[0] + 1, kind[1] + 1)
    rough = {place: _rough_law(seen[place], means[place]) for place in places}
    widest = max(places, key=lambda place: rough[place][0] * rough[place][1] ** 2)
    drawn = [place for place in places if place != widest]
    n_points = min(128 * 4 ** (len(drawn) - 1), 2048)
    lengths, counts = _together(lengths, _POINTS_OF_A_KIND // n_points)
    room = np.repeat(lengths[:, None], n_points, axis=1)
    log_weights = np.full(room.shape, -np.log(n_points))
    delays = {}
    for place, u in zip(drawn, _spread(len(drawn), n_points), strict=True):
        delays[place], more = _within(room, u, *rough[place])
        log_weights += more
        room = room - delays[place]
    delays[widest] = room
    return Gaps(tuple(places), lengths, counts, np.stack([delays[place] for place in places]), log_weights)


def _rough_law(seen: F64, mean: float) -> Parameters:
    """A gamma law, which excludes no delay."""
    return likeliest("GAMMA", seen, np.ones(len(seen))) if len(candidates(seen)) > 1 else (1.0, mean)


def _together(lengths: F64, most: int) -> tuple[F64, F64]:
    """At most so many lengths, and how many each stands for: neighbours share their mean."""
    parts = np.array_split(np.sort(lengths), min(most, len(lengths)))
    return np.array([part.mean() for part in parts]), np.array([len(part) for part in parts], np.float64)


def _spread(dimensions: int, n_points: int) -> F64:
    """Points that fill a cube evenly, by dimension: in each they stand in the middle of equal parts.

    A point at an end would be one where some density has no bounds, and count for all others.
    """
    order = qmc.Halton(dimensions, scramble=False).random(n_points).argsort(axis=0).argsort(axis=0)
    return (order.T + 0.5) / n_points


def _within(room: F64, u: F64, shape: float, scale: float) -> tuple[F64, F64]:
    """Delays below what room there is, and the logarithm of 1 / density.

    Half of them are quantiles of the rough law, the others are spread evenly, so that no part of the room is left out.
    Both are denser towards their ends, where densities may be steep: that makes sums over the points far more exact.
    """
    v = (2 * u) % 1.0
    dense, log_slope = v * v * (3 - 2 * v), np.log(6 * v * (1 - v))
    chance = np.maximum(special.gammainc(shape, room / scale), np.finfo(np.float64).tiny)
    delay = np.where(u < 0.5, scale * special.gammaincinv(shape, dense * chance), dense * room)
    # Neither end is ever reached, but by rounding.
    delay = np.clip(delay, 1e-12 * room, (1 - 1e-12) * room)
    by_law = log_density("GAMMA", (shape, scale), delay) - np.log(chance)
    return delay, log_slope + np.log(2.0) - np.logaddexp(by_law, -np.log(room))


# ---------------------------------------------------------------- expectation-maximisation


@dataclass(frozen=True, slots=True)
class Estimate:
    """What expectation-maximisation came to: a law for each component, and the log likelihood after each round."""

    laws: Mapping[int, FittedLaw]
    rounds: tuple[float, ...]


def maximise(seen: Mapping[int, F64], gaps: Sequence[Gaps], laws: Mapping[int, FittedLaw]) -> Estimate:
    """Make history likelier, round by round, with laws of these names, from these parameters on.

    UNIFORM keeps its ends, which no sum of delays tells.
    """
    rounds: list[float] = []
    while True:
        shares = [_shares(each, laws) for each in gaps]
        laws, total = _judged(seen, gaps, laws, [likelihood for _, likelihood in shares])
        done = bool(rounds) and total - rounds[-1] < SMALLEST_GAIN * max(1.0, abs(total))
        rounds.append(total)
        if done or len(rounds) == MOST_ROUNDS:
            return Estimate(laws, tuple(rounds))
        laws = {place: _refined(place, law, seen[place], gaps, shares) for place, law in laws.items()}


def _judged(
    seen: Mapping[int, F64], gaps: Sequence[Gaps], laws: Mapping[int, FittedLaw], of_gaps: Sequence[float]
) -> tuple[dict[int, FittedLaw], float]:
    """The laws, each with the log likelihood of what depends on it; and that of everything."""
    of_seen = {place: _log_likelihood(law, seen[place]) for place, law in laws.items()}
    judged = {}
    for place, law in laws.items():
        own = (likelihood for each, likelihood in zip(gaps, of_gaps, strict=True) if place in each.places)
        judged[place] = replace(law, log_likelihood=of_seen[place] + sum(own))
    return judged, sum(of_seen.values()) + sum(of_gaps)


def _log_likelihood(law: FittedLaw, delays: F64) -> float:
    return float(log_density(law.law, law.parameters, delays).sum())


def _shares(gaps: Gaps, laws: Mapping[int, FittedLaw]) -> tuple[F64, float]:
    """How much of each gap each point explains, and the log likelihood of the gaps."""
    joint = gaps.log_weights.copy()
    for place, delays in zip(gaps.places, gaps.delays, strict=True):
        joint += log_density(laws[place].law, laws[place].parameters, delays)
    highest = np.maximum(joint.max(axis=1), -1e300)
    shares = np.exp(joint - highest[:, None])
    with np.errstate(divide="ignore"):
        by_laws = highest + np.log(shares.sum(axis=1)) + np.log1p(-ASTRAY)
    total = np.logaddexp(by_laws, np.log(ASTRAY / gaps.lengths))
    shares *= (gaps.counts * np.exp(highest + np.log1p(-ASTRAY) - total))[:, None]
    return shares, float(np.dot(gaps.counts, total))


def _refined(
    place: int, law: FittedLaw, seen: F64, gaps: Sequence[Gaps], shares: Sequence[tuple[F64, float]]
) -> FittedLaw:
    """The likeliest law of the same name for the delays that were seen and those that sums are divided into."""
    delays, weights = [seen], [np.ones(len(seen))]
    for each, (share, _) in zip(gaps, shares, strict=True):
        if place in each.places:
            delays.append(each.delays[each.places.index(place)].ravel())
            weights.append(share.ravel())
    if len(delays) == 1 or law.law == "UNIFORM":
        return law
    return replace(law, parameters=likeliest(law.law, np.concatenate(delays), np.concatenate(weights)))


def _ranked_by_all(
    seen: Mapping[int, F64], gaps: Sequence[Gaps], ranked: Mapping[int, tuple[FittedLaw, ...]]
) -> dict[int, tuple[FittedLaw, ...]]:
    """The laws of each component by all that is known, the best first; the other components are at their best."""
    within = {place: sum(each.counts.sum() for each in gaps if place in each.places) for place in ranked}
    state = maximise(seen, gaps, {place: laws[0] for place, laws in ranked.items()}).laws
    found = dict(ranked)
    for place in [place for place in ranked if within[place]]:
        trials = [maximise(seen, gaps, {**state, place: start}).laws for start in ranked[place]]
        found[place] = _best_first([trial[place] for trial in trials], len(seen[place]) + int(within[place]))
        state = next(trial for trial in trials if trial[place] == found[place][0])
    # The last choice has moved the others a little.
    return {place: (state[place], *laws[1:]) if within[place] else laws for place, laws in found.items()}


# ---------------------------------------------------------------- negative components


def _negative(label: str, watch: Watch) -> ComponentFit:
    """A negative: what was not read before the gap ended was missed, or would have come later."""
    seen = watch.seen
    if not len(seen):
        return ComponentFit(label, seen, 0.0, None, ())
    unseen, counts = _together(watch.unseen, 1024) if len(watch.unseen) else (np.empty(0), np.empty(0))
    found = [_likeliest_negative(law, seen, unseen, counts) for law in candidates(seen)]
    laws = _best_first([law for law, _ in found], len(seen) + len(watch.unseen))
    miss = next(miss for law, miss in found if law is laws[0])
    return ComponentFit(label, seen, len(seen) / (1 - miss), miss, laws)


def _likeliest_negative(law: str, seen: F64, unseen: F64, counts: F64) -> tuple[FittedLaw, float]:
    """The likeliest law of this name, and how often the component is missed."""

    def meant(free: F64) -> tuple[Parameters, float]:
        return _bounded(law, free[:-1], start), float(special.expit(free[-1]))

    def loss(free: F64) -> float:
        parameters, miss = meant(free)
        with np.errstate(all="ignore"):
            happened = log_density(law, parameters, seen).sum() + len(seen) * np.log1p(-miss)
            known = law_of(BoundDelay(law, parameters))
            value = happened + np.dot(counts, np.log(miss * known.below(unseen) + known.above(unseen)))
        return float(-value) if np.isfinite(value) else np.inf

    start = likeliest(law, seen, np.ones(len(seen)))
    begin = np.append(_free(law, start), special.logit(0.1))
    options = {"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-6, "adaptive": True}
    found = optimize.minimize(loss, begin, method="Nelder-Mead", options=options)
    parameters, miss = meant(found.x)
    return FittedLaw(law, parameters, -float(found.fun)), miss


def _free(law: str, parameters: Parameters) -> F64:
    """Numbers that may be anything for parameters that may not; of UNIFORM only the end is searched for."""
    if law == "UNIFORM":
        return np.zeros(1)
    first = parameters[0] if law in ("LOGNORMAL", "NORMAL") else np.log(parameters[0])
    return np.array([first, *np.log(parameters[1:])])


def _bounded(law: str, free: F64, start: Parameters) -> Parameters:
    """The parameters that `_free` made numbers of."""
    if law == "UNIFORM":
        low, high = start
        return low, low + (high - low) * float(np.exp(abs(free[0])))
    first = free[0] if law in ("LOGNORMAL", "NORMAL") else np.exp(free[0])
    return (float(first), *np.exp(free[1:]).tolist())
