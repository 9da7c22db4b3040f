"""The workloads of the MONITOR benchmark: simulated vehicles, their reports, and the query over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64
from anabranch.monitor.job import MonitorJob
from anabranch.simulate.vehicles import NEAR, Options, Reports, reports, trajectories
from benchmarks.engines import make_job

_STREAM = """
    CREATE STREAM cars
      KEY (car INTEGER) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE
      MODEL PREDICTED ERROR {error} PERIOD {period};
    """

_QUERY = """
    CREATE QUERY near AS
      MONITOR a, b FROM cars AS a, cars AS b
      WHERE ABS(a.x - b.x) <= {near} AND ABS(a.y - b.y) <= {near} AND a.car < b.car {conditions}
      WITHIN {within} SEMANTICS {semantics} {clauses};
    """


def make_monitor_job(
    vehicles: Options,
    within: float = 3.0,
    clauses: str = "",
    at_most: float | None = None,
    semantics: str = "EXPECTED",
) -> MonitorJob:
    """Return the job of the live query.

    Parameters
    ----------
    clauses : further clauses such as BUFFER
    at_most : a value constraint, in metres from the west: only vehicles there are of interest
    """
    conditions = "" if at_most is None else f"AND a.x <= {at_most} AND b.x <= {at_most}"
    query = _QUERY.format(near=NEAR, within=within, clauses=clauses, conditions=conditions, semantics=semantics)
    return make_job(_stream(vehicles) + query, "near", live=True)


def make_chain_job(vehicles: Options, names: str, within: float) -> MonitorJob:
    """Return the job of a live query whose names are a chain: each vehicle is near the next one."""
    pairs = list(pairwise(names))
    near = [f"ABS({one}.{axis} - {other}.{axis}) <= {NEAR}" for one, other in pairs for axis in "xy"]
    conditions = " AND ".join([*near, *(f"{one}.car < {other}.car" for one, other in pairs)])
    sources = ", ".join(f"cars AS {name}" for name in names)
    query = f"CREATE QUERY near AS MONITOR {', '.join(names)} FROM {sources} WHERE {conditions} WITHIN {within};"
    return make_job(_stream(vehicles) + query, "near", live=True)


def _stream(vehicles: Options) -> str:
    return _STREAM.format(error=vehicles.error, period=vehicles.period)


@dataclass(frozen=True, eq=False)
class Scenario:
    """Simulated vehicles: their true positions, and their reports.

    Attributes
    ----------
    most_delay : how long a report takes to arrive at most, in seconds
    """

    vehicles: Options
    positions: F64
    reports: Reports
    most_delay: float = 0.0

    @cached_property
    def arrivals(self) -> F64:
        """When each report arrives: up to `most_delay` seconds late, so not in order of time."""
        delays = np.random.default_rng(len(self.reports.t)).uniform(0.0, self.most_delay, len(self.reports.t))
        return self.reports.t + delays

    @property
    def tuples(self) -> float:
        """The number of reports per second."""
        return len(self.reports.t) / self.vehicles.duration

    def report_rows(self) -> pa.Table:
        """Return the reports as rows of the stream."""
        columns = {"car": self.reports.car, "t": self.reports.t}
        for axis, name in enumerate(("x", "y")):
            columns[name] = np.ascontiguousarray(self.reports.positions[:, axis])
            columns[f"{name}_rate"] = np.ascontiguousarray(self.reports.rates[:, axis])
        return pa.table(columns)


def simulate_scenario(vehicles: Options, seed: int, is_predicting: bool = True) -> Scenario:
    """Simulate vehicles; without predictions a vehicle reports its position once it is too far from the last report."""
    positions = trajectories(vehicles, np.random.default_rng(seed))
    return Scenario(vehicles, positions, (reports if is_predicting else plain_reports)(positions, vehicles))


cached_scenario = cache(simulate_scenario)
"""As `simulate_scenario`, for scenarios that are used more than once."""


def plain_reports(positions: F64, vehicles: Options) -> Reports:
    """Return the reports of vehicles that predict nothing: a position, and rates of 0.

    Examples
    --------
    >>> positions = np.array([[[0.0, 0.0]], [[20.0, 0.0]], [[40.0, 0.0]], [[40.0, 0.0]]])
    >>> plain = plain_reports(positions, Options(objects=1, duration=12.0, error=25.0, period=6.0))
    >>> plain.t, plain.positions[:, 0], plain.rates.any()
    (array([0., 6.]), array([ 0., 40.]), np.False_)
    """
    last, last_time = positions[0].copy(), np.full(positions.shape[1], -np.inf)
    cars, times, reported = [], [], []
    for t, now in zip(vehicles.times, positions, strict=True):
        is_far = (np.abs(now - last) > vehicles.error).any(axis=1)
        is_reported = is_far | (t - last_time >= vehicles.period - 1e-9)
        last[is_reported], last_time[is_reported] = now[is_reported], t
        cars.append(1 + np.flatnonzero(is_reported))
        times.append(np.full(len(cars[-1]), t))
        reported.append(now[is_reported])
    reported_positions = np.concatenate(reported)
    return Reports(np.concatenate(cars), np.concatenate(times), reported_positions, np.zeros_like(reported_positions))
