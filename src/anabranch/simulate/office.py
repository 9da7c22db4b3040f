"""An office floor where RFID antennas watch the hall, and miss much of it.

    office-1   office-3    office-4     office-5    coffee-room
    [ hall-1 ] [ hall-2 ]  [ hall-3 ]   [ hall-4 ]  [ hall-5 ]
    office-2   meeting-room                         office-6

People work in their offices, fetch coffee, visit colleagues, meet, and look at the notices at the end of the
hall. No antenna looks into an office; those of the hall overlap and miss a tag almost every other time, so
where somebody is has to be inferred. `simulate` gives the readings, what smoothing makes of them (streams ready to
be queried), and the truth to hold the answers against.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.inference.infer import Inference, Inferred
from anabranch.inference.model import Entries, Hmm, Sensing, make_hmm
from anabranch.simulate.files import timestamps, write_files
from anabranch.simulate.options import option

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEP = timedelta(seconds=5)
STEPS_PER_MINUTE = timedelta(minutes=1) // STEP

OFFICES = tuple(f"office-{n}" for n in range(1, 7))
HALLS = tuple(f"hall-{n}" for n in range(1, 6))
COFFEE_ROOM, MEETING_ROOM = "coffee-room", "meeting-room"
LOCATIONS = (*OFFICES, *HALLS, COFFEE_ROOM, MEETING_ROOM)
INDEX = {location: number for number, location in enumerate(LOCATIONS)}

# The part of the hall onto which each location opens, counted from 0.
DOORS = dict(zip(OFFICES, (0, 0, 1, 2, 3, 4), strict=True)) | {MEETING_ROOM: 1, COFFEE_ROOM: 4}
DOORS |= {hall: number for number, hall in enumerate(HALLS)}

# The chance that an antenna sees a tag in one step, by the place of the tag.
ANTENNAS = {
    "west": {"hall-1": 0.6, "hall-2": 0.2},
    "middle": {"hall-2": 0.2, "hall-3": 0.6, "hall-4": 0.2},
    "east": {"hall-4": 0.2, "hall-5": 0.6},
    "coffee-door": {"hall-5": 0.1, COFFEE_ROOM: 0.85},
}

NOTICE_BOARD = HALLS[-1]
NAMES = ("ana", "ben", "chloe", "dan", "eva", "finn", "gita", "hugo", "ines", "jon", "kira", "leo")

# Where people go on to, with weights, and how many minutes they stay on average.
HABITS = {
    "office": {"coffee": 1.0, "colleague": 0.5, "meeting": 0.2, "notices": 0.5},
    "coffee": {"office": 0.9, "colleague": 0.1},
    "colleague": {"office": 0.6, "coffee": 0.4},
    "meeting": {"office": 0.7, "coffee": 0.3},
    "notices": {"office": 0.9, "coffee": 0.1},
}
MEAN_STAY = {"office": 7.0, "coffee": 1.5, "colleague": 3.0, "meeting": 8.0, "notices": 0.3}

NEGLIGIBLE = 1e-4
"""Rows of less weight than this are left out of the streams."""

REHEARSAL_STEPS = 20_000
"""How long a person is watched, with certainty, to learn the habits that smoothing assumes."""

WORKBOOK = """\
-- Who went from the own office, through nothing but the hall, to the coffee room?

CREATE RELATION hall (location) FROM 'hall.csv';
CREATE RELATION office (person, location) FROM 'office.csv';
CREATE RELATION coffee_room (location) FROM 'coffee_room.csv';

-- Where everyone was, smoothed from the antennas' readings: each row depends on the one before.
CREATE STREAM at
  KEY (person) VALUE (location) TIME t
  MODEL MARKOV
  FROM 'at.parquet';

-- The same instant by instant, as if they had nothing to do with each other.
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
"""Locations by their place in `LOCATIONS`, or steps since the start."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line can ask for."""

    people: int = option(6, "how many people", most=1_000)
    minutes: int = option(120, "how long they are watched", most=1_440)


@dataclass(frozen=True, slots=True)
class Office:
    """What was read on the floor, what that says, and what really happened.

    Attributes
    ----------
    at : pa.Table
        MARKOV stream: person, t, location, prev_location, p.
    at_marginals : pa.Table
        INDEPENDENT stream of the smoothed marginals: person, t, location, p.
    readings : pa.Table
        What the antennas saw: person, t, antenna.
    locations : pa.Table
        The truth: person, t, location.
    trips : pa.Table
        The true trips for coffee: person, left (the last instant in the office), t (the first in the
        coffee room).
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
    """Somebody with an office, and a taste for coffee (1 is average)."""

    name: str
    office: str
    thirst: float


def simulate(options: Options | None = None, seed: int = 0) -> Office:
    """Let people walk about the floor, read their tags, and smooth the readings.

    Parameters
    ----------
    options : Options, optional
        How many people; beyond six they share offices, and more of them leave the others as they were. And how long, in
        steps of five seconds from 09:00 UTC on.
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
    persons, days = [], []
    for number in range(options.people):
        movement, antennas, rehearsal = map(np.random.default_rng, np.random.SeedSequence((seed, number)).spawn(3))
        person = _person(number, movement)
        path = _path(person, steps, movement)
        seen = antennas.random((steps, len(ANTENNAS))) < _detection()[:, path].T
        persons.append(person)
        days.append(_day(person, path, seen, _model(person, rehearsal)))
    return Office(
        **{name: pa.concat_tables(day[name] for day in days) for name in days[0]},
        hall=pa.table({"location": list(HALLS)}),
        office=pa.table({"person": [who.name for who in persons], "location": [who.office for who in persons]}),
        coffee_room=pa.table({"location": [COFFEE_ROOM]}),
    )


