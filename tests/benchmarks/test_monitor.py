"""The benchmark of MONITOR on few vehicles: what the answer of an instant is, how it is scored, tables and pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import monitor, monitor_charts
from benchmarks.__main__ import main
from benchmarks.monitor_run import (
    Driven,
    Followed,
    Scenario,
    Score,
    Standing,
    follow,
    ideal_pairs,
    job_of,
    pair_codes,
    plain_reports,
    scenario,
    seconds_of,
    window_pairs,
)

from anabranch.simulate.vehicles import Options, Told

Row = tuple[str, tuple[int, float], tuple[int, float], float, float]


def answers(*rows: Row) -> pa.Table:
    """Answers of a step: status, both predictions as car and time, and when they are valid."""
    event = pa.struct([("car", pa.int64()), ("t", pa.float64())])
    status, first, second, begin, end = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    structs = [pa.array([{"car": car, "t": t} for car, t in each], event) for each in (first, second)]
    times = [pa.array(each, pa.float64()) for each in (begin, end)]
    return pa.table([*structs, *times, pa.array(status, pa.string())], ["a", "b", "valid_from", "valid_to", "status"])


def codes(*pairs: tuple[int, int]) -> np.ndarray:
    return pair_codes(*np.array(pairs).reshape(-1, 2).T)


def placed(positions: list[list[list[float]]], told: Told) -> Scenario:
    """A made-up scenario, of a measurement every three seconds."""
    places = np.array(positions)
    return Scenario(Options(objects=places.shape[1], duration=3.0 * len(places)), places, told)


@pytest.mark.parametrize(
    ("found", "ideal", "expected"),
    [
        ([(1, 2), (1, 3), (2, 3), (2, 4)], [(1, 3), (2, 3), (4, 5)], (1 / 2, 2 / 3, 4 / 7)),
        ([(1, 2)], [(1, 2)], (1, 1, 1)),
        ([(1, 2)], [(2, 1)], (0, 0, 0)),
        ([], [(1, 2)], (1, 0, 0)),
        ([(1, 2)], [], (0, 1, 0)),
        ([], [], (1, 1, 1)),
    ],
)
def test_precision_and_recall(found: list, ideal: list, expected: tuple[float, float, float]) -> None:
    score = Score.of(codes(*found), codes(*ideal))
    assert (score.precision, score.recall, score.f) == pytest.approx(expected)


def test_an_answer_stands_until_it_is_taken_back_or_over() -> None:
    standing = Standing(sample=3.0)
    said = [("tentative", (1, 0.0), (2, 0.0), 0.0, 9.0), ("tentative", (1, 0.0), (3, 0.0), 2.0, 4.0)]
    standing.take(answers(*said), 0.0)
    assert [standing.at(t).tolist() for t in (0.0, 2.0, 4.0)] == [
        codes((1, 2)).tolist(), codes((1, 2), (1, 3)).tolist(), codes((1, 2)).tolist(),
    ]  # fmt: skip
    # Car 2 tells anew: what was said is taken back, what is left of it ends here, and another answer begins later.
    again = [
        ("invalidated", (1, 0.0), (2, 0.0), 0.0, 9.0),
        ("tentative", (1, 0.0), (2, 0.0), 0.0, 3.0),
        ("tentative", (1, 0.0), (2, 3.0), 5.0, 6.0),
    ]
    standing.take(answers(*again), 3.0)
    assert [standing.at(t).tolist() for t in (3.0, 5.0, 6.0)] == [codes((1, 3)).tolist(), codes((1, 2)).tolist(), []]


def test_a_pair_that_drives_apart() -> None:
    """Cars 1 and 2 stand still, 300 m apart; car 2 leaves after 3 s, and tells so at once, or never."""
    positions = [[[0.0, 0.0], [300.0, 0.0]], [[0.0, 0.0], [300.0, 0.0]], [[0.0, 0.0], [900.0, 0.0]]]
    still = Told(np.array([1, 2]), np.zeros(2), np.array(positions[0]), np.zeros((2, 2)))
    scores = follow(job_of(Options(), within=0.0), placed(positions, still)).score
    assert (scores.precision, scores.recall) == pytest.approx((6 / 9, 1.0))  # said to be near in the last three, too
    told = Told(
        np.array([1, 2, 2]), np.array([0.0, 0.0, 6.0]), np.array([*positions[0], positions[2][1]]), np.zeros((3, 2))
    )
    assert follow(job_of(Options(), within=0.0), placed(positions, told)).score == Score(1.0, 1.0, 1.0)
    # With a window, car 1 is near where car 2 was until 6, for three seconds more.
    windowed = follow(job_of(Options(), within=3.0), placed(positions, told))
    assert windowed.score.precision == pytest.approx(6 / 9)
    assert windowed.window_score == Score(1.0, 1.0, 1.0)


def test_the_ideal_answer_within_a_window() -> None:
    positions = [[[0.0, 0.0], [300.0, 0.0], [2_000.0, 0.0]], [[0.0, 0.0], [900.0, 0.0], [1_200.0, 0.0]]]
    nobody = Told(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)))
    made = placed(positions, nobody)
    assert ideal_pairs(made, 2.0).tolist() == codes((1, 2)).tolist()
    assert ideal_pairs(made, 3.0).tolist() == window_pairs(made, 3.0, 2.9).tolist() == codes((2, 3)).tolist()
    assert window_pairs(made, 3.0, 3.0).tolist() == codes((1, 2), (2, 3)).tolist()


def test_the_answer_of_an_instant_is_what_a_validator_releases() -> None:
    """With EVERY 1, what is partial at an instant and goes on until then is the paper's answer of that instant."""
    vehicles = Options(objects=40, duration=24.0)
    standing, compared = Standing(vehicles.sample), 0
    for now, outcome, _ in seconds_of(job_of(vehicles, more="EVERY 1"), scenario(vehicles, 3)):
        standing.take(outcome.answers, now)
        partial = [row for row in outcome.answers.to_pylist() if row["status"] == "partial"]
        released = {(row["a"]["car"], row["b"]["car"]) for row in partial if row["valid_to"] > now - 1e-6}
        if now % 3:  # where predictions begin or end they are at an edge
            assert codes(*sorted(released)).tolist() == standing.at(now).tolist()
            compared += len(released)
    assert compared > 100


