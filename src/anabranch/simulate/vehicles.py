"""Vehicles that report their position only when they must: predictions with an error, for MONITOR.

Modelled on Ilarri et al., section 6: vehicles of one speed in a square, which take a new random direction at times and
turn back at its edges. Their GPS measures at an interval; the measurements are the ground truth. A vehicle reports its
position and velocity when it is further than a threshold from its prediction, and at least once per period
(`inference/reporting.py`).

`trajectories`, `reports` and `true_pairs` return arrays; `simulate` and `write` make files and a workbook.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from anabranch.arrays import F64, I64
from anabranch.columns.times import TimeKind, order_doubles
from anabranch.inference.reporting import Reporting, Sensors
from anabranch.simulate.files import number_text, write_files
from anabranch.simulate.options import choice, option

NEAR = 400.0
"""The largest distance between two vehicles of a pair, in metres, in x and in y."""

WORKBOOK = """\
-- Vehicles that report their position and velocity only when they must. Metres and seconds.

CREATE STREAM cars
  KEY (car) VALUE (x, y) TIME t
  MODEL PREDICTED ERROR {error} PERIOD {period}
  FROM 'cars.parquet';

-- Which two vehicles may be near each other?
CREATE QUERY near AS
  MONITOR a, b FROM cars AS a, cars AS b
  WHERE ABS(a.x - b.x) <= {near} AND ABS(a.y - b.y) <= {near} AND a.car < b.car
  WITHIN 3
  SEMANTICS MAY
  THRESHOLD 0.5;
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line; the defaults are the parameters of the paper."""

    objects: int = option(300, "number of vehicles", most=1_000_000)
    duration: float = option(180.0, "length of the simulation, in seconds", least=1, most=86_400)
    area: float = option(10.0, "area of the square, in km²", least=0.01)
    density: float = option(0.0, "vehicles per km², which sets the area; 0: --area", least=0, most=100_000)
    speed: float = option(26.8, "speed in m/s", least=0, most=1_000)
    sample: float = option(3.0, "seconds between two GPS measurements", least=0.1, most=3_600)
    turn_period: float = option(10.0, "seconds between two opportunities to turn", least=0.1, most=86_400)
    turn_probability: float = option(0.5, "probability that a vehicle turns at an opportunity", least=0, most=1)
    error: float = option(25.0, "maximum distance from the prediction, in metres", least=0)
    period: float = option(30.0, "maximum time between two reports, in seconds", least=0.1, most=86_400)
    method: str = choice("linear", "kalman", help="how a vehicle estimates its velocity: linear or kalman")

    @property
    def side(self) -> float:
        """The length of a side of the square, in metres."""
        return 1_000 * math.sqrt(self.objects / self.density if self.density else self.area)

    @property
    def times(self) -> F64:
        """The times of the GPS measurements, in seconds, before the end."""
        # 0.3 / 0.1 is a little less than 3.
        return self.sample * np.arange(math.ceil(self.duration / self.sample - 1e-9), dtype=np.float64)

    @property
    def reporting(self) -> Reporting:
        """The rules by which a vehicle reports."""
        return Reporting(errors=(self.error, self.error), period=self.period, method=self.method.upper())


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of the vehicles, sorted by time and car.

    Attributes
    ----------
    car : int64
        Counted from 1.
    t : float64
        In seconds since the beginning.
    positions : (n, 2) float64
        x and y, in metres from the south-west corner.
    rates : (n, 2) float64
        The velocity in x and y, in m/s.
    """

    car: I64
    t: F64
    positions: F64
    rates: F64


@dataclass(frozen=True, slots=True)
class Vehicles:
    """The reports and the ground truth.

    Attributes
    ----------
    positions : pa.Table
        Ground truth, the GPS measurements: car, t, x, y.
    cars : pa.Table
        A PREDICTED stream, the reports: car, t, x, x_rate, y, y_rate.
    workbook : str
        With a query for vehicles near each other.
    """

    positions: pa.Table
    cars: pa.Table
    workbook: str


def simulate(options: Options | None = None, seed: int = 0) -> Vehicles:
    """Simulate vehicles and their reports.

    Parameters
    ----------
    options : Options, optional
        More vehicles in the same area, or a longer time, do not change the data of the others.
    seed : int
        The same seed gives the same data.

    Examples
    --------
    >>> vehicles = simulate(Options(objects=2, duration=60.0), seed=0)
    >>> vehicles.positions.num_rows, vehicles.cars.column_names
    (40, ['car', 't', 'x', 'x_rate', 'y', 'y_rate'])
    """
    options = options or Options()
    positions = trajectories(options, np.random.default_rng(seed))
    numbers = {"error": options.error, "period": options.period, "near": NEAR}
    workbook = WORKBOOK.format(**{name: number_text(number) for name, number in numbers.items()})
    return Vehicles(_position_rows(positions, options), _report_rows(reports(positions, options)), workbook)


def write(vehicles: Vehicles, folder: Path) -> Path:
    """Write the files and a workbook with a query for vehicles near each other; return the path of the workbook."""
    tables = {"cars": vehicles.cars, "true_positions": vehicles.positions}
    return write_files(folder, "vehicles", vehicles.workbook, tables)


def remark(folder: Path) -> str:
    """Return the share of measured positions that were reported, from the written files."""
    reported, measured = (
        pyarrow.parquet.read_metadata(folder / f"{name}.parquet").num_rows for name in ("cars", "true_positions")
    )
    return f"{reported:,} of {measured:,} positions were reported ({reported / measured:.1%})"


