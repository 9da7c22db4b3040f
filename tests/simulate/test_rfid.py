"""The building: reproducible data, models that allow the truth, and events as the queries define them."""

from __future__ import annotations

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

from anabranch.simulate.building import CORRIDOR, READ_RATES, Building, make_building
from anabranch.simulate.rfid import STAYED, WORKBOOK, Options, Rfid, simulate, write
from tests.oracles.pattern import ask
from tests.simulate.workbooks import check_workbook

#: Ten seconds: not in `make quick`.
pytestmark = pytest.mark.slow

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
    """Return the location of each tag at each second."""
    by_tag: dict[str, list[str]] = defaultdict(list)
    for row in world.locations.to_pylist():
        assert row["t"] == len(by_tag[row["tag"]])
        by_tag[row["tag"]].append(row["location"])
    return by_tag


def pairs(table: pa.Table, first: str, second: str) -> set[tuple[str, str]]:
    return set(zip(table[first].to_pylist(), table[second].to_pylist(), strict=True))


def column(world: Rfid, relation: str) -> set[str]:
    (name,) = world.relations[relation].column_names
    return set(world.relations[relation][name].to_pylist())


# ---------------------------------------------------------------- building


def test_the_size_of_the_building(building: Building) -> None:
    assert len(set(building.locations)) == len(building.locations) == 351
    assert len(building.antennas) == 38
    kinds, counts = np.unique(building.kinds, return_counts=True)
    assert dict(zip(kinds, counts, strict=True)) == {
        "corridor": 252, "office": 76, "coffee": 6, "meeting": 6, "lecture": 2, "stairs": 8, "outside": 1,
    }  # fmt: skip


def test_all_locations_are_connected_in_both_directions(building: Building) -> None:
    for here, near in enumerate(building.neighbours):
        assert near
        assert all(here in building.neighbours[there] for there in near)
    for goal in range(len(building.locations)):
        path = [0, *building.route(0, goal), goal]
        assert all(there == here or there in building.neighbours[here] for here, there in pairwise(path))


def test_rooms_open_onto_the_corridor_and_some_share_a_cell(building: Building) -> None:
    doors = [building.neighbours[room] for room in building.of_kind("office", "coffee", "meeting", "lecture")]
    assert all(len(cells) == 1 and building.kinds[cells[0]] == CORRIDOR for cells in doors)
    assert len(set(doors)) < len(doors)


def test_antennas_cover_a_few_neighbouring_corridor_cells(building: Building) -> None:
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


def test_the_mean_read_rate() -> None:
    for rate in (0.3, 0.6):
        antennas = make_building(1000, rate, np.random.default_rng(0)).antennas
        assert np.mean([max(antenna.rates.values()) for antenna in antennas]) == pytest.approx(rate, rel=0.05)
    blind = simulate(Options(people=2, minutes=10, read_rate=0.0))
    assert blind.readings.num_rows == 0
    assert all(model["detection"].num_rows == 0 for model in blind.models.values())


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("model", MODELS)
def test_the_tables_are_a_hidden_markov_model(world: Rfid, model: str) -> None:
    initial, transition, detection = (world.models[model][name] for name in ("initial", "transition", "detection"))
    assert sum(initial["p"].to_pylist()) == pytest.approx(1.0)
    totals = transition.group_by("prev_location").aggregate([("p", "sum")])
    assert np.allclose(totals["p_sum"], 1.0, atol=1e-12)
    before, after = set(totals["prev_location"].to_pylist()), set(transition["location"].to_pylist())
    assert before == after, "every location has a next one"
    assert set(initial["location"].to_pylist()) <= set(transition["location"].to_pylist())
    for table in (initial, transition, detection):
        assert pc.all(pc.greater(table["p"], 0)).as_py()
        assert pc.all(pc.less_equal(table["p"], 1)).as_py()
    assert transition.num_rows < 4 * len(totals), "few moves are possible"


