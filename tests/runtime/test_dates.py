"""DATE columns as times: a date is the TIMESTAMP of its midnight in UTC, in batch and streaming, from every source."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, answers_of, collect, query, same, stream, write_csv
from tests.runtime.test_sources import run_all, workbook

from anabranch import Session
from anabranch.errors import WorkbookError

FIRST = date(2026, 3, 28)
DAYS = [(person, place, FIRST + timedelta(days=t), p) for person, place, t, p in ROWS]
EXPECTED = {
    (datetime(2026, 3, 28, tzinfo=UTC) + timedelta(days=t), person): p for (t, person), p in ANSWERS.items()
}  # fmt: skip


def dates() -> pa.Table:
    return pa.table(list(zip(*DAYS, strict=True)), names=SCHEMA.names)


def write_sources(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the rows, and return the text after FROM and after TIME for each source."""
    write_csv(folder / "days.csv", DAYS)
    write_csv(folder / "swiss.csv", [(*row[:2], f"{row[2]:%d.%m.%Y}", row[3]) for row in DAYS])
    pq.write_table(dates(), folder / "days.parquet")
    pq.write_to_dataset(dates().append_column("year", pa.array([2026] * 6)), folder / "years", partition_cols=["year"])
    return {
        "csv": ("'days.csv'", "t"),
        "declared_csv": ("'days.csv'", "t DATE"),
        "formatted_csv": ("'swiss.csv' OPTIONS (dateFormat = 'dd.MM.yyyy')", "t DATE"),
        "parquet": ("'days.parquet'", "t"),
        "declared_parquet": ("'days.parquet'", "t DATE"),
        "as_timestamp": ("'days.parquet'", "t TIMESTAMP"),
        "partitions": ("'years'", "t"),
        "bound_frame": ("", "t"),
        "bound_rows": ("", "t DATE"),
    }


def test_dates_are_midnights_from_every_source_and_in_every_zone(spark: SparkSession, tmp_path: Path) -> None:
    sources = write_sources(tmp_path)
    text = "".join(stream(f"s_{name}", source, time) for name, (source, time) in sources.items())
    text += "".join(query(name, f"s_{name}") for name in sources)
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        session = Session(spark)
        session.execute_file(workbook(tmp_path, text))
        session.bind("s_bound_frame", spark.createDataFrame(DAYS, SCHEMA.names))
        session.bind("s_bound_rows", DAYS, SCHEMA.names)
        answers = run_all(session, list(sources))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert {name: found for name, found in answers.items() if not same(found, EXPECTED)} == {}


def test_a_stream_of_dates_gives_the_answers_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    for ending in ("csv", "parquet"):
        (tmp_path / ending).mkdir()
    pq.write_table(dates(), tmp_path / "parquet" / "days.parquet")
    write_csv(tmp_path / "csv" / "days.csv", DAYS)
    for ending in ("csv", "parquet"):
        session = Session(spark)
        session.execute(stream("at", f"'{tmp_path / ending}'") + query())
        checkpoint, output = tmp_path / f"{ending}_checkpoint", tmp_path / f"{ending}_answers"
        session.end_input(str(checkpoint))
        session.start("coffee", str(checkpoint), str(output), trigger={"availableNow": True}).awaitTermination()
        found = answers_of([row for path in output.glob("*.parquet") for row in pq.read_table(path).to_pylist()])
        assert same(found, EXPECTED), ending


def test_days_are_durations_between_dates(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute("""
        CREATE STREAM visits KEY (who) VALUE (place) TIME day DATE;
        CREATE STREAM calls KEY (who) TIME t TIMESTAMP;
        CREATE QUERY twice AS CONSTRAIN u, v FROM visits
          WHERE u.who = v.who AND v.day - u.day IN [1 DAY, 2 DAYS] AND u.day >= '2026-03-28';
        CREATE QUERY called AS SEQUENCE (v, c) FROM visits AS v, calls AS c WHERE v.who = c.who WITHIN 2 DAYS;
    """)
    days = [("ann", "a", FIRST + timedelta(days=n)) for n in (-1, 0, 2, 5)]
    session.bind("visits", days, ["who", "place", "day"])
    session.bind("calls", [("ann", datetime(2026, 3, 30, 12, tzinfo=UTC))], ["who", "t"])
    (row,) = session.run("twice").collect()
    assert (row.u.day.isoformat(), row.v.day.isoformat()) == ("2026-03-28T00:00:00", "2026-03-30T00:00:00")
    (row,) = session.run("called").collect()
    assert row.v.day.day == 30


def test_a_timestamp_is_not_read_as_a_date(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(stream("at", time="t DATE") + query())
    session.bind("at", [(*row[:2], datetime(2026, 3, 28, 12, tzinfo=UTC), row[3]) for row in ROWS], SCHEMA.names)
    with pytest.raises(WorkbookError, match="column t of the input of at is TIMESTAMP, not DATE"):
        collect(session.run("coffee"))
