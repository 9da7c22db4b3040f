"""The probability that the true values satisfy all constraints, given the predictions at an instant.

A *value* is a column of a prediction, or a sum of columns, whose error is the sum of theirs. A *form* is a value, or
the difference of two. Its constraints allow a set of numbers, a union of intervals. Forms that share no value are
independent, and their probabilities are multiplied. Forms that share values are a *group*, whose joint probability is
integrated.

In all functions, `center` has the predicted value of each value, and `e` its error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.distributions import (
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
    signed_sums,
    sorted_few,
    sum_of_errors,
)
from anabranch.monitor.kernel.shapes import Shapes

#: The most intervals and the most bends of an integrand; no query has more.
_MOST_INTERVALS = 32
_MOST_BENDS = 256


class Constraints(NamedTuple):
    """The constraints of a query.

    Attributes
    ----------
    forms : (F, 2) the two values of each form; the second is -1 for a single value
    first, sets : the intervals of form f are sets[first[f] : first[f + 1]], each (low, high)
    groups : (G, F) whether a form belongs to a group; a form without error belongs to none. A row without forms is
        between two *choices*, of which at most one holds: the probability is the sum of theirs
    shares : (V, P) the error of a value is the sum of independent errors; the share of each in the total, then zeros
    spreads : (V, P) the standard deviation of each of them, 0 for uniform
    axis : for each value the axis of its instant
    shapes : the areas in which locations must be
    """

    forms: I64
    first: I64
    sets: F64
    groups: Bools
    shares: F64
    spreads: F64
    axis: I64
    shapes: Shapes


@compiled_uncounted
def form_probability(f: int, predicted: float, constraints: Constraints, e: F64) -> tuple[float, float]:
    """The probability that a form with this predicted value is in its set, and the derivative of that probability."""
    total, slope = 0.0, 0.0
    for k in range(constraints.first[f], constraints.first[f + 1]):
        for side in range(2):
            sign, end = 2.0 * side - 1.0, constraints.sets[k, side]
            if abs(end) < np.inf:
                below, density = form_at_most(f, end - predicted, constraints, e)
                total += sign * below
                slope -= sign * density
            elif side == 1:
                total += 1.0
    return min(1.0, max(0.0, total)), slope


@compiled_uncounted
def form_at_most(f: int, z: float, constraints: Constraints, e: F64) -> tuple[float, float]:
    """The probability that a form is at most `z` above its prediction, and the density there."""
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    if constraints.shares.shape[1] == 1:
        e2, s2 = (e[v], constraints.spreads[v, 0]) if v >= 0 else (0.0, 0.0)
        return difference(z, e[u], constraints.spreads[u, 0], e2, s2)
    return _sum_at_most(u, v, z, constraints, e)


@compiled
def _sum_at_most(u: int, v: int, z: float, constraints: Constraints, e: F64) -> tuple[float, float]:
    """The same for a difference of two values, or one if the second is -1, whose errors are sums."""
    errors, spreads, n = np.empty(2 * constraints.shares.shape[1]), np.zeros(2 * constraints.shares.shape[1]), ZERO
    for value in (u, v):
        for k in range(constraints.shares.shape[1] if value >= 0 else 0):
            if constraints.shares[value, k] * e[value] > 0.0:
                errors[n], spreads[n] = constraints.shares[value, k] * e[value], constraints.spreads[value, k]
                n += 1
    return sum_of_errors(z, errors if n <= 2 else sorted_few(errors, n), spreads, n)


@compiled
def _value_at_most(v: int, x: float, constraints: Constraints, e: F64) -> float:
    """The probability that the error of a value is at most `x`."""
    if constraints.shares.shape[1] == 1:
        return at_most(x, e[v], constraints.spreads[v, 0])
    return _sum_at_most(v, NONE, x, constraints, e)[0]


@compiled
def value_density(v: int, x: float, constraints: Constraints, e: F64) -> float:
    """The density of the error of a value at `x`, which is within [-e, e]."""
    if constraints.shares.shape[1] == 1:
        return density(x, e[v], constraints.spreads[v, 0])
    return _sum_at_most(v, NONE, x, constraints, e)[1]


@compiled_inline
def predicted_form(f: int, constraints: Constraints, center: F64) -> float:
    """The predicted value of a form."""
    return center[constraints.forms[f, 0]] - (center[constraints.forms[f, 1]] if constraints.forms[f, 1] >= 0 else 0.0)


@compiled_inline
def error_of(f: int, constraints: Constraints, e: F64) -> float:
    """The error of a form: how far it can be from its predicted value."""
    return e[constraints.forms[f, 0]] + (e[constraints.forms[f, 1]] if constraints.forms[f, 1] >= 0 else 0.0)


@compiled_inline
def forms_of(g: int, constraints: Constraints) -> tuple[int, int]:
    """The number of forms of a group, and the last of them."""
    count, last = ZERO, NONE
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f]:
            count, last = count + 1, f
    return count, last


@compiled_inline
def has_choices(constraints: Constraints) -> bool:
    """Whether the probability is a sum of several."""
    for g in range(len(constraints.groups)):
        if forms_of(g, constraints)[0] == 0:
            return True
    return False


@compiled_inline
def is_uncertain(f: int, constraints: Constraints) -> bool:
    """Whether a form has an error and a set, and so belongs to a group."""
    for g in range(len(constraints.groups)):
        if constraints.groups[g, f]:
            return True
    return False


# ---------------------------------------------------------------- forms that share values


@compiled
def joint_probability(g: int, center: F64, constraints: Constraints, e: F64) -> float:
    """The probability that all forms of a group are in their sets: an integral over one true value after the other."""
    n = len(center)
    used = np.zeros(n, np.bool_)
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f]:
            used[constraints.forms[f, 0]] = True
            if constraints.forms[f, 1] >= 0:
                used[constraints.forms[f, 1]] = True
    order = np.empty(n, np.int64)
    count, known = ZERO, ZERO
    for certain in (True, False):  # values without error first: they are known
        for v in range(n):
            if used[v] and (e[v] == 0.0) == certain:
                order[count] = v
                count += 1
        known = count if certain else known
    truth = center.copy()
    nodes, weights = FEW_NODES, FEW_WEIGHTS
    for k in range(count):
        for part in range(constraints.spreads.shape[1]):
            if constraints.spreads[order[k], part] > 0.0:
                nodes, weights = NODES, WEIGHTS
    probability = _integral(known, order[:count], truth, g, center, constraints, e, nodes, weights)
    return min(1.0, max(0.0, probability))


@compiled
def _integral(
    depth: int, order: I64, truth: F64, g: int, center: F64, constraints: Constraints, e: F64, nodes: F64, weights: F64
) -> float:
    """The probability that the true values from `depth` on satisfy the constraints, given those before it."""
    v = order[depth]
    allowed = _allowed(depth, order, truth, g, center, constraints, e)
    total = 0.0
    if depth == len(order) - 1:
        for k in range(len(allowed)):
            total += _value_at_most(v, allowed[k, 1] - center[v], constraints, e)
            total -= _value_at_most(v, allowed[k, 0] - center[v], constraints, e)
        return total
    bends = _bends(depth, order, truth, g, center, constraints, e)
    for k in range(len(allowed)):
        cuts = _split_at_bends(bends, allowed[k, 0], allowed[k, 1])
        for piece in range(len(cuts) - 1):
            half, middle = 0.5 * (cuts[piece + 1] - cuts[piece]), 0.5 * (cuts[piece + 1] + cuts[piece])
            for node in range(len(nodes)):
                truth[v] = middle + half * nodes[node]
                weight = half * weights[node] * value_density(v, truth[v] - center[v], constraints, e)
                total += weight * _integral(depth + 1, order, truth, g, center, constraints, e, nodes, weights)
    return total


@compiled
def _allowed(depth: int, order: I64, truth: F64, g: int, center: F64, constraints: Constraints, e: F64) -> F64:
    """The intervals of the true value of order[depth] that its error, its forms and the earlier true values allow."""
    v = order[depth]
    intervals = np.empty((_MOST_INTERVALS, 2))
    intervals[0, 0], intervals[0, 1] = center[v] - e[v], center[v] + e[v]
    count = ZERO + 1
    for f in range(constraints.groups.shape[1]):
        if not constraints.groups[g, f]:
            continue
        sign, shift, applies = _as_bound(f, v, depth, order, truth, constraints)
        if applies:
            intervals, count = _intersected(intervals, count, f, sign, shift, constraints)
    return intervals[:count].copy()


@compiled
def _as_bound(
    f: int, v: int, depth: int, order: I64, truth: F64, constraints: Constraints
) -> tuple[float, float, bool]:
    """A form as a bound on the true value of v, given the earlier ones.

    Returns (sign, shift, applies): the true value is in sign * set + shift, if the form `applies` to it.
    """
    plus, minus = constraints.forms[f, 0], constraints.forms[f, 1]
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
def _intersected(
    intervals: F64, count: int, f: int, sign: float, shift: float, constraints: Constraints
) -> tuple[F64, int]:
    result = np.empty_like(intervals)
    n = ZERO
    for k in range(count):
        for j in range(constraints.first[f], constraints.first[f + 1]):
            one, two = sign * constraints.sets[j, 0] + shift, sign * constraints.sets[j, 1] + shift
            low, high = max(intervals[k, 0], min(one, two)), min(intervals[k, 1], max(one, two))
            if low < high and n < len(result):
                result[n, 0], result[n, 1] = low, high
                n += 1
    return result, n


@compiled
def _bends(depth: int, order: I64, truth: F64, g: int, center: F64, constraints: Constraints, e: F64) -> F64:
    """Where the probability of the true values after `depth` may bend, as a function of the true value at `depth`.

    It bends at the ends of the ranges of later true values, shifted by the ends of the forms between the two.
    """
    n = len(order) - depth
    ends = np.empty((n, _MOST_BENDS))
    count = np.zeros(n, np.int64)
    for k in range(n):
        v = order[depth + k]
        for cut in range(len(CUTS)):
            if constraints.spreads[v, 0] > 0.0 and abs(CUTS[cut]) * constraints.spreads[v, 0] < e[v]:
                _add_end(ends, count, k, center[v] + CUTS[cut] * constraints.spreads[v, 0])
        for end in signed_sums(constraints.shares[v], constraints.shares.shape[1]):
            _add_end(ends, count, k, center[v] + e[v] * end)
        for f in range(constraints.groups.shape[1]):
            if constraints.groups[g, f]:
                sign, shift, applies = _as_bound(f, v, depth, order, truth, constraints)
                for j in range(constraints.first[f], constraints.first[f + 1]) if applies else range(0):
                    _add_end(ends, count, k, sign * constraints.sets[j, 0] + shift)
                    _add_end(ends, count, k, sign * constraints.sets[j, 1] + shift)
    for _ in range(n - 1):
        _propagate_ends(ends, count, depth, order, g, constraints)
    return sorted_few(ends[0], count[0])


@compiled
def _propagate_ends(ends: F64, count: I64, depth: int, order: I64, g: int, constraints: Constraints) -> None:
    """Add every end of a true value to the values that share a form with it, shifted by the ends of the form."""
    before = count.copy()
    for f in range(constraints.groups.shape[1]):
        if not constraints.groups[g, f] or constraints.forms[f, 1] < 0:
            continue
        plus, minus = NONE, NONE
        for k in range(len(count)):
            if order[depth + k] == constraints.forms[f, 0]:
                plus = k
            if order[depth + k] == constraints.forms[f, 1]:
                minus = k
        if plus < 0 or minus < 0:
            continue
        for j in range(constraints.first[f], constraints.first[f + 1]):
            for side in range(2):
                for k in range(before[minus]):
                    _add_end(ends, count, plus, ends[minus, k] + constraints.sets[j, side])
                for k in range(before[plus]):
                    _add_end(ends, count, minus, ends[plus, k] - constraints.sets[j, side])


@compiled
def _add_end(ends: F64, count: I64, k: int, end: float) -> None:
    if not np.isfinite(end) or count[k] == ends.shape[1]:
        return
    for known in range(count[k]):
        if abs(ends[k, known] - end) <= 1e-13 * abs(end):
            return
    ends[k, count[k]] = end
    count[k] += 1


@compiled
def _split_at_bends(bends: F64, low: float, high: float) -> F64:
    """The ends of the pieces into which the bends divide an interval."""
    cuts = np.empty(len(bends) + 2)
    cuts[0] = low
    n = 1
    for k in range(len(bends)):
        if low < bends[k] < high:
            cuts[n] = bends[k]
            n += 1
    cuts[n] = high
    return cuts[: n + 1]
