"""A building with two floors and RFID antennas only in the corridors.

Each floor has one corridor, which is a ring. It is divided into cells of a step or two; rooms open onto it on both
sides, some opposite each other. Two staircases join the floors, and one cell of the first floor leads outside. Each
antenna covers a few cells of a corridor, and read rates differ between antennas. The location of somebody who has left
the corridor can only be inferred.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I64

FLOORS = (1, 2)
CORRIDOR, STAIRS, OUTSIDE = "corridor", "stairs", "outside"
OFFICE, COFFEE, MEETING, LECTURE = "office", "coffee", "meeting", "lecture"

CELLS_PER_ROOM = 2.8
"""Corridor cells for each room."""

LEFT_SHARE = 0.55
"""The share of the rooms on the left of a corridor; not half, so that only some doors are opposite each other."""

STAIR_CELLS = 4

CELLS_PER_ANTENNA = 6.6
READ_RATES = (0.1, 0.8, 0.9)
"""The lowest, the most frequent and the highest read rate of an antenna, before scaling to the requested mean."""
REACH = (1.0, 0.95, 0.9, 0.8, 0.5, 0.2)
"""Factors of the read rate of an antenna at a distance of 0, 1, 2, ... cells."""

SURVEY_TRIES = 200
"""Trials of each antenna in each cell, from which read rates are estimated."""


@dataclass(frozen=True, slots=True)
class Antenna:
    """An antenna, and its probability to read a tag in one second by the location of the tag."""

    name: str
    rates: dict[int, float]


@dataclass(frozen=True, slots=True, eq=False)
class Building:
    """Locations, the paths between them, and antennas. A location is a number, its index in `locations`.

    Attributes
    ----------
    locations : tuple of str
        The name of each location.
    kinds : array of str
        The kind of each location: corridor, stairs, outside, office, coffee, meeting or lecture.
    neighbours : tuple of tuples
        The other locations that can be reached from each location in one step.
    antennas : tuple of Antenna
    """

    locations: tuple[str, ...]
    kinds: NDArray[np.str_]
    neighbours: tuple[tuple[int, ...], ...]
    antennas: tuple[Antenna, ...]
    _next_hops: dict[int, I64] = field(default_factory=dict, repr=False)

    def of_kind(self, *kinds: str) -> I64:
        """Return the locations of these kinds, in order."""
        return np.flatnonzero(np.isin(self.kinds, kinds))

    def detection(self) -> F64:
        """Return an array: [r, x] is the probability that antenna r reads a tag at location x in one second."""
        rates = np.zeros((len(self.antennas), len(self.locations)))
        for number, antenna in enumerate(self.antennas):
            rates[number, list(antenna.rates)] = list(antenna.rates.values())
        return rates

    def moves(self) -> tuple[I64, I64]:
        """Return the locations before and after each possible move of one step, including staying."""
        pairs = [(here, there) for here, near in enumerate(self.neighbours) for there in sorted((here, *near))]
        before, after = np.array(pairs).T
        return before, after

    def route(self, here: int, goal: int) -> list[int]:
        """Return the locations on the shortest path between two locations, both excluded."""
        next_hop = self._next_hop(goal)
        path = []
        while (here := int(next_hop[here])) != goal:
            path.append(here)
        return path

    def _next_hop(self, goal: int) -> I64:
        """Return the next location on the way from each location to a goal; cached, since goals repeat."""
        if goal not in self._next_hops:
            next_hop = np.full(len(self.locations), -1)
            next_hop[goal] = goal
            frontier = deque([goal])
            while frontier:
                here = frontier.popleft()
                for there in self.neighbours[here]:
                    if next_hop[there] < 0:
                        next_hop[there] = here
                        frontier.append(there)
            self._next_hops[goal] = next_hop
        return self._next_hops[goal]


def make_building(rooms: int, read_rate: float, rng: np.random.Generator) -> Building:
    """Return a building with the corridors and antennas that its rooms need, half of the rooms on each floor.

    Parameters
    ----------
    rooms : int
        With 90 rooms, a building has about 350 locations and 38 antennas.
    read_rate : float
        The mean probability that an antenna reads a tag below it in one second.
    rng : Generator
        Draws the read rate of each antenna.
    """
    draft = _Draft()
    corridors = [_add_floor(draft, floor, rooms // 2 + (floor == 1) * (rooms % 2)) for floor in FLOORS]
    for stairs, share in (("a", 0.0), ("b", 0.5)):
        flight = [draft.add(f"stairs-{stairs}-{step}", STAIRS) for step in range(1, STAIR_CELLS + 1)]
        first, second = (corridor[int(share * len(corridor))] for corridor in corridors)
        draft.join(first, *flight, second)
    draft.join(corridors[0][len(corridors[0]) // 4], draft.add(OUTSIDE, OUTSIDE))
    return Building(
        tuple(draft.locations),
        np.array(draft.kinds),
        tuple(tuple(sorted(near)) for near in draft.neighbours),
        tuple(_antennas(corridors, read_rate, rng)),
    )


def survey(building: Building, rng: np.random.Generator) -> F64:
    """Return read rates as estimated from trials: nearly right, and never 0 where a tag can be read."""
    true = building.detection()
    return np.where(true > 0, (rng.binomial(SURVEY_TRIES, true) + 1) / (SURVEY_TRIES + 2), 0.0)


@dataclass(slots=True)
class _Draft:
    """A building under construction."""

    locations: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    neighbours: list[set[int]] = field(default_factory=list)

    def add(self, name: str, kind: str) -> int:
        """Add a location and return its number."""
        self.locations.append(name)
        self.kinds.append(kind)
        self.neighbours.append(set())
        return len(self.locations) - 1

    def join(self, *path: int) -> None:
        """Make a path along these locations, in both directions."""
        for here, there in zip(path, path[1:], strict=False):
            self.neighbours[here].add(there)
            self.neighbours[there].add(here)


def _add_floor(draft: _Draft, floor: int, rooms: int) -> list[int]:
    """Add the corridor of a floor and the rooms along it; return the cells of the corridor."""
    cells = [draft.add(f"corridor-{floor}-{n:03}", CORRIDOR) for n in range(1, round(rooms * CELLS_PER_ROOM) + 1)]
    draft.join(*cells, cells[0])
    left = round(rooms * LEFT_SHARE)
    doors = sorted(int(n * len(cells) / side) for side in (left, rooms - left) for n in range(side))
    for number, door in enumerate(doors):
        kind = _kind_of_room(number)
        draft.join(cells[door], draft.add(f"{kind}-{floor}{number + 1:02}", kind))
    return cells


def _kind_of_room(number: int) -> str:
    """Return the kind of a room: one lecture room per floor, a coffee and a meeting room per dozen offices."""
    return LECTURE if number == 0 else {3: COFFEE, 10: MEETING}.get(number % 14, OFFICE)


def _antennas(corridors: list[list[int]], read_rate: float, rng: np.random.Generator) -> list[Antenna]:
    """Return antennas at even distances along the corridors."""
    antennas: list[Antenna] = []
    for cells in corridors:
        count = round(len(cells) / CELLS_PER_ANTENNA)
        for centre in (np.arange(count) * len(cells)) // count:
            rate = rng.triangular(*READ_RATES) * read_rate / np.mean(READ_RATES)
            rates = {
                cells[(centre + side * distance) % len(cells)]: min(float(rate * share), 1.0)
                for distance, share in enumerate(REACH)
                for side in (-1, 1)
            }
            antennas.append(Antenna(f"antenna-{len(antennas) + 1:02}", rates))
    return antennas
