"""A buffer of fixed size: which predictions those to come are compared with.

Predictions arrive one by one. Each ends the one before it of its key, takes a place in the buffer of its stream, and is
compared with what is there. Where the buffer is full one is discarded, and a neighbour of its key takes over the time
in which it applied: that is a new *version* of the neighbour, while what was found with the old one stands.

The *contribution* of a prediction is how wrong its key would be predicted without it: the smaller of the two integrals
of the absolute difference to its neighbours' predictions, over the time in which it applies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import assign, compiled
from anabranch.splitmix import mix

#: What is discarded where a buffer is full.
LEAST_CONTRIBUTION, OLDEST, RANDOM, NEWEST = range(4)


class Versions(NamedTuple):
    """Versions of predictions, the first so many of them in use; times are from a common beginning.

    Attributes
    ----------
    stream, who : number of the stream, and of the key among all keys of all streams
    time : when the prediction was made
    begin, end : from when to when it applies, counted from its time
    code : the time as it was given, which is the same in every step
    values, rates, scale : (n, columns); what a difference is divided by, so that columns can be added up
    held : whether it is in the buffer
    contribution : how much would be lost without it
    source : which of the given predictions it is a version of
    """

    stream: I64
    who: I64
    code: I64
    time: F64
    begin: F64
    end: F64
    values: F64
    rates: F64
    scale: F64
    held: Bools
    contribution: F64
    source: I64


class Rules(NamedTuple):
    """How large the buffer of a stream is, what is discarded, the periods of the streams, and the window.

    `width` is how long before the newest time a prediction may end and still be compared.
    """

    size: int
    policy: int
    periods: F64
    within: float
    width: float


@compiled
def arrive(versions: Versions, known: int, n: int, rules: Rules, newest: F64) -> tuple[I64, int]:
    """Let the versions from `known` to `n` arrive, in order of time; there is room for as many again.

    `newest` is the newest time of each stream, and is kept up: time has come as far as the slowest of them.

    Returns
    -------
    pairs (k, 2) of an arrived prediction and one that it is to be compared with; and how many versions there are now
    """
    pairs, count = np.empty((1024, 2), np.int64), 0
    for k in range(known):
        if versions.held[k]:
            versions.contribution[k] = _contribution(versions, n, k)
    arrived = n
    for p in range(known, arrived):
        newest[versions.stream[p]] = max(newest[versions.stream[p]], versions.time[p])
        _purge(versions, n, newest.min() - rules.width)
        _cut_others(versions, n, p, rules)
        full = _count(versions, n, versions.stream[p]) >= rules.size
        versions.held[p] = True
        _refresh_around(versions, n, p)
        if full and rules.policy == NEWEST:
            versions.held[p] = False
            _refresh_around(versions, n, p)
        elif full:
            n = _discard(versions, n, _victim(versions, n, p, rules.policy), rules)
        for v in range(n):
            if v != p and versions.held[v] and _is_near(versions, p, v, rules.within):
                if count == len(pairs):
                    larger = np.empty((2 * count, 2), np.int64)
                    assign(larger, pairs)
                    pairs = larger
                pairs[count, 0], pairs[count, 1] = p, v
                count += 1
    return pairs[:count], n


@compiled
def _is_near(versions: Versions, p: int, v: int, within: float) -> bool:
    """Whether two versions apply at instants that can be compared."""
    after = versions.time[v] + versions.begin[v] - (versions.time[p] + versions.end[p])
    before = versions.time[p] + versions.begin[p] - (versions.time[v] + versions.end[v])
    return after <= within and before <= within


@compiled
def _count(versions: Versions, n: int, stream: int) -> int:
    count = 0
    for k in range(n):
        if versions.held[k] and versions.stream[k] == stream:
            count += 1
    return count


@compiled
def _purge(versions: Versions, n: int, limit: float) -> None:
    """Let go of what ended too early to be compared with anything that comes."""
    for k in range(n):
        if versions.held[k] and versions.time[k] + versions.end[k] < limit:
            versions.held[k] = False
            _refresh_around(versions, n, k)


@compiled
def _cut_others(versions: Versions, n: int, p: int, rules: Rules) -> None:
    """A prediction applies until the next of its key, and ends the one before, whatever that took over."""
    for k in range(n):
        if k != p and versions.who[k] == versions.who[p] and versions.time[k] > versions.time[p]:
            versions.end[p] = min(versions.end[p], versions.time[k] - versions.time[p])
    until = versions.time[p] + versions.end[p]
    for k in range(n):
        if k == p or versions.who[k] != versions.who[p]:
            continue
        if versions.time[k] < versions.time[p]:
            versions.end[k] = min(versions.end[k], max(versions.begin[k], versions.time[p] - versions.time[k]))
        elif versions.time[k] > versions.time[p]:
            versions.begin[k] = min(0.0, max(versions.begin[k], until - versions.time[k]))


# ---------------------------------------------------------------- contributions


@compiled
def _neighbours(versions: Versions, n: int, k: int) -> tuple[int, int]:
    """The predictions in the buffer before and after one, of its key; -1 where there is none."""
    before, after = -1, -1
    for j in range(n):
        if j == k or not versions.held[j] or versions.who[j] != versions.who[k]:
            continue
        if versions.time[j] < versions.time[k] and (before < 0 or versions.time[j] > versions.time[before]):
            before = j
        if versions.time[j] > versions.time[k] and (after < 0 or versions.time[j] < versions.time[after]):
            after = j
    return before, after


@compiled
def _contribution(versions: Versions, n: int, k: int) -> float:
    """The smaller error of the neighbours in its place; infinite for the last of its key."""
    before, after = _neighbours(versions, n, k)
    if after < 0:
        return np.inf
    error = _error_without(versions, k, after)
    return error if before < 0 else min(error, _error_without(versions, k, before))


@compiled
def _error_without(versions: Versions, k: int, other: int) -> float:
    """The integral of the absolute difference between two predictions over the time in which the first applies."""
    total = 0.0
    low, high = versions.begin[k], versions.end[k]
    for column in range(versions.values.shape[1]):
        slope = versions.rates[k, column] - versions.rates[other, column]
        shift = versions.rates[other, column] * (versions.time[k] - versions.time[other])
        at = versions.values[k, column] - versions.values[other, column] - shift
        first, last = at + slope * low, at + slope * high
        if first * last >= 0.0:
            error = 0.5 * abs(first + last) * (high - low)
        else:  # two triangles, on both sides of where the predictions cross
            error = 0.5 * (first * first + last * last) / abs(slope)
        total += error / versions.scale[k, column]
    return total


@compiled
def _refresh_around(versions: Versions, n: int, k: int) -> None:
    """Work out anew what depends on a prediction that came or went: its own contribution, and its neighbours'."""
    if versions.held[k]:
        versions.contribution[k] = _contribution(versions, n, k)
    before, after = _neighbours(versions, n, k)
    if before >= 0:
        versions.contribution[before] = _contribution(versions, n, before)
    if after >= 0:
        versions.contribution[after] = _contribution(versions, n, after)


