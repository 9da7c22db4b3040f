"""The runs of a key's rows that satisfy a condition, literally: one row after the other, in order of time."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

#: The start of a segment, and its end or, if that is lost, the times between which it lies (the later may be None).
Run = tuple[int, int | tuple[int, int | None]]


def runs_of(rows: Iterable[tuple[int, bool]], at_least: Fraction | None, silence: Fraction | None) -> list[Run]:
    """The segments of one key, from (time, whether the row satisfies the condition), in any order.

    Several rows of one time satisfy the condition if all of them do.
    """
    times = sorted({t for t, _ in rows})
    found: list[Run] = []
    start = last = None
    for t in times:
        satisfied = all(satisfies for time, satisfies in rows if time == t)
        if start is not None and silence is not None and t - last > silence:
            found.append((start, (last, t)))
            start = None
        if start is not None and not satisfied:
            found.append((start, t))
            start = None
        if start is None and satisfied:
            start = t
        last = t
    if start is not None:
        found.append((start, (last, None)))
    return [run for run in found if at_least is None or _recorded_end(run) - run[0] >= at_least]


def _recorded_end(run: Run) -> int:
    """The end, or the last row of the run if the end is lost."""
    return run[1][0] if isinstance(run[1], tuple) else run[1]
