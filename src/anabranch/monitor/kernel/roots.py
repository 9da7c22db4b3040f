"""The instants at which accelerated values reach given numbers, and moving locations given circles.

A value is a polynomial of degree 2 in the instant, so its distance to a number has a formula. The square of the
distance of a location from a point has degree 4: its extremes are found first, by the roots of its derivatives, and the
distance is monotonic between two of them.

An instant is a *mark*: a row (instant, its rounding error) of an array. Where a value touches a number without crossing
it, up to rounding, there is one mark.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled, compiled_inline
from anabranch.monitor.kernel.distributions import ZERO, sorted_few

#: The most steps of a bisection; the interval is then as short as a double allows.
_STEPS = 1100
#: What is evaluated along a path: its distance from 0, or half the derivative of the square of this distance.
_DISTANCE, _DERIVATIVE = 0, 1


@compiled_inline
def add_mark(instant: float, error: float, marks: F64, n: int) -> int:
    """Add a mark with a rounding error; returns the number of marks."""
    marks[n, 0], marks[n, 1] = instant, error
    return n + 1


@compiled
def add_roots(base: float, rate: float, bend: float, reach: float, slack: float, marks: F64, n: int) -> int:
    """Add the instants at which base + rate t + bend t^2 is 0 up to `slack`; returns the number of marks.

    `reach` is the magnitude of the instants. If the polynomial is the same at all of them, there are none.
    """
    if (abs(rate) + abs(bend) * reach) * reach <= slack:
        return n
    if bend == 0.0:
        return add_mark(-base / rate, slack / abs(rate), marks, n)
    discriminant = rate * rate - 4.0 * base * bend
    if abs(discriminant) <= 8.0 * abs(bend) * slack:  # the extreme is 0 up to twice the slack, as in the test of a mark
        return add_mark(-0.5 * rate / bend, math.sqrt(slack / abs(bend)), marks, n)
    if discriminant < 0.0:
        return n
    # The slope at both roots; the sum of two numbers of the same sign has no cancellation.
    slope = math.sqrt(discriminant)
    larger = -0.5 * (rate + math.copysign(slope, rate))
    n = add_mark(larger / bend, slack / slope, marks, n)
    return add_mark(base / larger, slack / slope, marks, n)


@compiled_inline
def turning_point(rate: float, bend: float) -> float:
    """The instant at which a value has its extreme; not a finite number if there is none."""
    return -0.5 * rate / bend if bend != 0.0 else np.inf


# ---------------------------------------------------------------- circles


@compiled
def add_extremes(path: F64, first: float, last: float, reach: float, marks: F64, n: int) -> int:
    """Add the instants between two others at which the distance of a location from 0 has an extreme.

    `path` (2, 3) has the base, the rate and the bend of both coordinates.
    """
    # The derivative of x x' + y y', which has degree 3.
    base, rate, bend = 0.0, 0.0, 0.0
    for k in range(2):
        base += path[k, 1] * path[k, 1] + 2.0 * path[k, 0] * path[k, 2]
        rate += 6.0 * path[k, 1] * path[k, 2]
        bend += 6.0 * path[k, 2] * path[k, 2]
    turns = np.empty((2, 2))
    stretches = _stretches(turns, add_roots(base, rate, bend, reach, 0.0, turns, ZERO), first, last)
    for k in range(len(stretches)):
        instant = _crossing(path, _DERIVATIVE, 0.0, stretches[k, 0], stretches[k, 1])
        if instant == instant:
            n = add_mark(instant, 0.0, marks, n)
    return n


@compiled
def add_circle(
    path: F64, radius: float, first: float, last: float, reach: float, slack: float, marks: F64, n: int
) -> int:
    """Add the instants between two others at which the distance of a location from 0 is a radius, up to `slack`."""
    extremes = np.empty((3, 2))
    n_extremes = add_extremes(path, first, last, reach, extremes, ZERO)
    for k in range(n_extremes):
        if abs(_along(path, _DISTANCE, radius, extremes[k, 0])) <= 2.0 * slack:
            n = add_mark(extremes[k, 0], np.inf, marks, n)
    stretches = _stretches(extremes, n_extremes, first, last)
    for k in range(len(stretches)):
        begin, end = stretches[k, 0], stretches[k, 1]
        if min(abs(_along(path, _DISTANCE, radius, begin)), abs(_along(path, _DISTANCE, radius, end))) <= 2.0 * slack:
            continue  # it only touches the circle there
        instant = _crossing(path, _DISTANCE, radius, begin, end)
        if instant == instant:
            speed = abs(_along(path, _DERIVATIVE, 0.0, instant)) / max(radius, slack)
            n = add_mark(instant, slack / speed if speed > 0.0 else np.inf, marks, n)
    return n


@compiled_inline
def _along(path: F64, what: int, radius: float, t: float) -> float:
    """The distance of a location from a circle at an instant, or half the derivative of the square of its distance."""
    x = path[0, 0] + t * (path[0, 1] + t * path[0, 2])
    y = path[1, 0] + t * (path[1, 1] + t * path[1, 2])
    if what == _DISTANCE:
        return math.hypot(x, y) - radius
    return x * (path[0, 1] + 2.0 * t * path[0, 2]) + y * (path[1, 1] + 2.0 * t * path[1, 2])


@compiled
def _stretches(marks: F64, n: int, first: float, last: float) -> F64:
    """The parts between two instants, divided by the marks that are between them: (from, to)."""
    ends, count = np.empty(n + 2), ZERO
    for k in range(n):
        if first < marks[k, 0] < last:
            ends[count] = marks[k, 0]
            count += 1
    inner, parts = sorted_few(ends, count), np.empty((count + 1, 2))
    for k in range(count + 1):
        parts[k, 0] = first if k == 0 else inner[k - 1]
        parts[k, 1] = last if k == count else inner[k]
    return parts


@compiled
def _crossing(path: F64, what: int, radius: float, low: float, high: float) -> float:
    """The root between two instants of a function that is monotonic there, by bisection; NaN if there is none."""
    before, after = _along(path, what, radius, low), _along(path, what, radius, high)
    if before == 0.0 or (before > 0.0) == (after > 0.0):
        return low if before == 0.0 else np.nan
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if (_along(path, what, radius, middle) > 0.0) == (before > 0.0):
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
