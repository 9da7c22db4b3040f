"""NEAREST: when fewer than k others are nearer to a prediction than a candidate.

Relative to a prediction of the first operand, a candidate moves on a line, so its squared distance is a quadratic
function of time. Two candidates change their order only at the roots of the difference of two such functions. Between
these roots, and while both match, one of them is nearer all the time, or both are as near.

Single instants are ignored, as an answer and as a gap. Rounding errors leave pieces that are shorter than `_SHORTEST`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.polygons import ROUNDING
from anabranch.monitor.kernel.probabilities import Constraints
from anabranch.monitor.kernel.regions import MatchRules, PredictionArrays, align, empty_lines

#: The longest rounding error of an instant, as a share of its size: roots of almost equal distances are inexact.
_SHORTEST = 1e-9


class Candidates(NamedTuple):
    """Regions of pairs of predictions, in the order of their first prediction, and of the key of the second.

    Attributes
    ----------
    members, shifts : as in `regions`
    interval : (n, 2) when the pair matches, relative to the time of the first prediction
    key : (n,) the number of the key of the second prediction; those of a group are consecutive
    group : the regions of group g, which have the same first prediction, are those from group[g] to group[g + 1]
    """

    members: I64
    shifts: F64
    interval: F64
    key: I64
    group: I64


class Paths(NamedTuple):
    """Where candidates are, relative to the first prediction: x + t dx, y + t dy.

    `slack` is the rounding error of a distance, and `shortest` that of an instant.
    """

    x: F64
    dx: F64
    y: F64
    dy: F64
    slack: F64
    shortest: F64


@compiled
def nearest(
    k: int, candidates: Candidates, shape: int, predictions: PredictionArrays, rules: MatchRules,
    constraints: Constraints,
) -> tuple[I64, F64]:  # fmt: skip
    """When each candidate is one of the k nearest: the candidate of each interval, and the intervals in their order.

    `shape` is the area that bounds the distance of the two operands.
    """
    paths = _paths(candidates, shape, predictions, rules, constraints)
    n, count = len(candidates.key), 0
    owner, pieces = np.empty(n + 8, np.int64), np.empty((n + 8, 2))
    for g in range(len(candidates.group) - 1):
        begin, end = candidates.group[g], candidates.group[g + 1]
        most = end - begin
        time, step = np.empty(4 * most), np.empty(4 * most, np.int64)
        n_nearer, found = np.zeros(most, np.int64), np.empty((2 * most + 1, 2))
        for j in range(begin, end):
            n_events = _events(j, begin, end, candidates, paths, time, step)
            n_found = _kept(k, candidates.interval[j], paths.shortest[j], time, step, n_events, n_nearer, found)
            if count + n_found > len(owner):
                owner, pieces = _with_room(owner, pieces, count + n_found)
            for piece in range(n_found):
                owner[count], pieces[count, 0], pieces[count, 1] = j, found[piece, 0], found[piece, 1]
                count += 1
    return owner[:count].copy(), pieces[:count].copy()


@compiled
def _with_room(owner: I64, pieces: F64, n: int) -> tuple[I64, F64]:
    """Longer copies of two arrays, with room for more than n rows."""
    larger, larger_pieces = np.empty(2 * n, np.int64), np.empty((2 * n, 2))
    assign(larger, owner)
    assign(larger_pieces, pieces)
    return larger, larger_pieces


@compiled
def _paths(
    candidates: Candidates, shape: int, predictions: PredictionArrays, rules: MatchRules, constraints: Constraints
) -> Paths:
    """The paths of candidates. On the globe they are divided by the scale, so that lengths are distances there."""
    n, shapes = len(candidates.members), constraints.shapes
    x, dx, y, dy, slack, shortest = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    low, high, lines = np.empty(2), np.empty(2), empty_lines(len(rules.value_of), 1, 0)
    of_x, of_y = constraints.forms[shapes.forms[shape, 0]], constraints.forms[shapes.forms[shape, 1]]
    for j in range(n):
        align(candidates.members[j], candidates.shifts[j], predictions, rules, constraints, low, high, lines)
        scale = 1.0
        if shapes.stated[shape, 1] > 0.0:
            scale = shapes.distances[shape, 1] / shapes.stated[shape, 1]
        x[j], dx[j] = _difference(of_x, lines.base) / scale, _difference(of_x, lines.rate) / scale
        y[j], dy[j] = _difference(of_y, lines.base) / scale, _difference(of_y, lines.rate) / scale
        slack[j] = ROUNDING * (lines.size[of_x[0]] + lines.size[of_x[1]] + lines.size[of_y[0]] + lines.size[of_y[1]])
        last = max(max(abs(low[0]), abs(high[0])), max(abs(low[1]), abs(high[1])))
        shortest[j] = _SHORTEST * last + 4.0 * candidates.shifts[j, 2]
    return Paths(x, dx, y, dy, slack, shortest)


@compiled_inline
def _difference(form: I64, numbers: F64) -> float:
    return numbers[form[0]] - numbers[form[1]]


@compiled
def _events(j: int, begin: int, end: int, candidates: Candidates, paths: Paths, time: F64, step: I64) -> int:
    """Write when other keys become nearer than candidate j, and when they cease to; returns the number of these events.

    The `step` of an event is the number of the key in the group, from 1 on, or minus that.
    """
    n, cuts = 0, np.empty(4)
    for i in range(begin, end):
        if candidates.key[i] == candidates.key[j]:
            continue
        low = max(candidates.interval[i, 0], candidates.interval[j, 0])
        high = min(candidates.interval[i, 1], candidates.interval[j, 1])
        if not low < high:
            continue
        key = 1 + candidates.key[i] - candidates.key[begin]
        n_cuts = _order_changes(i, j, low, high, paths, cuts)
        for c in range(n_cuts - 1):
            # The distances may touch at one of two instants, but not at both.
            third = (cuts[c + 1] - cuts[c]) / 3.0
            if _is_nearer(i, j, cuts[c] + third, paths) or _is_nearer(i, j, cuts[c + 1] - third, paths):
                time[n], step[n] = cuts[c], key
                time[n + 1], step[n + 1] = cuts[c + 1], -key
                n += 2
    return n


@compiled
def _order_changes(i: int, j: int, low: float, high: float, paths: Paths, cuts: F64) -> int:
    """Write the instants from `low` to `high`, and between them those at which two are equally near; returns how many.

    The differences of squares are taken around the middle, where they lose the least precision.
    """
    middle = 0.5 * (low + high)
    xi, yi = paths.x[i] + middle * paths.dx[i], paths.y[i] + middle * paths.dy[i]
    xj, yj = paths.x[j] + middle * paths.dx[j], paths.y[j] + middle * paths.dy[j]
    dxi, dyi, dxj, dyj = paths.dx[i], paths.dy[i], paths.dx[j], paths.dy[j]
    a = (dxi - dxj) * (dxi + dxj) + (dyi - dyj) * (dyi + dyj)
    b = 2.0 * (xi * dxi + yi * dyi - xj * dxj - yj * dyj)
    c = (xi - xj) * (xi + xj) + (yi - yj) * (yi + yj)
    n, square = 1, b * b - 4.0 * a * c
    cuts[0] = low
    if square > 0.0:
        q = -0.5 * (b + math.copysign(math.sqrt(square), b))
        one = middle + q / a if a != 0.0 else low
        other = middle + c / q if q != 0.0 else low
        for root in (min(one, other), max(one, other)):
            if low < root < high:
                cuts[n] = root
                n += 1
    cuts[n] = high
    return n + 1


@compiled_inline
def _is_nearer(i: int, j: int, at: float, paths: Paths) -> bool:
    """Whether candidate i is nearer than j, by more than a rounding error."""
    distance = math.hypot(paths.x[i] + at * paths.dx[i], paths.y[i] + at * paths.dy[i])
    other = math.hypot(paths.x[j] + at * paths.dx[j], paths.y[j] + at * paths.dy[j])
    return distance < other - paths.slack[i] - paths.slack[j]


@compiled
def _kept(
    k: int, interval: F64, shortest: float, time: F64, step: I64, n_events: int, n_nearer: I64, found: F64
) -> int:
    """Write the parts of an interval in which fewer than k other keys are nearer; returns how many.

    `n_nearer` is scratch: how many predictions of each key are nearer. A key may have two of the same time.
    """
    order = np.argsort(time[:n_events])
    for key in range(len(n_nearer)):
        n_nearer[key] = 0
    n, nearer_keys, since = 0, 0, interval[0]
    for e in range(n_events + 1):
        at, was_kept = interval[1], nearer_keys < k
        if e < n_events:
            at, key = time[order[e]], abs(step[order[e]]) - 1
            nearer_keys -= 1 if n_nearer[key] > 0 else 0
            n_nearer[key] += 1 if step[order[e]] > 0 else -1
            nearer_keys += 1 if n_nearer[key] > 0 else 0
        is_kept = nearer_keys < k and e < n_events
        if is_kept and not was_kept:
            since = at
        elif was_kept and not is_kept:
            if n > 0 and since - found[n - 1, 1] <= shortest:
                found[n - 1, 1] = at
            else:
                found[n, 0], found[n, 1] = since, at
                n += 1
    n_long = 0
    for piece in range(n):
        if found[piece, 1] - found[piece, 0] > shortest:
            found[n_long, 0], found[n_long, 1] = found[piece, 0], found[piece, 1]
            n_long += 1
    return n_long
