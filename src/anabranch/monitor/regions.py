"""The regions of combinations of predictions: the instants at which they match. Overlapping regions are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce

import numpy as np
import shapely

from anabranch.arrays import F64, I64, Bools, Numbers
from anabranch.columns.times import TimeKind
from anabranch.monitor.analysis import MAY, MonitorAnalysis
from anabranch.monitor.formulas import with_rows
from anabranch.monitor.kernel.paths import accelerated_regions
from anabranch.monitor.kernel.polygons import ROUNDING
from anabranch.monitor.kernel.regions import INSTANT, PredictionArrays, outlines
from anabranch.monitor.kernel.regions import regions as kernel_regions
from anabranch.monitor.predictions import Predictions, Terms, exact_times, periods_of, unit_of
from anabranch.monitor.tables import Tables, error_parts, make_tables
from anabranch.monitor.union_tables import union_tables
from anabranch.monitor.unions import SAME, Combination, are_connected, outline
from anabranch.transport.layout import Layout, require_prediction

#: The number of combinations per call of the kernel, which allocates the maximum number of corners for each.
_CHUNK = 1 << 14


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions as columns; instants are relative to the time of the first prediction of the combination.

    Attributes
    ----------
    members : (n, operands) the predictions of the combination
    interval : (n, 2) the range of the latest instant of the matches
    certain : (n, 2) the range of those whose probability reaches the THRESHOLD; NaN if there is none
    probability : the highest in the region
    sample : (n, dims) matching instants, near those with the highest probability
    corners, starts : the corners of region k are corners[starts[k] : starts[k + 1]]
    """

    members: I64
    interval: F64
    certain: F64
    probability: F64
    sample: F64
    corners: F64
    starts: I64

    def __len__(self) -> int:
        return len(self.probability)

    @staticmethod
    def empty(operands: int, dims: int) -> Regions:
        """No regions."""
        points, ranges = np.zeros((0, dims)), np.zeros((0, 2))
        return Regions(
            np.zeros((0, operands), np.int64), ranges, ranges, np.zeros(0), points, points, np.zeros(1, np.int64)
        )

    @staticmethod
    def concat(parts: Sequence[Regions]) -> Regions:
        """All regions of at least one part."""
        columns = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(Regions)
            if field.name != "starts"
        }
        counts = np.concatenate([np.diff(part.starts) for part in parts])
        return Regions(**columns, starts=np.concatenate([[0], np.cumsum(counts)]))

    def take(self, chosen: Bools) -> Regions:
        """The regions at which a mask is true."""
        if chosen.all():
            return self
        counts = np.diff(self.starts)
        return Regions(
            self.members[chosen], self.interval[chosen], self.certain[chosen], self.probability[chosen],
            self.sample[chosen], self.corners[np.repeat(chosen, counts)],
            np.concatenate([[0], np.cumsum(counts[chosen])]),
        )  # fmt: skip

    def begins_combination(self) -> I64:
        """The first region of each combination; the regions of a combination are consecutive."""
        begins = np.ones(len(self), np.bool_)
        begins[1:] = np.any(self.members[1:] != self.members[:-1], axis=1)
        return np.flatnonzero(begins)

    def end(self) -> F64:
        """(n, dims) where each region ends along each axis."""
        return np.maximum.reduceat(self.corners, self.starts[:-1], axis=0)

    def begin(self) -> F64:
        """(n, dims) where each region begins along each axis."""
        return np.minimum.reduceat(self.corners, self.starts[:-1], axis=0)

    def equal_to_any(self, others: Regions) -> Bools:
        """Which of the regions are also among the others, up to rounding errors."""
        equal = np.zeros(len(self), np.bool_)
        may_be_equal = np.isin(self.members[:, 0], others.members[:, 0])
        if not may_be_equal.all():
            equal[may_be_equal] = self.take(may_be_equal).equal_to_any(others)
            return equal
        if not len(self):
            return equal
        _, combination = np.unique(np.concatenate([self.members, others.members]), axis=0, return_inverse=True)
        own, their = combination[: len(self)], combination[len(self) :]
        order = np.argsort(their, kind="stable")
        first, last = (np.searchsorted(their[order], own, side=side) for side in ("left", "right"))
        extents, other_extents = self._extents(), others._extents()
        for offset in range(int((last - first).max())):
            rows = np.flatnonzero(first + offset < last)
            candidates = other_extents[order[first[rows] + offset]]
            slack = SAME * np.abs(candidates).max(axis=1, keepdims=True)
            equal[rows] |= np.all(np.abs(extents[rows] - candidates) <= slack, axis=1)
        return equal

    def _extents(self) -> F64:
        """How far each region extends in the directions of the axes and of their sums and differences."""
        first, *others = np.eye(self.corners.shape[1])
        directions = [first, *others, *(first + other for other in others), *(first - other for other in others)]
        along = self.corners @ np.array(directions).T
        ends = (least.reduceat(along, self.starts[:-1], axis=0) for least in (np.minimum, np.maximum))
        return np.concatenate([self.interval, *ends], axis=1)


