"""A building of two floors where people, and what they carry, have RFID tags.

Everybody comes in by the entrance, works in an office, fetches coffee, visits colleagues, reads the notices in the
corridor, and meets the own group at fixed times. Laptops, mugs and keys are taken along or left behind. The antennas
hang in the corridors alone and miss much (`building.py`), so that a tag in a room is where it was lost from sight.

`simulate` gives the readings, three hidden Markov models to make streams of them (`motion.py`), relations, and the
truth: where every tag was, and when the workbook's queries really held.
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

from anabranch.simulate.building import (
    COFFEE,
    CORRIDOR,
    LECTURE,
    MEETING,
    OFFICE,
    OUTSIDE,
    Building,
    Codes,
    make_building,
    survey,
)
from anabranch.simulate.files import write_files
from anabranch.simulate.motion import corridor_names, make_models
from anabranch.simulate.options import option

MINUTE = 60

ARRIVAL = 2 * MINUTE
"""Everybody has come in by then."""

BOARDS = 12
"""Cells of the corridors where notices hang."""

GROUP_SIZE = 4

# Where people go on to, with weights, and how many seconds they stay on average.
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

# Groups have an appointment every so often: a meeting and a lecture in turns, one group a little after the other.
BETWEEN_APPOINTMENTS = 25 * MINUTE
FIRST_APPOINTMENT = 6 * MINUTE
AFTER_THE_GROUP_BEFORE = 2 * MINUTE
LENGTH = {"meeting": 8 * MINUTE, "lecture": 10 * MINUTE}
LEAD = (40, 120)
"""How long before an appointment people get up, at least and at most."""

# The chance that an object is taken along, by what its owner is up to; what is left behind waits for the owner.
TAKEN = {
    "laptop": {"office": 0.93, "coffee": 0.1, "colleague": 0.4, "meeting": 0.85, "lecture": 0.6, "notices": 0.1},
    "mug": {"office": 0.95, "coffee": 0.9, "colleague": 0.2, "meeting": 0.5, "lecture": 0.2, "notices": 0.1},
    "keys": {"office": 0.98, "coffee": 0.8, "colleague": 0.8, "meeting": 0.9, "lecture": 0.9, "notices": 0.6},
    "phone": {"office": 0.98, "coffee": 0.7, "colleague": 0.8, "meeting": 0.95, "lecture": 0.9, "notices": 0.7},
    "notebook": {"office": 0.9, "coffee": 0.05, "colleague": 0.5, "meeting": 0.9, "lecture": 0.8, "notices": 0.1},
    "bag": {"office": 0.98, "coffee": 0.02, "colleague": 0.1, "meeting": 0.2, "lecture": 0.3, "notices": 0.02},
}

REHEARSAL_SECONDS = 3_600
"""How long others, one in each office, are watched with certainty to learn how tags move."""

REHEARSAL_OBJECTS = 3

STAYED = 5
"""The seconds of the query `stayed`."""

WORKBOOK = f"""\
-- People and what they carry, in a building with RFID antennas in its corridors. One second is one instant.

CREATE RELATION person (tag) FROM 'person.csv';
CREATE RELATION laptop (tag) FROM 'laptop.csv';
CREATE RELATION owner (object, person) FROM 'owner.csv';
CREATE RELATION office (tag, location) FROM 'office.csv';            -- an object's is that of its owner
CREATE RELATION meets_in (tag, location) FROM 'meets_in.csv';        -- where the group of a person meets
CREATE RELATION coffee_room (location) FROM 'coffee_room.csv';
CREATE RELATION meeting_room (location) FROM 'meeting_room.csv';
CREATE RELATION corridor (location) FROM 'corridor.csv';

CREATE STREAM readings KEY (tag) VALUE (reader) TIME t FROM 'readings.parquet';

-- Where every tag was, as far as the readings tell: in six ways, from what is known of the building. The model in
-- 'habits/' knows besides which doors people take, the one in 'heading/' that they walk on.
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

-- Somebody was outside the coffee rooms for two instants, and is inside one at the next.
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

-- Somebody enters the room where the own group meets.
CREATE QUERY meeting AS
  PATTERN at_smooth(x, l1) THEN at_smooth(x, l2)
  WHERE person(x) AND NOT meets_in(x, l1) AND meets_in(x, l2)
  GROUP BY x
  THRESHOLD 0.01;

