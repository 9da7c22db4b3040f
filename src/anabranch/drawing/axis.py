"""Ticks at round numbers, and at full minutes, hours and days on an axis of time."""

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
    """Return the values at which an axis has ticks, with their labels.

    Parameters
    ----------
    start, end : float
        The ends of the axis.
    at_most : int
        The maximum number of ticks.
    clock : bool
        The values are seconds since 1970 UTC, not plain numbers.

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
    # A tolerance of half a millionth of a step, so that rounding does not drop a tick at an end.
    first, last = math.ceil(start / step - 5e-7), math.floor(end / step + 5e-7)
    return [(number * step, tick_label(number * step, step, clock)) for number in range(first, last + 1)]


def day(seconds: float) -> str:
    """Return the day of an instant in seconds since 1970, with the time zone of the labels of `ticks`."""
    try:
        return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%d} UTC"
    except OverflowError:
        return "UTC"


def tick_label(value: float, step: float, clock: bool) -> str:
    """Return the label of a tick; of a date and time, only the parts that ticks `step` apart need."""
    if not clock:
        return f"{value:.10g}"
    try:
        instant = EPOCH + timedelta(seconds=value)
    except OverflowError:
        return f"{value:.10g} s"
    if step >= DAY:
        return f"{instant:%Y-%m-%d}"
    return f"{instant:%H:%M}" if step % MINUTE == 0 and step else f"{instant:%H:%M:%S}"


def _step(least: float, clock: bool) -> float:
    """Return the smallest round step that is not below `least`."""
    if clock:
        for step in CLOCK_STEPS:
            if step >= least:
                return float(step)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= least)
