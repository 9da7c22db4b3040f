"""The oracle of sensor reports: one measurement after the other, in fractions.

Interpretation of the definitions
---------------------------------
- If several measurements have the same key and time, the first one counts; the others are duplicates.
- The first measurement of a key is reported. A later one is reported if it is further than the error from the line of
  the last report in any column, or if the time since the last report is the period or more.
- It is also reported if the next measurement would come too late: if the time since the last report and the longest of
  the last four intervals between measurements are together longer than the period. Intervals longer than the period do
  not count.
- LINEAR: the rate is the difference to the previous measurement, divided by the time between them. KALMAN: the velocity
  of a filter that gets every measurement, column by column.
- If there is no previous measurement, or it is longer ago than the period, the rate is 0 and the filter is reset.
- The filter is the textbook filter: F, Q, H and R, predict and update. The first velocity is 0, with a variance so
  large that it has no effect in a double.
- Accelerations of standard deviation a that last for a third of the period are white noise of power a^2 period / 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tests.untraced import untraced

UNKNOWN = Fraction(10) ** 60


@dataclass(frozen=True)
class Measurement:
    """A measurement of a key."""

    key: int
    time: Fraction
    values: tuple[Fraction, ...]


@dataclass(frozen=True)
class Report:
    """A reported measurement, its index in the input, and its rates."""

    row: int
    measured: Measurement
    rates: tuple[Fraction, ...]

    def off(self, other: Measurement, column: int) -> Fraction:
        """How far a later measurement is from the line of this report."""
        line = self.measured.values[column] + self.rates[column] * (other.time - self.measured.time)
        return abs(other.values[column] - line)


class Filter:
    """A Kalman filter of one column."""

    def __init__(self, value: Fraction, noise: Fraction, power: Fraction) -> None:
        self.noise, self.power = noise, power
        self.state = np.array([[value], [Fraction(0)]], object)
        self.covariance = np.array([[noise**2, Fraction(0)], [Fraction(0), UNKNOWN]], object)

    def update(self, value: Fraction, dt: Fraction) -> None:
        f = np.array([[1, dt], [0, 1]], object)
        q = self.power * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], object)
        h = np.array([[1, 0]], object)
        state, covariance = f @ self.state, f @ self.covariance @ f.T + q
        gain = covariance @ h.T / (h @ covariance @ h.T + self.noise**2)[0, 0]
        self.state = state + gain * (value - (h @ state)[0, 0])
        self.covariance = (np.eye(2, dtype=int) - gain @ h) @ covariance

    @property
    def velocity(self) -> Fraction:
        velocity: Fraction = self.state[1, 0]
        return velocity


@untraced
def reports(
    measurements: Sequence[Measurement],
    errors: Sequence[Fraction],
    period: Fraction,
    method: str,
    acceleration: Fraction,
    noise: Fraction,
) -> tuple[list[Report], int]:
    """The reports of all keys, sorted by key and time, and the number of duplicates."""
    all_reports: list[Report] = []
    duplicates = 0
    for key in sorted({measurement.key for measurement in measurements}):
        of_key = [(row, measurement) for row, measurement in enumerate(measurements) if measurement.key == key]
        of_key.sort(key=lambda numbered: numbered[1].time)
        distinct = [pair for i, pair in enumerate(of_key) if i == 0 or of_key[i - 1][1].time != pair[1].time]
        duplicates += len(of_key) - len(distinct)
        all_reports += _reports_of_key(distinct, errors, period, method, acceleration**2 * period / 3, noise)
    return all_reports, duplicates


def _reports_of_key(
    measurements: Sequence[tuple[int, Measurement]], errors: Sequence[Fraction], period: Fraction, method: str,
    power: Fraction, noise: Fraction,
) -> list[Report]:  # fmt: skip
    reported: list[Report] = []
    filters: list[Filter] = []
    before: Any = None
    intervals: list[Fraction] = []
    for row, now in measurements:
        in_time = before is not None and now.time - before.time <= period
        if not in_time:
            filters = [Filter(value, noise, power) for value in now.values]
            rates = tuple(Fraction(0) for _ in now.values)
        else:
            dt = now.time - before.time
            intervals.append(dt)
            rates = tuple((value - old) / dt for value, old in zip(now.values, before.values, strict=True))
            if method == "KALMAN":
                for column, kalman in enumerate(filters):
                    kalman.update(now.values[column], dt)
                rates = tuple(kalman.velocity for kalman in filters)
        if (
            not reported
            or any(reported[-1].off(now, column) > error for column, error in enumerate(errors))
            or now.time - reported[-1].measured.time >= period
            or (in_time and now.time - reported[-1].measured.time + max(intervals[-4:]) > period)
        ):
            reported.append(Report(row, now, rates))
        before = now
    return reported
