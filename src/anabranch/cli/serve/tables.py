"""Answers as the cells of a table on the page, for JSON."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64
from anabranch.text import short, value_text

#: The longest value of a cell, and the most events of one.
_LONGEST, _MOST_EVENTS = 120, 6

#: Digits after milliseconds, which make times hard to compare.
_MICROSECONDS = re.compile(r"(:\d\d\.\d{3})\d{3}$")

Cell = str | list[list[list[str]]]
"""A value as text; or the names and values of events, one list for each event."""


def probabilities_of(table: pa.Table) -> F64:
    """The probability of each answer; 1 if the answers have none."""
    if "probability" not in table.column_names:
        return np.ones(table.num_rows)
    return np.nan_to_num(table["probability"].to_numpy().astype(np.float64))


def shown_columns(table: pa.Table) -> list[str]:
    """The columns of the table on the page: probability, events, and the others.

    The bounds of the probability are shown only where they differ from it. The corners of regions of MONITOR are left
    out: they are for programs.
    """
    names = [name for name in table.column_names if name not in ("probability", "boundary")]
    names.sort(key=lambda name: name == "sample" or not _has_events(table.schema.field(name).type))
    if "probability" not in table.column_names:
        return names
    bounds = [name for name in ("lower", "upper") if name in names]
    if all(table[name].combine_chunks().equals(table["probability"].combine_chunks()) for name in bounds):
        names = [name for name in names if name not in bounds]
    return ["probability", *names]


def cells(table: pa.Table, columns: list[str]) -> dict[str, Any]:
    """The cells of all rows of a table, and their probabilities for bars."""
    rows = zip(*([_cell(value) for value in table[name]] for name in columns), strict=True)
    return {
        "columns": columns,
        "rows": [list(row) for row in rows],
        "probabilities": probabilities_of(table).tolist(),
    }


def _has_events(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind.value_type if pa.types.is_list(kind) else kind)


def _cell(value: pa.Scalar) -> Cell:
    if pa.types.is_struct(value.type) and value.is_valid:
        return [_fields(value)]
    if _has_events(value.type) and value.is_valid:
        events = [_fields(event) for event in value.values[:_MOST_EVENTS]]
        rest = len(value.values) - len(events)
        return [*events, [["", f"and {rest:,} more"]]] if rest else events
    return _text(value)


def _fields(struct: pa.StructScalar) -> list[list[str]]:
    return [[name, _text(part)] for name, part in struct.items()]


def _text(value: pa.Scalar) -> str:
    return short(without_microseconds(value_text(value)), _LONGEST)


def without_microseconds(text: str) -> str:
    """A value; a time that has microseconds, only to the millisecond."""
    return _MICROSECONDS.sub(r"\1", text)
