"""Which answers and true events are about the same group and close in time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, Bools

WITHIN = 30.0
"""The default tolerance between an answer and an event, as in the experiments of Lahar (section 4.2).

In the unit of the times; seconds for timestamps.
"""


def group_codes(answers: pa.Table, truth: pa.Table, group: str) -> tuple[I64, I64]:
    """Return the groups of answers and of events as numbers; equal groups have equal numbers."""
    names = np.concatenate([np.asarray(table[group].to_pylist(), dtype=object) for table in (answers, truth)])
    numbers: dict[object, int] = {}
    codes = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    return codes[: answers.num_rows], codes[answers.num_rows :]


def have_near(groups: I64, times: F64, other_groups: I64, other_times: F64, within: float) -> Bools:
    """Return which instants have another one of the same group at most `within` away."""
    if not len(other_times) or not len(times):
        return np.zeros(len(times), dtype=np.bool_)
    # All groups on a single line, one after the other, too far apart to be near each other.
    first = min(times.min(), other_times.min())
    span = max(times.max(), other_times.max()) - first + 2 * within + 1
    line = np.sort(other_groups * span + (other_times - first))
    positions = groups * span + (times - first)
    following = np.searchsorted(line, positions - within)
    return (following < len(line)) & (line[np.minimum(following, len(line) - 1)] <= positions + within)
