"""A building with two floors where people and their objects have RFID tags.

People come in by the entrance, work in an office, fetch coffee, visit colleagues, read the notices in the corridor, and
meet their group at fixed times. They take laptops, mugs and keys along or leave them behind. The antennas are only in
the corridors and miss many tags (`building.py`), so a tag in a room is near the location where it was last read.

`simulate` returns the readings, three hidden Markov models to infer locations with (`motion.py`), relations, and the
ground truth: the location of every tag, and when the queries of the workbook were true.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from anabranch.arrays import I64, Bools
from anabranch.simulate.building import (
    COFFEE,
    CORRIDOR,
    LECTURE,
    MEETING,
    OFFICE,
    OUTSIDE,
    Building,
    make_building,
    survey,
)
from anabranch.simulate.files import write_files
from anabranch.simulate.habits import draw_stay, next_purpose
from anabranch.simulate.motion import corridor_names, make_models
from anabranch.simulate.options import option

MINUTE = 60

ARRIVAL = 2 * MINUTE
"""Everybody arrives within this time."""

BOARDS = 12
"""The number of corridor cells with notices."""

GROUP_SIZE = 4

# Where people go next, with weights, and how many seconds they stay on average.
HABITS = {
    "arrival": {"office": 1.0},
    "office": {"coffee": 1.0, "colleague": 0.6, "notices": 0.4},
    "coffee": {"office": 0.8, "colleague": 0.2},
    "colleague": {"office": 0.7, "coffee": 0.3},
    "meeting": {"office": 0.7, "coffee": 0.3},
    "lecture": {"office": 0.6, "coffee": 0.4},
    "notices": {"office": 0.8, "coffee": 0.2},
}
MEAN_STAY = {"office": 5 * MINUTE, "coffee": 1.5 * MINUTE, "colleague": 2.5 * MINUTE, "notices": 20}
SHORTEST_STAY = 3

# Groups have appointments at fixed times: a meeting and a lecture in turns, each group a little after the one before.
BETWEEN_APPOINTMENTS = 25 * MINUTE
FIRST_APPOINTMENT = 6 * MINUTE
GROUP_OFFSET = 2 * MINUTE
LENGTH = {"meeting": 8 * MINUTE, "lecture": 10 * MINUTE}
LEAD = (40, 120)
"""How many seconds before an appointment people leave, at least and at most."""

# The probability that an object is taken along, by the purpose of its owner; otherwise it waits for the owner.
TAKEN = {
    "laptop": {"office": 0.93, "coffee": 0.1, "colleague": 0.4, "meeting": 0.85, "lecture": 0.6, "notices": 0.1},
    "mug": {"office": 0.95, "coffee": 0.9, "colleague": 0.2, "meeting": 0.5, "lecture": 0.2, "notices": 0.1},
    "keys": {"office": 0.98, "coffee": 0.8, "colleague": 0.8, "meeting": 0.9, "lecture": 0.9, "notices": 0.6},
    "phone": {"office": 0.98, "coffee": 0.7, "colleague": 0.8, "meeting": 0.95, "lecture": 0.9, "notices": 0.7},
    "notebook": {"office": 0.9, "coffee": 0.05, "colleague": 0.5, "meeting": 0.9, "lecture": 0.8, "notices": 0.1},
    "bag": {"office": 0.98, "coffee": 0.02, "colleague": 0.1, "meeting": 0.2, "lecture": 0.3, "notices": 0.02},
}

REHEARSAL_SECONDS = 3_600
"""The length of the exactly observed paths of other people, one per office, from which moves are counted."""

REHEARSAL_OBJECTS = 3

STAYED = 5
"""The number of seconds of the query `stayed`."""

WORKBOOK = f"""\
-- People and their objects in a building with RFID antennas in its corridors. One instant is one second.

