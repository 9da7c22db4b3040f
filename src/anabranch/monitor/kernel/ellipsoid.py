"""The ellipsoid method: a local maximum of the probability over a convex set. It also works at kinks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.curves import outside_curve
from anabranch.monitor.kernel.distributions import ZERO
from anabranch.monitor.kernel.lines import Lines, probability_at
from anabranch.monitor.kernel.polygons import Body, excess, extent, largest
from anabranch.monitor.kernel.probabilities import Constraints

#: The approximate error of probabilities that are found by search.
PRECISION = 1e-8
#: A search ends if the logarithm can rise by at most this much.
_CONVERGED = 1e-9
#: A set whose extent in a direction is this much smaller than its largest extent has none: corners of four instants are
#: computed from several planes, and are less exact than these.
_FLAT = 1e-9


class Frame(NamedTuple):
    """The coordinates of a flat set: instants are origin + coordinates . axes. `axes` (rank, dims) are orthonormal."""

    origin: F64
    axes: F64


@compiled
def flattened(body: Body) -> tuple[Body, Frame]:
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
        to_frame(body.corners[k], frame, corners[k])
    for k in range(body.n_planes):
        low, high, _, _ = extent(body.planes[k], body.corners, body.n)
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
def to_frame(point: F64, frame: Frame, coordinates: F64) -> None:
    """Write the coordinates of a point in the frame."""
    for i in range(len(coordinates)):
        coordinates[i] = 0.0
        for j in range(len(point)):
            coordinates[i] += frame.axes[i, j] * (point[j] - frame.origin[j])


@compiled_inline
def from_frame(coordinates: F64, frame: Frame, point: F64) -> None:
    """Write the point that has these coordinates in the frame."""
    for j in range(len(point)):
        point[j] = frame.origin[j]
        for i in range(len(coordinates)):
            point[j] += coordinates[i] * frame.axes[i, j]


@compiled
def climb(
    low: F64, high: F64, body: Body, frame: Frame, lines: Lines, constraints: Constraints, is_convex: bool,
    bound: float, threshold: float, point: F64,
) -> float:  # fmt: skip
    """A local maximum of the probability and its instants, by the ellipsoid method, from a box around the set.

    An ellipsoid that contains the best point is cut, by a plane that its center violates or by the gradient of the
    logarithm at its center, and replaced by a smaller ellipsoid around what is left. With `is_convex` the logarithm is
    concave: the best point is not only uphill, but as far as the tangent needs to reach the best value so far, or the
    threshold; if nothing can reach it, the search ends. `low`, `high` and `body` are in the coordinates of the frame,
    `point` is not.
    """
    dims = len(low)
    x, half = np.empty(dims), np.empty(dims)
    factor = np.zeros((dims + 1, dims))  # the last row is the direction of a cut
    for j in range(dims):
        half[j] = max(0.5 * (high[j] - low[j]), 1e-12 * max(1.0, abs(low[j])))
        x[j], factor[j, j] = 0.5 * (high[j] + low[j]), np.sqrt(dims) * half[j]
    at, slope, rise = np.empty(len(point)), np.empty(dims), np.empty(len(point))
    top = probability_at(point, lines, constraints, rise)
    for _ in range(250 * dims):
        violated, is_outside, depth = _most_violated(x, half, body), False, 0.0
        if violated >= 0:
            assign(slope, body.planes[violated, :dims])
            depth = max(0.0, excess(body.planes[violated], x) - body.planes[violated, dims + 1])
        else:
            from_frame(x, frame, at)
            is_outside = outside_curve(at, lines, constraints, rise) > 0.0
            value = -1.0 if is_outside else probability_at(at, lines, constraints, rise)
            for i in range(dims):
                slope[i] = 0.0
                for j in range(len(rise)):
                    slope[i] += frame.axes[i, j] * rise[j]
            if value > top:
                top = value
                assign(point, at)
            if top >= bound * (1.0 - 1e-13):
                break
            if is_convex and value > 0.0:
                depth = math.log(max(top, threshold) / value)
        length = _shrink(x, factor, slope, depth)
        # What is left cannot be better, or the ellipsoid is so thin that rounding errors dominate.
        if (violated < 0 and not is_outside and length - depth < _CONVERGED) or (
            not length - depth > 1e-14 * largest(slope) * largest(half)
        ):
            break
    return top


@compiled_uncounted
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


@compiled_uncounted
def _shrink(x: F64, factor: F64, slope: F64, depth: float) -> float:
    """Replace an ellipsoid by one around the part of it that is lower than its center by `depth` or more.

    The ellipsoid is the image of the unit ball under `factor`. Unlike `factor` times its transpose, this stays accurate
    for many cuts. Returns its old extent along the slope; if `depth` is more than that, nothing is left, and the
    ellipsoid is not changed.
    """
    dims, length = len(x), 0.0
    for j in range(dims):
        along = 0.0
        for i in range(dims):
            along += factor[i, j] * slope[i]
        length += along * along
    length = np.sqrt(length)
    if depth >= length:
        return length
    share = depth / length  # of the extent that is cut off in addition to the half
    lower = (1.0 + dims * share) / (dims + 1)
    wider, flatter = 0.5 * (1.0 - share), 0.0  # what is left of an interval
    if dims > 1:
        wider = dims * np.sqrt((1.0 - share * share) / (dims * dims - 1.0))
        flatter = np.sqrt((dims - 1.0) * (1.0 - share) / ((dims + 1.0) * (1.0 + share))) - 1.0
    for k in range(dims):
        factor[dims, k] = 0.0
        for i in range(dims):
            factor[dims, k] += factor[i, k] * slope[i] / length
    for i in range(dims):
        along = 0.0
        for j in range(dims):
            along += factor[i, j] * factor[dims, j]
        x[i] -= lower * along
        for j in range(dims):
            factor[i, j] = wider * (factor[i, j] + flatter * along * factor[dims, j])
    return length
