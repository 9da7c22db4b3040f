"""The MONITOR benchmark on few vehicles: the answer at an instant, its score, tables and charts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.__main__ import main
from benchmarks.monitor import charts
from benchmarks.monitor.accuracy import POLICIES, REPORTING, UNLIMITED
from benchmarks.monitor.run import (
    AccuracyRun,
    EveryPair,
    ThroughputRun,
    run_micro_batches,
    run_seconds,
    step_seconds,
)
from benchmarks.monitor.scenarios import Scenario, cached_scenario, make_monitor_job, plain_reports
from benchmarks.monitor.scores import CurrentAnswers, Score, ideal_pairs, pair_codes, window_pairs
from benchmarks.monitor.throughput import check_same

from anabranch.simulate.vehicles import Options, Reports
from tests.benchmarks.charts import chart_names

Row = tuple[str, tuple[int, float], tuple[int, float], float, float]


def answers(*rows: Row) -> pa.Table:
    """The answers of a step: status, both predictions as car and time, and the validity interval."""
    event = pa.struct([("car", pa.int64()), ("t", pa.float64())])
    status, first, second, begin, end = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    structs = [pa.array([{"car": car, "t": t} for car, t in predictions], event) for predictions in (first, second)]
    times = [pa.array(values, pa.float64()) for values in (begin, end)]
    return pa.table([*structs, *times, pa.array(status, pa.string())], ["a", "b", "valid_from", "valid_to", "status"])


def codes(*pairs: tuple[int, int]) -> np.ndarray:
    return pair_codes(*np.array(pairs).reshape(-1, 2).T)


def make_scenario(positions: list[list[list[float]]], reports: Reports) -> Scenario:
    """A scenario with a measurement every three seconds."""
    array = np.array(positions)
    return Scenario(Options(objects=array.shape[1], duration=3.0 * len(array)), array, reports)


@pytest.mark.parametrize(
    ("answer", "ideal", "expected"),
    [
        ([(1, 2), (1, 3), (2, 3), (2, 4)], [(1, 3), (2, 3), (4, 5)], (1 / 2, 2 / 3, 4 / 7)),
        ([(1, 2)], [(1, 2)], (1, 1, 1)),
        ([(1, 2)], [(2, 1)], (0, 0, 0)),
        ([], [(1, 2)], (1, 0, 0)),
        ([(1, 2)], [], (0, 1, 0)),
        ([], [], (1, 1, 1)),
    ],
)
def test_precision_and_recall(answer: list, ideal: list, expected: tuple[float, float, float]) -> None:
    score = Score.of(codes(*answer), codes(*ideal))
    assert (score.precision, score.recall, score.f) == pytest.approx(expected)


def test_an_answer_is_current_until_it_is_invalidated_or_over() -> None:
    current = CurrentAnswers(sample=3.0)
    first = [("tentative", (1, 0.0), (2, 0.0), 0.0, 9.0), ("tentative", (1, 0.0), (3, 0.0), 2.0, 4.0)]
    current.update(answers(*first), 0.0)
    assert [current.at(t).tolist() for t in (0.0, 2.0, 4.0)] == [
        codes((1, 2)).tolist(), codes((1, 2), (1, 3)).tolist(), codes((1, 2)).tolist(),
    ]  # fmt: skip
    # Car 2 reports again: the answer is invalidated, a shorter one ends here, and another one begins later.
    second = [
        ("invalidated", (1, 0.0), (2, 0.0), 0.0, 9.0),
        ("tentative", (1, 0.0), (2, 0.0), 0.0, 3.0),
        ("tentative", (1, 0.0), (2, 3.0), 5.0, 6.0),
    ]
    current.update(answers(*second), 3.0)
    assert [current.at(t).tolist() for t in (3.0, 5.0, 6.0)] == [codes((1, 3)).tolist(), codes((1, 2)).tolist(), []]


def test_a_pair_that_drives_apart() -> None:
    """Cars 1 and 2 stand still, 300 m apart; car 2 leaves after 3 s, and reports that at once, or never."""
    positions = [[[0.0, 0.0], [300.0, 0.0]], [[0.0, 0.0], [300.0, 0.0]], [[0.0, 0.0], [900.0, 0.0]]]
    still = Reports(np.array([1, 2]), np.zeros(2), np.array(positions[0]), np.zeros((2, 2)))
    scores = run_seconds(make_monitor_job(Options(), within=0.0), make_scenario(positions, still)).score
    assert (scores.precision, scores.recall) == pytest.approx((6 / 9, 1.0))  # also near in the last three seconds
    reports = Reports(
        np.array([1, 2, 2]), np.array([0.0, 0.0, 6.0]), np.array([*positions[0], positions[2][1]]), np.zeros((3, 2))
    )
    instant = run_seconds(make_monitor_job(Options(), within=0.0), make_scenario(positions, reports))
    assert instant.score == Score(1.0, 1.0, 1.0)
    # With a window, car 1 is near the position of car 2 until 6, for three more seconds.
    windowed = run_seconds(make_monitor_job(Options(), within=3.0), make_scenario(positions, reports))
    assert windowed.score.precision == pytest.approx(6 / 9)
    assert windowed.window_score == Score(1.0, 1.0, 1.0)


def test_the_ideal_answer_within_a_window() -> None:
    positions = [[[0.0, 0.0], [300.0, 0.0], [2_000.0, 0.0]], [[0.0, 0.0], [900.0, 0.0], [1_200.0, 0.0]]]
    no_reports = Reports(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)))
    scenario = make_scenario(positions, no_reports)
    assert ideal_pairs(scenario, 2.0).tolist() == codes((1, 2)).tolist()
    assert ideal_pairs(scenario, 3.0).tolist() == window_pairs(scenario, 3.0, 2.9).tolist() == codes((2, 3)).tolist()
    assert window_pairs(scenario, 3.0, 3.0).tolist() == codes((1, 2), (2, 3)).tolist()


def test_the_answer_at_an_instant_equals_that_of_a_validator() -> None:
    """With EVERY 1, the partial answers that last until an instant are the paper's answer at that instant."""
    vehicles = Options(objects=40, duration=24.0)
    current, compared = CurrentAnswers(vehicles.sample), 0
    job = make_monitor_job(vehicles, clauses="EVERY 1")
    for now, outcome, _ in step_seconds(job, cached_scenario(vehicles, 3)):
        current.update(outcome.answers, now)
        partial = [row for row in outcome.answers.to_pylist() if row["status"] == "partial"]
        released = {(row["a"]["car"], row["b"]["car"]) for row in partial if row["valid_to"] > now - 1e-6}
        if now % 3:  # predictions begin and end at multiples of 3
            assert codes(*sorted(released)).tolist() == current.at(now).tolist()
            compared += len(released)
    assert compared > 100


