"""A motorway modelled on the Linear Road benchmark: vehicles report their sector and speed every 30 s.

The speed of each sector comes from a cell transmission model of the traffic (`_flow`). Lanes end in some sectors, and
accidents block or slow others for a while. Where more vehicles arrive than can pass, a queue grows upstream, and waves
of higher and lower speed travel through it. Vehicles drive at these speeds, with random deviations (`drive`).

A sector is congested while the average of its reports of the last 30 s is below a threshold (`congestion`). Vehicles
report at different times, so the average changes with every report, and may cross the threshold often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.simulate.segmented import Entities

SECOND = 1_000
"""Times are in milliseconds, so that two events at the same time are rare but possible."""

HOUR = 3_600 * SECOND

ROUND = 30 * SECOND
"""Every vehicle reports once per round."""

WARM_UP_ROUNDS = 80
"""Rounds before the beginning, in which the road fills."""

SECTOR_KM = 1.6
MEAN_TRIP = 20
"""The mean number of sectors that a vehicle drives before it leaves the road. As many vehicles join as leave."""

# The fundamental diagram of a lane: speed in km/h, flow in vehicles per hour, density in vehicles per km.
FREE_SPEED = 100.0
CAPACITY = 2_000.0
WAVE_SPEED = 18.0
"""The speed at which the tail of a discharging queue, and waves in a queue, travel upstream."""
JAM_DENSITY = CAPACITY / FREE_SPEED + CAPACITY / WAVE_SPEED

# Arriving traffic, as a share of the capacity: two rush hours per day.
QUIET, RUSH = 0.6, 0.3
RUSH_HOURS = (7.25, 17.25)
RUSH_WIDTH = 0.8
FIRST_HOUR = 6.0

# Traffic that can pass, as a share of the capacity: less where lanes end and after accidents.
LANE_ENDS_EVERY = 16
"""Sectors per lane end."""
LANE_END_PASSES = (0.6, 0.72)
ACCIDENTS = 0.045
"""Accidents per sector and hour."""
ACCIDENT_PASSES = (0.0, 0.45)
ACCIDENT_ROUNDS = (4, 14)
UNSTEADY = 0.05
"""The standard deviation of the passing traffic, relative to its mean."""
STEADY_FOR = 0.9
"""The correlation of the passing traffic between consecutive rounds."""

# The standard deviation of the speeds of vehicles relative to their mean, on a free road and in a standing queue.
SPREAD_FREE, SPREAD_JAM = 0.08, 0.4


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of the vehicles, in the order of time.

    Attributes
    ----------
    t : int64
        In milliseconds since the beginning.
    vehicle, sector : int64
        Counted from 1.
    speed : float64
        In km/h, to one decimal.
    """

    t: I64
    vehicle: I64
    sector: I64
    speed: F64


