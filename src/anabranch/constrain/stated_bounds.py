"""Bounds on distances that a condition of a CONSTRAIN query states."""

from __future__ import annotations

from anabranch.binding.time_bounds import comparison
from anabranch.binding.typed import Constant, Operation, Reference, Typed


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
