"""The highest probability over a convex set of instants, and the instants where it is reached.

The probability of one form depends on its predicted value only, and is highest where that is nearest to the middle of
its interval. The product of several is log-concave if each form has one interval (`<=`, `<`): its maximum is found by
the ellipsoid method, which also works at kinks. If a form has several intervals, there may be several local maxima: a
lattice finds the best two, and each is refined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.distributions import NONE, ZERO
from anabranch.monitor.kernel.polygons import ROUNDING, Body, clip, excess, vertices
from anabranch.monitor.kernel.probabilities import (
    Constraints,
    error_of,
    form_probability,
    forms_of,
    joint_probability,
    predicted_form,
)

#: The approximate error of probabilities that are found by search.
PRECISION = 1e-8
_GOLDEN = 0.6180339887498949
#: A set whose extent in a direction is this much smaller than its largest extent has none: corners of four instants are
#: computed from several planes, and are less exact than these.
_FLAT = 1e-9


class Lines(NamedTuple):
    """The predictions as lines: value v at instant x is base[v] + rate[v] * x, with error[v].

    `size` is the magnitude of the terms of each value, from which rounding errors follow. `center` and `plane` are
    scratch arrays, for the values at some instants and for a form as a function of them.
    """

    base: F64
    rate: F64
    error: F64
    size: F64
    center: F64
    plane: F64


@compiled_inline
def _predict_values(point: F64, lines: Lines, constraints: Constraints) -> None:
    """Write the predictions of all values at some instants to `lines.center`."""
    for v in range(len(lines.center)):
        lines.center[v] = lines.base[v] + lines.rate[v] * point[constraints.axis[v]]


@compiled_inline
def plane_of(f: int, constraints: Constraints, lines: Lines, plane: F64) -> None:
    """Write the prediction of a form as a linear function of the instants: coefficients, constant, rounding error."""
    dims = len(plane) - 2
    for j in range(dims):
        plane[j] = 0.0
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    plane[constraints.axis[u]] += lines.rate[u]
    plane[dims], plane[dims + 1] = lines.base[u], ROUNDING * lines.size[u]
    if v >= 0:
        plane[constraints.axis[v]] -= lines.rate[v]
        plane[dims] -= lines.base[v]
        plane[dims + 1] += ROUNDING * lines.size[v]


@compiled
def highest(body: Body, lines: Lines, constraints: Constraints, threshold: float, point: F64) -> float:
    """The highest probability over a set of instants; the instants are written to `point`.

    Below `threshold` it is only an upper bound, because such answers are dropped.
    """
    _mean(body.corners, body.n, point)
    if _is_certain(point, lines, constraints):  # true for the mean of the corners of most regions
        return 1.0
    bound, groups, is_alone, is_convex = _bound(body, lines, constraints, point)
    if groups == 0 or (groups == 1 and is_alone) or bound < threshold or bound == 0.0:
        return bound
    if _in_bands(body, lines, constraints, bound, point):
        return bound
    if body.n <= 2:
        return _on_segment(body, lines, constraints, is_convex, point)
    if is_convex and groups == 2 and is_alone and len(point) == 2:
        return _on_edges(body, lines, constraints, point)
    flat, frame = _flattened(body)
    if is_convex:
        low, high = _box(flat)
        return _climb(low, high, flat, frame, lines, constraints, bound, point)
    return _several_maxima(flat, frame, lines, constraints, bound, point)


@compiled_inline
def _is_certain(point: F64, lines: Lines, constraints: Constraints) -> bool:
    """Whether all constraints hold at some instants for all possible errors."""
    _predict_values(point, lines, constraints)
    for f in range(constraints.groups.shape[1]):
        if not _is_uncertain(f, constraints):
            continue
        predicted = predicted_form(f, constraints, lines.center)
        error, is_inside = error_of(f, constraints, lines.error), False
        for k in range(constraints.first[f], constraints.first[f + 1]):
            is_inside |= constraints.sets[k, 0] + error <= predicted <= constraints.sets[k, 1] - error
        if not is_inside:
            return False
    return True


@compiled_inline
def _mean(corners: F64, n: int, point: F64) -> None:
    for j in range(len(point)):
        point[j] = 0.0
        for k in range(n):
            point[j] += corners[k, j] / n


# ---------------------------------------------------------------- one form


@compiled
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
                low, high, least, most = _range(plane, body.corners, body.n)
                best = _best_prediction(f, low, high, constraints, lines.error)
                group_bound = min(group_bound, form_probability(f, best, constraints, lines.error)[0])
                if groups == 0:
                    _between(body.corners, least, most, (best - low) / (high - low) if high > low else 0.5, point)
        groups, is_alone = groups + 1, is_alone and count == 1
        bound *= group_bound
    return bound, groups, is_alone, is_convex


@compiled_inline
def _between(corners: F64, one: int, other: int, share: float, point: F64) -> None:
    for j in range(len(point)):
        point[j] = corners[one, j] + share * (corners[other, j] - corners[one, j])


@compiled_inline
def _range(plane: F64, corners: F64, n: int) -> tuple[float, float, int, int]:
    """The smallest and the largest value of a linear function over the corners, and the corners that have them."""
    dims = len(plane) - 2
    low, high, least, most = np.inf, -np.inf, ZERO, ZERO
    for k in range(n):
        value = plane[dims]
        for j in range(dims):
            value += plane[j] * corners[k, j]
        if value < low:
            low, least = value, k
        if value > high:
            high, most = value, k
    return low, high, least, most


@compiled
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


@compiled_inline
def _is_uncertain(f: int, constraints: Constraints) -> bool:
    for g in range(len(constraints.groups)):
        if constraints.groups[g, f]:
            return True
    return False


@compiled
def _in_bands(body: Body, lines: Lines, constraints: Constraints, bound: float, point: F64) -> bool:
    """Whether the bound is reached: at instants where all forms except one are certain, and that one is at its maximum.

    The instants at which a form is certain are a band between two planes. The instants are written to `point`.
    """
    dims = len(point)
    extra, plane = np.empty((2 * constraints.groups.shape[1], dims + 2)), lines.plane
    n_extra, last = ZERO, NONE
    for f in range(constraints.groups.shape[1]):
        if not _is_uncertain(f, constraints):
            continue
        if constraints.first[f + 1] - constraints.first[f] != 1:
            return False
        plane_of(f, constraints, lines, plane)
        low, high, _, _ = _range(plane, body.corners, body.n)
        error = error_of(f, constraints, lines.error)
        lower, upper = (
            constraints.sets[constraints.first[f], 0] + error,
            constraints.sets[constraints.first[f], 1] - error,
        )
        if lower > upper or low > upper or high < lower:
            if last >= 0:
                return False
            last = f
            continue
        if high > upper:
            extra[n_extra, :dims], extra[n_extra, dims] = plane[:dims], upper - plane[dims]
            extra[n_extra, dims + 1] = plane[dims + 1] + ROUNDING * (abs(upper) + error)
            n_extra += 1
        if low < lower:
            extra[n_extra, :dims], extra[n_extra, dims] = -plane[:dims], plane[dims] - lower
            extra[n_extra, dims + 1] = plane[dims + 1] + ROUNDING * (abs(lower) + error)
            n_extra += 1
    inside, n_inside = _cut(body, extra, n_extra)
    if n_inside == 0:
        return False
    if last < 0:
        _mean(inside, n_inside, point)
        return True
    plane_of(last, constraints, lines, plane)
    low, high, least, most = _range(plane, inside, n_inside)
    best = _best_prediction(last, low, high, constraints, lines.error)
    if form_probability(last, best, constraints, lines.error)[0] < bound * (1.0 - 1e-12):
        return False
    _between(inside, least, most, (best - low) / (high - low) if high > low else 0.5, point)
    return True


@compiled
def _cut(body: Body, extra: F64, count: int) -> tuple[F64, int]:
    """The corners of the intersection with more half-planes, and their number."""
    n, dims = body.n, extra.shape[1] - 2
    corners = np.empty((len(body.corners) + count + 2, dims))
    assign(corners, body.corners[:n, :dims])
    if dims == 1:
        return corners, _cut_line(corners, n, extra, count)
    if dims == 2:
        other = np.empty_like(corners)
        for k in range(count):
            n = clip(corners, n, extra[k], other)
            corners, other = other, corners
        return corners, n
    planes = np.empty((body.n_planes + count, dims + 2))
    assign(planes, body.planes[: body.n_planes])
    assign(planes[body.n_planes :], extra[:count])
    return corners, vertices(planes, len(planes), corners) if count else n


@compiled
def _cut_line(corners: F64, n: int, extra: F64, count: int) -> int:
    low, high = corners[0, 0], corners[n - 1, 0]
    for k in range(count):
        a, c = extra[k, 0], extra[k, 1]
        if a > 0.0:
            high = min(high, c / a)
        elif a < 0.0:
            low = max(low, c / a)
        elif c < 0.0:
            return 0
    corners[0, 0], corners[1, 0] = low, high
    return 2 if low <= high else 0


@compiled
def _on_segment(body: Body, lines: Lines, constraints: Constraints, is_convex: bool, point: F64) -> float:
    """The highest probability on a segment, or at a point: golden-section search around the best of equal steps."""
    steps = 8 if is_convex else 256
    at, slope = np.empty(len(point)), np.empty(len(point))
    best, top = 0.0, -1.0
    for k in range(steps + 1 if body.n > 1 else 1):
        _between(body.corners, ZERO, body.n - 1, k / steps, at)
        value = probability_at(at, lines, constraints, slope)
        if value > top:
            best, top = k / steps, value
    left, right = max(0.0, best - 1.0 / steps), min(1.0, best + 1.0 / steps)
    while right - left > 1e-10 and top < 1.0 and body.n > 1:
        one, two = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        _between(body.corners, ZERO, body.n - 1, one, at)
        first_value = probability_at(at, lines, constraints, slope)
        _between(body.corners, ZERO, body.n - 1, two, at)
        second_value = probability_at(at, lines, constraints, slope)
        if first_value >= second_value:
            right, here, value = two, one, first_value
        else:
            left, here, value = one, two, second_value
        if value > top:
            best, top = here, value
    _between(body.corners, ZERO, body.n - 1, best, point)
    return top


@compiled
def _on_edges(body: Body, lines: Lines, constraints: Constraints, point: F64) -> float:
    """The highest probability of two forms over a polygon in which they cannot both be at their maximum: on an edge.

    Inside, the gradients of the two logarithms would have to cancel out. Either they have different directions and
    never do, or the same direction, and then all points across it have the same value. Along an edge, the slope changes
    its sign once.
    """
    at, slope, best = np.empty(2), np.empty(2), np.empty(2)
    top = -1.0
    for k in range(body.n):
        after = k + 1 if k + 1 < body.n else 0
        low, high = 0.0, 1.0
        share = 0.0
        for step in range(60):
            _between(body.corners, k, after, share, at)
            value = probability_at(at, lines, constraints, slope)
            if value > top:
                top = value
                assign(best, at)
            fall = 0.0
            for j in range(2):
                fall += slope[j] * (body.corners[after, j] - body.corners[k, j])
            if fall >= 0.0:
                high = share
            else:
                low = share
            # Stop at an end of the edge from which the probability falls; otherwise bisect.
            if (step == 0 and fall >= 0.0) or (step == 1 and fall < 0.0) or abs(fall) * (high - low) < PRECISION:
                break
            share = 1.0 if step == 0 else 0.5 * (low + high)
    assign(point, best)
    return top


# ---------------------------------------------------------------- the ellipsoid method


class Frame(NamedTuple):
    """The coordinates of a flat set: instants are origin + coordinates . axes. `axes` (rank, dims) are orthonormal."""

    origin: F64
    axes: F64


@compiled
def _flattened(body: Body) -> tuple[Body, Frame]:
    """A set in coordinates in which it has a volume: its own, except if equalities make it flat.

    The ellipsoid method does not find a point of a flat set. Three corners in a plane always have an area.
    """
    dims = body.corners.shape[1]
    axes, rank = np.eye(dims), dims
    if dims > 2:
        rank = _span(body, axes)
    origin = np.zeros(dims)
    if rank == dims:
        return body, Frame(origin, np.eye(dims))
    assign(origin, body.corners[0])
    frame = Frame(origin, axes[:rank].copy())
    corners, planes, n_planes = np.empty((body.n, rank)), np.empty((body.n_planes, rank + 2)), ZERO
    for k in range(body.n):
        _to_frame(body.corners[k], frame, corners[k])
    for k in range(body.n_planes):
        low, high, _, _ = _range(body.planes[k], body.corners, body.n)
        if high - low > body.planes[k, dims + 1]:  # a plane that contains the set limits nothing
            beyond, normal = excess(body.planes[k], origin), planes[n_planes]
            for i in range(rank):
                normal[i] = 0.0
                for j in range(dims):
                    normal[i] += axes[i, j] * body.planes[k, j]
            normal[rank], normal[rank + 1] = -beyond, body.planes[k, dims + 1]
            n_planes += 1
    return Body(corners, body.n, planes, n_planes), frame


@compiled
def _span(body: Body, axes: F64) -> int:
    """Write orthonormal axes of the smallest flat space that contains a set; returns their number."""
    dims = body.corners.shape[1]
    rank, across, longest = ZERO, np.empty(dims), 0.0
    for k in range(1, body.n):
        for j in range(dims):
            longest = max(longest, abs(body.corners[k, j] - body.corners[0, j]))
    for k in range(1, body.n):
        if rank == dims:
            break
        for j in range(dims):
            across[j] = body.corners[k, j] - body.corners[0, j]
        for i in range(rank):
            along = 0.0
            for j in range(dims):
                along += across[j] * axes[i, j]
            for j in range(dims):
                across[j] -= along * axes[i, j]
        length = 0.0
        for j in range(dims):
            length += across[j] * across[j]
        length = np.sqrt(length)
        if length > _FLAT * longest:
            for j in range(dims):
                axes[rank, j] = across[j] / length
            rank += 1
    return rank


@compiled_inline
def _to_frame(point: F64, frame: Frame, coordinates: F64) -> None:
    for i in range(len(coordinates)):
        coordinates[i] = 0.0
        for j in range(len(point)):
            coordinates[i] += frame.axes[i, j] * (point[j] - frame.origin[j])


@compiled_inline
def _from_frame(coordinates: F64, frame: Frame, point: F64) -> None:
    for j in range(len(point)):
        point[j] = frame.origin[j]
        for i in range(len(coordinates)):
            point[j] += coordinates[i] * frame.axes[i, j]


@compiled
def _box(body: Body) -> tuple[F64, F64]:
    dims = body.corners.shape[1]
    low, high = np.full(dims, np.inf), np.full(dims, -np.inf)
    for k in range(body.n):
        for j in range(dims):
            low[j], high[j] = min(low[j], body.corners[k, j]), max(high[j], body.corners[k, j])
    return low, high


@compiled
def _climb(
    low: F64, high: F64, body: Body, frame: Frame, lines: Lines, constraints: Constraints, bound: float, point: F64
) -> float:
    """A local maximum of the probability and its instants, by the ellipsoid method, from a box around the set.

    An ellipsoid that contains the best point is halved, by a plane that its center violates or by the gradient of the
    logarithm at its center, and replaced by a smaller ellipsoid around that half. `low`, `high` and `body` are in the
    coordinates of the frame, `point` is not.
    """
    dims = len(low)
    x, half, factor = np.empty(dims), np.empty(dims), np.zeros((dims, dims))
    for j in range(dims):
        half[j] = max(0.5 * (high[j] - low[j]), 1e-12 * max(1.0, abs(low[j])))
        x[j], factor[j, j] = 0.5 * (high[j] + low[j]), np.sqrt(dims) * half[j]
    at, slope, rise = np.empty(len(point)), np.empty(dims), np.empty(len(point))
    top = probability_at(point, lines, constraints, rise)
    for _ in range(250 * dims):
        violated = _most_violated(x, half, body)
        if violated >= 0:
            assign(slope, body.planes[violated, :dims])
        else:
            _from_frame(x, frame, at)
            value = probability_at(at, lines, constraints, rise)
            for i in range(dims):
                slope[i] = 0.0
                for j in range(len(rise)):
                    slope[i] += frame.axes[i, j] * rise[j]
            if value > top:
                top = value
                assign(point, at)
            if top >= bound * (1.0 - 1e-13):
                break
        length = _halve(x, factor, slope)
        # The ellipsoid is so thin that rounding errors dominate.
        if not length > 1e-14 * _size(slope) * _size(half) or (violated < 0 and length < PRECISION):
            break
    return top


@compiled_inline
def _size(numbers: F64) -> float:
    most = 0.0
    for number in numbers:
        most = max(most, abs(number))
    return most


@compiled
def _most_violated(x: F64, half: F64, body: Body) -> int:
    """The plane that a point violates most; -1 if it violates none."""
    worst, violated = 1e-12, -1
    for k in range(body.n_planes):
        size = 1e-300
        for j in range(len(x)):
            size += abs(body.planes[k, j]) * half[j]
        beyond = excess(body.planes[k], x) / size
        if beyond > worst:
            worst, violated = beyond, k
    return violated


@compiled
def _halve(x: F64, factor: F64, slope: F64) -> float:
    """Replace an ellipsoid by one around its lower half; returns its old extent along the slope.

    The ellipsoid is the image of the unit ball under `factor`. Unlike `factor` times its transpose, this stays accurate
    for many halvings.
    """
    dims = len(x)
    direction = np.zeros(dims)
    length = 0.0
    for j in range(dims):
        for i in range(dims):
            direction[j] += factor[i, j] * slope[i]
        length += direction[j] * direction[j]
    length = np.sqrt(length)
    if length == 0.0:
        return 0.0
    wider, flatter = 0.5, 0.0  # the half of an interval
    if dims > 1:
        wider = dims / np.sqrt(dims * dims - 1.0)
        flatter = np.sqrt((dims - 1.0) / (dims + 1.0)) - 1.0
    for i in range(dims):
        along = 0.0
        for j in range(dims):
            along += factor[i, j] * direction[j] / length
        x[i] -= along / (dims + 1)
        for j in range(dims):
            factor[i, j] = wider * (factor[i, j] + flatter * along * direction[j] / length)
    return length


@compiled
def probability_at(point: F64, lines: Lines, constraints: Constraints, slope: F64) -> float:
    """The probability at a point; the negative gradient of its logarithm is written to `slope`."""
    _predict_values(point, lines, constraints)
    center, e = lines.center, lines.error
    slope[:] = 0.0
    product = 1.0
    for g in range(len(constraints.groups)):
        count, only = forms_of(g, constraints)
        if count == 0:
            continue
        if count == 1:
            value, derivative = form_probability(only, predicted_form(only, constraints, center), constraints, e)
            if value > 0.0:
                _add_slope(only, -derivative / value, lines, constraints, slope)
        else:
            value = joint_probability(g, center, constraints, e)
            if value > 0.0:
                _add_joint_slope(g, value, center, lines, constraints, slope)
        if value <= 0.0:
            _slope_away_from_sets(g, center, lines, constraints, slope)
            return 0.0
        product *= value
    return product


@compiled
def _add_slope(f: int, decline: float, lines: Lines, constraints: Constraints, slope: F64) -> None:
    """Add the slope of a function that declines at this rate with the predicted value of a form."""
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    slope[constraints.axis[u]] += decline * lines.rate[u]
    if v >= 0:
        slope[constraints.axis[v]] -= decline * lines.rate[v]


@compiled
def _add_joint_slope(g: int, value: float, center: F64, lines: Lines, constraints: Constraints, slope: F64) -> None:
    """The same for a group of forms, by finite differences."""
    for v in range(len(center)):
        if _is_used(v, g, constraints):
            step = 1e-8 * (_size(lines.error) + 1e-3 * abs(center[v]))
            original = center[v]
            center[v] = original + step
            after = joint_probability(g, center, constraints, lines.error)
            center[v] = original
            slope[constraints.axis[v]] += (value - after) / (step * value) * lines.rate[v]


@compiled
def _slope_away_from_sets(g: int, center: F64, lines: Lines, constraints: Constraints, slope: F64) -> None:
    """Write a slope for a point at which a group has probability 0: it points away from the sets of its forms."""
    slope[:] = 0.0
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f]:
            predicted, error = predicted_form(f, constraints, center), error_of(f, constraints, lines.error)
            low, high = (
                constraints.sets[constraints.first[f], 0] + error,
                constraints.sets[constraints.first[f + 1] - 1, 1] - error,
            )
            if predicted < low:
                _add_slope(f, -1.0, lines, constraints, slope)
            elif predicted > high:
                _add_slope(f, 1.0, lines, constraints, slope)


@compiled
def _is_used(v: int, g: int, constraints: Constraints) -> bool:
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f] and (constraints.forms[f, 0] == v or constraints.forms[f, 1] == v):
            return True
    return False


@compiled
def _several_maxima(
    body: Body, frame: Frame, lines: Lines, constraints: Constraints, bound: float, point: F64
) -> float:
    """The highest probability if there may be several local maxima; `body` is in the coordinates of the frame."""
    low, high = _box(body)
    dims = len(low)
    center, candidate, maxima, tops = np.empty(dims), np.empty(dims), np.zeros((2, dims)), np.zeros(2)
    at, slope, nearer_low, nearer_high = np.empty(len(point)), np.empty(len(point)), np.empty(dims), np.empty(dims)
    _to_frame(point, frame, center)
    for i in range(body.n):
        for j in range(i, body.n):
            for along in range(1, 4):
                for outward in range(7):
                    _between(body.corners, i, j, 0.25 * along, candidate)
                    for k in range(dims):
                        candidate[k] = center[k] + outward / 6.0 * (candidate[k] - center[k])
                    _from_frame(candidate, frame, at)
                    _keep_two(candidate, probability_at(at, lines, constraints, slope), tops, maxima, low, high)
    best, best_point = 0.0, point.copy()
    for number in range(2):
        if tops[number] > 0.0:
            _from_frame(maxima[number], frame, point)
            for k in range(dims):
                nearer_low[k] = max(low[k], maxima[number, k] - 0.25 * (high[k] - low[k]))
                nearer_high[k] = min(high[k], maxima[number, k] + 0.25 * (high[k] - low[k]))
            value = _climb(nearer_low, nearer_high, body, frame, lines, constraints, bound, point)
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
