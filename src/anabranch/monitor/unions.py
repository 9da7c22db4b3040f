"""The union of convex regions of a combination: which of them are connected, and the outline of a connected union."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import shapely

from anabranch.arrays import F64, I64
from anabranch.monitor.kernel.polygons import ROUNDING
from anabranch.monitor.kernel.regions import INSTANT, PredictionArrays
from anabranch.monitor.tables import Tables

#: Instants that differ by this share of their size are the same; corners are less exact than what they are made from.
SAME = 1e-9


class Combination(NamedTuple):
    """The predictions of a combination, their times relative to the first, and the tables of the query.

    `accelerations` is None for linear predictions.
    """

    members: I64
    shifts: F64
    predictions: PredictionArrays
    tables: Sequence[Tables]
    accelerations: F64 | None

    def matches(self, instants: F64) -> bool:
        """Whether the predictions match at some instants. An instant that is on a side only up to rounding is on it."""
        rules, axis = self.tables[0].rules, self.tables[0].constraints.axis
        operands, columns = rules.value_of.T
        rows = self.members[operands]
        is_instant = columns == INSTANT
        shifts = np.where(is_instant, 0.0, self.shifts[operands])
        since = (instants[axis] if len(instants) > 1 else instants[0]) - shifts
        values = np.where(is_instant, 0.0, self.predictions.values[rows, columns])
        rates = np.where(is_instant, 1.0, self.predictions.rates[rows, columns])
        if self.accelerations is not None:  # the mean rate since the time of the prediction
            rates = rates + np.where(is_instant, 0.0, 0.5 * self.accelerations[rows, columns]) * since
        slack = SAME * (np.abs(values) + np.abs(rates) * (np.abs(since) + np.abs(instants).max()))
        ends = self.shifts[: len(self.members)] + self.predictions.end[self.members]
        if np.any((instants if len(instants) > 1 else instants[0]) >= ends - SAME * np.abs(ends)):
            return False
        errors = np.where(is_instant, 0.0, self.predictions.errors[rows, columns])
        return any(_is_in_cell(tables, values + rates * since, errors, slack) for tables in self.tables)


def _is_in_cell(tables: Tables, predicted: F64, errors: F64, slack: F64) -> bool:
    """Whether predicted values are in a cell; each has a slack."""
    plus, minus = tables.constraints.forms.T
    number, error, rounding = (
        one[plus] + sign * np.where(minus >= 0, one[minus], 0.0)
        for sign, one in ((-1, predicted), (1, errors), (1, slack))
    )
    widened = tables.rules.widen * error
    lows, highs = tables.rules.cells[:, :, 0] - widened, tables.rules.cells[:, :, 1] + widened
    # A bound on an uncertain form is open for MAY and closed for MUST.
    is_open = tables.rules.cells[:, :, 2:] == 1.0
    is_open[:, error > 0] = is_open[:, error > 0] if tables.rules.widen == 0 else tables.rules.widen > 0
    above = np.where(is_open[:, :, 0], number > lows + rounding, number >= lows - rounding)
    below = np.where(is_open[:, :, 1], number < highs - rounding, number <= highs + rounding)
    return bool(np.any(np.all(above & below, axis=1)))


# ---------------------------------------------------------------- connected regions


def are_connected(one: F64, other: F64, matches: Callable[[F64], bool]) -> bool:
    """Whether two regions, given by their corners, are connected.

    They are if they overlap, or if they have a side in common whose instants match. With one instant, a side is a
    point. With two, regions that have only a corner in common are not connected.
    """
    slack = SAME * float(max(np.abs(one).max(), np.abs(other).max()))
    if one.shape[1] == 1:
        low, high = max(one.min(), other.min()), min(one.max(), other.max())
        if abs(high - low) > slack:
            return bool(low < high)
        return matches(np.array([0.5 * (low + high)]))
    shared = shapely.intersection(*(shapely.buffer(_shape(corners), slack) for corners in (one, other)))
    if shared.is_empty:
        return False
    low_x, low_y, high_x, high_y = shared.bounds
    extent = max(high_x - low_x, high_y - low_y)
    if shared.area > 10 * slack * extent:
        return True
    if extent <= 10 * slack:  # a corner, or a region that is a single point
        return min(len(one), len(other)) == 1
    return matches(shapely.get_coordinates(shared.centroid)[0])


def _shape(corners: F64) -> shapely.Geometry:
    return (shapely.Point if len(corners) == 1 else shapely.LineString if len(corners) == 2 else shapely.Polygon)(
        corners if len(corners) > 1 else corners[0]
    )


# ---------------------------------------------------------------- outlines


def outline(regions: Sequence[F64]) -> F64:
    """The outline of connected regions, counter-clockwise from the smallest corner; without holes.

    Regions without an area are part of it only if all are.
    """
    if regions[0].shape[1] == 1 or max(map(len, regions)) <= 2:  # all points are on one line
        points = np.concatenate(regions)
        order = np.lexsort(points.T[::-1])
        ends = points[order[[0, -1]]]
        return ends if np.abs(ends[1] - ends[0]).max() > SAME * np.abs(points).max() else ends[:1]
    polygons = [shapely.Polygon(corners) for corners in regions if len(corners) > 2]
    union = shapely.union_all(polygons)
    if not isinstance(union, shapely.Polygon):  # sides in common differ by rounding errors, which leave a gap
        size = max(float(np.abs(corners).max()) for corners in regions)
        union = shapely.union_all(polygons, grid_size=ROUNDING * size)
    largest = max(shapely.get_parts(union), key=shapely.area)
    corners = shapely.get_coordinates(shapely.orient_polygons(largest).exterior)[:-1]
    first = np.lexsort((corners[:, 1], corners[:, 0]))[0]
    return without_straight_corners(np.roll(corners, -first, axis=0))


def without_straight_corners(corners: F64) -> F64:
    """The outline without points where two outlines cross on a straight side; the first point is a corner."""
    polygon = shapely.Polygon(corners)
    # With preserve_topology, simplify would keep four points of a triangle; without it, nothing of a thin sliver.
    simplified = shapely.simplify(polygon, 1e-12 * shapely.length(polygon), preserve_topology=False)
    return corners if simplified.is_empty else shapely.get_coordinates(simplified.exterior)[:-1]
