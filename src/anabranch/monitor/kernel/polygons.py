"""Convex sets of instants: intersections of half-planes in one to four dimensions.

A half-plane is a row of `planes`: the coefficients a, then c, for a . x <= c, then its *slack*. Corners are rows of an
array.

The slack of a half-plane is how far rounding errors can move a point from it: `ROUNDING` times the sum of the
magnitudes of everything that a . x - c is computed from. A point that violates it by at most the slack is on it. So a
set may be a segment or a point: `=` allows the two sides of one line, and leaves what is on that line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.distributions import ZERO

#: A difference that is this much smaller than its operands is a rounding error.
ROUNDING = 1e-12
#: The largest share of the magnitude of an instant that is taken as its rounding error, however flat its line is.
ILL_CONDITIONED = 1e-9


class Body(NamedTuple):
    """A convex set: the first `n` rows of `corners` and the first `n_planes` rows of `planes`."""

    corners: F64
    n: int
    planes: F64
    n_planes: int


@compiled_inline
def excess(plane: F64, point: F64) -> float:
    """By how much a point violates a half-plane."""
    total = -plane[len(point)]
    for k in range(len(point)):
        total += plane[k] * point[k]
    return total


@compiled_inline
def is_beyond(corners: F64, n: int, plane: F64) -> bool:
    """Whether any corner of a polygon violates a half-plane by more than its slack."""
    for k in range(n):
        if plane[0] * corners[k, 0] + plane[1] * corners[k, 1] - plane[2] > plane[3]:
            return True
    return False


@compiled_inline
def clip(corners: F64, n: int, plane: F64, out: F64) -> int:
    """Write the intersection of a half-plane and a convex polygon to `out`; returns its number of corners.

    The polygon has two corners if it is a segment, and one if it is a point. `here` and `there` are the violations at
    two successive corners. If no corner is inside, the intersection is the side on the plane.
    """
    n_out, slack, is_inside = ZERO, plane[3], False
    if n == 0:
        return n_out
    there = plane[0] * corners[0, 0] + plane[1] * corners[0, 1] - plane[2]
    for k in range(n):
        after = k + 1 if k + 1 < n else 0
        here = there
        there = plane[0] * corners[after, 0] + plane[1] * corners[after, 1] - plane[2]
        if here <= slack:
            out[n_out, 0], out[n_out, 1] = corners[k, 0], corners[k, 1]
            n_out += 1
            is_inside |= here < -slack
        if ((here < -slack and there > slack) or (there < -slack and here > slack)) and not (n == 2 and k == 1):
            share = here / (here - there)
            out[n_out, 0] = corners[k, 0] + share * (corners[after, 0] - corners[k, 0])
            out[n_out, 1] = corners[k, 1] + share * (corners[after, 1] - corners[k, 1])
            n_out += 1
    # The plane cuts nothing if all corners are on it: the polygon is a segment of it, or the plane has no direction.
    return _without_duplicates(out, n_out) if is_inside or n_out == n else _side(out, n_out, plane)


@compiled_inline
def _side(corners: F64, n: int, plane: F64) -> int:
    """Reduce corners on a plane to the ends of their segment; returns their number, 1 if they are one point."""
    if n <= 1:
        return n
    first, last, low, high = ZERO, ZERO, np.inf, -np.inf
    for k in range(n):
        along = plane[0] * corners[k, 1] - plane[1] * corners[k, 0]
        if along < low:
            first, low = k, along
        if along > high:
            last, high = k, along
    for j in range(2):
        one, two = corners[first, j], corners[last, j]
        corners[0, j], corners[1, j] = one, two
    length = max(abs(corners[1, 0] - corners[0, 0]), abs(corners[1, 1] - corners[0, 1]))
    return ZERO + (2 if max(abs(plane[0]), abs(plane[1])) * length > plane[3] else 1)


@compiled_inline
def _without_duplicates(corners: F64, n: int) -> int:
    """Remove corners that are equal to their neighbour; returns the number of corners."""
    kept = 0
    for k in range(n):
        if kept and corners[k, 0] == corners[kept - 1, 0] and corners[k, 1] == corners[kept - 1, 1]:
            continue
        corners[kept, 0], corners[kept, 1] = corners[k, 0], corners[k, 1]
        kept += 1
    while kept > 1 and corners[0, 0] == corners[kept - 1, 0] and corners[0, 1] == corners[kept - 1, 1]:
        kept -= 1
    return kept


@compiled
def vertices(planes: F64, n_planes: int, low: F64, high: F64, out: F64) -> int:
    """Write the corners of a bounded intersection of half-planes to `out`, in any order; returns their number.

    A corner is the intersection of `dims` planes. All combinations of those are tried that touch a box around the set:
    at first that from `low` to `high`, up to the slack of the first plane.
    """
    dims = planes.shape[1] - 2
    box, n_out, n_kept = np.empty((2, dims)), ZERO, ZERO
    for j in range(dims):
        box[0, j], box[1, j] = low[j] - planes[0, dims + 1], high[j] + planes[0, dims + 1]
    for k in range(2 * n_planes):
        if not _shrink_box(planes[k % n_planes], box):
            return n_out
    kept = np.empty(n_planes, np.int64)
    for k in range(n_planes):
        if _farthest_beyond(planes[k], box) >= -4.0 * planes[k, dims + 1]:
            kept[n_kept] = k
            n_kept += 1
    chosen, rows, point = np.arange(dims), np.empty((dims, dims + 1)), np.empty(dims)
    while n_kept >= dims:
        for k in range(dims):
            assign(rows[k], planes[kept[chosen[k]], : dims + 1])
        if (
            _intersection(rows, point)
            and _is_within(planes, n_planes, point)
            and not _is_known(out, n_out, point)
            and n_out < len(out)
        ):
            assign(out[n_out], point)
            n_out += 1
        k = dims - 1
        while k >= 0 and chosen[k] == n_kept - dims + k:
            k -= 1
        if k < 0:
            break
        chosen[k] += 1
        for j in range(k + 1, dims):
            chosen[j] = chosen[j - 1] + 1
    return n_out


@compiled_inline
def _farthest_beyond(plane: F64, box: F64) -> float:
    """By how much a point of a box violates a half-plane at most."""
    dims = box.shape[1]
    beyond = -float(plane[dims])
    for j in range(dims):
        beyond += plane[j] * (box[1, j] if plane[j] > 0.0 else box[0, j])
    return beyond


@compiled_inline
def _shrink_box(plane: F64, box: F64) -> bool:
    """Make a box smaller; it keeps all its points inside a half-plane. Returns False if there are none."""
    dims = box.shape[1]
    left = plane[dims] + plane[dims + 1]  # of the bound, if all coordinates are as far inside as they can be
    for j in range(dims):
        left -= plane[j] * (box[0, j] if plane[j] > 0.0 else box[1, j])
    if left < -plane[dims + 1]:
        return False
    for j in range(dims):
        if plane[j] > 0.0:
            box[1, j] = min(box[1, j], box[0, j] + max(0.0, left) / plane[j])
        elif plane[j] < 0.0:
            box[0, j] = max(box[0, j], box[1, j] + max(0.0, left) / plane[j])
    return True


@compiled_uncounted
def _intersection(rows: F64, point: F64) -> bool:
    """Write the intersection of `dims` planes, by Gaussian elimination; returns whether it is exactly one point."""
    dims = len(point)
    for k in range(dims):
        pivot = k
        for j in range(k + 1, dims):
            if abs(rows[j, k]) > abs(rows[pivot, k]):
                pivot = j
        size = 0.0
        for j in range(dims):
            size = max(size, abs(rows[pivot, j]))
        if abs(rows[pivot, k]) <= ROUNDING * size or size == 0.0:
            return False
        for j in range(dims + 1):
            rows[k, j], rows[pivot, j] = rows[pivot, j], rows[k, j]
        for other in range(dims):
            if other != k:
                share = rows[other, k] / rows[k, k]
                for j in range(k, dims + 1):
                    rows[other, j] -= share * rows[k, j]
    for k in range(dims):
        point[k] = rows[k, dims] / rows[k, k]
    return True


@compiled_uncounted
def _is_within(planes: F64, n_planes: int, point: F64) -> bool:
    for k in range(n_planes):
        if excess(planes[k], point) > planes[k, len(point) + 1]:
            return False
    return True


@compiled_uncounted
def _is_known(out: F64, n_out: int, point: F64) -> bool:
    for k in range(n_out):
        same = True
        for j in range(len(point)):
            same &= abs(out[k, j] - point[j]) <= 1e-9 * max(1.0, abs(point[j]))
        if same:
            return True
    return False


@compiled_inline
def touches_only(plane: F64, corners: F64, n: int) -> bool:
    """Whether a set only touches a plane: all its corners are on the plane."""
    dims = len(plane) - 2
    for k in range(n):
        beyond = -plane[dims]
        for j in range(dims):
            beyond += plane[j] * corners[k, j]
        if beyond < -plane[dims + 1]:
            return False
    return True


@compiled_inline
def latest(corners: F64, n: int) -> float:
    """The latest instant of any point of the set; it is that of a corner."""
    best = -np.inf
    for k in range(n):
        best = max(best, latest_of(corners[k]))
    return best


@compiled_inline
def latest_of(point: F64) -> float:
    """The latest instant of a point."""
    last = point[0]
    for j in range(1, len(point)):
        last = max(last, point[j])
    return last


@compiled_inline
def earliest_in_plane(corners: F64, n: int) -> float:
    """The smallest max(ta, tb) over a polygon: at a corner, or where an edge crosses the diagonal."""
    best = np.inf
    for k in range(n):
        after = k + 1 if k + 1 < n else 0
        best = min(best, max(corners[k, 0], corners[k, 1]))
        here, there = corners[k, 0] - corners[k, 1], corners[after, 0] - corners[after, 1]
        if (here < 0.0 < there) or (there < 0.0 < here):
            best = min(best, corners[k, 0] + here / (here - there) * (corners[after, 0] - corners[k, 0]))
    return best


@compiled
def earliest(body: Body, scratch: F64) -> float:
    """The smallest latest instant over a set: that of a corner, or with each axis in turn as the latest."""
    dims, n_planes = body.planes.shape[1] - 2, body.n_planes
    low, high = box(body)
    best, least = np.inf, -np.inf
    for j in range(dims):
        least = max(least, low[j])  # no point has an earlier latest instant
    for k in range(body.n):
        best = min(best, latest_of(body.corners[k]))
    extended = np.zeros((n_planes + dims - 1, dims + 2))
    assign(extended, body.planes[:n_planes])
    for k in range(dims if best > least else 0):
        row = n_planes
        for j in range(dims):
            high[j] = min(high[j], best)
            if j != k:
                extended[row] = 0.0
                # The first plane is the end of a prediction: it has the slack of an instant.
                extended[row, j], extended[row, k], extended[row, dims + 1] = 1.0, -1.0, body.planes[0, dims + 1]
                row += 1
        n = vertices(extended, row, low, high, scratch)
        for corner in range(n):
            best = min(best, scratch[corner, k])
    return best


@compiled
def box(body: Body) -> tuple[F64, F64]:
    """The least and the greatest coordinates of a set."""
    dims = body.corners.shape[1]
    low, high = np.full(dims, np.inf), np.full(dims, -np.inf)
    for k in range(body.n):
        for j in range(dims):
            low[j], high[j] = min(low[j], body.corners[k, j]), max(high[j], body.corners[k, j])
    return low, high


@compiled_inline
def counter_clockwise(corners: F64, n: int) -> None:
    """Rotate the corners of a polygon in place so that the smallest (ta, tb) comes first."""
    first = ZERO
    for k in range(1, n):
        if corners[k, 0] < corners[first, 0] or (
            corners[k, 0] == corners[first, 0] and corners[k, 1] < corners[first, 1]
        ):
            first = k
    # A rotation in place: reverse both parts, then the whole.
    _reverse(corners, ZERO, first)
    _reverse(corners, first, n)
    _reverse(corners, ZERO, n)


@compiled_inline
def _reverse(corners: F64, begin: int, end: int) -> None:
    while begin < end - 1:
        end -= 1
        for j in range(2):
            corners[begin, j], corners[end, j] = corners[end, j], corners[begin, j]
        begin += 1


@compiled_inline
def mean(corners: F64, n: int, point: F64) -> None:
    """Write the mean of the corners to `point`."""
    for j in range(len(point)):
        point[j] = 0.0
        for k in range(n):
            point[j] += corners[k, j] / n


@compiled_inline
def between(corners: F64, one: int, other: int, share: float, point: F64) -> None:
    """Write the point at this share of the way from one corner to another to `point`."""
    for j in range(len(point)):
        point[j] = corners[one, j] + share * (corners[other, j] - corners[one, j])


@compiled_inline
def extent(plane: F64, corners: F64, n: int) -> tuple[float, float, int, int]:
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
def cut(body: Body, extra: F64, count: int) -> tuple[F64, int]:
    """The corners of the intersection with more half-planes, and their number."""
    n, dims = body.n, extra.shape[1] - 2
    # A plane adds at most 1 corner in two dimensions, 2 in three, and as many as there are planes in four.
    added = 1 if dims <= 2 else 2 if dims == 3 else body.n_planes + count
    corners = np.empty((len(body.corners) + added * count + 2, dims))
    assign(corners, body.corners[:n, :dims])
    if dims == 1:
        return corners, _cut_line(corners, n, extra, count)
    if dims == 2:
        other = np.empty_like(corners)
        for k in range(count):
            n = clip(corners, n, extra[k], other)
            corners, other = other, corners
        return corners, n
    if not _cuts_any(body, extra, count):
        return corners, n
    planes = np.empty((body.n_planes + count, dims + 2))
    assign(planes, body.planes[: body.n_planes])
    assign(planes[body.n_planes :], extra[:count])
    low, high = box(body)
    return corners, vertices(planes, len(planes), low, high, corners)


@compiled_uncounted
def _cuts_any(body: Body, extra: F64, count: int) -> bool:
    """Whether a corner violates one of some half-planes by more than its slack."""
    dims = extra.shape[1] - 2
    for k in range(count):
        for corner in range(body.n):
            if excess(extra[k], body.corners[corner]) > extra[k, dims + 1]:
                return True
    return False


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


@compiled_inline
def largest(numbers: F64) -> float:
    """The largest magnitude of some numbers."""
    most = 0.0
    for number in numbers:
        most = max(most, abs(number))
    return most
