"""A building of two floors whose antennas watch the corridors alone.

Each floor has one corridor that closes to a ring. It is cut into cells of a step or two; rooms open onto it on both
sides, some door to door. Two staircases join the floors, and one cell of the first leads outside. Antennas hang
over the corridors: each reaches a few cells, and how well it reads differs from one to the next. Where somebody is
who has left the corridor can only be inferred.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FLOORS = (1, 2)
CORRIDOR, STAIRS, OUTSIDE = "corridor", "stairs", "outside"
OFFICE, COFFEE, MEETING, LECTURE = "office", "coffee", "meeting", "lecture"

CELLS_A_ROOM = 2.8
"""Cells of the corridor for each room."""

LEFT_SHARE = 0.55
"""The rooms on the left of a corridor; more than on the right, so that doors face each other here and there."""

STAIR_CELLS = 4

CELLS_AN_ANTENNA = 6.6
READ_RATES = (0.1, 0.8, 0.9)
"""The lowest, the most frequent and the highest read rate of an antenna, where the average is not asked for."""
REACH = (1.0, 0.95, 0.9, 0.8, 0.5, 0.2)
"""What is left of an antenna's read rate so many cells away from it."""

SURVEY_TRIES = 200
"""How often each antenna was tried in each cell, to learn its read rates."""

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
"""Locations by their place in `Building.locations`, or seconds since the start."""


@dataclass(frozen=True, slots=True)
class Antenna:
    """A reader, and the chance that it reads a tag in one second, by the location of the tag."""

    name: str
    rates: dict[int, float]


@dataclass(frozen=True, slots=True, eq=False)
class Building:
    """Locations, the ways between them, and antennas. Locations are numbered in the order of their names.

    Attributes
    ----------
    locations : tuple of str
        The name of each location.
    kinds : array of str
        What each is: corridor, stairs, outside, office, coffee, meeting or lecture.
    neighbours : tuple of tuples
        The locations that one step from each can lead to, besides itself.
    antennas : tuple of Antenna
        In the corridors.
    """

    locations: tuple[str, ...]
    kinds: NDArray[np.str_]
    neighbours: tuple[tuple[int, ...], ...]
    antennas: tuple[Antenna, ...]
    _ways: dict[int, Codes] = field(default_factory=dict, repr=False)

    def of_kind(self, *kinds: str) -> Codes:
        """The locations of some kinds, in order."""
        return np.flatnonzero(np.isin(self.kinds, kinds))

    def detection(self) -> Floats:
        """`detection()[r, x]`: the chance that antenna r reads a tag at x in one second."""
        rates = np.zeros((len(self.antennas), len(self.locations)))
        for number, antenna in enumerate(self.antennas):
            rates[number, list(antenna.rates)] = list(antenna.rates.values())
        return rates

    def moves(self) -> tuple[Codes, Codes]:
        """Every move that one step can make, standing still among them, as places before and after."""
        pairs = [(here, there) for here, near in enumerate(self.neighbours) for there in sorted((here, *near))]
        before, after = np.array(pairs).T
        return before, after

    def route(self, here: int, goal: int) -> list[int]:
        """The locations on the shortest way between two others, both excluded."""
        towards = self._towards(goal)
        way = []
        while (here := int(towards[here])) != goal:
            way.append(here)
        return way

    def _towards(self, goal: int) -> Codes:
        """The neighbour of each location that is nearest to a goal; ways are kept, for many go the same."""
        if goal not in self._ways:
            towards = np.full(len(self.locations), -1)
            towards[goal] = goal
            frontier = deque([goal])
            while frontier:
                here = frontier.popleft()
                for there in self.neighbours[here]:
                    if towards[there] < 0:
                        towards[there] = here
                        frontier.append(there)
            self._ways[goal] = towards
        return self._ways[goal]


def make_building(rooms: int, read_rate: float, rng: np.random.Generator) -> Building:
    """Build as many rooms, half of them on each floor, with the corridors and antennas that they need.

    Parameters
    ----------
    rooms : int
        Of them 90 make a building of about 350 locations and 38 antennas.
    read_rate : float
        The average chance that an antenna reads a tag below it in one second.
    rng : Generator
        Draws how much better or worse each antenna is.
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


def survey(building: Building, rng: np.random.Generator) -> Floats:
    """The read rates as a survey finds them: nearly right, and never 0 where a tag can be read."""
    true = building.detection()
    return np.where(true > 0, (rng.binomial(SURVEY_TRIES, true) + 1) / (SURVEY_TRIES + 2), 0.0)


@dataclass(slots=True)
class _Draft:
    """A building that is still being added to."""

    locations: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    neighbours: list[set[int]] = field(default_factory=list)

    def add(self, name: str, kind: str) -> int:
        """A new location, by its number."""
        self.locations.append(name)
        self.kinds.append(kind)
        self.neighbours.append(set())
        return len(self.locations) - 1

    def join(self, *way: int) -> None:
        """Make a way along these locations, in both directions."""
        for here, there in zip(way, way[1:], strict=False):
            self.neighbours[here].add(there)
            self.neighbours[there].add(here)


def _add_floor(draft: _Draft, floor: int, rooms: int) -> list[int]:
    """The corridor of a floor and the rooms along it; returns the cells of the corridor."""
    cells = [draft.add(f"corridor-{floor}-{n:03}", CORRIDOR) for n in range(1, round(rooms * CELLS_A_ROOM) + 1)]
    draft.join(*cells, cells[0])
    left = round(rooms * LEFT_SHARE)
    doors = sorted(int(n * len(cells) / side) for side in (left, rooms - left) for n in range(side))
    for number, door in enumerate(doors):
        kind = _kind_of_room(number)
        draft.join(cells[door], draft.add(f"{kind}-{floor}{number + 1:02}", kind))
    return cells


def _kind_of_room(number: int) -> str:
    """A lecture room a floor, then a coffee room and a meeting room for every dozen offices."""
    return LECTURE if number == 0 else {3: COFFEE, 10: MEETING}.get(number % 14, OFFICE)


def _antennas(corridors: list[list[int]], read_rate: float, rng: np.random.Generator) -> list[Antenna]:
    """Antennas at even distances along the corridors."""
    antennas: list[Antenna] = []
    for cells in corridors:
        many = round(len(cells) / CELLS_AN_ANTENNA)
        for centre in (np.arange(many) * len(cells)) // many:
            rate = rng.triangular(*READ_RATES) * read_rate / np.mean(READ_RATES)
            rates = {
                cells[(centre + side * distance) % len(cells)]: min(float(rate * share), 1.0)
                for distance, share in enumerate(REACH)
                for side in (-1, 1)
            }
            antennas.append(Antenna(f"antenna-{len(antennas) + 1:02}", rates))
    return antennas