def test_plain_values_are_reported_if_they_are_too_far_off_or_too_old() -> None:
    positions = np.array([[[0.0, 0.0]], [[20.0, 0.0]], [[40.0, 0.0]], [[40.0, 20.0]], [[40.0, 20.0]], [[40.0, 20.0]]])
    reports = plain_reports(positions, Options(objects=1, duration=18.0, error=25.0, period=9.0))
    assert reports.t.tolist() == [0.0, 6.0, 15.0]
    assert reports.positions.tolist() == [[0.0, 0.0], [40.0, 0.0], [40.0, 20.0]]
    assert not reports.rates.any()


def test_a_value_constraint_leaves_the_answers_about_vehicles_that_satisfy_it() -> None:
    """An answer stays as it is if both predictions satisfy the constraint always, and none is added."""
    vehicles = Options(objects=40, duration=24.0)
    west = vehicles.side / 2
    reports = cached_scenario(vehicles, 3).report_rows().to_pylist()
    furthest = {(row["car"], row["t"]): max(row["x"], row["x"] + vehicles.period * row["x_rate"]) for row in reports}

    def found(at_most: float | None) -> dict[tuple, bool]:
        """Each answer, and whether both vehicles are in the west as long as their predictions are valid."""
        found = {}
        for _, outcome, _ in step_seconds(make_monitor_job(vehicles, at_most=at_most), cached_scenario(vehicles, 3)):
            for row in outcome.answers.to_pylist():
                key = row["a"]["car"], row["b"]["car"], row["valid_from"], row["valid_to"], row["status"]
                found[key] = max(furthest[row[name]["car"], row[name]["t"]] for name in "ab") <= west
        return found

    plain, constrained = found(None), found(west)
    inside = {answer for answer, is_inside in plain.items() if is_inside}
    assert inside <= constrained.keys()
    assert {answer[:2] for answer in constrained} <= {answer[:2] for answer in plain}
    assert 20 < len(inside) < len(constrained) < len(plain)