def moves_by_kind(transition: pa.Table, leaving: str) -> dict[str, set[float]]:
    """Return the rounded probabilities of moves from locations of a kind, by the kind of the next location."""
    moves = defaultdict(set)
    for before, after, p in zip(*transition.to_pydict().values(), strict=True):
        if before.split("-")[0] == leaving:
            moves["stay" if before == after else after.split("-")[0]].add(round(p, 9))
    return moves


def test_all_doors_are_alike_in_the_building_model_and_differ_in_the_habits_model(world: Rfid) -> None:
    building, habits = (world.models[model]["transition"] for model in PLAIN)
    assert building.drop_columns("p").equals(habits.drop_columns("p")), "both know the same walls"
    for room in ("office", "coffee", "meeting", "lecture"):
        assert moves_by_kind(building, room) == moves_by_kind(building, "office")
    doors = moves_by_kind(building, "corridor")
    assert doors["coffee"] <= doors["office"]
    assert max(doors["office"]) < 1.5 * min(doors["office"]), "less where a cell has two doors or leads to the stairs"
    popular = moves_by_kind(habits, "corridor")
    assert min(popular["coffee"]) > max(doors["coffee"])
    assert max(popular["office"]) > 3 * min(popular["office"])


def test_the_models_differ_only_in_the_moves(world: Rfid) -> None:
    building, habits = (world.models[model] for model in PLAIN)
    assert building["initial"] == habits["initial"]
    assert building["detection"] == habits["detection"]


@pytest.mark.parametrize("model", MODELS)
def test_only_corridor_cells_have_read_rates(world: Rfid, model: str) -> None:
    assert set(world.models[model]["detection"]["location"].to_pylist()) <= column(world, "corridor")


def test_in_the_heading_model_people_keep_walking_in_one_direction(world: Rfid) -> None:
    on, back = [], []
    for before, after, p in zip(*world.models["heading"]["transition"].to_pydict().values(), strict=True):
        if before.startswith("corridor") and after.startswith("corridor") and before != after:
            origin = before.split(" from ")[1]
            (back if after.split(" from ")[0] == origin else on).append(p)
    assert np.median(on) > 10 * np.median(back)


def as_states(path: list[str], model: str, names: set[str]) -> list[str]:
    """Return a path in the states of a model; with heading, a corridor cell has a state for each origin."""
    if model != "heading":
        return path
    states, origin = [path[0]], path[0]
    for before, here in pairwise(path):
        origin = before if here != before else origin
        state = f"{here} from {origin}"
        states.append(state if state in names else here)
    return states


@pytest.mark.parametrize("model", MODELS)
def test_the_truth_is_possible_in_the_model(world: Rfid, model: str) -> None:
    moves = pairs(world.models[model]["transition"], "prev_location", "location")
    beginnings = set(world.models[model]["initial"]["location"].to_pylist())
    names = {name for name, _ in moves}
    for locations in paths(world).values():
        path = as_states(locations, model, names)
        assert path[0] in beginnings
        assert set(pairwise(path)) <= moves


def test_a_model_can_begin_wherever_a_tag_is_first_read(world: Rfid) -> None:
    """Inference may begin at the first second or at the first reading."""
    model = world.models["building"]
    assert set(model["detection"]["location"].to_pylist()) <= set(model["initial"]["location"].to_pylist())


def test_readings_are_possible_in_the_model_and_many_are_missed(world: Rfid) -> None:
    readable = pairs(world.models["building"]["detection"], "reader", "location")
    path_of = paths(world)
    for row in world.readings.to_pylist():
        assert (row["reader"], path_of[row["tag"]][row["t"]]) in readable
    corridor = column(world, "corridor")
    walked = sum(location in corridor for path in path_of.values() for location in path)
    read = len(set(zip(world.readings["tag"].to_pylist(), world.readings["t"].to_pylist(), strict=True)))
    assert 0.4 < read / walked < 0.8


# ---------------------------------------------------------------- people and objects


