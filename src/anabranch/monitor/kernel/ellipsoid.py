"""The ellipsoid method: a local maximum of the probability over a convex set. It also works at kinks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.curves import outside_curve
from anabranch.monitor.kernel.distributions import ZERO
from anabranch.monitor.kernel.lines import Lines, probability_at
from anabranch.monitor.kernel.polygons import Body, excess, extent, largest
from anabranch.monitor.kernel.probabilities import Constraints

#: The approximate error of probabilities that are found by search.
PRECISION = 1e-8
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
def box(body: Body) -> tuple[F64, F64]:
    """The least and the greatest coordinates of a set."""
    dims = body.corners.shape[1]
    low, high = np.full(dims, np.inf), np.full(dims, -np.inf)
    for k in range(body.n):
        for j in range(dims):
            low[j], high[j] = min(low[j], body.corners[k, j]), max(high[j], body.corners[k, j])
    return low, high


@compiled
def climb(
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
        violated, is_outside = _most_violated(x, half, body), False
        if violated >= 0:
            assign(slope, body.planes[violated, :dims])
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
        length = _halve(x, factor, slope)
        # The ellipsoid is so thin that rounding errors dominate.
        if not length > 1e-14 * largest(slope) * largest(half) or (
            violated < 0 and not is_outside and length < PRECISION
        ):
            break
    return top


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
