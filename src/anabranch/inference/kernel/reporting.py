"""Which measurements a sensor reports, and with what rate: a threshold, a heartbeat, and a filter for the rate.

A sensor that has reported a value and a rate is silent while what it measures stays within an error of that line, and
reports anew where it does not (a correction), or where a period has passed since (a heartbeat).

**The filter.** Each value column has a Kalman filter of its own: position and velocity, pushed by white noise, measured
with an error. Of the velocity nothing is known at first. That is no large variance but an infinite one: the second
measurement gives the velocity d / dt exactly, with the limits of the variances, and the third is the first to be
weighed. What a filter believes of a column is five numbers: how far the position is from what was measured last, the
velocity, the variance of the position, the covariance of both, and the variance of the velocity.

Only differences of times and of values are worked with: an instant in seconds since 1970 would leave few digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from anabranch.arrays import F64, I8, I32, Bools
from anabranch.compiled import compiled

# What becomes of a measurement.
SILENT, FIRST, CORRECTION, HEARTBEAT, DUPLICATE = np.int8(0), np.int8(1), np.int8(2), np.int8(3), np.int8(4)

#: What a filter believes of a column, in this order.
OFFSET, VELOCITY, POSITION_VARIANCE, COVARIANCE, VELOCITY_VARIANCE = range(5)
BELIEFS = 5


class Policy(NamedTuple):
    """When to report, and how to find a rate.

    `errors` is one number a value column. `period` is in the unit of rates, and that unit is `units` of the times:
    a million where times are microseconds and rates are per second. `rounding` is by what part of a time, or of the
    period, a difference of times may be off: 0 for whole numbers. `kalman` tells the filter from the difference of the
    last two measurements; the filter takes the variance of a measurement and that of what the velocity changes by in a
    unit of time, for each column.
    """

    errors: F64
    period: float
    units: float
    rounding: float
    kalman: bool
    noise: F64
    drift: F64


class Memory(NamedTuple):
    """What is remembered of each key: `measured` last and `reported` last, and when; changed in place.

    `known` says whether there was any measurement. Times are all int64 or all float64. The rest is (keys, columns), and
    (keys, columns, BELIEFS) for what the filters believe.
    """

    known: Bools
    measured_at: Any
    reported_at: Any
    measured: F64
    reported: F64
    rates: F64
    beliefs: F64


@compiled
def _elapsed(later: Any, earlier: Any, units: float) -> float:
    """From one time to a later one, in the unit of rates."""
    roughly = float(later) - float(earlier)
    # The difference of two 64-bit integers is exact, but for one that has no room in another.
    return (roughly if roughly > 2.0**62 else float(later - earlier)) / units


@compiled
def _begin(beliefs: F64, noise: float) -> None:
    """Believe what was measured last, and nothing of the velocity."""
    beliefs[OFFSET] = 0.0
    beliefs[VELOCITY] = 0.0
    beliefs[POSITION_VARIANCE] = noise
    beliefs[COVARIANCE] = 0.0
    beliefs[VELOCITY_VARIANCE] = math.inf


@compiled
def _begin_to_move(beliefs: F64, moved: float, dt: float, noise: float, drift: float) -> None:
    """Take the velocity from two measurements alone: what `_weigh` comes to as its variance goes to infinity."""
    beliefs[OFFSET] = 0.0
    beliefs[VELOCITY] = moved / dt
    beliefs[POSITION_VARIANCE] = noise
    beliefs[COVARIANCE] = noise / dt
    beliefs[VELOCITY_VARIANCE] = 2 * noise / dt / dt + drift * dt / 3


@compiled
def _weigh(beliefs: F64, moved: float, dt: float, noise: float, drift: float) -> None:
    """Let a filter see a measurement that is `moved` from the one before, `dt` later."""
    speed, spread = beliefs[VELOCITY], beliefs[VELOCITY_VARIANCE]
    ahead = beliefs[OFFSET] + speed * dt
    # No term is negative, and none becomes so: something is taken away in the very last line alone.
    position = beliefs[POSITION_VARIANCE] + 2 * dt * beliefs[COVARIANCE] + dt * dt * spread + drift * dt**3 / 3
    covariance = beliefs[COVARIANCE] + dt * spread + drift * dt * dt / 2
    spread += drift * dt
    total = position + noise
    if total == 0.0 or spread == math.inf:
        # The velocity is not known, or the filter was certain of it and can learn nothing more.
        _begin_to_move(beliefs, moved, dt, noise, drift)
        return
    surprise = moved - ahead
    beliefs[OFFSET] = -surprise * noise / total
    beliefs[VELOCITY] = speed + surprise * covariance / total
    beliefs[POSITION_VARIANCE] = position * noise / total
    beliefs[COVARIANCE] = covariance * noise / total
    beliefs[VELOCITY_VARIANCE] = max(spread - covariance * covariance / total, 0.0)


@compiled
def _follow(memory: Memory, policy: Policy, k: int, values: F64, dt: float) -> None:
    """Let the filters of a key see what was measured; where `dt` is infinite there was nothing before."""
    for c in range(len(values)):
        beliefs = memory.beliefs[k, c]
        if dt == math.inf:
            _begin(beliefs, policy.noise[c])
            continue
        _weigh(beliefs, values[c] - memory.measured[k, c], dt, policy.noise[c], policy.drift[c])
        # Two measurements can be so close in time that a velocity is too large for a double.
        if not (math.isfinite(beliefs[OFFSET]) and math.isfinite(beliefs[VELOCITY])):
            _begin(beliefs, policy.noise[c])


@compiled
def _is_off(memory: Memory, policy: Policy, k: int, values: F64, since: float) -> bool:
    """Whether what is measured is further from the reported line than its error, in any column."""
    for c in range(len(values)):
        moved = values[c] - memory.reported[k, c]
        if not abs(moved - memory.rates[k, c] * since) <= policy.errors[c]:
            return True
    return False


@compiled
def _judge(memory: Memory, policy: Policy, k: int, t: Any, values: F64) -> tuple[np.int8, float]:
    """What becomes of a measurement, and the time since the one before; infinite where that is of no use."""
    if not memory.known[k]:
        return FIRST, math.inf
    if t <= memory.measured_at[k]:
        return DUPLICATE, 0.0
    dt = _elapsed(t, memory.measured_at[k], policy.units)
    since = _elapsed(t, memory.reported_at[k], policy.units)
    slack = policy.rounding * max(abs(t) / policy.units, policy.period)
    verdict = SILENT
    if _is_off(memory, policy, k, values, since):
        verdict = CORRECTION
    elif since >= policy.period - slack:
        verdict = HEARTBEAT
    # Nobody knows what happened in a silence longer than the period.
    return verdict, math.inf if dt > policy.period + slack else dt


@compiled
def _rate(memory: Memory, policy: Policy, k: int, c: int, value: float, dt: float) -> float:
    """How fast a column changes now, by the filter or by the last two measurements."""
    if policy.kalman:
        return memory.beliefs[k, c, VELOCITY]
    rate = (value - memory.measured[k, c]) / dt
    return rate if dt != math.inf and math.isfinite(rate) else 0.0


@compiled
def report_rows(key: I32, t: Any, values: F64, policy: Policy, memory: Memory) -> tuple[I8, F64]:
    """What becomes of each measurement, and the rates of those that are reported.

    Parameters
    ----------
    key : (n,) int32, in ascending order; each has a place in `memory`
    t : (n,) int64 or float64, in ascending order within a key, and never before what the memory has of it. Of several
        measurements of a key and time the first counts
    values : (n, m), finite
    policy : when to report
    memory : is changed in place. Calls with consecutive rows give what one call with all of them would

    Returns
    -------
    verdicts : (n,) int8
        SILENT, FIRST, CORRECTION, HEARTBEAT or DUPLICATE; of a report that is both, CORRECTION.
    rates : (reports, m)
        Of those that are FIRST, CORRECTION or HEARTBEAT, in their order.
    """
    n, m = values.shape
    verdicts, rates, reports = np.empty(n, np.int8), np.empty((n, m)), 0
    for i in range(n):
        k = key[i]
        verdicts[i], dt = _judge(memory, policy, k, t[i], values[i])
        if verdicts[i] == DUPLICATE:
            continue
        if policy.kalman:
            _follow(memory, policy, k, values[i], dt)
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
