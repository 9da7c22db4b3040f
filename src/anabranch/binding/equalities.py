"""Equalities between columns, and classes of columns that are equal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from typing import TypeVar

from anabranch.binding.typed import Operation, Reference, Typed

_Item = TypeVar("_Item", bound=Hashable)


def equated_columns(condition: Typed) -> tuple[Reference, Reference] | None:
    """The two columns of a condition `a.x = b.y`; None for any other condition."""
    if not isinstance(condition, Operation) or condition.op != "=":
        return None
    left, right = condition.arguments
    return (left, right) if isinstance(left, Reference) and isinstance(right, Reference) else None


def merge_overlapping(sets: Iterable[AbstractSet[_Item]]) -> list[frozenset[_Item]]:
    """Merge sets that have items in common, such as pairs of equal columns into classes of equal columns.

    Examples
    --------
    >>> [sorted(merged) for merged in merge_overlapping([{1, 2}, {3, 4}, {2, 5}])]
    [[3, 4], [1, 2, 5]]
    """
    merged: list[frozenset[_Item]] = []
    for items in sets:
        overlapping = [other for other in merged if other & items]
        merged = [other for other in merged if not other & items] + [frozenset(items).union(*overlapping)]
    return merged
