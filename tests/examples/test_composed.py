"""The examples of queries over answers: their data by hand, and their queries on parts of the data."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.examples.scripts import load, real


@pytest.fixture
def unpaid(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load("composed/unpaid.py", monkeypatch)


@pytest.fixture
def bunching(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load("composed/bunching.py", monkeypatch)


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return load("composed/silence.py", monkeypatch)


# ---------------------------------------------------------------- unpaid goods and a camera


def test_there_is_a_person_at_every_true_exit_and_at_few_stray_readings(unpaid) -> None:
    day = unpaid.simulate_day(replace(unpaid.SHOP, items=1_000), seed=3)
    after = np.searchsorted(day.frames["t"], day.exits["t"])
    seen = day.present[after] & day.present[after - 1]
    trips = unpaid.simulate(replace(unpaid.SHOP, items=1_000), 3).truth.to_pandas()
    left = day.exits["tag"].isin(trips.loc[trips["exit"].notna(), "tag"]).to_numpy()
    assert seen[left].all()
    assert 0.02 < seen[~left].mean() < 0.4
    assert (~left).sum() == pytest.approx(unpaid.STRAY * trips["exit"].isna().sum(), rel=0.15)
    right = (day.frames["detected"] == "person").to_numpy() == day.present
    assert right[day.present].mean() == pytest.approx(unpaid.RIGHT[1], abs=0.03)


def test_confirmed_thefts_are_as_probable_as_they_are_frequent(unpaid, spark) -> None:
    shop = replace(unpaid.SHOP, items=2_000)
    day, history = unpaid.simulate_day(shop, 0), unpaid.simulate_day(shop, 1)
    found, confirmed = unpaid.ask(day, unpaid.fit(history))
    assert confirmed["probability"].le(1).all()
    assert set(confirmed["tag"]) <= set(found["tag"])
    true = unpaid.truth_of(confirmed, day).sum()
    # Three standard deviations of the number of true answers, if the probabilities are right.
    spread = 3 * np.sqrt((confirmed["probability"] * (1 - confirmed["probability"])).sum())
    assert abs(confirmed["probability"].sum() - true) < spread
    by_camera, by_readings = (unpaid.thefts(day, rows, [0.5])[0].precision for rows in (confirmed, found))
    assert by_camera > by_readings


# ---------------------------------------------------------------- bunched buses in congestion


def test_positions_along_the_line_grow_from_stop_to_stop(bunching) -> None:
    stops = pd.DataFrame(
        {"sequence": [1, 2, 3], "x": [0.0, 300.0, 300.0], "y": [0.0, 0.0, 400.0], "x_along": [0.0, 300.0, 700.0]}
    )
    reports = pd.DataFrame({"sequence": [2, 2, 3, 3], "x": [90.0, 310.0, 300.0, 900.0], "y": [10.0, 0.0, 100.0, 200.0]})
    assert bunching._along(reports, stops)["x"].tolist() == [90.0, 300.0, 400.0]


def test_a_slow_bus_has_a_low_pace(bunching) -> None:
    t = np.arange(0.0, 1_000.0, 20.0)
    rows = [
        pd.DataFrame({"line": "7", "journey": name, "t": t + late, "x": speed * t})
        for name, late, speed in (("a", 0, 5.0), ("b", 600, 5.0), ("c", 1_200, 2.5))
    ]
    day = bunching.Day(pd.concat(rows), pd.DataFrame({"line": ["7"], "stop": [1], "x": [1_000.0]}))
    assert bunching.passages(day)["pace"].round(3).tolist() == [1.0, 1.0, 0.5]


def test_two_buses_of_the_real_day_are_bunched_where_they_were(bunching, spark) -> None:
    """Two buses that travelled together for most of their way; the other buses only say how fast stops are passed."""
    day = bunching.read_day(real("wmata_bus"))
    passed, truth = bunching.passages(day), bunching.Truth(day, bunching.passages(day))
    errors = bunching.residuals(day.positions)
    assert (errors.std(), errors.abs().quantile(0.99)) == pytest.approx((125, 350), rel=0.1)
    pair = day.positions[day.positions["journey"].isin(["D40 14:15 7223", "D40 14:30 7220"])]
    bunched, both = bunching.ask(bunching.Day(pair, day.stops), passed)
    bins = bunching.reliability(bunched, truth)
    likely = [bin for bin in bins if bin.low >= 0.6]
    assert likely
    assert all(bin.observed > 0.5 for bin in likely)
    keys = both[["line", "stop", "first", "other"]].itertuples(index=False)
    true = np.array([truth.both(*key) for key in keys])
    assert true.sum() == pytest.approx(both["probability"].sum(), abs=3)


# ---------------------------------------------------------------- storms and silent sensors


def test_weeks_have_the_strongest_wind(silence) -> None:
    days = pd.date_range("1995-01-02", periods=10, tz="UTC")
    readings = pd.DataFrame({"buoy": "0 110W", "t": days, "lat": 0.0, "east": 250.0, "wind": 3.0, "north_wind": 4.0})
    readings.loc[2, "north_wind"] = -10.0
    winds = silence.winds_of(readings)
    assert winds["t"].tolist() == [pd.Timestamp("1995-01-08", tz="UTC")], "three days are too few"
    assert winds["strongest"].tolist() == pytest.approx([np.hypot(3, 10)])


def test_silent_sensors_are_those_without_rows(silence, spark) -> None:
    """Eight of 735, compared with joins of weeks; a tenth of the rows that are withheld is expected to be silence."""
    winds = silence.winds_of(silence.read_readings(real("tao_elnino")))
    delays = silence.delays_of(winds)
    (silent,) = silence.ask(winds, delays, "silent")
    storms = silence.storms_of(winds[winds["t"] <= winds["t"].max() - 4 * silence.WEEK])
    expected = storms[silence.is_silent(storms, winds, 4)]
    assert len(silent) == 8
    assert (silent["probability"] == 1).all()
    assert set(zip(silent["buoy"], silent["t"], strict=True)) == set(zip(expected["buoy"], expected["t"], strict=True))
    seldom = (delays["delay"] > 7 * 86_400).mean()
    (perhaps,) = silence.ask(silence.withheld(winds, 0), delays, "perhaps_silent")
    assert perhaps["probability"].to_numpy() == pytest.approx(seldom / (silence.LOST * (1 - seldom) + seldom))
    assert silence.is_silent(perhaps, winds, 1).sum() == pytest.approx(perhaps["probability"].sum(), abs=6)
