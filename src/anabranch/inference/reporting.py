"""Sensors that report rarely: what was measured in, predictions out, for every key of a bucket.

A sensor that has reported a value and a rate is silent while what it measures stays within an error of that line. It
reports anew where a value is further off (a correction), and where a period has passed since its last report (a
heartbeat), so that its silence means something. This is the update policy of Ilarri et al., "A Query Processor for
Prediction-Based Monitoring of Data Streams", section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.arrays import F64, I8, I64, Numbers
from anabranch.columns.times import TimeKind, order_doubles, restore_doubles
from anabranch.inference.kernel.reporting import (
    BELIEFS,
    CORRECTION,
    DUPLICATE,
    FIRST,
    HEARTBEAT,
    SILENT,
    Memory,
    Policy,
    report_rows,
)

__all__ = ["CORRECTION", "FIRST", "HEARTBEAT", "METHODS", "Reporting", "Reports", "Sensors"]

METHODS = ("LINEAR", "KALMAN")

# A difference of two doubles is off by a rounding or two: with a heartbeat every 0.3, 0.7 - 0.4 is one.
_ROUNDING = 4 * np.finfo(np.float64).eps


@dataclass(frozen=True, slots=True)
class Reporting:
    """How sensors report: thresholds, heartbeat, and how a rate is estimated.

    A key's first measurement is reported with rate 0, and so is one after a silence longer than the period.

    Attributes
    ----------
    errors : tuple of float
        For each value column, how far from the reported line a value may be before it is reported anew; 0 or more.
    period : float
        A report is made where this has passed since the last. In seconds where the time is a TIMESTAMP, else in the
        unit of the time column. Rates are per the same unit.
    method : str
        LINEAR takes the rate from a measurement and the one before it. KALMAN takes the velocity of a Kalman filter
        that sees every measurement, reported or not: better where measurements are noisy.
    acceleration : float or None
        KALMAN: the spread of the accelerations that are expected, each of which lasts for a third of the period. None
        is the one that leaves the error within that time, starting from a straight line: 2 error / (period / 3)^2.
    noise : float or None
        KALMAN: the standard deviation of a measurement; None is a tenth of the error. Where it is 0 and the
        acceleration too, KALMAN is LINEAR.

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

    def __post_init__(self) -> None:
        spreads = [each for each in (self.acceleration, self.noise) if each is not None]
        if not all(math.isfinite(each) and each >= 0 for each in (*self.errors, *spreads)):
            raise ValueError("errors, acceleration and noise are finite numbers from 0")
        if not (math.isfinite(self.period) and self.period > 0):
            raise ValueError(f"the period is a finite number above 0, not {self.period}")
        if not self.errors:
            raise ValueError("a sensor measures one value at least")
        if self.method not in METHODS:
            raise ValueError(f"there is no method {self.method}; there are: {', '.join(METHODS)}")

    def identity(self) -> dict[str, object]:
        """The parameters of the policy, which identify the state of its sensors."""
        return {
            "errors": list(self.errors),
            "period": self.period,
            "method": self.method,
            "acceleration": self.acceleration,
            "noise": self.noise,
        }

    def open(self, kind: TimeKind) -> Sensors:
        """The sensors of one bucket."""
        return Sensors(self, kind)

    def accelerations(self) -> F64:
        """The spread of the accelerations of each column."""
        given = self.acceleration
        return np.array([2 * e / (self.period / 3) ** 2 if given is None else given for e in self.errors], np.float64)

    def noises(self) -> F64:
        """The standard deviation of the measurements of each column."""
        return np.array([e / 10 if self.noise is None else self.noise for e in self.errors], np.float64)

    def policy(self, kind: TimeKind) -> Policy:
        """The same for the kernel, for times of one kind."""
        return Policy(
            errors=np.array(self.errors, np.float64),
            period=float(self.period),
            units=1e6 if kind is TimeKind.TIMESTAMP else 1.0,
            rounding=float(_ROUNDING) if kind is TimeKind.DOUBLE else 0.0,
            kalman=self.method == "KALMAN",
            noise=self.noises() ** 2,
            # Accelerations that last for a third of the period, one after the other, are about white noise of this
            # power. Unlike one of the acceleration alone it means the same in every unit of time.
            drift=self.accelerations() ** 2 * self.period / 3,
        )