class Evaluator:
    """Finds the regions of combinations.

    Parameters
    ----------
    streams : the number of the stream of each operand
    values, columns, sums : the values of the query, their columns, and those of them that are sums (`spec.py`)
    """

    def __init__(
        self, analysis: MonitorAnalysis, layouts: Sequence[Layout], streams: Sequence[int], values: Sequence[Terms],
        columns: Sequence[int], sums: Sequence[Terms],
    ) -> None:  # fmt: skip
        self._analysis = analysis
        self._kind = layouts[0].time_kind
        self._streams = streams
        self._periods = periods_of(layouts)
        self._columns, self._sums = columns, sums
        owners = [require_prediction(layouts[streams[operand]]) for operand, _ in analysis.values]
        self._error_parts = [error_parts(owner, terms) for owner, terms in zip(owners, values, strict=True)]
        self._tables: dict[tuple[tuple[bool, ...], tuple[bool, ...]], list[Tables]] = {}
        #: Evaluates the conditions on rows that OR joins with constraints, as columns; set if there are any.
        self.row_tests: Callable[[Predictions, I64], list[Bools]] = lambda held, members: []

    def regions(self, held: Predictions, members: I64) -> Regions:
        """All regions of some combinations, in the order of the combinations."""
        parts = [Regions.empty(members.shape[1], self._analysis.dims)]
        held = held.with_sums(self._sums)
        arrays = self._arrays(held)
        times = exact_times(held.code, self._kind)
        common = self._common_tables(held)
        for at in range(0, len(members), _CHUNK):
            chunk = members[at : at + _CHUNK]
            every = np.arange(len(chunk))
            for tables, chosen in [(common, every)] if common is not None else self._by_tables(held, chunk):
                # Each combination takes room for all regions that it may have.
                most_choices = max((own.most_choices for own in tables), default=1)
                for own in np.array_split(chosen, -(-len(chosen) * most_choices // _CHUNK) or 1):
                    bends = self._bends(held, chunk[own])
                    for rows, accelerations in ((own[~bends], None), (own[bends], held.accelerations)):
                        if len(rows):
                            parts.append(self._evaluate(arrays, times, chunk[rows], tables, accelerations))
        return Regions.concat(parts)

    def _arrays(self, held: Predictions) -> PredictionArrays:
        """Predictions with sums as input of the kernel."""
        periods = self._periods[held.stream]
        return PredictionArrays(held.begin, held.end, held.values, held.rates, held.errors, periods)

    def _shifts(self, times: Numbers, members: I64) -> F64:
        """(n, operands + 1) the times of predictions relative to that of the first, and the error of this difference.

        Differences of integer times are exact, however large the times are; a double may be a rounded decimal.
        """
        shifts, own = np.zeros((len(members), members.shape[1] + 1)), times[members]
        shifts[:, :-1] = (own - own[:, :1]) * unit_of(self._kind)
        if self._kind is TimeKind.DOUBLE:
            shifts[:, -1] = 2 * np.finfo(np.float64).eps * reduce(np.maximum, np.abs(own).T)
        return shifts

    def _bends(self, held: Predictions, members: I64) -> Bools:
        """Which combinations have an accelerated value."""
        bends = np.zeros(len(members), np.bool_)
        for (operand, _), column in zip(self._analysis.values, self._columns, strict=True):
            if held.is_accelerated and column != INSTANT:
                bends |= held.accelerations[members[:, operand], column] != 0.0
        return bends

    def _common_tables(self, held: Predictions) -> list[Tables] | None:
        """The tables of all combinations, if each value has an error in all predictions or in none; else None."""
        uncertain = []
        for (operand, _), column in zip(self._analysis.values, self._columns, strict=True):
            is_own = held.stream == self._streams[operand]
            has_error = held.errors[is_own, column] > 0 if column != INSTANT else np.zeros(1, np.bool_)
            if self._analysis.row_tests or has_error.any() != has_error.all():
                return None
            uncertain.append(bool(has_error.any()))
        return self._tables_for(tuple(uncertain), ())

    def _by_tables(self, held: Predictions, members: I64) -> Iterator[tuple[list[Tables], I64]]:
        """The combinations, grouped by the tables that they need.

        The tables depend on which values have an error, and on the conditions on rows that OR joins with constraints.
        """
        values = list(zip(self._analysis.values, self._columns, strict=True))
        truths = [
            held.errors[members[:, operand], column] > 0 if column != INSTANT else np.zeros(len(members), np.bool_)
            for (operand, _), column in values
        ]
        truths += self.row_tests(held, members) if self._analysis.row_tests else []
        by_combination = np.column_stack(truths)
        for case in np.unique(by_combination, axis=0):
            one_truth = case.tolist()
            tables = self._tables_for(tuple(one_truth[: len(values)]), tuple(one_truth[len(values) :]))
            yield tables, np.flatnonzero((by_combination == case).all(axis=1))

    def _tables_for(self, uncertain: tuple[bool, ...], row_truths: tuple[bool, ...]) -> list[Tables]:
        if (uncertain, row_truths) not in self._tables:
            formula, common = self._analysis.formula, (self._columns, self._error_parts, uncertain)
            if formula is None:
                tables = [make_tables(self._analysis, *common)]
            else:
                tables = union_tables(self._analysis, with_rows(formula, dict(enumerate(row_truths))), *common)
            self._tables[uncertain, row_truths] = [table for table in tables if len(table.rules.cells)]
        return self._tables[uncertain, row_truths]

    def _evaluate(
        self, arrays: PredictionArrays, times: Numbers, members: I64, all_tables: Sequence[Tables],
        accelerations: F64 | None,
    ) -> Regions:  # fmt: skip
        has_or = self._analysis.formula is not None
        n_cells = sum(len(tables.rules.cells) for tables in all_tables)
        several = (has_or or self._analysis.query.semantics == MAY) and n_cells > 1
        shifts = self._shifts(times, members)
        found = [self._evaluate_one(arrays, shifts, members, tables, several, accelerations) for tables in all_tables]
        if not several:
            return found[0][0] if found else Regions.empty(members.shape[1], self._analysis.dims)

        def connect(number: int) -> _Connected:
            if not has_or:
                return _overlap
            combined = Combination(members[number], shifts[number], arrays, all_tables, accelerations)
            return lambda one, other: are_connected(one, other, combined.matches)

        regions = Regions.concat([own for own, _ in found])
        merged = _merged(regions, np.concatenate([combination for _, combination in found]), connect)
        return merged.take(merged.probability >= all_tables[0].rules.threshold)

    def _evaluate_one(
        self, arrays: PredictionArrays, shifts: F64, members: I64, tables: Tables, is_part: bool,
        accelerations: F64 | None,
    ) -> tuple[Regions, I64]:  # fmt: skip
        """The regions of some tables, and the combination of each."""
        # If regions are merged, a part may have a lower probability than the merged region.
        rules = tables.rules._replace(threshold=0.0) if is_part else tables.rules
        if accelerations is not None:
            combination, *columns = accelerated_regions(
                np.ascontiguousarray(members), shifts, arrays, accelerations, rules, tables.constraints
            )
            return Regions(members[combination], *columns), combination
        combination, *columns = kernel_regions(
            np.ascontiguousarray(members),
            shifts,
            arrays,
            rules,
            tables.constraints,
            tables.dims,
            tables.most_corners,
            tables.most_choices,
        )
        regions = Regions(members[combination], *columns)
        if tables.constraints.shapes.is_curved.any():
            own_members, own_shifts = (np.ascontiguousarray(array[combination]) for array in (members, shifts))
            corners, starts = outlines(
                own_members, own_shifts, arrays, rules, tables.constraints, regions.corners, regions.starts
            )
            regions = replace(regions, corners=corners, starts=starts)
        return regions, combination


# ---------------------------------------------------------------- connected regions

#: Whether two regions, given by their corners, are connected.
_Connected = Callable[[F64, F64], bool]


def _merged(regions: Regions, combination: I64, connect: Callable[[int], _Connected]) -> Regions:
    """The regions with the connected ones of each combination merged.

    Without OR, only MAY can have connected regions, because errors widen disjoint sets. `connect` gives the rule for a
    combination.
    """
    counts = np.bincount(combination, minlength=1)
    several = counts[combination] > 1
    parts = [regions.take(~several)]
    for number in np.unique(combination[several]):
        parts.append(_merged_one(regions.take(combination == number), connect(number)))
    return Regions.concat(parts)


def _merged_one(regions: Regions, are_connected: _Connected) -> Regions:
    """The merged regions of one combination; the kernel returns convex sets, and does not say which sides are open."""
    outlines = [regions.corners[regions.starts[k] : regions.starts[k + 1]] for k in range(len(regions))]
    groups = _connected(outlines, are_connected)
    merged = []
    for group in groups:
        if len(group) == 1:
            merged.append(regions.take(np.isin(np.arange(len(regions)), group)))
            continue
        best = max(group, key=lambda k: regions.probability[k])
        corners = outline([outlines[k] for k in group])
        interval, certain = (
            np.array([[np.fmin.reduce(ranges[group, 0]), np.fmax.reduce(ranges[group, 1])]])
            for ranges in (regions.interval, regions.certain)
        )
        merged.append(
            Regions(
                regions.members[[best]], interval, certain, regions.probability[[best]], regions.sample[[best]],
                corners, np.array([0, len(corners)]),
            )
        )  # fmt: skip
    return Regions.concat(merged)


def _connected(outlines: Sequence[F64], are_connected: _Connected) -> list[list[int]]:
    """The outlines in groups of connected ones."""
    groups: list[list[int]] = []
    for number, corners in enumerate(outlines):
        near = [group for group in groups if any(are_connected(outlines[k], corners) for k in group)]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([number, *(k for group in near for k in group)]))
    return groups


def _overlap(one: F64, other: F64) -> bool:
    """Whether two regions have more in common than sides, which do not belong to a region that has an area."""
    size = float(max(np.abs(one).max(), np.abs(other).max()))
    if min(len(one), len(other)) > 2:
        shared = shapely.intersection(shapely.Polygon(one), shapely.Polygon(other))
        return bool(shared.area > ROUNDING * size * size)
    # Constraints on exact values leave regions without an area. They hold in all regions of a combination, or
    # contradict each other: its regions are on one line, or have nothing in common.
    return max(len(one), len(other)) <= 2 and _overlap_on_line(one, other, SAME * size)


def _overlap_on_line(one: F64, other: F64, slack: float) -> bool:
    """Whether two segments of one line overlap, or two points are the same."""
    shorter, longer = sorted([one, other], key=lambda outline: float(np.abs(outline[-1] - outline[0]).max()))
    direction = longer[-1] - longer[0]
    length = float(np.linalg.norm(direction))
    if length <= slack:
        return bool(np.abs(longer[0] - shorter[0]).max() <= slack)
    direction /= length
    along = (shorter - longer[0]) @ direction
    across = shorter - longer[0] - along[:, None] * direction
    return bool(np.abs(across).max() <= slack and min(along.max(), length) - max(along.min(), 0.0) > slack)
