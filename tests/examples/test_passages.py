"""The example `passages`: sightings and figures by hand, and recall on the real trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.examples.scripts import real

EXAMPLE = "passages"


# ---------------------------------------------------------------- sightings


def reads_of(*places: tuple[str, float], trial: str = "d1p01M") -> pd.DataFrame:
    return pd.DataFrame([(trial, t, place) for place, t in places], columns=["trial", "t", "place"])


def test_a_sighting_is_the_first_read_of_a_stay(prepare):
    reads = reads_of(
        ("lying", 0), ("lying", 0.5), ("upright", 3), ("lying", 4), ("chair", 20), ("upright", 21), ("chair", 50)
    )  # fmt: skip
    sightings = prepare.sightings_of(reads)[["place", "t"]].values.tolist()
    assert sightings == [["lying", 0], ["upright", 3], ["chair", 20], ["upright", 21], ["chair", 50]]


def test_a_pause_at_one_place_is_no_new_sighting(prepare):
    assert prepare.sightings_of(reads_of(("lying", 0), ("lying", 100), ("chair", 101)))["t"].tolist() == [0, 101]


def test_the_place_depends_on_antenna_and_posture(prepare, tmp_path: Path):
    rows = [("d1p01M", 2, 0.1), ("d1p01M", 1, 0.1), ("d1p01M", 1, 0.9), ("d2p01M", 1, 0.9), ("d2p01M", 2, 0.9)]
    reads = pd.DataFrame(rows, columns=["trial", "antenna", "acc_vert_g"]).assign(t_s=range(5), activity=4)
    reads.to_csv(tmp_path / "reads.csv.gz", index=False)
    assert prepare.read_reads(tmp_path)["place"].tolist() == ["chair", "lying", "upright", "chair", "upright"]


def test_sightings_lost_at_a_low_rate_are_lost_at_a_higher_one(prepare):
    sightings = reads_of(*(("lying", t) for t in range(1000)))
    few, many = (prepare.thinned(sightings, rate, copies=2) for rate in (0.1, 0.4))
    assert set(zip(many["trial"], many["t"], strict=True)) < set(zip(few["trial"], few["t"], strict=True))
    assert len(few) == pytest.approx(1800, abs=60)
    assert len(many) == pytest.approx(1200, abs=60)
    assert set(few["trial"]) == {"d1p01M#0", "d1p01M#1"}


# ---------------------------------------------------------------- figures


def answers_of(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["trial", "t_start", "t", "probability"])


def test_an_answer_is_true_if_a_passage_ends_at_the_same_sighting(run):
    truth = answers_of(("a", 0, 10, 1.0), ("b", 0, 10, 1.0))
    answers = answers_of(("a", 5, 10, 0.6), ("a", 0, 11, 0.4), ("c", 0, 10, 1.0))
    assert run.judge(answers, truth, copies=1) == {"answers": 3, "recall": 0.5, "precision": pytest.approx(1 / 3)}
    assert run.judge(run.likely(answers), truth, copies=2)["recall"] == 0.25
    assert np.isnan(run.judge(answers[:0], truth)["precision"])


def test_labels_off_the_bed(run):
    reads = pd.DataFrame({"trial": "a", "t": [0.0, 50.0, 100.0], "activity": ["lying", "ambulating", "lying"]})
    answers = answers_of(("a", 0, 60, 1), ("a", 0, 31, 1), ("a", 0, 29, 1), ("a", 51, 100, 1), ("b", 0, 100, 1))
    assert run.left_bed(answers, reads).tolist() == [True, True, False, False, False]


def test_the_picture_has_a_line_for_each_method(draw):
    table = pd.DataFrame(
        [
            {"query": query, "lost": lost, "method": method, "recall": 0.5, "precision": 0.9}
            for query in ("one", "two")
            for lost in (0.1, 0.2)
            for method in draw.COLOURS
        ]
    )
    picture = draw.draw(table)
    assert picture.count("<polyline") == 2 * (4 + 3), "recall also has the line of the upper bound"


# ---------------------------------------------------------------- real trials


def test_recall_with_miss_is_higher_than_as_read(run, prepare, spark):
    """Measured with 20 copies, 30% lost: recall of 0.180 as read, 0.357 of likely answers, 0.504 of all answers."""
    reads = prepare.read_reads(real("rfid_batteryless"))
    results = run.ask_all(prepare.sightings_of(reads), rates=(0.3,), copies=4)
    assert {query: len(truth) for query, truth in results.truth.items()} == {"to_chair": 79, "there_and_back": 41}
    table = run.figures(results, reads, copies=4).set_index(["query", "method"])
    for query in run.QUERIES:
        reachable, read, likely, everything = (
            table.loc[query, method] for method in (run.REACHABLE, run.AS_READ, run.LIKELY_ONES, run.ALL)
        )
        assert read["recall"] < likely["recall"] < everything["recall"] < reachable["recall"]
        assert read["precision"] == 1.0 > likely["precision"] > everything["precision"]
        assert likely["precision"] > 0.8
    assert (
        table.loc[("there_and_back", run.LIKELY_ONES), "recall"]
        > 1.5 * table.loc[("there_and_back", run.AS_READ), "recall"]
    )
