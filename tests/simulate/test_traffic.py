"""Traffic: reproducible data, congestion that agrees with the reports, and the requested losses."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from anabranch.simulate.options import make_options, options_of
from anabranch.simulate.road import Reports, congestion
from anabranch.simulate.segmented import Entities, lose, table
from anabranch.simulate.traffic import START, Options, Traffic, simulate, simulate_poisson, simulate_road, write
from tests.simulate.workbooks import check_workbook

SMALL = Options(sectors=30, hours=0.5, vehicles_per_hour=300, threshold=97.0)
PAIRS = Options(data="poisson", pairs=50)
BOTH = pytest.mark.parametrize("options", [SMALL, PAIRS], ids=["road", "poisson"])

Road = tuple[Entities, Reports]


@pytest.fixture(scope="module")
def road() -> Road:
    return simulate_road(Options(), np.random.default_rng(0))


def make(count: int, events: int, lost: bool = False) -> Entities:
    times = np.arange(float(count * events))
    return Entities(
        {"sector": np.arange(count)}, np.arange(count + 1) * events, times, np.full(len(times), lost), (0.0, 1e6)
    )


def by_entity(rows: pa.Table) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    entities = defaultdict(list)
    keys = rows.column_names[: rows.column_names.index("seq")]
    for row in rows.to_pylist():
        entities[tuple(row[name] for name in keys)].append(row)
    return entities


# ---------------------------------------------------------------- both kinds


@BOTH
def test_the_same_seed_gives_the_same_data(options: Options) -> None:
    first, second, other = (simulate(options, seed) for seed in (5, 5, 6))
    assert all(getattr(first, name) == getattr(second, name) for name in Traffic.__slots__)
    assert not first.truth.equals(other.truth)
    assert not first.congestion.equals(other.congestion)


@BOTH
def test_the_truth_is_segmented_intervals(options: Options) -> None:
    entities = by_entity(simulate(options, 0).truth)
    assert entities
    for rows in entities.values():
        count = len(rows)
        assert count % 2 == 0
        assert [row["seq"] for row in rows] == list(range(1, count + 1))
        assert {row["n"] for row in rows} == {count}
        assert all(earlier["t"] < later["t"] for earlier, later in pairwise(rows))
        assert [row["role"] for row in rows] == ["start", *["suspend", "resume"] * (count // 2 - 1), "end"]


@BOTH
def test_the_recorded_events_are_the_true_ones_without_the_lost_ones(options: Options) -> None:
    traffic = simulate(options, 0)
    assert traffic.congestion.schema == traffic.truth.schema
    true, seen = by_entity(traffic.truth), by_entity(traffic.congestion)
    assert list(seen) == list(true), "all entities have rows"
    for key, rows in seen.items():
        assert [row["seq"] for row in rows] == sorted({row["seq"] for row in rows})
        for row in rows:
            assert row | {"t": None} == true[key][row["seq"] - 1] | {"t": None}
            assert row["t"] in (None, true[key][row["seq"] - 1]["t"])
    assert traffic.congestion["t"].null_count > 0
    assert traffic.congestion.num_rows < traffic.truth.num_rows


@BOTH
def test_without_loss_all_events_are_recorded_and_with_loss_all_entities_have_rows(options: Options) -> None:
    values = {name: getattr(options, name) for name in options_of(Options)}
    whole = simulate(Options(**values | {"loss": 0.0}))
    assert whole.congestion == whole.truth
    nothing = simulate(Options(**values | {"loss": 1.0}))
    assert nothing.truth == whole.truth
    assert nothing.congestion["t"].null_count == nothing.congestion.num_rows == nothing.truth.num_rows // 2
    assert list(by_entity(nothing.congestion)) == list(by_entity(nothing.truth))


# ---------------------------------------------------------------- losses


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4, 1.0])
def test_events_are_lost_at_the_requested_rate(rate: float) -> None:
    lossy = lose(make(1_000, 40), rate, np.random.default_rng(1))
    assert lossy.lost.mean() == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 40_000))
    rows = table(lossy, pa.array)
    absent = 40_000 - rows.num_rows
    assert rows["t"].null_count - absent in (0, 1), "half of the lost events have a row"


def test_losses_are_independent() -> None:
    lost = lose(make(1, 100_000), 0.3, np.random.default_rng(2)).lost
    assert np.mean(lost[1:] & lost[:-1]) == pytest.approx(0.09, abs=0.004)
    more = lose(make(1, 100_000), 0.4, np.random.default_rng(2)).lost
    assert np.all(more[lost]), "at a higher rate the same events are lost, and others"


def test_first_and_last_events_can_be_kept() -> None:
    kept = lose(make(3, 4, lost=True), 1.0, np.random.default_rng(0), keep_ends=True)
    assert kept.lost.tolist() == [False, True, True, False] * 3


# ---------------------------------------------------------------- poisson


def test_times_between_events_are_exponential() -> None:
    entities = simulate_poisson(Options(mean=2.0), np.random.default_rng(3))
    assert set(entities.counts) == {40}
    assert len(entities.counts) == 1_000
    durations = np.diff(entities.times.reshape(-1, 40), axis=1, prepend=0.0).ravel()
    assert durations.min() > 0
    assert durations.mean() == pytest.approx(2.0, rel=0.02)
    assert durations.std() == pytest.approx(2.0, rel=0.03)
    assert np.mean(durations > 2.0) == pytest.approx(np.exp(-1), abs=0.01)
    assert entities.horizon[0] == 0
    assert 0 < entities.horizon[1] - entities.times.max() <= 1


def test_more_pairs_do_not_change_the_others() -> None:
    few, many = (simulate(Options(data="poisson", pairs=pairs), 1) for pairs in (3, 8))
    assert many.truth.slice(0, few.truth.num_rows) == few.truth
    assert many.congestion.slice(0, few.congestion.num_rows) == few.congestion
    assert few.truth["side"].unique().to_pylist() == ["a", "b"]
    assert few.truth.schema.types == [pa.int32(), pa.string(), pa.int32(), pa.float64(), pa.int32(), pa.string()]


# ---------------------------------------------------------------- road


def test_most_sectors_are_never_congested_and_some_very_often(road: Road) -> None:
    for threshold, busiest in ((15, (20, 250)), (20, (100, 300))):
        segments = congestion(road[1], 2.0, threshold).counts // 2
        assert 100 < 200 - len(segments) < 195, "never"
        assert np.any(segments == 1)
        assert busiest[0] < segments.max() < busiest[1]
    (at_15, at_20) = (congestion(road[1], 2.0, threshold).keys["sector"] for threshold in (15, 20))
    assert set(at_15) < set(at_20)


def test_two_events_at_the_same_time_are_rare(road: Road) -> None:
    _, counts = np.unique(road[0].times, return_counts=True)
    assert np.mean(counts > 1) < 0.02


def test_vehicles_report_every_30_seconds_and_move_forward(road: Road) -> None:
    reports = road[1]
    assert np.all(np.diff(reports.t) >= 0)
    assert 0 <= reports.t.min()
    assert reports.t.max() < 2 * 3_600_000
    order = np.lexsort((reports.t, reports.vehicle))
    same_vehicle = np.diff(reports.vehicle[order]) == 0
    assert set(np.diff(reports.t[order])[same_vehicle]) == {30_000}
    moved = np.diff(reports.sector[order])[same_vehicle]
    assert set(moved) == {0, 1}
    assert (reports.sector.min(), reports.sector.max()) == (1, 200)
    clear = reports.speed[~np.isin(reports.sector, congestion(reports, 2.0, 60.0).keys["sector"])]
    assert clear.mean() == pytest.approx(99, abs=1)


def test_the_number_of_vehicles_per_hour() -> None:
    """On the free road; at 06:00 the rush hour adds about a tenth to the traffic of a quiet hour."""
    _, reports = simulate_road(Options(sectors=40, vehicles_per_hour=500), np.random.default_rng(1))
    early = reports.t < 600_000
    per_hour = np.bincount(reports.sector[early], reports.speed[early])[1:] / (1.6 * 20)
    assert np.median(per_hour) == pytest.approx(550, rel=0.1)


def test_queues_grow_upstream(road: Road) -> None:
    """A sector is rarely congested before the next one downstream."""
    first = dict(zip(road[0].keys["sector"], road[0].times[road[0].starts[:-1]], strict=True))
    neighbours = [(first[sector], first[sector + 1]) for sector in first if sector + 1 in first]
    assert len(neighbours) > len(first) / 2
    assert np.mean([upstream > downstream for upstream, downstream in neighbours]) > 0.8


def crossings(rows: list[dict[str, Any]], threshold: float) -> dict[int, list[datetime]]:
    """Return when the average of a sector's reports of the last 30 s crossed a threshold, by the definition."""
    by_sector: dict[int, list[datetime]] = {}
    for sector in {row["sector"] for row in rows}:
        reports = [(row["t"], row["speed"]) for row in rows if row["sector"] == sector]
        instants, congested = sorted({t for t, _ in reports}), False
        times = by_sector.setdefault(sector, [])
        for instant in instants:
            recent = [speed for t, speed in reports if instant - timedelta(seconds=30) < t <= instant]
            if (sum(recent) / len(recent) < threshold) != congested:
                congested = not congested
                times.append(instant)
        if congested and times[-1] == instants[-1]:
            times.pop()
        elif congested:
            times.append(instants[-1])
    return {sector: times for sector, times in by_sector.items() if times}