CREATE RELATION person (tag) FROM 'person.csv';
CREATE RELATION laptop (tag) FROM 'laptop.csv';
CREATE RELATION owner (object, person) FROM 'owner.csv';
CREATE RELATION office (tag, location) FROM 'office.csv';            -- an object has the office of its owner
CREATE RELATION meets_in (tag, location) FROM 'meets_in.csv';        -- where the group of a person meets
CREATE RELATION coffee_room (location) FROM 'coffee_room.csv';
CREATE RELATION meeting_room (location) FROM 'meeting_room.csv';
CREATE RELATION corridor (location) FROM 'corridor.csv';

CREATE STREAM readings KEY (tag) VALUE (reader) TIME t FROM 'readings.parquet';

-- The location of every tag, inferred from the readings by six methods, with a model that knows the building. The model
-- in 'habits/' also knows which doors people use, the one in 'heading/' that they keep walking in one direction.
CREATE STREAM at_smooth KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM 'building/' METHOD SMOOTH PRUNE 1e-6;
CREATE STREAM at_marginals KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM 'building/' METHOD MARGINALS PRUNE 1e-6;
CREATE STREAM at_filter KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM 'building/' METHOD FILTER PRUNE 1e-6;
CREATE STREAM at_particle KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM 'building/' METHOD PARTICLE(200) PRUNE 1e-6;
CREATE STREAM at_viterbi KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM 'building/' METHOD VITERBI;
CREATE STREAM at_mle KEY (tag) VALUE (location) TIME t
  INFERRED FROM readings USING HMM 'building/' METHOD MLE;

-- A person was in no coffee room for two instants, and is in one at the next.
CREATE QUERY coffee AS
  PATTERN at_smooth(x, l1) THEN at_smooth(x, l2) THEN at_smooth(x, l3)
  WHERE person(x) AND NOT coffee_room(l1) AND NOT coffee_room(l2) AND coffee_room(l3)
  GROUP BY x
  THRESHOLD 0.01;

-- A laptop was in its owner's office, and is in a corridor at the next instant.
CREATE QUERY laptop_left AS
  PATTERN at_smooth(x, l1) THEN at_smooth(x, l2)
  WHERE laptop(x) AND office(x, l1) AND corridor(l2)
  GROUP BY x
  THRESHOLD 0.01;

-- A person enters the room where their group meets.
CREATE QUERY meeting AS
  PATTERN at_smooth(x, l1) THEN at_smooth(x, l2)
  WHERE person(x) AND NOT meets_in(x, l1) AND meets_in(x, l2)
  GROUP BY x
  THRESHOLD 0.01;

-- A person has been in their own office for {STAYED} seconds.
CREATE QUERY stayed AS
  PATTERN {" THEN ".join(f"at_smooth(x, l{n})" for n in range(1, STAYED + 1))}
  WHERE person(x) AND {" AND ".join(f"office(x, l{n})" for n in range(1, STAYED + 1))}
  GROUP BY x
  THRESHOLD 0.01;
"""

# The generators of the building, of the people, and of the people whose moves are counted.
_BUILDING_RNG, _PEOPLE_RNG, _REHEARSAL_RNG = range(3)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    people: int = option(8, "number of people", most=100_000)
    objects: int = option(3, "number of tagged objects per person", least=0, most=len(TAKEN))
    minutes: int = option(60, "length of the simulation", most=1_440)
    read_rate: float = option(0.6, "mean probability that an antenna reads a tag below it", least=0, most=1)
    rooms: int = option(90, "number of rooms of the building", least=24, most=1_000)


@dataclass(frozen=True, slots=True)
class Rfid:
    """The readings, models of the building, and the ground truth.

    Attributes
    ----------
    readings : pa.Table
        The readings of the antennas: tag, t, reader.
    locations : pa.Table
        The true locations: tag, t, location.
    events : pa.Table
        When each query of the workbook was true: query, tag, t.
    relations : dict of pa.Table
        By name: person, laptop, owner, office, meets_in, coffee_room, meeting_room, corridor.
    models : dict of dict of pa.Table
        Hidden Markov models, each with the tables initial, transition and detection: `building` knows the walls,
        `habits` also where people go, and `heading` the walls and that people keep walking in one direction.
    """

    readings: pa.Table
    locations: pa.Table
    events: pa.Table
    relations: dict[str, pa.Table]
    models: dict[str, dict[str, pa.Table]]


@dataclass(frozen=True, slots=True)
class _Person:
    """A person with an office, a group and its rooms, and habits.

    Attributes
    ----------
    lead : int
        How many seconds before an appointment the person leaves.
    thirst : float
        The taste for coffee; 1 is average.
    pace : float
        The mean number of seconds per cell.
    """

    name: str
    office: int
    colleagues: tuple[int, ...]
    rooms: dict[str, int]
    first_appointment: int
    attends_lectures: bool
    lead: int
    thirst: float
    pace: float


@dataclass(frozen=True, slots=True)
class _Leg:
    """A walk and the stay at its end: the purpose, and the location at each second."""

    purpose: str
    path: list[int]


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tag: its kind (a person or a kind of object), its owner, and its location at each second."""

    name: str
    kind: str
    person: _Person
    path: I64


