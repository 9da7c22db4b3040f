"""The calibration benchmark: rows, the table and the charts, with results that need no data."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from benchmarks.__main__ import main
from benchmarks.calibration import collecting, independent, live, locations
from benchmarks.calibration.collecting import collect, rows_of
from benchmarks.calibration.inference import Learned
from benchmarks.calibration.results import Result

from anabranch.columns.globe import RADIUS
from anabranch.inference.hmm import Entries, Sensing, make_hmm
from anabranch.inference.labels import Labelled

TRUE = np.array([True, False, True, True])


def result(method: str, seed: int, *probabilities: float) -> Result:
    return Result("home", "is it on?", method, seed, np.array(probabilities), TRUE)


def results(seeds: Sequence[int]) -> Iterator[Result]:
    """A calibrated and an overconfident method, over thirty held-out parts each."""
    for seed in seeds:
        for _ in range(30):
            yield result("new", seed, 0.75, 0.75, 0.75, 0.75)
            yield result("old", seed, 0.9, 0.9, 0.9, 0.1)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One task with results, one without data, and few steps for those of live inference."""
    monkeypatch.setattr(collecting, "TASKS", ("given", "bare"))
    monkeypatch.setattr("benchmarks.calibration.output.TASKS", ("given", "bare"))

    def missing(seeds: Sequence[int]) -> Iterator[Result]:
        yield result("new", 0, 0.5, 0.5, 0.5, 0.5)
        Path("nowhere/home_adl/sensors.csv").read_text()

    monkeypatch.setattr(live, "PEOPLE", 3)
    monkeypatch.setattr(live, "STEPS", 40)
    for name, function in (("given", results), ("bare", missing)):
        module = ModuleType(f"benchmarks.calibration.{name}")
        vars(module)["results"] = function
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_rows_have_means_over_seeds_of_all_their_parts() -> None:
    parts = [result("m", 1, 1, 0, 1, 1), result("m", 1, 0, 1, 0, 0), result("m", 2, 0.5, 0.5, 0.5, 0.5)]
    (row,) = rows_of(parts)
    assert (row.data, row.task, row.method) == ("home", "is it on?", "m")
    assert [score.count for score in row.of_seeds] == [8, 4]
    assert row.mean("brier") == pytest.approx((0.5 + 0.25) / 2)
    assert row.mean("constant") == pytest.approx(3 / 16)
    assert sum(bin.answers for bin in row.bins) == 12


@pytest.mark.usefixtures("tasks")
def test_missing_data_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row.method for row in collect("bare", [0])] == ["new"], "what came before the missing file counts"
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "calibration: bare stopped, because nowhere/home_adl/sensors.csv is missing; "
        "the real data belong into ../shared/data",
    ]


@pytest.mark.usefixtures("tasks")
def test_the_command_prints_one_table_and_draws_charts(chart_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibration", "--rounds", "2"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| home")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells[0] == ["home", "is it on?", "new", "120", "0.750", "0.1875", "0.1875", "0.000 ± 0.040", "0.0000"]
    assert [row[2:4] for row in cells] == [["new", "120"], ["old", "120"], ["new", "4"]]
    assert sorted(path.name for path in chart_folder.iterdir()) == ["calibration-bare.svg", "calibration-given.svg"]
    chart = (chart_folder / "calibration-given.svg").read_text()
    assert "is it on?" in chart
    assert chart.count("<polyline") == 3, "the diagonal and two methods"


def test_answers_with_correlations_are_better_than_independent_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_: object) -> list[object]:
        raise FileNotFoundError(2, "missing", "reads.csv.gz")

    monkeypatch.setattr(live, "PEOPLE", 3)
    monkeypatch.setattr(live, "STEPS", 40)
    monkeypatch.setattr(live, "learned_tags", missing)
    found = list(live.results([0]))
    assert len(found) == len(live.METHODS) * len(live.QUERIES)
    losses = {(each.task, each.method.split(":")[0]): live.log_loss(each.probabilities, each.true) for each in found}
    for question in live.QUERIES:
        assert losses[question, "SMOOTH"] < losses[question, "JOINT"] < losses[question, "FILTER"]
    assert "reads.csv.gz is missing" in capsys.readouterr().out


def test_events_with_probabilities_are_compared_with_the_true_activities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds with a reading: walking is most probable, then sitting on the bed. Both are right."""
    sensing = np.array([[0.2, 0.5, 0.8], [0.8, 0.5, 0.2]])
    prior = np.full(3, 1 / 3)
    activities = ["1", "3", "4"]
    hmm = make_hmm(
        activities, ["r0", "r1"], prior, Entries.of_dense(np.eye(3)), Sensing.EMISSION, Entries.of_dense(sensing)
    )
    truth = Labelled(np.zeros(3, np.int64), np.arange(3), np.array([2, 1, 0], np.int32))
    readings = Labelled(np.zeros(2, np.int64), np.array([0, 2]), np.array([0, 1], np.int32))
    learned = Learned("tags", hmm, truth, readings, 7)
    assert independent.one_reading(learned) == pytest.approx(sensing / 1.5)
    monkeypatch.setattr(independent, "learned_tags", lambda seeds: [learned])
    found = {(result.task, result.method): result for result in independent.results([7])}
    lay, near = independent.QUESTIONS[0].name, independent.QUESTIONS[3].name
    assert found[lay, "one reading"].probabilities == pytest.approx([5 / 15 * 8 / 15])
    assert found[lay, "one reading"].true.tolist() == [False], "the person walked at first"
    assert found[lay, "most probable activity"].probabilities.tolist() == [0.0]
    assert sorted(found[near, "one reading"].probabilities) == pytest.approx([4 / 225, 64 / 225])
    assert sorted(found[near, "one reading"].true.tolist()) == [False, True]
    assert found[near, "most probable activity"].probabilities.tolist().count(1.0) == 1


def test_readings_of_aircraft_are_compared_with_their_true_locations() -> None:
    """Two aircraft that fly east at 600 knots, 10 km apart; a third is far away."""
    at = pd.date_range("2018-08-01 05:00:00", periods=31, freq="10s")
    speed = 600 * 1852 / 3600
    reports = pd.concat(
        pd.DataFrame({
            "timestamp": at, "icao24": name, "latitude": latitude,
            "longitude": 8.0 + np.degrees(speed * 10 * np.arange(31) / RADIUS), "groundspeed": 600.0,
        })
        for name, latitude in (("a", 0.0), ("b", np.degrees(10_000 / RADIUS)), ("c", 5.0))
    )  # fmt: skip
    readings = locations.readings_of(reports, seed=0)
    assert {kind: len(rows) for kind, rows in readings.items()} == {"uniform": 6, "rounded": 6, "a minute old": 3}
    for rows in readings.values():
        gap = np.hypot(rows["lon"] - rows["true_lon"], rows["lat"] - rows["true_lat"])
        assert (np.radians(gap) * RADIUS <= rows["off"] * (1 + 1e-6)).all()
    old = readings["a minute old"]
    assert (np.radians(old["true_lon"] - old["lon"]) * RADIUS).tolist() == pytest.approx([speed * 60] * 3)
    query, bound = locations.QUESTIONS["CONSTRAIN: two aircraft within 15 km"]
    read, expected = locations.asked("old", query, bound, old, seed=0)
    assert read.true.tolist() == expected.true.tolist() == [True]
    assert read.probabilities.tolist() == [1.0]
    assert 0.1 < expected.probabilities[0] < 0.9
