"""The highest probability over a convex set of instants, and the instants where it is reached.

The probability of one form depends on its predicted value only, and is highest where that is nearest to the middle of
its interval. The product of several is log-concave if each form has one interval (`<=`, `<`): its maximum is found by
the ellipsoid method, which also works at kinks. If a form has several intervals, there may be several local maxima: a
lattice finds the best two, and each is refined.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.curves import curve_of
from anabranch.monitor.kernel.distributions import NONE, ZERO
from anabranch.monitor.kernel.ellipsoid import PRECISION, Frame, climb, flattened, from_frame, to_frame
from anabranch.monitor.kernel.lines import Lines, plane_of, predict_values, probability_at
from anabranch.monitor.kernel.locations import are_certain, are_convex, has_weighed_shape
from anabranch.monitor.kernel.polygons import ROUNDING, Body, between, box, clip, cut, extent, mean
from anabranch.monitor.kernel.probabilities import (
    Constraints,
    error_of,
    form_probability,
    forms_of,
    has_choices,
    is_uncertain,
    predicted_form,
)

_GOLDEN = 0.6180339887498949
#: The share of a segment up to which the place of its maximum is found.
_NEAR = 1e-10
#: The most steps of a search on a segment; a golden section alone takes 50.
_MOST_STEPS = 100
#: A search along an edge ends if the logarithm can rise by at most this much.
_FLAT_SLOPE = 1e-10
#: The steps of a search among several maxima along a line.
SMALL_STEPS = 256


@compiled_uncounted
def highest(body: Body, lines: Lines, constraints: Constraints, threshold: float, point: F64) -> float:
    """The highest probability over a set of instants; the instants are written to `point`.

    Below `threshold` it is not exact, because such answers are dropped.
    """
    mean(body.corners, body.n, point)
    return highest_from(body, lines, constraints, threshold, point)


@compiled_uncounted
def highest_from(body: Body, lines: Lines, constraints: Constraints, threshold: float, point: F64) -> float:
    """The same from any instants of the set, which `point` has at first."""
    if has_choices(constraints):
        return _of_choices(body, lines, constraints, point)
    # True for the mean of the corners of most regions.
    if is_certain(point, lines, constraints):
        return 1.0
    if has_weighed_shape(constraints) or curve_of(constraints) >= 0:
        return _in_shapes(body, lines, constraints, point)
    bound, groups, is_alone, is_convex = _bound(body, lines, constraints, point)
    if groups == 0 or (groups == 1 and is_alone) or bound < threshold or bound == 0.0:
        return bound
    if _in_bands(body, lines, constraints, bound, point):
        return bound
    if is_convex and groups == 2 and is_alone and len(point) == 2 and body.n > 2:
        return _on_edges(body, lines, constraints, point)
    return _searched(body, lines, constraints, is_convex, bound, threshold, point)


@compiled
def _in_shapes(body: Body, lines: Lines, constraints: Constraints, point: F64) -> float:
    """The highest probability if locations must be in areas; only the forms have a bound that is easily found."""
    at = point.copy()
    bound, _, _, is_convex = _bound(body, lines, constraints, at)
    is_convex &= are_convex(constraints)
    if bound == 0.0:
        return 0.0
    top, shapes = _searched(body, lines, constraints, is_convex, bound, 0.0, point), constraints.shapes
    for s in range(len(shapes.is_weighed)):
        if shapes.is_weighed[s] and not shapes.is_convex[s] and not shapes.is_outside[s]:
            for axis in range(2):
                if top < bound and error_of(shapes.forms[s, axis], constraints, lines.error) == 0.0:
                    top = _on_levels(s, axis, body, lines, constraints, bound, top, point)
    return top


@compiled
def _on_levels(
    s: int, axis: int, body: Body, lines: Lines, constraints: Constraints, bound: float, top: float, point: F64
) -> float:
    """The highest probability, also where a coordinate without error is on an edge of a polygon; `top` elsewhere.

    What is above and what is below the level of the edge are both inside at this level, so the probability may be
    higher than before and after. The search would miss these single instants.
    """
    dims, edges = len(point), constraints.shapes.edges
    plane, at = np.empty(dims + 2), np.empty(dims)
    plane_of(constraints.shapes.forms[s, axis], constraints, lines, plane)
    low, high, _, _ = extent(plane, body.corners, body.n)
    planes = np.empty((body.n_planes + 2, dims + 2))
    assign(planes, body.planes[: body.n_planes])
    for k in range(constraints.shapes.first[s], constraints.shapes.first[s + 1]):
        level = edges[k, axis]
        if edges[k, axis + 2] != level or not low <= level <= high or low == high:
            continue
        for row in range(2):
            side, sign = planes[body.n_planes + row], 1.0 - 2.0 * row
            for j in range(dims):
                side[j] = sign * plane[j]
            side[dims], side[dims + 1] = sign * (level - plane[dims]), plane[dims + 1] + ROUNDING * abs(level)
        corners, n = cut(body, planes[body.n_planes :], ZERO + 2)
        if n == 0:
            continue
        mean(corners, n, at)
        n = 1 if dims == 1 else n
        value = _searched(Body(corners, n, planes, len(planes)), lines, constraints, False, bound, 0.0, at)
        if value > top:
            top = value
            assign(point, at)
    return top


@compiled
def _searched(
    body: Body, lines: Lines, constraints: Constraints, is_convex: bool, bound: float, threshold: float, point: F64
) -> float:
    """The highest probability by search, from the instants of `point`; if it is below the threshold, any lower one."""
    if body.n <= 2:
        return _on_segment(body, lines, constraints, is_convex, point)
    flat, frame = flattened(body)
    if is_convex:
        low, high = box(flat)
        return climb(low, high, flat, frame, lines, constraints, True, bound, threshold, point)
    return _several_maxima(flat, frame, lines, constraints, bound, point)


@compiled_inline
def is_certain(point: F64, lines: Lines, constraints: Constraints) -> bool:
    """Whether all constraints hold at some instants for all possible errors; not for a condition with OR."""
    predict_values(point, lines, constraints)
    for f in range(constraints.groups.shape[1]):
        if not is_uncertain(f, constraints):
            continue
        predicted = predicted_form(f, constraints, lines.center)
        error, is_inside = error_of(f, constraints, lines.error), False
        for k in range(constraints.first[f], constraints.first[f + 1]):
            is_inside |= constraints.sets[k, 0] + error <= predicted <= constraints.sets[k, 1] - error
        if not is_inside:
            return False
    return len(constraints.shapes.is_weighed) == 0 or are_certain(lines, constraints)


# ---------------------------------------------------------------- one form


@compiled_uncounted
def _bound(body: Body, lines: Lines, constraints: Constraints, point: F64) -> tuple[float, int, bool, bool]:
    """An upper bound: the product of the highest probabilities of the groups.

    Returns (bound, number of groups, whether each has one form, whether each form has one interval). If there is only
    one form, the instants at which it reaches the bound are written to `point`.
    """
    bound, groups, is_alone, is_convex = 1.0, 0, True, True
    plane = lines.plane
    for g in range(len(constraints.groups)):
        count, _ = forms_of(g, constraints)
        if count == 0:
            continue
        group_bound = 1.0
        for f in range(constraints.groups.shape[1]):
            if constraints.groups[g, f]:
                is_convex &= constraints.first[f + 1] - constraints.first[f] <= 1
                plane_of(f, constraints, lines, plane)
                low, high, least, most = extent(plane, body.corners, body.n)
                best = _best_prediction(f, low, high, constraints, lines.error)
                group_bound = min(group_bound, form_probability(f, best, constraints, lines.error)[0])
                if groups == 0:
                    between(body.corners, least, most, (best - low) / (high - low) if high > low else 0.5, point)
        groups, is_alone = groups + 1, is_alone and count == 1
        bound *= group_bound
    return bound, groups, is_alone, is_convex


@compiled_uncounted
def _best_prediction(f: int, low: float, high: float, constraints: Constraints, e: F64) -> float:
    """The predicted value between `low` and `high` at which the form is most probably in its set."""
    if constraints.first[f + 1] - constraints.first[f] != 1:
        return _sampled_prediction(f, low, high, constraints, e)
    lower, upper = constraints.sets[constraints.first[f], 0], constraints.sets[constraints.first[f], 1]
    if lower == -np.inf:
        return low
    if upper == np.inf:
        return high
    return min(max(0.5 * (lower + upper), low), high)


@compiled
def _sampled_prediction(f: int, low: float, high: float, constraints: Constraints, e: F64) -> float:
    """The same for several intervals: tries equal steps and the ends of the certain ranges, then halves the step."""
    steps = 64
    n = constraints.first[f + 1] - constraints.first[f]
    candidates = np.empty(steps + 1 + 2 * n)
    for k in range(steps + 1):
        candidates[k] = low + (high - low) * k / steps
    for k in range(n):
        candidates[steps + 1 + 2 * k] = constraints.sets[constraints.first[f] + k, 0] + error_of(f, constraints, e)
        candidates[steps + 2 + 2 * k] = constraints.sets[constraints.first[f] + k, 1] - error_of(f, constraints, e)
    best, top = low, -1.0
    for predicted in candidates:
        if low <= predicted <= high:
            value, _ = form_probability(f, predicted, constraints, e)
            if value > top:
                best, top = predicted, value
    reach = (high - low) / steps
    while reach > PRECISION * max(1.0, abs(best)) and top < 1.0:
        for predicted in (best - reach, best + reach):
            if low <= predicted <= high:
                value, _ = form_probability(f, predicted, constraints, e)
                if value > top:
                    best, top = predicted, value
        reach *= 0.5
    return best


# ---------------------------------------------------------------- several forms


@compiled_uncounted
def _in_bands(body: Body, lines: Lines, constraints: Constraints, bound: float, point: F64) -> bool:
    """Whether the bound is reached: at instants where all forms except one are certain, and that one is at its maximum.

    The instants at which a form is certain are a band between two planes. The instants are written to `point`.
    """
    room, n = lines.room, body.n
    count, last = _write_bands(body, lines, constraints)
    here = 2 * constraints.groups.shape[1]
    size = (len(room) - here) // 2
    there = here + size
    if count < 0:
        return False
    if len(point) != 2 or n + count > size:
        return _in_other_bands(body, count, last, lines, constraints, bound, point)
    assign(room[here:], body.corners[:n])
    for k in range(count):
        n = clip(room[here:], n, room[k], room[there:])
        here, there = there, here
    return _is_best(room[here:], n, last, lines, constraints, bound, point)


@compiled
def _in_other_bands(
    body: Body, count: int, last: int, lines: Lines, constraints: Constraints, bound: float, point: F64
) -> bool:
    """The same for other than two instants."""
    inside, n = cut(body, lines.room, count)
    return _is_best(inside, n, last, lines, constraints, bound, point)


@compiled_uncounted
def _write_bands(body: Body, lines: Lines, constraints: Constraints) -> tuple[int, int]:
    """Write the half-planes of the bands that cut a set to `lines.room`.

    Returns their number, or -1 if several forms cannot be certain, and the form that cannot be certain, or -1.
    """
    dims, plane, room = len(lines.plane) - 2, lines.plane, lines.room
    n, last = ZERO, NONE
    for f in range(constraints.groups.shape[1]):
        if not is_uncertain(f, constraints):
            continue
        if constraints.first[f + 1] - constraints.first[f] != 1:
            return NONE, NONE
        plane_of(f, constraints, lines, plane)
        low, high, _, _ = extent(plane, body.corners, body.n)
        error = error_of(f, constraints, lines.error)
        lower = constraints.sets[constraints.first[f], 0] + error
        upper = constraints.sets[constraints.first[f], 1] - error
        if lower > upper or low > upper or high < lower:
            if last >= 0:
                return NONE, NONE
            last = f
            continue
        for sign, end, is_cut in ((1.0, upper, high > upper), (-1.0, lower, low < lower)):
            if is_cut:
                for j in range(dims):
                    room[n, j] = sign * plane[j]
                room[n, dims] = sign * (end - plane[dims])
                room[n, dims + 1] = plane[dims + 1] + ROUNDING * (abs(end) + error)
                n += 1
    return n, last


@compiled_uncounted
def _is_best(inside: F64, n: int, last: int, lines: Lines, constraints: Constraints, bound: float, point: F64) -> bool:
    """Whether the bound is reached in a set where all forms but the `last` are certain; writes the instants."""
    if n == 0:
        return False
    if last < 0:
        mean(inside, n, point)
        return True
    plane_of(last, constraints, lines, lines.plane)
    low, high, least, most = extent(lines.plane, inside, n)
    best = _best_prediction(last, low, high, constraints, lines.error)
    if form_probability(last, best, constraints, lines.error)[0] < bound * (1.0 - 1e-12):
        return False
    between(inside, least, most, (best - low) / (high - low) if high > low else 0.5, point)
    return True


@compiled
def _on_segment(body: Body, lines: Lines, constraints: Constraints, is_convex: bool, point: F64) -> float:
    """The highest probability on a segment, or at a point: the best of equal steps, and then Brent's method around it.

    Each step is to the maximum of the parabola through the three best points. Where that converges too slowly, as at
    kinks, the larger part is divided by the golden section.
    """
    steps, no_slope = 8 if is_convex else SMALL_STEPS, np.empty(0)
    best, top = 0.0, -1.0
    for k in range(steps + 1 if body.n > 1 else 1):
        between(body.corners, ZERO, body.n - 1, k / steps, point)
        value = probability_at(point, lines, constraints, no_slope)
        if value > top:
            best, top = k / steps, value
    left, right = max(0.0, best - 1.0 / steps), min(1.0, best + 1.0 / steps)
    second, second_value, third, third_value = best, top, best, top
    step, step_before = 0.0, 0.0
    for _ in range(_MOST_STEPS if body.n > 1 else 0):
        middle = 0.5 * (left + right)
        if top >= 1.0 or abs(best - middle) <= 2.0 * _NEAR - 0.5 * (right - left):
            break
        following = _vertex(best, top, second, second_value, third, third_value)
        if not (left < best + following < right and abs(following) < 0.5 * abs(step_before)):
            step = (left if best >= middle else right) - best
            following = (1.0 - _GOLDEN) * step
        elif min(best + following - left, right - best - following) < 2.0 * _NEAR:
            following = math.copysign(_NEAR, middle - best)
        step_before, step = step, following
        at = best + (step if abs(step) >= _NEAR else math.copysign(_NEAR, step))
        between(body.corners, ZERO, body.n - 1, at, point)
        value = probability_at(point, lines, constraints, no_slope)
        if value >= top:
            left, right = (best, right) if at >= best else (left, best)
            third, third_value, second, second_value, best, top = second, second_value, best, top, at, value
            continue
        left, right = (at, right) if at < best else (left, at)
        if value >= second_value or second == best:
            third, third_value, second, second_value = second, second_value, at, value
        elif value >= third_value or third in (best, second):
            third, third_value = at, value
    between(body.corners, ZERO, body.n - 1, best, point)
    return top


@compiled_inline
def _vertex(best: float, top: float, second: float, second_value: float, third: float, third_value: float) -> float:
    """How far the maximum of the parabola through three points is from the best of them; infinite if it has none."""
    one, two = (best - second) * (top - third_value), (best - third) * (top - second_value)
    bend = 2.0 * (two - one)
    return ((best - second) * one - (best - third) * two) / bend if bend != 0.0 else np.inf


@compiled_uncounted
def _on_edges(body: Body, lines: Lines, constraints: Constraints, point: F64) -> float:
    """The highest probability of two forms over a polygon in which they cannot both be at their maximum: on an edge.

    Inside, the gradients of the two logarithms would have to cancel out. Either they have different directions and
    never do, or the same direction, and then all points across it have the same value. Along an edge, the slope changes
    its sign once.
    """
    plane, corners, one, two = lines.plane, body.corners, NONE, NONE
    for f in range(constraints.groups.shape[1]):
        if is_uncertain(f, constraints):
            one, two = two, f
    plane_of(one, constraints, lines, plane)
    by_x, by_y, base = plane[0], plane[1], plane[2]
    plane_of(two, constraints, lines, plane)
    top, best, best_share = -1.0, ZERO, 0.0
    for k in range(body.n):
        after = k + 1 if k + 1 < body.n else 0
        dx, dy = corners[after, 0] - corners[k, 0], corners[after, 1] - corners[k, 1]
        at_one, rate_one = base + by_x * corners[k, 0] + by_y * corners[k, 1], by_x * dx + by_y * dy
        at_two = plane[2] + plane[0] * corners[k, 0] + plane[1] * corners[k, 1]
        rate_two = plane[0] * dx + plane[1] * dy
        low, high, low_fall, high_fall, share = 0.0, 1.0, 0.0, 0.0, 0.0
        for step in range(100):
            value, fall = _fall(one, at_one + share * rate_one, rate_one, lines, constraints)
            if value > 0.0:
                other_value, other_fall = _fall(two, at_two + share * rate_two, rate_two, lines, constraints)
                value, fall = value * other_value, fall + other_fall if other_value > 0.0 else other_fall
            if value > top:
                top, best, best_share = value, k, share
            # Stop at an end of the edge from which the probability falls.
            if (step == 0 and fall >= 0.0) or (step == 1 and fall < 0.0):
                break
            if fall >= 0.0:
                high, high_fall = share, fall
            else:
                low, low_fall = share, fall
            if step > 0 and abs(fall) * (high - low) < _FLAT_SLOPE:
                break
            # The zero of the line through both ends; every third step is a bisection, where the slope has kinks.
            share = 1.0 if step == 0 else 0.5 * (low + high)
            if step > 0 and step % 3 != 0:
                share = low - low_fall * (high - low) / (high_fall - low_fall)
    between(corners, best, best + 1 if best + 1 < body.n else ZERO, best_share, point)
    return top


@compiled_inline
def _fall(f: int, predicted: float, rate: float, lines: Lines, constraints: Constraints) -> tuple[float, float]:
    """The probability of a form, and how its logarithm falls if the prediction changes at a rate.

    Where the probability is 0, it falls away from the interval of the form.
    """
    value, derivative = form_probability(f, predicted, constraints, lines.error)
    if value > 0.0:
        return value, -derivative / value * rate
    return 0.0, rate if predicted > constraints.sets[constraints.first[f], 0] else -rate


@compiled
def _of_choices(body: Body, lines: Lines, constraints: Constraints, point: F64) -> float:
    """The highest probability if it is a sum; sums of log-concave functions may have several local maxima."""
    if probability_at(point, lines, constraints, np.empty(0)) >= 1.0 - 1e-13:
        return 1.0
    if body.n < 3:
        return _on_segment(body, lines, constraints, False, point)
    flat, frame = flattened(body)
    return _several_maxima(flat, frame, lines, constraints, 1.0, point)


@compiled
def _several_maxima(
    body: Body, frame: Frame, lines: Lines, constraints: Constraints, bound: float, point: F64
) -> float:
    """The highest probability if there may be several local maxima; `body` is in the coordinates of the frame."""
    low, high = box(body)
    dims = len(low)
    center, candidate, maxima, tops = np.empty(dims), np.empty(dims), np.zeros((2, dims)), np.zeros(2)
    at, no_slope, nearer_low, nearer_high = np.empty(len(point)), np.empty(0), np.empty(dims), np.empty(dims)
    to_frame(point, frame, center)
    for i in range(body.n):
        for j in range(i, body.n):
            for along in range(1, 4):
                for outward in range(7):
                    between(body.corners, i, j, 0.25 * along, candidate)
                    for k in range(dims):
                        candidate[k] = center[k] + outward / 6.0 * (candidate[k] - center[k])
                    from_frame(candidate, frame, at)
                    _keep_two(candidate, probability_at(at, lines, constraints, no_slope), tops, maxima, low, high)
    best, best_point = 0.0, point.copy()
    for number in range(2):
        if tops[number] > 0.0:
            from_frame(maxima[number], frame, point)
            for k in range(dims):
                nearer_low[k] = max(low[k], maxima[number, k] - 0.25 * (high[k] - low[k]))
                nearer_high[k] = min(high[k], maxima[number, k] + 0.25 * (high[k] - low[k]))
            value = climb(nearer_low, nearer_high, body, frame, lines, constraints, False, bound, 0.0, point)
            if value > best:
                best = value
                assign(best_point, point)
    assign(point, best_point)
    return best


@compiled
def _keep_two(candidate: F64, value: float, tops: F64, maxima: F64, low: F64, high: F64) -> None:
    """Keep the best candidate, and the best one that is not near it."""
    near = True
    for k in range(len(candidate)):
        near &= abs(candidate[k] - maxima[0, k]) <= 0.25 * (high[k] - low[k])
    if value > tops[0]:
        if not near:
            tops[1], maxima[1] = tops[0], maxima[0]
        tops[0], maxima[0] = value, candidate
    elif value > tops[1] and not near:
        tops[1], maxima[1] = value, candidate
