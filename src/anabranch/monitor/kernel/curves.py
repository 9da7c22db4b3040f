"""Matching instants with a curved boundary: those of a disk, in which the difference of two locations must be.

The locations have different instants, so the difference is a linear function of both, and the matching instants are a
convex set: a conic, or one with a few straight parts. It is known by its chords, which are exact. The region of an
answer is its intersection with a polygon, that of all other constraints.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64, Bools
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.distributions import NONE, ZERO
from anabranch.monitor.kernel.lines import Lines, add_slope, plane_of, predict_values
from anabranch.monitor.kernel.polygons import ROUNDING, Body, between, counter_clockwise, excess, mean
from anabranch.monitor.kernel.probabilities import Constraints, error_of, predicted_form
from anabranch.monitor.kernel.shapes import NEAREST, PREDICTED, chord, distance_from, which_point

#: How far a boundary may be from the curve, in units of time, and as a share of the extent of the region.
TOLERANCE, RELATIVE_TOLERANCE = 0.9e-6, 1e-9
#: The most points between two ends of an arc that wait for their part of it.
_MOST_WAITING = 64


@compiled_uncounted
def curve_of(constraints: Constraints) -> int:
    """The curved shape of a query; -1 if it has none. Two names have one difference of locations."""
    for s in range(len(constraints.shapes.is_curved)):
        if constraints.shapes.is_curved[s]:
            return s
    return NONE


@compiled_uncounted
def _slack(s: int, lines: Lines, constraints: Constraints) -> float:
    """The rounding error of distances."""
    dims, total = len(lines.plane) - 2, ROUNDING * constraints.shapes.distances[s, 1]
    for k in range(2):
        f = constraints.shapes.forms[s, k]
        plane_of(f, constraints, lines, lines.plane)
        total += lines.plane[dims + 1] + ROUNDING * error_of(f, constraints, lines.error)
    return total


@compiled
def _chord(s: int, point: F64, direction: F64, lines: Lines, constraints: Constraints) -> tuple[float, float]:
    """Where on the line from a point in a direction the instants match; the first is above the second if nowhere."""
    shapes = constraints.shapes
    x, dx, ex = _coordinate(shapes.forms[s, 0], point, direction, lines, constraints)
    y, dy, ey = _coordinate(shapes.forms[s, 1], point, direction, lines, constraints)
    which, slack = which_point(ex, ey, shapes.widen), _slack(s, lines, constraints)
    return chord(x, dx, y, dy, ex, ey, which, shapes.distances[s, 1], 1.0, slack)


@compiled_inline
def _coordinate(
    f: int, point: F64, direction: F64, lines: Lines, constraints: Constraints
) -> tuple[float, float, float]:
    """A coordinate on the line from a point in a direction: its prediction at the point, its rate, and its error."""
    plane = lines.plane
    plane_of(f, constraints, lines, plane)
    at = plane[2] + plane[0] * point[0] + plane[1] * point[1]
    return at, plane[0] * direction[0] + plane[1] * direction[1], error_of(f, constraints, lines.error)


@compiled_uncounted
def outside_curve(point: F64, lines: Lines, constraints: Constraints, slope: F64) -> float:
    """By how much the distance at some instants is too large; 0 if this is a rounding error, and below 0 inside.

    The gradient of the distance is written to `slope`. For a query without a curve, all instants are inside.
    """
    s = curve_of(constraints)
    if s < 0:
        return -1.0
    shapes = constraints.shapes
    predict_values(point, lines, constraints)
    fx, fy = shapes.forms[s, 0], shapes.forms[s, 1]
    x, y = predicted_form(fx, constraints, lines.center), predicted_form(fy, constraints, lines.center)
    ex, ey = error_of(fx, constraints, lines.error), error_of(fy, constraints, lines.error)
    which = which_point(ex, ey, shapes.widen)
    distance = distance_from(x, y, ex, ey, which)
    slope[:] = 0.0
    if distance > 0.0:
        far_x, far_y = max(abs(x) - which * ex, 0.0), max(abs(y) - which * ey, 0.0)
        add_slope(fx, math.copysign(far_x, x) / distance, lines, constraints, slope)
        add_slope(fy, math.copysign(far_y, y) / distance, lines, constraints, slope)
    beyond = distance - shapes.distances[s, 1]
    return beyond if beyond > _slack(s, lines, constraints) else min(beyond, 0.0)


@compiled
def is_contact(middle: F64, lines: Lines, constraints: Constraints) -> bool:
    """Whether a region only touches the curve, because a point in its interior is on the curve."""
    slope = np.empty(2)
    return outside_curve(middle, lines, constraints, slope) >= -_slack(curve_of(constraints), lines, constraints)


# ---------------------------------------------------------------- whether there is a region


@compiled
def trim(body: Body, is_open: Bools, lines: Lines, constraints: Constraints, middle: F64) -> int:
    """Whether a polygon has instants inside the curve: returns its number of corners, or 0 if it has none.

    Writes a point of the region to `middle`, one in its interior if it has one. The corners of a segment are moved to
    the ends of its part inside the curve.
    """
    s = curve_of(constraints)
    n = body.n
    if n <= 2:
        n = _trim_segment(s, body, lines, constraints)
        mean(body.corners, n, middle)
    elif not _find_middle(s, body, lines, constraints, middle):
        return ZERO
    if n == 0:
        return ZERO
    which = which_point(
        error_of(constraints.shapes.forms[s, 0], constraints, lines.error),
        error_of(constraints.shapes.forms[s, 1], constraints, lines.error),
        constraints.shapes.widen,
    )
    excludes = constraints.shapes.is_open[s, 1] if which == PREDICTED else which == NEAREST
    if excludes and is_contact(middle, lines, constraints):
        return ZERO
    for k in range(body.n_planes):
        if is_open[k] and excess(body.planes[k], middle) >= -body.planes[k, 3]:
            return ZERO
    return n


@compiled
def _trim_segment(s: int, body: Body, lines: Lines, constraints: Constraints) -> int:
    corners, direction = body.corners, np.empty(2)
    for j in range(2):
        direction[j] = corners[body.n - 1, j] - corners[0, j]
    first, last = _chord(s, corners[0], direction, lines, constraints)
    first, last = max(first, 0.0), min(last, 1.0)
    if first > last:
        return ZERO
    for j in range(2):
        start = corners[0, j]
        corners[0, j], corners[body.n - 1, j] = start + first * direction[j], start + last * direction[j]
    return ZERO + (1 if first == last else body.n)


@compiled
def _find_middle(s: int, body: Body, lines: Lines, constraints: Constraints, middle: F64) -> bool:
    """Write a point inside a polygon and a curve to `middle`; returns whether there is one."""
    direction, count = np.empty(2), 0
    middle[:] = 0.0
    for k in range(body.n):
        first, last = _inside_edge(s, body.corners, body.n, k, lines, constraints)
        for share in (first, last):
            if first <= last:
                between(body.corners, k, k + 1 if k + 1 < body.n else 0, share, direction)
                middle[0], middle[1] = middle[0] + direction[0], middle[1] + direction[1]
                count += 1
    if count == 0:
        return _center(s, body, lines, constraints, middle)
    # The mean of points on edges may be on an edge: half-way inwards it is not.
    inner = np.empty(2)
    mean(body.corners, body.n, inner)
    for j in range(2):
        middle[j] /= count
        direction[j] = inner[j] - middle[j]
    last = min(_chord(s, middle, direction, lines, constraints)[1], 2.0)
    for k in range(body.n_planes):
        along = body.planes[k, 0] * direction[0] + body.planes[k, 1] * direction[1]
        if along > 0.0:
            last = min(last, -excess(body.planes[k], middle) / along)
    for j in range(2):
        middle[j] += 0.5 * max(last, 0.0) * direction[j]
    return True


@compiled
def _inside_edge(s: int, corners: F64, n: int, k: int, lines: Lines, constraints: Constraints) -> tuple[float, float]:
    """The part of the edge from corner k on that is inside the curve, as shares of the edge."""
    after, direction = k + 1 if k + 1 < n else 0, np.empty(2)
    for j in range(2):
        direction[j] = corners[after, j] - corners[k, j]
    first, last = _chord(s, corners[k], direction, lines, constraints)
    return max(first, 0.0), min(last, 1.0)


@compiled
def _center(s: int, body: Body, lines: Lines, constraints: Constraints, middle: F64) -> bool:
    """Write the instants at which the predicted difference is 0 to `middle`; returns whether they are in the region.

    A curve that meets no edge of a polygon is inside it or outside, with its center.
    """
    one, two = np.empty(4), np.empty(4)
    plane_of(constraints.shapes.forms[s, 0], constraints, lines, one)
    plane_of(constraints.shapes.forms[s, 1], constraints, lines, two)
    determinant = one[0] * two[1] - one[1] * two[0]
    if determinant == 0.0:
        return False
    middle[0] = (one[1] * two[2] - two[1] * one[2]) / determinant
    middle[1] = (two[0] * one[2] - one[0] * two[2]) / determinant
    for k in range(body.n_planes):
        if excess(body.planes[k], middle) > body.planes[k, 3]:
            return False
    slope = np.empty(2)
    return outside_curve(middle, lines, constraints, slope) <= 0.0


# ---------------------------------------------------------------- the boundary


@compiled
def outline(corners: F64, lines: Lines, constraints: Constraints) -> F64:
    """The boundary of a region: a polygon with corners on the curve, counter-clockwise from the smallest.

    `corners` are those of the polygon that the curve cuts.
    """
    s, n = curve_of(constraints), len(corners)
    if n <= 2:
        return corners.copy()
    extent = 0.0
    for k in range(n):
        for j in range(2):
            extent = max(extent, abs(corners[k, j] - corners[0, j]))
    tolerance = max(TOLERANCE, RELATIVE_TOLERANCE * extent)
    ends, count = _ends_of_arcs(s, corners, lines, constraints)
    points, size = np.empty((64, 2)), ZERO
    for k in range(count):
        after = k + 1 if k + 1 < count else 0
        for j in range(2):
            points, size = _appended(points, size, ends[k, j], ROUNDING * extent)
        points, size = _add_arc(s, ends[k, 1], ends[after, 0], tolerance, lines, constraints, points, size)
    while size > 1 and max(abs(points[size - 1, 0] - points[0, 0]), abs(points[size - 1, 1] - points[0, 1])) <= (
        ROUNDING * extent
    ):
        size -= 1
    counter_clockwise(points, size)
    return points[:size].copy()


@compiled
def _ends_of_arcs(s: int, corners: F64, lines: Lines, constraints: Constraints) -> tuple[F64, int]:
    """The straight parts of a boundary, (n, 2, 2): the first and the last point of each. Arcs are between them.

    A curve that meets no edge is cut at two points, which are straight parts without a length.
    """
    n = len(corners)
    ends, count = np.empty((max(n, 2), 2, 2)), ZERO
    for k in range(n):
        first, last = _inside_edge(s, corners, n, k, lines, constraints)
        if first <= last:
            between(corners, k, k + 1 if k + 1 < n else 0, first, ends[count, 0])
            between(corners, k, k + 1 if k + 1 < n else 0, last, ends[count, 1])
            count += 1
    if count > 0:
        return ends, count
    middle, direction = np.empty(2), np.array([1.0, 0.0])
    planes = np.empty((0, 4))
    _center(s, Body(corners, n, planes, ZERO), lines, constraints, middle)
    first, last = _chord(s, middle, direction, lines, constraints)
    for j in range(2):
        for end in range(2):
            ends[0, end, j], ends[1, end, j] = middle[j] + first * direction[j], middle[j] + last * direction[j]
    return ends, ZERO + 2


@compiled
def _add_arc(
    s: int, start: F64, end: F64, tolerance: float, lines: Lines, constraints: Constraints, points: F64, size: int
) -> tuple[F64, int]:
    """Add the points of an arc between two points, so that its parts are nowhere far from the curve.

    The curve is convex. Where it is `far` from the middle of a part, it is nowhere farther than twice that from the
    part.
    """
    waiting, n_waiting = np.empty((_MOST_WAITING, 2)), 1
    here, middle, direction = start.copy(), np.empty(2), np.empty(2)
    assign(waiting[0], end)
    while n_waiting > 0:
        there = waiting[n_waiting - 1]
        direction[0], direction[1] = there[1] - here[1], here[0] - there[0]  # to the right, which is outside
        length, far = math.hypot(direction[0], direction[1]), 0.0
        if length > tolerance:
            for j in range(2):
                middle[j], direction[j] = 0.5 * (here[j] + there[j]), direction[j] / length
            far = max(_chord(s, middle, direction, lines, constraints)[1], 0.0)
        if 2.0 * far <= tolerance or n_waiting == _MOST_WAITING:
            points, size = _appended(points, size, there, 0.0)
            assign(here, there)
            n_waiting -= 1
        else:
            for j in range(2):
                waiting[n_waiting, j] = middle[j] + far * direction[j]
            n_waiting += 1
    return points, size


@compiled
def _appended(points: F64, size: int, point: F64, same: float) -> tuple[F64, int]:
    """The points with one more, except if it is the last one."""
    if size > 0 and max(abs(point[0] - points[size - 1, 0]), abs(point[1] - points[size - 1, 1])) <= same:
        return points, size
    if size == len(points):
        larger = np.empty((2 * size, 2))
        assign(larger, points)
        points = larger
    assign(points[size], point)
    return points, size + 1
