"""The SEQUENCE benchmark on few events: its comparisons, its scores, its tables and its charts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import benchmarks.__main__
import numpy as np
import pyarrow as pa
import pytest
from benchmarks import sequence
from benchmarks.__main__ import main
from benchmarks.sequence import charts, flink, speed
from benchmarks.sequence.reliability import reliability_bins
from benchmarks.sequence.scores import MISSES, shop_qualities, two_event_scores
from benchmarks.sequence.shop import WeighedItems, at_threshold, deterministic, run_shop_query, scored_jointly
from benchmarks.sequence.speed import check_same, checked
from benchmarks.sequence.workloads import InProcess, Load, QueryShape, count_matches, count_next, write_csv

from anabranch.evaluation import Quality
from anabranch.simulate.shop import Options as ShopOptions
from anabranch.simulate.shop import simulate
from tests.benchmarks.charts import chart_names

SMALL = Load(events=3_000, keys=20)


def events(*rows: tuple[int, str, int]) -> pa.Table:
    ids, kinds, t = zip(*rows, strict=True)
    return pa.table({"id": np.array(ids), "kind": pa.array(kinds), "t": np.array(t)})


# ---------------------------------------------------------------- events and queries


def test_events_depend_on_the_seed() -> None:
    table = SMALL.table(7)
    assert table.equals(SMALL.table(7))
    assert not table.equals(SMALL.table(8))
    assert table.num_rows == 3_000
    assert set(table["kind"].to_pylist()) == set("ABCD")
    assert SMALL.window(2.5) == 50


def test_csv_with_and_without_a_header(tmp_path: Path) -> None:
    table = events((1, "A", 0), (2, "B", 1))
    for header, text in ((True, "id,kind,t\n1,A,0\n2,B,1\n"), (False, "1,A,0\n2,B,1\n")):
        write_csv(table, tmp_path / "events.csv", header)
        assert (tmp_path / "events.csv").read_text() == text


@pytest.mark.parametrize(("components", "negative"), [(2, False), (3, False), (4, False), (3, True)])
def test_all_stages_have_the_matches_of_brute_force(components: int, negative: bool) -> None:
    table = SMALL.table(3)
    query = QueryShape(components, SMALL.window(5), negative=negative)
    run = InProcess(query, table)
    expected = count_matches(table, query)
    assert expected > 0
    assert len(run.kernel().events) == len(run.matches().events) == run.step().answers.num_rows == expected


def test_brute_force_counts_a_small_example() -> None:
    table = events((1, "A", 0), (1, "A", 1), (1, "B", 2), (1, "B", 3), (2, "C", 4), (1, "C", 5), (1, "C", 11))
    assert count_matches(table, QueryShape(3, 10)) == 6  # two by two with the first C, and the later A with the other
    assert count_matches(table, QueryShape(2, 10)) == 4
    assert count_matches(table, QueryShape(3, 10, negative=True)) == 0


def test_the_matches_of_match_recognize_in_a_small_example() -> None:
    table = events(
        (1, "A", 0), (1, "B", 1), (1, "C", 2), (1, "A", 10), (1, "D", 11), (1, "B", 12), (1, "C", 13),
        (2, "A", 20), (2, "C", 21), (2, "A", 30), (3, "C", 31), (2, "B", 32), (2, "C", 130),
    )  # fmt: skip
    assert count_next(table, 100) == {"strict": 1, "skip": 2, "negated": 1}
    assert count_next(table, 101) == {"strict": 2, "skip": 3, "negated": 1}


@pytest.mark.parametrize("threshold", [0.5, 0.05, 0.005])
def test_matches_with_losses_do_not_depend_on_bounds_and_keys(threshold: float) -> None:
    table = SMALL.table(5)
    query = QueryShape(3, SMALL.window(5), threshold=threshold)
    by_key, one_queue = (InProcess(QueryShape(3, query.within, threshold=threshold, hashed=h), table) for h in (1, 0))
    matches = by_key.kernel().events
    for other in (by_key.kernel(bounded=False), one_queue.kernel(), one_queue.kernel(bounded=False)):
        check_same(matches, other.events)
    plain = count_matches(table, QueryShape(3, query.within))
    assert (matches >= 0).all(axis=1).sum() == plain
    assert (len(matches) > plain) == (threshold < 0.1)


def test_different_matches_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="different matches"):
        check_same(np.array([[1, 2]]), np.array([[1, 3]]))
    monkeypatch.setattr(speed, "count_matches", lambda *_: -1)
    with pytest.raises(AssertionError, match="the expected -1"):
        checked(InProcess(QueryShape(3, 100), SMALL.table(1)))


# ---------------------------------------------------------------- scores


def test_answers_in_bins_by_their_score() -> None:
    scores = np.repeat([0.25, 0.75], 100)
    true = np.concatenate([np.arange(100) < 30, np.arange(100) < 75])
    low, high = reliability_bins(scores, true)
    assert (low.answers, low.predicted, low.observed) == pytest.approx((100, 0.25, 0.30))
    assert low.error == pytest.approx(np.sqrt(0.25 * 0.75 / 100))
    assert low.deviation == pytest.approx(0.05 / low.error)
    assert high.deviation == 0
    assert reliability_bins(scores[:29], true[:29]) == []


def test_the_variants_of_the_shop_queries() -> None:
    shop = simulate(ShopOptions(items=2_000, miss=0.2), seed=1)
    plain = deterministic(shop.workbook)
    code = "\n".join(line for line in plain.splitlines() if not line.startswith("--"))
    assert not any(word in code for word in ("MISS", "DELAY", "SCORING", "THRESHOLD"))
    assert "SCORING JOINT" in scored_jointly(shop.workbook)
    few, many = (run_shop_query(shop.reads, at_threshold(shop.workbook, p), "shoplifting") for p in (0.5, 0.1))
    assert 0 < len(few.tags) < len(many.tags)
    assert set(few.tags) == set(many.tags[many.probability >= 0.5])
    assert run_shop_query(shop.reads, plain, "purchase").is_read.all()


def test_a_deterministic_engine_has_more_false_alarms() -> None:
    results = shop_qualities(ShopOptions(items=5_000, miss=0.2), seed=2)
    lossy, plain = results["shoplifting"]["threshold 0.5"], results["shoplifting"]["deterministic"]
    assert lossy.precision > 3 * plain.precision
    assert results["purchase"]["threshold 0.5"].f1 > results["purchase"]["deterministic"].f1
    assert plain.events == lossy.events > 0


def test_posterior_scores_of_two_losses_in_one_gap_are_calibrated() -> None:
    bins = two_event_scores(20_000, seed=3)
    assert len(bins["posterior"]) == 10
    assert max(bin.deviation for bin in bins["posterior"]) < 4
    assert max(bin.deviation for bin in bins["joint"]) > 20
    reads, paid = WeighedItems(100).draw(1)
    assert len(paid) == 100
    assert set(reads["reader"].to_pylist()) <= {"shelf", "scales", "checkout", "exit"}


# ---------------------------------------------------------------- Flink


def test_flink_runs_in_a_separate_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(flink.INTERPRETER, raising=False)
    assert flink.interpreter() is None
    python = tmp_path / "python"
    result = json.dumps({"seconds": [2.0, 1.0], "matches": 3})
    python.write_text(f"#!{sys.executable}\nprint('noise')\nprint('{result}')")
    python.chmod(0o755)
    monkeypatch.setenv(flink.INTERPRETER, str(python))
    arguments = (flink.interpreter(), tmp_path / "rows.csv", "skip", 5_000, 1, 2)
    assert flink.measure(*arguments) == ([2.0, 1.0], 3)
    python.write_text(f"#!{sys.executable}\nraise SystemExit('no Java')")
    with pytest.raises(RuntimeError, match="no Java"):
        flink.measure(*arguments)


@pytest.mark.parametrize("pattern", flink.PATTERNS)
def test_the_statements_for_flink(pattern: str) -> None:
    *tables, view = flink.statements("/rows.csv", pattern, 5_000, "/written")
    assert [text.split()[2] for text in tables] == ["events", "nowhere", "written"]
    assert "WITHIN INTERVAL '5' SECOND" in view
    assert flink.PATTERNS[pattern][0] in view


# ---------------------------------------------------------------- tables and charts


@pytest.mark.usefixtures("wide_terminal")
def test_a_quick_run_prints_tables_and_draws_nothing(
    chart_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmarks.__main__, "FAMILIES", {"sequence": "benchmarks.sequence"})
    parts = [f"sequence.{part}" for part in sequence.PARTS if not part.startswith("spark")]
    assert main([*parts, "--quick", "--rounds", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in ("40% lost: deterministic", "all patterns and laws", "lists and search", "6 components", "no bounds"):
        assert text in printed
    assert chart_names(chart_folder) == []


def test_charts(chart_folder: Path) -> None:
    quality = Quality(0.5, 10, 8, 9, 8)
    charts.draw_quality({miss: {"shoplifting": dict.fromkeys(charts.CONTESTANTS, quality)} for miss in MISSES})
    bins = reliability_bins(np.repeat([0.2, 0.7], 50), np.arange(100) % 2 == 0)
    charts.draw_calibration({"(x, y, z)": {"gamma": {"posterior": bins, "joint": bins}}})
    assert chart_names(chart_folder) == ["sequence-calibration.svg", "sequence-quality.svg"]
