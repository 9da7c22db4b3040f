"""The benchmark of SEQUENCE on few events: what it compares, how it scores, what it prints, and the pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import benchmarks.__main__
import numpy as np
import pyarrow as pa
import pytest
from benchmarks import sequence, sequence_charts, sequence_flink
from benchmarks.__main__ import main
from benchmarks.sequence import reliability, same, shop_qualities
from benchmarks.sequence_workloads import (
    InProcess,
    Load,
    LongWay,
    QueryShape,
    ask_shop,
    at_threshold,
    count_matches,
    count_next,
    deterministic,
    scored_jointly,
    write_csv,
)

from anabranch.show.quality import Quality
from anabranch.simulate.shop import Options as ShopOptions
from anabranch.simulate.shop import simulate

SMALL = Load(events=3_000, keys=20)


def events(*rows: tuple[int, str, int]) -> pa.Table:
    ids, kinds, t = zip(*rows, strict=True)
    return pa.table({"id": np.array(ids), "kind": pa.array(kinds), "t": np.array(t)})


# ---------------------------------------------------------------- events and queries


def test_events_are_drawn_from_a_seed() -> None:
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
def test_matches_are_those_that_are_counted(components: int, negative: bool) -> None:
    table = SMALL.table(3)
    query = QueryShape(components, SMALL.window(5), negative=negative)
    run = InProcess(query, table)
    expected = count_matches(table, query)
    assert expected > 0
    assert len(run.kernel().events) == len(run.matches().events) == run.step().answers.num_rows == expected


def test_matches_are_counted_by_hand() -> None:
    table = events((1, "A", 0), (1, "A", 1), (1, "B", 2), (1, "B", 3), (2, "C", 4), (1, "C", 5), (1, "C", 11))
    assert count_matches(table, QueryShape(3, 10)) == 6  # twice two with the first C, the later A with the other
    assert count_matches(table, QueryShape(2, 10)) == 4
    assert count_matches(table, QueryShape(3, 10, negative=True)) == 0


def test_what_match_recognize_finds_by_hand() -> None:
    table = events(
        (1, "A", 0), (1, "B", 1), (1, "C", 2), (1, "A", 10), (1, "D", 11), (1, "B", 12), (1, "C", 13),
        (2, "A", 20), (2, "C", 21), (2, "A", 30), (3, "C", 31), (2, "B", 32), (2, "C", 130),
    )  # fmt: skip
    assert count_next(table, 100) == {"strict": 1, "skip": 2, "negated": 1}
    assert count_next(table, 101) == {"strict": 2, "skip": 3, "negated": 1}


@pytest.mark.parametrize("threshold", [0.5, 0.05, 0.005])
def test_losses_are_found_with_and_without_bounds_and_keys(threshold: float) -> None:
    table = SMALL.table(5)
    query = QueryShape(3, SMALL.window(5), threshold=threshold)
    by_key, in_one = (InProcess(QueryShape(3, query.within, threshold=threshold, hashed=h), table) for h in (1, 0))
    found = by_key.kernel()
    for other in (by_key.kernel(bounded=False), in_one.kernel(), in_one.kernel(bounded=False)):
        same(found.events, other.events)
    plain = count_matches(table, QueryShape(3, query.within))
    assert (found.events >= 0).all(axis=1).sum() == plain
    assert (len(found.events) > plain) == (threshold < 0.1)


def test_other_matches_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="not the same"):
        same(np.array([[1, 2]]), np.array([[1, 3]]))
    monkeypatch.setattr(sequence, "count_matches", lambda *_: -1)
    with pytest.raises(AssertionError, match="there are -1"):
        sequence.checked(InProcess(QueryShape(3, 100), SMALL.table(1)))


# ---------------------------------------------------------------- scores


def test_answers_by_what_they_say() -> None:
    said = np.repeat([0.25, 0.75], 100)
    true = np.concatenate([np.arange(100) < 30, np.arange(100) < 75])
    low, high = reliability(said, true)
    assert (low.answers, low.said, low.true) == pytest.approx((100, 0.25, 0.30))
    assert low.error == pytest.approx(np.sqrt(0.25 * 0.75 / 100))
    assert low.deviation == pytest.approx(0.05 / low.error)
    assert high.deviation == 0
    assert reliability(said[:29], true[:29]) == []


def test_the_ways_to_ask_a_shop() -> None:
    shop = simulate(ShopOptions(items=2_000, miss=0.2), seed=1)
    plain = deterministic(shop.workbook)
    code = "\n".join(line for line in plain.splitlines() if not line.startswith("--"))
    assert not any(word in code for word in ("MISS", "DELAY", "SCORING", "THRESHOLD"))
    assert "SCORING JOINT" in scored_jointly(shop.workbook)
    few, many = (ask_shop(shop.reads, at_threshold(shop.workbook, each), "shoplifting") for each in (0.5, 0.1))
    assert 0 < len(few.tags) < len(many.tags)
    assert set(few.tags) == set(many.tags[many.probability >= 0.5])
    assert ask_shop(shop.reads, plain, "purchase").is_read.all()


def test_a_deterministic_engine_cries_wolf() -> None:
    found = shop_qualities(ShopOptions(items=5_000, miss=0.2), seed=2)
    ours, plain = found["shoplifting"]["threshold 0.5"], found["shoplifting"]["deterministic"]
    assert ours.precision > 3 * plain.precision
    assert found["purchase"]["threshold 0.5"].f1 > found["purchase"]["deterministic"].f1
    assert plain.events == ours.events > 0


def test_two_losses_in_one_gap_are_as_likely_as_is_said() -> None:
    bins = sequence.long_scores(20_000, seed=3)
    assert len(bins["posterior"]) == 10
    assert max(each.deviation for each in bins["posterior"]) < 4
    assert max(each.deviation for each in bins["joint"]) > 20
    reads, paid = LongWay(100).draw(1)
    assert len(paid) == 100
    assert set(reads["reader"].to_pylist()) <= {"shelf", "scales", "checkout", "exit"}


# ---------------------------------------------------------------- Flink


def test_flink_is_asked_in_an_interpreter_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sequence_flink.INTERPRETER, raising=False)
    assert sequence_flink.interpreter() is None
    told = tmp_path / "python"
    told.write_text(f"#!{sys.executable}\nprint('noise')\nprint('{json.dumps({'seconds': [2.0, 1.0], 'matches': 3})}')")
    told.chmod(0o755)
    monkeypatch.setenv(sequence_flink.INTERPRETER, str(told))
    asked = (sequence_flink.interpreter(), tmp_path / "rows.csv", "skip", 5_000, 1, 2)
    assert sequence_flink.measure(*asked) == ([2.0, 1.0], 3)
    told.write_text(f"#!{sys.executable}\nraise SystemExit('no Java')")
    with pytest.raises(RuntimeError, match="no Java"):
        sequence_flink.measure(*asked)


@pytest.mark.parametrize("pattern", sequence_flink.PATTERNS)
def test_what_flink_is_told(pattern: str) -> None:
    *tables, view = sequence_flink.statements("/rows.csv", pattern, 5_000, "/written")
    assert [text.split()[2] for text in tables] == ["events", "nowhere", "written"]
    assert "WITHIN INTERVAL '5' SECOND" in view
    assert sequence_flink.PATTERNS[pattern][0] in view


# ---------------------------------------------------------------- tables and pictures


def test_it_runs_and_draws_nothing_when_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sequence_charts, "PICTURES", tmp_path)
    monkeypatch.setattr(benchmarks.__main__, "FAMILIES", ("sequence",))
    parts = [f"sequence.{part}" for part in sequence.PARTS if not part.startswith("spark")]
    assert main([*parts, "--quick", "--rounds", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in ("40% lost: deterministic", "all patterns and laws", "lists and search", "6 components", "no bounds"):
        assert text in printed
    assert not list(tmp_path.iterdir())


def test_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_charts, "PICTURES", tmp_path)
    each = Quality(0.5, 10, 8, 9, 8)
    found = {miss: {"shoplifting": dict.fromkeys(sequence_charts.CONTESTANTS, each)} for miss in sequence.MISSES}
    sequence_charts.draw_quality(found)
    bins = reliability(np.repeat([0.2, 0.7], 50), np.arange(100) % 2 == 0)
    sequence_charts.draw_calibration({"(x, y, z)": {"gamma": {"posterior": bins, "joint": bins}}})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sequence-calibration.svg", "sequence-quality.svg"]
    for picture in tmp_path.iterdir():
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")  # noqa: S314 - we have just written it
