"""The example of the buoys: weeks made of days by hand, and its queries on some of the real years."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.examples.scripts import load, real

RADIUS = 6_371_008.8
EVENT = pa.struct(
    [
        *((name, pa.float64()) for name in ("anomaly", "rise", "wind", "lon", "lat")),
        ("buoy", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


@pytest.fixture
def prepare(monkeypatch):
    return load("buoys/prepare.py", monkeypatch)


@pytest.fixture
def run(monkeypatch):
    return load("buoys/run.py", monkeypatch)


@pytest.fixture
def draw(monkeypatch):
    return load("buoys/draw.py", monkeypatch)


def rows(*stretches: tuple[str, int, float, float]) -> pd.DataFrame:
    """Days of buoys as the file has them, one stretch after the other: first day, number of days, lat and east."""
    parts = [
        pd.DataFrame({"t": pd.date_range(first, periods=days, tz="UTC"), "lat": lat, "east": east})
        for first, days, lat, east in stretches
    ]
    return pd.concat(parts, ignore_index=True)


def daily(water: Any, first: str = "1990-01-01", last: str = "1995-12-31") -> pd.DataFrame:
    """A buoy on the equator; `water` takes the days and gives temperatures."""
    days = pd.date_range(first, last, tz="UTC")
    return pd.DataFrame({"buoy": "0 110W", "t": days, "lat": 0.0, "east": 250.0, "wind": 1.0, "water": water(days)})


# ---------------------------------------------------------------- which buoy


def test_buoys_are_told_apart_by_days_that_go_back_and_places_that_jump(prepare):
    found = prepare.moored(rows(("1990-01-01", 5, 0, 250), ("1989-01-01", 5, 2, 250), ("1993-01-01", 5, 2, 220)))
    assert found["buoy"].tolist() == ["0 110W"] * 5 + ["2N 110W"] * 5 + ["2N 140W"] * 5


def test_a_buoy_that_was_put_back_is_the_same_and_its_drift_is_left_out(prepare):
    drifts = [("1990-02-05", 1, 0.5, 251.2), ("1990-02-06", 1, 1, 252), ("1990-02-07", 1, 1.5, 254)]
    found = prepare.moored(rows(("1990-01-01", 35, 0, 250), *drifts, ("1990-06-01", 30, 0, 250)))
    assert set(found["buoy"]) == {"0 110W"}
    assert len(found) == 65


@pytest.mark.parametrize(("place", "name"), [((-2, 110), "2S 110E"), ((0, 180), "0 180"), ((8, 265), "8N 95W")])
def test_names_of_moorings(prepare, place, name):
    assert prepare._name(*place) == name


# ---------------------------------------------------------------- weeks


def test_what_is_usual_is_the_middle_of_the_years(prepare):
    readings = daily(lambda days: np.where(days.year == 1994, 30.0, 20.0 + (days.year - 1990) * 0.1))
    usual = prepare.usual_of_months(readings)
    assert usual.loc["0 110W"].to_numpy() == pytest.approx(np.full(12, 20.25))
    few = prepare.usual_of_months(readings[readings["t"].dt.year < 1993])
    assert few.isna().all(axis=None), "three years tell nothing"


def test_no_month_begins_with_a_step(prepare):
    """Where the water is as in every year, the anomaly stays near 0, the first of a month too."""
    seasons = prepare.with_anomaly(daily(lambda days: 25 + 2 * np.cos(2 * np.pi * days.dayofyear / 365.25)))
    assert seasons["anomaly"].abs().max() < 0.15
    assert seasons["anomaly"].diff().abs().max() < 0.05


def test_weeks_are_means_of_enough_days(prepare):
    readings = daily(lambda days: np.where(days >= pd.Timestamp("1995-06-05", tz="UTC"), 22.0, 20.0))
    readings = readings[~readings["t"].between("1995-07-04", "1995-07-07")]
    weeks = prepare.weeks_of(readings).set_index("t")
    assert (weeks.index.dayofweek == 6).all()
    assert weeks["anomaly"]["1995-06-04"] == pytest.approx(0)
    assert weeks["anomaly"]["1995-06-11"] == pytest.approx(2)
    assert weeks["rise"]["1995-06-25"] == pytest.approx(2)
    assert weeks["rise"]["1995-07-16"] == pytest.approx(0)
    assert pd.Timestamp("1995-07-09", tz="UTC") not in weeks.index, "three days are too few"
    assert set(weeks["lon"]) == {-110.0}


def test_missing_data_are_said_in_one_line(prepare, tmp_path: Path):
    with pytest.raises(SystemExit, match="there is no tao_elnino in .*; say with --data where it is"):
        prepare.find_data(tmp_path)


# ---------------------------------------------------------------- the real years


@pytest.fixture
def weeks(prepare) -> pd.DataFrame:
    return prepare.weeks_of(prepare.read_readings(real("tao_elnino")))


def test_real_buoys_are_moored_where_they_are_known_to_be(prepare):
    readings = prepare.read_readings(real("tao_elnino"))
    assert not readings.duplicated(["buoy", "t"]).any()
    assert {"0 110W", "2S 140W", "8N 165E", "0 180"} <= set(readings["buoy"])
    assert readings.groupby("buoy")[["lat", "east"]].agg(np.ptp).max().max() <= 2 * prepare.ADRIFT + 1


def test_warm_buoys_of_1991_and_1992_are_those_that_all_combinations_give(run, weeks, spark):
    """Eleven answers of six weeks: by the engine, and by trying all sets of five."""
    some = weeks[weeks["t"].between("1991-11-01", "1992-06-30")]
    (answers,) = run.ask(some, "warm")
    found = sorted((row["t"], *sorted(event["buoy"] for event in row["v"])) for row in answers.to_pylist())
    warm = some[some["anomaly"] >= 1.5]
    expected = [
        (t, *sorted(five["buoy"]))
        for t, of_week in warm.groupby("t")
        for chosen in combinations(range(len(of_week)), 5)
        if _farthest(five := of_week.iloc[list(chosen)]) <= 2_000_000
    ]
    assert len(found) == 11
    assert found == sorted(expected)


def test_waves_of_1997_are_those_that_joins_give(run, weeks, spark):
    """From November 1996 to May 1997, by the engine and by joining weeks to weeks."""
    some = weeks[weeks["t"].between("1996-11-01", "1997-05-15")]
    (answers,) = run.ask(some, "wave")
    names = ["burst", "one", "two", "three"]
    found = sorted(tuple((row[name]["buoy"], row[name]["t"]) for name in names) for row in answers.to_pylist())
    equator = some[some["lat"].between(-3, 3)]
    burst = equator[(equator["wind"] >= 5) & equator["lon"].between(130, 180)]
    warmed = equator[(equator["rise"] >= 1) & equator["lon"].between(-180, -90)]
    joined = burst.add_suffix("_burst").merge(warmed.add_suffix("_one"), how="cross")
    joined = joined[_days(joined, "burst", "one").between(14, 56)]
    for before, after in (("one", "two"), ("two", "three")):
        joined = joined.merge(warmed.add_suffix(f"_{after}"), how="cross")
        ends = [joined[[f"lon_{name}", f"lat_{name}"]].to_numpy() for name in (before, after)]
        far = joined[f"lon_{after}"] - joined[f"lon_{before}"] >= 5
        joined = joined[_days(joined, before, after).between(7, 21) & far & (_metres(*ends) <= 2_500_000)]
    expected = joined[[f"{column}_{name}" for name in names for column in ("buoy", "t")]].itertuples(index=False)
    assert len(found) > 100
    assert found == sorted(tuple(zip(row[::2], row[1::2], strict=True)) for row in expected)


def _days(joined: pd.DataFrame, before: str, after: str) -> pd.Series:
    return (joined[f"t_{after}"] - joined[f"t_{before}"]).dt.days


def _farthest(places: pd.DataFrame) -> float:
    at = places[["lon", "lat"]].to_numpy()
    return max(float(_metres(at[[i]], at[[j]])[0]) for i, j in combinations(range(len(at)), 2))


def _metres(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Along the globe, by the angle between two directions from its centre."""
    ends = []
    for place in (one, other):
        lon, lat = np.radians(place).T
        ends.append(np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]))
    return RADIUS * np.arccos(np.clip((ends[0] * ends[1]).sum(axis=0), -1, 1))