def simulate(options: Options | None = None, seed: int = 0) -> Rfid:
    """Simulate people and their objects in the building, and the readings of their tags.

    Parameters
    ----------
    options : Options, optional
        More people or a longer time do not change the data of the others.
    seed : int
        The same seed gives the same building and the same people.

    Examples
    --------
    >>> world = simulate(Options(people=1, minutes=5), seed=0)
    >>> world.readings.column_names
    ['tag', 't', 'reader']
    """
    options = options or Options()
    layout_rng, survey_rng = _generators(seed, _BUILDING_RNG, 0)
    building = make_building(options.rooms, options.read_rate, layout_rng)
    desks = layout_rng.permutation(building.of_kind(OFFICE))
    tags: list[_Tag] = []
    readings = []
    for number in range(options.people):
        movement_rng, antenna_rng = _generators(seed, _PEOPLE_RNG, number)
        for tag in _tags(number, building, desks, options.objects, options.minutes * MINUTE, movement_rng):
            tags.append(tag)
            readings.append(_read(tag, building, antenna_rng.spawn(1)[0]))
    return Rfid(
        readings=pa.concat_tables(readings),
        locations=pa.concat_tables(_located(tag, building) for tag in tags),
        events=pa.concat_tables(_events(tag, building) for tag in tags),
        relations=_relations(tags, building),
        models=make_models(building, _rehearsal_paths(building, desks, seed), survey(building, survey_rng)),
    )


def write(world: Rfid, folder: Path) -> Path:
    """Write the files and a workbook with four queries; return the path of the workbook."""
    tables = {"readings": world.readings, "true_locations": world.locations, "true_events": world.events}
    workbook = write_files(folder, "rfid", WORKBOOK, tables, world.relations)
    for model, parts in world.models.items():
        (folder / model).mkdir(exist_ok=True)
        for name, table in parts.items():
            pyarrow.csv.write_csv(table, folder / model / f"{name}.csv")
    return workbook


def _generators(seed: int, what: int, number: int) -> Sequence[np.random.Generator]:
    return np.random.default_rng((seed, what, number)).spawn(2)


# ---------------------------------------------------------------- people and objects


def _tags(
    number: int, building: Building, desks: I64, objects: int, seconds: int, rng: np.random.Generator
) -> Iterator[_Tag]:
    """Yield the tags of a person and of the objects of this person."""
    person_rng, *object_rngs = rng.spawn(1 + objects)
    person = _person(number, building, desks, person_rng)
    legs = list(_day(person, building, seconds, person_rng))
    path = np.concatenate([leg.path for leg in legs])[:seconds]
    yield _Tag(person.name, "person", person, path)
    for kind, object_rng in zip(TAKEN, object_rngs, strict=False):
        yield _Tag(f"{kind}-{number + 1:03}", kind, person, _object_path(kind, legs, object_rng)[:seconds])