@dataclass(frozen=True, slots=True)
class Reports:
    """What some measurements came to.

    Attributes
    ----------
    row : (k,) int64
        Which measurements are reported, in the order of their keys, then of time. What is reported is what was
        measured.
    rates : (k, m) float64
        What each of them says of how fast its values change.
    cause : (k,) int8
        FIRST, CORRECTION or HEARTBEAT.
    duplicates : int
        How many measurements had the key and the time of an earlier one, and were passed over.
    """

    row: I64
    rates: F64
    cause: I8
    duplicates: int


class Sensors:
    """The sensors of one bucket, a key each: what is remembered of them.

    Parameters
    ----------
    how : Reporting
        When they report.
    kind : TimeKind
        What the codes of times are.

    Examples
    --------
    A car drives at 10 m/s, and turns back:

    >>> sensors = Sensors(Reporting(errors=(25.0,), period=30.0), TimeKind.INTEGER)
    >>> x = np.array([[0.0], [30.0], [60.0], [90.0], [60.0], [30.0]])
    >>> reports = sensors.report(np.zeros(6, np.int32), np.arange(0, 18, 3), x)
    >>> reports.row
    array([0, 1, 4])
    >>> reports.rates.ravel()
    array([  0.,  10., -10.])
    """

    def __init__(self, how: Reporting, kind: TimeKind) -> None:
        self._kind = kind
        self._policy = how.policy(kind)
        self._memory = _empty_memory(0, len(how.errors), kind)

    def report(self, key: npt.NDArray[np.integer], t: I64, values: F64) -> Reports:
        """Take measurements, and say which of them are reported.

        Parameters
        ----------
        key : (n,) int
            Codes from 0, dense; there may be new ones in every call.
        t : (n,) int64
            Codes of times. Within a call in any order, but of a key never before those of an earlier call.
        values : (n, m) float64
            Finite. Of several with the same key and time the first one given counts.
        """
        self._make_room(int(key.max(initial=-1)) + 1)
        order = np.lexsort((t, key))
        verdicts, rates = report_rows(
            np.ascontiguousarray(key[order], np.int32),
            self._times(t[order]),
            np.ascontiguousarray(values[order], np.float64),
            self._policy,
            self._memory,
        )
        made = (verdicts != SILENT) & (verdicts != DUPLICATE)
        return Reports(order[made], rates, verdicts[made], int(np.count_nonzero(verdicts == DUPLICATE)))

    def _times(self, codes: I64) -> Numbers:
        """Times whose differences mean something: the codes of doubles have none."""
        times = restore_doubles(codes) if self._kind is TimeKind.DOUBLE else codes.astype(np.int64, copy=False)
        return np.ascontiguousarray(times)

    def _make_room(self, keys: int) -> None:
        known, m = self._memory.rates.shape
        if keys > known:
            more = _empty_memory(keys - known, m, self._kind)
            self._memory = Memory(*(np.concatenate(pair) for pair in zip(self._memory, more, strict=True)))

    def save(self) -> pa.Table:
        """What is remembered, a key a row."""
        memory = self._memory
        saved = {"known": pa.array(memory.known)}
        for name in ("measured_at", "reported_at"):
            times = getattr(memory, name)
            saved[name] = pa.array(order_doubles(times) if self._kind is TimeKind.DOUBLE else times)
        for name in ("measured", "reported", "rates", "beliefs"):
            of_keys = getattr(memory, name)
            saved[name] = pa.FixedSizeListArray.from_arrays(pa.array(of_keys.ravel()), math.prod(of_keys.shape[1:]))
        return pa.table(saved)

    def load(self, saved: pa.Table) -> None:
        """Take over what `save` gave."""
        memory = _empty_memory(saved.num_rows, self._memory.rates.shape[1], self._kind)
        memory.known[:] = saved["known"].to_numpy()
        for name in ("measured_at", "reported_at"):
            getattr(memory, name)[:] = self._times(saved[name].to_numpy())
        for name in ("measured", "reported", "rates", "beliefs"):
            into = getattr(memory, name)
            into[:] = saved[name].combine_chunks().flatten().to_numpy().reshape(into.shape)
        self._memory = memory


def _empty_memory(keys: int, columns: int, kind: TimeKind) -> Memory:
    """Of keys that were not measured yet."""
    time_type = np.float64 if kind is TimeKind.DOUBLE else np.int64
    return Memory(
        known=np.zeros(keys, np.bool_),
        measured_at=np.zeros(keys, time_type),
        reported_at=np.zeros(keys, time_type),
        measured=np.zeros((keys, columns)),
        reported=np.zeros((keys, columns)),
        rates=np.zeros((keys, columns)),
        beliefs=np.zeros((keys, columns, BELIEFS)),
    )
