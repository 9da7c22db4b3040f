"""The instants at which predictions satisfy a query: convex sets (*regions*) for each combination of predictions.

All instants of a combination are relative to the time of its first prediction, so that large times lose no precision.

There is an axis for each operand, or one axis for all if they are compared at the same instant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import assign, compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.certain import certain_range, curved_interval
from anabranch.monitor.kernel.curves import curve_of, outline, trim
from anabranch.monitor.kernel.distributions import ZERO
from anabranch.monitor.kernel.highest import highest_from, is_certain
from anabranch.monitor.kernel.lines import Lines, allowed_predictions, plane_of
from anabranch.monitor.kernel.pieces import count_choices, piece_planes
from anabranch.monitor.kernel.polygons import (
    ILL_CONDITIONED,
    ROUNDING,
    Body,
    clip,
    counter_clockwise,
    earliest,
    earliest_in_plane,
    is_beyond,
    latest,
    mean,
    touches_only,
    vertices,
)
from anabranch.monitor.kernel.probabilities import Constraints, error_of, has_choices
from anabranch.monitor.kernel.shapes import most_pieces, scale_range, write_distances

#: How far a sample is moved from the best point towards the middle of its region, because the best point may be on an
#: open side.
INWARD = 1e-3
#: The column of a value that is the instant itself.
INSTANT = -1


class MatchRules(NamedTuple):
    """How predictions are compared.

    Attributes
    ----------
    value_of : (V, 2) for each value its operand, and its index among the values of that operand's stream, or INSTANT
    cells : (C, F, 4) for each alternative and form: low, high, and whether each end is open (1) or not (0)
    widen : 1 if errors widen the allowed predictions (MAY), -1 if they narrow them (MUST), 0 for EXPECTED
    windows : (operands, operands) how far apart the instants of two operands may be; infinite if they are not compared
    threshold : regions with a lower probability are dropped
    level : the probability for which the certain range is computed; 0 if it is not
    """

    value_of: I64
    cells: F64
    widen: int
    windows: F64
    threshold: float
    level: float


class PredictionArrays(NamedTuple):
    """The predictions of a bucket: when they apply, relative to their times, and their values, rates and errors.

    `period` is how long they would apply if no other began.
    """

    begin: F64
    end: F64
    values: F64
    rates: F64
    errors: F64
    period: F64


class Found(NamedTuple):
    """Room for regions: what `regions` returns, with more rows."""

    combination: I64
    interval: F64
    certain: F64
    probability: F64
    sample: F64
    corners: F64
    starts: I64


class Scratch(NamedTuple):
    """Room for the region of one combination.

    Attributes
    ----------
    low, high : when each prediction applies
    planes, is_open : half-planes, and whether each excludes its side
    corners : (2, corners, dims) those of a polygon before and after a cut
    middle, point : the mean of the corners, and the instants with the highest probability
    pieces, n_pieces : the matching intervals of each shape, and their number
    """

    low: F64
    high: F64
    planes: F64
    is_open: Bools
    corners: F64
    middle: F64
    point: F64
    pieces: F64
    n_pieces: I64


@compiled
def regions(
    members: I64,
    shifts: F64,
    predictions: PredictionArrays,
    rules: MatchRules,
    constraints: Constraints,
    dims: int,
    most_corners: int,
    most_choices: int,
) -> tuple[I64, F64, F64, F64, F64, F64, I64]:
    """The regions of combinations of predictions.

    `members` (n, operands) has the indexes of the predictions. `shifts` (n, operands + 1) has the difference of each
    one's time from that of the first, and then the rounding error of these differences. A combination has at most
    `most_choices` regions per cell. If a query has a curve, the corners are those of the polygon that the curve cuts.

    Returns
    -------
    For each region: combination, interval (from, to), the part of it that is certain (NaN if none is), probability,
    sample (dims); all corners, and the index of the first corner of each region
    """
    n, operands = members.shape
    capacity = n * len(rules.cells) * most_choices
    found = Found(
        np.empty(capacity, np.int64), np.empty((capacity, 2)), np.full((capacity, 2), np.nan), np.empty(capacity),
        np.empty((capacity, dims)), np.empty((capacity * most_corners, dims)), np.zeros(capacity + 1, np.int64),
    )  # fmt: skip
    n_shapes = len(constraints.shapes.forms)
    n_planes = 2 * operands + operands * operands + 2 * len(constraints.forms) + 2 * n_shapes
    scratch = Scratch(
        np.empty(operands), np.empty(operands), np.empty((n_planes, dims + 2)), np.empty(n_planes, np.bool_),
        np.empty((2, most_corners + 8, dims)), np.empty(dims), np.empty(dims),
        np.empty((n_shapes, most_pieces(constraints.shapes), 4)), np.empty(n_shapes, np.int64),
    )  # fmt: skip
    rows = 2 * len(constraints.forms) + 2 * (most_corners + 8 + 2 * len(constraints.forms))
    lines = empty_lines(len(rules.value_of), dims, rows)
    count = _write_regions(members, shifts, predictions, rules, constraints, lines, scratch, found)
    return (
        found.combination[:count], found.interval[:count], found.certain[:count], found.probability[:count],
        found.sample[:count], found.corners[: found.starts[count]].copy(), found.starts[: count + 1],
    )  # fmt: skip


@compiled_uncounted
def _write_regions(
    members: I64, shifts: F64, predictions: PredictionArrays, rules: MatchRules, constraints: Constraints,
    lines: Lines, scratch: Scratch, found: Found,
) -> int:  # fmt: skip
    """Write the regions of all combinations; returns their number.

    It counts no references: with that of all arrays of each call, a combination takes twice as long.
    """
    planes, is_open, middle, point, count = scratch.planes, scratch.is_open, scratch.middle, scratch.point, ZERO
    is_curved, is_simple = curve_of(constraints) >= 0, not has_choices(constraints)
    for k in range(len(members)):
        reach = align(members[k], shifts[k], predictions, rules, constraints, scratch.low, scratch.high, lines)
        choices = count_choices(reach, lines, constraints, scratch.pieces, scratch.n_pieces)
        for number in range(len(rules.cells) * choices):
            n = _limit_planes(scratch.low, scratch.high, reach, rules, planes, is_open)
            n = _constraint_planes(rules.cells[number // choices], rules.widen, constraints, lines, planes, is_open, n)
            n = piece_planes(number % choices, reach, constraints, scratch.pieces, scratch.n_pieces, planes, is_open, n)
            which, n_corners = _corners(scratch, n)
            region = scratch.corners[which]
            mean(region, n_corners, middle)
            if is_curved and n_corners > 0:
                n_corners = trim(Body(region, n_corners, planes, n), is_open, lines, constraints, middle)
            if n_corners == 0:
                continue
            body = Body(region, n_corners, planes, n)
            assign(point, middle)
            # This decides most regions, and a call with all arrays takes as long as the rest of one.
            is_sure = is_simple and is_certain(point, lines, constraints)
            p = 1.0 if is_sure else highest_from(body, lines, constraints, rules.threshold, point)
            if p < rules.threshold or p <= 0.0:
                continue
            found.combination[count], found.probability[count] = k, p
            _write_times(body, lines, constraints, rules, p, scratch, which, count, found)
            assign(found.corners[found.starts[count] :], region[:n_corners])
            found.starts[count + 1] = found.starts[count] + n_corners
            count += 1
    return count


@compiled_inline
def _write_times(
    body: Body, lines: Lines, constraints: Constraints, rules: MatchRules, p: float, scratch: Scratch, which: int,
    count: int, found: Found,
) -> None:  # fmt: skip
    """Write the interval, the certain range and the sample of a region with its probability.

    The corners of the region are in the array `which` of the two.
    """
    interval, point, middle = found.interval[count], scratch.point, scratch.middle
    interval[0], interval[1] = _earliest(body, scratch.corners[1 - which]), latest(body.corners, body.n)
    if body.n > 2 and curve_of(constraints) >= 0:
        interval[0], interval[1] = curved_interval(body, lines, constraints, middle)
    if rules.level > 0.0:
        found.certain[count, 0], found.certain[count, 1] = certain_range(
            body, lines, constraints, rules.level, p, point, interval
        )
    for j in range(len(point)):
        found.sample[count, j] = point[j] + INWARD * (middle[j] - point[j])


@compiled
def outlines(
    members: I64,
    shifts: F64,
    predictions: PredictionArrays,
    rules: MatchRules,
    constraints: Constraints,
    corners: F64,
    starts: I64,
) -> tuple[F64, I64]:
    """The boundaries of regions that a curve cuts, and the index of the first point of each.

    All arguments are by region. Region k is inside the polygon corners[starts[k] : starts[k + 1]].
    """
    lines = empty_lines(len(rules.value_of), corners.shape[1], 0)
    low, high = np.empty(members.shape[1]), np.empty(members.shape[1])
    points, firsts = np.empty((1024, corners.shape[1])), np.zeros(len(starts), np.int64)
    for k in range(len(members)):
        align(members[k], shifts[k], predictions, rules, constraints, low, high, lines)
        boundary = outline(corners[starts[k] : starts[k + 1]], lines, constraints)
        firsts[k + 1] = firsts[k] + len(boundary)
        if firsts[k + 1] > len(points):
            larger = np.empty((2 * firsts[k + 1], corners.shape[1]))
            assign(larger, points[: firsts[k]])
            points = larger
        assign(points[firsts[k] :], boundary)
    return points[: firsts[len(members)]].copy(), firsts


@compiled
def empty_lines(n_values: int, dims: int, rows: int) -> Lines:
    """Room for the lines of a combination, with this number of rows for half-planes and corners."""
    return Lines(
        np.empty(n_values), np.empty(n_values), np.empty(n_values), np.empty(n_values), np.empty(n_values),
        np.empty(dims + 2), np.empty((rows, dims + 2)),
    )  # fmt: skip


@compiled_inline
def align(
    members: I64, shifts: F64, predictions: PredictionArrays, rules: MatchRules, constraints: Constraints, low: F64,
    high: F64, lines: Lines,
) -> float:  # fmt: skip
    """Write when each prediction of a combination applies, and its lines, relative to the time of the first one.

    Returns the magnitude of the instants, for the slack of planes.
    """
    reach = 0.0
    for j in range(len(members)):
        low[j], high[j] = shifts[j] + predictions.begin[members[j]], shifts[j] + predictions.end[members[j]]
        reach = max(reach, abs(shifts[j]), abs(low[j]), abs(high[j]))
    reach += shifts[len(members)] / ROUNDING
    for v in range(len(rules.value_of)):
        operand, column = rules.value_of[v, 0], rules.value_of[v, 1]
        row = members[operand]
        if column == INSTANT:
            lines.base[v], lines.rate[v], lines.error[v], lines.size[v] = 0.0, 1.0, 0.0, reach
            continue
        lines.rate[v] = predictions.rates[row, column]
        lines.base[v] = predictions.values[row, column] - lines.rate[v] * shifts[operand]
        lines.error[v] = predictions.errors[row, column]
        lines.size[v] = abs(lines.base[v]) + abs(lines.rate[v]) * reach
    for s in range(len(constraints.shapes.radius)):
        if constraints.shapes.radius[s] < np.inf:
            _scale_distances(s, members, shifts, predictions, rules, constraints, lines)
    return reach


@compiled_uncounted
def _scale_distances(
    s: int, members: I64, shifts: F64, predictions: PredictionArrays, rules: MatchRules, constraints: Constraints,
    lines: Lines,
) -> None:  # fmt: skip
    """Write the distances of an area on the globe for a combination.

    The scales are those of whole periods: a later prediction that cuts a period must not change earlier matches.
    """
    shapes, least, most = constraints.shapes, 1.0, 1.0
    one, other = constraints.forms[shapes.forms[s, 0], 0], constraints.forms[shapes.forms[s, 0], 1]
    begin, end = _longest(one, members, shifts, predictions, rules)
    other_begin, other_end = _longest(other, members, shifts, predictions, rules)
    if constraints.axis[one] == constraints.axis[other]:
        begin = other_begin = max(begin, other_begin)
        end = other_end = max(begin, min(end, other_end))
    for x, first, last in ((one, begin, end), (other, other_begin, other_end)):
        y = constraints.forms[shapes.forms[s, 1], 0]
        if rules.value_of[y, 0] != rules.value_of[x, 0]:
            y = constraints.forms[shapes.forms[s, 1], 1]
        error = math.hypot(lines.error[x], lines.error[y]) if shapes.widen != 0 else 0.0
        low, high = scale_range(
            lines.base[x], lines.rate[x], lines.base[y], lines.rate[y], first, last, error, shapes.radius[s]
        )
        least, most = least * math.sqrt(low), most * math.sqrt(high)
    write_distances(s, least, most, shapes)


@compiled_inline
def _longest(
    v: int, members: I64, shifts: F64, predictions: PredictionArrays, rules: MatchRules
) -> tuple[float, float]:
    """From when to when the prediction of a value could apply."""
    operand = rules.value_of[v, 0]
    row, shift = members[operand], shifts[operand]
    return shift + min(predictions.begin[row], 0.0), shift + max(predictions.end[row], predictions.period[row])


@compiled_uncounted
def _limit_planes(low: F64, high: F64, reach: float, rules: MatchRules, planes: F64, is_open: Bools) -> int:
    """Write the half-planes of when the predictions apply, and of the window; returns their number."""
    dims = planes.shape[1] - 2
    n = 0
    for j in range(len(low)):
        axis = j if dims > 1 else 0
        planes[n] = 0.0
        planes[n, axis], planes[n, dims], is_open[n] = 1.0, high[j], True
        planes[n + 1] = 0.0
        planes[n + 1, axis], planes[n + 1, dims], is_open[n + 1] = -1.0, -low[j], False
        planes[n, dims + 1] = planes[n + 1, dims + 1] = 2.0 * ROUNDING * reach
        n += 2
    for i in range(len(low) if dims > 1 else 0):
        for j in range(len(low)):
            if i != j and rules.windows[i, j] < np.inf:
                planes[n] = 0.0
                planes[n, i], planes[n, j], planes[n, dims], is_open[n] = 1.0, -1.0, rules.windows[i, j], False
                planes[n, dims + 1] = ROUNDING * (rules.windows[i, j] + 2.0 * reach)
                n += 1
    return n


@compiled_uncounted
def _constraint_planes(
    cell: F64, widen: int, constraints: Constraints, lines: Lines, planes: F64, is_open: Bools, n: int
) -> int:
    """Add the half-planes in which all predicted forms are allowed; returns their number, or -1 if none can be."""
    dims = planes.shape[1] - 2
    for f in range(len(constraints.forms)):
        error = error_of(f, constraints, lines.error)
        low, high, low_open, high_open = allowed_predictions(cell[f], widen, error)
        if low > high:
            return -1
        if high < np.inf:
            plane_of(f, constraints, lines, planes[n])
            planes[n, dims] = high - planes[n, dims]
            planes[n, dims + 1] += ROUNDING * (abs(high) + error)
            is_open[n] = high_open
            n += 1
        if low > -np.inf:
            plane_of(f, constraints, lines, planes[n])
            for j in range(dims):
                planes[n, j] = -planes[n, j]
            planes[n, dims] -= low
            planes[n, dims + 1] += ROUNDING * (abs(low) + error)
            is_open[n] = low_open
            n += 1
    return n


@compiled_inline
def _corners(scratch: Scratch, n_planes: int) -> tuple[int, int]:
    """Write the corners of the intersection of half-planes; none if it only touches an open side.

    Returns to which of the two arrays of corners they are written, and their number.
    """
    dims, which, n = scratch.planes.shape[1] - 2, ZERO, ZERO
    if n_planes < 0:
        return which, n
    if dims == 1:
        n = _interval(scratch.low, scratch.high, scratch.planes, scratch.is_open, n_planes, scratch.corners[0])
    elif dims == 2:
        which, n = _polygon(scratch, n_planes)
    else:
        n = vertices(scratch.planes, n_planes, scratch.low, scratch.high, scratch.corners[0])
    corners = scratch.corners[which]
    for k in range(n_planes if n > 0 else 0):
        if scratch.is_open[k] and touches_only(scratch.planes[k], corners, n):
            return which, ZERO
    if dims == 2:
        counter_clockwise(corners, n)
    return which, n


@compiled_inline
def _interval(low: F64, high: F64, planes: F64, is_open: Bools, n_planes: int, ends: F64) -> int:
    """Write the intersection of half-planes of one axis: the ends of an interval, or one point; returns their number.

    Two ends in the wrong order are one point if their distance is a rounding error: that of an end is the slack of its
    plane, divided by the rate.
    """
    reach = planes[0, 2] / ROUNDING
    first, last = low[0], high[0]
    for j in range(1, len(low)):
        first, last = max(first, low[j]), min(last, high[j])
    first_plane, last_plane = ZERO + 1, ZERO  # of when the predictions apply; all of these have the same slack
    for k in range(2 * len(low), n_planes):
        a, c = planes[k, 0], planes[k, 1]
        if abs(a) * reach <= planes[k, 2]:  # the same at all instants
            if c < -planes[k, 2] or (c <= planes[k, 2] and is_open[k]):
                return ZERO
        elif a > 0.0:
            if c < a * last:
                last, last_plane = c / a, k
        elif c < a * first:
            first, first_plane = c / a, k
    ends[0, 0], ends[1, 0] = first, last
    if first < last:
        return ZERO + 2
    first_error = _end_error(planes[first_plane], reach)
    last_error = _end_error(planes[last_plane], reach)
    if first - last > first_error + last_error:
        return ZERO
    if last_error < first_error:
        ends[0, 0] = last
    return ZERO + 1


@compiled_inline
def _end_error(plane: F64, reach: float) -> float:
    """The rounding error of the instant at which the side of a half-plane is."""
    return min(plane[2] / abs(plane[0]), ILL_CONDITIONED * reach)


@compiled_inline
def _polygon(scratch: Scratch, n_planes: int) -> tuple[int, int]:
    """The intersection of half-planes of two axes: the rectangle of when the predictions apply, clipped by the rest.

    Returns to which of the two arrays its corners are written, and their number.
    """
    low, high, which = scratch.low, scratch.high, ZERO
    if low[0] > high[0] or low[1] > high[1]:
        return which, ZERO
    corners = scratch.corners[0]
    corners[0, 0], corners[0, 1], corners[1, 0], corners[1, 1] = low[0], low[1], high[0], low[1]
    corners[2, 0], corners[2, 1], corners[3, 0], corners[3, 1] = high[0], high[1], low[0], high[1]
    n = ZERO + 4
    for k in range(4, n_planes):
        if is_beyond(scratch.corners[which], n, scratch.planes[k]):
            n = clip(scratch.corners[which], n, scratch.planes[k], scratch.corners[1 - which])
            which = 1 - which
            if n == 0:
                break
    return which, n


@compiled_inline
def _earliest(body: Body, scratch: F64) -> float:
    """The smallest latest instant of the points of a region."""
    dims = body.planes.shape[1] - 2
    if dims == 1:
        return body.corners[0, 0]
    if dims == 2:
        return earliest_in_plane(body.corners, body.n)
    return earliest(body, scratch)