# ---------------------------------------------------------------- driving


def trajectories(options: Options, rng: np.random.Generator) -> F64:
    """Return the GPS measurements of each vehicle at `options.times`: (samples, objects, 2), in metres.

    They are rounded to a centimetre and have no other error. Each vehicle has its own child generator.

    Examples
    --------
    >>> positions = trajectories(Options(objects=2, duration=9.0), np.random.default_rng(0))
    >>> np.hypot(*(positions[1] - positions[0]).T).round(1)
    array([80.4, 80.4])
    """
    times = options.times
    leg = np.floor(times / options.turn_period + 1e-9).astype(np.int64)
    drawn = _draw(options.objects, int(leg[-1]), rng)
    position, heading = options.side * drawn[:, :2], 2 * np.pi * drawn[:, 2]
    positions = np.empty((len(times), options.objects, 2))
    for number in range(int(leg[-1]) + 1):
        if number:
            turns, towards = drawn[:, 2 * number + 1], drawn[:, 2 * number + 2]
            heading = np.where(turns < options.turn_probability, 2 * np.pi * towards, heading)
        velocity = options.speed * np.stack([np.cos(heading), np.sin(heading)], axis=1)
        for sample in np.flatnonzero(leg == number):
            positions[sample] = position + velocity * (times[sample] - number * options.turn_period)
        position = position + velocity * options.turn_period
    return _reflected(positions, options.side).round(2)


def _draw(objects: int, turns: int, rng: np.random.Generator) -> F64:
    """Draw numbers in [0, 1) per vehicle: position, heading, then for each opportunity whether and where it turns."""
    drawn = np.empty((objects, 3 + 2 * turns))
    for number, vehicle_rng in enumerate(rng.spawn(objects)):
        vehicle_rng.random(out=drawn[number])
    return drawn


def _reflected(positions: F64, side: float) -> F64:
    """Return positions on the plane, reflected into the square at its edges.

    The path of a reflected vehicle is the mirror image of a path that is not reflected. A new direction is as probable
    as its mirror image, so all vehicles can drive on an infinite plane and be reflected at the end.

    Examples
    --------
    >>> _reflected(np.array([-1.0, 3.0, 11.0, 21.0]), 10.0)
    array([1., 3., 9., 1.])
    """
    return side - np.abs(positions % (2 * side) - side)


# ---------------------------------------------------------------- reports


def reports(positions: F64, options: Options) -> Reports:
    """Return the reports of vehicles.

    Parameters
    ----------
    positions : (samples, objects, 2) float64
        The result of `trajectories` for these options.
    options : Options
    """
    sensors = Sensors(options.reporting, TimeKind.DOUBLE)
    times, objects = options.times, positions.shape[1]
    key = np.arange(objects, dtype=np.int32)
    # Instant by instant, so that the reports are in the order of time without a sort.
    by_instant = [
        sensors.report(key, np.full(objects, code), measured)
        for code, measured in zip(order_doubles(times), positions, strict=True)
    ]
    return Reports(
        car=1 + np.concatenate([sent.row for sent in by_instant]),
        t=np.repeat(times, [len(sent.row) for sent in by_instant]),
        positions=np.concatenate([measured[sent.row] for sent, measured in zip(by_instant, positions, strict=True)]),
        rates=np.concatenate([sent.rates for sent in by_instant]),
    )


# ---------------------------------------------------------------- ground truth


def true_pairs(positions: F64, options: Options, instant: float, within: float = NEAR) -> I64:
    """Return the vehicles that are near each other at an instant, by their last GPS measurements.

    Parameters
    ----------
    positions : (samples, objects, 2) float64
        The result of `trajectories` for these options.
    options : Options
    instant : float
        In seconds, at least 0.
    within : float
        The largest distance, in x and in y.

    Returns
    -------
    (n, 2) int64
        Pairs of cars, counted from 1, the smaller number first, sorted.

    Examples
    --------
    >>> positions = np.array([[[0.0, 0.0], [5.0, 5.0], [5.0, 11.0]]])
    >>> true_pairs(positions, Options(objects=3, duration=3.0), 2.0, within=6.0)
    array([[1, 2],
           [2, 3]])
    """
    # Imported here because it takes longer than all other imports of this module.
    from scipy.spatial import cKDTree

    times = options.times
    last = int(np.searchsorted(times, instant + 1e-9 * options.sample, side="right")) - 1
    pairs = 1 + cKDTree(positions[last]).query_pairs(within, p=np.inf, output_type="ndarray").astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


# ---------------------------------------------------------------- rows


def _position_rows(positions: F64, options: Options) -> pa.Table:
    samples, objects, _ = positions.shape
    return pa.table(
        {
            "car": pa.array(np.tile(np.arange(1, objects + 1, dtype=np.int32), samples)),
            "t": pa.array(np.repeat(options.times, objects)),
            "x": pa.array(positions[:, :, 0].ravel()),
            "y": pa.array(positions[:, :, 1].ravel()),
        }
    )


def _report_rows(sent: Reports) -> pa.Table:
    columns = {"car": pa.array(sent.car, pa.int32()), "t": pa.array(sent.t)}
    for index, name in enumerate(("x", "y")):
        columns[name] = pa.array(np.ascontiguousarray(sent.positions[:, index]))
        columns[f"{name}_rate"] = pa.array(np.ascontiguousarray(sent.rates[:, index]))
    return pa.table(columns)
