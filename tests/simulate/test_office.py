"""The office: reproducible, well-formed, uncertain, and mostly right about who went for coffee."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

from anabranch.simulate import SCENARIOS
from anabranch.simulate.office import (
    ANTENNAS,
    DOORS,
    HALLS,
    LOCATIONS,
    OFFICES,
    WORKBOOK,
    Office,
    Options,
    simulate,
    write,
)
from tests.oracles.pattern import ask

Answers = dict[str, dict[datetime, float]]


@pytest.fixture(scope="module")
def office() -> Office:
    return simulate(Options(people=6, minutes=120), seed=0)


def coffee_probabilities(office: Office, person: str) -> dict[datetime, float]:
    """Compute the coffee query by its definition, with a weight for each (location, stage)."""
    own_office = dict(zip(*office.office.to_pydict().values(), strict=True))[person]
    moves: dict[datetime, list[Any]] = defaultdict(list)
    for row in office.at.filter(pc.equal(office.at["person"], person)).to_pylist():
        moves[row["t"]].append((row["prev_location"], row["location"], row["p"]))
    weights: dict[Any, float] = {(None, "elsewhere"): 1.0}
    answers = {}
    for t, rows in sorted(moves.items()):
        after: dict[Any, float] = defaultdict(float)
        answers[t] = 0.0
        for before, location, p in rows:
            for stage in ("elsewhere", "office", "hall"):
                weight = weights.get((before, stage), 0.0) * p
                if location == "coffee-room" and stage == "hall":
                    answers[t] += weight
                if location == own_office:
                    after[location, "office"] += weight
                elif location in HALLS and stage != "elsewhere":
                    after[location, "hall"] += weight
                else:
                    after[location, "elsewhere"] += weight
        weights = after
    return answers


@pytest.fixture(scope="module")
def answers(office: Office) -> Answers:
    return {person: coffee_probabilities(office, person) for person in office.office["person"].to_pylist()}


def peaks_at_trips(office: Office, answers: Answers) -> Any:
    """Return the highest probability within half a minute of each true trip."""
    return np.array(
        [
            max(p for t, p in answers[trip["person"]].items() if abs(t - trip["t"]) <= timedelta(seconds=30))
            for trip in office.trips.to_pylist()
        ]
    )


def test_most_trips_are_probable_and_few_are_certain(office: Office, answers: Answers) -> None:
    peaks = peaks_at_trips(office, answers)
    assert len(peaks) >= 30
    assert np.mean(peaks > 0.5) > 0.6
    assert (peaks < 0.2).any()
    assert len(np.unique(np.floor(peaks * 10))) >= 7, "probabilities are spread"


def test_there_are_a_few_false_alarms(office: Office, answers: Answers) -> None:
    trips = {person: [trip["t"] for trip in office.trips.to_pylist() if trip["person"] == person] for person in answers}
    false = [
        p
        for person, probabilities in answers.items()
        for t, p in probabilities.items()
        if p >= 0.1 and all(abs(t - trip) > timedelta(seconds=30) for trip in trips[person])
    ]
    assert 0 < len(false) < 20


def test_the_expected_number_of_trips_is_about_the_true_number(office: Office, answers: Answers) -> None:
    """The model does not know the direction of a walk, so the expected number is a little too low."""
    expected = sum(sum(probabilities.values()) for probabilities in answers.values())
    assert expected == pytest.approx(office.trips.num_rows, rel=0.25)


def test_the_chain_is_closed_and_sums_to_one(office: Office) -> None:
    """Every location that can be reached has rows at the next instant, and they sum to 1."""
    totals: dict[Any, float] = defaultdict(float)
    reached, sources = defaultdict(set), defaultdict(set)
    for row in office.at.to_pylist():
        assert row["p"] > 0
        key = row["person"], row["t"]
        totals[*key, row["prev_location"]] += row["p"]
        reached[key].add(row["location"])
        sources[key].add(row["prev_location"])
    assert np.allclose(list(totals.values()), 1.0, atol=1e-9)
    for (person, t), locations in sources.items():
        assert locations == reached.get((person, t - timedelta(seconds=5)), {None})


def test_the_chain_has_the_marginals(office: Office) -> None:
    """The sum of the pruned probabilities is small."""
    rows = office.at.filter(pc.equal(office.at["person"], "ana")).to_pylist()
    exact = {
        (row["t"], row["location"]): row["p"]
        for row in office.at_marginals.filter(pc.equal(office.at_marginals["person"], "ana")).to_pylist()
    }
    weights: dict[Any, float] = {(rows[0]["t"] - timedelta(seconds=5), None): 1.0}
    for row in rows:
        before = weights.get((row["t"] - timedelta(seconds=5), row["prev_location"]), 0.0)
        weights[row["t"], row["location"]] = weights.get((row["t"], row["location"]), 0.0) + before * row["p"]
    assert max(abs(p - weights.get(key, 0.0)) for key, p in exact.items()) < 0.02


def test_marginals_sum_to_one(office: Office) -> None:
    totals = office.at_marginals.group_by(["person", "t"]).aggregate([("p", "sum")])["p_sum"]
    assert np.allclose(totals, 1.0, atol=1e-9)
    assert len(totals) == 6 * 120 * 12


def test_people_walk_through_doors_and_along_the_hall(office: Office) -> None:
    paths: dict[str, list[str]] = defaultdict(list)
    for row in office.locations.to_pylist():
        paths[row["person"]].append(row["location"])
    for path in paths.values():
        for here, there in pairwise(path):
            rooms = {here, there} - set(HALLS)
            assert len(rooms) <= 1, f"{here} and {there} share no door"
            assert abs(DOORS[here] - DOORS[there]) <= (0 if rooms else 1)


def test_trips_agree_with_the_true_locations(office: Office) -> None:
    location_at = {(row["person"], row["t"]): row["location"] for row in office.locations.to_pylist()}
    offices = dict(zip(*office.office.to_pydict().values(), strict=True))
    for trip in office.trips.to_pylist():
        assert location_at[trip["person"], trip["left"]] == offices[trip["person"]]
        assert location_at[trip["person"], trip["t"]] == "coffee-room"
        between = trip["left"] + timedelta(seconds=5)
        while between < trip["t"]:
            assert location_at[trip["person"], between] in HALLS
            between += timedelta(seconds=5)


def test_antennas_miss_tags_and_read_only_in_their_range(office: Office) -> None:
    location_at = {(row["person"], row["t"]): row["location"] for row in office.locations.to_pylist()}
    for row in office.readings.to_pylist():
        assert location_at[row["person"], row["t"]] in ANTENNAS[row["antenna"]]
    in_hall = {key for key, location in location_at.items() if location in HALLS}
    read = {(row["person"], row["t"]) for row in office.readings.to_pylist()}
    assert 0.3 < len(in_hall & read) / len(in_hall) < 0.7


def test_the_same_seed_gives_the_same_office() -> None:
    first, second, other = (simulate(Options(people=2, minutes=20), seed=seed) for seed in (5, 5, 6))
    assert all(getattr(first, name).equals(getattr(second, name)) for name in Office.__slots__)
    assert not first.readings.equals(other.readings)


def test_more_people_do_not_change_the_others() -> None:
    few, many = simulate(Options(people=2, minutes=20), seed=5), simulate(Options(people=14, minutes=20), seed=5)
    assert many.at.filter(pc.is_in(many.at["person"], few.office["person"])).equals(few.at)
    assert many.office["location"].to_pylist()[6] == OFFICES[0]
    assert len(set(many.office["person"].to_pylist())) == 14


def test_written_files_can_be_read_back(tmp_path: Path) -> None:
    office = simulate(Options(people=1, minutes=30), seed=0)
    workbook = write(office, tmp_path / "new" / "folder")
    assert pyarrow.parquet.read_table(workbook.parent / "at.parquet").equals(office.at)
    assert pyarrow.csv.read_csv(workbook.parent / "office.csv").equals(office.office)
    assert office.at.schema.field("t").type == pa.timestamp("us", tz="UTC")
    assert office.at["t"][0].as_py() == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert set(office.at["location"].to_pylist()) <= set(LOCATIONS)
    files = re.findall(r"FROM '(.+)'", workbook.read_text(encoding="utf-8"))
    assert len(files) == 5
    assert all((workbook.parent / name).is_file() for name in files)


def test_scenarios_write_their_workbook(tmp_path: Path) -> None:
    for name, scenario in SCENARIOS.items():
        workbook = scenario.write(tmp_path / name, 1)
        assert workbook == tmp_path / name / f"{name}.abq"
        assert workbook.is_file()
        assert list(workbook.parent.glob("true_*.parquet")), "the ground truth"


def test_with_known_locations_the_query_finds_exactly_the_trips() -> None:
    """The table `trips` and the query of the workbook have the same definition of a trip."""
    office = simulate(Options(people=2, minutes=40), seed=0)
    rows, before = [], {}
    for row in office.locations.to_pylist():
        rows.append(row | {"prev_location": before.get(row["person"]), "p": 1.0})
        before[row["person"]] = row["location"]
    relations = {
        name: {tuple(row.values()) for row in getattr(office, name).to_pylist()}
        for name in ("hall", "office", "coffee_room")
    }
    answers = ask(WORKBOOK, "coffee", {"at": rows}, relations)
    assert answers == {(trip["t"], trip["person"]): 1.0 for trip in office.trips.to_pylist()}
    assert len(answers) >= 4
