"""Learns the ERROR of predictions from the residuals of dead reckoning.

Some rows of a recorded history are taken as reports, the others are withheld. A *residual* is the difference between a
withheld value and the line of the last report of its key. The error of the predictions is a quantile of their absolute
values, and their distribution within the error is uniform or normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf

from anabranch.arrays import F64, I32, I64, Bools
from anabranch.columns.times import TimeKind, restore_doubles
from anabranch.inference.reporting import Reporting

#: A normal law with a larger deviation, as a multiple of the error, is uniform in all but name.
WIDEST = 10.0


@dataclass(frozen=True, slots=True)
class Residuals:
    """The residuals of withheld rows, (n, m), with the key of each, and its age as a part of the period."""

    values: F64
    key: I32
    age: F64


def residuals_of_positions(
    key: I32, t: I64, values: F64, reporting: Reporting, kind: TimeKind, correcting: bool = False
) -> Residuals:
    """The residuals of positions, if sensors report by this policy.

    The first report of a key, and one after a silence, has rate 0: predictions from it are left out.

    Parameters
    ----------
    key, t, values : arrays
        As for `Sensors.report`.
    correcting : bool
        Whether the sensors report when they are off by more than their error, or only when the period has passed.
    """
    reports = reporting.open(kind).report(key, t, values, correcting)
    projected = values if reporting.projection is None else reporting.projection.project(values)
    order = np.lexsort((t, key))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    at, sorted_key, times = position[reports.row], key[order], _seconds(t[order], kind)
    before = np.maximum(at - 1, 0)
    has_rate = (sorted_key[before] == sorted_key[at]) & (at > 0) & (times[at] - times[before] <= reporting.period)
    motion = reports.rates, np.zeros_like(reports.rates)
    return _residuals(sorted_key, times, projected[order], at, motion, has_rate, reporting.period)


def residuals_of_predictions(
    key: I32, t: I64, values: F64, rates: F64, accelerations: F64, period: float, kind: TimeKind
) -> Residuals:
    """The residuals of reports, if all are withheld that come while an earlier one applies."""
    order = np.lexsort((t, key))
    sorted_key, times = key[order], _seconds(t[order], kind)
    at: list[int] = []
    for i in range(len(order)):
        if not at or sorted_key[at[-1]] != sorted_key[i] or times[i] - times[at[-1]] >= period:
            at.append(i)
    chosen = np.array(at, np.int64)
    every = np.ones(len(chosen), np.bool_)
    motion = rates[order][chosen], accelerations[order][chosen]
    return _residuals(sorted_key, times, values[order], chosen, motion, every, period)


def _seconds(codes: I64, kind: TimeKind) -> F64:
    """Times in the unit of rates, from the first one on: differences keep their digits."""
    if kind is TimeKind.DOUBLE:
        return restore_doubles(codes)
    return (codes - codes.min(initial=0)) / (1e6 if kind is TimeKind.TIMESTAMP else 1.0)


def _residuals(
    key: I32, t: F64, values: F64, at: I64, motion: tuple[F64, F64], usable: Bools, period: float
) -> Residuals:
    """The residuals of rows, sorted by key and time, against the last of the reports at the rows `at`.

    `motion` has the rates and the accelerations of the reports.
    """
    last = np.searchsorted(at, np.arange(len(key)), side="right") - 1
    report = at[np.maximum(last, 0)]
    since = t - t[report]
    chosen = (last >= 0) & (key == key[report]) & (since > 0) & (since < period) & usable[np.maximum(last, 0)]
    last, report, since = last[chosen], report[chosen], since[chosen]
    rates, accelerations = (part[last] for part in motion)
    elapsed = since[:, np.newaxis]
    off = values[chosen] - values[report] - elapsed * (rates + 0.5 * elapsed * accelerations)
    return Residuals(off, key[chosen], since / period)


@dataclass(frozen=True, slots=True)
class ErrorLaw:
    """The error of a value, and the deviation of its normal law; None if it is uniform.

    `log_likelihood` is the mean over the residuals within the error, `other` is that of the other law.
    """

    error: float
    deviation: float | None
    log_likelihood: float
    other: float

    def density(self, off: F64) -> F64:
        """The density at a distance from the prediction."""
        within = abs(off) <= self.error
        if self.deviation is None:
            return np.where(within, 0.5 / self.error, 0.0)
        return np.where(within, np.exp(_log_normal(off, self.error, self.deviation)), 0.0)

    def clause(self) -> str:
        """The law in the syntax of ERROR."""
        normal = "" if self.deviation is None else f" NORMAL {self.deviation:.4g}"
        return f"{self.error:.4g}{normal}"


def fit_error(residuals: F64, coverage: float = 0.99, error: float | None = None) -> ErrorLaw:
    """The law of some residuals: the error is stated, or it covers this share of them.

    The law is normal if residuals within the error are more likely than under the uniform law by more than half the
    logarithm of their number: the price of its deviation.
    """
    distances = np.sort(abs(residuals))
    if error is None:
        error = float(distances[min(math.ceil(coverage * len(distances)), len(distances)) - 1])
    if error == 0 or not distances.any():
        raise ValueError("all residuals are 0")
    inside = distances[distances <= error]
    uniform = -math.log(2 * error)
    best = minimize_scalar(
        lambda log_deviation: -float(_log_normal(inside, error, math.exp(log_deviation)).mean()),
        bounds=(math.log(error / 1e3), math.log(error * WIDEST)),
        method="bounded",
    )
    normal = -float(best.fun)
    if (normal - uniform) * len(inside) <= 0.5 * math.log(len(inside)):
        return ErrorLaw(error, None, uniform, normal)
    return ErrorLaw(error, math.exp(best.x), normal, uniform)


def _log_normal(off: F64, error: float, deviation: float) -> F64:
    """The log density of a normal distribution that is truncated at the error."""
    inside = erf(error / deviation / math.sqrt(2))
    return -0.5 * (off / deviation) ** 2 - math.log(deviation * math.sqrt(2 * math.pi) * inside)


def covered(residuals: F64, key: I32, coverage: float) -> float:
    """The share of the residuals of some keys within the error of the others: half of the keys each way."""
    number = np.unique(key, return_inverse=True)[1].reshape(-1)
    within = np.zeros(len(key), np.bool_)
    for part in (0, 1):
        held_out = number % 2 == part
        if held_out.all() or not held_out.any():
            return math.nan
        within[held_out] = abs(residuals[held_out]) <= fit_error(residuals[~held_out], coverage).error
    return float(within.mean())


def growth(residuals: Residuals, column: int) -> float:
    """How much larger the typical residual is in the last quarter of the period than in the first."""
    distances = abs(residuals.values[:, column])
    early, late = distances[residuals.age <= 0.25], distances[residuals.age > 0.75]
    if not len(early) or not len(late) or np.median(early) == 0:
        return math.nan
    return float(np.median(late) / np.median(early))
