"""When the probability reaches a level: the range of the latest instant of all such points of a convex set.

If each form has one interval, the points that reach the level are a convex set, because the logarithm of the
probability is concave. The set is cut to this set by planes. First by bands: where each form alone reaches the level.
This is exact with one form, or if the level is 1. Then, as long as an extreme corner does not reach the level, by the
tangent of the logarithm near that corner.

If a form has several intervals, or a polygon is not convex, the probability may reach the level several times. With one
instant, it is evaluated in small steps from each end. With several, the range is found by bisection: of the latest
instant up to which, or from which on, the highest probability reaches the level.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.curves import is_contact, outline, outside_curve
from anabranch.monitor.kernel.distributions import ZERO, sorted_few
from anabranch.monitor.kernel.ellipsoid import PRECISION
from anabranch.monitor.kernel.highest import SMALL_STEPS, highest, is_certain
from anabranch.monitor.kernel.lines import Lines, plane_of, probability_at
from anabranch.monitor.kernel.locations import are_convex, has_weighed_shape
from anabranch.monitor.kernel.polygons import (
    ROUNDING,
    Body,
    cut,
    earliest_in_plane,
    excess,
    extent,
    latest,
    latest_of,
)
from anabranch.monitor.kernel.probabilities import Constraints, error_of, form_probability, has_choices, is_uncertain

#: The most tangents per extreme. Each halves the distance at worst, and squares it if the boundary is smooth.
_MOST_CUTS = 40
#: A probability that is below the level by this much reaches it: the error of an integral.
_ERROR = 1e-13
#: The steps of a bisection; the last is a rounding error of an instant.
_STEPS = 48


@compiled_uncounted
def certain_range(
    body: Body, lines: Lines, constraints: Constraints, level: float, top: float, point: F64, interval: F64
) -> tuple[float, float]:
    """The range of the latest instant of the points of a set that reach a level; NaN if there are none.

    `top` is the highest probability, which `point` has, and `interval` is the range of the latest instant of the set.
    """
    if len(constraints.groups) == 0 and not has_weighed_shape(constraints):
        return interval[0], interval[1]
    if top < level - PRECISION:
        return np.nan, np.nan
    if top < level:
        begin = end = latest_of(point)
    elif _has_one_interval_each(constraints) and are_convex(constraints):
        begin, end = _cut_to_level(body, lines, constraints, level, point)
    elif len(point) == 1:
        begin, end = _scanned(lines, constraints, level, point[0], interval)
    else:
        begin, end = _bisected(body, lines, constraints, level, point, interval)
    # Rounding errors, and points on the other side of the diagonal only, must not move it out of the interval.
    return min(max(begin, interval[0]), interval[1]), max(min(end, interval[1]), interval[0])


@compiled
def curved_interval(body: Body, lines: Lines, constraints: Constraints, middle: F64) -> tuple[float, float]:
    """The range of the latest instant of the points of a polygon that are inside a curve; `middle` is one of them."""
    if is_contact(middle, lines, constraints):  # tangents would find it up to the root of a rounding error only
        boundary = outline(body.corners[: body.n], lines, constraints)
        return earliest_in_plane(boundary, len(boundary)), latest(boundary, len(boundary))
    return _cut_to_level(body, lines, constraints, 0.0, middle)


@compiled_inline
def _has_one_interval_each(constraints: Constraints) -> bool:
    if has_choices(constraints):
        return False
    for f in range(constraints.groups.shape[1]):
        if is_uncertain(f, constraints) and constraints.first[f + 1] - constraints.first[f] != 1:
            return False
    return True


# ---------------------------------------------------------------- cutting planes


@compiled
def _cut_to_level(body: Body, lines: Lines, constraints: Constraints, level: float, point: F64) -> tuple[float, float]:
    """The range if the points that reach the level are a convex set; all points reach a level of 0.

    The earliest of the latest instants is the least coordinate of an axis, among the points at which this axis is the
    latest. The first planes express that; the others are shared by all extremes.
    """
    dims = len(point)
    planes = np.zeros((dims - 1 + 2 * constraints.groups.shape[1] + 2 * dims * _MOST_CUTS, dims + 2))
    n = _bands(body, lines, constraints, level, planes, ZERO + dims - 1) if level > 0.0 else ZERO + dims - 1
    begin, end = np.inf, -np.inf
    for axis in range(dims):
        end, n = _extreme(body, planes, n, axis, 1.0, end, lines, constraints, level, point)
        for row in range(dims - 1):
            other = row if row < axis else row + 1
            # The first plane is the end of a prediction: it has the slack of an instant.
            planes[row, other], planes[row, axis], planes[row, dims + 1] = 1.0, -1.0, body.planes[0, dims + 1]
        farthest, n = _extreme(body, planes, n, axis, -1.0, -begin, lines, constraints, level, point)
        begin = -farthest
        for row in range(dims - 1):
            planes[row] = 0.0
    return (begin, end) if begin <= end else (latest_of(point), latest_of(point))


@compiled_uncounted
def _bands(body: Body, lines: Lines, constraints: Constraints, level: float, planes: F64, n: int) -> int:
    """Add the planes between which each form alone reaches a level; returns the number of planes."""
    dims, plane = planes.shape[1] - 2, lines.plane
    for f in range(constraints.groups.shape[1]):
        if not is_uncertain(f, constraints):
            continue
        plane_of(f, constraints, lines, plane)
        low, high, _, _ = extent(plane, body.corners, body.n)
        lower, upper = _band(f, level, constraints, lines.error)
        for side in range(2):
            sign, end = 2.0 * side - 1.0, upper if side == 1 else lower
            if (high if side == 1 else -low) > sign * end:
                for j in range(dims):
                    planes[n, j] = sign * plane[j]
                planes[n, dims] = sign * (end - plane[dims])
                planes[n, dims + 1] = plane[dims + 1] + ROUNDING * (abs(end) + error_of(f, constraints, lines.error))
                n += 1
    return n


@compiled_uncounted
def _band(f: int, level: float, constraints: Constraints, e: F64) -> tuple[float, float]:
    """The predicted values with which a form reaches a level. Errors are symmetric, and so is the band."""
    lower, upper = constraints.sets[constraints.first[f], 0], constraints.sets[constraints.first[f], 1]
    if lower == -np.inf and upper == np.inf:
        return lower, upper
    if upper == np.inf:
        return _end_of_band(f, level, lower + error_of(f, constraints, e), -1.0, constraints, e), np.inf
    if lower == -np.inf:
        return -np.inf, _end_of_band(f, level, upper - error_of(f, constraints, e), 1.0, constraints, e)
    middle = 0.5 * (lower + upper)
    end = _end_of_band(f, level, max(middle, upper - error_of(f, constraints, e)), 1.0, constraints, e)
    return (2.0 * middle - end, end) if end > upper - error_of(f, constraints, e) else (lower + (upper - end), end)


@compiled_uncounted
def _end_of_band(f: int, level: float, start: float, sign: float, constraints: Constraints, e: F64) -> float:
    """Where the probability of a form falls below a level, from `start` on in a direction: by Newton's method.

    `inside` and `outside` enclose the end, and a step that leaves them is replaced by a bisection.
    """
    error = error_of(f, constraints, e)
    inside, outside = start, start + 2.0 * sign * error
    if level >= 1.0 or form_probability(f, start, constraints, e)[0] <= level:
        return start
    at = start + sign * error
    for _ in range(100):
        value, derivative = form_probability(f, at, constraints, e)
        if value >= level:
            inside = at
        else:
            outside = at
        following = at - (value - level) / derivative if derivative != 0.0 else outside
        if not (min(inside, outside) <= following <= max(inside, outside)):
            following = 0.5 * (inside + outside)
        if abs(following - at) <= 4e-16 * (abs(at) + error):  # one or two roundings
            break
        at = following
    return at


@compiled
def _extreme(
    body: Body, planes: F64, n: int, axis: int, sign: float, known: float, lines: Lines, constraints: Constraints,
    level: float, point: F64,
) -> tuple[float, int]:  # fmt: skip
    """The largest `sign` times a coordinate of a point that reaches a level, or `known`, if that is larger.

    Tangents are added to `planes`; also returns the number of planes.
    """
    dims = len(point)
    corner, at, slope, scratch = np.empty(dims), np.empty(dims), np.empty(dims), np.empty((2, dims))
    corners, count = cut(body, planes, n)
    for _ in range(_MOST_CUTS):
        farthest = -np.inf
        for k in range(count):
            if sign * corners[k, axis] > farthest:
                farthest = sign * corners[k, axis]
                assign(corner, corners[k])
        if farthest <= known:
            return known, n
        assign(at, corner)
        if level > 0.0 and probability_at(corner, lines, constraints, slope) < level - _ERROR:
            below = math.log(_near_level(point, at, lines, constraints, level, slope, scratch) / level)
        else:
            below = -outside_curve(corner, lines, constraints, slope)
            if below >= 0.0:
                break
        n = _add_tangent(at, slope, below, planes, n)
        if excess(planes[n - 1], corner) <= planes[n - 1, dims + 1]:  # rounding errors dominate
            break
        if dims > 2:
            corners, count = cut(body, planes, n)
        else:
            corners, count = cut(Body(corners, count, body.planes, body.n_planes), planes[n - 1 : n], ZERO + 1)
    return farthest, n


@compiled_uncounted
def _near_level(
    inside: F64, outside: F64, lines: Lines, constraints: Constraints, level: float, slope: F64, scratch: F64
) -> float:
    """Move a point below the level towards one that reaches it, until its probability is at least half the level.

    Far from the set, the probability may be 0 and has no logarithm. Returns the probability of the moved point.
    """
    nearest, middle = scratch[0], scratch[1]
    assign(nearest, inside)
    value = probability_at(outside, lines, constraints, slope)
    for _ in range(_STEPS):
        if 0.5 * level <= value < level:
            break
        for j in range(len(middle)):
            middle[j] = 0.5 * (nearest[j] + outside[j])
        value = probability_at(middle, lines, constraints, slope)
        assign(nearest if value >= level else outside, middle)
    return min(max(value, 1e-300), level)


@compiled_inline
def _add_tangent(at: F64, slope: F64, below: float, planes: F64, n: int) -> int:
    """Add the plane beyond which the tangent at a point is below the level; returns the number of planes.

    `slope` is the negative gradient of the logarithm, and `below` (less than 0) the logarithm relative to the level. Or
    `slope` is the gradient of a distance, and `below` is by how much the distance is too large, negated.
    """
    dims = len(at)
    total, size = below, abs(below)
    for j in range(dims):
        planes[n, j] = slope[j]
        total += slope[j] * at[j]
        size += abs(slope[j] * at[j])
    planes[n, dims], planes[n, dims + 1] = total, ROUNDING * size
    return n + 1


# ---------------------------------------------------------------- several maxima, one instant


@compiled
def _scanned(lines: Lines, constraints: Constraints, level: float, point: float, interval: F64) -> tuple[float, float]:
    """The range of the instants that reach the level; `point` is one of them."""
    instants = _instants(lines, constraints, interval)
    begin = _first_reached(instants, point, lines, constraints, level)
    return begin, _first_reached(instants[::-1].copy(), point, lines, constraints, level)


@compiled
def _instants(lines: Lines, constraints: Constraints, interval: F64) -> F64:
    """Instants of an interval, in order: small steps, and those at which a short maximum may be.

    A form is most probable in the middle of each of its intervals. A coordinate without error may be on an edge of a
    polygon for an instant.
    """
    shapes, plane = constraints.shapes, lines.plane
    instants = np.empty(SMALL_STEPS + 1 + 3 * len(constraints.sets) + 2 * len(shapes.edges))
    n = ZERO
    for k in range(SMALL_STEPS + 1):
        instants[n] = interval[0] + (interval[1] - interval[0]) * k / SMALL_STEPS
        n += 1
    for f in range(constraints.groups.shape[1]):
        plane_of(f, constraints, lines, plane)
        error = error_of(f, constraints, lines.error)
        for k in range(constraints.first[f], constraints.first[f + 1]):
            low, high = constraints.sets[k, 0] + error, constraints.sets[k, 1] - error
            for number in (low, 0.5 * (low + high), high):
                n = _add_instant(number, plane, interval, instants, n)
    for s in range(len(shapes.forms)):
        for axis in range(2):
            plane_of(shapes.forms[s, axis], constraints, lines, plane)
            if error_of(shapes.forms[s, axis], constraints, lines.error) == 0.0:
                for k in range(shapes.first[s], shapes.first[s + 1]):
                    n = _add_instant(shapes.edges[k, axis], plane, interval, instants, n)
    return sorted_few(instants, n)


@compiled_inline
def _add_instant(number: float, plane: F64, interval: F64, instants: F64, n: int) -> int:
    """Add the instant at which a form has a value, if it is in the interval; returns the number of instants."""
    if plane[0] != 0.0 and abs(number) < np.inf:
        instant = (number - plane[1]) / plane[0]
        if interval[0] < instant < interval[1]:
            instants[n] = instant
            n += 1
    return n


@compiled
def _first_reached(instants: F64, inside: float, lines: Lines, constraints: Constraints, level: float) -> float:
    """The first instant that reaches the level, on the way along some instants to `inside`, which reaches it."""
    at, no_slope = np.empty(1), np.empty(0)
    outside = instants[0]
    for instant in instants:
        if (instant - inside) * (instants[0] - inside) <= 0.0:
            break
        at[0] = instant
        if reaches(at, lines, constraints, level, no_slope):
            inside = instant
            break
        outside = instant
    for _ in range(_STEPS):
        at[0] = 0.5 * (inside + outside)
        if at[0] in (inside, outside):
            break
        if reaches(at, lines, constraints, level, no_slope):
            inside = at[0]
        else:
            outside = at[0]
    return inside


@compiled_uncounted
def reaches(point: F64, lines: Lines, constraints: Constraints, level: float, no_slope: F64) -> bool:
    """Whether the probability at a point reaches a level, up to the error of an integral.

    Where the probability approaches 1 slowly, such an error would move the range. So level 1 needs certainty.
    `no_slope` is an empty array.
    """
    value = probability_at(point, lines, constraints, no_slope)
    if value >= level or value < level - _ERROR:
        return value >= level
    return level < 1.0 or has_choices(constraints) or is_certain(point, lines, constraints)


# ---------------------------------------------------------------- several maxima, several instants


@compiled
def _bisected(
    body: Body, lines: Lines, constraints: Constraints, level: float, point: F64, interval: F64
) -> tuple[float, float]:
    """The range by bisection: the first latest instant up to which the level is reached, the last from which it is."""
    dims = len(point)
    planes = np.zeros((dims, dims + 2))
    for j in range(dims):
        planes[j, j], planes[j, dims + 1] = 1.0, body.planes[0, dims + 1]
    begin = _reached_until(body, planes, dims, 1.0, latest_of(point), interval[0], lines, constraints, level)
    end = -np.inf
    for j in range(dims):
        planes[0] = 0.0
        planes[0, j], planes[0, dims + 1] = -1.0, body.planes[0, dims + 1]
        end = max(end, _reached_until(body, planes, 1, -1.0, point[j], interval[1], lines, constraints, level))
    return begin, end


@compiled
def _reached_until(
    body: Body, planes: F64, count: int, sign: float, inside: float, outside: float, lines: Lines,
    constraints: Constraints, level: float,
) -> float:  # fmt: skip
    """The bound of half-planes, `sign` times it, at which the set within them ceases to reach the level."""
    dims = planes.shape[1] - 2
    part_planes, at, bound = np.empty((body.n_planes + count, dims + 2)), np.empty(dims), outside
    assign(part_planes, body.planes[: body.n_planes])
    for _ in range(_STEPS):
        for k in range(count):
            planes[k, dims] = sign * bound
        assign(part_planes[body.n_planes :], planes[:count])
        corners, n = cut(body, planes, count)
        if n and highest(Body(corners, n, part_planes, len(part_planes)), lines, constraints, level, at) >= level:
            inside = bound
        else:
            outside = bound
        if inside == outside:
            break
        bound = 0.5 * (inside + outside)
    return inside
