"""How probable it is that the truths satisfy all constraints, where predictions say what they say.

A *form* is a value, or the difference of two. Its constraints leave a set of numbers, a union of intervals. Forms that
share no value are independent, and their probabilities multiply; those that do are a *group*, and are taken together.

In all functions `center` and `e` are, for each value, what is predicted and its error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_inline
from anabranch.monitor.kernel.laws import (
    CUTS,
    FEW_NODES,
    FEW_WEIGHTS,
    NODES,
    NONE,
    WEIGHTS,
    ZERO,
    at_most,
    density,
    difference,
    sorted_few,
)

#: More intervals, and more bends of an integrand, than a query can have are not kept.
_MOST_INTERVALS = 32
_MOST_BENDS = 256


class Asked(NamedTuple):
    """What is asked of values.

    Attributes
    ----------
    forms : (F, 2) the two values of each form, the second -1 where there is none
    first, sets : the intervals of form f are sets[first[f] : first[f + 1]], each (low, high)
    groups : (G, F) whether a form belongs to a group; a form that has no error belongs to none
    spreads : for each value the spread of its error, 0 where it is uniform
    axis : for each value the axis of its instant
    """

    forms: I64
    first: I64
    sets: F64
    groups: Bools
    spreads: F64
    axis: I64


@compiled
def form_chance(f: int, middle: float, asked: Asked, e: F64) -> tuple[float, float]:
    """The probability that one form, predicted as `middle`, is in its set; and how fast it grows with that."""
    u, v = asked.forms[f, 0], asked.forms[f, 1]
    e1, s1 = e[u], asked.spreads[u]
    e2, s2 = (e[v], asked.spreads[v]) if v >= 0 else (0.0, 0.0)
    total, slope = 0.0, 0.0
    for k in range(asked.first[f], asked.first[f + 1]):
        for side in range(2):
            sign, end = 2.0 * side - 1.0, asked.sets[k, side]
            if abs(end) < np.inf:
                below, density = difference(end - middle, e1, s1, e2, s2)
                total += sign * below
                slope -= sign * density
            elif side == 1:
                total += 1.0
    return min(1.0, max(0.0, total)), slope


@compiled_inline
def middle_of(f: int, asked: Asked, center: F64) -> float:
    """What a form is predicted to be."""
    return center[asked.forms[f, 0]] - (center[asked.forms[f, 1]] if asked.forms[f, 1] >= 0 else 0.0)


@compiled_inline
def error_of(f: int, asked: Asked, e: F64) -> float:
    """How far a form can be from its prediction."""
    return e[asked.forms[f, 0]] + (e[asked.forms[f, 1]] if asked.forms[f, 1] >= 0 else 0.0)


@compiled_inline
def forms_of(g: int, asked: Asked) -> tuple[int, int]:
    """How many forms a group has, and the last of them."""
    count, last = ZERO, NONE
    for f in range(asked.groups.shape[1]):
        if asked.groups[g, f]:
            count, last = count + 1, f
    return count, last


# ---------------------------------------------------------------- forms that share values


@compiled
def joint_chance(g: int, center: F64, asked: Asked, e: F64) -> float:
    """The probability that all forms of a group are in their sets: an integral over one truth after the other."""
    n = len(center)
    used = np.zeros(n, np.bool_)
    for f in range(asked.groups.shape[1]):
        if asked.groups[g, f]:
            used[asked.forms[f, 0]] = True
            if asked.forms[f, 1] >= 0:
                used[asked.forms[f, 1]] = True
    order = np.empty(n, np.int64)
    count, known = ZERO, ZERO
    for certain in (True, False):  # what has no error is known from the start
        for v in range(n):
            if used[v] and (e[v] == 0.0) == certain:
                order[count] = v
                count += 1
        known = count if certain else known
    truth = center.copy()
    nodes, weights = FEW_NODES, FEW_WEIGHTS
    for k in range(count):
        if asked.spreads[order[k]] > 0.0:
            nodes, weights = NODES, WEIGHTS
    share = _share(known, order[:count], truth, g, center, asked, e, nodes, weights)
    return min(1.0, max(0.0, share))


@compiled
def _share(
    depth: int, order: I64, truth: F64, g: int, center: F64, asked: Asked, e: F64, nodes: F64, weights: F64
) -> float:
    """The probability that the truths from `depth` on fit those before it."""
    v = order[depth]
    allowed = _allowed(depth, order, truth, g, center, asked, e)
    total = 0.0
    if depth == len(order) - 1:
        for k in range(len(allowed)):
            total += at_most(allowed[k, 1] - center[v], e[v], asked.spreads[v]) - at_most(
                allowed[k, 0] - center[v], e[v], asked.spreads[v]
            )
        return total
    bends = _bends(depth, order, truth, g, center, asked, e)
    for k in range(len(allowed)):
        cuts = _within(bends, allowed[k, 0], allowed[k, 1])
        for piece in range(len(cuts) - 1):
            half, middle = 0.5 * (cuts[piece + 1] - cuts[piece]), 0.5 * (cuts[piece + 1] + cuts[piece])
            for node in range(len(nodes)):
                truth[v] = middle + half * nodes[node]
                weight = half * weights[node] * density(truth[v] - center[v], e[v], asked.spreads[v])
                total += weight * _share(depth + 1, order, truth, g, center, asked, e, nodes, weights)
    return total


@compiled
def _allowed(depth: int, order: I64, truth: F64, g: int, center: F64, asked: Asked, e: F64) -> F64:
    """The intervals in which the truth of order[depth] fits its error, its own forms, and the truths before it."""
    v = order[depth]
    found = np.empty((_MOST_INTERVALS, 2))
    found[0, 0], found[0, 1] = center[v] - e[v], center[v] + e[v]
    count = ZERO + 1
    for f in range(asked.groups.shape[1]):
        if not asked.groups[g, f]:
            continue
        sign, moved, applies = _as_bound(f, v, depth, order, truth, asked)
        if applies:
            found, count = _intersected(found, count, f, sign, moved, asked)
    return found[:count].copy()


@compiled
def _as_bound(f: int, v: int, depth: int, order: I64, truth: F64, asked: Asked) -> tuple[float, float, bool]:
    """A form as a bound on one truth, given those before: the truth is in sign * set + moved; and whether it is one."""
    plus, minus = asked.forms[f, 0], asked.forms[f, 1]
    if plus != v and minus != v:
        return 1.0, 0.0, False
    other = minus if plus == v else plus
    sign = 1.0 if plus == v else -1.0
    if other < 0:
        return sign, 0.0, True
    for earlier in range(depth):
        if order[earlier] == other:
            return sign, truth[other], True
    return sign, 0.0, False


@compiled
def _intersected(found: F64, count: int, f: int, sign: float, moved: float, asked: Asked) -> tuple[F64, int]:
    left = np.empty_like(found)
    n = ZERO
    for k in range(count):
        for j in range(asked.first[f], asked.first[f + 1]):
            one, two = sign * asked.sets[j, 0] + moved, sign * asked.sets[j, 1] + moved
            low, high = max(found[k, 0], min(one, two)), min(found[k, 1], max(one, two))
            if low < high and n < len(left):
                left[n, 0], left[n, 1] = low, high
                n += 1
    return left, n


@compiled
def _bends(depth: int, order: I64, truth: F64, g: int, center: F64, asked: Asked, e: F64) -> F64:
    """Where the probability of the truths after `depth` may bend as a function of the truth at `depth`.

    An end of what a later truth may be is such a place, moved by the ends of the forms between the two.
    """
    n = len(order) - depth
    ends = np.empty((n, _MOST_BENDS))
    count = np.zeros(n, np.int64)
    for k in range(n):
        v = order[depth + k]
        for cut in range(len(CUTS)):
            if asked.spreads[v] > 0.0 and abs(CUTS[cut]) * asked.spreads[v] < e[v]:
                _note(ends, count, k, center[v] + CUTS[cut] * asked.spreads[v])
        _note(ends, count, k, center[v] - e[v])
        _note(ends, count, k, center[v] + e[v])
        for f in range(asked.groups.shape[1]):
            if asked.groups[g, f]:
                sign, moved, applies = _as_bound(f, v, depth, order, truth, asked)
                for j in range(asked.first[f], asked.first[f + 1]) if applies else range(0):
                    _note(ends, count, k, sign * asked.sets[j, 0] + moved)
                    _note(ends, count, k, sign * asked.sets[j, 1] + moved)
    for _ in range(n - 1):
        _pass_on(ends, count, depth, order, g, asked)
    return sorted_few(ends[0], count[0])


@compiled
def _pass_on(ends: F64, count: I64, depth: int, order: I64, g: int, asked: Asked) -> None:
    """Every end of one truth is an end of its neighbours too, moved by the ends of the form between them."""
    before = count.copy()
    for f in range(asked.groups.shape[1]):
        if not asked.groups[g, f] or asked.forms[f, 1] < 0:
            continue
        plus, minus = NONE, NONE
        for k in range(len(count)):
            if order[depth + k] == asked.forms[f, 0]:
                plus = k
            if order[depth + k] == asked.forms[f, 1]:
                minus = k
        if plus < 0 or minus < 0:
            continue
        for j in range(asked.first[f], asked.first[f + 1]):
            for side in range(2):
                for k in range(before[minus]):
                    _note(ends, count, plus, ends[minus, k] + asked.sets[j, side])
                for k in range(before[plus]):
                    _note(ends, count, minus, ends[plus, k] - asked.sets[j, side])


@compiled
def _note(ends: F64, count: I64, k: int, end: float) -> None:
    if not np.isfinite(end) or count[k] == ends.shape[1]:
        return
    for known in range(count[k]):
        if abs(ends[k, known] - end) <= 1e-13 * abs(end):
            return
    ends[k, count[k]] = end
    count[k] += 1


@compiled
def _within(bends: F64, low: float, high: float) -> F64:
    """The interval cut at its bends."""
    cuts = np.empty(len(bends) + 2)
    cuts[0] = low
    n = 1
    for k in range(len(bends)):
        if low < bends[k] < high:
            cuts[n] = bends[k]
            n += 1
    cuts[n] = high
    return cuts[: n + 1]
