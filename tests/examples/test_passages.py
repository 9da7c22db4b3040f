"""The example of the passages: its sightings and figures by hand, and what is found again on the real trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.examples.scripts import load, real


@pytest.fixture
def prepare(monkeypatch):
    return load("passages/prepare.py", monkeypatch)


@pytest.fixture
def run(monkeypatch):
    return load("passages/run.py", monkeypatch)


@pytest.fixture
def draw(monkeypatch):
    return load("passages/draw.py", monkeypatch)


# ---------------------------------------------------------------- sightings


def reads_of(*places: tuple[str, float], trial: str = "d1p01M") -> pd.DataFrame:
    return pd.DataFrame([(trial, t, place) for place, t in places], columns=["trial", "t", "place"])


def test_a_sighting_is_the_first_read_of_a_stay(prepare):
    reads = reads_of(
        ("lying", 0), ("lying", 0.5), ("upright", 3), ("lying", 4), ("chair", 20), ("upright", 21), ("chair", 50)
    )  # fmt: skip
    found = prepare.sightings_of(reads)[["place", "t"]].values.tolist()
    assert found == [["lying", 0], ["upright", 3], ["chair", 20], ["upright", 21], ["chair", 50]]


def test_silence_is_no_new_sighting(prepare):
    assert prepare.sightings_of(reads_of(("lying", 0), ("lying", 100), ("chair", 101)))["t"].tolist() == [0, 101]


def test_the_place_is_told_by_antenna_and_posture(prepare, tmp_path: Path):
    rows = [("d1p01M", 2, 0.1), ("d1p01M", 1, 0.1), ("d1p01M", 1, 0.9), ("d2p01M", 1, 0.9), ("d2p01M", 2, 0.9)]
    reads = pd.DataFrame(rows, columns=["trial", "antenna", "acc_vert_g"]).assign(t_s=range(5), activity=4)
    reads.to_csv(tmp_path / "reads.csv.gz", index=False)
    assert prepare.read_reads(tmp_path)["place"].tolist() == ["chair", "lying", "upright", "chair", "upright"]


def test_what_is_lost_at_a_low_rate_is_lost_at_a_higher_one(prepare):
    sightings = reads_of(*(("lying", t) for t in range(1000)))
    few, many = (prepare.thinned(sightings, rate, copies=2) for rate in (0.1, 0.4))
    assert set(zip(many["trial"], many["t"], strict=True)) < set(zip(few["trial"], few["t"], strict=True))
    assert len(few) == pytest.approx(1800, abs=60)
    assert len(many) == pytest.approx(1200, abs=60)
    assert set(few["trial"]) == {"d1p01M#0", "d1p01M#1"}


def test_missing_data_are_said_in_one_line(prepare, tmp_path: Path):
    with pytest.raises(SystemExit, match="there is no rfid_batteryless in .*; say with --data where it is"):
        prepare.find_data(tmp_path)


# ---------------------------------------------------------------- figures


def answers_of(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["trial", "t_start", "t", "probability"])


def test_an_answer_is_true_where_a_passage_ends_at_the_same_sighting(run):
    truth = answers_of(("a", 0, 10, 1.0), ("b", 0, 10, 1.0))
    found = answers_of(("a", 5, 10, 0.6), ("a", 0, 11, 0.4), ("c", 0, 10, 1.0))
    assert run.judge(found, truth, copies=1) == {"answers": 3, "recall": 0.5, "precision": pytest.approx(1 / 3)}
    assert run.judge(run.likely(found), truth, copies=2)["recall"] == 0.25
    assert np.isnan(run.judge(found[:0], truth)["precision"])


def test_labels_say_who_was_off_the_bed(run):
    reads = pd.DataFrame({"trial": "a", "t": [0.0, 50.0, 100.0], "activity": ["lying", "ambulating", "lying"]})
    found = answers_of(("a", 0, 60, 1), ("a", 0, 31, 1), ("a", 0, 29, 1), ("a", 51, 100, 1), ("b", 0, 100, 1))
    assert run.left_bed(found, reads).tolist() == [True, True, False, False, False]


def test_the_picture_has_a_line_for_each_way_to_ask(draw):
    told = pd.DataFrame(
        [
            {"query": query, "lost": lost, "asked": which, "recall": 0.5, "precision": 0.9}
            for query in ("one", "two")
            for lost in (0.1, 0.2)
            for which in draw.COLOURS
        ]
    )
    picture = draw.draw(told)
    assert picture.count("<polyline") == 2 * (4 + 3), "recall has the line of what can be found, too"


# ---------------------------------------------------------------- real trials


def test_more_is_found_again_than_is_read(run, prepare, spark):
    """Measured with 20 copies: 30% lost, recall of 0.180 as read, 0.357 where it is likely, 0.504 of all answers."""
    reads = prepare.read_reads(real("rfid_batteryless"))
    asked = run.ask_all(prepare.sightings_of(reads), rates=(0.3,), copies=4)
    assert {query: len(truth) for query, truth in asked.truth.items()} == {"to_chair": 79, "there_and_back": 41}
    told = run.figures(asked, reads, copies=4).set_index(["query", "asked"])
    for query in run.QUERIES:
        reachable, read, likely, everything = (
            told.loc[query, which] for which in (run.REACHABLE, run.AS_READ, run.LIKELY_ONES, run.ALL)
        )
        assert read["recall"] < likely["recall"] < everything["recall"] < reachable["recall"]
        assert read["precision"] == 1.0 > likely["precision"] > everything["precision"]
        assert likely["precision"] > 0.8
    assert (
        told.loc[("there_and_back", run.LIKELY_ONES), "recall"]
        > 1.5 * told.loc[("there_and_back", run.AS_READ), "recall"]
    )
