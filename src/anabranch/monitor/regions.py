"""When choices of predictions match: the kernel's regions, those that overlap made one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import shapely

from anabranch.arrays import F64, I64, Bools
from anabranch.monitor.analysis import MAY, MonitorAnalysis
from anabranch.monitor.kernel.regions import Given
from anabranch.monitor.kernel.regions import regions as kernel_regions
from anabranch.monitor.predictions import Predictions, clock_of, unit_of
from anabranch.monitor.tables import Tables, make_tables
from anabranch.transport.layout import Layout, require_prediction

#: The kernel is given so many choices at once: it makes room for all corners that there could be.
_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of choices, as columns; instants are counted from the time of the choice's first prediction.

    Attributes
    ----------
    members : (n, operands) the predictions of each
    interval : (n, 2) the range of the latest of the matching instants
    probability : the highest in the region
    sample : (n, dims) instants that match, near those of the highest probability
    corners, starts : the corners of region k are corners[starts[k] : starts[k + 1]]
    """

    members: I64
    interval: F64
    probability: F64
    sample: F64
    corners: F64
    starts: I64

    def __len__(self) -> int:
        return len(self.probability)

    @staticmethod
    def empty(operands: int, dims: int) -> Regions:
        """No regions."""
        points = np.zeros((0, dims))
        return Regions(
            np.zeros((0, operands), np.int64), np.zeros((0, 2)), np.zeros(0), points, points, np.zeros(1, np.int64)
        )

    @staticmethod
    def concat(parts: Sequence[Regions]) -> Regions:
        """All regions of some parts, at least one."""
        columns = {
            each.name: np.concatenate([getattr(part, each.name) for part in parts])
            for each in fields(Regions)
            if each.name != "starts"
        }
        counts = np.concatenate([np.diff(part.starts) for part in parts])
        return Regions(**columns, starts=np.concatenate([[0], np.cumsum(counts)]))

    def take(self, chosen: Bools) -> Regions:
        """Some of them."""
        if chosen.all():
            return self
        counts = np.diff(self.starts)
        return Regions(
            self.members[chosen], self.interval[chosen], self.probability[chosen], self.sample[chosen],
            self.corners[np.repeat(chosen, counts)], np.concatenate([[0], np.cumsum(counts[chosen])]),
        )  # fmt: skip

    def reach(self) -> F64:
        """(n, dims) how far each region goes along each axis."""
        return np.maximum.reduceat(self.corners, self.starts[:-1], axis=0)

    def start(self) -> F64:
        """(n, dims) where each region begins along each axis."""
        return np.minimum.reduceat(self.corners, self.starts[:-1], axis=0)


class Evaluator:
    """Finds the regions of choices.

    Parameters
    ----------
    columns : the place of each value among those of its stream
    streams : the number of the stream of each operand
    """

    def __init__(
        self, analysis: MonitorAnalysis, layouts: Sequence[Layout], streams: Sequence[int], columns: Sequence[int]
    ) -> None:
        self._analysis = analysis
        self._kind = layouts[0].time_kind
        self._columns = columns
        owners = [layouts[streams[operand]] for operand, _ in analysis.values]
        self._spreads = [
            require_prediction(layout).normals[column] or 0.0 for layout, column in zip(owners, columns, strict=True)
        ]
        self._tables: dict[tuple[bool, ...], Tables] = {}

    def regions(self, held: Predictions, members: I64) -> Regions:
        """All regions of some choices, in the order of the choices."""
        parts = [Regions.empty(members.shape[1], self._analysis.dims)]
        given = Given(
            clock_of(held.code, self._kind),
            unit_of(self._kind),
            held.begin,
            held.end,
            held.values,
            held.rates,
            held.errors,
        )
        for at in range(0, len(members), _AT_ONCE):
            some = members[at : at + _AT_ONCE]
            for uncertain, chosen in self._by_errors(held, some):
                parts.append(self._evaluate(given, some[chosen], self._tables_for(uncertain)))
        return Regions.concat(parts)

    def _by_errors(self, held: Predictions, members: I64) -> Iterator[tuple[tuple[bool, ...], I64]]:
        """The choices by which of their values have an error; mostly that is the same for all."""
        values = list(zip(self._analysis.values, self._columns, strict=True))
        have = np.zeros(len(members), np.int64)
        for bit, ((operand, _), column) in enumerate(values):
            have |= (held.errors[members[:, operand], column] > 0).astype(np.int64) << bit
        kinds = [have[0]] if (have == have[0]).all() else np.unique(have)
        for kind in kinds:
            yield tuple(bool(kind >> bit & 1) for bit in range(len(values))), np.flatnonzero(have == kind)

    def _tables_for(self, uncertain: tuple[bool, ...]) -> Tables:
        if uncertain not in self._tables:
            self._tables[uncertain] = make_tables(self._analysis, self._columns, self._spreads, uncertain)
        return self._tables[uncertain]

    def _evaluate(self, given: Given, members: I64, tables: Tables) -> Regions:
        if not len(tables.frame.cells):
            return Regions.empty(members.shape[1], tables.dims)
        several = self._analysis.query.semantics == MAY and len(tables.frame.cells) > 1
        # Of what may be one region, a part may be less probable than the whole.
        frame = tables.frame._replace(enough=0.0) if several else tables.frame
        choice, interval, probability, sample, corners, starts = kernel_regions(
            np.ascontiguousarray(members), given, frame, tables.asked, tables.dims, tables.most_corners
        )
        found = Regions(members[choice], interval, probability, sample, corners, starts)
        if several:
            found = _merged(found, choice)
            found = found.take(found.probability >= tables.frame.enough)
        return found


