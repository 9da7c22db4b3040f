"""Answers as a table for notebooks."""

from __future__ import annotations

import math

import pyarrow as pa

from anabranch import markup
from anabranch.charts.table import PROBABILITY, useful_columns
from anabranch.text import cell, probability_text, safe, short


def answers_html(answers: pa.Table, *, limit: int = 20) -> markup.Markup:
    """Return the first answers as an HTML table, with a bar for the probability."""
    shown = answers.slice(0, limit).select(useful_columns(answers))
    numeric = [index for index, field in enumerate(shown.schema) if _is_number(field)]
    rows = [[_cell(shown[name][row], name) for name in shown.column_names] for row in range(shown.num_rows)]
    return markup.table([safe(short(name)) for name in shown.column_names], rows, numeric)


def _is_number(field: pa.Field) -> bool:
    return field.name != PROBABILITY and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))


def _cell(scalar: pa.Scalar, name: str) -> str:
    value = scalar.as_py() if name == PROBABILITY else None
    if not isinstance(value, float) or not math.isfinite(value):
        return cell(scalar)
    return markup.share_bar(probability_text(value), value)
