"""A motorway in the manner of the Linear Road benchmark: vehicles report where they are, and how fast, every 30 s.

The speed of each sector follows from how traffic flows (`_flow`, a cell transmission model): what arrives must pass,
lanes end at some places, and accidents stop or slow everybody at others for a while. Where less passes than arrives a
queue grows upstream, and waves of more and less speed run up it. Vehicles drive through these speeds, each in its own
way (`drive`).

A sector is congested while the average of its reports of the last 30 s is below a threshold (`congestion`). Vehicles
report at different moments, so it can change with every report, and where it is near the threshold it does so often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anabranch.simulate.segmented import Entities, Floats, Integers, Mask

SECOND = 1_000
"""Times are in milliseconds: two events at one moment are rare, but they happen."""

HOUR = 3_600 * SECOND

ROUND = 30 * SECOND
"""Every vehicle reports once in a round."""

WARM_UP_ROUNDS = 80
"""The road is filled before it is watched."""

SECTOR_KM = 1.6
MEAN_TRIP = 20
"""Sectors that a vehicle drives, on average; then it leaves the road. As many join as leave."""

# How a lane flows (the fundamental diagram): speed in km/h, flow in vehicles an hour, density in vehicles a km.
FREE_SPEED = 100.0
CAPACITY = 2_000.0
WAVE_SPEED = 18.0
"""How fast the tail of a discharging queue, and every wave within one, travels upstream."""
JAM_DENSITY = CAPACITY / FREE_SPEED + CAPACITY / WAVE_SPEED

# What arrives, as a share of the capacity: two rushes a day, at these hours.
QUIET, RUSH = 0.6, 0.3
RUSH_HOURS = (7.25, 17.25)
RUSH_WIDTH = 0.8
FIRST_HOUR = 6.0

# What passes, as a share of the capacity: less where lanes end, and where there was an accident.
LANE_ENDS_EVERY = 16
"""One lane end in so many sectors."""
LANE_END_PASSES = (0.6, 0.72)
ACCIDENTS = 0.045
"""In a sector and an hour."""
ACCIDENT_PASSES = (0.0, 0.45)
ACCIDENT_ROUNDS = (4, 14)
UNSTEADY = 0.05
"""The standard deviation of what passes, about its mean."""
STEADY_FOR = 0.9
"""The correlation of what passes from one round to the next."""

# Drivers differ: the standard deviation of speeds as a share of their average, on a free road and in a standing queue.
SPREAD_FREE, SPREAD_JAM = 0.08, 0.4


@dataclass(frozen=True, slots=True)
class Reports:
    """What the vehicles told, in the order of time.

    Attributes
    ----------
    t : int64
        In milliseconds since the beginning.
    vehicle, sector : int64
        Who and where, counted from 1.
    speed : float64
        In km/h, to a tenth.
    """

    t: Integers
    vehicle: Integers
    sector: Integers
    speed: Floats


@dataclass(slots=True)
class _Fleet:
    """The vehicles on the road: when in a round they report, where they are and where they leave, in sectors."""

    vehicle: Integers
    phase: Integers
    position: Floats
    goal: Floats

    def where(self, mask: Mask) -> _Fleet:
        return _Fleet(*(getattr(self, name)[mask] for name in self.__slots__))

    def with_others(self, other: _Fleet) -> _Fleet:
        return _Fleet(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


def drive(sectors: int, hours: float, vehicles_per_hour: int, rng: np.random.Generator) -> Reports:
    """Let vehicles drive along the road, and report.

    Parameters
    ----------
    sectors : int
        The length of the road, in one direction.
    hours : float
        How long it is watched; the reports of the first hours do not depend on it.
    vehicles_per_hour : int
        How many of those that pass a sector in a quiet hour report. How fast traffic flows does not depend on it.
    rng : np.random.Generator
        Is drawn from for the road and, apart from that, for the vehicles.
    """
    of_road, of_vehicles = rng.spawn(2)
    rounds = int(np.ceil(hours * HOUR / ROUND))
    told = []
    fleet, met = _joining(0, 0, sectors, of_vehicles), 0
    for number, speeds in zip(range(-WARM_UP_ROUNDS, rounds), _flow(sectors, of_road), strict=False):
        share = _arriving(number) / QUIET
        rate = share * vehicles_per_hour * (ROUND / HOUR) * (1 + sectors / MEAN_TRIP)
        joining = _joining(of_vehicles.poisson(rate), met, sectors, of_vehicles)
        fleet, met = fleet.with_others(joining), met + len(joining.vehicle)
        sector = fleet.position.astype(np.int64)
        speed = _own_speeds(speeds[sector], of_vehicles)
        if number >= 0:
            told.append((number * ROUND + fleet.phase, 1 + fleet.vehicle, 1 + sector, speed))
        fleet.position += speed * (ROUND / HOUR) / SECTOR_KM
        fleet = fleet.where(fleet.position < fleet.goal)
    t, vehicle, sector, speed = map(np.concatenate, zip(*told, strict=True))
    order = np.argsort(t, kind="stable")
    order = order[: np.searchsorted(t[order], hours * HOUR)]
    return Reports(t[order], vehicle[order], sector[order], speed[order])


def _joining(many: int, met: int, sectors: int, rng: np.random.Generator) -> _Fleet:
    """Vehicles that join: a trip's worth of them at the beginning of the road, and as many as leave at every sector."""
    position = np.maximum(rng.uniform(-MEAN_TRIP, sectors, many), 0.0)
    return _Fleet(
        vehicle=met + np.arange(many),
        phase=rng.integers(ROUND, size=many),
        position=position,
        goal=np.minimum(position + rng.exponential(MEAN_TRIP, many), sectors),
    )