# ---------------------------------------------------------------- regions that overlap


def _merged(found: Regions, choice: I64) -> Regions:
    """The regions of each choice, those that overlap as one.

    Only MAY can have such: errors widen what a comparison leaves apart.
    """
    several = np.zeros(len(found), np.bool_)
    same = choice[1:] == choice[:-1]
    several[1:] |= same
    several[:-1] |= same
    parts = [found.take(~several)]
    for number in np.unique(choice[several]):
        parts.append(_merged_one(found.take(choice == number)))
    return Regions.concat(parts)


def _merged_one(found: Regions) -> Regions:
    """The regions of one choice, merged; the kernel gave them as convex sets without their open sides."""
    outlines = [found.corners[found.starts[k] : found.starts[k + 1]] for k in range(len(found))]
    dims = found.corners.shape[1]
    groups = _overlapping(outlines, dims)
    merged = []
    for group in groups:
        if len(group) == 1:
            merged.append(found.take(np.isin(np.arange(len(found)), group)))
            continue
        best = max(group, key=lambda k: found.probability[k])
        corners = _union([outlines[k] for k in group], dims)
        interval = np.array([[found.interval[group, 0].min(), found.interval[group, 1].max()]])
        merged.append(
            Regions(
                found.members[[best]], interval, found.probability[[best]], found.sample[[best]], corners,
                np.array([0, len(corners)]),
            )
        )  # fmt: skip
    return Regions.concat(merged)


def _overlapping(outlines: Sequence[F64], dims: int) -> list[list[int]]:
    """The outlines in groups: those that have an inside in common, if only through others, are in one."""
    groups: list[list[int]] = []
    for number, outline in enumerate(outlines):
        own = [group for group in groups if any(_overlap(outlines[k], outline, dims) for k in group)]
        groups = [group for group in groups if group not in own]
        groups.append(sorted([number, *(k for group in own for k in group)]))
    return groups


def _overlap(one: F64, other: F64, dims: int) -> bool:
    if dims == 1:
        return bool(max(one.min(), other.min()) < min(one.max(), other.max()))
    shapes = _shape(one), _shape(other)
    shared = shapely.intersection(*shapes)
    # Sides do not belong to a region; but what has no area is all side.
    return bool(shared.area > 0 or (shared.length > 0 and min(shape.area for shape in shapes) == 0))


def _shape(outline: F64) -> shapely.Geometry:
    """An outline as a geometry: a polygon, or where it has no area, a line or a point."""
    polygon = shapely.Polygon(outline) if len(outline) > 2 else None
    if polygon is not None and polygon.area > 0:
        return polygon
    return shapely.LineString(outline) if len(outline) > 1 else shapely.Point(outline[0])


def _union(outlines: Sequence[F64], dims: int) -> F64:
    """The outline around all of them, counter-clockwise from the least corner."""
    points = np.concatenate(outlines)
    union = None if dims == 1 else shapely.union_all([_shape(each) for each in outlines])
    if union is None or union.area == 0:  # all on one line
        order = np.lexsort(points.T[::-1])
        return points[order[[0, -1]]]
    # Where two outlines crossed on a straight side, there is no corner.
    union = shapely.orient_polygons(shapely.simplify(union, 1e-12 * shapely.length(union)))
    corners = shapely.get_coordinates(union.exterior)[:-1]
    first = np.lexsort((corners[:, 1], corners[:, 0]))[0]
    return np.roll(corners, -first, axis=0)
