"""Vehicles that report where they are only when they have to: predictions with an error, for MONITOR.

In the manner of Ilarri et al., section 6: vehicles of one speed in a square, which take a new random orientation now
and then and turn back at its edges. Their GPS measures at an interval; what it measured is the truth here. A vehicle
tells its place and how fast it moves where it is further than a threshold from what it told before, and at least once
a period (`inference/reporting.py`).

`trajectories`, `reports` and `true_pairs` work in memory, with arrays; `simulate` and `write` make files and a workbook
of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from anabranch.columns.times import TimeKind, order_doubles
from anabranch.inference.reporting import Reporting, Sensors
from anabranch.simulate.files import write_files
from anabranch.simulate.options import choice, option
from anabranch.simulate.segmented import Floats, Integers

NEAR = 400.0
"""How near two vehicles of a pair are at most, in metres, east and north alike."""

WORKBOOK = """\
-- Vehicles that tell where they are, and how fast they move, only when they have to. Metres and seconds.

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
    """What the command line can ask for; as given, the parameters of the paper."""

    objects: int = option(300, "how many vehicles", most=1_000_000)
    duration: float = option(180.0, "how many seconds they are followed", least=1, most=86_400)
    area: float = option(10.0, "the square they drive in, in km²", least=0.01)
    density: float = option(0.0, "vehicles a km², which makes the area; 0: as --area says", least=0, most=100_000)
    speed: float = option(26.8, "in m/s", least=0, most=1_000)
    sample: float = option(3.0, "seconds from one GPS measurement to the next", least=0.1, most=3_600)
    turn_period: float = option(10.0, "seconds from one chance to turn to the next", least=0.1, most=86_400)
    turn_probability: float = option(0.5, "the chance that a vehicle then turns", least=0, most=1)
    error: float = option(25.0, "metres that a vehicle may be off what it told", least=0)
    period: float = option(30.0, "seconds after which it tells again", least=0.1, most=86_400)
    method: str = choice("linear", "kalman", help="how it finds out how fast it moves: linear or kalman")

    @property
    def side(self) -> float:
        """How long a side of the square is, in metres."""
        return 1_000 * math.sqrt(self.objects / self.density if self.density else self.area)

    @property
    def times(self) -> Floats:
        """When the GPS measures, in seconds, before the end."""
        # 0.3 / 0.1 is a little less than 3.
        return self.sample * np.arange(math.ceil(self.duration / self.sample - 1e-9), dtype=np.float64)

    @property
    def reporting(self) -> Reporting:
        """When a vehicle tells."""
        return Reporting(errors=(self.error, self.error), period=self.period, method=self.method.upper())


@dataclass(frozen=True, slots=True)
class Told:
    """What the vehicles told, in the order of time, then of cars.

    Attributes
    ----------
    car : int64
        Counted from 1.
    t : float64
        In seconds since the beginning.
    places : (n, 2) float64
        x and y, in metres from the south-west corner.
    rates : (n, 2) float64
        How fast they change, in m/s.
    """

    car: Integers
    t: Floats
    places: Floats
    rates: Floats


@dataclass(frozen=True, slots=True)
class Vehicles:
    """What was told, and what really happened.

    Attributes
    ----------
    positions : pa.Table
        The truth, what the GPS measured: car, t, x, y.
    cars : pa.Table
        A PREDICTED stream, what was told: car, t, x, x_rate, y, y_rate.
    workbook : str
        Asks who is near whom.
    """

    positions: pa.Table
    cars: pa.Table
    workbook: str


def simulate(options: Options | None = None, seed: int = 0) -> Vehicles:
    """Let vehicles drive, and tell.

    Parameters
    ----------
    options : Options, optional
        How many, how long, how fast. More vehicles in the same area, or a longer time, leave what was there before as
        it was.
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
    workbook = WORKBOOK.format(**{name: f"{number:.12g}" for name, number in numbers.items()})
    return Vehicles(_position_rows(positions, options), _told_rows(reports(positions, options)), workbook)


def write(vehicles: Vehicles, folder: Path) -> Path:
    """Write what was simulated as files, with a workbook that asks who is near; return the workbook's path."""
    tables = {"cars": vehicles.cars, "true_positions": vehicles.positions}
    return write_files(folder, "vehicles", vehicles.workbook, tables)


def remark(folder: Path) -> str:
    """How much of what was measured was told, of a folder that was written."""
    told, measured = (
        pyarrow.parquet.read_metadata(folder / f"{name}.parquet").num_rows for name in ("cars", "true_positions")
    )
    return f"{told:,} of {measured:,} positions were communicated ({told / measured:.1%})"


# ---------------------------------------------------------------- driving


