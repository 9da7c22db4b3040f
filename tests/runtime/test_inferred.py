"""Streams inferred from readings, on Spark: batch and streaming give the answers of the operators without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.inference.test_stream import building, inferring_job, random_readings, workbook_text
from tests.pattern.local import LocalRun
from tests.runtime.office import collect, same, write_csv, written
from tests.runtime.streams import finish

from anabranch import Session
from anabranch.errors import WorkbookError
from anabranch.inference.model import write_hmm

READINGS = random_readings(3, keys=6, steps=20)
NAMES = "tag,reader,t"


def answers_without_spark(method: str, folder: Path) -> dict[tuple, float]:
    """The answers of the operators, without Spark."""
    run = LocalRun(inferring_job(workbook_text("at", method), folder))
    run.step({"readings": READINGS}, end=True)
    return run.answers()


def session_with_model(spark: SparkSession, method: str, folder: Path) -> Session:
    write_hmm(building(), folder / "model")
    (folder / "q.abq").write_text(workbook_text("at", method))
    session = Session(spark)
    session.execute_file(str(folder / "q.abq"))
    return session


@pytest.mark.parametrize("method", ["SMOOTH", "FILTER", "JOINT"])
def test_a_batch_gives_the_answers_of_the_operators(spark: SparkSession, tmp_path: Path, method: str) -> None:
    session = session_with_model(spark, method, tmp_path)
    # The last reading is of a key without answers; it still advances time for the other keys.
    rows = [(row["tag"], row["reader"], row["t"]) for row in READINGS]
    session.bind("readings", str(write_csv(tmp_path / "readings.csv", rows, NAMES)))
    answers = session.run("q")
    assert same(collect(answers), answers_without_spark(method, tmp_path))
    counts = session.counts("q")
    assert counts.read == counts.used == len(READINGS)


@pytest.mark.parametrize("method", ["FILTER", "LAG"])
def test_a_stream_gives_the_answers_of_a_batch(spark: SparkSession, tmp_path: Path, method: str) -> None:
    session = session_with_model(spark, method, tmp_path)
    rows = sorted((row["t"], row["tag"], row["reader"]) for row in READINGS)
    for number in range(3):
        part = [(tag, reader, t) for t, tag, reader in rows[number * len(rows) // 3 : (number + 1) * len(rows) // 3]]
        write_csv(tmp_path / "in" / f"{number}.csv", part, NAMES)
    session.bind("readings", str(tmp_path / "in"))
    checkpoint = str(tmp_path / "cp")
    finish(session.start("q", checkpoint, str(tmp_path / "out"), max_files=1), session, checkpoint)
    assert same(written(tmp_path / "out"), answers_without_spark(method, tmp_path))
    assert session.counts("q").late == 0


def test_a_method_that_needs_the_whole_archive_cannot_stream(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with_model(spark, "SMOOTH", tmp_path)
    session.bind("readings", str(write_csv(tmp_path / "in" / "1.csv", [("a", "east", 1)], NAMES)))
    with pytest.raises(WorkbookError, match="at is inferred by SMOOTH, which needs all readings"):
        session.start("q", str(tmp_path / "cp"), output=str(tmp_path / "out"))


def test_the_error_for_a_missing_model_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    session = session_with_model(spark, "SMOOTH", tmp_path)
    session.bind("readings", str(write_csv(tmp_path / "readings.csv", [("a", "east", 1)], NAMES)))
    (tmp_path / "model" / "transition.csv").unlink()
    with pytest.raises(WorkbookError, match=r"q.abq:4:3: .*transition.csv"):
        session.run("q")
