"""The rows that the struct columns of an answer stand for, and conditions that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from anabranch.constrain.syntax import Constrain
from anabranch.errors import AnabranchError
from anabranch.explanation.case import Case
from anabranch.explanation.identity import same
from anabranch.explanation.pieces import Piece
from anabranch.language import nodes
from anabranch.language.unparse import unparse
from anabranch.monitor.syntax import Monitor
from anabranch.pattern.syntax import Pattern
from anabranch.relate.syntax import Relate
from anabranch.sequence.syntax import Sequence
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
    fields = {field.lower(): value for field, value in event.items()} if isinstance(event, Mapping) else {}
    if name.lower() not in fields:
        raise AnabranchError(f"an event of the answer has no field {name}; pass a whole row of the answers")
    return fields[name.lower()]


def shifted(t: Any, duration: float) -> Any:
    """A time some time later; the duration is in seconds for a timestamp, else in the unit of the column."""
    return t + (duration if isinstance(t, int | float) else timedelta(seconds=duration))


def elapsed(start: Any, end: Any) -> float:
    """The time between two times, in seconds for timestamps, else in the unit of the column."""
    difference = end - start
    return difference.total_seconds() if isinstance(difference, timedelta) else float(difference)


def condition_pieces(case: Case, what: str = "condition") -> Iterator[Piece]:
    """The conditions of WHERE that are joined by AND; those without which the query is not valid are left out."""
    for item in conditions_of(case):
        change = without_condition(item)
        if is_valid(case, change):
            yield Piece(what, short(unparse(item), 80), change=change)


def conditions_of(case: Case) -> tuple[nodes.Expr, ...]:
    """The conditions of WHERE that are joined by AND."""
    where = _where(case)
    if where is None:
        return ()
    return where.items if isinstance(where, nodes.And) else (where,)


def _where(case: Case) -> nodes.Expr | None:
    body = case.query.declaration.body
    # A combination of queries has no WHERE of its own.
    return body.where if isinstance(body, Pattern | Sequence | Relate | Monitor | Constrain) else None


def without_condition(item: nodes.Expr) -> Callable[[Case], Case]:
    """Leaves out a condition of WHERE."""

    def change(case: Case) -> Case:
        where = _where(case)
        kept = tuple(other for other in conditions_of(case) if other != item)
        left = replace(where, items=kept) if isinstance(where, nodes.And) and len(kept) > 1 else next(iter(kept), None)
        return case.with_body(where=left)

    return change


def is_valid(case: Case, change: Callable[[Case], Case]) -> bool:
    """Whether a query can still be answered after a change."""
    try:
        return change(case).prepared.plan.refused is None
    except AnabranchError:
        return False
