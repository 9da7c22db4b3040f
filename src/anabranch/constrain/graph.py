"""Questions as the kernel's numbers: bounds, checks between pairs, the columns these compare, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

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
from anabranch.constrain.kernel import tables as checks
from anabranch.constrain.kernel.checks import straight
from anabranch.constrain.kernel.tables import CHECK, F64, I64, Graph, Table, pair_type, variable_type
from anabranch.language.typed import Constant, Operation, Reference, Typed
from anabranch.language.types import Type
from anabranch.rows.times import TimeKind

#: Windows of time are laid a little wide, because sums of bounds are rounded; the checks themselves are exact.
_SLACK = 1e-12

#: A sum of bounds that misses a whole number by so much was meant to be that number.
_ROUNDING = 1e-3

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
    """

    graph: Graph
    columns: tuple[ColumnOf, ...]
    others: tuple[tuple[Typed, ...], ...]


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
    return Lowered(_graph(analyses, first, given, kind), tuple(columns.known), tuple(others))


# ---------------------------------------------------------------- tables


def _graph(analyses: Sequence[ConstrainAnalysis], first: I64, given: Sequence[Check], kind: TimeKind) -> Graph:
    radius = RADIUS if any(_is_geodesic(each) for each in analyses) else 0.0
    variables = _variables(analyses, first, kind)
    pairs, checks_of_pairs = _pairs(analyses, variables, given, kind, radius)
    variables["longest"] = _longest(variables, pairs)
    reach = [each.extent if _bends(each.extent, radius) else inf for each in analyses]
    straight_reach = [straight(each, radius) * (1 + 1e-9) if each < inf else inf for each in reach]
    scale = 1e6 if kind is TimeKind.TIMESTAMP else 1.0
    return Graph(first.astype(np.int64), np.array(straight_reach), variables, pairs, checks_of_pairs, scale, radius)


def _is_geodesic(analysis: ConstrainAnalysis) -> bool:
    return any(stream.declaration.geodesic for stream in analysis.query.streams)


def _variables(analyses: Sequence[ConstrainAnalysis], first: I64, kind: TimeKind) -> Table:
    sizes = np.diff(first)
    variables = np.zeros(first[-1], variable_type(_time_type(kind)))
    variables["question"] = np.repeat(np.arange(len(sizes)), sizes)
    variables["first"], variables["size"] = np.repeat(first[:-1], sizes), np.repeat(sizes, sizes)
    variables["count"] = [variable.count for each in analyses for variable in each.query.variables]
    variables["pair"] = np.concatenate([[0], np.cumsum(variables["size"])[:-1]])
    return variables


def _time_type(kind: TimeKind) -> type:
    return np.float64 if kind is TimeKind.DOUBLE else np.int64


def _pairs(
    analyses: Sequence[ConstrainAnalysis], variables: Table, given: Sequence[Check], kind: TimeKind, radius: float
) -> tuple[Table, Table]:
    """The pairs of each question, row by row, and their checks."""
    pairs = np.zeros(int(variables["size"].sum()), pair_type(_time_type(kind)))
    between = [_between(each, each.times.value) for each in analyses]
    pairs["latest"] = _in_units(np.concatenate([each.ravel() for each in between]), kind)
    pairs["earliest"] = -_in_units(np.concatenate([each.T.ravel() for each in between]), kind)
    ways = np.concatenate([_between(each, each.distances.value).ravel() for each in analyses])
    pairs["near"] = [(straight(way, radius) * (1 + 1e-9)) ** 2 if _bends(way, radius) else inf for way in ways]
    placed = _placed(given, variables)
    pairs["check"], pairs["end"] = np.searchsorted(
        [number for number, _, _ in placed], [range(len(pairs)), range(1, len(pairs) + 1)]
    )
    table = np.zeros(len(placed), CHECK)
    for name in ("what", "how", "value", "left", "right"):
        table[name] = [getattr(check, name) for _, check, _ in placed]
    table["swapped"] = [swapped for _, _, swapped in placed]
    table["limit"] = [straight(max(value, 0.0), radius) ** 2 for value in table["value"]]
    for variable in variables:
        own = pairs[variable["pair"] : variable["pair"] + variable["size"]]
        own["turn"] = np.argsort(own["latest"] >= 0, kind="stable")
    pairs["sure"] = [_sure(table[pair["check"] : pair["end"]], kind) for pair in pairs]
    return pairs, table


def _placed(given: Sequence[Check], variables: Table) -> list[tuple[int, Check, bool]]:
    """The checks by their pairs, each also the other way round, as (pair, check, whether it is swapped)."""
    placed = []
    for check in given:
        start = variables[check.u]["first"]
        placed.append((int(variables[check.u]["pair"] + check.v - start), check, False))
        placed.append((int(variables[check.v]["pair"] + check.u - start), check, True))
    # The cheap ones first: they spare the others.
    return sorted(placed, key=lambda each: (each[0], each[1].what == checks.DISTANCE))


def _sure(own: Table, kind: TimeKind) -> float:
    """The square of a distance within which two events in their window of time pass all checks of their pair; or -1.

    Windows of whole numbers are exact; a bound that is strict is not in them.
    """
    times = (
        np.isin(own["what"], (checks.TIMES, checks.SPAN)) & (own["left"] == checks.END) & (own["right"] == checks.END)
    )
    bounded = times & np.isin(own["how"], (checks.AT_MOST, checks.AT_LEAST)) & (kind is not TimeKind.DOUBLE)
    bounded &= (own["what"] == checks.TIMES) | (own["how"] == checks.AT_MOST)
    near = (own["what"] == checks.DISTANCE) & np.isin(own["how"], (checks.LESS, checks.AT_MOST)) & (own["value"] >= 0)
    if not (bounded | near).all():
        return -1.0
    return float((own["limit"][near] * (1 - 1e-12)).min(initial=inf))


def _bends(way: float, radius: float) -> bool:
    """Whether a distance excludes anything: none on the globe is longer than half of its girth."""
    return way < inf and (radius == 0.0 or way < np.pi * radius)


def _between(analysis: ConstrainAnalysis, closed: F64) -> F64:
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


def _in_units(bounds: F64, kind: TimeKind) -> npt.NDArray[Any]:
    """Bounds as times are measured; doubles are laid a little wide, of whole numbers none more is let in."""
    if kind is TimeKind.DOUBLE:
        return bounds + _SLACK * np.abs(np.where(np.isfinite(bounds), bounds, 0.0))
    units = bounds * (1e6 if kind is TimeKind.TIMESTAMP else 1.0)
    # 0.1 and 0.2 seconds are a little more than 300,000 microseconds, three times 0.1 a little less than 0.3.
    units = np.clip(np.floor(units + _ROUNDING), -float(_FOREVER), float(_FOREVER))
    return units.astype(np.int64)


def _longest(variables: Table, pairs: Table) -> npt.NDArray[Any]:
    """Of each variable, the most that any other event of a solution may be later; before all time for a single one."""
    latest = pairs["latest"].copy()
    alone = variables["count"] == 1
    own = variables["pair"] + np.arange(len(variables)) - variables["first"]
    latest[own[alone]] = -inf if latest.dtype == np.float64 else -_FOREVER
    return np.maximum.reduceat(latest, variables["pair"])


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