def test_plain_values_are_told_where_they_are_too_far_off_or_too_old() -> None:
    places = np.array([[[0.0, 0.0]], [[20.0, 0.0]], [[40.0, 0.0]], [[40.0, 20.0]], [[40.0, 20.0]], [[40.0, 20.0]]])
    told = plain_reports(places, Options(objects=1, duration=18.0, error=25.0, period=9.0))
    assert told.t.tolist() == [0.0, 6.0, 15.0]
    assert told.places.tolist() == [[0.0, 0.0], [40.0, 0.0], [40.0, 20.0]]
    assert not told.rates.any()


def test_other_answers_are_noticed() -> None:
    one = Driven(statuses={"tentative": 3}, checksum=12.0)
    monitor.same(one, Driven(statuses={"tentative": 3}, checksum=12.0))
    for other in (Driven(statuses={"tentative": 2}, checksum=12.0), Driven(statuses={"tentative": 3}, checksum=12.5)):
        with pytest.raises(AssertionError, match="answers differ"):
            monitor.same(one, other)


def test_it_runs_and_draws_nothing_when_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(monitor_charts, "PICTURES", tmp_path)
    assert main(["monitor", "--quick"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in ("40 vehicles: precision", "WITHIN 0", "values, as few", "3 s, OLDEST: recall", "every pair compared"):
        assert text in printed
    assert not list(tmp_path.iterdir())


def test_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_charts, "PICTURES", tmp_path)
    score = Score(0.83, 0.99, 0.9)
    each = Followed(score, score, tuples=10.0, seconds=0.1, kept=5)
    monitor_charts.draw_objects({100: each, 200: each})
    monitor_charts.draw_functions({count: dict.fromkeys(monitor.WAYS, each) for count in (100, 200)})
    policies = (monitor.UNLIMITED, *monitor.POLICIES)
    monitor_charts.draw_policies({within: dict.fromkeys(policies, each) for within in (1.0, 3.0)})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "monitor-functions.svg", "monitor-objects.svg", "monitor-policies.svg",
    ]  # fmt: skip
    for picture in tmp_path.iterdir():
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 - we have just written it
