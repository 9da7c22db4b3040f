"""The command line: its output, its files, its exit status, and the first line of an error."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.runtime.office import ANSWERS, ROWS, answers_of, query, same, stream, write_csv, write_parquet, written

from anabranch.simulate import SCENARIOS
from anabranch.simulate.options import flag, options_of


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A workbook with two queries, and its input."""
    write_parquet(tmp_path / "at.parquet")
    path = tmp_path / "office.abq"
    path.write_text(stream("at", "'at.parquet'") + query() + query("anyone", "at", ""))
    return path


# ---------------------------------------------------------------- run


def test_run_prints_a_table_and_a_summary_of_each_query(spark: SparkSession, office: Path, anabranch: Command) -> None:
    done = anabranch("run", office)
    assert done.status == 0
    for text in ("coffee", "anyone", "ann", "0.4", "007"):
        assert text in done.out
    assert re.search(r"^coffee: 3 answers; 6 rows read, 6 used, 0 late, 0 quarantined", done.err, re.MULTILINE)
    assert re.search(r"^anyone: 2 answers; ", done.err, re.MULTILINE)


def test_a_printed_table_has_at_most_20_rows(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    rows = [(f"p{n:02d}", place, t, 1.0) for n in range(30) for t, place in enumerate(("hall", "coffee"))]
    write_parquet(tmp_path / "at.parquet", rows)
    (tmp_path / "w.abq").write_text(stream("at", "'at.parquet'") + query())
    done = anabranch("run", tmp_path / "w.abq")
    assert len(re.findall(r"\bp\d\d\b", done.out)) == 20
    assert "and 10 more" in done.out
    assert "coffee: 30 answers" in done.err


def test_run_writes_a_folder_for_each_query_in_each_format(
    spark: SparkSession, office: Path, tmp_path: Path, anabranch: Command
) -> None:
    for file_format in ("parquet", "csv", "json"):
        out = tmp_path / file_format
        chosen = () if file_format == "parquet" else ("--query", "COFFEE")
        done = anabranch("run", office, "--output", out, "--format", file_format, *chosen)
        assert (done.status, done.out) == (0, "")
        assert sorted(path.name for path in out.iterdir()) == (["coffee"] if chosen else ["anyone", "coffee"])
    assert same(written(tmp_path / "parquet" / "coffee"), ANSWERS)
    texts = [path.read_text().splitlines() for path in (tmp_path / "csv" / "coffee").glob("*.csv")]
    rows = [row for text in texts for row in csv.DictReader(text)]
    assert {(int(row["t"]), row["x"]): float(row["probability"]) for row in rows} == pytest.approx(ANSWERS)
    lines = [line for path in (tmp_path / "json" / "coffee").glob("*.json") for line in path.read_text().splitlines()]
    assert same(answers_of([json.loads(line) for line in lines]), ANSWERS)
    again = anabranch("run", office, "--output", tmp_path / "parquet", "--query", "coffee")
    assert again.status == 0, "existing answers are replaced"
    assert same(written(tmp_path / "parquet" / "coffee"), ANSWERS)


def test_an_input_option_has_a_path_relative_to_the_current_folder(
    spark: SparkSession, tmp_path: Path, anabranch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "w.abq").write_text(stream("at", person="person STRING") + query())
    write_csv(tmp_path / "rows.csv")
    monkeypatch.chdir(tmp_path)
    done = anabranch("run", "work/w.abq", "--input", "AT=rows.csv", "--output", "out")
    assert done.status == 0
    assert same(written(tmp_path / "out" / "coffee"), ANSWERS)


def test_quarantined_rows_are_reported_and_written_and_fail_with_strict(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    write_parquet(tmp_path / "at.parquet", [*ROWS, ("ann", "coffee", 9, 1.5)])
    workbook = tmp_path / "w.abq"
    workbook.write_text(stream("at", "'at.parquet'") + query())
    done = anabranch("run", workbook)
    assert done.status == 0
    assert "coffee: 1 rows of at quarantined: p is outside [0, 1]" in done.err
    out = tmp_path / "out"
    assert anabranch("run", workbook, "--output", out).status == 0
    (quarantined,) = [path.read_text() for path in (out / "_quarantine" / "coffee").glob("*.json")]
    assert json.loads(quarantined)["reason"] == "p is outside [0, 1]"
    failed = anabranch("run", workbook, "--strict")
    assert failed.status == 1
    assert failed.first.startswith(f"{workbook}:2:1: coffee failed: invalid row of at: p is outside [0, 1]: ")


# ---------------------------------------------------------------- stream


def test_stream_once_writes_what_run_writes_and_resumes_from_its_checkpoint(
    spark: SparkSession, office: Path, tmp_path: Path, anabranch: Command
) -> None:
    arguments = ("stream", office, "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out", "--once")
    done = anabranch(*arguments, "--query", "coffee")
    assert done.status == 0, done.err
    assert same(written(tmp_path / "out" / "coffee"), ANSWERS)
    assert "coffee: 3 answers; 6 rows read, 6 used" in done.err
    again = anabranch(*arguments, "--query", "coffee")
    assert "coffee: 0 answers; 0 rows read" in again.err, "all rows were read before"
    assert same(written(tmp_path / "out" / "coffee"), ANSWERS)
    over = anabranch("run", office, "--output", tmp_path / "out", "--query", "coffee")
    assert over.status == 1
    assert "holds the answers of a stream; use another output folder" in over.first


def test_a_failed_stream_prints_its_error_first_and_stops(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    write_parquet(tmp_path / "in" / "1.parquet", [("ann", "hall", 1, 7.0)])
    workbook = tmp_path / "w.abq"
    workbook.write_text(stream("at", "'in'") + query())
    failed = anabranch("stream", workbook, "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out", "--strict")
    assert failed.status == 1
    assert failed.first.startswith(f"{workbook}:2:1: coffee failed: invalid row of at: p is outside [0, 1]")
    assert spark.streams.active == []


def test_the_error_for_a_changed_query_on_an_old_checkpoint_is_one_line(
    spark: SparkSession, office: Path, tmp_path: Path, anabranch: Command
) -> None:
    arguments = ("--checkpoint", tmp_path / "cp", "--output", tmp_path / "out", "--once", "--query", "coffee")
    assert anabranch("stream", office, *arguments).status == 0
    office.write_text(office.read_text().replace("'hall'", "'room'"))
    refused = anabranch("stream", office, *arguments)
    assert refused.status == 1
    assert re.match(
        rf"{re.escape(str(office))}:2:1: coffee failed: the checkpoint .* belongs to another", refused.first
    )


def test_a_restarted_stream_names_the_queries_that_are_added_and_removed(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    workbook = tmp_path / "w.abq"
    pairs = "CREATE QUERY {name} AS CONSTRAIN u, v FROM at WHERE u.person = v.person AND v.t - u.t IN [1, {most}];\n"
    text = stream("at", "'in'")
    arguments = ("stream", workbook, "--checkpoint", tmp_path / "cp", "--output", tmp_path / "out", "--once")
    write_parquet(tmp_path / "in" / "1.parquet", [("ann", "hall", 1, 1.0), ("ann", "hall", 2, 1.0)])
    workbook.write_text(text + pairs.format(name="one", most=1) + pairs.format(name="two", most=2))
    first = anabranch(*arguments)
    assert first.status == 0, first.err
    assert "added" not in first.err
    write_parquet(tmp_path / "in" / "2.parquet", [("ann", "hall", 3, 1.0), ("ann", "hall", 4, 1.0)])
    workbook.write_text(text + pairs.format(name="three", most=3) + pairs.format(name="two", most=2))
    second = anabranch(*arguments)
    assert second.status == 0, second.err
    assert [line for line in second.err.splitlines() if line.startswith(("added", "removed"))] == [
        "added three: it sees the events that are newer than all rows read before",
        "removed one: its answers so far stay in its folder",
    ]
    assert [path.name for path in (tmp_path / "cp").iterdir()] == ["one+two"]
    tables = {name: pq.read_table(tmp_path / "out" / name).to_pylist() for name in ("one", "two", "three")}
    times = {name: sorted((row["u"]["t"], row["v"]["t"]) for row in rows) for name, rows in tables.items()}
    assert times == {"one": [(1, 2)], "two": [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)], "three": [(3, 4)]}
    refused = anabranch(*arguments, "--query", "two")
    assert refused.status == 1
    assert "three is in the checkpoint" in refused.first
    assert refused.first.endswith("start it too, or remove it from the workbook to end it")


@pytest.mark.parametrize("damage", [b"", b"damaged"])
def test_a_damaged_manifest_is_refused(
    spark: SparkSession, office: Path, tmp_path: Path, anabranch: Command, damage: bytes
) -> None:
    """A start reads the manifest first; Spark protects its own files with checksums."""
    manifest = tmp_path / "cp" / "coffee" / "anabranch.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_bytes(damage)
    arguments = ("--checkpoint", tmp_path / "cp", "--output", tmp_path / "out", "--once", "--query", "coffee")
    refused = anabranch("stream", office, *arguments)
    assert refused.status == 1
    assert refused.first.startswith(f"{office}:2:1: coffee failed: {manifest} is damaged; start with a new")


# ---------------------------------------------------------------- errors


def test_an_error_in_a_workbook_is_the_first_line_and_status_2(
    spark: SparkSession, tmp_path: Path, anabranch: Command
) -> None:
    path = tmp_path / "w.abq"
    good = stream("at", "'at.parquet'")
    for text, position, message in (
        ("CREATE STREEM at;", "1:8", "STREEM"),
        (good + query("coffee", "att"), "2:32", "att"),
        (good + query(), "1:", "there is no file 'at.parquet'"),
        (good + query() + query(), "3:", "coffee"),
    ):
        path.write_text(text)
        wrong = anabranch("run", path)
        assert wrong.status == 2, wrong.err
        assert wrong.out == ""
        assert wrong.first.startswith(f"{path}:{position}"), wrong.first
        assert message in wrong.first
        assert re.match(r".*:\d+:\d+: .+", wrong.first)


def test_the_error_for_an_unreadable_workbook_names_the_file(tmp_path: Path, anabranch: Command) -> None:
    binary = tmp_path / "binary.abq"
    binary.write_bytes(bytes(range(256)))
    secret = tmp_path / "missing.abq"
    for path, message in (
        (secret, "cannot be read: No such file"),
        (tmp_path, "directory"),
        (binary, "is not UTF-8 text"),
    ):
        for command in ("run", "check", "explain"):
            wrong = anabranch(command, path)
            assert wrong.status == 2
            assert wrong.first.startswith(f"{path}:1:1: "), wrong.first
            assert message in wrong.first


def test_invalid_arguments_give_one_line_and_status_2(office: Path, tmp_path: Path, anabranch: Command) -> None:
    for arguments, message in (
        (("run", office, "--loud"), "--loud"),
        (("run", office, "--query", "tea"), "there is no query tea; the workbook has: coffee, anyone"),
        (("explain", office, "--query", "tea"), "there is no query tea"),
        (("run", office, "--format", "excel"), "--format is one of parquet, csv, json, jsonl, not excel"),
        (("run", office, "--input", "at"), "--input takes NAME=PATH, not at"),
        (("run", office, "--input", "tea=x.csv"), "there is no stream or relation tea to bind; declared are: at"),
        (("stream", office), "--checkpoint"),
        (("simulate", "moon", "--output", tmp_path / "x"), "there is no scenario moon; there are: office"),
        (("fly",), "fly"),
    ):
        wrong = anabranch(*arguments)
        assert (wrong.status, wrong.out) == (2, ""), wrong.err
        assert message in wrong.first
    assert anabranch().status == 2, "without a command, help is printed"


def test_the_error_for_an_unwritable_folder_is_one_line(tmp_path: Path, anabranch: Command) -> None:
    (tmp_path / "file").write_text("")
    failed = anabranch("simulate", "office", "--output", tmp_path / "file" / "inside")
    assert failed.status == 1
    assert failed.err.count("\n") == 1
    assert failed.first.startswith("anabranch: ")


# ---------------------------------------------------------------- check, explain, simulate, demo


def test_check_prints_all_errors_or_that_there_are_none(office: Path, tmp_path: Path, anabranch: Command) -> None:
    fine = anabranch("check", office)
    assert (fine.status, fine.out) == (0, "")
    assert fine.err == f"{office}: 3 statements, 2 queries; no errors found\n"
    office.write_text(office.read_text() + query("tea", "no_such") + query("cocoa", "at", "GROUP BY nobody"))
    wrong = anabranch("check", office)
    assert wrong.status == 2
    errors = [line for line in wrong.err.splitlines() if line.startswith(str(office))]
    assert {line.split(":")[1] for line in errors} == {"4", "5"}


def test_explain_prints_the_kind_and_class_of_each_query(office: Path, anabranch: Command) -> None:
    done = anabranch("explain", office)
    assert done.status == 0
    assert done.err == ""
    assert "coffee: PATTERN" in done.out
    assert "anyone: PATTERN" in done.out
    assert "extended regular" in done.out
    only = anabranch("explain", office, "--query", "anyone")
    assert "coffee: PATTERN" not in only.out


def test_a_simulated_scenario_can_be_run(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    done = anabranch("simulate", "office", "--output", tmp_path / "office", "--seed", "3")
    assert done.status == 0
    workbook = re.search(r"next: anabranch run (.*)$", done.err, re.MULTILINE)[1]
    assert anabranch("check", workbook).status == 0
    assert anabranch("run", workbook, "--output", tmp_path / "out").status == 0
    written_rows = {
        folder.name: sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
        for folder in (tmp_path / "out").iterdir()
    }
    assert written_rows["coffee"] > 0


def test_a_scenario_takes_its_own_options(tmp_path: Path, anabranch: Command) -> None:
    args = ("--people", "2", "--objects", "1", "--minutes", "3", "--read-rate", "0.3", "--rooms", "30", "--seed", "1")
    done = anabranch("simulate", "RFID", "--output", tmp_path / "rfid", *args)
    assert done.status == 0
    assert pq.read_metadata(tmp_path / "rfid" / "true_locations.parquet").num_rows == 4 * 180
    assert anabranch("check", tmp_path / "rfid" / "rfid.abq").status == 0
    assert anabranch("simulate", "office", "--output", tmp_path / "o", "--people", "1", "--minutes", "2").status == 0
    assert pq.read_metadata(tmp_path / "o" / "true_locations.parquet").num_rows == 24


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("office", "--objects", "3"), "office: there is no option --objects; the options are: --people, --minutes"),
        (("rfid", "--people", "0"), "rfid: --people must be from 1 to 100000, not 0"),
        (("rfid", "--read-rate", "1.5"), "rfid: --read-rate must be from 0 to 1, not 1.5"),
        (("rfid", "--people", "many"), "--people"),
        (("rfid", "--wings", "2"), "--wings"),
    ],
)
def test_the_error_for_an_invalid_option_is_one_line(
    tmp_path: Path, anabranch: Command, arguments: tuple[str, ...], message: str
) -> None:
    wrong = anabranch("simulate", *arguments, "--output", tmp_path / "x")
    assert (wrong.status, wrong.out, wrong.err.count("\n")) == (2, "", 1)
    assert message in wrong.first
    assert not (tmp_path / "x").exists()


def test_help_names_the_options_of_every_scenario(anabranch: Command) -> None:
    help_text = anabranch("simulate", "--help").out
    for scenario in SCENARIOS.values():
        for name in options_of(scenario.options):
            assert flag(name) in help_text


def test_the_demo_runs_and_prints_the_next_steps(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    done = anabranch("demo", "--output", tmp_path / "demo")
    assert done.status == 0, done.err
    steps = done.out.partition("Next:")[2]
    workbook = next((tmp_path / "demo" / "office").glob("*.abq"))
    assert f"anabranch explain {workbook}" in steps
    assert "true pairs" in done.out
    assert "the answers over the archive, to the last bit" in " ".join(done.out.split())
    assert "micro-batch 2: " in done.out
    assert "--once" in steps
    assert anabranch("explain", workbook).status == 0
