"""Buoys: reproducible, where and when they should be, and storms that are felt as the truth says."""

from __future__ import annotations

import re
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

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.families import objections
from anabranch.language.parser import parse
from anabranch.simulate.buoys import Buoys, Options, simulate, simulate_buoys, write
from anabranch.simulate.ocean import START
from anabranch.simulate.storms import DAY, HOUR

SMALL = Options(buoys=20, days=5.0)
TABLES = ("readings", "storms", "hits")

Row = dict[str, Any]
Column = NDArray[Any]


@pytest.fixture(scope="module")
def buoys() -> Buoys:
    return simulate()


@pytest.fixture(scope="module")
def rows(buoys: Buoys) -> list[Row]:
    found: list[Row] = buoys.readings.to_pylist()
    return found


@pytest.fixture(scope="module")
def storms_of(buoys: Buoys) -> dict[tuple[int, Any], set[int]]:
    """The storms that a buoy was inside of, by buoy and time."""
    found: dict[tuple[int, Any], set[int]] = {}
    for row in buoys.hits.to_pylist():
        found.setdefault((row["buoy"], row["t"]), set()).add(row["storm"])
    return found


def columns(rows: pa.Table) -> dict[str, Column]:
    """As arrays, with times in seconds since the beginning."""
    found = {name: rows[name].to_numpy() for name in rows.column_names}
    start = np.datetime64(START.replace(tzinfo=None), "us")
    return found | {"t": (found["t"] - start) / np.timedelta64(1, "s")}


def km(a: Mapping[str, Any], b: Mapping[str, Any]) -> Any:
    """The distance by the angle between two vectors from the middle of the earth."""
    (x, y, z), (u, v, w) = (
        (np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat))
        for lon, lat in ((np.radians(each["lon"]), np.radians(each["lat"])) for each in (a, b))
    )
    across = np.sqrt((y * w - z * v) ** 2 + (z * u - x * w) ** 2 + (x * v - y * u) ** 2)
    return 6_371.0088 * np.arctan2(across, x * u + y * v + z * w)


# ---------------------------------------------------------------- what is asked for


def test_the_same_seed_gives_the_same_data() -> None:
    first, second, other = (simulate(SMALL, seed) for seed in (5, 5, 6))
    for name in TABLES:
        assert getattr(first, name) == getattr(second, name)
        assert getattr(first, name) != getattr(other, name)


def test_more_buoys_leave_the_others_as_they_were() -> None:
    few, many = (simulate(replace(SMALL, buoys=count), 2) for count in (20, 33))
    assert many.storms == few.storms
    for name in ("readings", "hits"):
        more = getattr(many, name)
        assert more.filter(pc.less_equal(more["buoy"], 20)) == getattr(few, name)
        assert more.num_rows > getattr(few, name).num_rows > 0


def test_more_days_leave_the_first_as_they_were() -> None:
    short, long = (simulate(replace(SMALL, days=days), 2) for days in (4.9, 40.0))
    for name in ("readings", "hits"):
        assert getattr(long, name).slice(0, getattr(short, name).num_rows) == getattr(short, name)
    end = pc.max(short.storms["t"])
    assert long.storms.filter(pc.less_equal(long.storms["t"], end)) == short.storms
    assert short.hits.num_rows > 0


@pytest.mark.parametrize(
    "options", [SMALL, Options(buoys=7, days=1.3, interval=0.7), Options(buoys=3, days=1, interval=24)]
)
def test_every_buoy_reports_at_its_interval_with_a_phase_of_its_own(options: Options) -> None:
    told, _, _ = simulate_buoys(options, np.random.default_rng(0))
    every, end = round(options.interval * HOUR), options.days * DAY
    assert np.all(np.diff(told.t) >= 0)
    assert len(told.t) == pytest.approx(options.buoys * end / every, abs=options.buoys)
    assert len(set(told.t % every)) > len(set(told.buoy)) / 2
    for buoy in set(told.buoy):
        mine = told.t[told.buoy == buoy]
        assert 0 <= mine[0] < every
        assert end - every <= mine[-1] < end
        assert set(np.diff(mine)) <= {every}


def test_what_is_simulated_by_default(buoys: Buoys) -> None:
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
    told = columns(buoys.readings)
    for name, (low, high) in ranges.items():
        assert low <= told[name].min() < told[name].max() <= high, name
    assert np.all((told["lon"] >= 140) | (told["lon"] <= -160)), "across the date line"
    # Means as of the TAO buoys: sea 27.7, air 0.84 below it, humidity 81, wind 5.2.
    assert told["sst"].mean() == pytest.approx(27.7, abs=0.5)
    assert np.mean(told["airt"] - told["sst"]) == pytest.approx(-0.84, abs=0.1)
    assert told["humidity"].mean() == pytest.approx(81, abs=1)
    assert told["wind"].mean() == pytest.approx(5.2, abs=1)


