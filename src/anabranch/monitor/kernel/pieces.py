"""Areas that restrict one instant: its matching intervals (*pieces*), and the half-planes of a choice of them."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.compiled import compiled, compiled_uncounted
from anabranch.monitor.kernel.distributions import ZERO
from anabranch.monitor.kernel.lines import Lines, plane_of, shape_slack
from anabranch.monitor.kernel.polygons import ROUNDING
from anabranch.monitor.kernel.probabilities import Constraints, error_of
from anabranch.monitor.kernel.shapes import pieces_in_ring
from anabranch.monitor.kernel.zones import pieces_in_polygon


@compiled_uncounted
def count_choices(reach: float, lines: Lines, constraints: Constraints, pieces: F64, counts: I64) -> int:
    """Write the pieces of each shape and their number; returns the number of choices of one piece per shape.

    A curved shape restricts no instant alone: it counts as one piece, which is not written.
    """
    shapes, choices = constraints.shapes, ZERO + 1
    for s in range(len(counts)):
        counts[s] = 1
        if not shapes.is_curved[s]:
            counts[s] = _write_pieces(s, reach, lines, constraints, pieces[s])
        choices *= counts[s]
    return choices


@compiled
def _write_pieces(s: int, reach: float, lines: Lines, constraints: Constraints, pieces: F64) -> int:
    shapes, plane = constraints.shapes, lines.plane
    dims, axis = len(plane) - 2, shape_axis(s, constraints)
    fx, fy = shapes.forms[s, 0], shapes.forms[s, 1]
    plane_of(fx, constraints, lines, plane)
    x, dx = plane[dims] - shapes.centers[s, 0], plane[axis]
    plane_of(fy, constraints, lines, plane)
    y, dy = plane[dims] - shapes.centers[s, 1], plane[axis]
    ex, ey = error_of(fx, constraints, lines.error), error_of(fy, constraints, lines.error)
    slack = shape_slack(s, constraints, lines)
    if shapes.first[s] < shapes.first[s + 1]:
        return pieces_in_polygon(s, x, dx, y, dy, ex, ey, reach, slack, shapes, pieces)
    return pieces_in_ring(s, x, dx, y, dy, ex, ey, reach, slack, shapes, pieces)


@compiled_uncounted
def shape_axis(s: int, constraints: Constraints) -> int:
    """The axis of the instant of a shape that is not curved."""
    return constraints.axis[constraints.forms[constraints.shapes.forms[s, 0], 0]]


@compiled_uncounted
def piece_planes(
    choice: int, reach: float, constraints: Constraints, pieces: F64, counts: I64, planes: F64, is_open: Bools, n: int
) -> int:
    """Add the half-planes of a choice of pieces; returns the number of half-planes, and keeps n below 0."""
    dims = planes.shape[1] - 2
    for s in range(len(counts) if n >= 0 else 0):
        piece = pieces[s, choice % counts[s]]
        choice //= counts[s]
        for side in range(0 if constraints.shapes.is_curved[s] else 2):
            if abs(piece[side]) < np.inf:
                sign = 2.0 * side - 1.0
                planes[n] = 0.0
                planes[n, shape_axis(s, constraints)], planes[n, dims] = sign, sign * piece[side]
                planes[n, dims + 1], is_open[n] = 2.0 * ROUNDING * reach, piece[2 + side] == 1.0
                n += 1
    return n