@pytest.mark.parametrize("threshold", [40.0, 60.0, 95.0])
def test_congestion_agrees_with_the_reports(threshold: float) -> None:
    traffic = simulate(Options(sectors=30, hours=0.3, vehicles_per_hour=100, threshold=threshold), seed=7)
    assert traffic.reports is not None
    true = {key[0]: [row["t"] for row in rows] for key, rows in by_entity(traffic.truth).items()}
    assert true == crossings(traffic.reports.to_pylist(), threshold)
    assert true


def test_reports_at_the_same_time_count_together_and_open_congestion_ends_with_the_last_report() -> None:
    def congested(*rows: tuple[int, int, float]) -> tuple[list[int], list[float]]:
        t, sector, speed = (np.array(values) for values in zip(*rows, strict=True))
        entities = congestion(Reports(t, np.arange(len(t)), sector, speed.astype(float)), 1.0, 20.0)
        return entities.keys["sector"].tolist(), entities.times.tolist()

    assert congested((1_000, 1, 50), (1_000, 2, 10), (2_000, 1, 0), (2_000, 1, 90), (9_000, 2, 10)) == ([2], [1.0, 9.0])
    assert congested((1_000, 1, 50), (40_000, 1, 10)) == ([], []), "it begins with the last report"
    assert congested((1_000, 1, 10), (31_000, 1, 30)) == ([1], [1.0, 31.0]), "a report that is 30 s old does not count"
    assert congested((1_000, 1, 10), (30_999, 1, 30), (31_000, 1, 0)) == ([1], [1.0, 30.999]), (
        "a report counts for less than 30 s"
    )


