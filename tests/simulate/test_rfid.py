"""The building: reproducible, a valid model that allows what happened, and truth that is what the queries mean."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.families import objections
from anabranch.language.parser import parse
from anabranch.simulate.building import CORRIDOR, READ_RATES, Building, make_building
from anabranch.simulate.rfid import STAYED, WORKBOOK, Options, Rfid, simulate, write
from tests.oracles.pattern import ask

QUERIES = ("coffee", "laptop_left", "meeting", "stayed")
PLAIN = ("building", "habits")
MODELS = (*PLAIN, "heading")


@pytest.fixture(scope="module")
def world() -> Rfid:
    return simulate(Options(), seed=0)


@pytest.fixture(scope="module")
def building() -> Building:
    return make_building(90, 0.6, np.random.default_rng(0))


def paths(world: Rfid) -> dict[str, list[str]]:
    """Where each tag was, second by second."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in world.locations.to_pylist():
        assert row["t"] == len(found[row["tag"]])
        found[row["tag"]].append(row["location"])
    return found


def pairs(table: pa.Table, first: str, second: str) -> set[tuple[str, str]]:
    return set(zip(table[first].to_pylist(), table[second].to_pylist(), strict=True))


def column(world: Rfid, relation: str) -> set[str]:
    (only,) = world.relations[relation].column_names
    return set(world.relations[relation][only].to_pylist())


# ---------------------------------------------------------------- the building


def test_the_building_has_the_size_of_a_real_one(building: Building) -> None:
    assert len(set(building.locations)) == len(building.locations) == 351
    assert len(building.antennas) == 38
    kinds, many = np.unique(building.kinds, return_counts=True)
    assert dict(zip(kinds, many, strict=True)) == {
        "corridor": 252, "office": 76, "coffee": 6, "meeting": 6, "lecture": 2, "stairs": 8, "outside": 1,
    }  # fmt: skip


def test_ways_lead_both_ways_and_everywhere(building: Building) -> None:
    for here, near in enumerate(building.neighbours):
        assert near
        assert all(here in building.neighbours[there] for there in near)
    for goal in range(len(building.locations)):
        way = [0, *building.route(0, goal), goal]
        assert all(there == here or there in building.neighbours[here] for here, there in pairwise(way))


def test_rooms_open_onto_the_corridor_and_some_share_a_cell(building: Building) -> None:
    doors = [building.neighbours[room] for room in building.of_kind("office", "coffee", "meeting", "lecture")]
    assert all(len(cells) == 1 and building.kinds[cells[0]] == CORRIDOR for cells in doors)
    assert len(set(doors)) < len(doors)


def test_antennas_see_a_few_neighbouring_cells_of_the_corridor(building: Building) -> None:
    highest = []
    for antenna in building.antennas:
        cells = set(antenna.rates)
        assert {building.kinds[cell] for cell in cells} == {CORRIDOR}
        assert 5 <= len(cells) <= 12
        assert all(cells & set(building.neighbours[cell]) for cell in cells)
        highest.append(max(antenna.rates.values()))
    assert min(highest) >= READ_RATES[0]
    assert max(highest) <= READ_RATES[-1]
    assert max(highest) - min(highest) > 0.5


def test_a_read_rate_is_the_average_that_was_asked_for() -> None:
    for asked in (0.3, 0.6):
        antennas = make_building(1000, asked, np.random.default_rng(0)).antennas
        assert np.mean([max(antenna.rates.values()) for antenna in antennas]) == pytest.approx(asked, rel=0.05)
    blind = simulate(Options(people=2, minutes=10, read_rate=0.0))
    assert blind.readings.num_rows == 0
    assert all(model["detection"].num_rows == 0 for model in blind.models.values())


# ---------------------------------------------------------------- the models


@pytest.mark.parametrize("model", MODELS)
def test_the_tables_are_a_hidden_markov_model(world: Rfid, model: str) -> None:
    initial, transition, detection = (world.models[model][name] for name in ("initial", "transition", "detection"))
    assert sum(initial["p"].to_pylist()) == pytest.approx(1.0)
    totals = transition.group_by("prev_location").aggregate([("p", "sum")])
    assert np.allclose(totals["p_sum"], 1.0, atol=1e-12)
    assert set(totals["prev_location"].to_pylist()) == set(transition["location"].to_pylist()), "no way ends"
    assert set(initial["location"].to_pylist()) <= set(transition["location"].to_pylist())
    for table in (initial, transition, detection):
        assert pc.all(pc.greater(table["p"], 0)).as_py()
        assert pc.all(pc.less_equal(table["p"], 1)).as_py()
    assert transition.num_rows < 4 * len(totals), "few moves are possible"


def moves_by_sort(transition: pa.Table, leaving: str) -> dict[str, set[float]]:
    """The chances of the moves out of the locations of a kind, by the kind that they lead to; rounded."""
    found = defaultdict(set)
    for before, after, p in zip(*transition.to_pydict().values(), strict=True):
        if before.split("-")[0] == leaving:
            found["stay" if before == after else after.split("-")[0]].add(round(p, 9))
    return found