def _person(number: int, building: Building, desks: I64, rng: np.random.Generator) -> _Person:
    """Return a person; colleagues have offices whether or not they are simulated."""
    group = number // GROUP_SIZE
    members = [n for n in range(group * GROUP_SIZE, (group + 1) * GROUP_SIZE) if n != number]
    rooms = {kind: building.of_kind(kind) for kind in (MEETING, LECTURE)}
    return _Person(
        name=f"person-{number + 1:03}",
        office=int(desks[number % len(desks)]),
        colleagues=tuple(int(desks[n % len(desks)]) for n in members),
        rooms={kind: int(locations[group % len(locations)]) for kind, locations in rooms.items()},
        first_appointment=FIRST_APPOINTMENT + group * GROUP_OFFSET % BETWEEN_APPOINTMENTS,
        attends_lectures=bool(rng.random() < 0.6),
        lead=int(rng.integers(*LEAD)),
        thirst=rng.uniform(0.5, 1.5),
        pace=rng.uniform(1.2, 1.8),
    )


def _day(person: _Person, building: Building, seconds: int, rng: np.random.Generator) -> Iterator[_Leg]:
    """Yield the legs of a day: a stay outside, then walks, each with a stay at its end."""
    (here,) = building.of_kind(OUTSIDE)
    purpose, now = "arrival", int(rng.integers(1, ARRIVAL))
    yield _Leg(purpose, [here] * now)
    while now < seconds:
        kind, begins = _appointment(person, now)
        due = begins - person.lead
        purpose = kind if now >= due else next_purpose(HABITS[purpose], person.thirst, rng)
        goal = _goal(person, purpose, here, building, rng)
        walk = _walk(person, building.route(here, goal), rng)
        arrives = now + len(walk)
        if purpose == kind:
            leaves = begins + round(LENGTH[kind] * rng.uniform(0.9, 1.1))
        else:
            leaves = min(arrives + round(draw_stay(MEAN_STAY[purpose], rng)), due)
        walk += [goal] * max(leaves - arrives, SHORTEST_STAY)
        yield _Leg(purpose, walk)
        here, now = goal, now + len(walk)


