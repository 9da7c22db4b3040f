"""A buffer of fixed size for the predictions with which later ones are compared.

Predictions arrive one by one. Each ends the previous prediction of its key, enters the buffer of its stream, and is
compared with the predictions in the buffers. If the buffer is full, one prediction is discarded, and a neighbour (the
previous or next prediction of its key) applies in its place. That is a new *version* of the neighbour; answers from the
old version stay valid.

The *contribution* of a prediction is the prediction error that would result from dropping it: the smaller of the two
integrals of the absolute difference to its neighbours' predictions, over the time in which it applies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import assign, compiled
from anabranch.splitmix import mix

#: Which prediction is discarded if a buffer is full.
LEAST_CONTRIBUTION, OLDEST, RANDOM, NEWEST = range(4)


class Versions(NamedTuple):
    """Versions of predictions; functions take the number of versions in use as `n`.

    Attributes
    ----------
    stream, key : number of the stream, and of the key among all keys of all streams
    code : the code of the time of the prediction, which is the same in every step
    time : the time of the prediction, relative to a time that is the same for all versions
    begin, end : when the version applies, relative to its time
    values, rates : (n, columns)
    scale : (n, columns) the divisor of differences, so that columns can be added up
    held : whether the version is in the buffer
    contribution : the prediction error that would result from dropping it
    source : the prediction of which it is a version
    """

    stream: I64
    key: I64
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
    """The rules of the buffers.

    Attributes
    ----------
    size : the most predictions in the buffer of a stream
    policy : which prediction is discarded
    periods : the PERIOD of each stream
    within : the window WITHIN
    width : how long before the newest time a prediction may end and still be compared
    """

    size: int
    policy: int
    periods: F64
    within: float
    width: float


@compiled
def arrive(versions: Versions, known: int, n: int, rules: Rules, newest: F64) -> tuple[I64, int]:
    """Add the versions from `known` to `n`, in the order of time; the arrays have room for as many new versions.

    `newest` is the newest time of each stream, and is updated. The current time is that of the slowest stream.

    Returns
    -------
    pairs (k, 2) of an added prediction and a version that it must be compared with; and the number of versions
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
    """Whether two versions apply at instants that are within the window."""
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
    """Remove the predictions that ended too early to be compared with a later one."""
    for k in range(n):
        if versions.held[k] and versions.time[k] + versions.end[k] < limit:
            versions.held[k] = False
            _refresh_around(versions, n, k)


@compiled
def _cut_others(versions: Versions, n: int, p: int, rules: Rules) -> None:
    """End prediction `p` at the next one of its key, and the previous one at `p`, even if that was extended."""
    for k in range(n):
        if k != p and versions.key[k] == versions.key[p] and versions.time[k] > versions.time[p]:
            versions.end[p] = min(versions.end[p], versions.time[k] - versions.time[p])
    until = versions.time[p] + versions.end[p]
    for k in range(n):
        if k == p or versions.key[k] != versions.key[p]:
            continue
        if versions.time[k] < versions.time[p]:
            versions.end[k] = min(versions.end[k], max(versions.begin[k], versions.time[p] - versions.time[k]))
        elif versions.time[k] > versions.time[p]:
            versions.begin[k] = min(0.0, max(versions.begin[k], until - versions.time[k]))


# ---------------------------------------------------------------- contributions


@compiled
def _neighbours(versions: Versions, n: int, k: int) -> tuple[int, int]:
    """The previous and the next prediction of the same key in the buffer; -1 if there is none."""
    before, after = -1, -1
    for j in range(n):
        if j == k or not versions.held[j] or versions.key[j] != versions.key[k]:
            continue
        if versions.time[j] < versions.time[k] and (before < 0 or versions.time[j] > versions.time[before]):
            before = j
        if versions.time[j] > versions.time[k] and (after < 0 or versions.time[j] < versions.time[after]):
            after = j
    return before, after


@compiled
def _contribution(versions: Versions, n: int, k: int) -> float:
    """The smaller error if a neighbour applied instead; infinite for the last prediction of a key."""
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
    """Recompute the contributions of a prediction that was added or removed, and of its neighbours."""
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
    """The prediction of the stream of `p` that is discarded."""
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
    """Whether `k` is discarded before `other` when `p` arrives; ties are broken at random."""
    if policy == OLDEST and versions.code[k] != versions.code[other]:
        return versions.code[k] < versions.code[other]
    if policy == LEAST_CONTRIBUTION and versions.contribution[k] != versions.contribution[other]:
        return versions.contribution[k] < versions.contribution[other]
    if versions.contribution[k] < np.inf and policy == LEAST_CONTRIBUTION and versions.code[k] != versions.code[other]:
        return versions.code[k] < versions.code[other]
    return bool(_random_number(versions, k, p) < _random_number(versions, other, p))


@compiled
def _random_number(versions: Versions, k: int, p: int) -> np.uint64:
    """A random number that depends only on two predictions, not on earlier ones."""
    hashed = mix(np.uint64(versions.code[k])) ^ np.uint64(versions.key[k])
    return mix(mix(hashed) ^ mix(np.uint64(versions.code[p]) ^ mix(np.uint64(versions.key[p]))))


@compiled
def _discard(versions: Versions, n: int, victim: int, rules: Rules) -> int:
    """Remove a prediction from the buffer and extend a neighbour in its place; returns the number of versions."""
    before, after = _neighbours(versions, n, victim)
    versions.held[victim] = False
    other = before if before >= 0 else after
    if before >= 0 and after >= 0:
        if _error_without(versions, victim, after) < _error_without(versions, victim, before):
            other = after
    if other < 0:
        return n
    _copy(versions, other, n)
    if other == before:
        until = versions.time[victim] + versions.end[victim] - versions.time[other]
        versions.end[n] = max(versions.end[n], min(until, rules.periods[versions.stream[other]]))
    else:
        versions.begin[n] = min(
            versions.begin[n], versions.time[victim] + versions.begin[victim] - versions.time[other]
        )
    versions.held[other], versions.held[n] = False, True
    _refresh_around(versions, n + 1, n)
    return n + 1


@compiled
def _copy(versions: Versions, k: int, to: int) -> None:
    """Copy version `k` to index `to`."""
    versions.stream[to], versions.key[to], versions.source[to] = versions.stream[k], versions.key[k], versions.source[k]
    versions.code[to], versions.time[to] = versions.code[k], versions.time[k]
    versions.begin[to], versions.end[to] = versions.begin[k], versions.end[k]
    for column in range(versions.values.shape[1]):
        versions.values[to, column] = versions.values[k, column]
        versions.rates[to, column] = versions.rates[k, column]
        versions.scale[to, column] = versions.scale[k, column]