def test_to_the_model_of_the_building_every_door_is_alike_and_to_that_of_habits_none(world: Rfid) -> None:
    building, habits = (world.models[model]["transition"] for model in PLAIN)
    assert building.drop_columns("p").equals(habits.drop_columns("p")), "both know the same walls"
    for room in ("office", "coffee", "meeting", "lecture"):
        assert moves_by_sort(building, room) == moves_by_sort(building, "office")
    doors = moves_by_sort(building, "corridor")
    assert doors["coffee"] <= doors["office"]
    assert max(doors["office"]) < 1.5 * min(doors["office"]), "less where a cell has two doors or leads to the stairs"
    popular = moves_by_sort(habits, "corridor")
    assert min(popular["coffee"]) > max(doors["coffee"])
    assert max(popular["office"]) > 3 * min(popular["office"])


def test_the_models_differ_in_the_moves_alone(world: Rfid) -> None:
    building, habits = (world.models[model] for model in PLAIN)
    assert building["initial"] == habits["initial"]
    assert building["detection"] == habits["detection"]


@pytest.mark.parametrize("model", MODELS)
def test_only_cells_of_the_corridor_are_seen(world: Rfid, model: str) -> None:
    assert set(world.models[model]["detection"]["location"].to_pylist()) <= column(world, "corridor")


def test_to_the_model_of_the_heading_people_walk_on(world: Rfid) -> None:
    on, back = [], []
    for before, after, p in zip(*world.models["heading"]["transition"].to_pydict().values(), strict=True):
        if before.startswith("corridor") and after.startswith("corridor") and before != after:
            origin = before.split(" from ")[1]
            (back if after.split(" from ")[0] == origin else on).append(p)
    assert np.median(on) > 10 * np.median(back)


def as_states(path: list[str], model: str, names: set[str]) -> list[str]:
    """A path in the states of a model: to that of the heading, a cell is told apart by where it was entered from."""
    if model != "heading":
        return path
    found, came_from = [path[0]], path[0]
    for before, here in pairwise(path):
        came_from = before if here != before else came_from
        headed = f"{here} from {came_from}"
        found.append(headed if headed in names else here)
    return found


@pytest.mark.parametrize("model", MODELS)
def test_the_truth_is_possible_in_the_model(world: Rfid, model: str) -> None:
    moves = pairs(world.models[model]["transition"], "prev_location", "location")
    beginnings = set(world.models[model]["initial"]["location"].to_pylist())
    names = {name for name, _ in moves}
    for locations in paths(world).values():
        path = as_states(locations, model, names)
        assert path[0] in beginnings
        assert set(pairwise(path)) <= moves


def test_a_model_begins_wherever_a_tag_is_first_read(world: Rfid) -> None:
    """Inference may begin at the first second or at the first reading."""
    model = world.models["building"]
    assert set(model["detection"]["location"].to_pylist()) <= set(model["initial"]["location"].to_pylist())


def test_readings_are_what_the_model_thinks_possible_and_miss_a_good_part(world: Rfid) -> None:
    sees = pairs(world.models["building"]["detection"], "reader", "location")
    where = paths(world)
    for row in world.readings.to_pylist():
        assert (row["reader"], where[row["tag"]][row["t"]]) in sees
    corridor = column(world, "corridor")
    walked = sum(location in corridor for path in where.values() for location in path)
    read = len(set(zip(world.readings["tag"].to_pylist(), world.readings["t"].to_pylist(), strict=True)))
    assert 0.4 < read / walked < 0.8


# ---------------------------------------------------------------- people and objects


def test_an_object_moves_with_its_owner_alone_and_is_left_behind_at_times(world: Rfid) -> None:
    where = paths(world)
    apart = defaultdict(set)
    for row in world.relations["owner"].to_pylist():
        thing, owner = where[row["object"]], where[row["person"]]
        for t, (before, after) in enumerate(pairwise(thing), start=1):
            assert before == after or (before, after) == (owner[t - 1], owner[t])
        kind = row["object"].split("-")[0]
        apart[kind] |= {place for place, other in zip(thing, owner, strict=True) if place != other}
    offices = set(world.relations["office"]["location"].to_pylist())
    assert apart["laptop"] & offices
    assert any(place.startswith(("meeting", "coffee", "lecture")) for places in apart.values() for place in places)


def test_people_walk_a_cell_in_one_or_two_seconds_and_stay_for_long(world: Rfid) -> None:
    corridor, stays = column(world, "corridor"), []
    for tag, path in paths(world).items():
        if tag.startswith("person"):
            changes = np.flatnonzero([here != there for here, there in pairwise(path)])
            runs = [(path[end], int(length)) for end, length in zip(changes[1:], np.diff(changes), strict=True)]
            walking = [length for place, length in runs if place in corridor]
            assert np.mean(np.isin(walking, (1, 2))) > 0.97, "but for the notices"
            stays += [length for place, length in runs if place.startswith("office")]
    assert np.mean(stays) > 100
    assert np.mean(np.array(stays) < 15) < 0.1, "a geometric stay of this mean would be short more often"


