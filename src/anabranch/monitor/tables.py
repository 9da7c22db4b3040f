"""The query as input of the kernel: arrays of values, forms, alternatives and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I64
from anabranch.columns.globe import RADIUS
from anabranch.monitor.alternatives import Form, all_choices, closed_choices
from anabranch.monitor.analysis import EXPECTED, MAY, MUST, MonitorAnalysis
from anabranch.monitor.areas import is_curved
from anabranch.monitor.globe import implied_by, ring_of
from anabranch.monitor.kernel.ellipsoid import PRECISION
from anabranch.monitor.kernel.probabilities import Constraints
from anabranch.monitor.kernel.regions import MatchRules
from anabranch.monitor.kernel.shapes import MOST_IN_RING, Shapes
from anabranch.monitor.numbers import ALL, Interval, Numbers, common, essential
from anabranch.monitor.polygons import edges_of
from anabranch.monitor.predictions import Terms
from anabranch.transport.layout import PredictionColumns

#: The errors of which the error of a value is the sum: the share of each in the total, and its standard deviation.
ErrorParts = tuple[tuple[float, float], ...]

_WIDEN = {EXPECTED: 0, MAY: 1, MUST: -1}


@dataclass(frozen=True, slots=True)
class Tables:
    """The query as input of the kernel; `dims` is the number of instants that vary independently."""

    rules: MatchRules
    constraints: Constraints
    dims: int

    @property
    def most_corners(self) -> int:
        """An upper bound for the number of corners of a region."""
        windows = self.rules.windows
        planes = 2 * len(windows) + int(np.isfinite(windows).sum()) + 2 * len(self.constraints.forms)
        planes += 2 * len(self.constraints.shapes.forms)
        # A plane adds at most 1 corner in two dimensions, 2 in three, and as many as there are planes in four.
        return {1: 2, 2: planes + 2, 3: 2 * planes}.get(self.dims, planes * planes // 2)

    @property
    def most_choices(self) -> int:
        """An upper bound for the number of choices of one piece per area."""
        shapes = self.constraints.shapes
        own = np.where(shapes.is_curved, 1, np.maximum(MOST_IN_RING, 2 * np.diff(shapes.first) + 1))
        return int(np.prod(own))


def make_tables(
    analysis: MonitorAnalysis, columns: Sequence[int], parts: Sequence[ErrorParts], uncertain: Sequence[bool]
) -> Tables:
    """The tables of a query.

    Parameters
    ----------
    columns : the column of each value
    parts : the errors of which that of each value is the sum
    uncertain : whether each value has an error above 0
    """
    semantics = analysis.query.semantics
    is_uncertain = {form: uncertain[form[0]] or (form[1] >= 0 and uncertain[form[1]]) for form, _ in analysis.forms}
    is_expected = semantics == EXPECTED
    allowed = {
        form: essential(numbers) if is_uncertain[form] and not is_expected else numbers
        for form, numbers in analysis.forms
    }
    for area in analysis.areas:
        for form, numbers in implied_by(area):
            allowed[form] = common(allowed.get(form, ALL), numbers)
    cells = list(closed_choices(allowed) if semantics == MAY else all_choices(allowed))
    if not all(area.distances for area in analysis.areas):
        cells = []
    forms = list(dict.fromkeys([*allowed, *(form for cell in cells for form in cell)]))
    sets = [essential(numbers) if is_uncertain[form] else () for form, numbers in analysis.forms]
    groups = [] if semantics == MUST else form_groups([form for form in is_uncertain if is_uncertain[form]], uncertain)
    members = [[form in group for form in forms] for group in groups]
    return assembled(analysis, columns, parts, uncertain, forms, cells, sets, members)


def assembled(
    analysis: MonitorAnalysis, columns: Sequence[int], parts: Sequence[ErrorParts], uncertain: Sequence[bool],
    forms: Sequence[Form], cells: Sequence[Mapping[Form, Interval]], sets: Sequence[Numbers],
    groups: Sequence[Sequence[bool]],
) -> Tables:  # fmt: skip
    """The tables of forms, cells, the sets of the first forms, and which forms are in each group.

    If a form occurs twice, the cells are about the first one.
    """
    semantics = analysis.query.semantics
    first, ends = _sets(sets, len(forms))
    is_first = [form not in forms[:index] for index, form in enumerate(forms)]
    operands = len(analysis.operands)
    windows = np.full((operands, operands), np.inf)
    for (one, other), window in analysis.windows:
        windows[one, other] = windows[other, one] = window
    owners = [operand for operand, _ in analysis.values]
    rules = MatchRules(
        np.array(list(zip(owners, columns, strict=True)), np.int64),
        np.array(
            [
                [_row(cell.get(form, ALL[0]) if own else ALL[0]) for form, own in zip(forms, is_first, strict=True)]
                for cell in cells
            ]
        ).reshape(len(cells), len(forms), 4),
        _WIDEN[semantics],
        windows,
        # Probabilities that are found by search may be slightly too low.
        analysis.query.threshold - PRECISION,
        # The rows of PER have no certain range.
        analysis.query.threshold if analysis.query.per is None else 0.0,
    )
    constraints = Constraints(
        np.array(forms, np.int64).reshape(-1, 2),
        first,
        ends,
        np.array(groups, np.bool_).reshape(len(groups), len(forms)),
        *_matrices(parts),
        np.array([0 if analysis.one_instant else operand for operand in owners], np.int64),
        _shapes(analysis, forms, uncertain),
    )
    return Tables(rules, constraints, analysis.dims)


def _shapes(analysis: MonitorAnalysis, forms: Sequence[Form], uncertain: Sequence[bool]) -> Shapes:
    """The areas of a query; those without any distance are not needed, because then there are no cells."""
    areas, semantics = [area for area in analysis.areas if area.distances], analysis.query.semantics
    has_error = [any(value >= 0 and uncertain[value] for form in area.forms for value in form) for area in areas]
    edges = [edges_of(area.rings) for area in areas]
    rings = [ring_of(area) for area in areas]
    distances = np.array([ring[1] for ring in rings], np.float64).reshape(-1, 2)
    return Shapes(
        np.array([[forms.index(form) for form in area.forms] for area in areas], np.int64).reshape(-1, 2),
        np.array([ring[0] for ring in rings], np.float64).reshape(-1, 2),
        distances.copy(),
        np.array([(area.distances[0].low_open, area.distances[0].high_open) for area in areas], np.bool_).reshape(
            -1, 2
        ),
        np.cumsum([0, *map(len, edges)]).astype(np.int64),
        np.array([edge for own_edges in edges for edge in own_edges], np.float64).reshape(-1, 4),
        np.array([area.is_outside for area in areas], np.bool_),
        np.array([area.is_convex for area in areas], np.bool_),
        np.array([is_curved(area, analysis) for area in areas], np.bool_),
        np.array([weighed and semantics != MUST for weighed in has_error], np.bool_),
        _WIDEN[semantics],
        distances,
        np.array([RADIUS if area.is_scaled else np.inf for area in areas], np.float64),
    )


def error_parts(prediction: PredictionColumns, terms: Terms) -> ErrorParts:
    """The independent errors of which the error of a value is the sum: the share and the standard deviation of each.

    The analysis refuses several errors that are normal or differ from row to row, except for MUST, which has no
    probabilities.
    """
    uncertain = [(column, abs(factor)) for column, factor in terms if prediction.errors[column]]
    errors = [prediction.errors[column] for column, _ in uncertain]
    amounts = [
        error * factor for error, (_, factor) in zip(errors, uncertain, strict=True) if not isinstance(error, str)
    ]
    if len(uncertain) < 2 or len(amounts) < len(uncertain):
        return ((1.0, sum((prediction.normals[column] or 0.0) * factor for column, factor in uncertain[:1])),)
    return tuple((amount / sum(amounts), 0.0) for amount in amounts)


def _matrices(parts: Sequence[ErrorParts]) -> tuple[F64, F64]:
    """The shares and the standard deviations of all values, with zeros behind them."""
    result = np.zeros((2, len(parts), max(map(len, parts), default=1)))
    for value, own_parts in enumerate(parts):
        result[:, value, : len(own_parts)] = np.array(own_parts).T
    return result[0].copy(), result[1].copy()


def _row(interval: Interval) -> tuple[float, float, float, float]:
    return interval.low, interval.high, float(interval.low_open), float(interval.high_open)


def _sets(sets: Sequence[Numbers], n_forms: int) -> tuple[I64, F64]:
    """The intervals of each form: those of the first forms, and none for the others."""
    counts = [len(intervals) for intervals in sets] + [0] * (n_forms - len(sets))
    ends = [(interval.low, interval.high) for intervals in sets for interval in intervals]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.array(ends, np.float64).reshape(-1, 2)


def form_groups(forms: Sequence[Form], uncertain: Sequence[bool]) -> list[set[Form]]:
    """The groups of uncertain forms that are connected by shared uncertain values."""
    groups: list[tuple[set[Form], set[int]]] = []
    for form in forms:
        values, members = {value for value in form if value >= 0 and uncertain[value]}, {form}
        for group in [known for known in groups if known[1] & values]:
            groups.remove(group)
            members |= group[0]
            values |= group[1]
        groups.append((members, values))
    return [members for members, _ in groups]