def test_predictions_that_cannot_satisfy_a_value_constraint_are_not_compared() -> None:
    vehicles = Options(objects=40, duration=24.0)
    scenario, job = cached_scenario(vehicles, 3), make_monitor_job(vehicles, at_most=vehicles.side / 4)
    run = run_micro_batches(job, scenario, 6.0, 0.0)
    check_same(run, run_micro_batches(job, scenario, 6.0, 0.0, EveryPair))
    everywhere = run_micro_batches(make_monitor_job(vehicles), scenario, 6.0, 0.0)
    assert 0 < run.answers < everywhere.answers / 2
    assert 0 < run.candidates < everywhere.candidates / 2


def test_reports_arrive_late_but_within_their_delay() -> None:
    vehicles = Options(objects=40, duration=24.0)
    late = replace(cached_scenario(vehicles, 3), most_delay=4.0)
    delays = late.arrivals - late.reports.t
    assert 0.0 <= delays.min() < 1.0
    assert 3.0 < delays.max() <= 4.0
    assert sum(outcome.rejected.num_rows for _, outcome, _ in step_seconds(make_monitor_job(vehicles), late)) == 0
    in_time, delayed = (run_seconds(make_monitor_job(vehicles), replace(late, most_delay=d)) for d in (0.0, 4.0))
    assert 0.5 < delayed.score.f < in_time.score.f


def test_different_answers_are_an_error() -> None:
    one = ThroughputRun(statuses={"tentative": 3}, checksum=12.0)
    check_same(one, ThroughputRun(statuses={"tentative": 3}, checksum=12.0))
    for count, checksum in ((2, 12.0), (3, 12.5)):
        with pytest.raises(AssertionError, match="answers differ"):
            check_same(one, ThroughputRun(statuses={"tentative": count}, checksum=checksum))


@pytest.mark.usefixtures("wide_terminal")
def test_a_quick_run_prints_tables_and_draws_nothing(chart_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--quick", "--rounds", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "40 vehicles: precision",
        "WITHIN 0",
        "values, same tuple rate",
        "3 s, OLDEST: recall",
        "every pair compared",
        "up to 2 s late, OLDEST: recall",
        "MUST, only in the western 25%: processor time",
    ):
        assert text in printed
    assert chart_names(chart_folder) == []


def test_charts(chart_folder: Path) -> None:
    score = Score(0.83, 0.99, 0.9)
    run = AccuracyRun(score, score, tuples=10.0, seconds=0.1, kept=5)
    charts.draw_objects({100: run, 200: run})
    charts.draw_functions({count: dict.fromkeys(REPORTING, run) for count in (100, 200)})
    policies = (UNLIMITED, *POLICIES)
    charts.draw_policies({within: dict.fromkeys(policies, run) for within in (1.0, 3.0)})
    assert chart_names(chart_folder) == ["monitor-functions.svg", "monitor-objects.svg", "monitor-policies.svg"]
