"""The rows of streams as DataFrames: those of derived streams are the rows that queries work with."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.cli.conftest import anabranch  # noqa: F401 - a fixture
from tests.inference.test_stream import building, inferred_rows
from tests.runtime.office import collect, same, write_csv
from tests.runtime.test_inferred import NAMES, READINGS, session_with_model

from anabranch import Session


def bind_readings(session: Session, folder: Path) -> str:
    rows = [(row["tag"], row["reader"], row["t"]) for row in READINGS]
    path = str(write_csv(folder / "readings.csv", rows, NAMES))
    session.bind("readings", path)
    return path


def test_a_query_over_the_rows_has_the_answers_of_the_inferred_stream(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with_model(spark, "SMOOTH", tmp_path)
    bind_readings(session, tmp_path)
    answers = collect(session.run("q"))
    rows = session.rows("at").cache()
    assert rows.columns == ["tag", "room", "prev_room", "t", "p"]
    assert rows.count() == len(inferred_rows(READINGS, "SMOOTH", building()))
    assert session.counts("at").used == len(READINGS)
    session.bind("at", rows)
    assert same(collect(session.run("q")), answers)
    rows.unpersist()


def test_the_rows_of_other_streams_are_the_valid_rows_of_their_input(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with_model(spark, "FILTER", tmp_path)
    path = write_csv(tmp_path / "readings.csv", [("a", "east", 1), ("b", "west", 2), ("", "west", 3)], NAMES)
    path.write_text(path.read_text() + "c,west,soon\n")
    session.bind("readings", str(path))
    rows = session.rows("readings")
    assert rows.columns == ["tag", "reader", "t"]
    assert sorted(map(tuple, rows.collect())) == [("a", "east", 1), ("b", "west", 2)]


@pytest.mark.usefixtures("spark")
def test_the_command_shows_and_writes_rows(spark, tmp_path: Path, anabranch: Command) -> None:  # noqa: F811
    readings = bind_readings(session_with_model(spark, "MLE", tmp_path), tmp_path)
    book, source = tmp_path / "q.abq", f"readings={readings}"
    expected = inferred_rows(READINGS, "MLE", building())
    shown = anabranch("rows", book, "at", "--input", source, "--limit", "3", "--output", "-")
    assert (shown.status, len(shown.out.splitlines())) == (0, 4)
    assert shown.out.splitlines()[0] == "t,tag,room"
    assert f"at: {len(expected)} rows" in shown.err
    assert anabranch("rows", book, "at", "--input", source, "--output", tmp_path / "out").status == 0
    assert pq.read_table(tmp_path / "out" / "at").num_rows == len(expected)
    table = anabranch("rows", book, "AT", "--input", source, "--limit", "2")
    assert f"and {len(expected) - 2} more" in table.out
    unknown = anabranch("rows", book, "nobody")
    assert unknown.status == 2
    assert "there is no stream nobody; the workbook has: readings, at, given" in unknown.first
