"""Questions as the kernel's numbers: bounds, checks between pairs, the columns these compare, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from anabranch.constrain.analysis import (
    ConstrainAnalysis,
    comparison,
    distance_bound,
    is_begin,
    mentions,
    of_event,
    time_bound,
)
from anabranch.constrain.geometry import RADIUS
from anabranch.constrain.kernel import checks
from anabranch.constrain.kernel.checks import Graph, straight
from anabranch.language.typed import Constant, Operation, Reference, Typed
from anabranch.language.types import Type
from anabranch.rows.times import TimeKind

#: Windows of time are laid a little wide, because sums of bounds are rounded; the checks themselves are exact.
_SLACK = 1e-12

#: Longer bounds on whole numbers stand for no bound at all.
_FOREVER = 1 << 61


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of two events, the first of variable u and the second of variable v, that the kernel can make."""

    u: int
    v: int
    what: int
    how: int
    value: float = 0.0
    left: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class ColumnOf:
    """A value of an event that checks compare: an expression on the columns of a stream.

    Values of one `group` are compared with each other, and get a common code; those of none are numbers as they are.
    A `box` is the four sides of a geometry, in as many columns.
    """

    stream: str
    value: Typed
    group: int | None = None
    box: bool = False


@dataclass(slots=True)
class Columns:
    """The columns that checks compare, each once."""

    known: list[ColumnOf] = field(default_factory=list)
    groups: int = 0

    @property
    def width(self) -> int:
        """How many columns of numbers they are."""
        return sum(4 if column.box else 1 for column in self.known)

    def place(self, wanted: ColumnOf) -> int:
        """Where the numbers of a column begin."""
        if wanted not in self.known:
            self.known.append(wanted)
        return sum(4 if column.box else 1 for column in self.known[: self.known.index(wanted)])


@dataclass(frozen=True, slots=True)
class Lowered:
    """Questions made ready for the kernel.

    Attributes
    ----------
    graph : with bounds in the unit of times
    columns : what the kernel compares besides times and places
    others : for each question the conditions that the kernel cannot decide
    width : of the cells of an index in space; 0 where nothing bounds distances
    """

    graph: Graph
    columns: tuple[ColumnOf, ...]
    others: tuple[tuple[Typed, ...], ...]
    width: float


def lower_questions(analyses: Sequence[ConstrainAnalysis], kind: TimeKind) -> Lowered:
    """Questions over streams with one kind of time."""
    columns = Columns()
    first = np.cumsum([0, *(len(each.query.variables) for each in analyses)])
    given: list[Check] = []
    others = []
    for analysis, start in zip(analyses, first, strict=False):
        own, rest = _checks_of(analysis, int(start), columns)
        given += own
        others.append(tuple(rest))
    radius = RADIUS if any(_is_geodesic(each) for each in analyses) else 0.0
    graph = _graph(analyses, first, given, kind, radius)
    reach = graph.reach[np.isfinite(graph.reach)]
    # One width serves most pairs: those that may be further apart are looked for everywhere.
    width = float(np.quantile(reach, 0.75, method="higher")) if len(reach) else 0.0
    return Lowered(graph, tuple(columns.known), tuple(others), width)


def _is_geodesic(analysis: ConstrainAnalysis) -> bool:
    return any(stream.declaration.geodesic for stream in analysis.query.streams)


# ---------------------------------------------------------------- bounds


def _graph(
    analyses: Sequence[ConstrainAnalysis], first: np.ndarray, given: Sequence[Check], kind: TimeKind, radius: float
) -> Graph:
    sizes = np.diff(first)
    question = np.repeat(np.arange(len(sizes)), sizes)
    pair = np.concatenate([[0], np.cumsum(np.repeat(sizes, sizes))])
    latest = np.concatenate([_between(each, each.times.value).ravel() for each in analyses])
    backwards = np.concatenate([_between(each, each.times.value).T.ravel() for each in analyses])
    reach = np.concatenate([_between(each, each.distances.value).ravel() for each in analyses])
    reach = np.array([straight(way, radius) if np.isfinite(way) and _bends(way, radius) else inf for way in reach])
    latest, earliest = _in_units(latest, kind), -_in_units(backwards, kind)
    count = np.array([variable.count for each in analyses for variable in each.query.variables])
    own_pair = pair[:-1] + np.arange(len(question)) - first[question]
    longest = _longest(latest, pair, own_pair, count)
    arrays = _check_arrays(given, pair, first, question)
    scale = 1e6 if kind is TimeKind.TIMESTAMP else 1.0
    return Graph(
        first.astype(np.int64), question.astype(np.int64), count.astype(np.int64), pair[:-1].astype(np.int64),
        earliest, latest, longest, reach * (1 + 1e-9), **arrays, scale=scale, radius=radius,
    )  # fmt: skip


