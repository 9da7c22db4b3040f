"""The test case that all kinds of query share, and the values that its strategies draw from.

A case is workbook text and rows, so that it runs through every entry point: the oracle, a kernel, a batch run and a
streaming run. Its streams have no FROM; the rows are bound to them by name. In a list of choices the simplest is first:
a failing case shrinks towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]
Rows = dict[str, list[Row]]
Relations = dict[str, list[tuple[Any, ...]]]
Draw = Callable[[st.SearchStrategy[Any]], Any]

QUERY = "q"

STRING, INTEGER, DOUBLE, TIMESTAMP = "STRING", "INTEGER", "DOUBLE", "TIMESTAMP"
TIMES = (INTEGER, DOUBLE, TIMESTAMP)
#: TIMESTAMPs are seconds after this; midnight and the next month begin two seconds later.
EPOCH = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True)
class Case:
    """A query and its input.

    Attributes
    ----------
    workbook : str
        Declares the streams, the relations and one query.
    query : str
        The name of the query.
    rows : dict from the name of a stream to its rows, not sorted by time
    relations : dict from the name of a relation to its rows
    """

    workbook: str
    query: str
    rows: Rows
    relations: Relations = field(default_factory=dict)


def workbook_of(declarations: Iterable[str], query: str) -> str:
    """The text of a workbook: the declarations and the query `QUERY`."""
    return "\n".join([*declarations, f"CREATE QUERY {QUERY} AS {query};"]) + "\n"


@st.composite
def operands_of(draw: Draw, streams: Sequence[tuple[str, str]]) -> str:
    """The operands after FROM, from pairs of stream and name; a single stream may be written without AS."""
    alone = {stream for stream, _ in streams}
    if len(alone) == 1 and not draw(one_in(4)):
        return streams[0][0]
    return ", ".join(f"{stream} AS {name}" for stream, name in streams)


def watermark_of(delay: int | float | None) -> str:
    """The WATERMARK clause; empty if there is no delay."""
    return "" if delay is None else f" WATERMARK {delay}"


# ---------------------------------------------------------------- choices


def one_in(count: int) -> st.SearchStrategy[bool]:
    """True in about one of `count` draws; False is the simpler case."""
    return st.integers(0, count - 1).map(lambda number: number == 1)


def lists(items: st.SearchStrategy[Any], sizes: Sequence[int]) -> st.SearchStrategy[list[Any]]:
    """Lists of one of these lengths; by default, Hypothesis draws mostly short lists."""
    return st.sampled_from(sizes).flatmap(lambda size: st.lists(items, min_size=size, max_size=size))


# ---------------------------------------------------------------- values


def moment(instant: int | float, time_type: str) -> Any:
    """An instant as a value of a column of this type."""
    return EPOCH + timedelta(seconds=instant) if time_type == TIMESTAMP else instant


def seconds(row: Row) -> int | float:
    """The time of a row as conditions compare it."""
    time = row["t"]
    return (time - EPOCH).total_seconds() if isinstance(time, datetime) else time


def number_text(value: float) -> str:
    """A number as a literal, without a decimal point if it is whole."""
    return str(int(value)) if value == int(value) else repr(value)


def constant_text(value: Any) -> str:
    """A value of a row as a literal."""
    if isinstance(value, datetime):
        return f"'{value:%Y-%m-%d %H:%M:%S.%f}'"
    return f"'{value}'" if isinstance(value, str) else number_text(value)
