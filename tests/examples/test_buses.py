"""The example `buses`: windows by hand, and its query on one route of the real day."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anabranch.evaluation import expected_error
from tests.examples.scripts import real

EXAMPLE = "buses"


STOPS = pd.DataFrame({"trip": 1, "sequence": [2, 3, 4], "stop": [10, 11, 12], "x": [0.0, 300.0, 600.0], "y": 0.0})
"""Three stops on a straight road; a bus is at the middle one from 255 m to 320 m."""


def reports(*rows: tuple[float, float, float], sequence: int = 3) -> pd.DataFrame:
    """Return the reports of a bus, from t, x and speed."""
    table = pd.DataFrame(rows, columns=["t", "x", "speed"], dtype=float)
    return table.assign(trip=1, journey="D40 10:00 1", start=36_000.0, sequence=sequence, y=0.0)


def visit(prepare, *rows: tuple[float, float, float]) -> dict[str, float]:
    """Return the visit to the middle stop."""
    visits = prepare.visits_of(reports(*rows), STOPS)
    assert visits["stop"].tolist() == [11]
    return visits.iloc[0].to_dict()


def test_windows_are_between_reports_without_the_time_to_reach_the_line(prepare):
    middle = visit(prepare, (0, 155, 5), (30, 290, 0), (60, 290, 0), (90, 420, 8))
    assert (middle["arrival_lo"], middle["arrival_hi"]) == (5.0, 28.25)
    assert (middle["departure_lo"], middle["departure_hi"]) == (61.5, 85.0)
    assert (middle["arrival_seen"], middle["departure_seen"]) == (30.0, 60.0)
    assert middle["arrival_straight"] == pytest.approx(30 * 100 / 135)
    assert np.isnan([middle["arrival"], middle["departure"]]).all()


def test_a_report_near_a_line_records_its_crossing(prepare):
    middle = visit(prepare, (0, 155, 5), (30, 265, 5), (60, 316, 4), (90, 420, 8))
    assert (middle["arrival"], middle["departure"]) == (28.0, 61.0)


def test_a_bus_that_stands_on_a_line_records_nothing(prepare):
    middle = visit(prepare, (0, 155, 5), (30, 255.01, 0), (60, 319.99, 0), (90, 420, 8))
    assert np.isnan([middle["arrival"], middle["departure"]]).all()


def test_the_windows_of_a_visit_between_two_reports_overlap(prepare):
    middle = visit(prepare, (0, 155, 5), (30, 420, 8))
    assert (middle["arrival_lo"], middle["arrival_hi"]) == (5.0, 21.75)
    assert (middle["departure_lo"], middle["departure_hi"]) == (8.25, 25.0)
    assert np.isnan([middle["arrival_seen"], middle["departure_seen"]]).all()


def test_with_an_impossible_speed_the_windows_are_the_times_of_the_reports(prepare):
    middle = visit(prepare, (0, 0, 5), (10, 600, 8))
    assert [middle[f"{event}_{end}"] for event in ("arrival", "departure") for end in ("lo", "hi")] == [0, 10, 0, 10]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(0, 290, 0), (30, 420, 8)], id="nothing before it"),
        pytest.param([(0, 155, 5), (30, 290, 0)], id="nothing after it"),
        pytest.param([(0, 155, 5), (400, 420, 8)], id="a long silence"),
    ],
)
def test_a_visit_needs_reports_before_and_after_it(prepare, rows):
    assert prepare.visits_of(reports(*rows), STOPS).empty


def test_reports_before_the_first_and_after_the_last_stop_are_left_out(prepare):
    first = [reports(*((t, 0.0, 0.0) for t in times), sequence=n) for n, times in ((2, (0, 30)), (3, (60,)))]
    sent = pd.concat([*first, reports((90, 600, 0), (120, 600, 0), sequence=4)], ignore_index=True)
    assert prepare._on_the_way(sent, STOPS)["t"].tolist() == [30, 60, 90]


def test_a_row_has_a_time_or_a_window(prepare):
    visits = prepare.visits_of(reports((0, 155, 5), (30, 265, 5), (60, 290, 0), (90, 420, 8)), STOPS)
    arrival, departure = prepare.stream_of(visits).to_dict("records")
    assert (arrival["seq"], departure["seq"]) == (1, 2)
    assert arrival["t"] == pd.Timestamp(28, unit="s", tz="UTC")
    assert pd.isna([arrival["lo"], arrival["hi"], departure["t"]]).all()
    assert departure["lo"] < departure["hi"]


def test_visits_that_touch_are_a_meeting(run):
    spans = [("a", 0.0, 10.0), ("b", 10.0, 20.0), ("c", 21.0, np.nan)]
    visits = pd.DataFrame(spans, columns=["journey", "arrival", "departure"]).assign(stop=11, departure_seen=30.0)
    visits = visits.assign(arrival_seen=0.0, arrival_lo=0.0, arrival_hi=0.0, departure_lo=18.0, departure_hi=40.0)
    assert run.meetings(visits, "_seen")[run.PAIR].values.tolist() == [[11, "a", "b"]]
    assert run.meetings(visits.assign(arrival=visits["arrival"].replace(21.0, 20.0)), "").shape[0] == 2


def test_windows_contain_the_times_from_more_reports(run):
    """Measured: all but 1 of 2,896 arrivals and 5 of 3,040 departures."""
    folder = real("wmata_bus")
    sent, stops = run.read_reports(folder), run.read_stops(folder)
    key = ["stop", "journey"]
    both = run.visits_of(run.every(sent, 3, 0), stops).merge(run.visits_of(sent, stops), on=key, suffixes=("", "_full"))
    for event in run.LINES:
        lost = both[both[event].isna() & both[f"{event}_full"].notna()]
        contained = lost[f"{event}_full"].between(lost[f"{event}_lo"], lost[f"{event}_hi"])
        assert len(lost) > 2_000
        assert contained.mean() > 0.998


def test_probabilities_are_calibrated_on_one_route(run, spark):
    """Measured: F1 of 0.881, 0.879 by the middle of the window and 0.746 by straight lines; 338 of 360 expected."""
    folder = real("wmata_bus")
    sent, stops = run.read_reports(folder), run.read_stops(folder)
    sent = sent[sent["journey"].str.startswith("D40")]
    visits, thinned = (run.more_often(run.visits_of(rows, stops)) for rows in (sent, run.every(sent, 3, 0)))
    truth, answers = run.compare(visits, [thinned])
    (half,) = run.judge(answers["probability"], truth, [0.5])
    others = [run.judge(answers[name], truth, [0])[0].f1 for name in run.METHODS]
    assert half.f1 >= max(others)
    assert half.f1 > 0.85
    assert answers["probability"]["probability"].sum() == pytest.approx(len(truth), rel=0.1)
    assert expected_error(run.reliability(answers["probability"], truth)) < 0.08


def test_journeys_that_meet_at_three_or_more_stops(run, spark):
    """The expected number of stops is the sum of the probabilities at the stops, up to the order of the visits."""
    folder = real("wmata_bus")
    sent = run.read_reports(folder)
    visits = run.visits_of(sent[sent["journey"].str.startswith(("C53 11", "C53 13"))], run.read_stops(folder))
    convoys = run.convoys(visits)
    assert convoys[["first", "second"]].to_numpy().tolist() == [
        ["C53 11:12 5475", "C53 11:24 5516"],
        ["C53 13:36 5539", "C53 13:48 2852"],
    ]
    together = run.ask(visits).groupby(["first", "second"])["probability"].sum()
    for row in convoys.itertuples():
        assert row.expected == pytest.approx(together[row.first, row.second], abs=0.05)


def test_the_picture_has_a_row_for_each_stop(draw):
    times = dict.fromkeys(["arrival_lo", "arrival_hi"], 100.0) | dict.fromkeys(["departure_lo", "departure_hi"], 130.0)
    visits = pd.DataFrame([{"stop": 11, "journey": bus, **times} for bus in draw.BUSES])
    visits = visits.assign(arrival=[100.0, np.nan], departure=130.0)
    answers = pd.DataFrame({"stop": [11], "probability": [0.25]})
    drawn = draw.picture(visits, visits.fillna(100.0), answers, pd.Series({11: "7 St NW+T St NW"}))
    assert drawn.count("7 St+T St") == 1
    assert "0.250" in drawn
