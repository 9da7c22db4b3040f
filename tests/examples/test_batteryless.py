"""The example of the battery-free tags: its labels and events by hand, and its inference on the real trials."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.examples.scripts import load, real

BED, LYING, WALK = "sitting on bed", "lying", "ambulating"


@pytest.fixture
def prepare(monkeypatch):
    return load("batteryless/prepare.py", monkeypatch)


@pytest.fixture
def run(monkeypatch):
    return load("batteryless/run.py", monkeypatch)


@pytest.fixture
def labelled() -> pd.DataFrame:
    """Two trials, read now and then."""
    rows = [("d1p01M", 0, LYING), ("d1p01M", 3, BED), ("d1p01M", 4, WALK), ("d1p02F", 7, LYING), ("d1p02F", 9, WALK)]
    return pd.DataFrame(rows, columns=["trial", "t", "activity"]).assign(reading="1/2/0/0")


def test_between_readings_people_go_on_with_what_they_did(prepare, labelled):
    found = prepare.every_second(labelled)
    assert found["t"].tolist() == [0, 1, 2, 3, 4, 7, 8, 9]
    assert found["activity"].tolist() == [LYING, LYING, LYING, BED, WALK, LYING, LYING, WALK]
    assert found["trial"].tolist() == ["d1p01M"] * 5 + ["d1p02F"] * 3


def test_events_are_where_activities_change(run, labelled):
    room = run.Room("room1", labelled, frozenset(labelled["trial"]))
    found = {name: rows.values.tolist() for name, rows in run.true_events(room).items()}
    assert found == {"got_up": [["d1p01M", 4]], "left_bed": [["d1p01M", 4], ["d1p02F", 9]]}


def test_a_second_has_one_reading(prepare):
    reads = pd.DataFrame(
        {
            "trial": "d1p01M",
            "t_s": [0.1, 0.5, 0.9, 2.0],
            "acc_vert_g": [1.0, 1.0, 0.4, 0.1],
            "acc_front_g": [0.2, 0.3, 0.1, 1.0],
            "rssi": [-50.0, -59.0, -56.0, -70.0],
            "antenna": [2, 3, 3, 1],
            "activity": [1, 1, 4, 3],
        }
    )
    found = prepare._seconds(reads)
    assert found.values.tolist() == [["d1p01M", 0, "3/1/0/1", WALK], ["d1p01M", 2, "1/0/2/0", LYING]]
    assert set(found["reading"]) < set(prepare.READINGS)


def test_missing_data_are_said_in_one_line(prepare, tmp_path: Path):
    with pytest.raises(SystemExit, match="there is no rfid_batteryless in .*; say with --data where it is"):
        prepare.find_data(tmp_path)


def test_trials_are_held_out_once_each(prepare):
    thirds = [prepare.read_rooms(real("rfid_batteryless"), third) for third in range(prepare.THIRDS)]
    for of_room in zip(*thirds, strict=True):
        held_out = [set(room.test["trial"]) for room in of_room]
        assert sum(map(len, held_out)) == len(set().union(*held_out)) == of_room[0].seconds["trial"].nunique()
        assert not any(set(room.history["trial"]) & set(room.test["trial"]) for room in of_room)


def test_activities_are_inferred_in_trials_that_the_model_never_saw(run):
    """Measured: 0.977 by smoothing and VITERBI, 0.967 by filtering, 0.963 without memory."""
    rooms = run.read_rooms(real("rfid_batteryless"))
    inferred = run.infer_all(rooms, [run.fit(room.history) for room in rooms])
    right = {name: (inferred[name] == inferred["activity"]).mean() for name in ("reading alone", *run.METHODS)}
    assert right["MLE"] == right["FILTER"] > right["reading alone"]
    assert min(right["MARGINALS"], right["VITERBI"]) > right["FILTER"]
    assert right["MARGINALS"] > 0.96


def test_probabilities_find_more_of_those_who_got_up_than_one_path(run, spark):
    """Measured in the second room: F1 of 0.759 by VITERBI and 0.907 by SMOOTH, which expects 19.7 events of 17."""
    room = run.read_rooms(real("rfid_batteryless"))[1]
    events = run.true_events(room)["got_up"]
    answers = run.ask(room, run.fit(room.history), ["got_up", "got_up_viterbi"])
    (path,) = run.judge(answers["got_up_viterbi"], events, [0])
    best = max(each.f1 for each in run.judge(answers["got_up"], events, run.THRESHOLDS))
    assert best >= path.f1
    assert best > 0.85
    assert answers["got_up"]["probability"].sum() == pytest.approx(len(events), rel=0.3)
