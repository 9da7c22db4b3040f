"""Polygons in the plane: where a line is inside one, with a box around the moving point.

The boundary of a polygon is a list of edges; with holes, it has several rings. The points whose box touches an edge are
a hexagon around it. Away from all hexagons, the whole box is on one side of the boundary. So it suffices to know, at a
point, whether it is in a hexagon, and whether it is inside the polygon:

- EXPECTED: the predicted point is inside or on an edge, which is a hexagon of a box without a size.
- MAY: inside, or in a hexagon.
- MUST: inside, and in no hexagon.

With `outside`, the inside and the outside are exchanged. On a line, this changes only where it enters or leaves a
hexagon.

If one coordinate has no error, the box is a segment. It can be on an edge along its whole length, which is then inside.
So MAY and MUST compare the length of the part that is inside with 0 and with the whole length.
"""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import compiled
from anabranch.monitor.kernel.distributions import ZERO, sorted_few
from anabranch.monitor.kernel.shapes import FARTHEST, PREDICTED, Shapes, which_point, write_piece


@compiled
def is_match(s: int, x: float, y: float, ex: float, ey: float, which: int, slack: float, shapes: Shapes) -> bool:
    """Whether a point with a box around it matches; `slack` is the rounding error of coordinates."""
    if which != PREDICTED and (ex == 0.0 or ey == 0.0):
        return _is_segment_match(s, x, y, ex, ey, which, slack, shapes)
    # Contacts have probability 0 if there is an error.
    slack = slack if which == PREDICTED else -slack
    inside, touches = False, False
    for k in range(shapes.first[s], shapes.first[s + 1]):
        edge = shapes.edges[k]
        low, high = chord_of_hexagon(edge, x, 0.0, y, 0.0, ex, ey, 1.0, slack)
        touches |= low <= high
        if (edge[1] > y) != (edge[3] > y):
            inside ^= x < edge[0] + (y - edge[1]) / (edge[3] - edge[1]) * (edge[2] - edge[0])
    if shapes.is_outside[s]:
        inside = not inside
        if which == PREDICTED:
            return inside and not touches
    return inside and not touches if which == FARTHEST else inside or touches


@compiled
def _is_segment_match(
    s: int, x: float, y: float, ex: float, ey: float, which: int, slack: float, shapes: Shapes
) -> bool:
    """The same for a box without width or without height, by the length of its part that is inside."""
    middle, half, inside = (x, ex, 0.0) if ey == 0.0 else (y, ey, 0.0)
    low, high = middle - half, middle + half
    for k in range(shapes.first[s], shapes.first[s + 1]):
        edge = shapes.edges[k]
        if ey == 0.0:
            begin, end, _ = slice_part(edge[0], edge[1] - y, edge[2], edge[3] - y, slack)
        else:  # with the axes exchanged, the polygon is to the left of an edge that runs backwards
            begin, end, _ = slice_part(edge[3], edge[2] - x, edge[1], edge[0] - x, slack)
        inside += min(max(end, low), high) - min(max(begin, low), high)
    if shapes.is_outside[s]:
        inside = 2.0 * half - inside
    slack = min(slack, half)
    return inside >= 2.0 * half - slack if which == FARTHEST else inside > slack


@compiled
def slice_part(u0: float, v0: float, u1: float, v1: float, slack: float) -> tuple[float, float, float]:
    """The part of an edge in the slice of a polygon at v = 0: (begin, end, change of u with v along the edge).

    The slice is the sum of (-inf, end] minus that of (-inf, begin] over all edges. An edge that crosses v = 0 has one
    of the two. They add up to the slice just above 0. An edge on v = 0 with the polygon below is missing there, and is
    added from end to end. The polygon is to the left of an edge, and v is 0 up to `slack`.
    """
    v0, v1 = 0.0 if abs(v0) <= slack else v0, 0.0 if abs(v1) <= slack else v1
    if v0 == 0.0 and v1 == 0.0 and u1 < u0:
        return u1, u0, 0.0
    if (v0 > 0.0) == (v1 > 0.0):
        return -np.inf, -np.inf, 0.0
    tilt = (u1 - u0) / (v1 - v0)
    at = u0 - v0 * tilt
    return (-np.inf, at, tilt) if v1 > v0 else (at, -np.inf, tilt)