-- Somebody has been in the own office for {STAYED} seconds.
CREATE QUERY stayed AS
  PATTERN {" THEN ".join(f"at_smooth(x, l{n})" for n in range(1, STAYED + 1))}
  WHERE person(x) AND {" AND ".join(f"office(x, l{n})" for n in range(1, STAYED + 1))}
  GROUP BY x
  THRESHOLD 0.01;
"""

Mask = NDArray[np.bool_]
"""Whether something holds, second by second."""

# What the first word of a seed sequence draws.
_OF_BUILDING, _OF_PEOPLE, _OF_REHEARSAL = range(3)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line can ask for."""

    people: int = option(8, "how many people", most=100_000)
    objects: int = option(3, "tagged objects a person carries", least=0, most=len(TAKEN))
    minutes: int = option(60, "how long they are watched", most=1_440)
    read_rate: float = option(0.6, "the chance that an antenna reads a tag below it, on average", least=0, most=1)
    rooms: int = option(90, "how many rooms the building has", least=24, most=1_000)


@dataclass(frozen=True, slots=True)
class Rfid:
    """What was read in the building, what is known of it, and what really happened.

    Attributes
    ----------
    readings : pa.Table
        What the antennas read: tag, t, reader.
    locations : pa.Table
        The truth: tag, t, location.
    events : pa.Table
        When each query of the workbook was true: query, tag, t.
    relations : dict of pa.Table
        By name: person, laptop, owner, office, meets_in, coffee_room, meeting_room, corridor.
    models : dict of dict of pa.Table
        Hidden Markov models, each of the tables initial, transition and detection: `building` knows the walls, `habits`
        also where people go, and `heading` the walls and that people walk on.
    """

    readings: pa.Table
    locations: pa.Table
    events: pa.Table
    relations: dict[str, pa.Table]
    models: dict[str, dict[str, pa.Table]]


@dataclass(frozen=True, slots=True)
class _Person:
    """Somebody with an office, a group and its rooms, and habits.

    Attributes
    ----------
    lead : int
        How many seconds before an appointment the person gets up.
    thirst : float
        The taste for coffee; 1 is average.
    pace : float
        Seconds a cell, on average.
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
    """A walk to somewhere and the stay there: what for, and the location at each second."""

    purpose: str
    path: list[int]


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tag: what it is on (a person, or a kind of object), whose it is, and where it was at each second."""

    name: str
    kind: str
    person: _Person
    path: Codes


def simulate(options: Options | None = None, seed: int = 0) -> Rfid:
    """Let people and their things move about the building, and read their tags.

    Parameters
    ----------
    options : Options, optional
        How many, for how long, and where. What a person or object does depends neither on how many others there are
        nor on how long they are watched.
    seed : int
        The same seed gives the same building and the same people.

    Examples
    --------
    >>> world = simulate(Options(people=1, minutes=5), seed=0)
    >>> world.readings.column_names
    ['tag', 't', 'reader']
    """
    options = options or Options()
    layout, measured = _generators(seed, _OF_BUILDING, 0)
    building = make_building(options.rooms, options.read_rate, layout)
    desks = layout.permutation(building.of_kind(OFFICE))
    tags: list[_Tag] = []
    readings = []
    for number in range(options.people):
        movement, antennas = _generators(seed, _OF_PEOPLE, number)
        for tag in _tags(number, building, desks, options.objects, options.minutes * MINUTE, movement):
            tags.append(tag)
            readings.append(_read(tag, building, antennas.spawn(1)[0]))
    return Rfid(
        readings=pa.concat_tables(readings),
        locations=pa.concat_tables(_located(tag, building) for tag in tags),
        events=pa.concat_tables(_events(tag, building) for tag in tags),
        relations=_relations(tags, building),
        models=make_models(building, _rehearsed(building, desks, seed), survey(building, measured)),
    )


def write(world: Rfid, folder: Path) -> Path:
    """Write a simulated building as files, with a workbook that asks four queries; return the workbook's path."""
    tables = {"readings": world.readings, "true_locations": world.locations, "true_events": world.events}
    workbook = write_files(folder, "rfid", WORKBOOK, tables, world.relations)
    for model, parts in world.models.items():
        (folder / model).mkdir(exist_ok=True)
        for name, table in parts.items():
            pyarrow.csv.write_csv(table, folder / model / f"{name}.csv")
    return workbook


