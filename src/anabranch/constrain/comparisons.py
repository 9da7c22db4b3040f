"""Which conditions the kernel can decide while it searches, as comparisons of two events; and which are left over."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from anabranch.binding.typed import Constant, Operation, Reference, Typed, of_event
from anabranch.constrain.analysis import ConstrainAnalysis, mentions
from anabranch.constrain.kernel import tables as checks
from anabranch.constrain.stated_bounds import comparison, distance_bound, is_begin, time_bound
from anabranch.language.types import Type


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

    def place(self, wanted: ColumnOf) -> int:
        """Where the numbers of a column begin."""
        if wanted not in self.known:
            self.known.append(wanted)
        return sum(4 if column.box else 1 for column in self.known[: self.known.index(wanted)])


def checks_of(analysis: ConstrainAnalysis, first: int, columns: Columns) -> tuple[list[Check], list[Typed]]:
    """The checks of a query whose first variable has a number, and the conditions that are not wholly checked."""
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
