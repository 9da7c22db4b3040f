"""The probability that a location is in an area, if both coordinates have independent errors.

The probability of a disk is the integral over x of the density of x times the probability that y is between the two
points of the circle above and below x. With x = r sin(a), these are at r cos(a) and -r cos(a): the integrand is smooth
in a, except where a coordinate is at a bend of its distribution. It is summed over the parts between these bends.

The probability of a polygon is an integral along its edges, by Green's theorem: of the probability that the true x is
to the left, times the density of y. With uniform errors it is the exact area of the polygon in the box of the errors.
If a coordinate has no error, the probability is that of the slice of the polygon at this coordinate.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled, compiled_inline
from anabranch.monitor.kernel.distributions import CUTS, NODES, WEIGHTS, ZERO, sorted_few
from anabranch.monitor.kernel.probabilities import Constraints, error_of, form_at_most, predicted_form
from anabranch.monitor.kernel.shapes import FARTHEST, NEAREST, PREDICTED, distance_from
from anabranch.monitor.kernel.zones import is_match, slice_part

#: The most bends of the distribution of a coordinate: 4 ends, and the cuts of normal errors around 5 of their centers.
_MOST_BENDS = 4 + 5 * len(CUTS)


@compiled
def area_probability(s: int, center: F64, constraints: Constraints, e: F64, slack: float) -> tuple[float, float, float]:
    """The probability that a location is in its area, and its derivatives by the predicted x and y.

    `center` has the predicted value of each value, and `e` its error; `slack` is the rounding error of coordinates.
    """
    shapes = constraints.shapes
    fx, fy = shapes.forms[s, 0], shapes.forms[s, 1]
    x = predicted_form(fx, constraints, center) - shapes.centers[s, 0]
    y = predicted_form(fy, constraints, center) - shapes.centers[s, 1]
    if shapes.first[s] < shapes.first[s + 1]:
        p, by_x, by_y = _polygon(s, x, y, constraints, e, slack)
        return (1.0 - p, -by_x, -by_y) if shapes.is_outside[s] else (p, by_x, by_y)
    p, by_x, by_y = _disk(fx, fy, x, y, shapes.distances[s, 1], constraints, e)
    if shapes.distances[s, 0] > 0.0:
        inner, inner_by_x, inner_by_y = _disk(fx, fy, x, y, shapes.distances[s, 0], constraints, e)
        p, by_x, by_y = p - inner, by_x - inner_by_x, by_y - inner_by_y
    return min(1.0, max(0.0, p)), by_x, by_y


@compiled
def _disk(
    fx: int, fy: int, x: float, y: float, radius: float, constraints: Constraints, e: F64
) -> tuple[float, float, float]:
    """The probability that a distance is at most a radius, and its derivatives by the predicted x and y."""
    ex, ey = error_of(fx, constraints, e), error_of(fy, constraints, e)
    if distance_from(x, y, ex, ey, FARTHEST) <= radius:
        return 1.0, 0.0, 0.0
    if distance_from(x, y, ex, ey, NEAREST) >= radius:
        return 0.0, 0.0, 0.0
    if ex == 0.0:
        return _across(fy, x, y, radius, constraints, e)
    if ey == 0.0:
        p, by_y, by_x = _across(fx, y, x, radius, constraints, e)
        return p, by_x, by_y
    angles = _angles(fx, fy, x, y, radius, constraints, e)
    p, by_x, by_y = 0.0, 0.0, 0.0
    for k in range(len(angles) - 1):
        half, middle = 0.5 * (angles[k + 1] - angles[k]), 0.5 * (angles[k + 1] + angles[k])
        for node in range(len(NODES) if half > 0.0 else 0):
            a = middle + half * NODES[node]
            sine, cosine = math.sin(a), math.cos(a)
            _, density = form_at_most(fx, radius * sine - x, constraints, e)
            below_top, top = form_at_most(fy, radius * cosine - y, constraints, e)
            below_bottom, bottom = form_at_most(fy, -radius * cosine - y, constraints, e)
            weight = radius * half * WEIGHTS[node] * density
            p += weight * cosine * (below_top - below_bottom)
            # The derivatives are integrals over the circle, of the joint density times the outward direction.
            by_x -= weight * sine * (top + bottom)
            by_y -= weight * cosine * (top - bottom)
    return min(1.0, max(0.0, p)), by_x, by_y


@compiled
def _across(
    f: int, exact: float, other: float, radius: float, constraints: Constraints, e: F64
) -> tuple[float, float, float]:
    """The same if one coordinate is exact: the probability, and its derivatives by the exact and by the other one."""
    half = math.sqrt((radius - exact) * (radius + exact))
    below_top, top = form_at_most(f, half - other, constraints, e)
    below_bottom, bottom = form_at_most(f, -half - other, constraints, e)
    narrowing = -exact / half if half > 0.0 else 0.0
    return below_top - below_bottom, narrowing * (top + bottom), bottom - top


@compiled
def _angles(fx: int, fy: int, x: float, y: float, radius: float, constraints: Constraints, e: F64) -> F64:
    """The ends of the parts of the angle in which the integrand is smooth, in ascending order."""
    ex = error_of(fx, constraints, e)
    angles, n = np.empty(3 * _MOST_BENDS + 5), ZERO
    first, last = _arcsine((x - ex) / radius), _arcsine((x + ex) / radius)
    # No part is longer than an eighth of the circle, for which 8 points suffice.
    for a in (first, last, -0.25 * math.pi, 0.0, 0.25 * math.pi):
        angles[n] = a
        n += 1
    bends = np.empty(_MOST_BENDS)
    for k in range(_bends(fx, constraints, e, bends)):
        angles[n] = _arcsine((x + bends[k]) / radius)
        n += 1
    for k in range(_bends(fy, constraints, e, bends)):
        a = 0.5 * math.pi - _arcsine(abs(y + bends[k]) / radius)
        angles[n], angles[n + 1] = -a, a
        n += 2
    for k in range(n):
        angles[k] = min(max(angles[k], first), last)
    return sorted_few(angles, n)


@compiled_inline
def _arcsine(share: float) -> float:
    return math.asin(min(max(share, -1.0), 1.0))


@compiled
def _bends(f: int, constraints: Constraints, e: F64, bends: F64) -> int:
    """Write where the distribution of a form bends, relative to its prediction; returns their number."""
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    one, two = e[u], e[v] if v >= 0 else 0.0
    spread_one, spread_two = constraints.spreads[u, 0], constraints.spreads[v, 0] if v >= 0 else 0.0
    bends[0], bends[1], bends[2], bends[3] = one + two, one - two, two - one, -one - two
    n = ZERO + 4
    for center, spread in (
        (0.0, math.hypot(spread_one, spread_two)), (one, spread_two), (-one, spread_two), (two, spread_one),
        (-two, spread_one),
    ):  # fmt: skip
        for k in range(len(CUTS) if spread > 0.0 else 0):
            if abs(center + CUTS[k] * spread) < one + two:
                bends[n] = center + CUTS[k] * spread
                n += 1
    return n


# ---------------------------------------------------------------- polygons


@compiled
def _polygon(s: int, x: float, y: float, constraints: Constraints, e: F64, slack: float) -> tuple[float, float, float]:
    """The probability that a location is in a polygon, and its derivatives by the predicted x and y."""
    shapes = constraints.shapes
    fx, fy = shapes.forms[s, 0], shapes.forms[s, 1]
    is_exact_x, is_exact_y = error_of(fx, constraints, e) == 0.0, error_of(fy, constraints, e) == 0.0
    if is_exact_x and is_exact_y:
        is_inside = is_match(s, x, y, 0.0, 0.0, PREDICTED, slack, shapes) != shapes.is_outside[s]
        return 1.0 if is_inside else 0.0, 0.0, 0.0
    p, by_x, by_y = 0.0, 0.0, 0.0
    for k in range(shapes.first[s], shapes.first[s + 1]):
        x0, y0, x1, y1 = shapes.edges[k, 0] - x, shapes.edges[k, 1] - y, shapes.edges[k, 2] - x, shapes.edges[k, 3] - y
        if is_exact_y:
            more, more_by_x, more_by_y = _sliced(fx, slice_part(x0, y0, x1, y1, slack), constraints, e)
        elif is_exact_x:  # with the axes exchanged, the polygon is to the left of an edge that runs backwards
            more, more_by_y, more_by_x = _sliced(fy, slice_part(y1, x1, y0, x0, slack), constraints, e)
        else:
            more, more_by_x, more_by_y = _along(fx, fy, x0, y0, x1, y1, constraints, e)
        p, by_x, by_y = p + more, by_x + more_by_x, by_y + more_by_y
    return min(1.0, max(0.0, p)), by_x, by_y


@compiled
def _sliced(f: int, part: tuple[float, float, float], constraints: Constraints, e: F64) -> tuple[float, float, float]:
    """The signed probability of the part of an edge in a slice, and its derivatives by the predicted u and v."""
    begin, end, tilt = part
    p, by_u = 0.0, 0.0
    for sign, at in ((-1.0, begin), (1.0, end)):
        if at > -np.inf:
            below, density = form_at_most(f, at, constraints, e)
            p, by_u = p + sign * below, by_u - sign * density
    return p, by_u, -by_u * tilt


@compiled
def _along(
    fx: int, fy: int, x0: float, y0: float, x1: float, y1: float, constraints: Constraints, e: F64
) -> tuple[float, float, float]:
    """The integral along an edge, from bend to bend; coordinates are relative to the prediction."""
    shares, n = np.empty(2 * _MOST_BENDS + 2), ZERO + 2
    shares[0], shares[1] = 0.0, 1.0
    bends = np.empty(_MOST_BENDS)
    for f, start, end in ((fx, x0, x1), (fy, y0, y1)):
        for k in range(_bends(f, constraints, e, bends) if start != end else 0):
            shares[n] = min(max((bends[k] - start) / (end - start), 0.0), 1.0)
            n += 1
    shares = sorted_few(shares, n)
    p, by_x, by_y = 0.0, 0.0, 0.0
    for k in range(n - 1):
        half, middle = 0.5 * (shares[k + 1] - shares[k]), 0.5 * (shares[k + 1] + shares[k])
        for node in range(len(NODES) if half > 0.0 else 0):
            at = middle + half * NODES[node]
            below, density_x = form_at_most(fx, x0 + at * (x1 - x0), constraints, e)
            _, density_y = form_at_most(fy, y0 + at * (y1 - y0), constraints, e)
            weight = half * WEIGHTS[node] * density_y
            p += weight * (y1 - y0) * below
            by_x -= weight * (y1 - y0) * density_x
            by_y += weight * (x1 - x0) * density_x
    return p, by_x, by_y