def _generators(seed: int, what: int, number: int) -> Sequence[np.random.Generator]:
    return np.random.default_rng((seed, what, number)).spawn(2)


# ---------------------------------------------------------------- people and what they carry


def _tags(
    number: int, building: Building, desks: Codes, objects: int, seconds: int, rng: np.random.Generator
) -> Iterator[_Tag]:
    """A person and the things that the person carries, through the day."""
    own, *of_objects = rng.spawn(1 + objects)
    person = _person(number, building, desks, own)
    legs = list(_day(person, building, seconds, own))
    path = np.concatenate([leg.path for leg in legs])[:seconds]
    yield _Tag(person.name, "person", person, path)
    for kind, chances in zip(TAKEN, of_objects, strict=False):
        yield _Tag(f"{kind}-{number + 1:03}", kind, person, _carried(kind, legs, chances)[:seconds])


def _person(number: int, building: Building, desks: Codes, rng: np.random.Generator) -> _Person:
    """Who somebody is; colleagues have their offices whether or not they are simulated."""
    group = number // GROUP_SIZE
    members = [n for n in range(group * GROUP_SIZE, (group + 1) * GROUP_SIZE) if n != number]
    rooms = {kind: building.of_kind(kind) for kind in (MEETING, LECTURE)}
    return _Person(
        name=f"person-{number + 1:03}",
        office=int(desks[number % len(desks)]),
        colleagues=tuple(int(desks[n % len(desks)]) for n in members),
        rooms={kind: int(of_kind[group % len(of_kind)]) for kind, of_kind in rooms.items()},
        first_appointment=FIRST_APPOINTMENT + group * AFTER_THE_GROUP_BEFORE % BETWEEN_APPOINTMENTS,
        attends_lectures=bool(rng.random() < 0.6),
        lead=int(rng.integers(*LEAD)),
        thirst=rng.uniform(0.5, 1.5),
        pace=rng.uniform(1.2, 1.8),
    )


def _day(person: _Person, building: Building, seconds: int, rng: np.random.Generator) -> Iterator[_Leg]:
    """A stay, a walk, a stay, ..., beginning outside."""
    (here,) = building.of_kind(OUTSIDE)
    purpose, now = "arrival", int(rng.integers(1, ARRIVAL))
    yield _Leg(purpose, [here] * now)
    while now < seconds:
        kind, begins = _appointment(person, now)
        due = begins - person.lead
        purpose = kind if now >= due else _next_purpose(person, purpose, rng)
        goal = _goal(person, purpose, here, building, rng)
        walk = _walk(person, building.route(here, goal), rng)
        arrives = now + len(walk)
        if purpose == kind:
            leaves = begins + round(LENGTH[kind] * rng.uniform(0.9, 1.1))
        else:
            leaves = min(arrives + _stay(purpose, rng), due)
        walk += [goal] * max(leaves - arrives, SHORTEST_STAY)
        yield _Leg(purpose, walk)
        here, now = goal, now + len(walk)