def _own_speeds(around: Floats, rng: np.random.Generator) -> Floats:
    """How fast each vehicle drives where traffic around it has these speeds, to a tenth of a km/h."""
    spread = SPREAD_JAM + (SPREAD_FREE - SPREAD_JAM) * around / FREE_SPEED
    speeds: Floats = np.maximum(around * (1 + spread * rng.standard_normal(len(around))), 0.0)
    return speeds.round(1)


# ---------------------------------------------------------------- how traffic flows


def _flow(sectors: int, rng: np.random.Generator) -> Iterator[Floats]:
    """The speed of traffic in each sector, round after round: a cell transmission model with a cell a sector.

    A sector passes on what it holds, as far as its end lets it through and the next sector has room. So congestion is
    handed upstream as on a real road.
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
    """What arrives in a round, as a share of the capacity."""
    hour = (FIRST_HOUR + number * ROUND / HOUR) % 24
    return QUIET + RUSH * sum(float(np.exp(-0.5 * ((hour - peak) / RUSH_WIDTH) ** 2)) for peak in RUSH_HOURS)


def _passing(sectors: int, rng: np.random.Generator) -> Iterator[Floats]:
    """What the end of each sector lets through, as a share of the capacity, round after round."""
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
    """When each sector was congested, in seconds since the beginning; sectors that never were are left out.

    What has not ended when the road is no longer watched ends with the last report of the sector.
    """
    order = np.lexsort((reports.t, reports.sector))
    sector, t = reports.sector[order], reports.t[order]
    below = _averages(sector, t, reports.speed[order]) < threshold
    # Of reports at one moment the last one has seen the others.
    final = (np.diff(t, append=-1) != 0) | (np.diff(sector, append=0) != 0)
    sector, t, below = sector[final], t[final], below[final]
    first, last = np.diff(sector, prepend=0) != 0, np.diff(sector, append=0) != 0
    before = np.roll(below, 1) & ~first
    # Congestion that the last report begins would have no length.
    changes = np.where(last, before, below != before)
    keys, counts = np.unique(sector[changes], return_counts=True)
    return Entities(
        keys={"sector": keys.astype(np.int32)},
        starts=np.append(0, np.cumsum(counts)),
        times=t[changes] / SECOND,
        lost=np.zeros(changes.sum(), dtype=bool),
        horizon=(0.0, hours * HOUR / SECOND),
    )


def _averages(sector: Integers, t: Integers, speed: Floats) -> Floats:
    """With each report, the average speed that its sector has by the reports of the last 30 s."""
    # One number line for all sectors, on which they are too far from each other to share a window.
    line = sector * (t.max(initial=0) + ROUND) + t
    oldest = np.searchsorted(line, line - ROUND, side="right")
    # Tenths of a km/h are added as integers, so that the sum of a window is exact.
    sums = np.append(0, np.cumsum(np.rint(10 * speed).astype(np.int64)))
    here = np.arange(len(t))
    return (sums[here + 1] - sums[oldest]) / (10 * (here + 1 - oldest))
