"""An office floor with RFID antennas in the hall, which miss many tags.

    office-1   office-3    office-4     office-5    coffee-room
    [ hall-1 ] [ hall-2 ]  [ hall-3 ]   [ hall-4 ]  [ hall-5 ]
    office-2   meeting-room                         office-6

People work in their offices, fetch coffee, visit colleagues, meet, and read the notices at the end of the hall. No
antenna covers an office; those of the hall overlap and miss a tag almost every other time, so locations must be
inferred. `simulate` returns the readings, streams of smoothed locations, and the ground truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.arrays import F64, Bools
from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from anabranch.inference.infer import Inference, Inferred
from anabranch.simulate.files import timestamps, write_files
from anabranch.simulate.habits import draw_stay, next_purpose
from anabranch.simulate.options import option

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEP = timedelta(seconds=5)
STEPS_PER_MINUTE = timedelta(minutes=1) // STEP

OFFICES = tuple(f"office-{n}" for n in range(1, 7))
HALLS = tuple(f"hall-{n}" for n in range(1, 6))
COFFEE_ROOM, MEETING_ROOM = "coffee-room", "meeting-room"
LOCATIONS = (*OFFICES, *HALLS, COFFEE_ROOM, MEETING_ROOM)
INDEX = {location: number for number, location in enumerate(LOCATIONS)}

# The part of the hall next to each location, counted from 0.
DOORS = dict(zip(OFFICES, (0, 0, 1, 2, 3, 4), strict=True)) | {MEETING_ROOM: 1, COFFEE_ROOM: 4}
DOORS |= {hall: number for number, hall in enumerate(HALLS)}

# The probability that an antenna reads a tag in one step, by the location of the tag.
ANTENNAS = {
    "west": {"hall-1": 0.6, "hall-2": 0.2},
    "middle": {"hall-2": 0.2, "hall-3": 0.6, "hall-4": 0.2},
    "east": {"hall-4": 0.2, "hall-5": 0.6},
    "coffee-door": {"hall-5": 0.1, COFFEE_ROOM: 0.85},
}

NOTICE_BOARD = HALLS[-1]
NAMES = ("ana", "ben", "chloe", "dan", "eva", "finn", "gita", "hugo", "ines", "jon", "kira", "leo")

# Where people go next, with weights, and how many minutes they stay on average.
HABITS = {
    "office": {"coffee": 1.0, "colleague": 0.5, "meeting": 0.2, "notices": 0.5},
    "coffee": {"office": 0.9, "colleague": 0.1},
    "colleague": {"office": 0.6, "coffee": 0.4},
    "meeting": {"office": 0.7, "coffee": 0.3},
    "notices": {"office": 0.9, "coffee": 0.1},
}
MEAN_STAY = {"office": 7.0, "coffee": 1.5, "colleague": 3.0, "meeting": 8.0, "notices": 0.3}

NEGLIGIBLE = 1e-4
"""Rows with a lower probability are left out of the streams."""

REHEARSAL_STEPS = 20_000
"""The length of the exactly observed path from which the habits of a person are learned."""

WORKBOOK = """\
-- Who went from their own office, through the hall only, to the coffee room?

CREATE RELATION hall (location) FROM 'hall.csv';
CREATE RELATION office (person, location) FROM 'office.csv';
CREATE RELATION coffee_room (location) FROM 'coffee_room.csv';

-- Locations, smoothed from the readings of the antennas: each location depends on the one before.
CREATE STREAM at
  KEY (person) VALUE (location) TIME t
  MODEL MARKOV
  FROM 'at.parquet';

-- The same for each instant separately, as if instants were independent.
CREATE STREAM at_marginals
  KEY (person) VALUE (location) TIME t
  MODEL INDEPENDENT
  FROM 'at_marginals.parquet';

CREATE QUERY coffee AS
  PATTERN at(p, l1) THEN at(p, l2)+<p | hall(l2)> THEN at(p, l3)
  WHERE office(p, l1) AND coffee_room(l3)
  GROUP BY p
  THRESHOLD 0.1;

CREATE QUERY anyone AS
  PATTERN at(p, l1) THEN at(p, l2)+<p | hall(l2)> THEN at(p, l3)
  WHERE office(p, l1) AND coffee_room(l3)
  THRESHOLD 0.1;
"""

Codes = NDArray[np.int64] | NDArray[np.int32]
"""Locations by their index in `LOCATIONS`, or steps since the start."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    people: int = option(6, "number of people", most=1_000)
    minutes: int = option(120, "length of the simulation", most=1_440)


