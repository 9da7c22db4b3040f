"""Decides whether two events agree: whether they pass all checks between them."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled_inline
from anabranch.constrain.kernel.tables import (
    AT_LEAST,
    AT_MOST,
    BEGIN,
    BOXES,
    COLUMNS,
    DIFFERENCE,
    DISTANCE,
    EQUAL,
    LESS,
    MORE,
    SPAN,
    SPREAD,
    Table,
)

#: If two squares of distances differ by less than this share, the distances themselves are compared.
_NEAR = 1e-13


@compiled_inline
def _compare(how: int, left: float, right: float) -> bool:
    if how == LESS:
        return left < right
    if how == AT_MOST:
        return left <= right
    if how == MORE:
        return left > right
    if how == AT_LEAST:
        return left >= right
    if how == EQUAL:
        return left == right
    return left != right and not np.isnan(left) and not np.isnan(right)


@compiled_inline
def _compare_rounded(how: int, left: float, right: float, slack: float) -> bool:
    """Compare two numbers that are equal if they differ by at most `slack`."""
    if how == LESS:
        return left < right - slack
    if how == AT_MOST:
        return left <= right + slack
    if how == MORE:
        return left > right + slack
    if how == AT_LEAST:
        return left >= right - slack
    return (abs(left - right) <= slack) == (how == EQUAL)


@compiled_inline
def _square(events: Table, i: int, j: int) -> float:
    """The square of the straight distance between two events."""
    x, y, z = events[i].x - events[j].x, events[i].y - events[j].y, events[i].z - events[j].z
    return x * x + y * y + z * z


@compiled_inline
def distance(events: Table, i: int, j: int, radius: float) -> float:
    """The distance between two events: straight, or on the globe the great circle in metres."""
    if radius == 0.0:
        return np.hypot(np.hypot(events[i].x - events[j].x, events[i].y - events[j].y), events[i].z - events[j].z)
    return 2.0 * radius * np.arcsin(min(1.0, np.sqrt(_square(events, i, j)) / 2.0))


def straight(distance: float, radius: float) -> float:
    """The straight distance for a distance: on the globe, the chord of the unit sphere, at most its diameter."""
    return distance if radius == 0.0 else 2.0 * np.sin(min(distance / (2.0 * radius), np.pi / 2.0))


@compiled_inline
def _is_apart(how: int, value: float, limit: float, events: Table, i: int, j: int, radius: float) -> bool:
    """Whether a check of a distance holds; roots and arcs are only computed if the squares do not decide."""
    square = _square(events, i, j)
    if np.isnan(square):
        return False
    if value >= 0.0 and (radius == 0.0 or value < 3.0 * radius) and abs(square - limit) > _NEAR * limit:
        return _compare(how, square, limit)
    return _compare(how, distance(events, i, j, radius), value)


@compiled_inline
def _gap(columns: F64, i: int, left: int, j: int, right: int) -> float:
    """The distance between two boxes; a box is four columns: its lowest x and y, then its highest."""
    if np.isnan(columns[i, left]) or np.isnan(columns[j, right]):
        return np.nan
    x = max(columns[i, left] - columns[j, right + 2], columns[j, right] - columns[i, left + 2], 0.0)
    y = max(columns[i, left + 1] - columns[j, right + 3], columns[j, right + 1] - columns[i, left + 3], 0.0)
    return np.hypot(x, y)


@compiled_inline
def _holds(checks: Table, check: int, events: Table, columns: F64, i: int, j: int, scale: float, radius: float) -> bool:
    """Whether a check holds for event i on its left and event j on its right."""
    what, how, value = checks[check].what, checks[check].how, checks[check].value
    left, right = checks[check].left, checks[check].right
    if what == DISTANCE:
        return _is_apart(how, value, checks[check].limit, events, i, j, radius)
    if what == COLUMNS:
        return _compare(how, columns[i, left], columns[j, right])
    if what == DIFFERENCE:
        return _compare(how, columns[i, left] - columns[j, right], value)
    if what == SPREAD:
        return _compare(how, abs(columns[i, left] - columns[j, right]), value)
    if what == BOXES:
        return _compare(how, _gap(columns, i, left, j, right), value)
    one = events[i].begin if left == BEGIN else events[i].t
    other = events[j].begin if right == BEGIN else events[j].t
    apart, slack = np.float64(one - other) / scale, checks[check].rounding * max(abs(one), abs(other))
    return _compare_rounded(how, abs(apart) if what == SPAN else apart, value, slack)


@compiled_inline
def agree(
    pairs: Table, checks: Table, events: Table, columns: F64, pair: int, i: int, j: int, scale: float, radius: float
) -> bool:
    """Whether event i as the first of a pair and event j as the second pass every check between them."""
    for check in range(pairs[pair].check, pairs[pair].end):
        swapped = checks[check].swapped
        first, second = (j, i) if swapped else (i, j)
        if not _holds(checks, check, events, columns, first, second, scale, radius):
            return False
    return True
