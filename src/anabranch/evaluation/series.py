"""Answers and ground truth as time series, one per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.arrays import F64
from anabranch.text import value_text

Instant = float | datetime

NOT_GROUPS = frozenset(
    {"t", "t_start", "t_from", "t_to", "valid_from", "valid_to", "certain_from", "certain_to"}
    | {"boundary", "sample"}
    | {"probability", "complement", "expected", "count", "calibrated", "lower", "upper", "method", "status"}
)
"""The columns of an answer that are about time and probability; all others are grouping columns."""


@dataclass(frozen=True, slots=True)
class Series:
    """One group: its name, the sorted times of its answers, their probabilities, and the times of its true events."""

    label: str
    times: F64
    probabilities: F64
    true_times: F64


@dataclass(frozen=True, slots=True)
class Timeline:
    """All groups over one time range.

    Times are numbers: the values of the column, or seconds since 1970 UTC if it has timestamps (`clock`).
    """

    groups: tuple[Series, ...]
    start: float
    end: float
    clock: bool


def timeline(
    answers: pa.Table,
    *,
    by: Sequence[str] | None = None,
    span: tuple[Instant, Instant] | None = None,
    truth: pa.Table | None = None,
) -> Timeline:
    """Split answers into one series per group.

    Parameters
    ----------
    answers : pa.Table
        With the columns `t` and `probability`. Rows where either is NULL are skipped.
    by : sequence of str, optional
        The grouping columns; by default all that are not about time and probability.
    span : pair, optional
        The time range to show; by default that of the answers and the true events.
    truth : pa.Table, optional
        The true events: `t` and the grouping columns.
    """
    columns = [name for name in answers.column_names if name not in NOT_GROUPS] if by is None else list(by)
    answered = _by_label(answers, columns, "probability")
    true = _by_label(truth, columns) if truth is not None else {}
    no_points = np.empty((0, 2))
    groups = []
    for label in sorted(answered.keys() | true.keys()):
        points, marks = answered.get(label, no_points), true.get(label, no_points)
        groups.append(Series(label, points[:, 0], points[:, 1], marks[:, 0]))
    start, end = _span(groups, span)
    return Timeline(tuple(groups), start, end, pa.types.is_timestamp(answers.schema.field("t").type))


def highest(groups: Sequence[Series], limit: int) -> list[Series]:
    """Return the groups with the highest peaks, at most `limit`, in their original order."""
    peaks = [max(group.probabilities, default=0.0) for group in groups]
    best = sorted(range(len(groups)), key=lambda number: (-peaks[number], number))[:limit]
    return [groups[number] for number in sorted(best)]


def as_number(instant: Instant) -> float:
    """Return an instant as a number, as in `Timeline`; a datetime without a time zone is UTC."""
    if isinstance(instant, datetime):
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
    return float(instant)


def instants(column: pa.ChunkedArray) -> F64:
    """Return a time column as numbers, as in `Timeline`; NULL is NaN."""
    if pa.types.is_timestamp(column.type):
        micros = pc.cast(pc.cast(column, pa.timestamp("us", column.type.tz), safe=False), pa.int64())
        return _floats(micros) / 1e6
    return _floats(column)


def _floats(column: pa.ChunkedArray) -> F64:
    # 64-bit integers above 2^53 lose their last digits, which no chart shows.
    numbers: F64 = pc.cast(column, pa.float64(), safe=False).to_numpy().astype(np.float64)
    return numbers


def _by_label(table: pa.Table, columns: Sequence[str], value: str | None = None) -> dict[str, F64]:
    """Return, for each group, the array of (time, value) in the order of time."""
    times = instants(table["t"])
    values = _floats(table[value]) if value else np.zeros_like(times)
    points = np.column_stack([times, values])
    names, group = np.unique(_labels(table, columns), return_inverse=True)
    order = np.lexsort((times, group))
    order = order[np.isfinite(points[order]).all(axis=1)]
    begins, ends = (np.searchsorted(group[order], np.arange(len(names)), side) for side in ("left", "right"))
    return {str(name): points[order[i:j]] for name, i, j in zip(names, begins, ends, strict=True)}


def _labels(table: pa.Table, columns: Sequence[str]) -> NDArray[np.str_]:
    """Return the name of the group of each row."""
    if not columns:
        return np.full(table.num_rows, "")
    texts = [_texts(table[name]) for name in columns]
    return np.array([", ".join(row) for row in zip(*texts, strict=True)], dtype=np.str_)


def _texts(column: pa.ChunkedArray) -> list[str]:
    """Return each value as text; distinct values are converted once, if Arrow can dictionary-encode the type."""
    if pa.types.is_nested(column.type):
        return [value_text(value) for value in column]
    encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    texts = [value_text(value) for value in encoded.dictionary]
    return [texts[code] for code in encoded.indices.to_pylist()]


def _span(groups: Sequence[Series], span: tuple[Instant, Instant] | None) -> tuple[float, float]:
    if span is not None:
        return as_number(span[0]), as_number(span[1])
    all_times = np.concatenate(
        [times for group in groups for times in (group.times, group.true_times)] or [np.empty(0)]
    )
    return (float(all_times.min()), float(all_times.max())) if all_times.size else (0.0, 0.0)
