"""The rows that an answer depends on, read from the inputs of its query, for explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch.errors import TooLarge
from anabranch.planning.selection import Selection
from anabranch.runtime.execution import Resolved
from anabranch.runtime.kernels import ensure_kernels
from anabranch.runtime.validation import valid_rows, validate_input

#: The most rows of one stream that are read to explain an answer.
MOST_ROWS = 200_000

#: The most invalid rows of one stream that are read.
MOST_INVALID = 10_000


def collect_rows(resolved: Resolved, selections: Sequence[Selection]) -> tuple[pa.Table, ...]:
    """The valid rows of each stream of a query that are selected, by time; also compiles what explaining them needs."""
    ensure_kernels([resolved.job])
    tables = []
    for source, layout, selection in zip(resolved.sources, resolved.context.layouts, selections, strict=True):
        frame = valid_rows(source, layout)
        condition = _condition(selection, layout.time)
        if condition is not None:
            frame = frame.where(condition)
        table = frame.limit(MOST_ROWS + 1).toArrow()
        if table.num_rows > MOST_ROWS:
            raise TooLarge(
                f"the answer depends on more than {MOST_ROWS:,} rows of {layout.name}; bind fewer of them, by time or key"
            )
        tables.append(table.sort_by(layout.time))
    return tuple(tables)


def _condition(selection: Selection, time: str) -> Column | None:
    """A selection as a condition on rows."""
    conditions = []
    if selection.equal is not None:
        conditions.append(reduce(or_, map(_equal, selection.equal), F.lit(False)))
    if selection.earliest is not None:
        conditions.append(F.col(f"`{time}`") >= F.lit(selection.earliest))
    if selection.latest is not None:
        conditions.append(F.col(f"`{time}`") <= F.lit(selection.latest))
    return reduce(and_, conditions) if conditions else None


def _equal(values: Mapping[str, object]) -> Column:
    return reduce(and_, (F.col(f"`{name}`") == F.lit(value) for name, value in values.items()), F.lit(True))


def invalid_rows(resolved: Resolved) -> list[dict[str, str]]:
    """The rows of the inputs of a query that are quarantined: stream, reason, and the row as JSON."""
    found = []
    for source, layout in zip(resolved.sources, resolved.context.layouts, strict=True):
        found += validate_input(source, layout).limit(MOST_INVALID).toArrow().to_pylist()
    return found
