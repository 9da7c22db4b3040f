"""Areas in the plane: rings around a center, and where a line is inside them; polygons are in `zones.py`.

A location, or the difference of two, is a point (x, y) that moves on a line: (x + t dx, y + t dy). Its true place is in
a box around the prediction, ex to the left and right and ey up and down. A query asks for its distance from a center.

- EXPECTED: the predicted distance must be in the ring.
- MAY: the box must overlap the ring. The *nearest* point of the box counts for the outer circle, and the *farthest* for
  the inner one.
- MUST: the box must be inside the ring. The farthest point counts for the outer circle, and the nearest for the inner
  one.

The points whose nearest distance is at most r are a square with round corners; those whose farthest distance is at most
r are the intersection of four disks. Both are convex, so a line has one interval in them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.distributions import ZERO

#: Which point of the box counts for a distance.
FARTHEST, PREDICTED, NEAREST = -1, 0, 1
#: The most pieces of a line in a ring.
MOST_IN_RING = 2


class Shapes(NamedTuple):
    """The areas of a query.

    Attributes
    ----------
    forms : (S, 2) the forms of x and y
    centers : (S, 2) of a ring
    distances : (S, 2) the smallest and the largest distance from the center
    is_open : (S, 2) whether these distances are excluded
    first, edges : the edges of polygon s are edges[first[s] : first[s + 1]], each (x, y, x, y), with the polygon to the
        left; a ring has none
    is_outside : (S,) whether the location must be outside of the polygon
    is_convex : (S,) whether the area is convex
    is_curved : (S,) whether x and y depend on two instants, so that the matching instants have a curved boundary
    is_weighed : (S,) whether the probability depends on the shape; otherwise it is 1 in all matching instants
    widen : 1 for MAY, -1 for MUST, 0 for EXPECTED
    stated : (S, 2) the distances where the scale of a projection is 1; `distances` has those of a combination
    radius : (S,) of the globe, if the distance of two locations depends on the scale; infinite in the plane
    """

    forms: I64
    centers: F64
    distances: F64
    is_open: Bools
    first: I64
    edges: F64
    is_outside: Bools
    is_convex: Bools
    is_curved: Bools
    is_weighed: Bools
    widen: int
    stated: F64
    radius: F64


@compiled_uncounted
def most_pieces(shapes: Shapes) -> int:
    """An upper bound for the pieces of a line in an area: an edge of a polygon cuts the line at most twice."""
    most = MOST_IN_RING
    for s in range(len(shapes.is_curved)):
        most = max(most, 2 * (shapes.first[s + 1] - shapes.first[s]) + 1)
    return most


@compiled_uncounted
def shape_size(s: int, shapes: Shapes) -> float:
    """The magnitude of the numbers of an area: its center, and its largest finite distance or coordinate."""
    size = shapes.distances[s, 1] if shapes.distances[s, 1] < np.inf else shapes.distances[s, 0]
    for k in range(shapes.first[s], shapes.first[s + 1]):
        for coordinate in shapes.edges[k]:
            size = max(size, abs(coordinate))
    return size + abs(shapes.centers[s, 0]) + abs(shapes.centers[s, 1])


@compiled_inline
def distance_from(x: float, y: float, ex: float, ey: float, which: int) -> float:
    """The distance of a point of the box around (x, y) from 0."""
    return math.hypot(max(abs(x) + ex * -which, 0.0), max(abs(y) + ey * -which, 0.0))


@compiled_inline
def which_point(ex: float, ey: float, widen: int) -> int:
    """The point of the box that counts for the outer circle; its opposite counts for the inner one."""
    return widen if ex > 0.0 or ey > 0.0 else PREDICTED


# ---------------------------------------------------------------- the globe


@compiled
def scale_range(
    x: float, dx: float, y: float, dy: float, begin: float, end: float, error: float, radius: float
) -> tuple[float, float]:
    """The smallest and the largest scale of a projection along a line, from `begin` to `end` and up to an error."""
    speed = dx * dx + dy * dy
    nearest = min(max(-(x * dx + y * dy) / speed, begin), end) if speed > 0.0 else begin
    least = max(math.hypot(x + nearest * dx, y + nearest * dy) - error, 0.0)
    most = max(math.hypot(x + begin * dx, y + begin * dy), math.hypot(x + end * dx, y + end * dy)) + error
    return 1.0 + (least / (2.0 * radius)) ** 2, 1.0 + (most / (2.0 * radius)) ** 2


@compiled_inline
def write_distances(s: int, least: float, most: float, shapes: Shapes) -> None:
    """Write the distances of an area whose scale is in a range: the largest area for MAY, the smallest for MUST."""
    middle = 0.5 * (least + most)
    outer = most if shapes.widen > 0 else least if shapes.widen < 0 else middle
    inner = least if shapes.widen > 0 else most if shapes.widen < 0 else middle
    shapes.distances[s, 0], shapes.distances[s, 1] = shapes.stated[s, 0] * inner, shapes.stated[s, 1] * outer


# ---------------------------------------------------------------- a line and a circle


@compiled
def chord(
    x: float, dx: float, y: float, dy: float, ex: float, ey: float, which: int, radius: float, reach: float,
    slack: float,
) -> tuple[float, float]:  # fmt: skip
    """Where on a line the distance of a point of the box is at most a radius; the first is above the second if nowhere.

    `reach` is the magnitude of positions on the line, and `slack` the rounding error of distances: a line that misses
    the circle by less touches it. A negative slack excludes touching lines.
    """
    if which == PREDICTED:
        return _disk_chord(x, dx, y, dy, radius, reach, slack)
    if which == FARTHEST:
        return _common_chord(x, dx, y, dy, ex, ey, radius, reach, slack)
    return _rounded_chord(x, dx, y, dy, ex, ey, radius, reach, slack)


@compiled
def _disk_chord(
    x: float, dx: float, y: float, dy: float, radius: float, reach: float, slack: float
) -> tuple[float, float]:
    speed = math.hypot(dx, dy)
    if speed * reach <= abs(slack):
        return (-np.inf, np.inf) if math.hypot(x, y) <= radius + slack else (np.inf, -np.inf)
    across = abs(x * dy - y * dx) / speed
    if across > radius + slack:
        return np.inf, -np.inf
    middle = -(x * dx + y * dy) / (speed * speed)
    half = 0.0 if abs(radius - across) <= abs(slack) else math.sqrt((radius - across) * (radius + across)) / speed
    return middle - half, middle + half


@compiled
def _common_chord(
    x: float, dx: float, y: float, dy: float, ex: float, ey: float, radius: float, reach: float, slack: float
) -> tuple[float, float]:
    """The chord of the intersection of four disks, around the corners of the box."""
    low, high = -np.inf, np.inf
    for side in (-1.0, 1.0):
        for other in (-1.0, 1.0):
            begin, end = _disk_chord(x + side * ex, dx, y + other * ey, dy, radius, reach, slack)
            low, high = max(low, begin), min(high, end)
    if low > high and (low - high) * math.hypot(dx, dy) <= 2.0 * slack:  # the disks touch
        low = high = 0.5 * (low + high)
    return low, high


@compiled
def _rounded_chord(
    x: float, dx: float, y: float, dy: float, ex: float, ey: float, radius: float, reach: float, slack: float
) -> tuple[float, float]:
    """The chord of a box with round corners: of two boxes and four disks that cover it."""
    low, high = _box_chord(x, dx, y, dy, ex + radius, ey, reach, slack)
    begin, end = _box_chord(x, dx, y, dy, ex, ey + radius, reach, slack)
    low, high = min(low, begin), max(high, end)
    for side in (-1.0, 1.0):
        for other in (-1.0, 1.0):
            begin, end = _disk_chord(x + side * ex, dx, y + other * ey, dy, radius, reach, slack)
            low, high = min(low, begin), max(high, end)
    return low, high


@compiled
def _box_chord(
    x: float, dx: float, y: float, dy: float, width: float, height: float, reach: float, slack: float
) -> tuple[float, float]:
    """Where on a line |x| is at most the width, and |y| at most the height."""
    low, high = -np.inf, np.inf
    for at, rate, limit in ((x, dx, width), (y, dy, height)):
        if abs(rate) * reach <= abs(slack):
            if abs(at) > limit + slack:
                return np.inf, -np.inf
        else:
            one, two = (-limit - at) / rate, (limit - at) / rate
            low, high = max(low, min(one, two)), min(high, max(one, two))
    return (low, high) if low <= high else (np.inf, -np.inf)


@compiled
def pieces_in_ring(
    s: int, x: float, dx: float, y: float, dy: float, ex: float, ey: float, reach: float, slack: float,
    shapes: Shapes, pieces: F64,
) -> int:  # fmt: skip
    """Write where a line is in a ring: (from, to, whether each is excluded); returns the number of pieces."""
    which = which_point(ex, ey, shapes.widen)
    # Single points of a line have probability 0, so MAY excludes all ends if there is an error, and MUST none.
    outer_open = shapes.is_open[s, 1] if which == PREDICTED else which == NEAREST
    inner_open = shapes.is_open[s, 0] if which == PREDICTED else which == NEAREST
    low, high = -np.inf, np.inf
    if shapes.distances[s, 1] < np.inf:
        outer_slack = -slack if outer_open else slack
        low, high = chord(x, dx, y, dy, ex, ey, which, shapes.distances[s, 1], reach, outer_slack)
    if low > high:
        return ZERO
    first, last = np.inf, -np.inf  # the part inside the inner circle, which is left out
    if shapes.distances[s, 0] > 0.0 or (inner_open and which == PREDICTED):
        inner_slack = slack if inner_open else -slack
        first, last = chord(x, dx, y, dy, ex, ey, -which, shapes.distances[s, 0], reach, inner_slack)
    n = ZERO
    if first > last:
        write_piece(pieces[n], low, high, outer_open, outer_open)
        return n + 1
    if low < first:
        write_piece(pieces[n], low, min(first, high), outer_open, inner_open if first <= high else outer_open)
        n += 1
    if last < high:
        write_piece(pieces[n], max(last, low), high, inner_open if last >= low else outer_open, outer_open)
        n += 1
    return n


@compiled_inline
def write_piece(piece: F64, low: float, high: float, low_open: bool, high_open: bool) -> None:
    """Write an interval, and whether it excludes its ends."""
    piece[0], piece[1], piece[2], piece[3] = low, high, 1.0 if low_open else 0.0, 1.0 if high_open else 0.0
