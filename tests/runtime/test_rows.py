"""The rows of streams as DataFrames: those of derived streams are the rows that queries work with."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
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
