"""Buoys: reproducible data, valid values, and storms whose effect agrees with the ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from anabranch.simulate.buoys import Buoys, Options, simulate, simulate_buoys, write
from anabranch.simulate.ocean import START
from anabranch.simulate.storms import DAY, HOUR
from tests.simulate.workbooks import check_workbook

SMALL = Options(buoys=20, days=5.0)
TABLES = ("readings", "storms", "hits")

Row = dict[str, Any]
Column = NDArray[Any]


@pytest.fixture(scope="module")
def buoys() -> Buoys:
    return simulate()


@pytest.fixture(scope="module")
def rows(buoys: Buoys) -> list[Row]:
    readings: list[Row] = buoys.readings.to_pylist()
    return readings


@pytest.fixture(scope="module")
def storms_of(buoys: Buoys) -> dict[tuple[int, Any], set[int]]:
    """Return the storms that a buoy was inside of, by buoy and time."""
    storms: dict[tuple[int, Any], set[int]] = {}
    for row in buoys.hits.to_pylist():
        storms.setdefault((row["buoy"], row["t"]), set()).add(row["storm"])
    return storms


def columns(rows: pa.Table) -> dict[str, Column]:
    """Return the columns as arrays, with times in seconds since the beginning."""
    arrays = {name: rows[name].to_numpy() for name in rows.column_names}
    start = np.datetime64(START.replace(tzinfo=None), "us")
    return arrays | {"t": (arrays["t"] - start) / np.timedelta64(1, "s")}


def km(a: Mapping[str, Any], b: Mapping[str, Any]) -> Any:
    """Return the distance, from the angle between two vectors from the centre of the earth."""
    (x, y, z), (u, v, w) = (
        (np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat))
        for lon, lat in ((np.radians(row["lon"]), np.radians(row["lat"])) for row in (a, b))
    )
    across = np.sqrt((y * w - z * v) ** 2 + (z * u - x * w) ** 2 + (x * v - y * u) ** 2)
    return 6_371.0088 * np.arctan2(across, x * u + y * v + z * w)


# ---------------------------------------------------------------- options


def test_the_same_seed_gives_the_same_data() -> None:
    first, second, other = (simulate(SMALL, seed) for seed in (5, 5, 6))
    for name in TABLES:
        assert getattr(first, name) == getattr(second, name)
        assert getattr(first, name) != getattr(other, name)


def test_more_buoys_do_not_change_the_others() -> None:
    few, many = (simulate(replace(SMALL, buoys=count), 2) for count in (20, 33))
    assert many.storms == few.storms
    for name in ("readings", "hits"):
        more = getattr(many, name)
        assert more.filter(pc.less_equal(more["buoy"], 20)) == getattr(few, name)
        assert more.num_rows > getattr(few, name).num_rows > 0


def test_more_days_do_not_change_the_first_ones() -> None:
    short, long = (simulate(replace(SMALL, days=days), 2) for days in (4.9, 40.0))
    for name in ("readings", "hits"):
        assert getattr(long, name).slice(0, getattr(short, name).num_rows) == getattr(short, name)
    end = pc.max(short.storms["t"])
    assert long.storms.filter(pc.less_equal(long.storms["t"], end)) == short.storms
    assert short.hits.num_rows > 0


@pytest.mark.parametrize(
    "options", [SMALL, Options(buoys=7, days=1.3, interval=0.7), Options(buoys=3, days=1, interval=24)]
)
def test_every_buoy_reports_at_the_interval_with_its_own_phase(options: Options) -> None:
    readings, _, _ = simulate_buoys(options, np.random.default_rng(0))
    interval, end = round(options.interval * HOUR), options.days * DAY
    assert np.all(np.diff(readings.t) >= 0)
    assert len(readings.t) == pytest.approx(options.buoys * end / interval, abs=options.buoys)
    assert len(set(readings.t % interval)) > len(set(readings.buoy)) / 2
    for buoy in set(readings.buoy):
        times = readings.t[readings.buoy == buoy]
        assert 0 <= times[0] < interval
        assert end - interval <= times[-1] < end
        assert set(np.diff(times)) <= {interval}


def test_default_options(buoys: Buoys) -> None:
    assert buoys.readings.num_rows == 200 * 30 * 4
    assert pc.count_distinct(buoys.readings["buoy"]).as_py() == 200
    assert 8 <= pc.count_distinct(buoys.storms["storm"]).as_py() <= 13, "those of 30 days, and some from before"
    assert buoys.readings.schema.types == [pa.int32(), pa.timestamp("us", tz="UTC"), *[pa.float64()] * 7, pa.int32()]
    assert START <= pc.min(buoys.readings["t"]).as_py()
    assert pc.max(buoys.readings["t"]).as_py() < START + timedelta(days=30)
    assert all(
        getattr(buoys, name)[column].null_count == 0 for name in TABLES for column in getattr(buoys, name).schema.names
    )


def test_an_ocean_without_storms_is_calm() -> None:
    calm = simulate(replace(SMALL, storms=0))
    assert calm.storms.num_rows == calm.hits.num_rows == 0
    assert (calm.storms.schema, calm.hits.schema) == (simulate(SMALL).storms.schema, simulate(SMALL).hits.schema)
    assert pc.min(calm.readings["pressure"]).as_py() > 1003
    assert pc.max(calm.readings["wind"]).as_py() < 17.2


# ---------------------------------------------------------------- the ocean


def test_values_are_those_of_a_tropical_ocean(buoys: Buoys) -> None:
    ranges = {
        "lon": (-180, 180), "lat": (-25, 25), "sst": (18, 33), "airt": (15, 34), "pressure": (930, 1025),
        "humidity": (40, 100), "wind": (0, 60), "dir": (0, 359),
    }  # fmt: skip
    readings = columns(buoys.readings)
    for name, (low, high) in ranges.items():
        assert low <= readings[name].min() < readings[name].max() <= high, name
    assert np.all((readings["lon"] >= 140) | (readings["lon"] <= -160)), "across the date line"
    # Means as of the TAO buoys: sea 27.7, air 0.84 below it, humidity 81, wind 5.2.
    assert readings["sst"].mean() == pytest.approx(27.7, abs=0.5)
    assert np.mean(readings["airt"] - readings["sst"]) == pytest.approx(-0.84, abs=0.1)
    assert readings["humidity"].mean() == pytest.approx(81, abs=1)
    assert readings["wind"].mean() == pytest.approx(5.2, abs=1)


def test_the_equator_has_a_warm_sea_and_low_pressure_and_trade_winds_blow_from_the_east(buoys: Buoys) -> None:
    readings = columns(buoys.readings)
    inner, outer = np.abs(readings["lat"]) < 5, np.abs(readings["lat"]) > 20
    assert readings["sst"][inner].mean() > readings["sst"][outer].mean() + 2
    assert readings["pressure"][inner].mean() < readings["pressure"][outer].mean() - 2
    trades = readings["dir"][(np.abs(readings["lat"]) > 10) & (np.abs(readings["lat"]) < 20)]
    assert np.mean((trades > 20) & (trades < 160)) > 0.8


# ---------------------------------------------------------------- storms


def test_hits_are_the_readings_inside_a_storm(buoys: Buoys) -> None:
    """Computed again, from the tables only."""
    readings, tracks, hits = columns(buoys.readings), columns(buoys.storms), columns(buoys.hits)
    expected = {}
    for storm in np.unique(tracks["storm"]):
        t, lon, lat, radius = (tracks[name][tracks["storm"] == storm] for name in ("t", "lon", "lat", "radius"))
        centre = {"lon": np.interp(readings["t"], t, lon % 360), "lat": np.interp(readings["t"], t, lat)}
        distance, alive = km(readings, centre), (readings["t"] >= t[0]) & (readings["t"] <= t[-1])
        for index in np.flatnonzero(alive & (distance <= np.interp(readings["t"], t, radius))):
            expected[storm, readings["buoy"][index], readings["t"][index]] = distance[index]
    found = dict(zip(zip(hits["storm"], hits["buoy"], hits["t"], strict=True), hits["distance"], strict=True))
    assert len(hits["t"]) == len(found) > 200
    assert found == pytest.approx(expected, abs=0.051)
    assert np.all(np.diff(hits["t"]) >= 0)


def test_storms_change_the_readings(buoys: Buoys) -> None:
    readings, hits = columns(buoys.readings), columns(buoys.hits)
    index_of = {key: index for index, key in enumerate(zip(readings["buoy"], readings["t"], strict=True))}
    inside = np.array([index_of[key] for key in zip(hits["buoy"], hits["t"], strict=True)])
    deep = inside[hits["distance"] < 150]
    outside = np.setdiff1d(np.arange(len(readings["t"])), inside)
    for name, least in (("pressure", -10), ("wind", 10), ("airt", -1), ("humidity", 5)):
        change = readings[name][deep].mean() - readings[name][outside].mean()
        assert abs(change) > abs(least), name
        assert np.sign(change) == np.sign(least), name
    assert readings["pressure"][inside].mean() < readings["pressure"][outside].mean() - 2
    assert np.mean(readings["pressure"][outside] < 1005) < 0.001
    assert np.mean(np.isin(np.flatnonzero(readings["pressure"] < 1005), inside)) > 0.9


# ---------------------------------------------------------------- workbook


def low(rows: list[Row]) -> Iterator[list[Row]]:
    lows = [row for row in rows if row["pressure"] < 1005]
    near: dict[int, set[int]] = {number: set() for number in range(len(lows))}
    for i, j in combinations(range(len(lows)), 2):
        a, b = lows[i], lows[j]
        if a["buoy"] != b["buoy"] and abs(a["t"] - b["t"]) <= timedelta(hours=12) and km(a, b) <= 500:
            near[i].add(j)
    for i, others in near.items():
        for j in others:
            yield from ([lows[i], lows[j], lows[k]] for k in others & near[j])


def passage(rows: list[Row]) -> Iterator[list[Row]]:
    lows = [row for row in rows if row["pressure"] < 1005]
    by_buoy: dict[int, list[Row]] = {}
    for row in rows:
        by_buoy.setdefault(row["buoy"], []).append(row)
    hour = timedelta(hours=1)
    for drop in lows:
        for before in by_buoy[drop["buoy"]]:
            if hour <= drop["t"] - before["t"] <= 12 * hour and before["pressure"] - drop["pressure"] >= 6:
                for after in lows:
                    if after["buoy"] != drop["buoy"] and 12 * hour <= after["t"] - drop["t"] <= 24 * hour:
                        if 200 <= km(drop, after) <= 600:
                            yield [drop, after]


def cold_wake(rows: list[Row]) -> Iterator[list[Row]]:
    day = timedelta(days=1)
    for gale in (row for row in rows if row["wind"] >= 17.2):
        for after in (row for row in rows if row["buoy"] == gale["buoy"]):
            if day <= after["t"] - gale["t"] <= 2 * day and gale["sst"] - after["sst"] >= 1:
                yield [gale]


@pytest.mark.parametrize(("query", "least"), [(low, 30), (passage, 20), (cold_wake, 20)])
def test_the_queries_find_storms(query: Any, least: int, rows: list[Row], storms_of: dict[Any, set[int]]) -> None:
    """The queries are written as Python; the readings of most answers come from one storm."""
    answers = list(query(rows))
    assert least < len(answers) < 2_000
    common = [set.intersection(*(storms_of.get((row["buoy"], row["t"]), set()) for row in rows)) for rows in answers]
    assert np.mean([bool(storms) for storms in common]) > 0.8


def test_the_workbook_is_valid_and_its_files_exist(tmp_path: Path) -> None:
    small = simulate(SMALL)
    workbook = write(small, tmp_path / "new" / "folder")
    assert check_workbook(workbook, ["low", "passage", "cold_wake"]) == ["readings.parquet"]
    for name, file in zip(TABLES, ("readings", "true_storms", "true_hits"), strict=True):
        assert pyarrow.parquet.read_table(workbook.parent / f"{file}.parquet") == getattr(small, name)
