"""The instants at which predictions satisfy a query: for each choice of predictions, the convex sets that do.

All instants of a choice are counted from the time of its first prediction, so that nothing is lost to large numbers.

There is an axis for each operand, or one for all where they are compared at the same instant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.chances import Asked, error_of
from anabranch.monitor.kernel.highest import Lines, highest, plane_of
from anabranch.monitor.kernel.laws import ZERO
from anabranch.monitor.kernel.polygons import (
    Body,
    clip,
    counter_clockwise,
    earliest,
    earliest_in_plane,
    is_beyond,
    is_open_contact,
    latest,
    vertices,
)

#: How far a sample is moved from the best point into its region, where the best is on a side that may be open.
_INWARD = 1e-3


class Frame(NamedTuple):
    """How predictions are compared.

    Attributes
    ----------
    value_of : (V, 2) for each value its operand, and its column among the values of that operand's stream
    cells : (C, F, 4) for each alternative and form: low, high, and whether each end is open (1) or not (0)
    widen : 1 where errors widen what a prediction may be (MAY), -1 where they narrow it (MUST), 0 (EXPECTED)
    links : (operands, operands) whether the window holds between two operands
    within : the window
    enough : regions with a lower probability are left out
    """

    value_of: I64
    cells: F64
    widen: int
    links: Bools
    within: float
    enough: float


class Given(NamedTuple):
    """Predictions: their times and how long one of it is, when they apply from there, and what they say."""

    time: npt.NDArray[Any]
    unit: float
    begin: F64
    end: F64
    values: F64
    rates: F64
    errors: F64


@compiled
def regions(
    members: I64, given: Given, frame: Frame, asked: Asked, dims: int, most_corners: int
) -> tuple[I64, F64, F64, F64, F64, I64]:
    """The regions of some choices of predictions, (n, operands) by their numbers.

    Returns
    -------
    choice, interval (from, to), probability, sample (dims), corners, first corner of each region
    """
    n, operands = members.shape
    room = n * len(frame.cells)
    choice, interval, probability = np.empty(room, np.int64), np.empty((room, 2)), np.empty(room)
    sample, corners = np.empty((room, dims)), np.empty((room * most_corners, dims))
    starts = np.zeros(room + 1, np.int64)
    n_values = len(frame.value_of)
    lines = Lines(
        np.empty(n_values), np.empty(n_values), np.empty(n_values), np.empty(n_values), np.empty(dims + 1)
    )  # fmt: skip
    low, high = np.empty(operands), np.empty(operands)
    planes = np.empty((2 * operands + operands * operands + 2 * len(asked.forms), dims + 1))
    is_open, scratch, point = np.empty(len(planes), np.bool_), np.empty((2, most_corners + 8, dims)), np.empty(dims)
    count = 0
    for k in range(n):
        _place(members[k], given, frame, low, high, lines)
        for cell in range(len(frame.cells)):
            n_planes = _framed(low, high, frame, planes, is_open)
            n_planes = _constrained(frame.cells[cell], frame.widen, asked, lines, planes, is_open, n_planes)
            found, n_corners = _corners(low, high, planes, is_open, n_planes, scratch)
            if n_corners == 0:
                continue
            body = Body(found, n_corners, planes, n_planes)
            p = highest(body, lines, asked, frame.enough, point)
            if p < frame.enough or p <= 0.0:
                continue
            interval[count, 0], interval[count, 1] = _interval(body, scratch[1]), latest(found, n_corners)
            choice[count], probability[count] = k, p
            for j in range(dims):
                middle = 0.0
                for corner in range(n_corners):
                    middle += found[corner, j] / n_corners
                sample[count, j] = point[j] + _INWARD * (middle - point[j])
            assign(corners[starts[count] :], found[:n_corners])
            starts[count + 1] = starts[count] + n_corners
            count += 1
    return (
        choice[:count], interval[:count], probability[:count], sample[:count],
        corners[: starts[count]].copy(), starts[: count + 1],
    )  # fmt: skip


@compiled_inline
def _place(rows: I64, given: Given, frame: Frame, low: F64, high: F64, lines: Lines) -> None:
    """When each prediction of a choice applies, and its lines, counted from the time of the first."""
    for j in range(len(rows)):
        shift = (given.time[rows[j]] - given.time[rows[0]]) * given.unit
        low[j], high[j] = shift + given.begin[rows[j]], shift + given.end[rows[j]]
    for v in range(len(frame.value_of)):
        row, column = rows[frame.value_of[v, 0]], frame.value_of[v, 1]
        shift = (given.time[row] - given.time[rows[0]]) * given.unit
        lines.rate[v] = given.rates[row, column]
        lines.base[v] = given.values[row, column] - lines.rate[v] * shift
        lines.error[v] = given.errors[row, column]


@compiled
def _framed(low: F64, high: F64, frame: Frame, planes: F64, is_open: Bools) -> int:
    """The half-planes of what applies when, and of the window; gives their number."""
    dims = planes.shape[1] - 1
    n = 0
    for j in range(len(low)):
        axis = j if dims > 1 else 0
        planes[n] = 0.0
        planes[n, axis], planes[n, dims], is_open[n] = 1.0, high[j], True
        planes[n + 1] = 0.0
        planes[n + 1, axis], planes[n + 1, dims], is_open[n + 1] = -1.0, -low[j], False
        n += 2
    for i in range(len(low) if dims > 1 else 0):
        for j in range(len(low)):
            if i != j and frame.links[i, j]:
                planes[n] = 0.0
                planes[n, i], planes[n, j], planes[n, dims], is_open[n] = 1.0, -1.0, frame.within, False
                n += 1
    return n


@compiled
def _constrained(cell: F64, widen: int, asked: Asked, lines: Lines, planes: F64, is_open: Bools, n: int) -> int:
    """The half-planes in which all forms are predicted as they must be; -1 where there is no such prediction."""
    dims = planes.shape[1] - 1
    for f in range(len(asked.forms)):
        error = error_of(f, asked, lines.error)
        low, high = cell[f, 0] - widen * error, cell[f, 1] + widen * error
        low_open, high_open = cell[f, 2] == 1.0, cell[f, 3] == 1.0
        if widen != 0 and error > 0.0:  # single values have no probability
            low_open = high_open = widen > 0
        if low > high:
            return -1
        if high < np.inf:
            plane_of(f, asked, lines, planes[n])
            planes[n, dims] = high - planes[n, dims]
            is_open[n] = high_open
            n += 1
        if low > -np.inf:
            plane_of(f, asked, lines, planes[n])
            for j in range(dims):
                planes[n, j] = -planes[n, j]
            planes[n, dims] -= low
            is_open[n] = low_open
            n += 1
    return n


@compiled
def _corners(low: F64, high: F64, planes: F64, is_open: Bools, n_planes: int, scratch: F64) -> tuple[F64, int]:
    """The corners of what some half-planes leave; none where they only touch a side that is open."""
    dims = planes.shape[1] - 1
    if n_planes < 0:
        return scratch[0], 0
    if dims == 1:
        found, n = _line(planes, is_open, n_planes, scratch)
    elif dims == 2:
        found, n = _polygon(low, high, planes, n_planes, scratch)
    else:
        found, n = scratch[0], vertices(planes, n_planes, scratch[0])
    if n == 0:
        return found, 0
    for k in range(n_planes):
        if is_open[k] and is_open_contact(planes[k], found, n):
            return found, 0
    if dims == 2:
        counter_clockwise(found, n)
    return found, n


@compiled
def _line(planes: F64, is_open: Bools, n_planes: int, scratch: F64) -> tuple[F64, int]:
    """The interval that the half-planes of one axis leave, as its ends."""
    low, high = -np.inf, np.inf
    for k in range(n_planes):
        a, c = planes[k, 0], planes[k, 1]
        if a > 0.0:
            high = min(high, c / a)
        elif a < 0.0:
            low = max(low, c / a)
        elif c < 0.0 or (c == 0.0 and is_open[k]):
            return scratch[0], 0
    scratch[0, 0, 0], scratch[0, 1, 0] = low, high
    if low > high:
        return scratch[0], 0
    return scratch[0], 2 if low < high else 1


@compiled
def _polygon(low: F64, high: F64, planes: F64, n_planes: int, scratch: F64) -> tuple[F64, int]:
    """The polygon that the half-planes of two axes leave: the rectangle of what applies when, cut by the others."""
    if low[0] > high[0] or low[1] > high[1]:
        return scratch[0], 0
    found, other = scratch[0], scratch[1]
    found[0, 0], found[0, 1], found[1, 0], found[1, 1] = low[0], low[1], high[0], low[1]
    found[2, 0], found[2, 1], found[3, 0], found[3, 1] = high[0], high[1], low[0], high[1]
    n = ZERO + 4
    for k in range(4, n_planes):
        if is_beyond(found, n, planes[k]):
            n = clip(found, n, planes[k], other)
            found, other = other, found
            if n == 0:
                break
    return found, n


@compiled
def _interval(body: Body, scratch: F64) -> float:
    """The earliest instant that is the latest of some that match."""
    dims = body.planes.shape[1] - 1
    if dims == 1:
        return body.corners[0, 0]
    if dims == 2:
        return earliest_in_plane(body.corners, body.n)
    return earliest(body.planes, body.n_planes, scratch)
