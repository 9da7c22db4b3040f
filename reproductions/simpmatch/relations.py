"""Relations as bits, in the order of SIMPLE, and quantifiers over segments whose ends are all known."""

from __future__ import annotations

from anabranch.arrays import F64
from anabranch.compiled import compiled
from anabranch.relate.query import COMPOSITE, SIMPLE

(
    PRECEDES, MEETS, OVERLAPS, STARTS, DURING, FINISHES, EQUALS,
    PRECEDED_BY, MET_BY, OVERLAPPED_BY, STARTED_BY, CONTAINS, FINISHED_BY,
) = (1 << i for i in range(len(SIMPLE)))  # fmt: skip

ANY = (1 << len(SIMPLE)) - 1


def relation_mask(*names: str) -> int:
    """Return the union of some relations as bits."""
    return sum(1 << SIMPLE.index(name) for name in names)


INTERSECTS = relation_mask(*COMPOSITE["INTERSECTS"])


@compiled
def relation(x: float, x_end: float, y: float, y_end: float) -> int:
    """Return the bit of the one relation between two intervals, by times or by ranks."""
    if x_end <= y:
        return PRECEDES if x_end < y else MEETS
    if y_end <= x:
        return PRECEDED_BY if y_end < x else MET_BY
    if x < y:
        return OVERLAPS if x_end < y_end else (CONTAINS if x_end > y_end else FINISHED_BY)
    if x > y:
        return DURING if x_end < y_end else (OVERLAPPED_BY if x_end > y_end else FINISHES)
    return STARTS if x_end < y_end else (STARTED_BY if x_end > y_end else EQUALS)


@compiled
def holds(a: F64, a_end: F64, b: F64, b_end: F64, outer: int, inner: int, relations: int) -> float:
    """Return 1 if the query holds for segments whose ends are all known, else 0."""
    outer = outer if outer > 0 else len(a)
    inner = inner if inner > 0 else len(b)
    satisfied = 0
    for x in range(len(a)):
        count = 0
        for y in range(len(b)):
            if relation(a[x], a_end[x], b[y], b_end[y]) & relations:
                count += 1
        if count >= inner:
            satisfied += 1
    return 1.0 if satisfied >= outer else 0.0
