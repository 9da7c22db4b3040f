"""Round numbers and full minutes along an axis of time."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3600, 86400
CLOCK_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 365)),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ticks(start: float, end: float, *, at_most: int, clock: bool) -> list[tuple[float, str]]:
    """Places on an axis, with what to write there.

    Parameters
    ----------
    start, end : float
        The ends of the axis.
    at_most : int
        How many places there is room for.
    clock : bool
        The numbers are seconds since 1970 UTC, not plain numbers.

    Examples
    --------
    >>> ticks(0, 100, at_most=3, clock=False)
    [(0.0, '0'), (50.0, '50'), (100.0, '100')]
    >>> [label for _, label in ticks(32400, 39600, at_most=5, clock=True)]
    ['09:00', '09:30', '10:00', '10:30', '11:00']
    """
    if not end > start:
        return [(start, tick_label(start, 0.0, clock))]
    step = _step((end - start) / max(at_most - 1, 1), clock)
    # Half a millionth of a step of grace, so that an end which is a tick is not lost to rounding.
    first, last = math.ceil(start / step - 5e-7), math.floor(end / step + 5e-7)
    return [(number * step, tick_label(number * step, step, clock)) for number in range(first, last + 1)]


def day(seconds: float) -> str:
    """The day of an instant in seconds since 1970, with the zone in which `ticks` tells the time."""
    try:
        return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%d} UTC"
    except OverflowError:
        return "UTC"


def _step(least: float, clock: bool) -> float:
    """The smallest round step that is not below `least`."""
    if clock:
        for step in CLOCK_STEPS:
            if step >= least:
                return float(step)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= least)


def tick_label(value: float, step: float, clock: bool) -> str:
    """What to write at a place on an axis whose ticks are so far apart: no more of a date or time than they need."""
    if not clock:
        return f"{value:.10g}"
    try:
        moment = EPOCH + timedelta(seconds=value)
    except OverflowError:
        return f"{value:.10g} s"
    if step >= DAY:
        return f"{moment:%Y-%m-%d}"
    return f"{moment:%H:%M}" if step % MINUTE == 0 and step else f"{moment:%H:%M:%S}"
