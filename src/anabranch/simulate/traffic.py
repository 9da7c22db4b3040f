"""Congestion of a motorway, as segmented intervals with lost events. For RELATE.

Two kinds of data (`--data`), those of the SimpMatch paper, section 4.1:

- `road`: when the sectors of a motorway were congested, from the speeds that vehicles report (`road.py`).
- `poisson`: pairs of segmented intervals whose events are a Poisson process, as RELATE assumes for lost events.

`simulate_road`, `simulate_poisson` and `lose` return arrays; `simulate` and `write` make files and a workbook.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64
from anabranch.simulate.files import timestamps, write_files
from anabranch.simulate.options import choice, option
from anabranch.simulate.road import SECOND, Reports, congestion, drive
from anabranch.simulate.segmented import Entities, lose, table

START = datetime(2026, 1, 5, 6, tzinfo=UTC)

ROAD = """\
-- Which sectors of a motorway were congested together? Some of the times at which congestion began or ended were lost.

{streams}
-- Two sectors were congested at the same time, at least twice, with a probability of at least 0.5.
CREATE QUERY jam AS
  RELATE AT LEAST 2 a INTERSECTS SOME b
  FROM congestion AS a, congestion AS b
  WHERE a.sector < b.sector
  THRESHOLD 0.5;

-- The same without lost events: the correct answers.
CREATE QUERY true_jam AS
  RELATE AT LEAST 2 a INTERSECTS SOME b
  FROM true_congestion AS a, true_congestion AS b
  WHERE a.sector < b.sector
  THRESHOLD 0.5;
"""

POISSON = """\
-- Pairs of segmented intervals whose events are a Poisson process. Some of the events were lost.

{streams}
-- At least 7 segments of one intersect some segment of the other, with a probability of at least 0.5.
CREATE QUERY shared AS
  RELATE AT LEAST 7 a INTERSECTS SOME b
  FROM congestion AS a, congestion AS b
  WHERE a.pair = b.pair AND a.side < b.side
  THRESHOLD 0.5;

-- The same without lost events: the correct answers.
CREATE QUERY true_shared AS
  RELATE AT LEAST 7 a INTERSECTS SOME b
  FROM true_congestion AS a, true_congestion AS b
  WHERE a.pair = b.pair AND a.side < b.side
  THRESHOLD 0.5;
"""

STREAM = """\
CREATE STREAM {name}
  KEY ({keys}) TIME t ORDER seq
  MODEL INTERVALS LENGTH n HORIZON [{low}, {high}]
  FROM '{name}.parquet';
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    data: str = choice("road", "poisson", help="road (a motorway) or poisson (pairs of Poisson processes)")
    loss: float = option(0.1, "probability that an event is lost", least=0, most=1)
    threshold: float = option(20.0, "road: a sector is congested below this average speed, in km/h", least=0, most=100)
    sectors: int = option(200, "road: number of sectors", most=100_000)
    hours: float = option(2.0, "road: length of the simulation, from 06:00", least=0.01, most=168)
    vehicles_per_hour: int = option(1_000, "road: reporting vehicles that pass a sector in a quiet hour", most=100_000)
    pairs: int = option(500, "poisson: number of pairs of intervals")
    segments: int = option(20, "poisson: number of segments of an interval", most=100_000)
    mean: float = option(5.0, "poisson: mean time between two events", least=1e-6)


@dataclass(frozen=True, slots=True)
class Traffic:
    """The recorded events and the ground truth.

    Attributes
    ----------
    congestion, truth : pa.Table
        INTERVALS streams, with and without lost events: sector (or pair and side), seq, t, n, role.
    reports : pa.Table or None
        The reports of the vehicles on a road: t, vehicle, sector, speed.
    workbook : str
        With the same query over both streams.
    """

    congestion: pa.Table
    truth: pa.Table
    reports: pa.Table | None
    workbook: str


def simulate(options: Options | None = None, seed: int = 0) -> Traffic:
    """Simulate congestion, and lose some of the events.

    Parameters
    ----------
    options : Options, optional
        More hours or pairs do not change the data of the others.
    seed : int
        The same seed gives the same data.

    Examples
    --------
    >>> traffic = simulate(Options(data="poisson", pairs=1), seed=0)
    >>> traffic.congestion.column_names
    ['pair', 'side', 'seq', 't', 'n', 'role']
    """
    options = options or Options()
    event_rng, loss_rng = np.random.default_rng(seed).spawn(2)
    if options.data == "poisson":
        true = simulate_poisson(options, event_rng)
        low, high = (f"{end:.0f}" for end in true.horizon)
        as_times, reports, queries = pa.array, None, POISSON
    else:
        true, vehicle_reports = simulate_road(options, event_rng)
        low, high = map(_timestamp_literal, true.horizon)
        as_times, reports, queries = _seconds, _report_rows(vehicle_reports), ROAD
    keys = ", ".join(true.keys)
    streams = (STREAM.format(name=name, keys=keys, low=low, high=high) for name in ("congestion", "true_congestion"))
    return Traffic(
        congestion=table(lose(true, options.loss, loss_rng), as_times),
        truth=table(true, as_times),
        reports=reports,
        workbook=queries.format(streams="\n".join(streams)),
    )


def simulate_road(options: Options, rng: np.random.Generator) -> tuple[Entities, Reports]:
    """Return when the sectors of a motorway were congested, in seconds, and the reports of the vehicles.

    Sectors that were never congested are left out.
    """
    reports = drive(options.sectors, options.hours, options.vehicles_per_hour, rng)
    return congestion(reports, options.hours, options.threshold), reports


def simulate_poisson(options: Options, rng: np.random.Generator) -> Entities:
    """Return pairs of segmented intervals, sides a and b, with exponential times between events, beginning at 0.

    The horizon ends at the first whole number after all events.

    Examples
    --------
    >>> simulate_poisson(Options(pairs=2, segments=3), np.random.default_rng(0)).starts
    array([ 0,  6, 12, 18, 24])
    """
    entities, events = 2 * options.pairs, 2 * options.segments
    times = np.cumsum(rng.exponential(options.mean, (entities, events)), axis=1).ravel()
    return Entities(
        keys={
            "pair": np.repeat(np.arange(1, options.pairs + 1, dtype=np.int32), 2),
            "side": np.tile(["a", "b"], options.pairs),
        },
        starts=np.arange(entities + 1) * events,
        times=times,
        lost=np.zeros(len(times), dtype=bool),
        horizon=(0.0, float(np.floor(times.max()) + 1)),
    )


def write(traffic: Traffic, folder: Path) -> Path:
    """Write the files and a workbook with queries for common congestion; return the path of the workbook."""
    tables = {"congestion": traffic.congestion, "true_congestion": traffic.truth}
    if traffic.reports is not None:
        tables["reports"] = traffic.reports
    return write_files(folder, "traffic", traffic.workbook, tables)


def _timestamp_literal(seconds: float) -> str:
    """Return a time as a literal of the language."""
    return f"'{(START + timedelta(seconds=seconds)).replace(tzinfo=None)}'"


def _seconds(seconds: F64) -> pa.Array:
    return _timestamps(np.rint(seconds * SECOND).astype(np.int64))


def _timestamps(milliseconds: I64) -> pa.Array:
    return timestamps(START, milliseconds, np.timedelta64(1, "ms"))


def _report_rows(reports: Reports) -> pa.Table:
    return pa.table(
        {
            "t": _timestamps(reports.t),
            "vehicle": pa.array(reports.vehicle, pa.int32()),
            "sector": pa.array(reports.sector, pa.int32()),
            "speed": pa.array(reports.speed, pa.float64()),
        }
    )
