"""Sensors that report rarely: measurements in, reports out, for every key of a bucket.

A sensor that has reported a value and a rate of change is silent while its measurements stay within an error of that
line. It reports again when a value is further off (a correction), and when a period has passed since its last report (a
heartbeat), so that silence is informative. This is the update policy of Ilarri et al., "A Query Processor for
Prediction-Based Monitoring of Data Streams", section 2. In addition, a heartbeat is early if the next measurement
would come after the period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import F64, I8, I64, ROUNDING, Numbers
from anabranch.columns.globe import Projection
from anabranch.columns.times import TimeKind, order_doubles, restore_doubles
from anabranch.inference.kernel.reporting import (
    BELIEFS,
    CORRECTION,
    DUPLICATE,
    FIRST,
    HEARTBEAT,
    INTERVALS,
    SILENT,
    Memory,
    Policy,
    report_rows,
)

__all__ = ["CORRECTION", "FIRST", "HEARTBEAT", "METHODS", "Reporting", "Reports", "Sensors"]

METHODS = ("LINEAR", "KALMAN")

#: The arrays of the memory that have several numbers per key.
_TABLES = ("intervals", "measured", "reported", "rates", "beliefs")


@dataclass(frozen=True, slots=True)
class Reporting:
    """How sensors report: thresholds, heartbeat, and how a rate is estimated.

    The first measurement of a key is reported with rate 0, and so is one after a silence longer than the period.

    Attributes
    ----------
    errors : tuple of float
        For each value column, how far a value may be from the reported line before it is reported again; 0 or more.
    period : float
        The time after which a sensor reports in any case, in seconds if the time is a TIMESTAMP, else in the unit of
        the time column. Rates are per the same unit.
    method : str
        LINEAR computes the rate from a measurement and the one before it. KALMAN uses the velocity of a Kalman filter
        that gets every measurement, reported or not: better for noisy measurements.
    acceleration : float or None
        KALMAN: the standard deviation of the expected accelerations, each of which lasts for a third of the period.
        None is the acceleration that exceeds the error within that time, from a straight line:
        2 error / (period / 3)^2.
    noise : float or None
        KALMAN: the standard deviation of a measurement; None is a tenth of the error. If both it and the acceleration
        are 0, KALMAN is LINEAR.
    projection : Projection or None
        How two of the value columns become metres, if they are degrees.

    Examples
    --------
    >>> Reporting(errors=(25.0, 25.0), period=30.0, method="KALMAN").accelerations()
    array([0.5, 0.5])
    """

    errors: tuple[float, ...]
    period: float
    method: str = "LINEAR"
    acceleration: float | None = None
    noise: float | None = None
    projection: Projection | None = None

    def __post_init__(self) -> None:
        deviations = [number for number in (self.acceleration, self.noise) if number is not None]
        if not all(math.isfinite(number) and number >= 0 for number in (*self.errors, *deviations)):
            raise ValueError("errors, acceleration and noise must be finite and at least 0")
        if not (math.isfinite(self.period) and self.period > 0):
            raise ValueError(f"the period is {self.period}; it must be finite and above 0")
        if not self.errors:
            raise ValueError("there are no errors; give one per value column")
        if self.method not in METHODS:
            raise ValueError(f"there is no method {self.method}; the methods are {', '.join(METHODS)}")

    def identity(self) -> dict[str, object]:
        """The parameters of the policy, which identify the state of its sensors."""
        return {
            "errors": list(self.errors),
            "period": self.period,
            "method": self.method,
            "acceleration": self.acceleration,
            "noise": self.noise,
            # Not a parameter, but the state has this many intervals.
            "intervals": INTERVALS,
            **({} if self.projection is None else {"projection": self.projection.identity()}),
        }

    def open(self, kind: TimeKind) -> Sensors:
        """The sensors of one bucket."""
        return Sensors(self, kind)

    def accelerations(self) -> F64:
        """The standard deviation of the accelerations of each column."""
        if self.acceleration is not None:
            return np.full(len(self.errors), self.acceleration, np.float64)
        return np.array([2 * error / (self.period / 3) ** 2 for error in self.errors], np.float64)

    def noises(self) -> F64:
        """The standard deviation of the measurements of each column."""
        return np.array([error / 10 if self.noise is None else self.noise for error in self.errors], np.float64)

    def policy(self, kind: TimeKind) -> Policy:
        """The policy for the kernel, for times of one kind."""
        return Policy(
            errors=np.array(self.errors, np.float64),
            period=float(self.period),
            units=1e6 if kind is TimeKind.TIMESTAMP else 1.0,
            # 0.7 - 0.4 is below 0.3, but with a period of 0.3 a heartbeat is due.
            rounding=ROUNDING if kind is TimeKind.DOUBLE else 0.0,
            kalman=self.method == "KALMAN",
            noise=self.noises() ** 2,
            # Consecutive accelerations of a third of the period each are approximately white noise of this power.
            # Unlike a power that depends on the acceleration only, it is the same in every unit of time.
            drift=self.accelerations() ** 2 * self.period / 3,
        )


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports about some measurements.

    Attributes
    ----------
    row : (k,) int64
        The indexes of the reported measurements, sorted by key and time. A report has the measured values.
    values, rates : (k, m) float64
        Each reported value and its rate of change; in metres, if there is a projection.
    cause : (k,) int8
        FIRST, CORRECTION or HEARTBEAT.
    duplicates : int
        How many measurements had the key and the time of an earlier one, and were ignored.
    """

    row: I64
    values: F64
    rates: F64
    cause: I8
    duplicates: int


