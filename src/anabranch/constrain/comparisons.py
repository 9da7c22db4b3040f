"""Splits conditions into comparisons of two events, which the kernel decides during its search, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from anabranch.binding.time_bounds import comparison, is_begin, time_bound
from anabranch.binding.typed import Constant, Operation, Reference, Typed, of_event
from anabranch.constrain.analysis import ConstrainAnalysis
from anabranch.constrain.arguments import SPATIAL
from anabranch.constrain.query import mentions
from anabranch.constrain.stated_bounds import distance_bound
from anabranch.language.types import Type


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of an event of variable u with an event of variable v; see `CHECK` in the kernel.

    `what` and the sides of times (BEGIN, END) are names of codes of the kernel, and `how` is an operator. They are
    text, because a plan is made without arrays; `graph.py` converts them.
    """

    u: int
    v: int
    what: str
    how: str
    value: float = 0.0
    left: int | str = 0
    right: int | str = 0


@dataclass(frozen=True, slots=True)
class ColumnOf:
    """A value of an event that checks compare: an expression on the columns of a stream.

    Values of one `group` are compared with each other, and get common codes; without a group they are numbers. A `box`
    is the bounding box of a geometry, in four columns; of one in degrees if it is `on_globe`.
    """

    stream: str
    value: Typed
    group: int | None = None
    box: bool = False
    on_globe: bool = False


@dataclass(slots=True)
class Columns:
    """The distinct columns that checks compare."""

    known: list[ColumnOf] = field(default_factory=list)
    groups: int = 0

    def index(self, column: ColumnOf) -> int:
        """The index of the first number of a column, which is added if it is new."""
        if column not in self.known:
            self.known.append(column)
        return sum(4 if known.box else 1 for known in self.known[: self.known.index(column)])


def checks_of(analysis: ConstrainAnalysis, first: int, columns: Columns) -> tuple[list[Check], list[Typed]]:
    """The checks of a query whose first variable has the number `first`, and the conditions that they do not decide."""
    numbers = {variable.name: first + index for index, variable in enumerate(analysis.query.variables)}
    checks, others = [], []
    for condition in analysis.joint:
        check = (
            _of_space(numbers, condition)
            or _of_times(analysis, numbers, condition)
            or _of_columns(analysis, numbers, condition, columns)
        )
        if check is not None:
            checks.append(check)
            continue
        others.append(condition)
        box = _of_boxes(analysis, numbers, condition, columns)
        checks += [box] if box is not None else []
    return checks, others


def _of_space(numbers: dict[str, int], condition: Typed) -> Check | None:
    """The check of a bound on the distance of two events."""
    bound = distance_bound(condition)
    if bound is None:
        return None
    op, one, other, value = bound
    return Check(numbers[one.owner or ""], numbers[other.owner or ""], "DISTANCE", op, value)


def _of_times(analysis: ConstrainAnalysis, numbers: dict[str, int], condition: Typed) -> Check | None:
    """The check of a bound on times: `u.t - v.t <= 5`, `SPAN(u, v) < 3`, `u.t <= v.t`."""
    streams = analysis.query.stream_of
    bound = time_bound(streams, condition)
    if bound is None:
        return None
    op, one, other, value, is_absolute = bound
    sides = ["BEGIN" if is_begin(streams, time) else "END" for time in (one, other)]
    what = "SPAN" if is_absolute else "TIMES"
    return Check(numbers[one.owner or ""], numbers[other.owner or ""], what, op, value, *sides)


def _of_columns(
    analysis: ConstrainAnalysis, numbers: dict[str, int], condition: Typed, columns: Columns
) -> Check | None:
    """The check of a comparison of two values of different events, or of their difference with a number."""
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    what, value = "COLUMNS", 0.0
    if isinstance(right, Constant):
        inner = left.arguments[0] if isinstance(left, Operation) and left.op == "abs" else left
        number = right.value if right.type in (Type.INTEGER, Type.DOUBLE) else None
        if not isinstance(inner, Operation) or inner.op != "-" or not isinstance(number, int | float):
            return None
        what, value = ("DIFFERENCE" if inner is left else "SPREAD"), float(number)
        left, right = inner.arguments
        if not all(side.type in (Type.INTEGER, Type.DOUBLE) for side in (left, right)):
            return None
    sides = [_event_of(side) for side in (left, right)]
    if None in sides or sides[0] == sides[1] or not all(map(_is_plain, (left, right))):
        return None
    group = None
    if what == "COLUMNS" and Type.DOUBLE not in (left.type, right.type):
        group = columns.groups
        columns.groups += 1
    indices = [columns.index(ColumnOf(_stream_of(analysis, side), of_event(side), group)) for side in (left, right)]
    u, v = (numbers[side[0]] for side in sides if side is not None)
    return Check(u, v, what, op, value, *indices)


def _stream_of(analysis: ConstrainAnalysis, value: Typed) -> str:
    """The name of the stream of the event in a value."""
    ((owner, _),) = mentions(value)
    return analysis.query.stream_of[owner].name.lower()


def _event_of(value: Typed) -> tuple[str, int] | None:
    """The event in a value; None if there is none, or more than one."""
    events = mentions(value)
    return next(iter(events)) if len(events) == 1 else None


def _is_plain(value: Typed) -> bool:
    """Whether a value is arithmetic on columns, so that it can be computed for each event beforehand."""
    if isinstance(value, Operation):
        return value.op in ("+", "-", "*", "/", "%", "negate", "abs") and all(map(_is_plain, value.arguments))
    return isinstance(value, Constant) or (isinstance(value, Reference) and value.name != "*")


def _of_boxes(analysis: ConstrainAnalysis, numbers: dict[str, int], condition: Typed, columns: Columns) -> Check | None:
    """A check of the bounding boxes of two geometries that is necessary for a condition on the geometries."""
    value, touching = 0.0, condition
    compared = comparison(condition)
    if compared is not None and compared[0] in ("<", "<=") and isinstance(compared[2], Constant):
        touching = compared[1]
        value = float(compared[2].value) if isinstance(compared[2].value, int | float) else inf
    if not isinstance(touching, Operation) or touching.op not in (*SPATIAL, "gap"):
        return None
    sides = [_event_of(argument) for argument in touching.arguments]
    if (touching.op in ("distance", "gap")) != (touching is not condition) or None in sides or sides[0] == sides[1]:
        return None
    if not all(isinstance(argument, Reference) for argument in touching.arguments):
        return None
    streams = analysis.query.stream_of
    on_globe = any(streams[owner].declaration.geodesic for owner, _ in mentions(condition))
    boxes = [
        ColumnOf(_stream_of(analysis, argument), of_event(argument), box=True, on_globe=on_globe)
        for argument in touching.arguments
    ]
    indices = [columns.index(box) for box in boxes]
    u, v = (numbers[side[0]] for side in sides if side is not None)
    return Check(u, v, "BOXES", "<=", value * (1 + 1e-9), *indices)