@compiled
def chord_of_hexagon(
    edge: F64, x: float, dx: float, y: float, dy: float, ex: float, ey: float, reach: float, slack: float
) -> tuple[float, float]:
    """Where on a line the box around the point touches an edge; the first is above the second if nowhere."""
    low, high = -np.inf, np.inf
    along_x, along_y = edge[2] - edge[0], edge[3] - edge[1]
    length = math.hypot(along_x, along_y)
    normal_x, normal_y = -along_y / length, along_x / length
    for nx, ny in ((1.0, 0.0), (0.0, 1.0), (normal_x, normal_y)):
        one, two = nx * edge[0] + ny * edge[1], nx * edge[2] + ny * edge[3]
        widen = abs(nx) * ex + abs(ny) * ey
        least, most = min(one, two) - widen, max(one, two) + widen
        at, rate = nx * x + ny * y, nx * dx + ny * dy
        if abs(rate) * reach <= abs(slack):
            if at < least - slack or at > most + slack:
                return np.inf, -np.inf
        else:
            first, last = (least - at) / rate, (most - at) / rate
            low, high = max(low, min(first, last)), min(high, max(first, last))
    speed = math.hypot(dx, dy)
    if low > high and (low - high) * speed <= slack:  # it passes through an end of the edge
        low = high = 0.5 * (low + high)
    return low, high


@compiled
def pieces_in_polygon(
    s: int, x: float, dx: float, y: float, dy: float, ex: float, ey: float, reach: float, slack: float,
    shapes: Shapes, pieces: F64,
) -> int:  # fmt: skip
    """Write where a line matches: (from, to, whether each is excluded); returns the number of pieces."""
    which = which_point(ex, ey, shapes.widen)
    if which == PREDICTED:
        ex = ey = 0.0
    cuts = _cuts(s, x, dx, y, dy, ex, ey, reach, slack, shapes)
    n, n_cuts, is_open = ZERO, len(cuts), True
    for k in range(n_cuts + 1):  # the part before cut k, then the cut itself
        before, after = cuts[k - 1] if k > 0 else -np.inf, cuts[k] if k < n_cuts else np.inf
        at = _between(before, after)
        if is_match(s, x + at * dx, y + at * dy, ex, ey, which, slack, shapes):
            if is_open:
                # The part begins at a cut that does not match, or has no beginning.
                write_piece(pieces[n], before, after, True, True)
                n += 1
            pieces[n - 1, 1], pieces[n - 1, 3] = after, 1.0
            is_open = False
        else:
            is_open = True
        if k == n_cuts or not is_match(s, x + after * dx, y + after * dy, ex, ey, which, slack, shapes):
            is_open = True
        elif is_open:
            write_piece(pieces[n], after, after, False, False)
            n, is_open = n + 1, False
        else:
            pieces[n - 1, 3] = 0.0
    return n


@compiled
def _cuts(
    s: int, x: float, dx: float, y: float, dy: float, ex: float, ey: float, reach: float, slack: float, shapes: Shapes
) -> F64:  # fmt: skip
    """Where a line enters or leaves a hexagon, in ascending order; ends that differ by a rounding error are one."""
    cuts, n = np.empty(2 * (shapes.first[s + 1] - shapes.first[s])), ZERO
    speed = math.hypot(dx, dy)
    if speed * reach <= slack:
        return cuts[:0]
    contact = slack if ex == 0.0 or ey == 0.0 else -slack  # that of a box without an area counts
    for k in range(shapes.first[s], shapes.first[s + 1]):
        ends = chord_of_hexagon(shapes.edges[k], x, dx, y, dy, ex, ey, reach, contact)
        if ends[0] <= ends[1]:
            for end in ends:
                if abs(end) < np.inf:
                    cuts[n] = end
                    n += 1
    cuts = sorted_few(cuts, n)
    kept = ZERO
    for k in range(n):
        if kept == 0 or (cuts[k] - cuts[kept - 1]) * speed > 2.0 * slack:
            cuts[kept] = cuts[k]
            kept += 1
    return cuts[:kept]


@compiled
def _between(before: float, after: float) -> float:
    """A number between two, either of which may be infinite."""
    if before == -np.inf:
        return 0.0 if after == np.inf else after - max(1.0, abs(after))
    return before + max(1.0, abs(before)) if after == np.inf else 0.5 * (before + after)
