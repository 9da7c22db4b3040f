"""Predictions as lines, and the probability of all constraints at some instants."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.distances import area_probability
from anabranch.monitor.kernel.distributions import ZERO
from anabranch.monitor.kernel.polygons import ROUNDING, largest
from anabranch.monitor.kernel.probabilities import (
    Constraints,
    error_of,
    form_probability,
    forms_of,
    has_choices,
    predicted_form,
)
from anabranch.monitor.kernel.shapes import shape_size
from anabranch.monitor.kernel.trees import group_probability


class Lines(NamedTuple):
    """The predictions as lines: value v at instant x is base[v] + rate[v] * x, with error[v].

    `size` is the magnitude of the terms of each value, from which rounding errors follow. `center`, `plane` and `room`
    are scratch arrays: for the values at some instants, for a form as a function of them, and (rows, dims + 2) for
    half-planes and corners.
    """

    base: F64
    rate: F64
    error: F64
    size: F64
    center: F64
    plane: F64
    room: F64


@compiled_inline
def predict_values(point: F64, lines: Lines, constraints: Constraints) -> None:
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


@compiled_inline
def allowed_predictions(bounds: F64, widen: int, error: float) -> tuple[float, float, bool, bool]:
    """The predictions of a form that a cell allows, and whether the ends are excluded; low is above high if none are.

    `bounds` is the row of the form in the cell: low, high, and whether each end is open (1) or not (0).
    """
    low, high = bounds[0] - widen * error, bounds[1] + widen * error
    low_open, high_open = bounds[2] == 1.0, bounds[3] == 1.0
    if widen != 0 and error > 0.0:  # a single value has probability 0
        low_open = high_open = widen > 0
    # MUST with a bound that is the sum of the errors: 0.3 - (0.1 + 0.2) is below 0 in doubles.
    if high < low <= high + ROUNDING * (abs(low) + abs(high) + 2.0 * error):
        low = high = 0.5 * (low + high)
    return low, high, low_open, high_open


@compiled_uncounted
def probability_at(point: F64, lines: Lines, constraints: Constraints, slope: F64) -> float:
    """The probability at a point; the negative gradient of its logarithm is written to `slope`.

    If `slope` is empty, none is computed: that of forms that share values takes an integral for each of them.
    """
    predict_values(point, lines, constraints)
    if has_choices(constraints):
        return _sum_of_choices(lines, constraints, slope)
    return _choice_probability(ZERO, len(constraints.groups), lines, constraints, slope)


@compiled
def _sum_of_choices(lines: Lines, constraints: Constraints, slope: F64) -> float:
    """The sum of the probabilities of choices, of which at most one holds; `slope` is as above."""
    total, begin, rise = 0.0, ZERO, np.zeros(len(slope))
    for g in range(len(constraints.groups) + 1):
        if g == len(constraints.groups) or forms_of(g, constraints)[0] == 0:
            value = _choice_probability(begin, g, lines, constraints, slope)
            total += value
            for j in range(len(slope)):
                rise[j] += value * slope[j]
            begin = g + 1
    if total > 0.0:
        for j in range(len(slope)):
            slope[j] = rise[j] / total
    return min(1.0, total)


@compiled_uncounted
def _choice_probability(begin: int, end: int, lines: Lines, constraints: Constraints, slope: F64) -> float:
    """The product of the probabilities of some groups and of all areas; `slope` is as above."""
    center, e = lines.center, lines.error
    slope[:] = 0.0
    product = 1.0
    for g in range(begin, end):
        count, only = forms_of(g, constraints)
        if count == 1:
            value, derivative = form_probability(only, predicted_form(only, constraints, center), constraints, e)
            if value > 0.0:
                add_slope(only, -derivative / value, lines, constraints, slope)
        else:
            value = group_probability(g, center, constraints, e)
            if value > 0.0:
                _add_joint_slope(g, value, center, lines, constraints, slope)
        if value <= 0.0:
            _slope_away_from_sets(g, center, lines, constraints, slope)
            return 0.0
        product *= value
    for s in range(len(constraints.shapes.is_weighed)):
        if constraints.shapes.is_weighed[s]:
            value, by_x, by_y = area_probability(s, center, constraints, e, shape_slack(s, constraints, lines))
            if value <= 0.0:
                _slope_away_from_center(s, center, lines, constraints, slope)
                return 0.0
            add_slope(constraints.shapes.forms[s, 0], -by_x / value, lines, constraints, slope)
            add_slope(constraints.shapes.forms[s, 1], -by_y / value, lines, constraints, slope)
            product *= value
    return product


@compiled_uncounted
def shape_slack(s: int, constraints: Constraints, lines: Lines) -> float:
    """The rounding error of the coordinates of a location, relative to an area."""
    shapes, size = constraints.shapes, shape_size(s, constraints.shapes)
    for k in range(2):
        f = shapes.forms[s, k]
        u, v = constraints.forms[f, 0], constraints.forms[f, 1]
        size += lines.size[u] + (lines.size[v] if v >= 0 else 0.0) + error_of(f, constraints, lines.error)
    return ROUNDING * size


@compiled_uncounted
def _slope_away_from_center(s: int, center: F64, lines: Lines, constraints: Constraints, slope: F64) -> None:
    """Write a slope for a point at which a location is in its area with probability 0: it points away from the center.

    Only the search over a disk or a convex polygon needs it.
    """
    slope[:] = 0.0
    for k in range(2):
        f = constraints.shapes.forms[s, k]
        offset = predicted_form(f, constraints, center) - constraints.shapes.centers[s, k]
        beyond = abs(offset) - error_of(f, constraints, lines.error)
        if beyond > 0.0:
            add_slope(f, math.copysign(beyond, offset), lines, constraints, slope)


@compiled_uncounted
def add_slope(f: int, decline: float, lines: Lines, constraints: Constraints, slope: F64) -> None:
    """Add the slope of a function that declines at this rate with the predicted value of a form."""
    if len(slope) == 0:
        return
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    slope[constraints.axis[u]] += decline * lines.rate[u]
    if v >= 0:
        slope[constraints.axis[v]] -= decline * lines.rate[v]


@compiled_uncounted
def _add_joint_slope(g: int, value: float, center: F64, lines: Lines, constraints: Constraints, slope: F64) -> None:
    """The same for a group of forms, by finite differences."""
    for v in range(len(center) if len(slope) > 0 else 0):
        if _is_used(v, g, constraints):
            step = 1e-8 * (largest(lines.error) + 1e-3 * abs(center[v]))
            original = center[v]
            center[v] = original + step
            after = group_probability(g, center, constraints, lines.error)
            center[v] = original
            slope[constraints.axis[v]] += (value - after) / (step * value) * lines.rate[v]


@compiled_uncounted
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
                add_slope(f, -1.0, lines, constraints, slope)
            elif predicted > high:
                add_slope(f, 1.0, lines, constraints, slope)


@compiled_uncounted
def _is_used(v: int, g: int, constraints: Constraints) -> bool:
    for f in range(constraints.groups.shape[1]):
        if constraints.groups[g, f] and (constraints.forms[f, 0] == v or constraints.forms[f, 1] == v):
            return True
    return False
