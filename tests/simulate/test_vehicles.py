"""Vehicles: reproducible, driving as they should, and telling no less and no more than they have to."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.families import objections
from anabranch.language.parser import parse
from anabranch.simulate import SCENARIOS
from anabranch.simulate.segmented import Floats
from anabranch.simulate.vehicles import Options, Vehicles, reports, simulate, trajectories, true_pairs, write

SMALL = Options(objects=20, duration=60.0)
TABLES = ("positions", "cars")


@pytest.fixture(scope="module")
def vehicles() -> Vehicles:
    return simulate()


@pytest.fixture(scope="module")
def positions() -> Floats:
    return trajectories(Options(), np.random.default_rng(0))


# ---------------------------------------------------------------- what is asked for


def test_the_same_seed_gives_the_same_data() -> None:
    first, second, other = (simulate(SMALL, seed) for seed in (5, 5, 6))
    for name in TABLES:
        assert getattr(first, name) == getattr(second, name)
        assert getattr(first, name) != getattr(other, name)


def test_more_vehicles_leave_the_others_as_they_were() -> None:
    few, many = (simulate(replace(SMALL, objects=count), 2) for count in (20, 33))
    for name in TABLES:
        more = getattr(many, name)
        assert more.filter(pc.less_equal(more["car"], 20)) == getattr(few, name)


def test_a_longer_time_leaves_the_beginning_as_it_was() -> None:
    short, long = (simulate(replace(SMALL, duration=duration), 2) for duration in (31.0, 200.0))
    for name in TABLES:
        assert getattr(long, name).slice(0, getattr(short, name).num_rows) == getattr(short, name)


def test_what_is_simulated_by_default(vehicles: Vehicles, positions: Floats) -> None:
    assert vehicles.positions.num_rows == 300 * 60
    assert vehicles.positions.schema.types == [pa.int32(), *[pa.float64()] * 3]
    assert vehicles.cars.schema.types == [pa.int32(), *[pa.float64()] * 5]
    assert sorted(set(vehicles.positions["t"].to_pylist())) == list(range(0, 180, 3))
    for name in TABLES:
        rows = getattr(vehicles, name)
        order = np.lexsort((rows["car"].to_numpy(), rows["t"].to_numpy()))
        assert order.tolist() == list(range(rows.num_rows)), "in the order of time, then of cars"
    assert np.array_equal(vehicles.positions["x"].to_numpy(), positions[:, :, 0].ravel())
    assert np.array_equal(vehicles.positions["y"].to_numpy(), positions[:, :, 1].ravel())


@pytest.mark.parametrize("duration, count", [(3.0, 1), (3.1, 2), (6.0, 2), (180.0, 60)])
def test_it_is_measured_before_the_end(duration: float, count: int) -> None:
    assert len(Options(duration=duration).times) == count
    tenth = Options(duration=duration / 10 + 1, sample=0.1)
    assert tenth.times[-1] < tenth.duration <= tenth.times[-1] + 0.1 + 1e-9


def test_a_density_makes_the_area() -> None:
    assert Options(area=9.0).side == pytest.approx(3_000)
    assert Options(objects=120, density=30.0).side == pytest.approx(2_000)
    far = trajectories(Options(objects=1_000, density=10.0, duration=3.0), np.random.default_rng(0))
    assert 9_900 < far.max() <= 10_000


# ---------------------------------------------------------------- driving


def test_vehicles_begin_anywhere_and_head_anywhere() -> None:
    options = Options(objects=4_000, duration=6.0)
    start, after = trajectories(options, np.random.default_rng(1))
    counts, _, _ = np.histogram2d(*start.T, bins=4, range=[[0, options.side]] * 2)
    assert counts.min() > 190 and counts.max() < 310
    inside = np.all((start > 100) & (start < options.side - 100), axis=1)
    heading = np.arctan2(*(after - start)[inside].T)
    octants, _ = np.histogram(heading, bins=8, range=(-np.pi, np.pi))
    assert octants.min() > inside.sum() / 8 * 0.8


def test_vehicles_keep_their_speed_and_stay_inside(positions: Floats) -> None:
    options = Options()
    assert positions.min() >= 0 and positions.max() <= options.side + 0.005
    moved = np.hypot(*np.moveaxis(np.diff(positions, axis=0), 2, 0))
    assert moved.max() <= 26.8 * 3 + 0.02
    assert np.mean(np.abs(moved - 26.8 * 3) < 0.02) > 0.7, "but for turns"


def test_half_of_the_chances_to_turn_are_taken() -> None:
    """In a square whose edges hardly anybody meets, with the GPS in step with the turns."""
    options = Options(objects=500, area=1e6, sample=10.0, duration=300.0)
    moved = np.diff(trajectories(options, np.random.default_rng(2)), axis=0)
    turned = np.hypot(*np.moveaxis(np.diff(moved, axis=0), 2, 0)) > 0.1
    assert np.mean(turned) == pytest.approx(0.5, abs=0.02)
    never = trajectories(replace(options, turn_probability=0.0), np.random.default_rng(2))
    assert np.mean(np.abs(np.diff(never, n=2, axis=0)) > 0.05) < 0.001


def test_who_comes_to_an_edge_turns_back_as_from_a_mirror() -> None:
    options = Options(objects=50, area=0.01, turn_probability=0.0, sample=0.1, duration=20.0)
    path = trajectories(options, np.random.default_rng(3))
    moved = np.diff(path, axis=0)
    assert path.min() < 1 and path.max() > 99
    straight = np.all(np.abs(np.abs(moved) - np.abs(moved[0])) < 0.03, axis=2)
    assert np.mean(straight) > 0.9, "as fast as ever in x and in y, but for the steps in which an edge is met"
    assert np.any(np.sign(moved[0]) != np.sign(moved[-1]))


# ---------------------------------------------------------------- telling


@pytest.mark.parametrize("method", ["linear", "kalman"])
def test_what_was_told_is_within_the_error_of_every_position(method: str, positions: Floats) -> None:
    options = Options(method=method)
    told = reports(positions, options)
    times = options.times
    place, rate = np.full((300, 2), np.nan), np.full((300, 2), np.nan)
    since = np.full(300, np.nan)
    for t, measured in zip(times, positions, strict=True):
        now = told.t == t
        cars = told.car[now] - 1
        place[cars], rate[cars], since[cars] = told.places[now], told.rates[now], t
        assert np.array_equal(told.places[now], measured[cars])
        assert np.all(np.abs(place + rate * (t - since)[:, None] - measured) <= 25 + 1e-9)
        assert np.all(t - since < 30)
    assert 0.15 < len(told.t) / positions[:, :, 0].size < 0.4


def test_who_drives_straight_on_tells_once_a_period() -> None:
    options = Options(objects=10, area=1e6, turn_probability=0.0, duration=300.0)
    told = reports(trajectories(options, np.random.default_rng(0)), options)
    assert np.bincount(told.car)[1:].tolist() == [2 + 9] * 10


def test_a_larger_error_and_a_longer_period_take_fewer_reports(positions: Floats) -> None:
    for changes in ({"error": 50.0}, {"period": 60.0}):
        assert len(reports(positions, replace(Options(), **changes)).t) < len(reports(positions, Options()).t)
    assert len(reports(positions, Options(error=0.0)).t) > 0.5 * positions[:, :, 0].size


# ---------------------------------------------------------------- the truth


@pytest.mark.parametrize(("instant", "sample"), [(0.0, 0), (2.9, 0), (3.0, 1), (100.0, 33), (1e9, 59)])
def test_true_pairs_are_those_of_the_last_measurements(instant: float, sample: int, positions: Floats) -> None:
    places = positions[sample]
    near = np.abs(places[:, None] - places[None]).max(axis=2) <= 400
    wanted = 1 + np.argwhere(np.triu(near, 1))
    assert np.array_equal(true_pairs(positions, Options(), instant), wanted)
    assert 2_000 < len(wanted) < 4_000


def test_who_is_alone_is_in_no_pair(positions: Floats) -> None:
    assert true_pairs(positions[:, :1], Options(objects=1), 0.0).shape == (0, 2)


# ---------------------------------------------------------------- files


def test_the_workbook_is_right_and_its_files_are_there(tmp_path: Path) -> None:
    small = simulate(replace(SMALL, error=12.5, period=45.0))
    workbook = write(small, tmp_path / "new" / "folder")
    text = workbook.read_text(encoding="utf-8")
    assert "ERROR 12.5 PERIOD 45\n" in text
    catalog = Catalog()
    assert declare(parse(text, "vehicles.abq"), catalog) == []
    assert objections(catalog.queries(), catalog) == []
    assert [each.name for each in catalog.queries()] == ["near"]
    assert re.findall(r"FROM '([^']+)'", text) == ["cars.parquet"]
    for name, rows in {"cars": small.cars, "true_positions": small.positions}.items():
        assert pyarrow.parquet.read_table(workbook.parent / f"{name}.parquet") == rows


def test_it_is_said_how_much_was_communicated(tmp_path: Path) -> None:
    scenario = SCENARIOS["vehicles"]
    scenario.write(tmp_path, 0, objects=100, duration=90.0, turn_probability=0.0, area=1e6, method="kalman")
    assert scenario.remark is not None
    assert scenario.remark(tmp_path) == "400 of 3,000 positions were communicated (13.3%)"


def test_a_long_file_has_several_row_groups(tmp_path: Path) -> None:
    write(simulate(Options(objects=5_000)), tmp_path)
    groups = pyarrow.parquet.ParquetFile(tmp_path / "true_positions.parquet").metadata
    assert groups.num_row_groups == 2
    first, second = (groups.row_group(number).column(1).statistics for number in range(2))
    assert first.max <= second.min
