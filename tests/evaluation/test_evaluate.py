"""Evaluation of answers of every kind: which are true, how often an event counts, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from anabranch.columns.calibration import read_map
from anabranch.errors import DataError
from anabranch.evaluation import Evaluation, evaluate
from anabranch.evaluation.files import read_table

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def minutes(*numbers: float) -> list[datetime]:
    return [START + timedelta(minutes=number) for number in numbers]


def pattern(**changes: Any) -> pa.Table:
    """Five answers of a PATTERN; Ana's first two are about one event, and Ben has none."""
    columns = {
        "t": [10, 11, 90, 10, 200],
        "person": ["ana", "ana", "ana", "ben", "eva"],
        "probability": [0.6, 0.8, 0.1, 0.5, 0.9],
        "lower": [0.6, 0.8, 0.1, 0.5, 0.9],
        "method": ["exact"] * 5,
    }
    return pa.table(columns | changes)


TRUTH = pa.table({"person": ["ana", "eva", "eva"], "t": [12, 203, 500], "note": ["a", "b", "c"]})


def test_answers_of_one_event_count_once_in_precision_and_the_event_once_in_recall() -> None:
    result = evaluate(pattern(), TRUTH, tolerance=5)
    assert result.true.tolist() == [True, True, False, False, True]
    at = {quality.threshold: quality for quality in result.qualities}
    assert (at[0.0].answers, at[0.0].right, at[0.0].events, at[0.0].found) == (4, 2, 3, 2)
    assert (at[0.5].answers, at[0.5].right) == (3, 2), "a threshold is inclusive, as THRESHOLD is"
    assert (at[0.9].answers, at[0.9].found) == (1, 1)
    assert result.best.threshold == 0.6
    assert (result.best.precision, result.best.recall) == (1.0, pytest.approx(2 / 3))
    assert (result.events, result.unanswered, result.matched_by) == (3, 1, ("person",))


def test_scores_are_about_answers_and_their_error_about_episodes() -> None:
    result = evaluate(pattern(), TRUTH, tolerance=5)
    assert result.scores.count == 5
    assert result.scores.brier == pytest.approx((0.4**2 + 0.2**2 + 0.1**2 + 0.5**2 + 0.1**2) / 5)
    deviations = [p * (1 - p) for p in (0.6, 0.8, 0.1, 0.5, 0.9)]
    together = (deviations[0] ** 0.5 + deviations[1] ** 0.5) ** 2
    assert result.scores.standard_error == pytest.approx((together + sum(deviations[2:])) ** 0.5 / 5)
    assert evaluate(pattern(), TRUTH, tolerance=5, gap=0).scores.standard_error < result.scores.standard_error


def test_worst_bins_have_the_answers_that_they_are_wrong_about() -> None:
    worst = evaluate(pattern(), TRUTH, tolerance=5).worst
    assert [bin.bin.low for bin in worst] == [0.5, 0.6, 0.8]
    assert worst[0].examples == (
        {"person": "ben", "t": "10", "probability": 0.5, "true": False, "nearest_event": None},
    )
    assert worst[1].examples[0]["nearest_event"] == 2.0


def test_sequence_answers_are_matched_by_a_field_that_their_structs_share() -> None:
    tags = pa.array([{"tag": "a", "t": 1}, None, {"tag": "c", "t": 3}])
    last = pa.array([{"tag": "a", "t": 5}, {"tag": "b", "t": 6}, {"tag": "c", "t": 7}])
    answers = pa.table({"t": [5, 6, 7], "t_start": [1, 6, 3], "probability": [0.9, 0.5, 0.4], "x": tags, "z": last})
    result = evaluate(answers, pa.table({"tag": ["a", "b"]}))
    assert result.true.tolist() == [True, True, False]
    assert (result.matched_by, result.timed) == (("tag",), False)
    assert evaluate(answers, pa.table({"z.tag": ["c"], "t": [7]})).true.tolist() == [False, False, True]
    missing = evaluate(answers, pa.table({"tag": ["a", "b"]}), where=["x.tag="])
    assert (missing.probabilities.tolist(), missing.left_out) == ([0.5], 0), "only the match without x"
    assert evaluate(answers, pa.table({"tag": ["a"]}), where=["x.tag!=", "x.t=1"]).probabilities.tolist() == [0.9]