# ---------------------------------------------------------------- what is told of answers


def event(buoy: str, day: str, lon: float, anomaly: float = 2.0) -> dict[str, Any]:
    values = {"rise": 1.0, "wind": 5.0, "lon": lon, "lat": 0.0, "anomaly": anomaly}
    return {"buoy": buoy, "t": pd.Timestamp(day, tz="UTC"), **values}


def test_the_warmest_five_of_each_week(run):
    fives = [
        [event(f"{n}", day, n, warmth) for n in range(5)]
        for day, warmth in (("1997-07-13", 2), ("1997-07-06", 3), ("1997-07-06", 4))
    ]
    answers = pa.table(
        {"t": pa.array([five[0]["t"] for five in fives], EVENT.field("t").type), "v": pa.array(fives, pa.list_(EVENT))}
    )
    assert [(f"{row['t']:%d}", row["anomaly"]) for row in run.warmest(answers).to_pylist()] == [("06", 4), ("13", 2)]


def test_the_maps_have_the_buoys_of_all_answers(draw):
    days, places = ("1997-07-06", "1997-07-13", "1997-08-03"), (165.0, -180.0, -140.0)
    fives = [[event(f"{lon}", day, lon) for lon in places] for day in days]
    times = pa.array([five[0]["t"] for five in fives], EVENT.field("t").type)
    weeks = pd.DataFrame([event("far", days[0], 137.0)])
    warm = draw.draw_warm(pa.table({"t": times, "v": pa.array(fives, pa.list_(EVENT))}), weeks)
    assert warm.count("<circle") == 4, "three buoys in an answer, and another one"
    assert "1997-08-01" in warm
    of = dict(zip(("one", "two", "three"), map(list, zip(*fives, strict=True)), strict=True))
    waves = draw.draw_waves(
        pa.table({"t": times, **{name: pa.array(events, EVENT) for name, events in of.items()}}), weeks
    )
    assert waves.count("<polyline") == 3, "the way of all three answers, and two arrows on it"