def _appointment(person: _Person, now: int) -> tuple[str, int]:
    """Return the next appointment, a meeting or a lecture, and when it begins."""
    number = max(0, -(-(now - person.first_appointment) // BETWEEN_APPOINTMENTS))
    if number % 2 and not person.attends_lectures:
        number += 1
    return (LECTURE if number % 2 else MEETING), person.first_appointment + number * BETWEEN_APPOINTMENTS


def _goal(person: _Person, purpose: str, here: int, building: Building, rng: np.random.Generator) -> int:
    if purpose in person.rooms:
        return person.rooms[purpose]
    if purpose == "office":
        return person.office
    if purpose == "colleague":
        return int(rng.choice(person.colleagues))
    cells = building.of_kind(CORRIDOR)
    goals = building.of_kind(COFFEE) if purpose == "coffee" else cells[:: len(cells) // BOARDS]
    # Most people go to the nearest one, some to the second nearest.
    nearest = sorted(goals, key=lambda goal: len(building.route(here, goal)))
    return int(nearest[rng.random() < 0.15])


def _walk(person: _Person, route: list[int], rng: np.random.Generator) -> list[int]:
    """Return the location at each second of a walk, one or two seconds per location."""
    twice = rng.random(len(route)) < person.pace - 1
    return np.repeat(route, 1 + twice).tolist()


def _object_path(kind: str, legs: Sequence[_Leg], rng: np.random.Generator) -> I64:
    """Return the location of an object: with its owner, or where it was left, until the owner leaves from there."""
    # At first the owner brings all objects.
    paths = [leg.path for leg in legs[:2]]
    for before, leg in itertools.pairwise(legs[1:]):
        location = paths[-1][-1]
        taken = location == before.path[-1] and rng.random() < TAKEN[kind][leg.purpose]
        paths.append(leg.path if taken else [location] * len(leg.path))
    return np.concatenate(paths)


# ---------------------------------------------------------------- readings and ground truth


def _read(tag: _Tag, building: Building, rng: np.random.Generator) -> pa.Table:
    """Return the readings of a tag; antennas and seconds are independent."""
    (t,) = np.nonzero(building.kinds[tag.path] == CORRIDOR)
    detection = building.detection()
    seen, antenna = np.nonzero(rng.random((len(t), len(detection))) < detection.T[tag.path[t]])
    names = np.array([antenna.name for antenna in building.antennas])
    return _table(tag, t[seen], reader=names[antenna])


def _located(tag: _Tag, building: Building) -> pa.Table:
    return _table(tag, np.arange(len(tag.path)), location=np.array(building.locations)[tag.path])


def _events(tag: _Tag, building: Building) -> pa.Table:
    """Return when each query of the workbook was true for a tag, by the definition of the query."""
    kinds = building.kinds[tag.path]
    in_office, in_coffee_room = tag.path == tag.person.office, kinds == COFFEE
    in_meeting_room = tag.path == tag.person.rooms[MEETING]
    conditions_by_kind = {
        "person": {
            "coffee": [~in_coffee_room, ~in_coffee_room, in_coffee_room],
            "meeting": [~in_meeting_room, in_meeting_room],
            "stayed": [in_office] * STAYED,
        },
        "laptop": {"laptop_left": [in_office, kinds == CORRIDOR]},
    }
    parts = [_table(tag, np.empty(0, dtype=np.int64), query=np.empty(0, dtype=np.str_))]
    for query, conditions in conditions_by_kind.get(tag.kind, {}).items():
        t = _consecutive(conditions)
        parts.append(_table(tag, t, query=np.full(len(t), query)))
    return pa.concat_tables(parts).select(["query", "tag", "t"])


def _consecutive(conditions: Sequence[Bools]) -> I64:
    """Return the instants at which the last condition holds, the one before it an instant earlier, and so on."""
    earlier = len(conditions) - 1
    aligned = [condition[n : len(condition) - earlier + n] for n, condition in enumerate(conditions)]
    return earlier + np.flatnonzero(np.all(aligned, axis=0))


def _table(tag: _Tag, t: I64, **column: NDArray[np.str_]) -> pa.Table:
    """Return rows of one tag: tag, t and one more column."""
    ((name, values),) = column.items()
    tags = pa.repeat(pa.scalar(tag.name), len(t))
    return pa.table({"tag": tags, "t": pa.array(t, pa.int64()), name: pa.array(values, pa.string())})


# ---------------------------------------------------------------- relations and models


def _relations(tags: Sequence[_Tag], building: Building) -> dict[str, pa.Table]:
    names = np.array(building.locations)
    people = [tag for tag in tags if tag.kind == "person"]
    objects = [tag for tag in tags if tag.kind != "person"]
    rows: dict[str, dict[str, Sequence[str] | NDArray[np.str_]]] = {
        "person": {"tag": [tag.name for tag in people]},
        "laptop": {"tag": [tag.name for tag in tags if tag.kind == "laptop"]},
        "owner": {"object": [tag.name for tag in objects], "person": [tag.person.name for tag in objects]},
        "office": {"tag": [tag.name for tag in tags], "location": names[[tag.person.office for tag in tags]]},
        "meets_in": {
            "tag": [tag.name for tag in people],
            "location": names[[tag.person.rooms[MEETING] for tag in people]],
        },
        "coffee_room": {"location": names[building.of_kind(COFFEE)]},
        "meeting_room": {"location": names[building.of_kind(MEETING, LECTURE)]},
        "corridor": {"location": corridor_names(building)},
    }
    return {
        relation: pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        for relation, columns in rows.items()
    }


def _rehearsal_paths(building: Building, desks: I64, seed: int) -> list[I64]:
    """Return the paths of other people and their objects, from which moves are counted."""
    return [
        tag.path
        for number in range(len(desks))
        for tag in _tags(
            number, building, desks, REHEARSAL_OBJECTS, REHEARSAL_SECONDS, _generators(seed, _REHEARSAL_RNG, number)[0]
        )
    ]
