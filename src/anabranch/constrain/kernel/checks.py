"""Questions and events as numbers, and whether two events agree.

A *variable* is a number over all questions together. A *pair* is two variables of one question, in this order; it has
bounds on how much later the second may be, and checks. A *role* is an event as one variable that it can be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

#: What a check compares, of two events: two columns, the difference of two columns, the amount of that difference, two
#: times, the amount by which they differ, the distance of places, or the gap between two boxes.
COLUMNS, DIFFERENCE, SPREAD, TIMES, SPAN, DISTANCE, BOXES = range(7)

#: How: the order is that of `OPERATORS`.
LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL = range(6)
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")

#: Which of an event's times a check is about.
END, BEGIN = range(2)

#: Squares of distances that differ by less than this share are not told apart by their squares.
_NEAR = 1e-13


class Graph(NamedTuple):
    """Questions as numbers.

    Attributes
    ----------
    first : the first variable of each question; one entry more than questions
    question : of each variable
    count : how many events a variable stands for
    pair : the number of the pair of a variable with the first of its question; the others follow
    earliest, latest : of each pair, the least and the most that the second may be later than the first, as times are
        measured; what follows from all bounds together
    longest : of each variable, the most that any other of its question may be later
    reach : of each pair, how far apart they may be, as places are measured
    check : where the checks of each pair begin; one entry more than pairs
    what, how, value, left, right : the checks; `left` and `right` are columns, or times
    swapped : whether a check is written with the second of the pair on its left
    scale : how many units of a time make one of a check's value
    radius : of the globe in metres, or 0 for the plane
    """

    first: Any
    question: Any
    count: Any
    pair: Any
    earliest: Any
    latest: Any
    longest: Any
    reach: Any
    check: Any
    what: Any
    how: Any
    value: Any
    left: Any
    right: Any
    swapped: Any
    scale: float
    radius: float


class Events(NamedTuple):
    """Events in order of time, and the roles that each can play.

    Attributes
    ----------
    t, begin : when it ended, and when it began; the same array where events are instants
    at : (n, 3) places: in the plane, or on the unit sphere; NaN where it is not known
    columns : (n, columns) numbers that checks compare; NaN where there is none
    role : where the roles of each event begin; one entry more than events
    event, variable : of each role; the variables of one event rise
    home : whether solutions that a role completes are reported here
    """

    t: Any
    begin: Any
    at: Any
    columns: Any
    role: Any
    event: Any
    variable: Any
    home: Any


@njit(cache=True, inline="always")
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


@njit(cache=True)
def chord(at: F64, i: int, j: int) -> float:
    """The square of the straight way between two places."""
    x, y, z = at[i, 0] - at[j, 0], at[i, 1] - at[j, 1], at[i, 2] - at[j, 2]
    return x * x + y * y + z * z


@njit(cache=True)
def distance(at: F64, i: int, j: int, radius: float) -> float:
    """How far two events are apart, in the unit of the plane, or in metres on the globe."""
    if radius == 0.0:
        return np.hypot(at[i, 0] - at[j, 0], at[i, 1] - at[j, 1])
    return 2.0 * radius * np.arcsin(min(1.0, np.sqrt(chord(at, i, j)) / 2.0))


@njit(cache=True)
def straight(way: float, radius: float) -> float:
    """The straight way that belongs to a distance; none is longer than through the centre of the globe."""
    return way if radius == 0.0 else 2.0 * np.sin(min(way / (2.0 * radius), np.pi / 2.0))


@njit(cache=True)
def _is_apart(how: int, value: float, events: Events, i: int, j: int, radius: float) -> bool:
    """Whether a distance compares as asked; roots and arcs are left out where squares decide."""
    square = chord(events.at, i, j)
    if np.isnan(square):
        return False
    if value >= 0.0 and (radius == 0.0 or value < 3.0 * radius):
        limit = straight(value, radius) ** 2
        if abs(square - limit) > _NEAR * limit:
            return _compare(how, square, limit)
    return _compare(how, distance(events.at, i, j, radius), value)


@njit(cache=True)
def _gap(columns: F64, i: int, left: int, j: int, right: int) -> float:
    """How far two boxes are apart; a box is four columns: its least x and y, then its greatest."""
    x = max(columns[i, left] - columns[j, right + 2], columns[j, right] - columns[i, left + 2], 0.0)
    y = max(columns[i, left + 1] - columns[j, right + 3], columns[j, right + 1] - columns[i, left + 3], 0.0)
    return np.hypot(x, y) if columns[i, left] == columns[i, left] and columns[j, right] == columns[j, right] else np.nan


@njit(cache=True)
def _holds(graph: Graph, events: Events, check: int, i: int, j: int) -> bool:
    """Whether a check holds for event i on its left and event j on its right."""
    what, how, value = graph.what[check], graph.how[check], graph.value[check]
    left, right = graph.left[check], graph.right[check]
    if what == DISTANCE:
        return _is_apart(how, value, events, i, j, graph.radius)
    if what == BOXES:
        return _compare(how, _gap(events.columns, i, left, j, right), value)
    if what == COLUMNS:
        return _compare(how, events.columns[i, left], events.columns[j, right])
    if what == DIFFERENCE:
        return _compare(how, events.columns[i, left] - events.columns[j, right], value)
    if what == SPREAD:
        return _compare(how, abs(events.columns[i, left] - events.columns[j, right]), value)
    one = events.begin[i] if left == BEGIN else events.t[i]
    other = events.begin[j] if right == BEGIN else events.t[j]
    apart = np.float64(one - other) / graph.scale
    return _compare(how, abs(apart) if what == SPAN else apart, value)


@njit(cache=True)
def agree(graph: Graph, events: Events, pair: int, i: int, j: int) -> bool:
    """Whether event i as the first of a pair and event j as the second pass every check between them."""
    for check in range(graph.check[pair], graph.check[pair + 1]):
        swapped = graph.swapped[check]
        if not _holds(graph, events, check, j if swapped else i, i if swapped else j):
            return False
    return True
