"""Decides which measurements a sensor reports, and with which rate: thresholds, heartbeats and a filter for the rate.

A sensor that has reported a value and a rate is silent while its measurements stay within an error of that line. It
reports again if they do not (a correction), or if a period has passed since (a heartbeat). If its next measurement
would come after the period, judged by its recent intervals, the heartbeat is early: no prediction then ends before the
next one.

**The filter.** Each value column has a Kalman filter: position and velocity, driven by white noise, measured with an
error. At first the velocity is unknown: its variance is infinite, not only large. The second measurement gives the
velocity d / dt exactly, with the limits of the variances, and the third is the first one that is weighted. The belief
of a filter is five numbers: the distance of the position from the last measurement, the velocity, the variance of the
position, the covariance of both, and the variance of the velocity.

Only differences of times and of values are used: a time in seconds since 1970 would leave few digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from anabranch.arrays import F64, I8, I32, Bools
from anabranch.compiled import compiled

# The verdict on a measurement: not reported, reported for one of three causes, or ignored.
SILENT, FIRST, CORRECTION, HEARTBEAT, DUPLICATE = np.int8(0), np.int8(1), np.int8(2), np.int8(3), np.int8(4)

#: The numbers of a filter's belief about a column, in this order.
OFFSET, VELOCITY, POSITION_VARIANCE, COVARIANCE, VELOCITY_VARIANCE = range(5)
BELIEFS = 5

#: The next interval is judged by the longest of the last few intervals between measurements: this many.
INTERVALS = 4


class Policy(NamedTuple):
    """When to report, and how to compute a rate.

    `errors` has one number per value column. `period` is in the unit of rates, and that unit is `units` of the times:
    a million if times are microseconds and rates are per second. `rounding` is the relative error of a difference of
    times, as a part of a time or of the period: 0 for integers. With `kalman` the rate comes from the filter, else from
    the difference of the last two measurements. `noise` is the variance of a measurement, `drift` the variance of the
    change of the velocity in a unit of time, for each column.
    """

    errors: F64
    period: float
    units: float
    rounding: float
    kalman: bool
    noise: F64
    drift: F64


class Memory(NamedTuple):
    """The state of each key: the last measurement and the last report, with their times; changed in place.

    `known` is whether there was any measurement. Times are all int64 or all float64. `intervals` is (keys, INTERVALS):
    the last intervals between measurements, the oldest first, 0 where there was none. The other arrays are
    (keys, columns), and (keys, columns, BELIEFS) for the beliefs of the filters.
    """

    known: Bools
    measured_at: Any
    reported_at: Any
    intervals: F64
    measured: F64
    reported: F64
    rates: F64
    beliefs: F64


@compiled
def _elapsed(later: Any, earlier: Any, units: float) -> float:
    """The duration from one time to a later one, in the unit of rates."""
    approximate = float(later) - float(earlier)
    # The difference of two 64-bit integers is exact, unless it overflows.
    return (approximate if approximate > 2.0**62 else float(later - earlier)) / units


@compiled
def _reset(beliefs: F64, noise: float) -> None:
    """Start a filter at the last measurement, with an unknown velocity."""
    beliefs[OFFSET] = 0.0
    beliefs[VELOCITY] = 0.0
    beliefs[POSITION_VARIANCE] = noise
    beliefs[COVARIANCE] = 0.0
    beliefs[VELOCITY_VARIANCE] = math.inf


@compiled
def _start_velocity(beliefs: F64, moved: float, dt: float, noise: float, drift: float) -> None:
    """Take the velocity from two measurements: the limit of `_update` as its variance goes to infinity."""
    beliefs[OFFSET] = 0.0
    beliefs[VELOCITY] = moved / dt
    beliefs[POSITION_VARIANCE] = noise
    beliefs[COVARIANCE] = noise / dt
    beliefs[VELOCITY_VARIANCE] = 2 * noise / dt / dt + drift * dt / 3


@compiled
def _update(beliefs: F64, moved: float, dt: float, noise: float, drift: float) -> None:
    """Update a filter by a measurement that differs by `moved` from the one before it, `dt` earlier."""
    velocity, velocity_variance = beliefs[VELOCITY], beliefs[VELOCITY_VARIANCE]
    predicted = beliefs[OFFSET] + velocity * dt
    # No variance or covariance can become negative: only the very last line subtracts.
    position_variance = (
        beliefs[POSITION_VARIANCE] + 2 * dt * beliefs[COVARIANCE] + dt * dt * velocity_variance + drift * dt**3 / 3
    )
    covariance = beliefs[COVARIANCE] + dt * velocity_variance + drift * dt * dt / 2
    velocity_variance += drift * dt
    total = position_variance + noise
    if total == 0.0 or velocity_variance == math.inf:
        # The velocity is unknown, or the filter is certain of it and measurements have no effect.
        _start_velocity(beliefs, moved, dt, noise, drift)
        return
    innovation = moved - predicted
    beliefs[OFFSET] = -innovation * noise / total
    beliefs[VELOCITY] = velocity + innovation * covariance / total
    beliefs[POSITION_VARIANCE] = position_variance * noise / total
    beliefs[COVARIANCE] = covariance * noise / total
    beliefs[VELOCITY_VARIANCE] = max(velocity_variance - covariance * covariance / total, 0.0)


@compiled
def _update_filters(memory: Memory, policy: Policy, k: int, values: F64, dt: float) -> None:
    """Update the filters of a key by a measurement; an infinite `dt` resets them."""
    for c in range(len(values)):
        beliefs = memory.beliefs[k, c]
        if dt == math.inf:
            _reset(beliefs, policy.noise[c])
            continue
        _update(beliefs, values[c] - memory.measured[k, c], dt, policy.noise[c], policy.drift[c])
        # Two measurements can be so close in time that a velocity is too large for a double.
        if not (math.isfinite(beliefs[OFFSET]) and math.isfinite(beliefs[VELOCITY])):
            _reset(beliefs, policy.noise[c])


@compiled
def _is_off(memory: Memory, policy: Policy, k: int, values: F64, since: float) -> bool:
    """Whether a measurement is further from the reported line than its error, in any column."""
    for c in range(len(values)):
        moved = values[c] - memory.reported[k, c]
        if not abs(moved - memory.rates[k, c] * since) <= policy.errors[c]:
            return True
    return False


@compiled
def _longest_interval(memory: Memory, k: int, dt: float) -> float:
    """Remember an interval between measurements; returns the longest of the last ones."""
    longest = dt
    for i in range(1, INTERVALS):
        longest = max(longest, memory.intervals[k, i])
        memory.intervals[k, i - 1] = memory.intervals[k, i]
    memory.intervals[k, INTERVALS - 1] = dt
    return longest


@compiled
def _judge(memory: Memory, policy: Policy, k: int, t: Any, values: F64) -> tuple[np.int8, float]:
    """The verdict on a measurement, and the time since the one before; infinite if there is none within the period."""
    if not memory.known[k]:
        return FIRST, math.inf
    if t <= memory.measured_at[k]:
        return DUPLICATE, 0.0
    dt = _elapsed(t, memory.measured_at[k], policy.units)
    since = _elapsed(t, memory.reported_at[k], policy.units)
    slack = policy.rounding * max(abs(t) / policy.units, policy.period)
    # A measurement before a silence longer than the period is not used, and the silence is no interval. It is also the
    # only case without an interval ahead; otherwise an elapsed period alone is reason enough.
    silence = dt > policy.period + slack
    ahead = 0.0 if silence else _longest_interval(memory, k, dt)
    verdict = SILENT
    if _is_off(memory, policy, k, values, since):
        verdict = CORRECTION
    elif since + ahead > policy.period + slack:
        verdict = HEARTBEAT
    return verdict, math.inf if silence else dt


@compiled
def _rate(memory: Memory, policy: Policy, k: int, c: int, value: float, dt: float) -> float:
    """The current rate of change of a column, by the filter or by the last two measurements."""
    if policy.kalman:
        return memory.beliefs[k, c, VELOCITY]
    rate = (value - memory.measured[k, c]) / dt
    return rate if dt != math.inf and math.isfinite(rate) else 0.0


@compiled
def report_rows(key: I32, t: Any, values: F64, policy: Policy, memory: Memory) -> tuple[I8, F64]:
    """The verdict on each measurement, and the rates of the reported ones.

    Parameters
    ----------
    key : (n,) int32, in ascending order; indexes into `memory`
    t : (n,) int64 or float64, in ascending order within a key, and never before the times in memory. If several
        measurements have the same key and time, the first one counts
    values : (n, m), finite
    policy : when to report
    memory : changed in place. Calls with consecutive rows have the same results as one call with all of them

    Returns
    -------
    verdicts : (n,) int8
        SILENT, FIRST, CORRECTION, HEARTBEAT or DUPLICATE; CORRECTION if a report is also a HEARTBEAT.
    rates : (reports, m)
        The rates of the rows that are FIRST, CORRECTION or HEARTBEAT, in their order.
    """
    n, m = values.shape
    verdicts, rates, reports = np.empty(n, np.int8), np.empty((n, m)), 0
    for i in range(n):
        k = key[i]
        verdicts[i], dt = _judge(memory, policy, k, t[i], values[i])
        if verdicts[i] == DUPLICATE:
            continue
        if policy.kalman:
            _update_filters(memory, policy, k, values[i], dt)
        if verdicts[i] != SILENT:
            for c in range(m):
                memory.rates[k, c] = _rate(memory, policy, k, c, values[i, c], dt)
                memory.reported[k, c] = values[i, c]
                rates[reports, c] = memory.rates[k, c]
            memory.reported_at[k] = t[i]
            reports += 1
        for c in range(m):
            memory.measured[k, c] = values[i, c]
        memory.measured_at[k] = t[i]
        memory.known[k] = True
    return verdicts, rates[:reports].copy()