def test_relate_answers_are_matched_by_the_keys_of_both_operands() -> None:
    answers = pa.table(
        {"a": [{"k": 1}, {"k": 1}, {"k": 2}], "b": [{"k": 2}, {"k": 3}, {"k": 3}], "probability": [0.9, 0.4, 0.2]}
    )
    truth = pa.table({"a_k": ["1", "2", "7"], "b_k": ["2", "3", "8"], "true": [1, 0, 1]})
    result = evaluate(answers, truth)
    assert result.true.tolist() == [True, False, False], "rows of the truth that are not true do not count"
    assert (result.events, result.unanswered) == (2, 1)
    renamed = truth.rename_columns(["a_k", "b_k", "met"])
    assert evaluate(answers, renamed, label="met").true.tolist() == result.true.tolist()
    with pytest.raises(DataError, match=r"^k may be any of several columns: a\.k and b\.k of the answers differ"):
        evaluate(answers, pa.table({"k": [1]}))
    assert evaluate(answers, pa.table({"first": [1]}), by=["a.k=first"]).true.tolist() == [True, True, False]


def test_monitor_answers_are_intervals() -> None:
    answers = pa.table(
        {
            "a": [{"car": 1, "t": 0}] * 3,
            "valid_from": minutes(0, 4, 20),
            "valid_to": minutes(2, 6, 21),
            "probability": [0.9, 0.9, 0.2],
            "status": ["validated", "validated", "tentative"],
        }
    )
    truth = pa.table({"car": [1], "begin": minutes(5), "end": minutes(30)})
    time = "valid_from,valid_to=begin,end"
    result = evaluate(answers, truth, time=time)
    assert result.true.tolist() == [False, True], "answers that are not final are left out"
    assert result.left_out == 1
    assert evaluate(answers, truth, time=time, tolerance=180).true.tolist() == [True, True]
    assert evaluate(answers, truth, time=time, gap=120).qualities[0].answers == 1, "two answers, one episode"


def test_constrain_answers_with_sets_of_events_and_without_keys_in_the_truth() -> None:
    sets = [[{"buoy": "x"}, {"buoy": "y"}], [{"buoy": "z"}]]
    answers = pa.table({"t": [1.0, 9.0], "v": sets, "probability": [1.0, 1.0]})
    assert evaluate(answers, pa.table({"v.buoy": ["x, y"]})).true.tolist() == [True, False]
    by_time = evaluate(answers, pa.table({"t": [9]}))
    assert (by_time.true.tolist(), by_time.matched_by) == ([False, True], ())