def _bends(way: float, radius: float) -> bool:
    """Whether a distance excludes anything: none on the globe is longer than half of its girth."""
    return radius == 0.0 or way < np.pi * radius


def _between(analysis: ConstrainAnalysis, closed: np.ndarray) -> np.ndarray:
    """[u, v]: the most that an event of v may be from one of u, over all their places."""
    variables = list(analysis.query.variables)
    of_place = [variables.index(variable) for variable in analysis.places]
    most = np.full((len(variables), len(variables)), -inf)
    for i, u in enumerate(of_place):
        for j, v in enumerate(of_place):
            if i != j:
                most[u, v] = max(most[u, v], closed[i, j])
    most[most == -inf] = 0.0
    return most


def _in_units(bounds: np.ndarray, kind: TimeKind) -> np.ndarray:
    """Bounds as times are measured, laid a little wide."""
    wide = bounds + _SLACK * np.abs(np.where(np.isfinite(bounds), bounds, 0.0))
    if kind is TimeKind.DOUBLE:
        return wide
    units = np.clip(np.floor(wide * (1e6 if kind is TimeKind.TIMESTAMP else 1.0)), -float(_FOREVER), float(_FOREVER))
    return units.astype(np.int64)


def _longest(latest: np.ndarray, pair: np.ndarray, own_pair: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Of each variable, the most that any other event of a solution may be later; before all time for a single one."""
    none = -inf if latest.dtype == np.float64 else -_FOREVER
    counts = latest.astype(latest.dtype, copy=True)
    counts[own_pair[count == 1]] = none
    return np.maximum.reduceat(counts, pair[:-1])


def _check_arrays(
    given: Sequence[Check], pair: np.ndarray, first: np.ndarray, question: np.ndarray
) -> dict[str, np.ndarray]:
    """The checks of each pair, those that are written the other way round among them."""
    placed = []
    for check in given:
        start = first[question[check.u]]
        placed.append((pair[check.u] + check.v - start, check, False))
        placed.append((pair[check.v] + check.u - start, check, True))
    # The cheap ones first: they spare the others.
    placed.sort(key=lambda each: (each[0], each[1].what == checks.DISTANCE))
    begins = np.searchsorted([number for number, _, _ in placed], np.arange(pair[-1] + 1))
    whole = ("what", "how", "left", "right")
    return {
        "check": begins.astype(np.int64),
        "value": np.array([check.value for _, check, _ in placed], np.float64),
        "swapped": np.array([swap for _, _, swap in placed], np.bool_),
        **{name: np.array([getattr(check, name) for _, check, _ in placed], np.int64) for name in whole},
    }


# ---------------------------------------------------------------- checks


def _checks_of(analysis: ConstrainAnalysis, first: int, columns: Columns) -> tuple[list[Check], list[Typed]]:
    """The checks of a question whose first variable has a number, and the conditions that are not wholly checked."""
    numbers = {variable.name: first + place for place, variable in enumerate(analysis.query.variables)}
    found, others = [], []
    for condition in analysis.joint:
        check = (
            _of_space(numbers, condition)
            or _of_times(analysis, numbers, condition)
            or _of_columns(analysis, numbers, condition, columns)
        )
        if check is not None:
            found.append(check)
            continue
        others.append(condition)
        box = _of_boxes(analysis, numbers, condition, columns)
        found += [box] if box is not None else []
    return found, others


def _of_space(numbers: dict[str, int], condition: Typed) -> Check | None:
    found = distance_bound(condition)
    if found is None:
        return None
    op, one, other, value = found
    return Check(numbers[one.owner or ""], numbers[other.owner or ""], checks.DISTANCE, _how(op), value)


def _of_times(analysis: ConstrainAnalysis, numbers: dict[str, int], condition: Typed) -> Check | None:
    """`u.t - v.t <= 5`, `SPAN(u, v) < 3`, `u.t <= v.t`; not sums, which are rounded as they are written."""
    found, compared = time_bound(analysis.query, condition), comparison(condition)
    if found is None or compared is None:
        return None
    op, one, other, value, both_ways = found
    _, left, right = compared
    plain = isinstance(left, Reference) and isinstance(right, Reference)
    difference = isinstance(left, Operation) and left.arguments == (one, other) and isinstance(right, Constant)
    if not (plain or difference or both_ways):
        return None
    sides = [checks.BEGIN if is_begin(analysis.query, each) else checks.END for each in (one, other)]
    what = checks.SPAN if both_ways else checks.TIMES
    return Check(numbers[one.owner or ""], numbers[other.owner or ""], what, _how(op), value, *sides)


def _of_columns(
    analysis: ConstrainAnalysis, numbers: dict[str, int], condition: Typed, columns: Columns
) -> Check | None:
    """A comparison of a value of one event with one of another, or of their difference with a number."""
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    what, value = checks.COLUMNS, 0.0
    if isinstance(right, Constant):
        inner = left.arguments[0] if isinstance(left, Operation) and left.op == "abs" else left
        number = right.value if right.type in (Type.INTEGER, Type.DOUBLE) else None
        if not isinstance(inner, Operation) or inner.op != "-" or not isinstance(number, int | float):
            return None
        what, value = (checks.DIFFERENCE if inner is left else checks.SPREAD), float(number)
        left, right = inner.arguments
        if not all(side.type in (Type.INTEGER, Type.DOUBLE) for side in (left, right)):
            return None
    sides = [_event_of(each) for each in (left, right)]
    if None in sides or sides[0] == sides[1] or not all(map(_is_plain, (left, right))):
        return None
    group = None
    if what == checks.COLUMNS and Type.DOUBLE not in (left.type, right.type):
        group = columns.groups
        columns.groups += 1
    places = [columns.place(_column_of(analysis, each, group)) for each in (left, right)]
    u, v = (numbers[side[0]] for side in sides if side is not None)
    return Check(u, v, what, _how(op), value, *places)


def _column_of(analysis: ConstrainAnalysis, value: Typed, group: int | None, box: bool = False) -> ColumnOf:
    ((owner, _),) = mentions(value)
    stream = next(each.stream for each in analysis.query.variables if each.name == owner)
    return ColumnOf(stream.name.lower(), of_event(value), group, box)


def _event_of(value: Typed) -> tuple[str, int] | None:
    """The one event that a value is of; None where there is none, or more."""
    found = mentions(value)
    return next(iter(found)) if len(found) == 1 else None


def _is_plain(value: Typed) -> bool:
    """Whether a value is arithmetic on columns alone, so that it can be worked out for each event by itself."""
    if isinstance(value, Operation):
        return value.op in ("+", "-", "*", "/", "%", "negate", "abs") and all(map(_is_plain, value.arguments))
    return isinstance(value, Constant) or (isinstance(value, Reference) and value.name != "*")


def _of_boxes(analysis: ConstrainAnalysis, numbers: dict[str, int], condition: Typed, columns: Columns) -> Check | None:
    """What the boxes around two geometries must fulfil, that the geometries can."""
    value, touching = 0.0, condition
    compared = comparison(condition)
    if compared is not None and compared[0] in ("<", "<=") and isinstance(compared[2], Constant):
        touching = compared[1]
        value = float(compared[2].value) if isinstance(compared[2].value, int | float) else inf
    if not isinstance(touching, Operation) or touching.op not in ("within", "intersects", "distance"):
        return None
    sides = [_event_of(each) for each in touching.arguments]
    if (touching.op == "distance") != (touching is not condition) or None in sides or sides[0] == sides[1]:
        return None
    if not all(isinstance(each, Reference) for each in touching.arguments):
        return None
    places = [columns.place(_column_of(analysis, each, None, box=True)) for each in touching.arguments]
    u, v = (numbers[side[0]] for side in sides if side is not None)
    return Check(u, v, checks.BOXES, checks.AT_MOST, value * (1 + 1e-9), *places)


def _how(op: str) -> int:
    return checks.OPERATORS.index(op)