@dataclass(slots=True)
class _Fleet:
    """The vehicles on the road: the phase of their reports in a round, their position and their exit, in sectors."""

    vehicle: I64
    phase: I64
    position: F64
    goal: F64

    def select(self, mask: Bools) -> _Fleet:
        return _Fleet(*(getattr(self, name)[mask] for name in self.__slots__))

    def concat(self, other: _Fleet) -> _Fleet:
        return _Fleet(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


def drive(sectors: int, hours: float, vehicles_per_hour: int, rng: np.random.Generator) -> Reports:
    """Simulate the reports of vehicles on the road.

    Parameters
    ----------
    sectors : int
        The length of the road, in one direction.
    hours : float
        The length of the simulation; more hours do not change the reports of the first ones.
    vehicles_per_hour : int
        How many of the vehicles that pass a sector in a quiet hour report. It does not change the traffic.
    rng : np.random.Generator
        The road and the vehicles have their own child generators.
    """
    road_rng, vehicle_rng = rng.spawn(2)
    rounds = int(np.ceil(hours * HOUR / ROUND))
    reports = []
    fleet, joined = _joining(0, 0, sectors, vehicle_rng), 0
    for number, speeds in zip(range(-WARM_UP_ROUNDS, rounds), _flow(sectors, road_rng), strict=False):
        share = _arriving(number) / QUIET
        rate = share * vehicles_per_hour * (ROUND / HOUR) * (1 + sectors / MEAN_TRIP)
        joining = _joining(vehicle_rng.poisson(rate), joined, sectors, vehicle_rng)
        fleet, joined = fleet.concat(joining), joined + len(joining.vehicle)
        sector = fleet.position.astype(np.int64)
        speed = _vehicle_speeds(speeds[sector], vehicle_rng)
        if number >= 0:
            reports.append((number * ROUND + fleet.phase, 1 + fleet.vehicle, 1 + sector, speed))
        fleet.position += speed * (ROUND / HOUR) / SECTOR_KM
        fleet = fleet.select(fleet.position < fleet.goal)
    t, vehicle, sector, speed = map(np.concatenate, zip(*reports, strict=True))
    order = np.argsort(t, kind="stable")
    order = order[: np.searchsorted(t[order], hours * HOUR)]
    return Reports(t[order], vehicle[order], sector[order], speed[order])


def _joining(count: int, first: int, sectors: int, rng: np.random.Generator) -> _Fleet:
    """Return new vehicles: at the beginning of the road, in proportion to MEAN_TRIP, and evenly in all sectors."""
    position = np.maximum(rng.uniform(-MEAN_TRIP, sectors, count), 0.0)
    return _Fleet(
        vehicle=first + np.arange(count),
        phase=rng.integers(ROUND, size=count),
        position=position,
        goal=np.minimum(position + rng.exponential(MEAN_TRIP, count), sectors),
    )


def _vehicle_speeds(traffic: F64, rng: np.random.Generator) -> F64:
    """Return the speed of each vehicle from that of the traffic around it, to a tenth of a km/h."""
    spread = SPREAD_JAM + (SPREAD_FREE - SPREAD_JAM) * traffic / FREE_SPEED
    speeds: F64 = np.maximum(traffic * (1 + spread * rng.standard_normal(len(traffic))), 0.0)
    return speeds.round(1)


# ---------------------------------------------------------------- traffic flow


def _flow(sectors: int, rng: np.random.Generator) -> Iterator[F64]:
    """Yield the speed of the traffic in each sector, round by round: a cell transmission model with a cell per sector.

    A sector passes its vehicles on as far as its end lets them pass and the next sector has room. So congestion moves
    upstream as on a real road.
    """
    density = np.full(sectors, _arriving(-WARM_UP_ROUNDS) * CAPACITY / FREE_SPEED)
    stay = 1 - 1 / MEAN_TRIP
    for number, passes in enumerate(_passing(sectors, rng), start=-WARM_UP_ROUNDS):
        arriving = _arriving(number) * CAPACITY
        joining = arriving / MEAN_TRIP
        room = np.minimum(CAPACITY, WAVE_SPEED * np.maximum(JAM_DENSITY - density, 0.0))
        room_ahead = np.append(np.maximum(room[1:] - joining, 0.0) / stay, np.inf)
        outflow = np.minimum(np.minimum(FREE_SPEED * density, passes * CAPACITY), room_ahead)
        yield np.minimum(outflow / density, FREE_SPEED)
        inflow = np.append(min(arriving, room[0]), stay * outflow[:-1] + joining)
        density = np.maximum(density + (inflow - outflow) * (ROUND / HOUR) / SECTOR_KM, 1e-9)


def _arriving(number: int) -> float:
    """Return the arriving traffic of a round, as a share of the capacity."""
    hour = (FIRST_HOUR + number * ROUND / HOUR) % 24
    return QUIET + RUSH * sum(float(np.exp(-0.5 * ((hour - peak) / RUSH_WIDTH) ** 2)) for peak in RUSH_HOURS)


def _passing(sectors: int, rng: np.random.Generator) -> Iterator[F64]:
    """Yield the traffic that can pass the end of each sector, as a share of the capacity, round by round."""
    stretches = np.arange(0, sectors, LANE_ENDS_EVERY)
    ends = np.minimum(stretches + rng.integers(LANE_ENDS_EVERY, size=len(stretches)), sectors - 1)
    lanes = np.ones(sectors)
    lanes[ends] = rng.uniform(*LANE_END_PASSES, len(ends))
    blocked, rounds_left = np.ones(sectors), np.zeros(sectors, dtype=np.int64)
    swing = rng.standard_normal(sectors)
    while True:
        happens = rng.random(sectors) < ACCIDENTS * ROUND / HOUR
        blocked = np.where(happens, rng.uniform(*ACCIDENT_PASSES, sectors), blocked)
        rounds_left = np.where(happens, rng.integers(*ACCIDENT_ROUNDS, sectors), rounds_left - 1)
        swing = STEADY_FOR * swing + np.sqrt(1 - STEADY_FOR**2) * rng.standard_normal(sectors)
        yield np.minimum(lanes, np.where(rounds_left > 0, blocked, 1.0)) * (1 + UNSTEADY * swing)


# ---------------------------------------------------------------- congestion


def congestion(reports: Reports, hours: float, threshold: float) -> Entities:
    """Return when each sector was congested, in seconds since the beginning; other sectors are left out.

    Congestion that has not ended at the end of the simulation ends with the last report of the sector.
    """
    order = np.lexsort((reports.t, reports.sector))
    sector, t = reports.sector[order], reports.t[order]
    below = _averages(sector, t, reports.speed[order]) < threshold
    # Of reports at the same time, the average with the last one includes the others.
    final = (np.diff(t, append=-1) != 0) | (np.diff(sector, append=0) != 0)
    sector, t, below = sector[final], t[final], below[final]
    first, last = np.diff(sector, prepend=0) != 0, np.diff(sector, append=0) != 0
    before = np.roll(below, 1) & ~first
    # Congestion that begins with the last report would have no length.
    changes = np.where(last, before, below != before)
    keys, counts = np.unique(sector[changes], return_counts=True)
    return Entities(
        keys={"sector": keys.astype(np.int32)},
        starts=np.append(0, np.cumsum(counts)),
        times=t[changes] / SECOND,
        lost=np.zeros(changes.sum(), dtype=bool),
        horizon=(0.0, hours * HOUR / SECOND),
    )


def _averages(sector: I64, t: I64, speed: F64) -> F64:
    """Return the average speed of the sector over the last 30 s, at each report."""
    # All sectors on one number line, too far apart to share a window.
    line = sector * (t.max(initial=0) + ROUND) + t
    oldest = np.searchsorted(line, line - ROUND, side="right")
    # Tenths of a km/h are added as integers, so that the sum of a window is exact.
    sums = np.append(0, np.cumsum(np.rint(10 * speed).astype(np.int64)))
    here = np.arange(len(t))
    return (sums[here + 1] - sums[oldest]) / (10 * (here + 1 - oldest))