@pytest.mark.parametrize(
    ("answers", "truth", "options", "message"),
    [
        (pattern().drop(["probability"]), TRUTH, {}, "the answers have no column probability; they have: t, person"),
        (pattern(), TRUTH.select(["note"]), {}, "answers and truth have no column in common: the truth has note"),
        (pattern(), TRUTH, {"by": ["place"]}, "the answers have no column place; they have: t, person"),
        (pattern(), TRUTH, {"by": ["person=who"]}, "the true events have no column who; they have: person, t, note"),
        (pattern(), TRUTH, {"where": ["person"]}, "--where takes COLUMN=VALUE or COLUMN!=VALUE, not person"),
        (pattern(), TRUTH, {"label": "really"}, "the true events have no column really; they have: person, t, note"),
        (pattern(), TRUTH, {"time": "when"}, "the answers have no column when"),
        (pattern(person=["ANA"] * 5), TRUTH, {}, "no answer has the keys of a true event: an answer has person = ANA"),
        (pattern(t=minutes(1, 2, 3, 4, 5)), TRUTH, {}, "the times of the answers are timestamps, those of the"),
        (pattern(t=["noon"] * 5), TRUTH, {}, "column t of the answers has type string, not a time"),
        (pattern(probability=["high"] * 5), TRUTH, {}, "column probability of the answers has type string"),
        (pattern(probability=pa.nulls(5, pa.float64())), TRUTH, {}, "there are no answers with a probability and a"),
        (pattern().select(["probability"]), pa.table({"t": [1]}), {}, "answers and truth have neither a key nor"),
        (pattern(), TRUTH.append_column("true", pa.array([["x"]] * 3)), {}, "column true of the truth has type list"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_compared_are_refused_in_one_line(
    answers: pa.Table, truth: pa.Table, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as error:
        evaluate(answers, truth, **options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_figures_as_json() -> None:
    document = json.loads(json.dumps(evaluate(pattern(), TRUTH, tolerance=5).to_dict()))
    assert document["best"]["threshold"] == 0.6
    assert document["thresholds"][-1]["precision"] is None, "no answer reaches 0.99"
    assert document["scores"]["count"] == sum(bin["answers"] for bin in document["bins"]) == 5


def test_a_map_is_learned_from_enough_answers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^a calibration map is learned from at least 20 answers, not 5; lower"):
        evaluate(pattern(), TRUTH, tolerance=5).learn(tmp_path / "map.csv")
    rng = np.random.default_rng(2)
    p = rng.random(400)
    true = np.flatnonzero(rng.random(400) < p / 2)
    result = evaluate(pa.table({"k": np.arange(400), "probability": p}), pa.table({"k": true}))
    held_out = result.learn(tmp_path / "map.csv")
    assert held_out.brier < result.scores.brier
    assert read_map(tmp_path / "map.csv").apply(np.array([0.9]))[0] == pytest.approx(0.45, abs=0.1)


def test_files_of_all_formats_give_the_same_evaluation(tmp_path: Path) -> None:
    answers = pattern(t=minutes(10, 11, 90, 10, 200))
    truth = pa.table({"person": ["ana", "eva"], "t": minutes(12, 203)})
    pq.write_table(answers, tmp_path / "answers.parquet")
    parts = tmp_path / "parts"
    (parts / "_provisional").mkdir(parents=True)
    (parts / "_provisional" / "part-0.csv").write_text("no,answers\n1,2\n")
    pa_csv.write_csv(answers.slice(0, 2), parts / "part-0.csv")
    pa_csv.write_csv(answers.slice(2), parts / "part-1.csv")
    (parts / "part-2.csv").touch()
    lines = [json.dumps({**row, "t": row["t"].isoformat()}) for row in answers.to_pylist()]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines) + "\n")
    results = [
        evaluate(read_table(tmp_path / name), truth, tolerance=180)
        for name in ("answers.parquet", "parts", "answers.jsonl")
    ]
    assert results[0].true.tolist() == [True, True, False, False, True]
    assert {str(result) for result in results} == {str(results[0])}
    with pytest.raises(DataError, match="there is no such file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="the format is unknown; use one of"):
        read_table(Path(__file__))
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"bad\.jsonl: cannot be read: "):
        read_table(tmp_path / "bad.jsonl")


def test_many_probabilities_have_a_best_threshold_in_thousandths() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    truth = pa.table({"k": np.flatnonzero(rng.random(2000) < p)})
    result: Evaluation = evaluate(pa.table({"k": np.arange(2000), "probability": p}), truth)
    assert result.best.threshold == round(result.best.threshold, 3)
    assert result.best.f1 >= max(quality.f1 for quality in result.qualities) - 0.01


def test_rows_of_several_answers_are_true_if_an_event_is_in_their_time() -> None:
    rows = pa.table(
        {
            "t_from": [0, 10, 0],
            "t_to": [10, 20, 10],
            "v": pa.array([{"person": "ana"}, {"person": "ana"}, {"person": "ben"}]),
            "probability": [0.7, 0.9, 0.4],
            "expected": [1.2, 2.0, 0.4],
            "lower": [0.7, 0.9, 0.4],
            "upper": [1.0, 1.0, 0.4],
            "method": ["bounds"] * 3,
        }
    )
    result = evaluate(rows, TRUTH)
    assert (result.true.tolist(), result.matched_by) == ([False, True, False], ("person",))


@pytest.mark.parametrize("keys", [3, 400])
def test_the_order_of_answers_has_no_effect_on_a_learned_map(tmp_path: Path, keys: int) -> None:
    """Spark returns answers in any order. With three keys there are fewer episodes than folds."""
    rng = np.random.default_rng(7)
    p = rng.random(400)
    answers = pa.table({"k": [f"tag {n % keys}" for n in range(400)], "t": np.arange(400), "probability": p})
    truth = answers.filter(pa.array(rng.random(400) < p**2)).select(["k", "t"])
    shuffled = answers.take(rng.permutation(400))
    expected, given = (evaluate(table, truth, gap=1000).learn(tmp_path / "map.csv") for table in (answers, shuffled))
    assert asdict(given) == pytest.approx(asdict(expected), abs=1e-12)