# ---------------------------------------------------------------- discarding


@compiled
def _victim(versions: Versions, n: int, p: int, policy: int) -> int:
    """Which prediction of the stream of `p` goes."""
    best = -1
    for k in range(n):
        if (
            not versions.held[k]
            or versions.stream[k] != versions.stream[p]
            or (policy != LEAST_CONTRIBUTION and k == p)
        ):
            continue
        if best < 0 or _goes_before(versions, k, best, p, policy):
            best = k
    return best


@compiled
def _goes_before(versions: Versions, k: int, other: int, p: int, policy: int) -> bool:
    """Whether one prediction is discarded rather than another, where `p` has come; alike ones are drawn by lot."""
    if policy == OLDEST and versions.code[k] != versions.code[other]:
        return versions.code[k] < versions.code[other]
    if policy == LEAST_CONTRIBUTION and versions.contribution[k] != versions.contribution[other]:
        return versions.contribution[k] < versions.contribution[other]
    if versions.contribution[k] < np.inf and policy == LEAST_CONTRIBUTION and versions.code[k] != versions.code[other]:
        return versions.code[k] < versions.code[other]
    return bool(_lot(versions, k, p) < _lot(versions, other, p))


@compiled
def _lot(versions: Versions, k: int, p: int) -> np.uint64:
    """A random number of two predictions, whatever came before them."""
    lot = mix(np.uint64(versions.code[k])) ^ np.uint64(versions.who[k])
    return mix(mix(lot) ^ mix(np.uint64(versions.code[p]) ^ mix(np.uint64(versions.who[p]))))


@compiled
def _discard(versions: Versions, n: int, victim: int, rules: Rules) -> int:
    """Take a prediction out of the buffer, and let a neighbour take over; gives how many versions there are then."""
    before, after = _neighbours(versions, n, victim)
    versions.held[victim] = False
    heir = before if before >= 0 else after
    if before >= 0 and after >= 0:
        if _error_without(versions, victim, after) < _error_without(versions, victim, before):
            heir = after
    if heir < 0:
        return n
    _copy(versions, heir, n)
    if heir == before:
        until = versions.time[victim] + versions.end[victim] - versions.time[heir]
        versions.end[n] = max(versions.end[n], min(until, rules.periods[versions.stream[heir]]))
    else:
        versions.begin[n] = min(versions.begin[n], versions.time[victim] + versions.begin[victim] - versions.time[heir])
    versions.held[heir], versions.held[n] = False, True
    _refresh_around(versions, n + 1, n)
    return n + 1


@compiled
def _copy(versions: Versions, k: int, to: int) -> None:
    """Make a new version of a prediction."""
    versions.stream[to], versions.who[to], versions.source[to] = versions.stream[k], versions.who[k], versions.source[k]
    versions.code[to], versions.time[to] = versions.code[k], versions.time[k]
    versions.begin[to], versions.end[to] = versions.begin[k], versions.end[k]
    for column in range(versions.values.shape[1]):
        versions.values[to, column] = versions.values[k, column]
        versions.rates[to, column] = versions.rates[k, column]
        versions.scale[to, column] = versions.scale[k, column]
