"""The rows that the struct columns of an answer stand for, and conditions that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from anabranch.errors import AnabranchError
from anabranch.explanation.case import Case
from anabranch.explanation.identity import same
from anabranch.explanation.pieces import Piece
from anabranch.language import nodes
from anabranch.language.unparse import unparse
from anabranch.text import short


def row_of(table: pa.Table, event: Mapping[str, Any] | None) -> int | None:
    """The number of the row that has the values of a struct; None if there is none."""
    if event is None:
        return None
    names = {name.lower(): name for name in table.column_names}
    wanted = [(table[names[name.lower()]], value) for name, value in event.items() if name.lower() in names]
    rows = (number for number in range(table.num_rows) if all(same(column[number].as_py(), v) for column, v in wanted))
    return next(rows, None)


def field_of(event: Mapping[str, Any], name: str) -> Any:
    """A field of a struct, by its name in any case."""
    return next(value for field, value in event.items() if field.lower() == name.lower())


def shifted(t: Any, duration: float) -> Any:
    """A time some time later; the duration is in seconds for a timestamp, else in the unit of the column."""
    return t + (duration if isinstance(t, int | float) else timedelta(seconds=duration))


def elapsed(start: Any, end: Any) -> float:
    """The time between two times, in seconds for timestamps, else in the unit of the column."""
    difference = end - start
    return difference.total_seconds() if isinstance(difference, timedelta) else float(difference)


def condition_pieces(case: Case, what: str = "condition") -> Iterator[Piece]:
    """The conditions of WHERE that are joined by AND; those without which the query is not valid are left out."""
    where = getattr(case.query.declaration.body, "where", None)
    items = where.items if isinstance(where, nodes.And) else () if where is None else (where,)
    for item in items:
        change = without_condition(item)
        if is_valid(case, change):
            yield Piece(what, short(unparse(item), 80), change=change)


def without_condition(item: nodes.Expr) -> Callable[[Case], Case]:
    """Leaves out a condition of WHERE."""

    def change(case: Case) -> Case:
        where: nodes.Expr = case.query.declaration.body.where  # type: ignore[attr-defined]
        items = where.items if isinstance(where, nodes.And) else (where,)
        kept = tuple(other for other in items if other != item)
        left = replace(where, items=kept) if isinstance(where, nodes.And) and len(kept) > 1 else next(iter(kept), None)
        return case.with_body(where=left)

    return change


def is_valid(case: Case, change: Callable[[Case], Case]) -> bool:
    """Whether a query can still be answered after a change."""
    try:
        return change(case).prepared.plan.refused is None
    except AnabranchError:
        return False