def write(office: Office, folder: Path) -> Path:
    """Write an office as files, with a workbook that asks who went for coffee; return the workbook's path."""
    streams = {"at": office.at, "at_marginals": office.at_marginals, "readings": office.readings}
    truth = {"true_locations": office.locations, "true_trips": office.trips}
    relations = {"hall": office.hall, "office": office.office, "coffee_room": office.coffee_room}
    return write_files(folder, "office", WORKBOOK, streams | truth, relations)


def _person(number: int, rng: np.random.Generator) -> _Person:
    name = NAMES[number] if number < len(NAMES) else f"person-{number + 1}"
    return _Person(name, OFFICES[number % len(OFFICES)], thirst=rng.uniform(0.5, 1.5))


def _path(person: _Person, steps: int, rng: np.random.Generator) -> Codes:
    """Where a person is at each step, as codes of locations: a stay, a walk, a stay, ..."""
    path: list[str] = []
    purpose, here = "office", person.office
    while len(path) < steps:
        path += [here] * _stay(purpose, rng)
        purpose = _next_purpose(person, purpose, rng)
        goal = _goal(person, purpose, rng)
        for cell in _route(here, goal):
            path += [cell] * (2 if rng.random() < 0.2 else 1)
        here = goal
    return np.array([INDEX[location] for location in path[:steps]])


def _stay(purpose: str, rng: np.random.Generator) -> int:
    """How many steps somebody stays: rarely very short, unlike the geometric stays of a Markov chain."""
    return 1 + round(rng.gamma(2.0, MEAN_STAY[purpose] / 2.0) * STEPS_PER_MINUTE)


def _next_purpose(person: _Person, purpose: str, rng: np.random.Generator) -> str:
    weights = dict(HABITS[purpose])
    if "coffee" in weights:
        weights["coffee"] *= person.thirst
    odds = np.array(list(weights.values()))
    return str(rng.choice(list(weights), p=odds / odds.sum()))


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
    """The parts of the hall between two locations, both excluded."""
    start, end = DOORS[here], DOORS[goal]
    step = 1 if start <= end else -1
    return [HALLS[cell] for cell in range(start, end + step, step) if HALLS[cell] not in (here, goal)]


def _detection() -> Floats:
    return np.array([[seen.get(location, 0.0) for location in LOCATIONS] for seen in ANTENNAS.values()])


def _model(person: _Person, rng: np.random.Generator) -> Hmm:
    """What smoothing assumes of a person and the antennas."""
    tables = _entries(_transition(person, rng)), Sensing.DETECTION, _entries(_detection())
    return make_hmm(LOCATIONS, tuple(ANTENNAS), _initial(person), *tables)


def _entries(table: Floats) -> Entries:
    rows, columns = np.nonzero(table)
    return Entries(rows.astype(np.int32), columns.astype(np.int32), table[rows, columns])


def _initial(person: _Person) -> Floats:
    """Everyone begins the day at the own desk."""
    initial = np.zeros(len(LOCATIONS))
    initial[INDEX[person.office]] = 1.0
    return initial


def _transition(person: _Person, rng: np.random.Generator) -> Floats:
    """How a person moves in one step, counted on another day; what the floor allows is never impossible."""
    counts: Floats = 0.5 * _adjacency()
    path = _path(person, REHEARSAL_STEPS, rng)
    np.add.at(counts, (path[:-1], path[1:]), 1.0)
    counts /= counts.sum(axis=1, keepdims=True)
    return counts


def _adjacency() -> Floats:
    """1 where one step can lead: to the same place, through a door, or along the hall."""
    adjacent = np.eye(len(LOCATIONS))
    for location, cell in DOORS.items():
        neighbours = [HALLS[cell]]
        if location in HALLS:
            neighbours = list(HALLS[max(0, cell - 1) : cell + 2])
        for neighbour in neighbours:
            adjacent[INDEX[location], INDEX[neighbour]] = adjacent[INDEX[neighbour], INDEX[location]] = 1.0
    return adjacent


def _day(person: _Person, path: Codes, seen: NDArray[np.bool_], model: Hmm) -> dict[str, pa.Table]:
    """The tables of one person, by their name in `Office`."""
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
    """Each way from the office through nothing but the hall to the coffee room: last step here, first there."""
    halls = {INDEX[hall] for hall in HALLS}
    left: int | None = None
    through_hall = False
    for step, place in enumerate(path):
        if place == office:
            left, through_hall = step, False
        elif place in halls:
            through_hall = True
        else:
            if place == INDEX[COFFEE_ROOM] and left is not None and through_hall:
                yield left, step
            left = None


def _inferred(model: Hmm, method: str, seen: NDArray[np.bool_]) -> Inferred:
    """What the readings say, without what weighs nothing: over a long stay that adds up to about a hundredth."""
    inference = Inference(model, method, prune=NEGLIGIBLE)
    starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    return inference.advance(inference.start(), starts, np.nonzero(seen)[1].astype(np.int32))


def _chain_rows(inferred: Inferred) -> dict[str, pa.Array]:
    """The rows of the MARKOV stream."""
    return {
        "t": _times(inferred.step),
        "location": _names(inferred.location),
        "prev_location": _names(inferred.prev),
        "p": pa.array(inferred.p),
    }


def _marginal_rows(inferred: Inferred) -> dict[str, pa.Array]:
    """The rows of the INDEPENDENT stream."""
    return {"t": _times(inferred.step), "location": _names(inferred.location), "p": pa.array(inferred.p)}


def _times(steps: Codes) -> pa.Array:
    return timestamps(START, steps, np.timedelta64(STEP))


def _names(codes: Codes) -> pa.Array:
    """Locations by their codes; -1, no location, is NULL."""
    return pa.array(np.array(LOCATIONS)[codes], pa.string(), mask=codes < 0)