@dataclass(frozen=True, slots=True)
class Office:
    """The readings, the locations inferred from them, and the ground truth.

    Attributes
    ----------
    at : pa.Table
        MARKOV stream: person, t, location, prev_location, p.
    at_marginals : pa.Table
        INDEPENDENT stream of the smoothed marginals: person, t, location, p.
    readings : pa.Table
        The readings of the antennas: person, t, antenna.
    locations : pa.Table
        The true locations: person, t, location.
    trips : pa.Table
        The true trips for coffee: person, left (the last instant in the office), t (the first in the coffee room).
    hall, office, coffee_room : pa.Table
        Relations: hall(location), office(person, location), coffee_room(location).
    """

    at: pa.Table
    at_marginals: pa.Table
    readings: pa.Table
    locations: pa.Table
    trips: pa.Table
    hall: pa.Table
    office: pa.Table
    coffee_room: pa.Table


@dataclass(frozen=True, slots=True)
class _Person:
    """A person with an office and a taste for coffee (1 is average)."""

    name: str
    office: str
    thirst: float


def simulate(options: Options | None = None, seed: int = 0) -> Office:
    """Simulate people on the floor and the readings of their tags, and smooth the readings.

    Parameters
    ----------
    options : Options, optional
        More than six people share offices; more people do not change the data of the others. Time has steps of five
        seconds from 09:00 UTC.
    seed : int
        The same seed gives the same data.

    Examples
    --------
    >>> office = simulate(Options(people=1, minutes=10), seed=0)
    >>> office.at.column_names
    ['person', 't', 'location', 'prev_location', 'p']
    """
    options = options or Options()
    steps = options.minutes * STEPS_PER_MINUTE
    persons, person_tables = [], []
    for number in range(options.people):
        movement, antennas, rehearsal = map(np.random.default_rng, np.random.SeedSequence((seed, number)).spawn(3))
        person = _person(number, movement)
        path = _path(person, steps, movement)
        seen = antennas.random((steps, len(ANTENNAS))) < _detection()[:, path].T
        persons.append(person)
        person_tables.append(_tables(person, path, seen, _model(person, rehearsal)))
    return Office(
        **{name: pa.concat_tables(tables[name] for tables in person_tables) for name in person_tables[0]},
        hall=pa.table({"location": list(HALLS)}),
        office=pa.table(
            {"person": [person.name for person in persons], "location": [person.office for person in persons]}
        ),
        coffee_room=pa.table({"location": [COFFEE_ROOM]}),
    )


def write(office: Office, folder: Path) -> Path:
    """Write the files and a workbook with queries for trips to the coffee room; return the path of the workbook."""
    streams = {"at": office.at, "at_marginals": office.at_marginals, "readings": office.readings}
    truth = {"true_locations": office.locations, "true_trips": office.trips}
    relations = {"hall": office.hall, "office": office.office, "coffee_room": office.coffee_room}
    return write_files(folder, "office", WORKBOOK, streams | truth, relations)


def _person(number: int, rng: np.random.Generator) -> _Person:
    name = NAMES[number] if number < len(NAMES) else f"person-{number + 1}"
    return _Person(name, OFFICES[number % len(OFFICES)], thirst=rng.uniform(0.5, 1.5))


def _path(person: _Person, steps: int, rng: np.random.Generator) -> Codes:
    """Return the location of a person at each step: a stay, a walk, a stay, ..."""
    path: list[str] = []
    purpose, here = "office", person.office
    while len(path) < steps:
        path += [here] * (1 + round(draw_stay(MEAN_STAY[purpose], rng) * STEPS_PER_MINUTE))
        purpose = next_purpose(HABITS[purpose], person.thirst, rng)
        goal = _goal(person, purpose, rng)
        for cell in _route(here, goal):
            path += [cell] * (2 if rng.random() < 0.2 else 1)
        here = goal
    return np.array([INDEX[location] for location in path[:steps]])


def _goal(person: _Person, purpose: str, rng: np.random.Generator) -> str:
    if purpose == "colleague":
        return str(rng.choice([office for office in OFFICES if office != person.office]))
    return {
        "office": person.office,
        "coffee": COFFEE_ROOM,
        "meeting": MEETING_ROOM,
        "notices": NOTICE_BOARD,
    }[purpose]


def _route(here: str, goal: str) -> list[str]:
    """Return the parts of the hall between two locations, both excluded."""
    start, end = DOORS[here], DOORS[goal]
    step = 1 if start <= end else -1
    return [HALLS[cell] for cell in range(start, end + step, step) if HALLS[cell] not in (here, goal)]