class Sensors:
    """The sensors of one bucket, one per key, with their state.

    Parameters
    ----------
    reporting : Reporting
        When they report.
    kind : TimeKind
        The kind of the time codes.

    Examples
    --------
    A car drives at 10 m/s, then turns round:

    >>> sensors = Sensors(Reporting(errors=(25.0,), period=30.0), TimeKind.INTEGER)
    >>> x = np.array([[0.0], [30.0], [60.0], [90.0], [60.0], [30.0]])
    >>> reports = sensors.report(np.zeros(6, np.int32), np.arange(0, 18, 3), x)
    >>> reports.row
    array([0, 1, 4])
    >>> reports.rates.ravel()
    array([  0.,  10., -10.])
    """

    def __init__(self, reporting: Reporting, kind: TimeKind) -> None:
        self._kind = kind
        self._policy = reporting.policy(kind)
        self._projection = reporting.projection
        self._memory = _empty_memory(0, len(reporting.errors), kind)

    def report(self, key: npt.NDArray[np.integer], t: I64, values: F64, correcting: bool = True) -> Reports:
        """Take measurements, and decide which of them are reported.

        Parameters
        ----------
        key : (n,) int
            Codes from 0, dense; every call may have new ones.
        t : (n,) int64
            Codes of times, in any order within a call, but for each key never before those of an earlier call.
        values : (n, m) float64
            Finite. If several measurements have the same key and time, the first one counts.
        correcting : bool
            Whether values that are off are reported; if not, there are only heartbeats.
        """
        policy = self._policy if correcting else self._policy._replace(errors=np.full(values.shape[1], np.inf))
        self._grow(int(key.max(initial=-1)) + 1)
        order = np.lexsort((t, key))
        measured = values if self._projection is None else self._projection.project(values)
        verdicts, rates = report_rows(
            np.ascontiguousarray(key[order], np.int32),
            self._times(t[order]),
            np.ascontiguousarray(measured[order], np.float64),
            policy,
            self._memory,
        )
        reported = (verdicts != SILENT) & (verdicts != DUPLICATE)
        row, duplicates = order[reported], int(np.count_nonzero(verdicts == DUPLICATE))
        return Reports(row, measured[row], rates, verdicts[reported], duplicates)

    def _times(self, codes: I64) -> Numbers:
        """Times whose differences are durations: those of the codes of doubles are not."""
        times = restore_doubles(codes) if self._kind is TimeKind.DOUBLE else codes.astype(np.int64, copy=False)
        return np.ascontiguousarray(times)

    def _grow(self, n_keys: int) -> None:
        """Extend the memory to this number of keys."""
        n_known, m = self._memory.rates.shape
        if n_keys > n_known:
            new = _empty_memory(n_keys - n_known, m, self._kind)
            self._memory = Memory(*(np.concatenate(pair) for pair in zip(self._memory, new, strict=True)))

    def save(self) -> pa.Table:
        """The state of all sensors, one row per key."""
        memory = self._memory
        saved = {"known": pa.array(memory.known)}
        for name in ("measured_at", "reported_at"):
            times = getattr(memory, name)
            saved[name] = pa.array(order_doubles(times) if self._kind is TimeKind.DOUBLE else times)
        for name in _TABLES:
            array = getattr(memory, name)
            saved[name] = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), math.prod(array.shape[1:]))
        return pa.table(saved)

    def load(self, saved: pa.Table) -> None:
        """Restore what `save` returned."""
        memory = _empty_memory(saved.num_rows, self._memory.rates.shape[1], self._kind)
        memory.known[:] = saved["known"].to_numpy()
        for name in ("measured_at", "reported_at"):
            getattr(memory, name)[:] = self._times(saved[name].to_numpy())
        for name in _TABLES:
            array = getattr(memory, name)
            array[:] = saved[name].combine_chunks().flatten().to_numpy().reshape(array.shape)
        self._memory = memory


def _empty_memory(keys: int, columns: int, kind: TimeKind) -> Memory:
    """The memory of keys without measurements."""
    time_type = np.float64 if kind is TimeKind.DOUBLE else np.int64
    return Memory(
        known=np.zeros(keys, np.bool_),
        measured_at=np.zeros(keys, time_type),
        reported_at=np.zeros(keys, time_type),
        intervals=np.zeros((keys, INTERVALS)),
        measured=np.zeros((keys, columns)),
        reported=np.zeros((keys, columns)),
        rates=np.zeros((keys, columns)),
        beliefs=np.zeros((keys, columns, BELIEFS)),
    )
