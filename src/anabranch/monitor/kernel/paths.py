"""The regions of accelerated predictions, which are compared at one instant.

A value is a *path*: base + rate t + bend t^2 at instant t. Whether all constraints hold changes only at *marks*
(`roots.py`): where a form reaches a bound, or a location a circle or the border of a polygon. So it suffices to test
the marks and an instant between any two of them. The regions are the longest runs of those that match. A mark at which
nothing changes does no harm, so instants that matter for the probability only are marks, too: where a form is certain,
or most probable, or turns.

At an instant, a path has a tangent, and the probability is that of a linear prediction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.certain import reaches
from anabranch.monitor.kernel.distributions import ZERO
from anabranch.monitor.kernel.ellipsoid import PRECISION
from anabranch.monitor.kernel.lines import Lines, allowed_predictions, probability_at, shape_slack
from anabranch.monitor.kernel.locations import has_weighed_shape
from anabranch.monitor.kernel.polygons import ILL_CONDITIONED, ROUNDING
from anabranch.monitor.kernel.probabilities import Constraints, error_of, predicted_form
from anabranch.monitor.kernel.regions import INSTANT, INWARD, MatchRules, PredictionArrays, empty_lines
from anabranch.monitor.kernel.roots import add_circle, add_extremes, add_mark, add_roots, turning_point
from anabranch.monitor.kernel.shapes import NEAREST, PREDICTED, Shapes, distance_from, which_point
from anabranch.monitor.kernel.zones import chord_of_hexagon, is_match

#: The steps between two marks, and in all, at which the probability is evaluated before the best ones are refined.
_STEPS, _ALL_STEPS = 8, 64
_GOLDEN = 0.6180339887498949
#: The steps of a golden-section search, after which the interval is shorter by a factor of 1e10.
_REFINEMENTS = 48
#: A probability that is this near to 1 is 1.
_CERTAIN = 1.0 - 1e-13
#: The most marks of a form per cell, per interval of its set, and alone; of a ring; and of an edge of a polygon. A form
#: reaches a bound twice at most, and a location a circle four times.
_PER_CELL, _PER_SET, _PER_FORM, _PER_RING, _PER_EDGE = 4, 6, 1, 3 + 2 * (5 * 4 + 4 * 2), 2 * 3 * 2 * 2


class Paths(NamedTuple):
    """The predictions of a combination: value v at instant t is base[v] + rate[v] t + bend[v] t^2.

    `window` has from when to when marks are sought, the magnitude of instants, and the rounding error of their times.
    `form` and `location` are scratch arrays, for the coefficients of a form and of a location.
    """

    base: F64
    rate: F64
    bend: F64
    window: F64
    form: F64
    location: F64


@compiled
def accelerated_regions(
    members: I64, shifts: F64, predictions: PredictionArrays, accelerations: F64, rules: MatchRules,
    constraints: Constraints,
) -> tuple[I64, F64, F64, F64, F64, F64, I64]:  # fmt: skip
    """The regions of combinations with accelerations; all arguments and the result are as in `regions.regions`.

    Regions of one combination do not overlap, also those of different cells.
    """
    found, count = np.empty((len(members) + 16, 7)), ZERO
    n_values = len(rules.value_of)
    lines, point, no_slope = empty_lines(n_values, ZERO + 1, 0), np.zeros(1), np.empty(0)
    paths = Paths(
        np.empty(n_values), np.empty(n_values), np.empty(n_values), np.empty(4), np.empty(3), np.empty((2, 3))
    )
    marks = np.empty((_most_marks(rules, constraints), 2))
    for k in range(len(members)):
        low, high = _write_paths(members[k], shifts[k], predictions, accelerations, rules, paths, lines)
        rounding = ILL_CONDITIONED * paths.window[2] + 2.0 * paths.window[3]
        if low >= high - 2.0 * (ROUNDING * paths.window[2] + paths.window[3]):
            continue
        n = _write_marks(rules, constraints, paths, lines, marks)
        instants = _distinct(marks, n, low, high, rounding)
        matching = _matching(instants, high, rules, constraints, paths, lines)
        begin = ZERO
        while begin < len(matching):
            end = begin
            while end < len(matching) and matching[end]:
                end += 1
            if end > begin:
                if count == len(found):
                    larger = np.empty((2 * count, 7))
                    assign(larger, found)
                    found = larger
                if _write_region(
                    instants, begin, end, high, rules, constraints, paths, lines, point, no_slope, found[count]
                ):
                    found[count, 0] = k
                    count += 1
            begin = end + 1
    return _as_columns(found, count)


@compiled
def _as_columns(found: F64, count: int) -> tuple[I64, F64, F64, F64, F64, F64, I64]:
    """The regions as the columns of `regions.regions`; a region that is one instant has one corner."""
    combination, starts = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    corners, n = np.empty((2 * count, 1)), ZERO
    for k in range(count):
        combination[k] = np.int64(found[k, 0])
        for side in range(2 if found[k, 2] > found[k, 1] else 1):
            corners[n, 0] = found[k, 1 + side]
            n += 1
        starts[k + 1] = n
    interval, certain = found[:count, 1:3].copy(), found[:count, 3:5].copy()
    probability, sample = found[:count, 5].copy(), found[:count, 6:7].copy()
    return combination, interval, certain, probability, sample, corners[:n].copy(), starts


# ---------------------------------------------------------------- paths


@compiled
def _write_paths(
    members: I64, shifts: F64, predictions: PredictionArrays, accelerations: F64, rules: MatchRules, paths: Paths,
    lines: Lines,
) -> tuple[float, float]:  # fmt: skip
    """Write the paths of a combination, relative to the time of its first prediction.

    Returns from when to when all predictions apply. Marks are sought in whole periods: a later prediction that cuts a
    period must not change earlier matches.
    """
    low, high, first, last, reach = -np.inf, np.inf, -np.inf, np.inf, 0.0
    for j in range(len(members)):
        begin, end, shift = predictions.begin[members[j]], predictions.end[members[j]], shifts[j]
        low, high = max(low, shift + begin), min(high, shift + end)
        first = max(first, shift + min(begin, 0.0))
        last = min(last, shift + max(end, predictions.period[members[j]]))
        reach = max(reach, abs(shift), abs(shift + begin), abs(shift + end))
    rounding = shifts[len(members)]
    paths.window[0], paths.window[1], paths.window[2], paths.window[3] = first, last, reach, rounding
    for v in range(len(rules.value_of)):
        operand, column = rules.value_of[v, 0], rules.value_of[v, 1]
        if column == INSTANT:
            paths.base[v], paths.rate[v], paths.bend[v] = 0.0, 1.0, 0.0
            lines.error[v], lines.size[v] = 0.0, reach + rounding / ROUNDING
            continue
        row, since = members[operand], shifts[operand]
        value, rate, bend = predictions.values[row, column], predictions.rates[row, column], accelerations[row, column]
        bend *= 0.5
        paths.base[v], paths.rate[v] = value - since * (rate - since * bend), rate - 2.0 * since * bend
        paths.bend[v], lines.error[v] = bend, predictions.errors[row, column]
        longest = reach + abs(since)
        lines.size[v] = abs(value) + longest * (abs(rate) + longest * abs(bend))
        # The rounding error of an instant is multiplied by the rate at that instant.
        lines.size[v] += (abs(rate) + 2.0 * longest * abs(bend)) * rounding / ROUNDING
    return low, high


@compiled_inline
def _write_form(f: int, constraints: Constraints, paths: Paths, out: F64) -> None:
    """Write the coefficients of the path of a form."""
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    out[0], out[1], out[2] = paths.base[u], paths.rate[u], paths.bend[u]
    if v >= 0:
        out[0] -= paths.base[v]
        out[1] -= paths.rate[v]
        out[2] -= paths.bend[v]


@compiled_inline
def _form_slack(f: int, bound: float, constraints: Constraints, lines: Lines) -> float:
    """The rounding error of the difference between a form and a bound."""
    u, v = constraints.forms[f, 0], constraints.forms[f, 1]
    size = lines.size[u] + (lines.size[v] if v >= 0 else 0.0) + error_of(f, constraints, lines.error)
    return ROUNDING * (size + abs(bound))


@compiled_inline
def _move_to(t: float, paths: Paths, lines: Lines) -> None:
    """Replace the paths by their tangents at an instant, which is then 0 for `lines`."""
    for v in range(len(paths.base)):
        lines.base[v] = paths.base[v] + t * (paths.rate[v] + t * paths.bend[v])
        lines.rate[v] = paths.rate[v] + 2.0 * t * paths.bend[v]
        lines.center[v] = lines.base[v]


# ---------------------------------------------------------------- marks


@compiled_inline
def _most_marks(rules: MatchRules, constraints: Constraints) -> int:
    """An upper bound for the number of marks of a combination."""
    forms, shapes = len(constraints.forms), constraints.shapes
    most = forms * (_PER_CELL * len(rules.cells) + _PER_FORM) + _PER_SET * len(constraints.sets)
    return most + _PER_RING * len(shapes.forms) + _PER_EDGE * len(shapes.edges)


@compiled
def _write_marks(rules: MatchRules, constraints: Constraints, paths: Paths, lines: Lines, marks: F64) -> int:
    """Write the marks of a combination, in no order; returns their number."""
    n = ZERO
    for f in range(len(constraints.forms)):
        error = error_of(f, constraints, lines.error)
        _write_form(f, constraints, paths, paths.form)
        for cell in range(len(rules.cells)):
            low, high, _, _ = allowed_predictions(rules.cells[cell, f], rules.widen, error)
            for bound in (low, high):
                n = _add_bound(f, bound, constraints, paths, lines, marks, n)
        for k in range(constraints.first[f], constraints.first[f + 1]):
            low, high = constraints.sets[k, 0] + error, constraints.sets[k, 1] - error
            for bound in (low, 0.5 * (low + high), high):
                n = _add_bound(f, bound, constraints, paths, lines, marks, n)
        turn = turning_point(paths.form[1], paths.form[2])
        if abs(turn) < np.inf:
            n = add_mark(turn, 0.0, marks, n)
    for s in range(len(constraints.shapes.forms)):
        n = _shape_marks(s, constraints, paths, lines, marks, n)
    return n


@compiled
def _add_bound(f: int, bound: float, constraints: Constraints, paths: Paths, lines: Lines, marks: F64, n: int) -> int:
    """Add the instants at which the form whose path is `paths.form` reaches a bound; returns the number of marks."""
    if not abs(bound) < np.inf:
        return n
    form, slack = paths.form, _form_slack(f, bound, constraints, lines)
    return add_roots(form[0] - bound, form[1], form[2], paths.window[2], slack, marks, n)


@compiled
def _shape_marks(s: int, constraints: Constraints, paths: Paths, lines: Lines, marks: F64, n: int) -> int:
    """Add the instants at which the box around a location may enter or leave an area; returns the number of marks."""
    shapes, location, reach = constraints.shapes, paths.location, paths.window[2]
    for k in range(2):
        _write_form(shapes.forms[s, k], constraints, paths, location[k])
        location[k, 0] -= shapes.centers[s, k]
    ex, ey = (
        error_of(shapes.forms[s, 0], constraints, lines.error),
        error_of(shapes.forms[s, 1], constraints, lines.error),
    )
    slack = shape_slack(s, constraints, lines)
    if shapes.first[s] == shapes.first[s + 1]:
        n = add_extremes(location, paths.window[0], paths.window[1], reach, marks, n)
        return _ring_marks(s, ex, ey, slack, shapes, paths, marks, n)
    for share in (0.0, 1.0):  # the location itself, and the box around it
        if share == 0.0 or ex > 0.0 or ey > 0.0:
            for k in range(shapes.first[s], shapes.first[s + 1]):
                n = _edge_marks(shapes.edges[k], share * ex, share * ey, slack, paths, marks, n)
    return n


@compiled
def _ring_marks(s: int, ex: float, ey: float, slack: float, shapes: Shapes, paths: Paths, marks: F64, n: int) -> int:
    """Add the instants at which the location, a corner of its box or a side of it touches a circle of a ring."""
    location, first, last, reach = paths.location.copy(), paths.window[0], paths.window[1], paths.window[2]
    x, y = location[0, 0], location[1, 0]
    for radius in shapes.distances[s]:
        if radius == np.inf:
            continue
        for side in (-1.0, 0.0, 1.0):
            for other in (-1.0, 0.0, 1.0):
                if (side == 0.0) != (other == 0.0) or (side != 0.0 and ex == 0.0 and ey == 0.0):
                    continue
                location[0, 0], location[1, 0] = x + side * ex, y + other * ey
                n = add_circle(location, radius, first, last, reach, slack, marks, n)
        location[0, 0], location[1, 0] = x, y
        for k, error in ((0, ex), (1, ey)):
            for sign in (-1.0, 1.0):
                base = location[k, 0] + sign * (radius + error)
                n = add_roots(base, location[k, 1], location[k, 2], reach, slack, marks, n)
    return n


@compiled
def _edge_marks(edge: F64, ex: float, ey: float, slack: float, paths: Paths, marks: F64, n: int) -> int:
    """Add the instants at which the box around a location begins or ceases to touch an edge of a polygon."""
    location, reach = paths.location, paths.window[2]
    length = np.hypot(edge[2] - edge[0], edge[3] - edge[1])
    normal_x, normal_y = -(edge[3] - edge[1]) / length, (edge[2] - edge[0]) / length
    for nx, ny in ((1.0, 0.0), (0.0, 1.0), (normal_x, normal_y)):
        one, two = nx * edge[0] + ny * edge[1], nx * edge[2] + ny * edge[3]
        widen = abs(nx) * ex + abs(ny) * ey
        for bound in (min(one, two) - widen, max(one, two) + widen):
            before = n
            n = add_roots(
                nx * location[0, 0] + ny * location[1, 0] - bound, nx * location[0, 1] + ny * location[1, 1],
                nx * location[0, 2] + ny * location[1, 2], reach, slack, marks, n,
            )  # fmt: skip
            kept = before
            for k in range(before, n):  # others are away from the edge
                t = marks[k, 0]
                x = location[0, 0] + t * (location[0, 1] + t * location[0, 2])
                y = location[1, 0] + t * (location[1, 1] + t * location[1, 2])
                low, high = chord_of_hexagon(edge, x, 0.0, y, 0.0, ex, ey, 1.0, 4.0 * slack)
                if low <= high:
                    marks[kept, 0], marks[kept, 1] = t, marks[k, 1]
                    kept += 1
            n = kept
    return n


@compiled
def _distinct(marks: F64, n: int, low: float, high: float, rounding: float) -> F64:
    """`low`, and then the marks between `low` and `high`, in ascending order.

    Marks that differ by their rounding errors are one, with the instant of the more exact one. No error is larger than
    `rounding`.
    """
    for k in range(1, n):
        t, error, index = marks[k, 0], marks[k, 1], k
        while index > 0 and marks[index - 1, 0] > t:
            marks[index, 0], marks[index, 1] = marks[index - 1, 0], marks[index - 1, 1]
            index -= 1
        marks[index, 0], marks[index, 1] = t, error
    instants, errors, count = np.empty(n + 1), np.empty(n + 1), ZERO + 1
    instants[0], errors[0] = low, 0.0
    for k in range(n):
        t, error = marks[k, 0], min(marks[k, 1], rounding)
        if t <= low + error or t >= high - error:
            continue
        if t - instants[count - 1] <= error + errors[count - 1]:
            if error < errors[count - 1]:
                instants[count - 1], errors[count - 1] = t, error
            continue
        instants[count], errors[count] = t, error
        count += 1
    return instants[:count].copy()


# ---------------------------------------------------------------- matches


@compiled
def _matching(
    instants: F64, high: float, rules: MatchRules, constraints: Constraints, paths: Paths, lines: Lines
) -> Bools:
    """Whether the predictions match: at the first instant, between it and the second, and so on to `high`."""
    matching = np.empty(2 * len(instants), np.bool_)
    for k in range(len(matching)):
        t = instants[k // 2]
        if k % 2 == 1:
            t = 0.5 * (t + (instants[k // 2 + 1] if k // 2 + 1 < len(instants) else high))
        _move_to(t, paths, lines)
        matching[k] = _is_in_areas(rules, constraints, lines) and _is_in_cells(rules, constraints, lines)
    return matching


@compiled
def _is_in_cells(rules: MatchRules, constraints: Constraints, lines: Lines) -> bool:
    """Whether the predicted forms are in a cell."""
    for cell in range(len(rules.cells)):
        is_inside = True
        for f in range(len(constraints.forms)):
            predicted, error = predicted_form(f, constraints, lines.center), error_of(f, constraints, lines.error)
            low, high, low_open, high_open = allowed_predictions(rules.cells[cell, f], rules.widen, error)
            is_inside &= low <= high
            if low > -np.inf:
                is_inside &= _is_above(predicted - low, 2.0 * _form_slack(f, low, constraints, lines), low_open)
            if high < np.inf:
                is_inside &= _is_above(high - predicted, 2.0 * _form_slack(f, high, constraints, lines), high_open)
        if is_inside:
            return True
    return False


@compiled_inline
def _is_above(excess: float, slack: float, is_open: bool) -> bool:
    """Whether a number is above 0, or 0 if that is not excluded; up to `slack` it is 0."""
    return excess > slack if is_open else excess >= -slack


@compiled
def _is_in_areas(rules: MatchRules, constraints: Constraints, lines: Lines) -> bool:
    """Whether all locations are in their areas, with the box around them that the semantics asks for."""
    shapes = constraints.shapes
    for s in range(len(shapes.forms)):
        fx, fy = shapes.forms[s, 0], shapes.forms[s, 1]
        x = predicted_form(fx, constraints, lines.center) - shapes.centers[s, 0]
        y = predicted_form(fy, constraints, lines.center) - shapes.centers[s, 1]
        ex, ey = error_of(fx, constraints, lines.error), error_of(fy, constraints, lines.error)
        which, slack = which_point(ex, ey, shapes.widen), 2.0 * shape_slack(s, constraints, lines)
        if which == PREDICTED:
            ex = ey = 0.0
        if shapes.first[s] < shapes.first[s + 1]:
            if not is_match(s, x, y, ex, ey, which, slack, shapes):
                return False
            continue
        # Single points have probability 0, so MAY excludes all ends if there is an error, and MUST none.
        inner_open = shapes.is_open[s, 0] if which == PREDICTED else which == NEAREST
        outer_open = shapes.is_open[s, 1] if which == PREDICTED else which == NEAREST
        inner, outer = shapes.distances[s, 0], shapes.distances[s, 1]
        if not _is_above(outer - distance_from(x, y, ex, ey, which), slack, outer_open):
            return False
        if inner > 0.0 or (inner_open and which == PREDICTED):
            if not _is_above(distance_from(x, y, ex, ey, -which) - inner, slack, inner_open):
                return False
    return True


# ---------------------------------------------------------------- probabilities


@compiled
def _write_region(
    instants: F64, begin: int, end: int, high: float, rules: MatchRules, constraints: Constraints, paths: Paths,
    lines: Lines, point: F64, no_slope: F64, found: F64,
) -> bool:  # fmt: skip
    """Write a run of matching instants, from element `begin` of `_matching` to before `end`, as a region.

    It is a row of: combination, from, to, certain from and to, probability, sample. Returns whether its probability
    reaches the threshold.
    """
    # The last element is a mark if `end` is odd; otherwise it is the span before mark end // 2, or before `high`.
    first, last = instants[begin // 2], instants[end // 2] if end // 2 < len(instants) else high
    steps = _steps(instants, first, last)
    best, top = 0.5 * (first + last), 1.0
    is_exact = len(constraints.groups) == 0 and not has_weighed_shape(constraints)
    if not is_exact:
        best, top = _highest(steps, constraints, paths, lines, point, no_slope)
    if top < rules.threshold or top <= 0.0:
        return False
    found[1], found[2], found[3], found[4], found[5] = first, last, np.nan, np.nan, top
    found[6] = best + INWARD * (0.5 * (first + last) - best)
    if rules.level > 0.0 and is_exact:
        found[3], found[4] = first, last
    elif 0.0 < rules.level <= top + PRECISION:
        level = min(rules.level, top)
        found[3] = _first_reached(steps, best, constraints, paths, lines, level, point, no_slope)
        found[4] = _first_reached(steps[::-1].copy(), best, constraints, paths, lines, level, point, no_slope)
    return True


@compiled
def _steps(instants: F64, first: float, last: float) -> F64:
    """Instants from `first` to `last`, in order: the marks between, and steps between these."""
    if first == last:
        return np.full(1, first)
    inner = ZERO
    for t in instants:
        inner += first < t < last
    count = max(_STEPS, _ALL_STEPS // (inner + 1))
    steps, n, before = np.empty((inner + 1) * count + 1), ZERO, first
    for k in range(len(instants) + 1):
        after = instants[k] if k < len(instants) else last
        if first < after < last or k == len(instants):
            for step in range(count):
                steps[n] = before + (after - before) * step / count
                n += 1
            before = after
    steps[n] = last
    return steps


@compiled
def _highest(
    steps: F64, constraints: Constraints, paths: Paths, lines: Lines, point: F64, no_slope: F64
) -> tuple[float, float]:
    """The instant with the highest probability, and the probability: the best two of some instants are refined."""
    middle = 0.5 * (steps[0] + steps[-1])
    if _probability(middle, constraints, paths, lines, point, no_slope) >= _CERTAIN:
        return middle, 1.0
    values, best, top = np.empty(len(steps)), ZERO, -1.0
    for k in range(len(steps)):
        values[k] = _probability(steps[k], constraints, paths, lines, point, no_slope)
        if values[k] > top:
            best, top = k, values[k]
        if top >= _CERTAIN:
            return steps[k], 1.0
    instant = steps[best]
    second = best
    for k in range(len(steps)):
        is_peak = values[k] >= values[max(k - 1, 0)] and values[k] >= values[min(k + 1, len(steps) - 1)]
        if abs(k - best) > 1 and is_peak and (second == best or values[k] > values[second]):
            second = k
    for number in range(1 if second == best else 2):
        k = second if number else best
        low, high = steps[max(k - 1, 0)], steps[min(k + 1, len(steps) - 1)]
        for _ in range(_REFINEMENTS):
            one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            first_value = _probability(one, constraints, paths, lines, point, no_slope)
            second_value = _probability(two, constraints, paths, lines, point, no_slope)
            if max(first_value, second_value) > top:
                instant, top = (one, first_value) if first_value >= second_value else (two, second_value)
            if first_value >= second_value:
                high = two
            else:
                low = one
    return instant, 1.0 if top >= _CERTAIN else top


@compiled
def _probability(t: float, constraints: Constraints, paths: Paths, lines: Lines, point: F64, no_slope: F64) -> float:
    """The probability at an instant."""
    _move_to(t, paths, lines)
    return probability_at(point, lines, constraints, no_slope)


@compiled
def _first_reached(
    steps: F64, inside: float, constraints: Constraints, paths: Paths, lines: Lines, level: float, point: F64,
    no_slope: F64,
) -> float:  # fmt: skip
    """The first instant that reaches a level, on the way along some instants to `inside`, which reaches it."""
    outside = steps[0]
    for t in steps:
        if (t - inside) * (steps[0] - inside) <= 0.0:
            break
        _move_to(t, paths, lines)
        if reaches(point, lines, constraints, level, no_slope):
            inside = t
            break
        outside = t
    while True:
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            return inside
        _move_to(middle, paths, lines)
        if reaches(point, lines, constraints, level, no_slope):
            inside = middle
        else:
            outside = middle
