"""Answers of a micro-batch that are too many for the driver: executors finish and write them, with the same result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.runtime.office import ANSWERS, ROWS, answers_of, collect, query, same, stream, write_parquet, written
from tests.runtime.streams import Office, finish

from anabranch import Session
from anabranch.runtime import large_answers
from anabranch.runtime.large_answers import CACHED, LargeAnswers, read_files


@pytest.fixture(autouse=True)
def all_are_large(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every bucket leaves its answers in a file."""
    monkeypatch.setattr(large_answers, "MOST_ROWS", 0)
    yield
    for running in spark.streams.active:
        running.stop()


def test_a_bucket_with_many_answers_leaves_them_in_a_file(tmp_path: Path) -> None:
    large = LargeAnswers(str(tmp_path / "large"), 2)
    few, many = pa.table({"t": [1, 2]}), pa.table({"t": [1, 2, 3]})
    assert large.kept(few.slice(0, 0)) == (None, None)
    blob, path = large.kept(few)
    assert blob
    assert path is None
    blob, path = large.kept(many)
    assert blob is None
    assert path is not None
    assert read_files([path]) == [many]
    large.clear()
    assert not (tmp_path / "large").exists()


def test_answers_are_cached_if_workers_cannot_write_to_the_checkpoint(spark: SparkSession) -> None:
    large = LargeAnswers(None, 2)
    few, many = pa.table({"t": [1, 2]}), pa.table({"t": [3, 4, 5]})
    kept = [large.kept(table) for table in (few, many, few.slice(0, 0))]
    assert [file for _, file in kept] == [None, CACHED, None]
    outcomes = spark.createDataFrame(kept, "answers binary, file string")
    collected, left = large.collect(outcomes)
    assert [row["answers"] for row in collected.to_pylist() if row["answers"]] == [kept[0][0]], "the driver has few"
    assert left is not None
    assert left.tables() == [many]
    assert left.frame(many.schema).toArrow().to_pydict() == many.to_pydict()
    assert outcomes.is_cached
    large.clear(outcomes)
    assert not outcomes.is_cached
    assert large.collect(spark.createDataFrame(kept[:1], "answers binary, file string"))[1] is None


@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_executors_write_one_file_per_micro_batch_and_a_restart_repeats_nothing(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    office = Office(spark, tmp_path)
    for number, row in enumerate(ROWS):
        office.add(str(number), row)
    office.process_files(file_format=file_format)
    office.stop()
    again = Office(spark, tmp_path)
    again.process_files(file_format=file_format)
    again.stop()
    again.session.end_input(again.checkpoint)
    again.process_files(file_format=file_format)
    files = sorted(again.output.glob(f"part-*.{file_format}"))
    assert files
    assert not (again.output / "_staging").exists()
    if file_format == "parquet":
        assert same(again.answers, ANSWERS)
    else:
        assert same(answers_of([json.loads(line) for f in files for line in f.read_text().splitlines()]), ANSWERS)
    assert again.counts.answers == len(ANSWERS)
    assert not Path(again.checkpoint, "large").exists()


def test_queries_that_share_a_pass_and_provisional_answers(spark: SparkSession, tmp_path: Path) -> None:
    session = Session(spark)
    write_parquet(tmp_path / "in" / "1.parquet")
    session.execute(
        stream("at", f"'{tmp_path}/in/*.parquet'").replace("MODEL INDEPENDENT", "MODEL CERTAIN")
        + "CREATE QUERY near AS CONSTRAIN a, b FROM at WHERE a.place = 'hall' AND b.place = 'coffee' "
        "AND b.t - a.t IN [0, 1] AND a.person = b.person;"
        "CREATE QUERY never AS CONSTRAIN a, b FROM at WHERE a.place = 'x' AND b.place = 'y' AND b.t - a.t IN [0, 1];"
        "CREATE QUERY early AS SEQUENCE (a, b) FROM at WHERE a.place = 'hall' AND b.place = 'coffee' "
        "AND a.person = b.person WITHIN 5 EMIT EARLY;"
    )
    for names in (["near", "never"], ["early"]):
        folder = tmp_path / names[0]
        outputs = [str(folder / "out" / name) for name in names]
        finish(session.start_together(names, str(folder / "cp"), outputs), session, str(folder / "cp"))
    for name in ("near", "early"):
        expected = sorted(map(str, session.run(name).drop("status").toArrow().to_pylist()))
        rows = spark.read.parquet(str(tmp_path / name / "out" / name)).drop("status").toArrow().to_pylist()
        assert sorted(map(str, rows)) == expected
        assert rows
    assert list((tmp_path / "early" / "out" / "early" / "_provisional").glob("*.parquet"))
    assert not list((tmp_path / "near" / "out" / "never").glob("*.parquet"))


def test_rows_of_per_and_functions_get_all_answers(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path, query_text=query(more="GROUP BY x PER 10"))
    office.add("1", *ROWS)
    office.process_files()
    office.end()
    rows = spark.read.parquet(str(office.output)).collect()
    assert sorted(row["x"] for row in rows) == ["007", "ann", "bob"]
    office.stop()

    other = Office(spark, tmp_path / "function")
    other.add("1", *ROWS)
    seen: list[dict] = []

    def function(frame: DataFrame, batch: int) -> None:
        seen.extend(row.asDict() for row in frame.collect())

    running = other.session.start("coffee", other.checkpoint, foreach_batch=function)
    finish(running, other.session, other.checkpoint)
    assert same(answers_of(seen), ANSWERS)
    assert same(collect(other.session.run("coffee")), ANSWERS)
    assert written(office.output / "none") == {}


def test_a_table_gets_large_answers_once(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS large_coffee")
    session = Session(spark)
    write_parquet(tmp_path / "in" / "1.parquet")
    session.execute(
        stream("at", f"'{tmp_path}/in/*.parquet'") + query().replace(" AS ", " TO TABLE 'large_coffee' AS ")
    )
    finish(session.start("coffee", str(tmp_path / "cp")), session, str(tmp_path / "cp"))
    rows = [row.asDict() for row in spark.table("large_coffee").drop("_run", "_batch").collect()]
    assert same(answers_of(rows), ANSWERS)
    assert session.counts("coffee").answers == len(ANSWERS)
    spark.sql("DROP TABLE large_coffee")
