"""The truth about what a sensor reports, measurement by measurement, in fractions.

How the definitions are read
----------------------------
- Of several measurements of a key and time the first one given counts; the others are duplicates.
- A key's first measurement is reported. A later one is reported where it is further than the error from the last
  report's line in any column, or where the time since the last report is the period or more.
- LINEAR: the rate is the difference to the measurement before, by the time between them. KALMAN: the velocity of a
  filter that saw every measurement, column by column.
- Where there is no measurement before, or it is longer ago than the period, the rate is 0 and the filter begins anew.
- The filter is the textbook's: F, Q, H and R, predict and update. At first the velocity is 0 with a variance so large
  that nothing of it is left in a double.
- Accelerations of spread a that last for a third of the period are white noise of the power a^2 period / 3.
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
    """What was measured of a key."""

    key: int
    time: Fraction
    values: tuple[Fraction, ...]


@dataclass(frozen=True)
class Report:
    """A measurement that is reported, by its place among those given, and its rates."""

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

    def see(self, value: Fraction, dt: Fraction) -> None:
        f = np.array([[1, dt], [0, 1]], object)
        q = self.power * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], object)
        h = np.array([[1, 0]], object)
        state, covariance = f @ self.state, f @ self.covariance @ f.T + q
        gain = covariance @ h.T / (h @ covariance @ h.T + self.noise**2)[0, 0]
        self.state = state + gain * (value - (h @ state)[0, 0])
        self.covariance = (np.eye(2, dtype=int) - gain @ h) @ covariance

    @property
    def velocity(self) -> Fraction:
        found: Fraction = self.state[1, 0]
        return found


@untraced
def reports(
    measurements: Sequence[Measurement],
    errors: Sequence[Fraction],
    period: Fraction,
    method: str,
    acceleration: Fraction,
    noise: Fraction,
) -> tuple[list[Report], int]:
    """The reports of all keys, by key and time, and the number of duplicates."""
    found: list[Report] = []
    duplicates = 0
    for key in sorted({each.key for each in measurements}):
        own = [(row, each) for row, each in enumerate(measurements) if each.key == key]
        own.sort(key=lambda numbered: numbered[1].time)
        distinct = [pair for i, pair in enumerate(own) if i == 0 or own[i - 1][1].time != pair[1].time]
        duplicates += len(own) - len(distinct)
        found += _of_one_key(distinct, errors, period, method, acceleration**2 * period / 3, noise)
    return found, duplicates


def _of_one_key(
    own: Sequence[tuple[int, Measurement]], errors: Sequence[Fraction], period: Fraction, method: str, power: Fraction,
    noise: Fraction,
) -> list[Report]:  # fmt: skip
    found: list[Report] = []
    filters: list[Filter] = []
    before: Any = None
    for row, now in own:
        if before is None or now.time - before.time > period:
            filters = [Filter(value, noise, power) for value in now.values]
            rates = tuple(Fraction(0) for _ in now.values)
        else:
            dt = now.time - before.time
            rates = tuple((value - old) / dt for value, old in zip(now.values, before.values, strict=True))
            if method == "KALMAN":
                for column, each in enumerate(filters):
                    each.see(now.values[column], dt)
                rates = tuple(each.velocity for each in filters)
        if (
            not found
            or any(found[-1].off(now, column) > error for column, error in enumerate(errors))
            or now.time - found[-1].measured.time >= period
        ):
            found.append(Report(row, now, rates))
        before = now
    return found