def test_an_object_moves_only_with_its_owner_and_is_sometimes_left_behind(world: Rfid) -> None:
    path_of = paths(world)
    apart = defaultdict(set)
    for row in world.relations["owner"].to_pylist():
        carried, owner = path_of[row["object"]], path_of[row["person"]]
        for t, (before, after) in enumerate(pairwise(carried), start=1):
            assert before == after or (before, after) == (owner[t - 1], owner[t])
        kind = row["object"].split("-")[0]
        apart[kind] |= {here for here, there in zip(carried, owner, strict=True) if here != there}
    offices = set(world.relations["office"]["location"].to_pylist())
    assert apart["laptop"] & offices
    left = {location for locations in apart.values() for location in locations}
    assert any(location.startswith(("meeting", "coffee", "lecture")) for location in left)


def test_people_need_one_or_two_seconds_per_cell_and_stay_long(world: Rfid) -> None:
    corridor, stays = column(world, "corridor"), []
    for tag, path in paths(world).items():
        if tag.startswith("person"):
            changes = np.flatnonzero([here != there for here, there in pairwise(path)])
            runs = [(path[end], int(length)) for end, length in zip(changes[1:], np.diff(changes), strict=True)]
            walking = [length for location, length in runs if location in corridor]
            assert np.mean(np.isin(walking, (1, 2))) > 0.97, "except at the notices"
            stays += [length for location, length in runs if location.startswith("office")]
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


def test_more_people_objects_or_time_do_not_change_a_person() -> None:
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


# ---------------------------------------------------------------- true events


def events_by_definition(world: Rfid) -> set[tuple[str, str, int]]:
    """Return the events by the definitions of the queries: (query, tag, t)."""
    office = pairs(world.relations["office"], "tag", "location")
    meets_in = pairs(world.relations["meets_in"], "tag", "location")
    coffee_room, corridor = column(world, "coffee_room"), column(world, "corridor")
    events = set()
    for tag, at in paths(world).items():
        for t in range(len(at)):
            if tag in column(world, "person"):
                if t >= 2 and at[t - 2] not in coffee_room and at[t - 1] not in coffee_room and at[t] in coffee_room:
                    events.add(("coffee", tag, t))
                if t >= 1 and (tag, at[t - 1]) not in meets_in and (tag, at[t]) in meets_in:
                    events.add(("meeting", tag, t))
                if t >= STAYED - 1 and all((tag, at[t - n]) in office for n in range(STAYED)):
                    events.add(("stayed", tag, t))
            elif tag in column(world, "laptop") and t >= 1 and (tag, at[t - 1]) in office and at[t] in corridor:
                events.add(("laptop_left", tag, t))
    return events


def test_true_events_agree_with_the_definitions_of_the_queries() -> None:
    world = simulate(Options(people=4, objects=1, minutes=30), seed=2)
    events = [tuple(row.values()) for row in world.events.to_pylist()]
    assert set(events) == events_by_definition(world)
    assert len(set(events)) == len(events)
    assert {query for query, _, _ in events} == set(QUERIES)


@pytest.mark.parametrize("query", QUERIES)
def test_with_known_locations_the_queries_find_exactly_the_true_events(query: str) -> None:
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


def test_the_workbook_is_valid_and_its_files_exist(tmp_path: Path) -> None:
    world = simulate(Options(people=2, minutes=5), seed=0)
    workbook = write(world, tmp_path / "new" / "folder")
    check_workbook(workbook, list(QUERIES))
    assert pyarrow.parquet.read_table(workbook.parent / "readings.parquet").equals(world.readings)
    assert pyarrow.csv.read_csv(workbook.parent / "office.csv").equals(world.relations["office"])
    for model, tables in world.models.items():
        for name, table in tables.items():
            read = pyarrow.csv.read_csv(workbook.parent / model / f"{name}.csv")
            assert read.drop_columns("p").equals(table.drop_columns("p"))
            assert np.array_equal(read["p"], table["p"])
