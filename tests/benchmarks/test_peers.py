"""Peers: programs in processes of their own, whose answers must be the same. Only installed packages are used here."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.engines import make_job
from benchmarks.harness import Options
from benchmarks.peers import contestants, environments, running
from benchmarks.peers.models import AUTOMATON, LETTERS, WORKBOOK, _problog, _rows
from benchmarks.peers.relations import INTERVALS
from benchmarks.peers.running import Contestant, TooSlow, check_same, compare, run
from benchmarks.peers.sequences import ASOF, JOIN, WINDOWS, _in_brackets, emit_next
from benchmarks.relate import spark as relate
from benchmarks.sequence.flink import sums
from benchmarks.sequence.workloads import QUERY, Load, QueryShape, count_matches, count_next, write_csv

from anabranch.planning.in_process import answers_in_process
from anabranch.simulate import traffic

QUICK = Options(quick=True, rounds=1)
LOAD, WITHIN = Load(events=2_000, keys=20), 100


@pytest.fixture
def events(tmp_path: Path) -> Path:
    write_csv(LOAD.table(9), tmp_path / "events.csv")
    return tmp_path / "events.csv"


def program(text: str) -> Contestant:
    """A contestant that prints a line."""
    return Contestant("printed", [sys.executable, "-c", text])


def test_a_loop_finds_the_matches(events: Path) -> None:
    expected = count_next(LOAD.table(9), WITHIN) | {
        "matches": count_matches(LOAD.table(9), QueryShape(3, WITHIN)),
    }
    for task, name in (("next", "skip"), ("negated", "negated"), ("matches", "matches")):
        request = contestants.request_of(QUICK, task=task, path=str(events), within=WITHIN)
        outcome = run(contestants.pandas_loop(request))
        assert outcome.answers[0] == expected[name] > 0
        assert len(outcome.seconds) == len(outcome.processor) == 2
        assert outcome.peak > 10e6


@pytest.mark.parametrize("task", ["next", "negated", "matches"])
def test_the_sql_of_peers_has_the_answers_of_the_loop(events: Path, task: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_csv('{events}')")
    request = contestants.request_of(QUICK, task=task, path=str(events), within=WITHIN)
    expected = run(contestants.pandas_loop(request)).answers
    texts = [JOIN] if task == "matches" else [ASOF[task], _in_brackets(WINDOWS[task])]
    for text in texts:
        assert list(connection.execute(text.format(within=WITHIN)).fetchone()) == expected


@pytest.mark.parametrize("task", ["next", "negated", "matches"])
def test_anabranch_has_the_answers_of_the_loop(events: Path, task: str) -> None:
    request = contestants.request_of(QUICK, task=task, path=str(events), within=WITHIN)
    expected = run(contestants.pandas_loop(request)).answers
    if task == "matches":
        text = QueryShape(3, WITHIN).workbook()
    else:
        text = emit_next(QueryShape(3, WITHIN - 1, negative=task == "negated"))
    answers, _ = answers_in_process(make_job(text, QUERY), [LOAD.table(9)])
    rows = [(row["c0"]["id"], row["t_start"], row["t"]) for row in answers.to_pylist()]
    assert sums(rows) == expected


def test_anabranch_relates_the_pairs_that_a_join_finds(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    simulated = traffic.simulate(traffic.Options(data="poisson", loss=0.0, pairs=60, segments=10), 9)
    traffic.write(simulated, tmp_path)
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet('{tmp_path}/congestion.parquet')")
    answers = relate.answers_in_process(
        make_job(relate.with_types(simulated.workbook), "shared"), tmp_path / "congestion.parquet"
    )
    found = [row["a"]["pair"] for row in answers.to_pylist()]
    count, total = connection.execute(INTERVALS).fetchone()
    assert (len(found), sum(found)) == (count, total)
    assert 0 < count < 60


def test_records_have_times_memory_and_ratios() -> None:
    first = program("""print('{"seconds": [3.0, 2.0], "answers": [5, 1.5]}')""")
    second = program("""print('{"seconds": [9.0, 1.0, 1.0], "answers": [5, 1.5]}')""")
    records = list(compare("next", "few", [first, None, second], QUICK))
    values = [(record.metric, record.value, record.ratio) for record in records if record.unit == "s"]
    assert values[0] == ("printed", 2.0, None)
    assert values[2] == ("printed", 1.0, 0.5)
    assert [record.value for record in records if record.unit == "answers"] == [5]


def test_other_answers_are_an_error() -> None:
    check_same("a peer", [3, 0.5 + 1e-9], [3, 0.5])
    for answers in ([4, 0.5], [3, 0.6], [3]):
        with pytest.raises(AssertionError, match="the answers of a peer are"):
            check_same("a peer", answers, [3, 0.5])


def test_a_program_that_fails_or_does_not_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="printed did not run: .*no such luck"):
        run(program("raise SystemExit('no such luck')"))
    monkeypatch.setattr(running, "TIMEOUT", 0.2)
    with pytest.raises(TooSlow):
        run(program("import time; time.sleep(60)"))


def test_a_peer_that_cannot_be_installed_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    tries: list[Path] = []

    def fails(folder: Path, packages: tuple[str, ...]) -> str:
        tries.append(folder)
        return "no matching distribution"

    monkeypatch.setattr(environments, "_install", fails)
    for _ in range(2):
        environments.python_with.cache_clear()
        assert environments.python_with("no-such-package") is None
        line = "no-such-package is skipped: it cannot be installed (no matching distribution)\n"
        assert capsys.readouterr().out == line
    assert len(tries) == 1


def test_flink_sums_its_matches() -> None:
    assert sums([(1, 2, 3), (2, 4, 9)]) == [2, 3, 6, 12, 21]


def test_anabranch_has_the_probabilities_of_problog() -> None:
    chances = np.random.default_rng(7).dirichlet(np.ones(4), 10)[:, :-1]
    job = make_job(WORKBOOK.replace(" FROM '{path}'", ""), "q")
    answers, _ = answers_in_process(job, [_rows(chances)])
    # What ProbLog 2.3 answers, as a rule and as an automaton.
    assert answers.num_rows == 9
    assert sum(answers["probability"].to_pylist()) == pytest.approx(0.8388640476724889, rel=1e-12)


def test_the_program_of_problog_has_a_disjunction_and_a_query_for_each_instant() -> None:
    text = _problog(np.array([[0.25, 0.5, 0.125]])) + AUTOMATON
    assert text.startswith("0.25::at(1, a); 0.5::at(1, b); 0.125::at(1, c).\nquery(match(1)).\n")
    assert len(LETTERS) == 3
