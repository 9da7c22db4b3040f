"""Vehicles: reproducible data, valid trajectories, and no more reports than needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from anabranch.arrays import F64
from anabranch.simulate import SCENARIOS
from anabranch.simulate.vehicles import Options, Vehicles, reports, simulate, trajectories, true_pairs, write
from tests.simulate.workbooks import check_workbook

SMALL = Options(objects=20, duration=60.0)
TABLES = ("positions", "cars")


@pytest.fixture(scope="module")
def vehicles() -> Vehicles:
    return simulate()


@pytest.fixture(scope="module")
def positions() -> F64:
    return trajectories(Options(), np.random.default_rng(0))


# ---------------------------------------------------------------- options


def test_the_same_seed_gives_the_same_data() -> None:
    first, second, other = (simulate(SMALL, seed) for seed in (5, 5, 6))
    for name in TABLES:
        assert getattr(first, name) == getattr(second, name)
        assert getattr(first, name) != getattr(other, name)


def test_more_vehicles_do_not_change_the_others() -> None:
    few, many = (simulate(replace(SMALL, objects=count), 2) for count in (20, 33))
    for name in TABLES:
        more = getattr(many, name)
        assert more.filter(pc.less_equal(more["car"], 20)) == getattr(few, name)


def test_a_longer_time_does_not_change_the_beginning() -> None:
    short, long = (simulate(replace(SMALL, duration=duration), 2) for duration in (31.0, 200.0))
    for name in TABLES:
        assert getattr(long, name).slice(0, getattr(short, name).num_rows) == getattr(short, name)


def test_default_options(vehicles: Vehicles, positions: F64) -> None:
    assert vehicles.positions.num_rows == 300 * 60
    assert vehicles.positions.schema.types == [pa.int32(), *[pa.float64()] * 3]
    assert vehicles.cars.schema.types == [pa.int32(), *[pa.float64()] * 5]
    assert sorted(set(vehicles.positions["t"].to_pylist())) == list(range(0, 180, 3))
    for name in TABLES:
        rows = getattr(vehicles, name)
        order = np.lexsort((rows["car"].to_numpy(), rows["t"].to_numpy()))
        assert order.tolist() == list(range(rows.num_rows)), "sorted by time and car"
    assert np.array_equal(vehicles.positions["x"].to_numpy(), positions[:, :, 0].ravel())
    assert np.array_equal(vehicles.positions["y"].to_numpy(), positions[:, :, 1].ravel())


@pytest.mark.parametrize("duration, count", [(3.0, 1), (3.1, 2), (6.0, 2), (180.0, 60)])
def test_all_measurements_are_before_the_end(duration: float, count: int) -> None:
    assert len(Options(duration=duration).times) == count
    tenth = Options(duration=duration / 10 + 1, sample=0.1)
    assert tenth.times[-1] < tenth.duration <= tenth.times[-1] + 0.1 + 1e-9


def test_the_density_sets_the_area() -> None:
    assert Options(area=9.0).side == pytest.approx(3_000)
    assert Options(objects=120, density=30.0).side == pytest.approx(2_000)
    far = trajectories(Options(objects=1_000, density=10.0, duration=3.0), np.random.default_rng(0))
    assert 9_900 < far.max() <= 10_000


# ---------------------------------------------------------------- driving


def test_positions_and_directions_at_the_beginning_are_uniform() -> None:
    options = Options(objects=4_000, duration=6.0)
    start, after = trajectories(options, np.random.default_rng(1))
    counts, _, _ = np.histogram2d(*start.T, bins=4, range=[[0, options.side]] * 2)
    assert counts.min() > 190 and counts.max() < 310
    inside = np.all((start > 100) & (start < options.side - 100), axis=1)
    heading = np.arctan2(*(after - start)[inside].T)
    octants, _ = np.histogram(heading, bins=8, range=(-np.pi, np.pi))
    assert octants.min() > inside.sum() / 8 * 0.8


def test_vehicles_keep_their_speed_and_stay_inside(positions: F64) -> None:
    options = Options()
    assert positions.min() >= 0 and positions.max() <= options.side + 0.005
    moved = np.hypot(*np.moveaxis(np.diff(positions, axis=0), 2, 0))
    assert moved.max() <= 26.8 * 3 + 0.02
    assert np.mean(np.abs(moved - 26.8 * 3) < 0.02) > 0.7, "except at turns"


def test_vehicles_turn_at_half_of_the_opportunities() -> None:
    """The square is so large that few vehicles reach its edges; the GPS measures at the turns."""
    options = Options(objects=500, area=1e6, sample=10.0, duration=300.0)
    moved = np.diff(trajectories(options, np.random.default_rng(2)), axis=0)
    turned = np.hypot(*np.moveaxis(np.diff(moved, axis=0), 2, 0)) > 0.1
    assert np.mean(turned) == pytest.approx(0.5, abs=0.02)
    never = trajectories(replace(options, turn_probability=0.0), np.random.default_rng(2))
    assert np.mean(np.abs(np.diff(never, n=2, axis=0)) > 0.05) < 0.001


def test_vehicles_are_reflected_at_the_edges() -> None:
    options = Options(objects=50, area=0.01, turn_probability=0.0, sample=0.1, duration=20.0)
    path = trajectories(options, np.random.default_rng(3))
    moved = np.diff(path, axis=0)
    assert path.min() < 1 and path.max() > 99
    straight = np.all(np.abs(np.abs(moved) - np.abs(moved[0])) < 0.03, axis=2)
    assert np.mean(straight) > 0.9, "the speed in x and in y changes only in steps in which an edge is reached"
    assert np.any(np.sign(moved[0]) != np.sign(moved[-1]))


# ---------------------------------------------------------------- reports


@pytest.mark.parametrize("method", ["linear", "kalman"])
def test_predictions_are_within_the_error_of_every_position(method: str, positions: F64) -> None:
    options = Options(method=method)
    sent = reports(positions, options)
    times = options.times
    position, rate = np.full((300, 2), np.nan), np.full((300, 2), np.nan)
    since = np.full(300, np.nan)
    for t, measured in zip(times, positions, strict=True):
        now = sent.t == t
        cars = sent.car[now] - 1
        position[cars], rate[cars], since[cars] = sent.positions[now], sent.rates[now], t
        assert np.array_equal(sent.positions[now], measured[cars])
        assert np.all(np.abs(position + rate * (t - since)[:, None] - measured) <= 25 + 1e-9)
        assert np.all(t - since < 30)
    assert 0.15 < len(sent.t) / positions[:, :, 0].size < 0.4


def test_a_vehicle_that_never_turns_reports_once_per_period() -> None:
    options = Options(objects=10, area=1e6, turn_probability=0.0, duration=300.0)
    sent = reports(trajectories(options, np.random.default_rng(0)), options)
    assert np.bincount(sent.car)[1:].tolist() == [2 + 9] * 10


def test_a_larger_error_or_a_longer_period_needs_fewer_reports(positions: F64) -> None:
    for changes in ({"error": 50.0}, {"period": 60.0}):
        assert len(reports(positions, replace(Options(), **changes)).t) < len(reports(positions, Options()).t)
    assert len(reports(positions, Options(error=0.0)).t) > 0.5 * positions[:, :, 0].size


# ---------------------------------------------------------------- ground truth


@pytest.mark.parametrize(("instant", "sample"), [(0.0, 0), (2.9, 0), (3.0, 1), (100.0, 33), (1e9, 59)])
def test_true_pairs_are_those_of_the_last_measurements(instant: float, sample: int, positions: F64) -> None:
    measured = positions[sample]
    near = np.abs(measured[:, None] - measured[None]).max(axis=2) <= 400
    expected = 1 + np.argwhere(np.triu(near, 1))
    assert np.array_equal(true_pairs(positions, Options(), instant), expected)
    assert 2_000 < len(expected) < 4_000


def test_a_single_vehicle_is_in_no_pair(positions: F64) -> None:
    assert true_pairs(positions[:, :1], Options(objects=1), 0.0).shape == (0, 2)


# ---------------------------------------------------------------- files


def test_the_workbook_is_valid_and_its_files_exist(tmp_path: Path) -> None:
    small = simulate(replace(SMALL, error=12.5, period=45.0))
    workbook = write(small, tmp_path / "new" / "folder")
    assert "ERROR 12.5 PERIOD 45\n" in workbook.read_text(encoding="utf-8")
    assert check_workbook(workbook, ["near"]) == ["cars.parquet"]
    for name, rows in {"cars": small.cars, "true_positions": small.positions}.items():
        assert pyarrow.parquet.read_table(workbook.parent / f"{name}.parquet") == rows


def test_the_remark_counts_reports(tmp_path: Path) -> None:
    scenario = SCENARIOS["vehicles"]
    scenario.write(tmp_path, 0, objects=100, duration=90.0, turn_probability=0.0, area=1e6, method="kalman")
    assert scenario.remark is not None
    assert scenario.remark(tmp_path) == "400 of 3,000 positions were reported (13.3%)"


def test_a_long_file_has_several_row_groups(tmp_path: Path) -> None:
    write(simulate(Options(objects=5_000)), tmp_path)
    groups = pyarrow.parquet.ParquetFile(tmp_path / "true_positions.parquet").metadata
    assert groups.num_row_groups == 2
    first, second = (groups.row_group(number).column(1).statistics for number in range(2))
    assert first.max <= second.min
