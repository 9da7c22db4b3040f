"""Bounds on differences of times that a condition states."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from anabranch.binding.typed import MIRRORED, Constant, Operation, Reference, Typed
from anabranch.catalog import Stream
from anabranch.language.types import Type

#: The stream of each owner in a condition; the owner is "" in a condition on one event.
Streams = Mapping[str, Stream]


class TimeBound(NamedTuple):
    """A comparison of the difference `one` - `other` of two times with a number.

    Attributes
    ----------
    op : the operator
    one, other : the two times
    value : the number
    is_absolute : whether the absolute value of the difference is compared
    """

    op: str
    one: Reference
    other: Reference
    value: float
    is_absolute: bool


def time_bound(streams: Streams, condition: Typed) -> TimeBound | None:
    """The bound on a difference of two times that a condition states; None if it states none.

    Each side may be a sum of times and numbers: `u.t + 5 <= v.t` is `u.t - v.t <= -5`.
    """
    compared = comparison(condition)
    if compared is None:
        return None
    op, left, right = compared
    absolute = _absolute_difference(streams, left)
    if absolute is not None and isinstance(right, Constant) and isinstance(right.value, int | float):
        return TimeBound(op, *absolute, float(right.value), True)
    left_sum, right_sum = _sum_of_times(streams, left), _sum_of_times(streams, right)
    if left_sum is None or right_sum is None:
        return None
    signs = _added(left_sum[0], right_sum[0], -1)
    plus = [reference for reference, sign in signs.items() if sign == 1]
    minus = [reference for reference, sign in signs.items() if sign == -1]
    if len(plus) != 1 or len(minus) != 1 or any(abs(sign) > 1 for sign in signs.values()):
        return None
    return TimeBound(op, plus[0], minus[0], float(right_sum[1] - left_sum[1]), False)


def _absolute_difference(streams: Streams, tree: Typed) -> tuple[Reference, Reference] | None:
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
            and is_time(streams, one)
            and is_time(streams, other)
        ):
            return one, other
    return None


def _sum_of_times(streams: Streams, tree: Typed) -> tuple[dict[Reference, int], Decimal] | None:
    """A tree as a sum of times, each with its sign, and a number; None if it is anything else.

    The number is a sum of decimals, as they were written: 0.1 + 0.2 is 0.3.
    """
    if isinstance(tree, Reference):
        return ({tree: 1}, Decimal(0)) if is_time(streams, tree) else None
    if isinstance(tree, Constant):
        number = tree.value if tree.type in (Type.INTEGER, Type.DOUBLE) else None
        return ({}, Decimal(repr(number))) if isinstance(number, int | float) else None
    if not isinstance(tree, Operation) or tree.op not in ("+", "-"):
        return None
    first, second = (_sum_of_times(streams, part) for part in tree.arguments)
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


def is_time(streams: Streams, reference: Reference) -> bool:
    """Whether a reference is to a time column: the end of an event, or its start."""
    stream = streams[reference.owner or ""]
    names = [stream.time.name, *([] if stream.start is None else [stream.start.name])]
    return reference.name in (name.lower() for name in names)


def is_begin(streams: Streams, reference: Reference) -> bool:
    """Whether a reference to a time is to the start of an event with a duration."""
    start = streams[reference.owner or ""].start
    return start is not None and reference.name == start.name.lower()


def comparison(condition: Typed) -> tuple[str, Typed, Typed] | None:
    """A comparison as (operator, left, right), with a constant on the right if there is one; None for other trees."""
    if not isinstance(condition, Operation) or condition.op not in MIRRORED:
        return None
    left, right = condition.arguments
    return (MIRRORED[condition.op], right, left) if isinstance(left, Constant) else (condition.op, left, right)
