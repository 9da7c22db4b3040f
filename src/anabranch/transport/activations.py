"""Activations: readings with a duration, of a sensor that stays on, as one reading for each time step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.columns.times import TimeKind, decode_times, encode_times, step_times, steps_of

#: A longer activation is taken as an error of its times.
MOST_STEPS = 1_000_000
TOO_LONG = f"it lasts for more than {MOST_STEPS:,} steps"


def spans(start: I64, end: I64, step: float, kind: TimeKind) -> tuple[I64, I64]:
    """The first step of each activation, and the number of its steps.

    An activation covers [start, end), but at least the step of its start.

    >>> spans(np.array([3, 9, 10]), np.array([20, 9, 21]), 10, TimeKind.INTEGER)
    (array([0, 0, 1]), array([2, 1, 2]))
    """
    first, last = steps_of(start, step, kind), steps_of(end, step, kind)
    # The end is exclusive: a step that begins at it is not covered.
    last -= step_times(last, step, kind) >= end
    return first, np.maximum(last - first, 0) + 1


def readings_of(table: pa.Table, start: str, end: str, step: float, kind: TimeKind) -> tuple[pa.Table, pa.Table]:
    """The rows of activations as rows of readings, and the activations that are too long.

    The time of a reading is the start of the activation in its first step, and the start of the step in the others; it
    is in the column `end`.
    """
    since = encode_times(table[start], kind)
    first, count = spans(since, encode_times(table[end], kind), step, kind)
    fits = count <= MOST_STEPS
    rejected = table.filter(pa.array(~fits))
    table, since, first, count = table.filter(pa.array(fits)), since[fits], first[fits], count[fits]
    row = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    times = np.where(offset == 0, since[row], step_times(first[row] + offset, step, kind))
    readings = table.take(pa.array(row))
    index = table.schema.get_field_index(end)
    return readings.set_column(index, end, decode_times(times, kind).cast(table.schema.field(index).type)), rejected