def trajectories(options: Options, rng: np.random.Generator) -> Floats:
    """Where the GPS of each vehicle says that it is, at `options.times`: (samples, objects, 2), in metres.

    To a centimetre, and with no other error. Each vehicle draws from a generator of its own.

    Examples
    --------
    >>> positions = trajectories(Options(objects=2, duration=9.0), np.random.default_rng(0))
    >>> np.hypot(*(positions[1] - positions[0]).T).round(1)
    array([80.4, 80.4])
    """
    times = options.times
    leg = np.floor(times / options.turn_period + 1e-9).astype(np.int64)
    drawn = _draw(options.objects, int(leg[-1]), rng)
    place, heading = options.side * drawn[:, :2], 2 * np.pi * drawn[:, 2]
    found = np.empty((len(times), options.objects, 2))
    for number in range(int(leg[-1]) + 1):
        if number:
            turns, towards = drawn[:, 2 * number + 1], drawn[:, 2 * number + 2]
            heading = np.where(turns < options.turn_probability, 2 * np.pi * towards, heading)
        velocity = options.speed * np.stack([np.cos(heading), np.sin(heading)], axis=1)
        for sample in np.flatnonzero(leg == number):
            found[sample] = place + velocity * (times[sample] - number * options.turn_period)
        place = place + velocity * options.turn_period
    return _turned_back(found, options.side).round(2)


def _draw(objects: int, turns: int, rng: np.random.Generator) -> Floats:
    """What each vehicle draws, in [0, 1): place and heading, then for each chance whether it turns, and where to."""
    drawn = np.empty((objects, 3 + 2 * turns))
    for number, own in enumerate(rng.spawn(objects)):
        own.random(out=drawn[number])
    return drawn


def _turned_back(places: Floats, side: float) -> Floats:
    """Into the square, mirrored at its edges as often as it takes.

    Whoever turns back goes on as the mirror image of who does not. A new orientation is as likely as its image, so all
    may drive on an endless plane, and be mirrored in the end.

    Examples
    --------
    >>> _turned_back(np.array([-1.0, 3.0, 11.0, 21.0]), 10.0)
    array([1., 3., 9., 1.])
    """
    return side - np.abs(places % (2 * side) - side)


# ---------------------------------------------------------------- telling


def reports(positions: Floats, options: Options) -> Told:
    """What vehicles tell of where they are.

    Parameters
    ----------
    positions : (samples, objects, 2) float64
        What `trajectories` gave for these options.
    options : Options
        When they tell.
    """
    sensors = Sensors(options.reporting, TimeKind.DOUBLE)
    times, objects = options.times, positions.shape[1]
    key = np.arange(objects, dtype=np.int32)
    # One instant after the other: the reports come in the order of time, and nothing is to be sorted.
    made = [
        sensors.report(key, np.full(objects, code), places)
        for code, places in zip(order_doubles(times), positions, strict=True)
    ]
    return Told(
        car=1 + np.concatenate([each.row for each in made]),
        t=np.repeat(times, [len(each.row) for each in made]),
        places=np.concatenate([places[each.row] for each, places in zip(made, positions, strict=True)]),
        rates=np.concatenate([each.rates for each in made]),
    )


# ---------------------------------------------------------------- the truth


def true_pairs(positions: Floats, options: Options, instant: float, within: float = NEAR) -> Integers:
    """Which vehicles are near each other at an instant, by their last GPS measurements.

    Parameters
    ----------
    positions : (samples, objects, 2) float64
        What `trajectories` gave for these options.
    options : Options
        When the GPS measured.
    instant : float
        In seconds, from 0 on.
    within : float
        How far from each other they are at most, in x as well as in y.

    Returns
    -------
    (n, 2) int64
        Cars, counted from 1, the lesser one first, in ascending order.

    Examples
    --------
    >>> places = np.array([[[0.0, 0.0], [5.0, 5.0], [5.0, 11.0]]])
    >>> true_pairs(places, Options(objects=3, duration=3.0), 2.0, within=6.0)
    array([[1, 2],
           [2, 3]])
    """
    # Imported when it is needed: it takes longer than all that the command line imports of it.
    from scipy.spatial import cKDTree

    times = options.times
    last = int(np.searchsorted(times, instant + 1e-9 * options.sample, side="right")) - 1
    pairs = 1 + cKDTree(positions[last]).query_pairs(within, p=np.inf, output_type="ndarray").astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


# ---------------------------------------------------------------- rows


def _position_rows(positions: Floats, options: Options) -> pa.Table:
    samples, objects, _ = positions.shape
    return pa.table(
        {
            "car": pa.array(np.tile(np.arange(1, objects + 1, dtype=np.int32), samples)),
            "t": pa.array(np.repeat(options.times, objects)),
            "x": pa.array(positions[:, :, 0].ravel()),
            "y": pa.array(positions[:, :, 1].ravel()),
        }
    )


def _told_rows(told: Told) -> pa.Table:
    columns = {"car": pa.array(told.car, pa.int32()), "t": pa.array(told.t)}
    for place, name in enumerate(("x", "y")):
        columns[name] = pa.array(np.ascontiguousarray(told.places[:, place]))
        columns[f"{name}_rate"] = pa.array(np.ascontiguousarray(told.rates[:, place]))
    return pa.table(columns)