def _detection() -> F64:
    return np.array([[seen.get(location, 0.0) for location in LOCATIONS] for seen in ANTENNAS.values()])


def _model(person: _Person, rng: np.random.Generator) -> Hmm:
    """Return the hidden Markov model of a person and the antennas that smoothing uses."""
    tables = Entries.of_dense(_transition(person, rng)), Sensing.DETECTION, Entries.of_dense(_detection())
    return make_hmm(LOCATIONS, tuple(ANTENNAS), _initial(person), *tables)


def _initial(person: _Person) -> F64:
    """Return the first location: everyone begins in their own office."""
    initial = np.zeros(len(LOCATIONS))
    initial[INDEX[person.office]] = 1.0
    return initial


def _transition(person: _Person, rng: np.random.Generator) -> F64:
    """Return the transitions of a person, from moves counted on another day; no possible move has probability 0."""
    counts: F64 = 0.5 * _adjacency()
    path = _path(person, REHEARSAL_STEPS, rng)
    np.add.at(counts, (path[:-1], path[1:]), 1.0)
    counts /= counts.sum(axis=1, keepdims=True)
    return counts


def _adjacency() -> F64:
    """Return a matrix with 1 for each possible move of one step: staying, through a door, or along the hall."""
    adjacent = np.eye(len(LOCATIONS))
    for location, cell in DOORS.items():
        neighbours = [HALLS[cell]]
        if location in HALLS:
            neighbours = list(HALLS[max(0, cell - 1) : cell + 2])
        for neighbour in neighbours:
            adjacent[INDEX[location], INDEX[neighbour]] = adjacent[INDEX[neighbour], INDEX[location]] = 1.0
    return adjacent


def _tables(person: _Person, path: Codes, seen: Bools, model: Hmm) -> dict[str, pa.Table]:
    """Return the tables of one person, by their name in `Office`."""
    read_at, antenna = np.nonzero(seen)
    trips = np.array(list(_trips(path, INDEX[person.office]))).reshape(-1, 2)
    columns = {
        "at": _chain_rows(_inferred(model, "SMOOTH", seen)),
        "at_marginals": _marginal_rows(_inferred(model, "MARGINALS", seen)),
        "readings": {"t": _times(read_at), "antenna": pa.array(np.array(list(ANTENNAS))[antenna], pa.string())},
        "locations": {"t": _times(np.arange(len(path))), "location": _names(path)},
        "trips": {"left": _times(trips[:, 0]), "t": _times(trips[:, 1])},
    }
    tables = {}
    for name, values in columns.items():
        rows = len(next(iter(values.values())))
        tables[name] = pa.table({"person": pa.array([person.name] * rows, pa.string()), **values})
    return tables


def _trips(path: Codes, office: int) -> Iterator[tuple[int, int]]:
    """Yield each trip from the office through the hall only to the coffee room: its last step here, its first there."""
    halls = {INDEX[hall] for hall in HALLS}
    left: int | None = None
    through_hall = False
    for step, location in enumerate(path):
        if location == office:
            left, through_hall = step, False
        elif location in halls:
            through_hall = True
        else:
            if location == INDEX[COFFEE_ROOM] and left is not None and through_hall:
                yield left, step
            left = None


def _inferred(model: Hmm, method: str, seen: Bools) -> Inferred:
    """Infer locations from the readings, and prune; over a long stay, about 1% of the probability is pruned."""
    inference = Inference(model, method, prune=NEGLIGIBLE)
    starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    return inference.advance(inference.start(), starts, np.nonzero(seen)[1].astype(np.int32))


def _chain_rows(inferred: Inferred) -> dict[str, pa.Array]:
    """Return the rows of the MARKOV stream."""
    return {
        "t": _times(inferred.step),
        "location": _names(inferred.location),
        "prev_location": _names(inferred.prev),
        "p": pa.array(inferred.p),
    }


def _marginal_rows(inferred: Inferred) -> dict[str, pa.Array]:
    """Return the rows of the INDEPENDENT stream."""
    return {"t": _times(inferred.step), "location": _names(inferred.location), "p": pa.array(inferred.p)}


def _times(steps: Codes) -> pa.Array:
    return timestamps(START, steps, np.timedelta64(STEP))


def _names(codes: Codes) -> pa.Array:
    """Return the names of locations; NULL for -1, which is no location."""
    return pa.array(np.array(LOCATIONS)[codes], pa.string(), mask=codes < 0)