def _appointment(person: _Person, now: int) -> tuple[str, int]:
    """The next appointment, a meeting or a lecture, and when it begins."""
    number = max(0, -(-(now - person.first_appointment) // BETWEEN_APPOINTMENTS))
    if number % 2 and not person.attends_lectures:
        number += 1
    return (LECTURE if number % 2 else MEETING), person.first_appointment + number * BETWEEN_APPOINTMENTS


def _next_purpose(person: _Person, purpose: str, rng: np.random.Generator) -> str:
    weights = {to: weight * (person.thirst if to == "coffee" else 1.0) for to, weight in HABITS[purpose].items()}
    odds = np.array(list(weights.values()))
    return str(rng.choice(list(weights), p=odds / odds.sum()))


def _goal(person: _Person, purpose: str, here: int, building: Building, rng: np.random.Generator) -> int:
    if purpose in person.rooms:
        return person.rooms[purpose]
    if purpose == "office":
        return person.office
    if purpose == "colleague":
        return int(rng.choice(person.colleagues))
    cells = building.of_kind(CORRIDOR)
    places = building.of_kind(COFFEE) if purpose == "coffee" else cells[:: len(cells) // BOARDS]
    # Most take the nearest, some the next.
    near = sorted(places, key=lambda place: len(building.route(here, place)))
    return int(near[rng.random() < 0.15])


def _walk(person: _Person, way: list[int], rng: np.random.Generator) -> list[int]:
    """One or two seconds in each location on the way."""
    twice = rng.random(len(way)) < person.pace - 1
    return np.repeat(way, 1 + twice).tolist()


def _stay(purpose: str, rng: np.random.Generator) -> int:
    """How many seconds somebody stays: rarely very short, unlike the geometric stays of a Markov chain."""
    return round(rng.gamma(2.0, MEAN_STAY[purpose] / 2.0))


def _carried(kind: str, legs: Sequence[_Leg], rng: np.random.Generator) -> Codes:
    """Where an object is: with its owner, or where it was left until the owner leaves that place again."""
    # In the morning everything is brought along.
    paths = [leg.path for leg in legs[:2]]
    for before, leg in itertools.pairwise(legs[1:]):
        place = paths[-1][-1]
        taken = place == before.path[-1] and rng.random() < TAKEN[kind][leg.purpose]
        paths.append(leg.path if taken else [place] * len(leg.path))
    return np.concatenate(paths)


# ---------------------------------------------------------------- what is seen, and what is true


def _read(tag: _Tag, building: Building, rng: np.random.Generator) -> pa.Table:
    """What the antennas read of a tag; they see it independently of each other, each second anew."""
    (t,) = np.nonzero(building.kinds[tag.path] == CORRIDOR)
    detection = building.detection()
    seen, antenna = np.nonzero(rng.random((len(t), len(detection))) < detection.T[tag.path[t]])
    names = np.array([antenna.name for antenna in building.antennas])
    return _table(tag, t[seen], reader=names[antenna])


def _located(tag: _Tag, building: Building) -> pa.Table:
    return _table(tag, np.arange(len(tag.path)), location=np.array(building.locations)[tag.path])


def _events(tag: _Tag, building: Building) -> pa.Table:
    """When each query of the workbook was true of a tag, by the words of the query."""
    kinds = building.kinds[tag.path]
    in_office, in_coffee_room = tag.path == tag.person.office, kinds == COFFEE
    in_meeting_room = tag.path == tag.person.rooms[MEETING]
    asked = {
        "person": {
            "coffee": [~in_coffee_room, ~in_coffee_room, in_coffee_room],
            "meeting": [~in_meeting_room, in_meeting_room],
            "stayed": [in_office] * STAYED,
        },
        "laptop": {"laptop_left": [in_office, kinds == CORRIDOR]},
    }
    parts = [_table(tag, np.empty(0, dtype=np.int64), query=np.empty(0, dtype=np.str_))]
    for query, conditions in asked.get(tag.kind, {}).items():
        t = _one_after_the_other(conditions)
        parts.append(_table(tag, t, query=np.full(len(t), query)))
    return pa.concat_tables(parts).select(["query", "tag", "t"])


def _one_after_the_other(conditions: Sequence[Mask]) -> Codes:
    """The instants at which the last condition holds, the one before it an instant earlier, and so on."""
    earlier = len(conditions) - 1
    held = [condition[n : len(condition) - earlier + n] for n, condition in enumerate(conditions)]
    return earlier + np.flatnonzero(np.all(held, axis=0))


def _table(tag: _Tag, t: Codes, **column: NDArray[np.str_]) -> pa.Table:
    """Rows of one tag: tag, t and another column."""
    ((name, values),) = column.items()
    tags = pa.repeat(pa.scalar(tag.name), len(t))
    return pa.table({"tag": tags, "t": pa.array(t, pa.int64()), name: pa.array(values, pa.string())})


# ---------------------------------------------------------------- what is known


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


def _rehearsed(building: Building, desks: Codes, seed: int) -> list[Codes]:
    """Where others were, second by second, on another day."""
    return [
        tag.path
        for number in range(len(desks))
        for tag in _tags(
            number, building, desks, REHEARSAL_OBJECTS, REHEARSAL_SECONDS, _generators(seed, _OF_REHEARSAL, number)[0]
        )
    ]
