"""Convex sets of instants: intervals, polygons, and their like in more dimensions, cut by half-planes.

A half-plane is a row of `planes`: coefficients a, then c, for a . x <= c. Corners are rows of an array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.laws import ZERO

#: What is this much smaller than the numbers it came from is rounding.
ROUNDING = 1e-12


class Body(NamedTuple):
    """A convex set: its first `n` corners and its first `n_planes` half-planes count."""

    corners: F64
    n: int
    planes: F64
    n_planes: int


@compiled_inline
def excess(plane: F64, point: F64) -> float:
    """By how much a point is beyond a half-plane."""
    total = -plane[len(point)]
    for k in range(len(point)):
        total += plane[k] * point[k]
    return total


@compiled_inline
def is_beyond(corners: F64, n: int, plane: F64) -> bool:
    """Whether any corner of a polygon is beyond a half-plane."""
    for k in range(n):
        if plane[0] * corners[k, 0] + plane[1] * corners[k, 1] > plane[2]:
            return True
    return False


@compiled_inline
def clip(corners: F64, n: int, plane: F64, out: F64) -> int:
    """What a half-plane leaves of a convex polygon of `n` corners, written to `out`; gives their number.

    A polygon may be a segment or a point: then two corners are the same, or all.
    """
    found = ZERO
    if n == 0:
        return found
    there = plane[0] * corners[0, 0] + plane[1] * corners[0, 1] - plane[2]
    for k in range(n):
        after = k + 1 if k + 1 < n else 0
        here = there
        there = plane[0] * corners[after, 0] + plane[1] * corners[after, 1] - plane[2]
        if here <= 0.0:
            out[found, 0], out[found, 1] = corners[k, 0], corners[k, 1]
            found += 1
        if (here < 0.0 < there) or (there < 0.0 < here):
            share = here / (here - there)
            out[found, 0] = corners[k, 0] + share * (corners[after, 0] - corners[k, 0])
            out[found, 1] = corners[k, 1] + share * (corners[after, 1] - corners[k, 1])
            found += 1
    return _without_repeats(out, found)


@compiled_inline
def _without_repeats(corners: F64, n: int) -> int:
    """Corners without those that repeat their neighbour; gives their number."""
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
def vertices(planes: F64, n_planes: int, out: F64) -> int:
    """The corners of the bounded set of all points within some half-planes, in any order; gives their number.

    Each is where `dims` of the planes meet. All such choices are tried: it is for a few planes in a few dimensions.
    """
    dims = planes.shape[1] - 1
    chosen = np.arange(dims)
    found = ZERO
    while True:
        point, is_one = _meeting(planes, chosen)
        if is_one and _is_within(planes, n_planes, point) and not _is_known(out, found, point) and found < len(out):
            assign(out[found], point)
            found += 1
        k = dims - 1
        while k >= 0 and chosen[k] == n_planes - dims + k:
            k -= 1
        if k < 0:
            return found
        chosen[k] += 1
        for j in range(k + 1, dims):
            chosen[j] = chosen[j - 1] + 1


@compiled
def _meeting(planes: F64, chosen: I64) -> tuple[F64, bool]:
    """The point at which some planes meet, by elimination; and whether there is exactly one."""
    dims = len(chosen)
    rows = np.empty((dims, dims + 1))
    for k in range(dims):
        assign(rows[k], planes[chosen[k]])
    for k in range(dims):
        best = k
        for j in range(k + 1, dims):
            if abs(rows[j, k]) > abs(rows[best, k]):
                best = j
        size = 0.0
        for j in range(dims):
            size = max(size, abs(rows[best, j]))
        if abs(rows[best, k]) <= ROUNDING * size or size == 0.0:
            return rows[0, :dims].copy(), False
        for j in range(dims + 1):
            rows[k, j], rows[best, j] = rows[best, j], rows[k, j]
        for other in range(dims):
            if other != k:
                share = rows[other, k] / rows[k, k]
                for j in range(k, dims + 1):
                    rows[other, j] -= share * rows[k, j]
    point = np.empty(dims)
    for k in range(dims):
        point[k] = rows[k, dims] / rows[k, k]
    return point, True


@compiled
def _is_within(planes: F64, n_planes: int, point: F64) -> bool:
    for k in range(n_planes):
        size = abs(planes[k, len(point)])
        for j in range(len(point)):
            size = max(size, abs(planes[k, j] * point[j]))
        if excess(planes[k], point) > 1e-9 * max(size, 1e-9):
            return False
    return True


@compiled
def _is_known(out: F64, found: int, point: F64) -> bool:
    for k in range(found):
        same = True
        for j in range(len(point)):
            same &= abs(out[k, j] - point[j]) <= 1e-9 * max(1.0, abs(point[j]))
        if same:
            return True
    return False


@compiled_inline
def is_open_contact(plane: F64, corners: F64, n: int) -> bool:
    """Whether a set that may not touch a plane does nothing else: all its corners are on the plane."""
    dims = len(plane) - 1
    for k in range(n):
        size = abs(plane[dims])
        for j in range(dims):
            size = max(size, abs(plane[j] * corners[k, j]))
        beyond = -plane[dims]
        for j in range(dims):
            beyond += plane[j] * corners[k, j]
        if beyond < -ROUNDING * size:
            return False
    return True


@compiled_inline
def latest(corners: F64, n: int) -> float:
    """The highest instant of any point: that of a corner."""
    best = -np.inf
    for k in range(n):
        for j in range(corners.shape[1]):
            best = max(best, corners[k, j])
    return best


@compiled_inline
def earliest_in_plane(corners: F64, n: int) -> float:
    """The least max(ta, tb) over a polygon: at a corner, or where an edge crosses the diagonal."""
    best = np.inf
    for k in range(n):
        after = k + 1 if k + 1 < n else 0
        best = min(best, max(corners[k, 0], corners[k, 1]))
        here, there = corners[k, 0] - corners[k, 1], corners[after, 0] - corners[after, 1]
        if (here < 0.0 < there) or (there < 0.0 < here):
            best = min(best, corners[k, 0] + here / (here - there) * (corners[after, 0] - corners[k, 0]))
    return best


@compiled
def earliest(planes: F64, n_planes: int, scratch: F64) -> float:
    """The least highest instant over a set given by its planes: with each instant in turn as the highest."""
    dims = planes.shape[1] - 1
    more = np.zeros((n_planes + dims - 1, dims + 1))
    assign(more, planes[:n_planes])
    best = np.inf
    for k in range(dims):
        row = n_planes
        for j in range(dims):
            if j != k:
                more[row] = 0.0
                more[row, j], more[row, k] = 1.0, -1.0
                row += 1
        n = vertices(more, row, scratch)
        for corner in range(n):
            best = min(best, scratch[corner, k])
    return best


@compiled_inline
def counter_clockwise(corners: F64, n: int) -> None:
    """Turn the corners of a polygon so that the least (ta, tb) comes first, in place."""
    first = ZERO
    for k in range(1, n):
        if corners[k, 0] < corners[first, 0] or (
            corners[k, 0] == corners[first, 0] and corners[k, 1] < corners[first, 1]
        ):
            first = k
    # Turned in place: each part reversed, then the whole.
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
