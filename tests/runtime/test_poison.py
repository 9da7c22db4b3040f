"""Files and rows that nobody can read: a stream quarantines them and goes on, a batch run names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, publish, query, same, stream, table, write_parquet
from tests.runtime.streams import Office

from anabranch import DataError, Session


def truncated(path: Path) -> None:
    draft = path.with_name(".draft")
    pq.write_table(table(), draft)
    draft.write_bytes(draft.read_bytes()[:-20])
    publish(draft, path)


def empty(path: Path) -> None:
    draft = path.with_name(".draft")
    draft.touch()
    publish(draft, path)


def with_a_damaged_page(path: Path) -> None:
    draft = path.with_name(".draft")
    pq.write_table(table(), draft, compression="zstd", use_dictionary=False)
    content = bytearray(draft.read_bytes())
    content[20:60] = b"\xff" * 40
    draft.write_bytes(content)
    publish(draft, path)


def without_a_column(path: Path) -> None:
    write_parquet(path, table().drop_columns("place"))


def with_times_of_another_type(path: Path) -> None:
    times = pa.array([1, 2, 1, 2, 2, 3], pa.int64()).cast(pa.timestamp("us"))
    write_parquet(path, table().set_column(2, "t", times))


def with_doubles_as_times(path: Path) -> None:
    write_parquet(path, table().set_column(2, "t", pa.array([1.0, 2.5, 1.0, 2.0, 2.0, 3.0])))


def with_texts_as_probabilities(path: Path) -> None:
    write_parquet(path, table().set_column(3, "p", pa.array(["a half"] * len(ROWS))))


POISON: list[tuple[Callable[[Path], None], str]] = [
    (truncated, "the file cannot be read: "),
    (with_a_damaged_page, "the file cannot be read: "),
    (without_a_column, "the file has no column place; it has person, t, p"),
    (with_times_of_another_type, "the file has a column t of type TIMESTAMP, not INTEGER"),
    (with_doubles_as_times, "the file has a column t of type DOUBLE, not INTEGER"),
    (with_texts_as_probabilities, "the file has a column p of type STRING, not DOUBLE"),
]


def test_a_stream_goes_on_after_files_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("0", *ROWS[:3])
    for number, (write, _) in enumerate(POISON):
        write(office.file(f"1 {number}"))
    empty(office.file("1 empty"))  # Spark skips files without bytes, which have no rows
    office.process_files()
    office.stop()
    resumed = Office(spark, tmp_path)
    resumed.add("2", *ROWS[3:])
    resumed.process_files()
    resumed.end()
    resumed.stop()
    assert same(resumed.answers, ANSWERS)
    rows = resumed.quarantined()
    assert len(rows) == len(POISON)
    for number, (write, reason) in enumerate(POISON):
        (found,) = [row["reason"] for row in rows if f"1 {number}" in row["row"]]
        assert found.startswith(reason), write.__name__


@pytest.mark.parametrize(("write", "reason"), [*POISON, (empty, "the file cannot be read: ")])
def test_a_batch_run_names_such_a_file(
    write: Callable[[Path], None], reason: str, spark: SparkSession, tmp_path: Path
) -> None:
    write_parquet(tmp_path / "in" / "a.parquet")
    write(tmp_path / "in" / "b.parquet")
    session = Session(spark)
    session.execute(stream("at", f"'{tmp_path}/in/*.parquet'") + query())
    with pytest.raises(DataError, match=rf"b\.parquet {reason.removeprefix('the file ')}") as refused:
        session.run("coffee").collect()
    assert "\n" not in str(refused.value)


def test_rows_with_invalid_texts_and_times_are_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    names = pa.array([b"ann", b"\xff\xfe", b"bob"])
    broken = pa.Array.from_buffers(pa.string(), 3, names.buffers())
    times = pa.array([1, 1, 2**60], pa.int64()).cast(pa.timestamp("us"))
    rows = pa.table([broken, pa.array(["hall"] * 3), times, pa.array([0.5] * 3)], names=SCHEMA.names)
    office = Office(spark, tmp_path, stream("at", f"'{tmp_path}/in/*.parquet'", more="WATERMARK 2 SECONDS"))
    write_parquet(office.file("1"), rows)
    later = pa.array([2_000_000], pa.int64()).cast(pa.timestamp("us"))
    coffee = pa.table([pa.array(["ann"]), pa.array(["coffee"]), later, pa.array([0.5])], names=SCHEMA.names)
    write_parquet(office.file("2"), coffee)
    office.process_files()
    office.end()
    office.stop()
    assert list(office.answers.values()) == [0.25]
    assert {row["reason"] for row in office.quarantined()} == {
        "person is not valid UTF-8", "t is outside the years 1 to 9999",
    }  # fmt: skip
