"""A verdict for each true event and each false alarm: found, missed or false."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.evaluation.matching import WITHIN
from anabranch.evaluation.series import Series, timeline

FOUND, MISSED, FALSE = "found", "missed", "false"


def verdicts(
    answers: pa.Table,
    truth: pa.Table,
    *,
    at_least: float = 0.5,
    within: float = WITHIN,
    by: Sequence[str] | None = None,
) -> pa.Table:
    """Compare answers with the events that really happened.

    An event is found if an answer of its group reaches `at_least` within `within` of it; otherwise it is missed. Its
    probability is the highest of the answers that are nearer to it than to any other event, NULL if there are none.
    Answers that reach `at_least` and are near no event are false; those close together count once.

    Parameters
    ----------
    answers : pa.Table
        With `t`, `probability` and the grouping columns.
    truth : pa.Table
        The true events: `t` and the grouping columns, with the same names.
    at_least : float
        The lowest probability at which an answer counts.
    within : float
        The tolerance in time, in the unit of `t`; seconds for timestamps.
    by : sequence of str, optional
        The grouping columns; by default all that are not about time and probability.

    Returns
    -------
    pa.Table
        `group`, `t`, `verdict` ('found', 'missed' or 'false') and `probability`, sorted by group and time.
    """
    time = timeline(answers, by=by, truth=truth)
    rows = [
        {"group": group.label, "t": t, "verdict": verdict, "probability": probability}
        for group in time.groups
        for t, verdict, probability in sorted(_group_verdicts(group, at_least, within), key=lambda event: event[:2])
    ]
    columns = {name: [row[name] for row in rows] for name in ("group", "t", "verdict", "probability")}
    if time.clock:
        micros = np.round(np.array(columns["t"], dtype=np.float64) * 1e6).astype(np.int64)
        columns["t"] = pa.array(micros).cast(pa.timestamp("us", answers.schema.field("t").type.tz))
    types = {"group": pa.string(), "verdict": pa.string(), "probability": pa.float64()}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def _group_verdicts(group: Series, at_least: float, within: float) -> Iterator[tuple[float, str, float | None]]:
    """Yield (time, verdict, probability) of each event of one group, then of each false alarm."""
    nearest = _nearest(group.times, group.true_times, within)
    for event, t in enumerate(group.true_times):
        near = group.probabilities[nearest == event]
        highest = float(near.max()) if near.size else None
        yield float(t), MISSED if highest is None or highest < at_least else FOUND, highest
    false = (nearest < 0) & (group.probabilities >= at_least)
    times, probabilities = group.times[false], group.probabilities[false]
    if times.size:
        for part in np.split(np.arange(times.size), np.flatnonzero(np.diff(times) > within) + 1):
            peak = int(part[np.argmax(probabilities[part])])
            yield float(times[peak]), FALSE, float(probabilities[peak])


def _nearest(times: F64, events: F64, within: float) -> I64:
    """Return the index of the event nearest to each answer, -1 if none is within reach; events are sorted."""
    if not events.size:
        return np.full(times.size, -1)
    before = np.clip(np.searchsorted(events, times), 1, events.size) - 1
    following = np.minimum(before + 1, events.size - 1)
    nearest = np.where(abs(events[following] - times) < abs(times - events[before]), following, before)
    return np.where(abs(events[nearest] - times) <= within, nearest, -1)
