"""FORMAT behind an address, and sources of Spark by their name, in batch and as streams."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, collect, query, same, stream, write_csv, write_parquet, written
from tests.runtime.streams import NOW

from anabranch import Session
from anabranch.errors import WorkbookError


def session_on(spark: SparkSession, source: str) -> Session:
    session = Session(spark)
    session.execute(stream("at", source) + query())
    return session


def streamed(session: Session, folder: Path) -> dict[tuple, float]:
    """The answers of a stream over what is there now."""
    for _ in range(2):
        running = session.start("coffee", str(folder / "checkpoint"), str(folder / "out"), trigger=NOW)
        assert running.awaitTermination(300)
        session.end_input(str(folder / "checkpoint"))
    return written(folder / "out")


def refusal(session: Session) -> str:
    with pytest.raises(WorkbookError) as refused:
        session.run("coffee")
    (line,) = str(refused.value).splitlines()
    return line


def test_format_says_how_files_without_an_extension_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "csv" / "part-0", sep=";")
    write_parquet(tmp_path / "lake" / "part-0")
    csv = session_on(spark, f"'{tmp_path}/csv/' FORMAT csv OPTIONS (sep = ';')")
    assert same(collect(csv.run("coffee")), ANSWERS)
    parquet = session_on(spark, f"'{tmp_path}/lake/' FORMAT parquet")
    assert same(collect(parquet.run("coffee")), ANSWERS)
    assert same(streamed(parquet, tmp_path), ANSWERS)
    assert "use .parquet, .csv, .json or .jsonl, or write FORMAT" in refusal(session_on(spark, f"'{tmp_path}/lake/'"))


def test_a_folder_of_another_file_system_is_read_in_batch_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "events" / "part-0")
    mounted = spark.sparkContext._jsc.hadoopConfiguration()
    mounted.set("fs.viewfs.mounttable.lake.link./events", f"file://{tmp_path}/events")
    session = session_on(spark, "'viewfs://lake/events/' FORMAT parquet")
    assert same(collect(session.run("coffee")), ANSWERS)
    assert same(streamed(session, tmp_path), ANSWERS)


def test_a_source_of_spark_is_read_in_batch_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "in" / "part-0")
    session = session_on(spark, f"SOURCE 'parquet' OPTIONS (path = '{tmp_path}/in', mergeSchema = TRUE)")
    assert same(collect(session.run("coffee")), ANSWERS)
    assert same(streamed(session, tmp_path), ANSWERS)


def test_a_source_that_only_streams_is_refused_by_run(spark: SparkSession, tmp_path: Path) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM at KEY (k = value % 2) VALUE (v = value % 3) TIME timestamp AS t "
        "FROM SOURCE 'rate' OPTIONS (rowsPerSecond = 20);"
        "CREATE QUERY coffee AS PATTERN at(x, 0) THEN at(x, 2) GROUP BY x;"
    )
    assert "the source 'rate' cannot be read: " in refusal(session)
    running = session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))
    deadline = time.monotonic() + 120
    try:
        while not list((tmp_path / "out").glob("*.parquet")) and time.monotonic() < deadline:
            assert running.exception() is None
            time.sleep(0.2)
    finally:
        running.stop()
    assert session.counts("coffee").answers > 0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("SOURCE 'nope'", "the source 'nope' cannot be read: [DATA_SOURCE_NOT_FOUND]"),
        ("SOURCE 'parquet' OPTIONS (path = '/nowhere')", "[PATH_NOT_FOUND]"),
        ("SOURCE 'parquet' OPTIONS (path = '${TEST_FOLDER}')", "***"),
    ],
)
def test_a_source_that_cannot_be_read_is_one_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.setenv("TEST_FOLDER", "/secret-folder")
    line = refusal(session_on(spark, source))
    assert message in line
    assert "secret-folder" not in line


def test_columns_that_a_source_lacks_are_named(spark: SparkSession) -> None:
    with pytest.raises(WorkbookError) as refused:
        session_on(spark, "SOURCE 'text' OPTIONS (path = '/etc/hostname')").run("coffee")
    assert "the input of at has no column person; it has value" in str(refused.value).splitlines()[0]
