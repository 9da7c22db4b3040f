"""Bounds on times and distances that a condition of a CONSTRAIN query states."""

from __future__ import annotations

from anabranch.binding.typed import MIRRORED, Constant, Operation, Reference, Typed
from anabranch.catalog import Stream
from anabranch.constrain.query import BoundConstrain
from anabranch.language.types import Type


def time_bound(query: BoundConstrain, condition: Typed) -> tuple[str, Reference, Reference, float, bool] | None:
    """The bound on a difference of two times that a condition states; None if it states none.

    Returns the operator, the two times, the value, and whether the difference is absolute. Each side may be a sum of
    times and numbers: `u.t + 5 <= v.t` is `u.t - v.t <= -5`.
    """
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    absolute = _absolute_difference(query, left)
    if absolute is not None and isinstance(right, Constant) and isinstance(right.value, int | float):
        return op, *absolute, float(right.value), True
    left_sum, right_sum = _sum_of_times(query, left), _sum_of_times(query, right)
    if left_sum is None or right_sum is None:
        return None
    signs = _added(left_sum[0], right_sum[0], -1)
    plus = [reference for reference, sign in signs.items() if sign == 1]
    minus = [reference for reference, sign in signs.items() if sign == -1]
    if len(plus) != 1 or len(minus) != 1 or any(abs(sign) > 1 for sign in signs.values()):
        return None
    return op, plus[0], minus[0], right_sum[1] - left_sum[1], False


def _absolute_difference(query: BoundConstrain, tree: Typed) -> tuple[Reference, Reference] | None:
    """The two times if a tree is their absolute difference: `SPAN(u, v)` or `ABS(u.t - v.t)`."""
    if not isinstance(tree, Operation):
        return None
    if tree.op == "span":
        one, other = tree.arguments
        return (one, other) if isinstance(one, Reference) and isinstance(other, Reference) else None
    inner = tree.arguments[0]
    if tree.op == "abs" and isinstance(inner, Operation) and inner.op == "-":
        one, other = inner.arguments
        if (
            isinstance(one, Reference)
            and isinstance(other, Reference)
            and is_time(query, one)
            and is_time(query, other)
        ):
            return one, other
    return None


def _sum_of_times(query: BoundConstrain, tree: Typed) -> tuple[dict[Reference, int], float] | None:
    """A tree as a sum of times, each with its sign, and a number; None if it is anything else."""
    if isinstance(tree, Reference):
        return ({tree: 1}, 0.0) if is_time(query, tree) else None
    if isinstance(tree, Constant):
        number = tree.value if tree.type in (Type.INTEGER, Type.DOUBLE) else None
        return ({}, float(number)) if isinstance(number, int | float) else None
    if not isinstance(tree, Operation) or tree.op not in ("+", "-"):
        return None
    first, second = (_sum_of_times(query, part) for part in tree.arguments)
    if first is None or second is None:
        return None
    sign = 1 if tree.op == "+" else -1
    return _added(first[0], second[0], sign), first[1] + sign * second[1]


def _added(signs: dict[Reference, int], others: dict[Reference, int], sign: int) -> dict[Reference, int]:
    """The sum of two sums of times, the second multiplied by `sign`."""
    total = dict(signs)
    for reference, other in others.items():
        total[reference] = total.get(reference, 0) + sign * other
    return total


def is_time(query: BoundConstrain, reference: Reference) -> bool:
    """Whether a reference is to a time column: the end of an event, or its start."""
    stream = _stream_of(query, reference)
    names = [stream.time.name, *([] if stream.start is None else [stream.start.name])]
    return reference.name in (name.lower() for name in names)


def is_begin(query: BoundConstrain, reference: Reference) -> bool:
    """Whether a reference to a time is to the start of an event with a duration."""
    start = _stream_of(query, reference).start
    return start is not None and reference.name == start.name.lower()


def _stream_of(query: BoundConstrain, reference: Reference) -> Stream:
    return next(variable.stream for variable in query.variables if variable.name == reference.owner)


def distance_bound(condition: Typed) -> tuple[str, Reference, Reference, float] | None:
    """The bound on the distance of two points that a condition states: operator, events and value; None if none."""
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    if isinstance(left, Operation) and left.op == "distance" and isinstance(right, Constant):
        one, other = left.arguments
        if isinstance(one, Reference) and isinstance(other, Reference) and one.name == other.name == "*":
            return (op, one, other, float(right.value)) if isinstance(right.value, int | float) else None
    return None


def comparison(condition: Typed) -> tuple[str, Typed, Typed] | None:
    """A comparison as (operator, left, right), with a constant on the right if there is one; None for other trees."""
    if not isinstance(condition, Operation) or condition.op not in MIRRORED:
        return None
    left, right = condition.arguments
    return (MIRRORED[condition.op], right, left) if isinstance(left, Constant) else (condition.op, left, right)