def test_a_group_meets_at_one_time_in_one_room(world: Rfid) -> None:
    rooms = dict(zip(*world.relations["meets_in"].to_pydict().values(), strict=True))
    entered = defaultdict(list)
    for row in world.events.to_pylist():
        if row["query"] == "meeting":
            entered[rooms[row["tag"]]].append(row["t"])
    assert len(entered) == 2
    for times in entered.values():
        assert len(times) >= 4
        assert sorted(times)[3] - min(times) < 180


def test_the_same_seed_gives_the_same_building_and_people() -> None:
    first, second, other = (simulate(Options(people=2, minutes=10), seed) for seed in (5, 5, 6))
    assert all(getattr(first, name) == getattr(second, name) for name in Rfid.__slots__)
    assert not first.readings.equals(other.readings)
    assert not first.models["building"]["detection"].equals(other.models["building"]["detection"])


def test_others_objects_and_time_leave_a_person_alone() -> None:
    few, many = (
        simulate(Options(people, objects, minutes), 5) for people, objects, minutes in ((2, 1, 10), (90, 6, 15))
    )
    known = few.relations["office"]["tag"]
    for name in ("readings", "locations", "events"):
        table = getattr(many, name)
        same = table.filter(pc.and_(pc.is_in(table["tag"], known), pc.less(table["t"], 600)))
        assert same.equals(getattr(few, name)), name
    assert few.models == many.models


def test_thousands_of_tags() -> None:
    world = simulate(Options(people=250, minutes=20), seed=1)
    assert world.locations.num_rows == 1000 * 1200
    assert len(column(world, "person")) == 250
    assert len(column(world, "laptop")) == 250


# ---------------------------------------------------------------- the true events


def literally(world: Rfid) -> set[tuple[str, str, int]]:
    """The events by the words of the queries: (query, tag, t)."""
    office = pairs(world.relations["office"], "tag", "location")
    meets_in = pairs(world.relations["meets_in"], "tag", "location")
    coffee_room, corridor = column(world, "coffee_room"), column(world, "corridor")
    found = set()
    for tag, at in paths(world).items():
        for t in range(len(at)):
            if tag in column(world, "person"):
                if t >= 2 and at[t - 2] not in coffee_room and at[t - 1] not in coffee_room and at[t] in coffee_room:
                    found.add(("coffee", tag, t))
                if t >= 1 and (tag, at[t - 1]) not in meets_in and (tag, at[t]) in meets_in:
                    found.add(("meeting", tag, t))
                if t >= STAYED - 1 and all((tag, at[t - n]) in office for n in range(STAYED)):
                    found.add(("stayed", tag, t))
            elif tag in column(world, "laptop") and t >= 1 and (tag, at[t - 1]) in office and at[t] in corridor:
                found.add(("laptop_left", tag, t))
    return found


def test_true_events_are_what_the_words_of_the_queries_say() -> None:
    world = simulate(Options(people=4, objects=1, minutes=30), seed=2)
    events = [tuple(row.values()) for row in world.events.to_pylist()]
    assert set(events) == literally(world)
    assert len(set(events)) == len(events)
    assert {query for query, _, _ in events} == set(QUERIES)


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_find_exactly_the_true_events_where_the_truth_is_known(query: str) -> None:
    world = simulate(Options(people=1, objects=1, minutes=7), seed=20)
    rows: list[dict[str, Any]] = [
        {"tag": tag, "t": t, "location": location, "prev_location": path[t - 1] if t else None, "p": 1.0}
        for tag, path in paths(world).items()
        for t, location in enumerate(path)
    ]
    relations = {name: {tuple(row.values()) for row in table.to_pylist()} for name, table in world.relations.items()}
    answers = ask(WORKBOOK, query, {"at_smooth": rows}, relations)
    true = {(row["t"], row["tag"]): 1.0 for row in world.events.to_pylist() if row["query"] == query}
    assert answers == true
    assert true


# ---------------------------------------------------------------- files


def test_the_workbook_is_right_and_its_files_are_there(tmp_path: Path) -> None:
    world = simulate(Options(people=2, minutes=5), seed=0)
    workbook = write(world, tmp_path / "new" / "folder")
    text = workbook.read_text(encoding="utf-8")
    catalog = Catalog()
    assert declare(parse(text, "rfid.abq"), catalog) == []
    assert objections(catalog.queries(), catalog) == []
    assert {query.name for query in catalog.queries()} == set(QUERIES)
    assert all((workbook.parent / name).is_file() for name in re.findall(r"FROM '([^']+)'", text))
    assert pyarrow.parquet.read_table(workbook.parent / "readings.parquet").equals(world.readings)
    assert pyarrow.csv.read_csv(workbook.parent / "office.csv").equals(world.relations["office"])
    for model, tables in world.models.items():
        for name, table in tables.items():
            read = pyarrow.csv.read_csv(workbook.parent / model / f"{name}.csv")
            assert read.drop_columns("p").equals(table.drop_columns("p"))
            assert np.array_equal(read["p"], table["p"])
