"""`anabranch run`: pipes, limits, summaries, progress, and inputs that are probably wrong."""

from __future__ import annotations

import csv
import errno
import json
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.runtime.office import ANSWERS, answers_of, query, same, stream, write_parquet, written

import anabranch as ab
from anabranch.cli import progress
from anabranch.cli.summary import summary_line
from anabranch.runtime import spark as spark_module
from anabranch.transport.operator import Counts


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A workbook with two queries, and its input."""
    write_parquet(tmp_path / "at.parquet")
    path = tmp_path / "office.abq"
    path.write_text(stream("at", "'at.parquet'") + query() + query("anyone", "at", ""))
    return path


# ---------------------------------------------------------------- pipes


def test_answers_on_standard_output_are_rows_in_order_and_nothing_else(
    spark: SparkSession, office: Path, anabranch: Command
) -> None:
    done = anabranch("run", office, "--query", "coffee", "--output", "-")
    assert done.status == 0
    rows = list(csv.DictReader(done.out.splitlines()))
    assert [(int(row["t"]), row["x"]) for row in rows] == sorted(ANSWERS)
    assert {(int(row["t"]), row["x"]): float(row["probability"]) for row in rows} == pytest.approx(ANSWERS)
    assert done.err.startswith("coffee: 3 answers; 6 rows read")


def test_the_most_probable_answers_come_first(spark: SparkSession, office: Path, anabranch: Command) -> None:
    ordered = query().rstrip().removesuffix(";") + " ORDER BY probability DESC LIMIT 2;"
    office.write_text(stream("at", "'at.parquet'") + ordered)
    done = anabranch("run", office, "--query", "coffee", "--output", "-")
    assert done.status == 0
    rows = list(csv.DictReader(done.out.splitlines()))
    assert [float(row["probability"]) for row in rows] == pytest.approx(sorted(ANSWERS.values(), reverse=True)[:2])
    assert done.err.startswith("coffee: 2 answers; 6 rows read")


def test_json_lines_of_several_queries_name_their_query(spark: SparkSession, office: Path, anabranch: Command) -> None:
    done = anabranch("run", office, "--format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["query"] for row in rows] == ["coffee"] * 3 + ["anyone"] * 2
    assert all(next(iter(row)) == "query" for row in rows)
    assert same(answers_of([row for row in rows if row.pop("query") == "coffee"]), ANSWERS)
    assert "anyone: 2 answers" in done.err


def test_structs_are_columns_in_csv_and_objects_in_json(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    (tmp_path / "e.csv").write_text('id,kind,t\na,"A, or B",1\nb,B,2\n')
    (tmp_path / "w.abq").write_text("""
        CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER FROM 'e.csv';
        CREATE QUERY near AS CONSTRAIN u, v FROM e WHERE u.id = 'a' AND v.kind = 'B' AND v.t - u.t IN [0, 5];
    """)
    done = anabranch("run", tmp_path / "w.abq", "--output", "-", "--format", "csv")
    ((row),) = csv.DictReader(done.out.splitlines())
    assert (row["u.kind"], row["v.id"], row["t"]) == ("A, or B", "b", "2")
    done = anabranch("run", tmp_path / "w.abq", "--output", "-", "--format", "json")
    assert json.loads(done.out)["u"]["kind"] == "A, or B"


def test_lineage_is_a_column_of_tables_lines_and_files(
    spark: SparkSession, office: Path, tmp_path: Path, anabranch: Command
) -> None:
    coffee = ("run", office, "--query", "coffee", "--lineage")
    rows = [json.loads(line) for line in anabranch(*coffee, "--output", "-", "--format", "jsonl").out.splitlines()]
    assert rows
    for row in rows:
        assert [(origin["stream"], origin["key"], origin["until"]) for origin in row["lineage"]] == [
            ("at", row["x"], row["t"])
        ]
    assert anabranch(*coffee, "--output", tmp_path / "out", "--format", "csv").status == 0
    [file] = (tmp_path / "out" / "coffee").glob("*.csv")
    written_rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [json.loads(row["lineage"])[0]["key"] for row in written_rows] == [row["x"] for row in written_rows]
    table = anabranch(*coffee)
    assert table.status == 0 and "lineage" in table.out


def test_a_closed_pipe_ends_the_run_quietly(
    spark: SparkSession, office: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed:
        def writelines(self, _: object) -> None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

        def write(self, _: str) -> None:
            pass

        def flush(self) -> None:
            pass

    monkeypatch.setattr(sys, "stdout", Closed())
    done = anabranch("run", office, "--query", "coffee", "--output", "-")
    assert (done.status, done.err) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "-"), "standard output takes the answers of one query as csv, not of coffee, anyone; use"),
        (
            ("--output", "-", "--format", "parquet"),
            "--format parquet needs a folder; standard output takes csv or jsonl",
        ),
        (("--format", "parquet"), "--format parquet needs a folder; write --output DIR"),
        (("--format", "excel"), "--format is one of parquet, csv, json, jsonl, not excel"),
        (("--limit", "-1"), "--limit"),
        (("--summary", "/no/such/folder/s.json"), "--summary /no/such/folder/s.json cannot be written: No such file"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    office: Path, anabranch: Command, arguments: tuple[str, ...], message: str
) -> None:
    wrong = anabranch("run", office, *arguments)
    assert (wrong.status, wrong.out, wrong.err.count("\n")) == (2, "", 1)
    assert message in wrong.first


# ---------------------------------------------------------------- limit and summary


def test_a_summary_has_a_rate_only_over_many_rows() -> None:
    few, many = Counts(read=9_999, used=9_999, answers=1), Counts(read=30_000, used=29_999, late=1)
    assert summary_line("coffee", few, 2.0) == (
        "coffee: 1 answer; 9,999 rows read, 9,999 used, 0 late, 0 quarantined; 2.0 s"
    )
    assert summary_line("coffee", many, 2.0).endswith("0 quarantined; 2.0 s (15,000 rows/s)")


def test_a_limit_takes_the_first_answers_and_the_summary_counts_all(
    spark: SparkSession, office: Path, tmp_path: Path, anabranch: Command
) -> None:
    arguments = ("run", office, "--query", "coffee", "--limit", "1")
    summary = tmp_path / "summary.json"
    done = anabranch(*arguments, "--output", tmp_path / "out", "--format", "jsonl", "--summary", summary)
    assert done.status == 0
    (text,) = [path.read_text() for path in (tmp_path / "out" / "coffee").glob("*.json")]
    row = json.loads(text)
    assert (row["t"], row["x"]) == min(ANSWERS)
    document = json.loads(summary.read_text())
    assert (document["workbook"], document["error"]) == (str(office), None)
    (run,) = document["queries"]
    assert run["seconds"] <= document["seconds"]
    assert {name: run[name] for name in ("query", "answers", "rows", "output", "quarantine", "warnings")} == {
        "query": "coffee",
        "answers": 3,
        "rows": {"read": 6, "used": 6, "duplicate": 0, "late": 0, "quarantined": 0},
        "output": str(tmp_path / "out" / "coffee"),
        "quarantine": None,
        "warnings": [],
    }
    printed = anabranch(*arguments)
    assert "ann" in printed.out
    assert "and 2 more" in printed.out


def test_the_summary_of_a_failed_run_has_its_error(office: Path, tmp_path: Path, anabranch: Command) -> None:
    (tmp_path / "at.parquet").unlink()
    failed = anabranch("run", office, "--summary", tmp_path / "s.json")
    assert failed.status == 2
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["queries"] == []
    assert document["error"].startswith(f"{office}:1:")


# ---------------------------------------------------------------- progress


def test_progress_without_a_terminal_is_a_line_from_time_to_time(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.01)
    rows = iter([0, *range(1000, 10**6)])
    asked = 0

    def n_rows() -> int:
        nonlocal asked
        asked += 1
        return next(rows)

    with progress.progress("coffee", n_rows):
        while asked < 3:  # the second line was printed before
            time.sleep(0.01)
    first, second, *_ = capfd.readouterr().err.splitlines()
    assert first == "coffee: running, 0 s"
    assert second.startswith("coffee: 1,000 rows, ")
    monkeypatch.undo()
    with progress.progress("coffee", lambda: 0):
        pass
    assert capfd.readouterr().err == "", "a short run prints nothing"


def test_progress_on_a_terminal_is_a_live_display(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "UPDATE_EVERY", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress("coffee", lambda: 1234):
        time.sleep(0.3)
    printed = capsys.readouterr().err
    assert "coffee  1,234 rows, " in printed
    assert "\x1b[" in printed


# ---------------------------------------------------------------- wrong inputs


def test_missing_files_are_found_before_spark_starts(
    tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(spark_module, "make_session", start)
    write_parquet(tmp_path / "at.parquet")
    path = tmp_path / "w.abq"
    path.write_text(
        stream("at", "'at.parquet'")
        + "CREATE STREAM reads KEY (person) VALUE (antenna) TIME t FROM 'reads.csv';\n"
        + "CREATE RELATION halls (name) FROM 'halls.csv';\n"
        + "CREATE STREAM path KEY (person) VALUE (place) TIME t INFERRED FROM reads USING HMM 'model' METHOD FILTER;\n"
        + query()
        + query("read", "reads")
        + query("inferred", "path")
        + "CREATE QUERY hall AS PATTERN at(x, y)[halls(y)] THEN at(x, 'coffee');\n"
    )
    for arguments in (("run", path), ("stream", path, "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out")):
        wrong = anabranch(*arguments)
        assert wrong.status == 2
        assert [line for line in wrong.err.splitlines() if line.startswith(str(path))] == [
            f"{path}:2:62: there is no file 'reads.csv'; looked for {tmp_path / 'reads.csv'}",
            f"{path}:3:35: there is no file 'halls.csv'; looked for {tmp_path / 'halls.csv'}",
            f"{path}:4:54: {tmp_path / 'model'}: there is no such folder; fix the model, or use another",
        ]
    wrong = anabranch("run", path, "--query", "coffee", "--input", f"at={tmp_path / 'no.parquet'}")
    assert wrong.first.startswith(f"{path}:1:1: there is no file '{tmp_path / 'no.parquet'}'; looked for ")


def test_a_run_with_mostly_quarantined_rows_fails_and_names_the_fix(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    times = ["01.02.2026 10:00", "01.02.2026 10:01", "2026-02-01 10:02"]
    (tmp_path / "at.csv").write_text("person,place,t,p\n" + "".join(f"ann,hall,{t},0.5\n" for t in times))
    path = tmp_path / "w.abq"
    path.write_text(stream("at", "'at.csv'", time="t TIMESTAMP", person="person STRING") + query())
    doubt = (
        "2 of 3 rows of at were quarantined: column t has '01.02.2026 10:00', which is no TIMESTAMP; "
        "write OPTIONS (timestampFormat = 'dd.MM.yyyy HH:mm') after the path"
    )
    failed = anabranch("run", path, "--summary", tmp_path / "s.json")
    assert failed.status == 1
    assert failed.first == f"{path}:1:1: {doubt}"
    assert "coffee: 0 answers; 3 rows read, 1 used, 0 late, 2 quarantined" in failed.err
    assert json.loads((tmp_path / "s.json").read_text())["queries"][0]["warnings"] == [failed.first]
    # Spark removes a plan without rows while it runs, and what was to be counted in it.
    lines = anabranch("run", path, "--format", "jsonl")
    assert (lines.status, lines.out, lines.first) == (1, "", failed.first)
    allowed = anabranch("run", path, "--allow-empty", "--output", tmp_path / "out")
    assert (allowed.status, allowed.first) == (0, failed.first)
    assert list(written(tmp_path / "out" / "coffee")) == []

    session = ab.Session(spark)
    session.execute_file(str(path))
    session.run("coffee").collect()
    with pytest.warns(ab.InputWarning, match="timestampFormat"):
        assert session.counts("coffee").quarantined == 2
    assert session.counts("coffee").read == 3, "it warns once for each run"


def test_rows_of_keys_that_spark_skips_are_no_doubt(spark: SparkSession) -> None:
    session = ab.Session(spark)
    session.execute(stream("at") + query().replace("at(x, 'hall')", "at('bob', 'hall')").replace("GROUP BY x", ""))
    rows = [(None, "hall", 1, 1.0), ("ann", "hall", 1, 1.0), ("ann", "coffee", 2, 1.0)]
    session.bind("at", spark.createDataFrame(rows, "person string, place string, t long, p double"))
    session.run("coffee").collect()
    assert session.doubts("coffee") == []
    assert session.counts("coffee").quarantined == 1


def test_groups_that_sum_above_one_are_a_doubt_too(spark: SparkSession) -> None:
    session = ab.Session(spark)
    session.execute(stream("at") + query())
    rows = [("ann", "hall", 1, 0.9), ("ann", "coffee", 1, 0.9), ("ann", "coffee", 2, 1.0)]
    session.bind("at", spark.createDataFrame(rows, "person string, place string, t long, p double"))
    session.run("coffee").collect()
    ((stream_in_doubt, doubt),) = session.doubts("coffee")
    assert stream_in_doubt.name == "at"
    assert doubt == "2 of 3 rows of at were quarantined: the probabilities of its group sum above 1"


def test_an_input_without_rows_fails_the_run(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    (tmp_path / "at.csv").write_text("person,place,t,p\n")
    path = tmp_path / "w.abq"
    path.write_text(stream("at", "'at.csv'", time="t INTEGER") + query())
    failed = anabranch("run", path)
    assert (failed.status, failed.first) == (1, f"{path}:1:1: at has no rows; check its path")
    assert anabranch("run", path, "--allow-empty").status == 0


def test_a_run_without_answers_says_which_values_no_row_has(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    write_parquet(
        tmp_path / "at.parquet", [("ann", "Hall", 1, 0.5), ("ann", "Hall", 2, 0.5), ("ann", "coffee", 3, 1.0)]
    )
    path = tmp_path / "w.abq"
    path.write_text(stream("at", "'at.parquet'") + query())
    done = anabranch("run", path)
    assert done.status == 0
    assert done.err.splitlines()[1:] == ["coffee: no row of at has place = 'hall'; seen: 'Hall', 'coffee'"]