def test_more_hours_do_not_change_the_first_ones() -> None:
    short, long = (simulate_road(Options(sectors=20, hours=hours), np.random.default_rng(4)) for hours in (0.3, 0.5))
    count = len(short[1].t)
    for name in Reports.__slots__:
        assert np.array_equal(getattr(long[1], name)[:count], getattr(short[1], name))
    assert long[1].t[count] >= 0.3 * 3_600_000


def test_a_road_without_congestion_is_empty() -> None:
    traffic = simulate(Options(sectors=1, hours=0.01, vehicles_per_hour=1, threshold=0.0))
    assert traffic.truth.num_rows == traffic.congestion.num_rows == 0
    assert traffic.truth.schema.field("t").type == pa.timestamp("us", tz="UTC")


# ---------------------------------------------------------------- files


@BOTH
def test_the_workbook_is_valid_and_its_files_exist(options: Options, tmp_path: Path) -> None:
    traffic = simulate(options)
    workbook = write(traffic, tmp_path / "new" / "folder")
    queries = ["jam", "true_jam"] if options.data == "road" else ["shared", "true_shared"]
    assert check_workbook(workbook, queries) == ["congestion.parquet", "true_congestion.parquet"]
    files = {"congestion": traffic.congestion, "true_congestion": traffic.truth, "reports": traffic.reports}
    for name, rows in files.items():
        if rows is not None:
            assert pyarrow.parquet.read_table(workbook.parent / f"{name}.parquet") == rows
    assert (workbook.parent / "reports.parquet").exists() == (options.data == "road")


def test_the_horizon_of_a_road_is_the_simulated_time() -> None:
    traffic = simulate(SMALL)
    assert "HORIZON ['2026-01-05 06:00:00', '2026-01-05 06:30:00']" in traffic.workbook
    assert datetime(2026, 1, 5, 6, tzinfo=UTC) == START
    assert traffic.reports is not None
    for rows in (traffic.truth, traffic.reports):
        ends = pc.min_max(rows["t"]).as_py()
        assert START <= ends["min"] < ends["max"] < START + timedelta(minutes=30)


def test_the_kinds_of_data() -> None:
    assert make_options(Options, {"data": "poisson"}).data == "poisson"
    with pytest.raises(ValueError, match=r"^--data must be road or poisson, not rail$"):
        make_options(Options, {"data": "rail"})
