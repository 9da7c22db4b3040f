"""The ocean and its storms, without files: days and seasons, currents, tracks, and the effect of a storm."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from anabranch.simulate.ocean import drift, observe
from anabranch.simulate.storms import DAY, HOUR, Storm, distance, effect, make_storms

# ---------------------------------------------------------------- the ocean


def test_pressure_has_two_peaks_a_day_and_the_sea_one() -> None:
    readings, hits = observe(drift(100, 30.0, 1.0, np.random.default_rng(1)), 30.0, [], np.random.default_rng(2))
    assert len(hits.t) == 0
    local = (readings.t / HOUR + readings.lon / 15) % 24
    pressure, sst = (
        np.array([values[np.abs(local - hour) < 1].mean() for hour in (4, 10, 16, 22)])
        for values in (readings.pressure, readings.sst)
    )
    assert np.all(pressure[[1, 3]] - pressure[[0, 2]] > 1.5)
    assert sst[2] == sst.max()


def test_buoys_drift_slowly_and_stay_in_the_basin() -> None:
    tracks = drift(50, 100.0, 6.0, np.random.default_rng(3))
    moved = distance(tracks.lon[:, :-1], tracks.lat[:, :-1], tracks.lon[:, 1:], tracks.lat[:, 1:])
    speed = 1_000 * moved / (6 * HOUR)
    assert 0.1 < speed.mean() < 0.4
    assert speed.max() < 1.2
    assert np.all((tracks.lon >= 140) & (tracks.lon <= 200) & (np.abs(tracks.lat) <= 25))
    assert np.all(np.ptp(tracks.lon, axis=1) > 0.5)


def test_a_storm_cools_the_sea_which_recovers() -> None:
    tracks = drift(300, 30.0, 6.0, np.random.default_rng(1))
    storms = make_storms(15.0, 8, np.random.default_rng(1))
    early = (storm for storm in storms if 0 < storm.t[0] < storm.t[-1] < 15 * DAY)
    storm = max(early, key=lambda storm: float(storm.strength.max()))
    stormy, calm = (observe(tracks, 30.0, passing, np.random.default_rng(2))[0] for passing in ([storm], []))
    colder = calm.sst - stormy.sst
    assert np.all(colder[stormy.t < storm.t[0]] == 0)
    assert colder.min() > -0.001
    assert 1 < colder.max() < 6
    worst = stormy.buoy == stormy.buoy[colder.argmax()]
    (after,) = np.nonzero(worst & (stormy.t > storm.t[-1]))
    assert np.all(np.diff(colder[after]) < 0.011), "except for rounding"
    assert colder[after[-1]] < colder[after[0]] / 2
    assert np.array_equal(stormy.lon, calm.lon), "storms do not move buoys"


# ---------------------------------------------------------------- storms


def test_the_number_of_storms() -> None:
    tracks = make_storms(300.0, 8, np.random.default_rng(0))
    assert len(tracks) == pytest.approx(8 * 304 / 30, abs=8)
    assert all(earlier.t[0] <= later.t[0] for earlier, later in pairwise(tracks))
    few, many = ({int(storm.t[0]) for storm in make_storms(30.0, n, np.random.default_rng(0))} for n in (8, 20))
    assert few <= many


def test_storms_move_west_and_towards_the_pole_and_grow_and_shrink() -> None:
    tracks = make_storms(300.0, 8, np.random.default_rng(1))
    assert {np.sign(storm.lat[0]) for storm in tracks} == {-1, 1}
    for storm in tracks:
        assert set(np.diff(storm.t)) == {HOUR}
        assert 4 <= (storm.t[-1] - storm.t[0] + HOUR) / DAY <= 9.1
        assert np.all(np.diff(storm.lon) < 0)
        assert np.all(np.diff(np.abs(storm.lat)) > 0)
        assert 250 < storm.radius.max() <= 550
        speed = 1_000 * distance(storm.lon[:-1], storm.lat[:-1], storm.lon[1:], storm.lat[1:]) / HOUR
        assert np.all((speed > 3.9) & (speed < 7.1))
        middle = len(storm.t) // 2
        assert np.all(np.diff(storm.strength)[: middle - 1] >= 0)
        assert np.all(np.diff(storm.strength)[middle + 1 :] <= 0)


@pytest.mark.parametrize(("lat", "side"), [(15.0, 1), (-15.0, -1)])
def test_wind_blows_around_the_centre_and_inwards(lat: float, side: int) -> None:
    """East and north of the centre: counter-clockwise in the northern hemisphere, clockwise in the southern."""
    storm = Storm(np.zeros(2, dtype=np.int64), *(np.full(2, value) for value in (180.0, lat, 400.0, 40.0)))
    wind = effect(storm, np.array([180.8, 180.0]), np.array([lat, lat + 0.8]))
    assert np.sign([wind.north[0], wind.east[1]]).tolist() == [side, -side]
    assert wind.east[0] < 0
    assert wind.north[1] < 0
    ring = storm.at(np.zeros(400, dtype=np.int64))
    profile = effect(ring, 180 + np.linspace(0.01, 12.0, 400), np.full(400, lat))
    assert np.all(np.diff(profile.deficit) <= 1e-9)
    assert profile.deficit[0] == pytest.approx(40, abs=0.1)
    speed = np.hypot(profile.east, profile.north)
    assert profile.distance[speed.argmax()] == pytest.approx(80, abs=10)
    assert 25 < speed.max() < 45
    assert np.all(speed[profile.distance > 1_200] < 0.01)