def test_the_sea_is_warmer_and_pressure_lower_at_the_equator_and_the_trades_come_from_the_east(buoys: Buoys) -> None:
    told = columns(buoys.readings)
    inner, outer = np.abs(told["lat"]) < 5, np.abs(told["lat"]) > 20
    assert told["sst"][inner].mean() > told["sst"][outer].mean() + 2
    assert told["pressure"][inner].mean() < told["pressure"][outer].mean() - 2
    trades = told["dir"][(np.abs(told["lat"]) > 10) & (np.abs(told["lat"]) < 20)]
    assert np.mean((trades > 20) & (trades < 160)) > 0.8


# ---------------------------------------------------------------- storms


def test_hits_are_the_readings_inside_a_storm(buoys: Buoys) -> None:
    """Worked out again, from the files alone."""
    told, tracks, hits = columns(buoys.readings), columns(buoys.storms), columns(buoys.hits)
    expected = {}
    for storm in np.unique(tracks["storm"]):
        t, lon, lat, radius = (tracks[name][tracks["storm"] == storm] for name in ("t", "lon", "lat", "radius"))
        centre = {"lon": np.interp(told["t"], t, lon % 360), "lat": np.interp(told["t"], t, lat)}
        far, alive = km(told, centre), (told["t"] >= t[0]) & (told["t"] <= t[-1])
        for at in np.flatnonzero(alive & (far <= np.interp(told["t"], t, radius))):
            expected[storm, told["buoy"][at], told["t"][at]] = far[at]
    found = dict(zip(zip(hits["storm"], hits["buoy"], hits["t"], strict=True), hits["distance"], strict=True))
    assert len(hits["t"]) == len(found) > 200
    assert found == pytest.approx(expected, abs=0.051)
    assert np.all(np.diff(hits["t"]) >= 0)


def test_storms_are_felt(buoys: Buoys) -> None:
    told, hits = columns(buoys.readings), columns(buoys.hits)
    where = {key: number for number, key in enumerate(zip(told["buoy"], told["t"], strict=True))}
    inside = np.array([where[key] for key in zip(hits["buoy"], hits["t"], strict=True)])
    deep = inside[hits["distance"] < 150]
    outside = np.setdiff1d(np.arange(len(told["t"])), inside)
    for name, more in (("pressure", -10), ("wind", 10), ("airt", -1), ("humidity", 5)):
        risen = told[name][deep].mean() - told[name][outside].mean()
        assert abs(risen) > abs(more), name
        assert np.sign(risen) == np.sign(more), name
    assert told["pressure"][inside].mean() < told["pressure"][outside].mean() - 2
    assert np.mean(told["pressure"][outside] < 1005) < 0.001
    assert np.mean(np.isin(np.flatnonzero(told["pressure"] < 1005), inside)) > 0.9


# ---------------------------------------------------------------- the workbook


def low(rows: list[Row]) -> Iterator[list[Row]]:
    found = [row for row in rows if row["pressure"] < 1005]
    beside: dict[int, set[int]] = {number: set() for number in range(len(found))}
    for i, j in combinations(range(len(found)), 2):
        a, b = found[i], found[j]
        if a["buoy"] != b["buoy"] and abs(a["t"] - b["t"]) <= timedelta(hours=12) and km(a, b) <= 500:
            beside[i].add(j)
    for i, others in beside.items():
        for j in others:
            yield from ([found[i], found[j], found[k]] for k in others & beside[j])


def passage(rows: list[Row]) -> Iterator[list[Row]]:
    found = [row for row in rows if row["pressure"] < 1005]
    by_buoy: dict[int, list[Row]] = {}
    for row in rows:
        by_buoy.setdefault(row["buoy"], []).append(row)
    hour = timedelta(hours=1)
    for drop in found:
        for before in by_buoy[drop["buoy"]]:
            if hour <= drop["t"] - before["t"] <= 12 * hour and before["pressure"] - drop["pressure"] >= 6:
                for after in found:
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
    """By the words of them, the readings of an answer come from one storm; not always, but mostly."""
    answers = list(query(rows))
    assert least < len(answers) < 2_000
    inside = [set.intersection(*(storms_of.get((row["buoy"], row["t"]), set()) for row in each)) for each in answers]
    assert np.mean([bool(each) for each in inside]) > 0.8


def test_the_workbook_is_right_and_its_files_are_there(tmp_path: Path) -> None:
    small = simulate(SMALL)
    workbook = write(small, tmp_path / "new" / "folder")
    text = workbook.read_text(encoding="utf-8")
    catalog = Catalog()
    assert declare(parse(text, "buoys.abq"), catalog) == []
    assert objections(catalog.queries(), catalog) == []
    assert [each.name for each in catalog.queries()] == ["low", "passage", "cold_wake"]
    assert re.findall(r"FROM '([^']+)'", text) == ["readings.parquet"]
    for name, file in zip(TABLES, ("readings", "true_storms", "true_hits"), strict=True):
        assert pyarrow.parquet.read_table(workbook.parent / f"{file}.parquet") == getattr(small, name)
