"""The example `buoys`: weeks from days by hand, and its queries on some of the real years."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.examples.scripts import real

EXAMPLE = "buoys"

RADIUS = 6_371_008.8
EVENT = pa.struct(
    [
        *((name, pa.float64()) for name in ("anomaly", "rise", "wind", "lon", "lat")),
        ("buoy", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


def rows(*segments: tuple[str, int, float, float]) -> pd.DataFrame:
    """Return days of buoys as in the file, from segments: first day, number of days, lat and east."""
    parts = [
        pd.DataFrame({"t": pd.date_range(first, periods=days, tz="UTC"), "lat": lat, "east": east})
        for first, days, lat, east in segments
    ]
    return pd.concat(parts, ignore_index=True)


def daily(water: Any, first: str = "1990-01-01", last: str = "1995-12-31") -> pd.DataFrame:
    """Return the readings of a buoy on the equator; `water` maps days to temperatures."""
    days = pd.date_range(first, last, tz="UTC")
    return pd.DataFrame({"buoy": "0 110W", "t": days, "lat": 0.0, "east": 250.0, "wind": 1.0, "water": water(days)})


# ---------------------------------------------------------------- buoys


def test_another_buoy_begins_where_days_go_back_or_the_position_jumps(prepare):
    moored = prepare.moored(rows(("1990-01-01", 5, 0, 250), ("1989-01-01", 5, 2, 250), ("1993-01-01", 5, 2, 220)))
    assert moored["buoy"].tolist() == ["0 110W"] * 5 + ["2N 110W"] * 5 + ["2N 140W"] * 5


def test_a_replaced_buoy_is_the_same_and_its_drift_is_left_out(prepare):
    drifts = [("1990-02-05", 1, 0.5, 251.2), ("1990-02-06", 1, 1, 252), ("1990-02-07", 1, 1.5, 254)]
    moored = prepare.moored(rows(("1990-01-01", 35, 0, 250), *drifts, ("1990-06-01", 30, 0, 250)))
    assert set(moored["buoy"]) == {"0 110W"}
    assert len(moored) == 65


@pytest.mark.parametrize(("mooring", "name"), [((-2, 110), "2S 110E"), ((0, 180), "0 180"), ((8, 265), "8N 95W")])
def test_names_of_moorings(prepare, mooring, name):
    assert prepare._name(*mooring) == name


# ---------------------------------------------------------------- weeks


def test_the_usual_temperature_is_the_median_of_the_years(prepare):
    readings = daily(lambda days: np.where(days.year == 1994, 30.0, 20.0 + (days.year - 1990) * 0.1))
    usual = prepare.usual_of_months(readings)
    assert usual.loc["0 110W"].to_numpy() == pytest.approx(np.full(12, 20.25))
    few = prepare.usual_of_months(readings[readings["t"].dt.year < 1993])
    assert few.isna().all(axis=None), "three years are too few"


def test_the_usual_temperature_has_no_steps(prepare):
    """With the same temperatures every year, the anomaly is near 0, also on the first of a month."""
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


# ---------------------------------------------------------------- real years


@pytest.fixture
def weeks(prepare) -> pd.DataFrame:
    return prepare.weeks_of(prepare.read_readings(real("tao_elnino")))


def test_real_buoys_have_known_moorings(prepare):
    readings = prepare.read_readings(real("tao_elnino"))
    assert not readings.duplicated(["buoy", "t"]).any()
    assert {"0 110W", "2S 140W", "8N 165E", "0 180"} <= set(readings["buoy"])
    assert readings.groupby("buoy")[["lat", "east"]].agg(np.ptp).max().max() <= 2 * prepare.ADRIFT + 1


def test_warm_buoys_of_1991_and_1992_are_those_of_all_combinations(run, weeks, spark):
    """Eleven answers in six weeks, compared with all sets of five buoys."""
    period = weeks[weeks["t"].between("1991-11-01", "1992-06-30")]
    (answers,) = run.ask(period, "warm")
    found = sorted((row["t"], *sorted(event["buoy"] for event in row["v"])) for row in answers.to_pylist())
    warm = period[period["anomaly"] >= 1.5]
    expected = [
        (t, *sorted(five["buoy"]))
        for t, week in warm.groupby("t")
        for chosen in combinations(range(len(week)), 5)
        if _farthest(five := week.iloc[list(chosen)]) <= 2_000_000
    ]
    assert len(found) == 11
    assert found == sorted(expected)


def test_waves_of_1997_are_those_of_joins(run, weeks, spark):
    """From November 1996 to May 1997, compared with joins of weeks."""
    period = weeks[weeks["t"].between("1996-11-01", "1997-05-15")]
    (answers,) = run.ask(period, "wave")
    names = ["burst", "one", "two", "three"]
    found = sorted(tuple((row[name]["buoy"], row[name]["t"]) for name in names) for row in answers.to_pylist())
    equator = period[period["lat"].between(-3, 3)]
    burst = equator[(equator["wind"] >= 5) & equator["lon"].between(130, 180)]
    warmed = equator[(equator["rise"] >= 1) & equator["lon"].between(-180, -90)]
    joined = burst.add_suffix("_burst").merge(warmed.add_suffix("_one"), how="cross")
    joined = joined[_days(joined, "burst", "one").between(14, 56)]
    for before, after in (("one", "two"), ("two", "three")):
        joined = joined.merge(warmed.add_suffix(f"_{after}"), how="cross")
        ends = [joined[[f"lon_{name}", f"lat_{name}"]].to_numpy() for name in (before, after)]
        east = joined[f"lon_{after}"] - joined[f"lon_{before}"] >= 5
        joined = joined[_days(joined, before, after).between(7, 21) & east & (_metres(*ends) <= 2_500_000)]
    expected = joined[[f"{column}_{name}" for name in names for column in ("buoy", "t")]].itertuples(index=False)
    assert len(found) > 100
    assert found == sorted(tuple(zip(row[::2], row[1::2], strict=True)) for row in expected)


def _days(joined: pd.DataFrame, before: str, after: str) -> pd.Series:
    return (joined[f"t_{after}"] - joined[f"t_{before}"]).dt.days


def _farthest(buoys: pd.DataFrame) -> float:
    degrees = buoys[["lon", "lat"]].to_numpy()
    return max(float(_metres(degrees[[i]], degrees[[j]])[0]) for i, j in combinations(range(len(degrees)), 2))


def _metres(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return distances on the sphere, from the angle between two directions from its centre."""
    ends = []
    for degrees in (one, other):
        lon, lat = np.radians(degrees).T
        ends.append(np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]))
    return RADIUS * np.arccos(np.clip((ends[0] * ends[1]).sum(axis=0), -1, 1))


# ---------------------------------------------------------------- report and pictures


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
    days, longitudes = ("1997-07-06", "1997-07-13", "1997-08-03"), (165.0, -180.0, -140.0)
    fives = [[event(f"{lon}", day, lon) for lon in longitudes] for day in days]
    times = pa.array([five[0]["t"] for five in fives], EVENT.field("t").type)
    weeks = pd.DataFrame([event("far", days[0], 137.0)])
    warm = draw.draw_warm(pa.table({"t": times, "v": pa.array(fives, pa.list_(EVENT))}), weeks)
    assert warm.count("<circle") == 4, "three buoys in an answer, and another one"
    assert "1997-08-01" in warm
    columns = dict(zip(("one", "two", "three"), map(list, zip(*fives, strict=True)), strict=True))
    waves = draw.draw_waves(
        pa.table({"t": times, **{name: pa.array(events, EVENT) for name, events in columns.items()}}), weeks
    )
    assert waves.count("<polyline") == 3, "one line for all three answers, and two arrows on it"
