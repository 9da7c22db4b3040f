"""The example `batteryless`: labels and events by hand, and inference on the real trials."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.examples.scripts import real

EXAMPLE = "batteryless"

BED, LYING, WALK = "sitting on bed", "lying", "ambulating"


@pytest.fixture
def labelled() -> pd.DataFrame:
    """Return two trials with few readings."""
    rows = [("d1p01M", 0, LYING), ("d1p01M", 3, BED), ("d1p01M", 4, WALK), ("d1p02F", 7, LYING), ("d1p02F", 9, WALK)]
    return pd.DataFrame(rows, columns=["trial", "t", "activity"]).assign(reading="1/2/0/0")


def test_the_activity_between_readings_is_the_last_one(prepare, labelled):
    seconds = prepare.every_second(labelled)
    assert seconds["t"].tolist() == [0, 1, 2, 3, 4, 7, 8, 9]
    assert seconds["activity"].tolist() == [LYING, LYING, LYING, BED, WALK, LYING, LYING, WALK]
    assert seconds["trial"].tolist() == ["d1p01M"] * 5 + ["d1p02F"] * 3


def test_events_are_where_activities_change(run, labelled):
    room = run.Room("room1", labelled, frozenset(labelled["trial"]))
    events = {name: rows.values.tolist() for name, rows in run.true_events(room).items()}
    assert events == {"got_up": [["d1p01M", 4]], "left_bed": [["d1p01M", 4], ["d1p02F", 9]]}


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
    seconds = prepare._seconds(reads)
    assert seconds.values.tolist() == [["d1p01M", 0, "3/1/0/1", WALK], ["d1p01M", 2, "1/0/2/0", LYING]]
    assert set(seconds["reading"]) < set(prepare.READINGS)


def test_each_trial_is_held_out_once(prepare):
    thirds = [prepare.read_rooms(real("rfid_batteryless"), third) for third in range(prepare.THIRDS)]
    for splits in zip(*thirds, strict=True):
        held_out = [set(room.test["trial"]) for room in splits]
        assert sum(map(len, held_out)) == len(set().union(*held_out)) == splits[0].seconds["trial"].nunique()
        assert not any(set(room.history["trial"]) & set(room.test["trial"]) for room in splits)


def test_inference_in_held_out_trials(run):
    """Measured: 0.977 by smoothing and VITERBI, 0.967 by filtering, 0.963 without memory."""
    rooms = run.read_rooms(real("rfid_batteryless"))
    inferred = run.infer_all(rooms, [run.fit(room.history) for room in rooms])
    right = {name: (inferred[name] == inferred["activity"]).mean() for name in ("reading alone", *run.METHODS)}
    assert right["MLE"] == right["FILTER"] > right["reading alone"]
    assert min(right["MARGINALS"], right["VITERBI"]) > right["FILTER"]
    assert right["MARGINALS"] > 0.96


def test_probabilities_are_better_than_the_most_probable_path(run, spark):
    """Measured in the second room: F1 of 0.759 by VITERBI and 0.907 by SMOOTH, which expects 19.7 events of 17."""
    room = run.read_rooms(real("rfid_batteryless"))[1]
    events = run.true_events(room)["got_up"]
    answers = run.ask(room, run.fit(room.history), ["got_up", "got_up_viterbi"])
    (path,) = run.judge(answers["got_up_viterbi"], events, [0])
    best = max(quality.f1 for quality in run.judge(answers["got_up"], events, run.THRESHOLDS))
    assert best >= path.f1
    assert best > 0.85
    assert answers["got_up"]["probability"].sum() == pytest.approx(len(events), rel=0.3)
