"""Times plus or minus a constant, such as `v.t + 5`.

A shifted time can only be compared with another time. The comparison becomes one of a difference: `u.t + 2 <= v.t + 5`
is `u.t - v.t <= 3`.
"""

from __future__ import annotations

from decimal import Decimal

from anabranch.binding.typed import Constant, Operation, Reference, Typed
from anabranch.errors import Span
from anabranch.language.types import Type, comparable


def shifted_time(op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
    """`left op right` as a time plus a constant number of seconds; None if it is anything else."""
    if op == "+" and isinstance(left, Constant):
        left, right = right, left
    time, seconds = _time_and_shift(left)
    number = right.value if isinstance(right, Constant) and right.type.is_numeric else None
    if op not in "+-" or time.type is not Type.TIMESTAMP or isinstance(time, Constant) or number is None:
        return None
    seconds = _decimal_sum(seconds, float(number) if op == "+" else -float(number))
    return Operation("+", (time, Constant(seconds, Type.DOUBLE, span)), Type.TIMESTAMP, span)


def is_shifted(typed: Typed) -> bool:
    """Whether a tree is a shifted time: no other operation returns a TIMESTAMP."""
    return isinstance(typed, Operation) and typed.type is Type.TIMESTAMP


def compare_shifted(op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
    """The comparison as one of a difference of two times; None if a side is not the time of an event."""
    (time, shift), (other_time, other_shift) = _time_and_shift(left), _time_and_shift(right)
    if not (isinstance(time, Reference) and isinstance(other_time, Reference)):
        return None
    if not comparable(time.type, other_time.type):
        return None
    kind = Type.DOUBLE if time.type is other_time.type else Type.UNKNOWN
    seconds = Constant(_decimal_sum(other_shift, -shift), Type.DOUBLE, span)
    return Operation(op, (Operation("-", (time, other_time), kind, span), seconds), Type.BOOLEAN, span)


def _time_and_shift(typed: Typed) -> tuple[Typed, float]:
    """A shifted time, and by how many seconds it is shifted; any other tree, with 0."""
    if isinstance(typed, Operation) and is_shifted(typed):
        time, seconds = typed.arguments
        return time, seconds.value if isinstance(seconds, Constant) and isinstance(seconds.value, float) else 0.0
    return typed, 0.0


def _decimal_sum(one: float, other: float) -> float:
    """The sum of two numbers as they are written: 0.1 + 0.2 is 0.3."""
    return float(Decimal(repr(one)) + Decimal(repr(other)))
